"""How likely each trouble is: what holds of the judgement whatever its numbers, and which troubles
a design can have."""

from dataclasses import replace
from math import sqrt

import pytest
from corpus import DENSE, MOE, SMALL, spec
from hypothesis import given, strategies as st
from pytest import approx
from scantling import Design, assess
from scantling.base.show import span
from scantling.catalogue.stacks import stacks
from scantling_kits import FRAMEWORKS, framework
from scantling_kits.budget import asynchronous
from scantling_kits.expressible import express
from scantling_kits.launched import launch_plan
from scantling_kits.troubles import (
    memory_likelihood,
    saves_likelihood,
    straggler_likelihood,
    timeout_likelihood,
    traffic_likelihood,
    troubles,
)

SHARES = st.floats(0, 1)


def launched(data, to="fsdp", on="torchrun"):
    return launch_plan(assess(Design.from_data(data | {"name": "x"})), framework(to), on, 0)


def expressed(data, to):
    return express(assess(Design.from_data(data | {"name": "x"})), 0, framework(to), "torchrun")


def names(launch):
    return [trouble.name.partition(":")[0] for trouble in troubles(launch)]


@given(SHARES, SHARES)
def test_a_fuller_memory_and_more_exposed_traffic_are_likelier_troubles(one, other):
    low, high = sorted((one, other))
    for moe in (False, True):
        assert memory_likelihood(low, moe) <= memory_likelihood(high, moe)
    assert memory_likelihood(high, False) < memory_likelihood(high, True)
    assert traffic_likelihood(low) <= traffic_likelihood(high)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_devices_and_nodes_are_likelier_to_have_a_bad_one(one, other):
    low, high = sorted((one, other))
    assert timeout_likelihood(low) <= timeout_likelihood(high)
    assert straggler_likelihood(low) <= straggler_likelihood(high)


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 1e6))
def test_longer_stalls_are_likelier_to_be_noticed(one, other, interval_s):
    low, high = sorted((one, other))
    assert saves_likelihood(low, interval_s) <= saves_likelihood(high, interval_s)


@pytest.fixture(scope="module")
def dense():
    return launched(spec(model=DENSE, plan=dict(tp=1, pp=1, sharding="zero3")))


def test_the_likely_trouble_stands_first(dense):
    likelihoods = [trouble.likelihood for trouble in troubles(dense)]
    assert likelihoods == sorted(likelihoods, reverse=True)
    full = replace(dense, memory=replace(dense.memory, total=dense.memory.capacity))
    assert names(full)[0] == "Out of memory"


def test_a_design_has_the_troubles_that_it_can_have(dense):
    """A time-out needs a network, overflow fp16, uneven experts a router."""
    alone = launched(spec(model=SMALL, devices=1, job=dict(global_batch=8)))
    assert {"Collective time-out", "Slow steps"}.isdisjoint(names(alone))
    assert "Collective time-out" in names(dense)
    assert {"FP16 overflow", "Uneven experts", "Loss apart from 16 bit"}.isdisjoint(names(dense))
    half = replace(dense, phase=replace(dense.phase, precision="fp16"))
    assert "FP16 overflow" in names(half)
    eighth = replace(dense, phase=replace(dense.phase, precision="fp8-block"))
    assert "Loss apart from 16 bit" in names(eighth)
    experts = launched(spec(model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1")))
    assert "Uneven experts" in names(experts)


def test_what_makes_room_is_named_the_cheapest_first(dense):
    """Offload costs time in every step, so it stands last; what a plan has is not advised."""
    text = next(t.text for t in troubles(dense) if t.name == "Out of memory")
    steps = text.partition("In this order: ")[2]
    places = [steps.index(word) for word in ("split further", "offload last")]
    assert places == sorted(places)
    whole = replace(dense, plan=replace(dense.plan, recompute="full", micro_batch=1))
    text = next(t.text for t in troubles(whole) if t.name == "Out of memory")
    assert "recompute more" not in text and "halve the micro-batch" not in text


@pytest.mark.parametrize(
    ("to", "sharding", "knob"),
    [
        ("megatron", "none", "--use-distributed-optimizer"),
        ("megatron", "zero1", "--use-megatron-fsdp"),
        ("megatron", "zero2", "--data-parallel-sharding-strategy"),
        ("megatron-bridge", "zero1", "ddp.use_megatron_fsdp"),
        ("torchtitan", "zero2", "parallelism.fsdp_reshard_after_forward"),
        ("deepspeed", "zero1", "zero_optimization.stage"),
        ("ddp", "none", "with the fsdp kit"),
    ],
)
def test_what_shards_more_is_no_option_that_the_plan_has(to, sharding, knob):
    """Megatron-LM shards optimizer states with --use-distributed-optimizer, all else with its
    FSDP."""
    one = launched(spec(model=SMALL, plan=dict(tp=1, pp=1, sharding=sharding)), to)
    text = next(t.text for t in troubles(one) if t.name == "Out of memory")
    assert f"shard more ({knob}" in text
    alone = replace(one, plan=replace(one.plan, dp=1))
    assert all("shard more" not in t.text for t in troubles(alone))


def test_a_framework_that_waits_for_its_files_holds_training_up_until_they_are_whole():
    """DeepSpeed's save_checkpoint returns once its files are written (engine.py,
    checkpoint_engine.save and commit); torch.distributed.checkpoint has async_save. Days, interval
    and overhead count what the kit does, as Young's formula has it: sqrt(2 x stall x MTBF)."""
    plan = dict(tp=1, pp=1, sharding="zero3")
    design = spec(model=SMALL, plan=plan)
    waits, goes_on = (expressed(design, to) for to in ("deepspeed", "fsdp"))
    assert 0 < goes_on.survival.stall_s < goes_on.survival.durable_s
    assert waits.survival.durable_s == 0
    assert waits.survival.stall_s == goes_on.survival.durable_s
    assert waits.figures.goodput < goes_on.figures.goodput
    (gap,) = [gap for gap in waits.gaps if gap.field == "reliability.checkpoint_stall_s"]
    assert gap.instead == span(waits.survival.stall_s) and gap.cost.startswith("goodput ")
    text = next(t.text for t in troubles(waits) if t.name == "Slow saves")
    assert f"hold up training for {span(waits.survival.stall_s)} " in text
    lives = waits.assessment.endurance
    young_s = sqrt(2 * waits.survival.stall_s * float(lives.mtbf_s))
    assert float(lives.checkpoint_interval_s) in (approx(young_s, rel=0.05), 3 * 3600)
    # a lost save costs what a whole one takes, and the signal to stop leaves time for it
    assert waits.lead_s >= 2 * waits.survival.whole_s
    assert f"waits {span(waits.survival.stall_s)}" in asynchronous(waits)


def test_a_stack_waits_for_its_saves_as_the_framework_of_its_kit_does():
    kits = {name: one for name, one in stacks().items() if one.kit}
    assert kits["deepspeed"].waits_for_saves
    for one in kits.values():
        assert one.waits_for_saves != FRAMEWORKS[one.kit].saves_in_background


def test_a_design_of_deepspeed_and_its_kit_count_the_same_saves():
    """Under its own stack nothing is left for the kit to change."""
    design = spec(model=SMALL, plan=dict(tp=1, pp=1, sharding="zero3"))
    own = expressed(design | {"stack": "deepspeed"}, "deepspeed")
    other = expressed(design, "deepspeed")
    assert all(gap.field != "reliability.checkpoint_stall_s" for gap in own.gaps)
    assert own.survival.stall_s == approx(other.survival.stall_s)
    assert own.survival.durable_s == other.survival.durable_s == 0
