"""Advice: each trap is a plan that was evaluated and costs what is said; where it is harmless it is
not listed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scantling import Design, assess, avoid
from scantling.advise.avoid import WORTH
from scantling.advise.why import why
from scantling.physics.step import device_params

LARGE = (
    "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\njob: {tokens: "
    "15.6e12, seq_len: 8192, global_batch: 2048}\nreliability: {preset: llama3}\n"
)
TINY = (
    "model: qwen2.5-0.5b\ncluster: {accelerator: h100-sxm, devices: 8}\njob: {seq_len: "
    "4096, global_batch: 64}\n"
)
MOE = (
    "model: deepseek-v3\ncluster: {accelerator: h100-sxm, devices: 2048}\njob: {seq_len: "
    "4096, global_batch: 8192}\n"
)


def traps(text):
    a = assess(Design.from_text(text))
    return a, {t["what"]: t for t in avoid(a)}


def cost(trap):
    return float(trap["cost"].split("%")[0].replace(",", "")) / 100


def test_traps_of_a_large_dense_run():
    a, found = traps(LARGE)
    words = " ".join(found)
    for part in (
        "tensor parallelism across nodes",
        "sharded data parallelism alone",
        "fewer micro-batches",
    ):
        assert part in words
    tried = a.chosen.found
    unsharded = (
        tried.step_s[
            (np.broadcast_to(tried.plan.sharding, tried.fits.shape) == 0) & tried.fits
        ].min()
        / a.chosen.step.total
        - 1
    )
    assert ("unsharded optimizer" in words) == (
        unsharded >= WORTH
    )  # a trap that is harmless here is not listed
    # tensor parallelism across nodes is named wherever it is slower, the rest from WORTH on
    paid = {what: cost(t) for what, t in found.items() if "step time" in t["cost"]}
    assert all(c >= (0 if "across nodes" in what else WORTH) for what, c in paid.items())
    costs = [cost(t) for t in avoid(a)]
    assert costs == sorted(costs, reverse=True)


def test_a_traps_cost_is_that_of_its_plan_assessed_alone():
    a, found = traps(LARGE)
    trap = next(t for what, t in found.items() if what.startswith("sharded data parallelism alone"))
    plan = dict(re.findall(r"(tp|cp|pp|dp) (\d+)", trap["why"].split("(")[1]))
    pinned = assess(
        a.design.change(
            {f"plan.{k}": int(v) for k, v in plan.items()}
            | {"plan.sharding": "zero3", "plan.cp": 1}
        )
    )
    assert float(pinned.chosen.step.total) / a.step_s - 1 == pytest.approx(
        cost(trap), abs=0.006 * float(pinned.chosen.step.total) / a.step_s
    )


def test_a_small_run_has_no_large_runs_traps():
    _, found = traps(TINY)
    assert not any(
        "across nodes" in what
        or "data parallelism alone" in what
        or "buckets" in what
        or "hourly" in what
        for what in found
    )


def test_hourly_checkpoints_only_where_failures_are_frequent():
    _, large = traps(LARGE)
    assert "hourly checkpoints" in large and "goodput" in large["hourly checkpoints"]["cost"]
    _, calm = traps(
        LARGE.replace(
            "reliability: {preset: llama3}", "reliability: {failures_per_1000_node_days: 0.01}"
        )
    )
    assert "hourly checkpoints" not in calm


def test_fp16_without_scaling_is_a_trap_of_fp16_alone():
    text = (
        "model: gpt-3-6.7b\ncluster: {accelerator: v100-32-sxm2, devices: 64}\njob: "
        "{seq_len: 2048, global_batch: 512, precision: %s}\n"
    )
    _, found = traps(text % "fp16")
    trap = found["fp16 without loss scaling"]
    # 1 / (micro-batch x 2048 x 50257) is far below 2^-24 = 6e-8, the smallest subnormal of binary16
    # (IEEE 754)
    assert "6.0e-08" in trap["why"]
    _, found = traps((text % "bf16").replace("v100-32-sxm2", "a100-80-sxm"))
    assert not any("fp16" in what for what in found)


def test_small_buckets_over_many_ranks():
    a, found = traps(
        "model: gpt-3-175b\ncluster: {accelerator: h100-sxm, devices: 8192}\njob: "
        "{seq_len: 2048, global_batch: 2048}\nplan: {tp: 8, pp: 4, vpp: 1, sharding: "
        "zero1}\n"
    )
    trap = next(t for what, t in found.items() if "buckets" in what)
    ranks = a.plan["dp"] * a.plan["cp"]
    dense, experts = device_params(a.chosen.case)
    assert (
        f"{ranks - 1:,} hops" in trap["why"]
        and f"{float(dense + experts) * a.chosen.case.job.grad_bytes / 25e6:,.0f} buckets"
        in trap["why"]
    )


def test_a_pinned_plan_is_held_against_the_open_search():
    a = assess(Design.from_text(LARGE + "plan: {tp: 8, pp: 16, cp: 1, dp: 128}"))
    assert any("sharded data parallelism alone" in t["what"] for t in avoid(a))
    tp = next(w for w in why(a) if w["axis"] == "tp")
    assert "tp 16" in tp["text"] and "tp 4" in tp["text"]


def test_one_line_an_axis_with_tier_traffic_and_neighbours():
    a = assess(Design.from_text(MOE))
    lines = {w["axis"]: w["text"] for w in why(a)}
    assert set(lines) == {"tp", "pp", "cp", "dp", "ep", "sharding"}
    for axis in ("tp", "pp", "cp", "dp", "ep"):
        if a.plan[axis] > 1:
            assert "tier" in lines[axis] and "exposed" in lines[axis]
        assert lines[axis].startswith(f"{axis} {a.plan[axis]}")
    rows = {r["axis"]: r for r in a.as_dict(advice=False)["communication"]}
    wide = a.plan["ep"] * a.plan["etp"] > 8
    assert rows["ep"]["tier"] == ("scale-out" if wide else "scale-up")


def test_a_plan_that_does_not_fit_is_not_advised_about():
    a = assess(
        Design.from_text(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: "
            "{seq_len: 8192, global_batch: 128}\nplan: {tp: 1, pp: 1, sharding: none}"
        )
    )
    assert avoid(a) == []
