"""Advice: each trap is a plan that was evaluated and costs what is said; where it is harmless it is
not listed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scantling import Design, DesignError, assess, avoid
from scantling.advise.avoid import WORTH
from scantling.advise.measure import measure_first
from scantling.advise.why import distance, why
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
    tried = a.chosen.search
    unsharded = (
        tried.step_s[
            (np.broadcast_to(tried.plan.sharding, tried.fits.shape) == 0) & tried.fits & tried.roomy
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
    costs = [round(cost(t), 2) for t in avoid(a)]  # whole percents: some print one digit more
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
    assert pinned.fastest["step_s"] / a.step_s - 1 == pytest.approx(
        cost(trap), abs=0.006 * pinned.fastest["step_s"] / a.step_s
    )


def test_a_small_run_has_no_large_runs_traps():
    _, found = traps(TINY + "\nconstraints: {max_oom_probability: 0.5}\n")
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


def test_what_to_find_out_first_narrows_days_and_dollars():
    """ "what to measure first: the one measurement or the one setting still unknown that narrows
    days and dollars most, with by how much"."""
    a = assess(
        Design.from_text(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 512}\n"
            "job: {tokens: 1.0e12}"
        )
    )
    rows = measure_first(a)
    assert rows and rows == sorted(rows, key=lambda r: -r["narrows"])
    now = a.likely  # the headline's figures: failures and risks are in them before and after
    for row in rows:
        for low, high in (("days_low", "days_high"), ("cost_usd_low", "cost_usd_high")):
            ends = getattr(now, low), getattr(now, high)  # but for rounding
            assert ends[0] * (1 - 1e-9) <= row[low] <= row[high] <= ends[1] * (1 + 1e-9)
    quoted = assess(a.design.change({"prices.usd_per_device_hour": a.cost.usd_per_device_hour}))
    offer = next(r for r in rows if "prices." in r["what"])
    assert offer["cost_usd_high"] == pytest.approx(quoted.likely.cost_usd_high)
    assert all("prices." not in r["what"] for r in measure_first(quoted))
    unpriced = assess(a.design.change({"cluster.accelerator": "trn3", "constraints": None}))
    assert unpriced.cost_usd is None and measure_first(unpriced)
    timed = assess(a.design.change({"measured.step_s": a.step_s}))
    assert all("measured.step_s" not in r["what"] for r in measure_first(timed))
    step = next(r for r in rows if "measured.step_s" in r["what"])
    # a step that comes out as computed: the likely days of then lie where the row says
    assert step["days_low"] < timed.likely.days < step["days_high"]


def test_a_target_loss_gives_days_with_the_spread_of_the_laws():
    """ "Where the user gives a target loss in place of tokens, scaling laws with their spread give
    days to that loss"."""
    text = "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 512}\njob: {}"
    asked = Design.from_text(text.replace("{}", "{target_loss: 1.95}"))
    said = assess(asked).as_dict()
    assert said["to_loss"]["days_low"] < said["days"] < said["to_loss"]["days_high"]
    assert any(a["field"] == "job.tokens" and "1.95" in a["why"] for a in said["assumed"])
    with pytest.raises(DesignError, match="target_loss"):
        assess(Design.from_text(text.replace("{}", "{target_loss: 1.2}")))
    with pytest.raises(DesignError, match="tokens or target_loss"):
        Design.from_text(text.replace("{}", "{target_loss: 1.95, tokens: 1.0e12}"))


def test_the_distance_of_a_published_plan_to_the_winner_is_one_function():
    """ "Where the published plan meets the headroom, it is not faster than the fastest plan found,
    by the same model": MT-NLG 530B on 2,240 A100, tp 8, pp 35 (Smith et al. 2022)."""
    text = (
        "model: mt-nlg-530b\ncluster: {accelerator: a100-80-sxm, devices: 2240}\n"
        "job: {seq_len: 2048, global_batch: 1920}\nplan: {tp: 8, pp: 35, micro_batch: 1}"
    )
    a = assess(Design.from_text(text))
    far = distance(a)
    free = assess(a.design.change({"plan": None}))
    assert far["best_step_s"] == pytest.approx(free.fastest["step_s"])
    assert far["gain"] == pytest.approx(1 - free.fastest["step_s"] / a.step_s)
    assert far["oom_probability"] > 0.05 or far["gain"] >= 0
    assert distance(free) is None


def test_a_run_that_never_ends_has_nothing_to_narrow():
    """A million devices that fail all the time and restart for thirty years: an end of the band is
    no positive number of days, and its width is no ratio."""
    design = Design.from_data(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "devices": 1_000_000},
            "job": {"tokens": 1e12, "seq_len": 4096, "global_batch": 64},
            "reliability": {
                "failures_per_1000_node_days": 1e6,
                "restart_s": 1e9,
                "checkpoint_stall_s": 1e9,
            },
        }
    )
    rows = assess(design).as_dict()["measure_first"]
    assert all(0 <= row["narrows"] <= 1 for row in rows)


@pytest.mark.parametrize("chip, name", [("h100-sxm", "nodes"), ("gb300", "scale-up domains")])
def test_what_tensor_parallelism_crosses_is_named_as_it_is(chip, name):
    """A tray of GB300 NVL72 is a node of four; NVLink joins 72."""
    text = (
        f"model: gpt-3-175b\ncluster: {{accelerator: {chip}, devices: 1152}}\njob: {{tokens: 1e12}}"
    )
    whats = [row["what"] for row in avoid(assess(Design.from_text(text)))]
    crossed = [what for what in whats if what.startswith("tensor parallelism across")]
    assert len(crossed) == 1 and f"across {name} (tp above" in crossed[0]
