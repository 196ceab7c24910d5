"""Plans that are known to fit, since a published run had one that needed no less."""

import numpy as np
import pytest
from scantling import Design
from scantling.catalogue.published import ran
from scantling.physics.gather import situation
from scantling.physics.memory.chance import MEASURED_SPREAD, spread
from scantling.plans.prepare import prepare
from scantling.plans.ran import needs_no_more, run_of, runs_alike, spread_of
from scantling.verdict.assess import assess

MORE = {"dp": 256, "recompute_share": 1.0}  # of DeepSeek-V3's own plan: needs less memory
LESS = {"tp": 2, "pp": 8, "ep": 32, "micro_batch": 2, "recompute": 0, "vpp": 2, "dp": 64}


def design(**changes):
    """DeepSeek-V3 as a user types it: model, devices, stack and batch, no pin."""
    base = {
        "scantling": 1,
        "name": "typed",
        "model": "deepseek-v3",
        "cluster": {"accelerator": "h800-sxm", "devices": 2048},
        "stack": "hai-llm",
        "job": {"tokens": 14.8e12, "seq_len": 4096, "global_batch": 15360, "precision": "fp8"},
    }
    return Design.from_data(base | changes)


def test_deepseek_v3_typed_without_its_plan_takes_the_hours_that_were_printed():
    """2.664M hours of H800 for the pre-training, 2.788M in all (DeepSeek-V3 report, Table 1)."""
    for plan in ({}, {"tp": 1, "pp": 16, "ep": 64, "schedule": "dualpipe"}, {"pp": 16, "ep": 64}):
        one = assess(design(plan=plan))
        hours = one.days * 24 * 2048
        assert 2.66e6 / 1.07 < hours < 2.79e6 * 1.07
        assert one.oom_probability <= 0.05
        assert one.plan["recompute"] == "selective"  # as section 3.2.3 says, and no whole layers


def test_a_plan_that_ran_is_known_to_fit_and_no_other_is():
    resolved = prepare(design())
    phase = situation(resolved, resolved.phases[0])
    (run,) = runs_alike(phase)
    chosen = assess(design()).chosen
    plan = chosen.case.plan
    assert run_of(phase, plan) == run
    assert spread_of(phase, plan) == min(MEASURED_SPREAD, spread())
    assert needs_no_more(plan, run, 15360.0)
    for name, value in LESS.items():
        other = {**vars(plan), name: value}
        assert not needs_no_more(type(plan)(**other), run, 15360.0), name
    assert needs_no_more(type(plan)(**{**vars(plan), **MORE}), run, 15360.0)


@pytest.mark.parametrize(
    "changes",
    (
        {"stack": "megatron-core"},
        {"cluster": {"accelerator": "h100-sxm", "devices": 2048}},
        {"model": {"like": "deepseek-v3", "hidden": 8192}},
        {"job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 15360, "precision": "fp8"}},
        {"job": {"tokens": 1e12, "seq_len": 4096, "global_batch": 15360, "precision": "bf16"}},
        {"plan": {"fp8_param_gather": False}},
    ),
)
def test_another_stack_chip_model_length_or_format_is_not_what_ran(changes):
    resolved = prepare(design(**changes))
    assert runs_alike(situation(resolved, resolved.phases[0])) == []


def test_a_model_typed_by_its_shape_is_the_same_model():
    from scantling.catalogue.models.entries import build_model

    model, _ = build_model("deepseek-v3")
    assert ran("h800-sxm", "hai-llm", model)
    assert np.all([one.model == "deepseek-v3" for one in ran("h800-sxm", "hai-llm", model)])
