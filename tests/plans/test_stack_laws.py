"""What a named stack refuses is refused in the design, or searched around, and without one the
plan says which stacks would run it."""

import numpy as np
import pytest
from scantling import Design, DesignError, assess
from scantling.catalogue.stacks import stacks
from scantling.plans.stack_laws import STACK_LAWS, Run, laws_of_stack
from scantling.verdict.limits import limits


def design(stack, plan, model="llama-3-8b", devices=32, **job):
    """A run of a small model on H100s under a stack."""
    data = {
        "model": model,
        "cluster": {"accelerator": "h100-sxm", "devices": devices},
        "job": {"tokens": 1e9, "seq_len": 4096, "global_batch": 256, **job},
        "plan": plan,
    }
    return Design.from_data(data | ({"stack": stack} if stack else {}))


# stack, pins, job, words of the law: reports of users of each stack, and its own assertions
REFUSED = [
    ("megatron-deepspeed", {"pp": 4, "sharding": "zero2"}, {}, "PipelineEngine"),
    ("deepspeed", {"pp": 2, "sharding": "zero3"}, {}, "PipelineEngine"),
    ("torchtitan", {"tp": 16}, {}, "key-value heads"),
    ("torchtitan", {"pp": 8, "micro_batch": 1}, {"global_batch": 4}, "micro-batches"),
    ("maxtext", {"tp": 16}, {}, "key-value heads"),
    ("megatron-core", {"sharding": "zero3", "vpp": 2, "pp": 2}, {}, "virtual stages"),
    ("megatron-core", {"recompute_modules": ["mlp_act"]}, {}, "moe_act"),
    (
        "megatron-core",
        {"tp": 4, "cp": 1, "micro_batch": 1, "sp": True},
        {"precision": "fp8", "seq_len": 4092},
        "multiple of 16",
    ),
]


@pytest.mark.parametrize(("stack", "plan", "job", "words"), REFUSED)
def test_what_a_named_stack_refuses_is_refused_with_its_law_and_release(stack, plan, job, words):
    with pytest.raises(DesignError) as caught:
        assess(design(stack, plan, **job))
    assert words in str(caught.value) and any(n in str(caught.value) for n in "0123456789")
    assert caught.value.field.startswith("plan.")


@pytest.mark.parametrize(("stack", "plan", "job", "words"), REFUSED[:5])
def test_without_the_stack_the_same_plan_is_lawful(stack, plan, job, words):
    assert assess(design(None, plan, **job)).verdict


@pytest.mark.parametrize("stack", sorted(name for name, one in stacks().items() if one.laws))
@pytest.mark.parametrize("model", ["llama-3-8b", "qwen3-30b-a3b"])
def test_every_plan_that_is_searched_keeps_the_laws_of_its_stack(stack, model):
    a = assess(design(stack, {}, model=model))
    search = a.chosen.search
    run = Run(a.resolved.model, a.chosen.phase, a.resolved.cluster)
    columns = {
        name: np.broadcast_to(np.asarray(value), search.plan.tp.shape)
        for name, value in vars(search.plan).items()
    }
    for law in laws_of_stack(stack):
        assert np.all(law.holds(columns, run)), law.text


def test_a_design_without_a_stack_names_those_that_would_run_its_plan():
    open_design = assess(design(None, {"tp": 2, "pp": 2, "sharding": "zero1", "schedule": "1f1b"}))
    line = next(line for line in limits(open_design) if line.startswith("stack:"))
    assert stacks()["megatron-core"].title in line
    assert stacks()["deepspeed"].title not in line  # its ZeRO engine has no pipeline
    named = assess(design("megatron-core", {}))
    assert not any(line.startswith("stack:") for line in limits(named))


def test_sharded_weights_with_chunks_are_no_law_of_nature():
    """A framework ran DualPipeV with sharded weights on 4 stages of 8 expert ranks."""
    plan = {"tp": 1, "pp": 4, "ep": 8, "schedule": "dualpipe-v", "sharding": "zero3"}
    a = assess(design(None, plan, model="qwen3-30b-a3b"))
    assert a.fits and a.plan["schedule"] == "dualpipe-v" and a.plan["sharding"] == "zero3"


def test_every_law_is_of_a_stack_of_the_catalogue():
    named = {law for one in stacks().values() for law in one.laws}
    assert named == {law.holds.__name__ for law in STACK_LAWS}
