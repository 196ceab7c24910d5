"""Verdicts: codes, the chance within the band, what a pinned plan that does not fit is told, and
that nothing is ever NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scantling import Design, DesignError, assess, fixes
from scantling.verdict.constraints import chance_below
from scantling.verdict.limits import limits

SMALL = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)


def numbers(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from numbers(v, f"{path}.{k}")
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from numbers(v, f"{path}[{i}]")
    elif isinstance(value, float):
        yield path, value


def test_a_feasible_design():
    a = assess(Design.from_text(SMALL))
    assert a.verdict == "feasible" and a.error is None and not fixes(a) and not a.missed
    d = a.as_dict()
    assert math.isclose(sum(d["step_breakdown_s"].values()), d["step_s"], rel_tol=1e-9)
    assert math.isclose(
        sum(
            d["memory_bytes"][k]
            for k in ("weights", "gradients", "optimizer", "activations", "other")
        ),
        d["memory_bytes"]["total"],
        rel_tol=1e-9,
    )
    assert d["candidates"][0]["step_s"] == pytest.approx(a.step_s)
    assert d["legal"] == d["evaluated"] + sum(d["rejected"].values())


def test_a_deadline_missed_says_by_how_much_and_how_likely():
    a = assess(Design.from_text(SMALL + "constraints: {deadline_days: 10}"))
    assert a.verdict == "constraint-missed"
    (miss,) = a.missed
    assert miss.field == "deadline_days" and miss.limit == 10 and miss.value == a.days > 10
    assert 0 <= miss.chance < 0.5 and f"{miss.value / 10:.2f}" in miss.text


@pytest.mark.parametrize("limit, want", [(80, 0.1), (100, 0.5), (130, 0.9)])
def test_chance_at_the_bands_own_edges(limit, want):
    """80 % of the outcomes lie between the ends, half below the estimate."""
    assert chance_below(limit, 80, 100, 130) == pytest.approx(want, abs=1e-9)


def test_a_pinned_plan_that_does_not_fit_while_another_does():
    a = assess(
        Design.from_text(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: "
            "{seq_len: 8192, global_batch: 128}\n"
            "plan: {tp: 1, pp: 1, sharding: none, recompute: none}"
        )
    )
    assert a.verdict == "constraint-missed"
    assert limits(a)[0].startswith("memory:")
    assert (
        a.plan["tp"] == 1
        and a.plan["sharding"] == "none"
        and a.memory_bytes["total"] > a.memory_bytes["capacity"]
    )
    assert fixes(a)
    # 70.6B parameters at 16 bytes: far above one card
    assert (
        a.memory_bytes["weights"] + a.memory_bytes["gradients"] + a.memory_bytes["optimizer"]
        > 70e9 * 16
    )


def test_offload_comes_before_the_refusal():
    """A 13B model trains on one 80 GB card with its states in host memory (ZeRO-Offload, Ren et al.
    2021, table 2)."""
    a = assess(
        Design.from_text(
            "model: llama-2-13b\ncluster: {accelerator: a100-80-sxm, devices: 1, "
            "host_memory_gb: 2048}\njob: {seq_len: 2048, global_batch: 16}"
        )
    )
    assert a.verdict == "feasible" and a.plan["offload"] != "none"


@pytest.mark.parametrize(
    "pins", ["{tp: 3}", "{dp: 5}", "{pp: 33}", "{tp: 8, pp: 4, cp: 4}", "{micro_batch: 7}"]
)
def test_pins_that_break_a_law_stop_with_one_line(pins):
    with pytest.raises(DesignError) as caught:
        assess(Design.from_text(SMALL + f"plan: {pins}"))
    assert caught.value.field.startswith("plan.") and "\n" not in str(caught.value)


def test_measured_values_pin_the_computed_ones():
    a, b = (
        assess(Design.from_text(SMALL)),
        assess(Design.from_text(SMALL + "measured: {step_s: 9.0}")),
    )
    assert b.step_s == b.step_s_low == b.step_s_high == 9.0
    assert b.mfu == pytest.approx(a.mfu * a.step_s / 9.0)
    assert b.days == pytest.approx(a.days * 9.0 / a.step_s, rel=0.02)
    assert b.as_dict(advice=False)["measured"] == {"step_s": 9.0}


def test_phases_add_up():
    text = """
model: llama-3.1-8b
cluster: {accelerator: h100-sxm, devices: 64}
job: {phases: [{tokens: 1.0e12, seq_len: 8192, global_batch: 256}, {tokens: 1.0e11, seq_len: 65536, global_batch: 32}]}
"""  # noqa: E501
    both = assess(Design.from_text(text))
    parts = [
        assess(
            Design.from_text(
                f"model: llama-3.1-8b\ncluster: {{accelerator: h100-sxm, devices: "
                f"64}}\njob: {{tokens: {t}, seq_len: {s}, global_batch: {b}}}"
            )
        )
        for t, s, b in ((1.0e12, 8192, 256), (1.0e11, 65536, 32))
    ]
    assert both.days == pytest.approx(sum(p.days for p in parts), rel=0.02)
    assert both.memory_bytes["total"] == pytest.approx(
        max(p.memory_bytes["total"] for p in parts), rel=1e-6
    )


MODELS = [
    "llama-3.1-8b",
    "llama-3.1-70b",
    "mixtral-8x7b",
    "gpt-3-175b",
    "deepseek-v2-lite",
    "llama-2-13b",
    "qwen2.5-0.5b",
]
CHIPS = ["a100-80-sxm", "h100-sxm", "mi300x", "v100-32-sxm2", "tpu-v5p", "gb200-nvl72", "h800-sxm"]


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    chip=st.sampled_from(CHIPS),
    devices=st.integers(1, 5000),
    batch=st.integers(1, 3000),
    seq=st.sampled_from([512, 2048, 8192, 32768]),
    deadline=st.one_of(st.none(), st.floats(1, 300)),
    tp=st.one_of(st.none(), st.sampled_from([1, 2, 4])),
)
def test_any_design_gets_a_sound_answer(model, chip, devices, batch, seq, deadline, tp):
    text = (
        f"model: {model}\ncluster: {{accelerator: {chip}, devices: {devices}}}\njob: "
        f"{{tokens: 3.0e11, seq_len: {seq}, global_batch: {batch}}}\n"
    )
    text += f"constraints: {{deadline_days: {deadline}}}\n" if deadline else ""
    text += f"plan: {{tp: {tp}}}\n" if tp and tp <= devices else ""
    try:
        a = assess(Design.from_text(text))
    except DesignError as error:
        assert "plan" in error.field
        return
    assert a.verdict in ("feasible", "constraint-missed", "impossible")
    if a.verdict == "impossible":
        assert limits(a)
        return
    d = a.as_dict(advice=False)
    for path, x in numbers(d):
        assert math.isfinite(x), path
        assert x >= 0 or path.split(".")[1].split("[")[0] in ("avoid", "why"), path
    assert math.isclose(sum(d["step_breakdown_s"].values()), d["step_s"], rel_tol=1e-6)
    assert 0 < d["mfu_low"] <= d["mfu"] <= d["mfu_high"] < 1
    assert 0 < d["goodput"] <= 1
    p = d["plan"]
    assert p["tp"] * p["cp"] * p["pp"] * p["dp"] == d["devices_used"] <= devices
    assert batch % (p["dp"] * p["micro_batch"]) == 0
    if a.verdict == "feasible":
        assert d["memory_bytes"]["total"] <= d["memory_bytes"]["capacity"]


@settings(max_examples=12, deadline=None)
@given(
    model=st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "llama-3.1-70b"]),
    nodes=st.integers(2, 40),
    better=st.floats(1.05, 3),
    days=st.floats(5, 200),
    what=st.sampled_from(
        [
            "cluster.accelerator.hbm_gb",
            "cluster.accelerator.hbm_gbytes_per_s",
            "cluster.accelerator.link_gbytes_per_s",
            "cluster.scale_out_gbytes_per_s_per_device",
        ]
    ),
)
def test_more_bandwidth_or_memory_never_turns_feasible_into_infeasible(
    model, nodes, better, days, what
):
    design = Design.from_text(
        f"model: {model}\ncluster: {{accelerator: h100-sxm, devices: {8 * nodes}}}\njob: "
        f"{{tokens: 2.0e11, seq_len: 4096, global_batch: 256}}\n"
        f"constraints: {{deadline_days: {days}}}\n"
    )
    a = assess(design)
    if a.verdict != "feasible":
        return
    cluster = a.resolved.cluster
    now = {
        "cluster.accelerator.hbm_gb": 80.0,
        "cluster.accelerator.hbm_gbytes_per_s": cluster.accelerator.hbm_bytes_per_s / 1e9,
        "cluster.accelerator.link_gbytes_per_s": cluster.scale_up_bytes_per_s / 1e9,
        "cluster.scale_out_gbytes_per_s_per_device": cluster.scale_out_bytes_per_s / 1e9,
    }[what]
    b = assess(design.change({what: now * better}))
    assert b.verdict == "feasible" and b.days <= a.days * (1 + 1e-6)
