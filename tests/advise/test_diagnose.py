"""Diagnosis: a defect put in is found again; a sound run is left in peace; published mishaps."""

from __future__ import annotations

import math

import pytest
from scantling import Design, assess
from scantling.advise.diagnose import FASTER, SLOWER, diagnose, losses
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans.words import pins_of

DENSE = (
    "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 256}\njob: {seq_len: "
    "8192, global_batch: 512}\nplan: {tp: 4, pp: 4, cp: 1, sharding: zero1, recompute: "
    "none, offload: none}\n"
)
MOE = (
    "model: mixtral-8x22b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: {seq_len: "
    "4096, global_batch: 256}\nplan: {tp: 2, pp: 8, ep: 8, etp: 1, sharding: zero1}\n"
)


def measured_with(text, name, size):
    """A design whose measurement is the model's own answer with one defect in it."""
    a = assess(Design.from_text(text))
    cause = next(c for c in SLOWER if c.name.startswith(name))
    broken = cause.change(a.chosen.case, size)
    said = {
        "step_s": float(step_time(broken).total),
        "memory_gb": float(memory(broken).total) / 1e9,
    }
    return a, Design.from_text(text).change(
        {f"plan.{k}": v for k, v in pins_of(a.plan).items()}
    ).change(measured=said)


@pytest.mark.parametrize(
    "text, name, size, among",
    [
        (DENSE, "devices run below", 1.25, 5),
        (DENSE, "layers are recomputed", 1, 1),
        (DENSE, "tensor-parallel ranks", 1, 3),
        (MOE, "tokens crowd", 1.6, 3),
        (DENSE, "attention materialises", 1, 2),
    ],
)
def test_a_defect_put_in_is_among_the_first(text, name, size, among):
    _, design = measured_with(text, name, size)
    d = diagnose(design)
    assert d.measured_s > d.predicted_s
    assert any(r["cause"].startswith(name) for r in d.causes[:among]), [
        r["cause"] for r in d.causes
    ]
    found = next(r for r in d.causes if r["cause"].startswith(name))
    assert found["explains"] == pytest.approx(1, abs=0.02) and found["step_s"] == pytest.approx(
        d.measured_s, rel=0.02
    )


def test_memory_tells_recomputation_from_slow_clocks():
    """The same step time; the peak decides: recomputing layers leaves most of the activations'
    memory free."""
    _, design = measured_with(DENSE, "layers are recomputed", 1)
    with_peak = diagnose(design)
    without = diagnose(design.change({"measured.memory_gb": None}))
    first = lambda d: next(
        r["weight"] for r in d.causes if r["cause"].startswith("layers are recomputed")
    )  # noqa: E731
    assert with_peak.causes[0]["cause"].startswith("layers are recomputed") and first(
        with_peak
    ) > first(without)


def test_a_sound_run_is_inside_the_band():
    a = assess(Design.from_text(DENSE))
    d = diagnose(
        Design.from_text(DENSE)
        .change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
        .change(measured={"step_s": a.step_s * 1.01})
    )
    assert d.inside and "inside the band" in d.lines[0] and d.chance > 0.3


def test_a_run_faster_than_predicted_gets_other_causes():
    a = assess(Design.from_text(DENSE))
    d = diagnose(
        Design.from_text(DENSE)
        .change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
        .change(measured={"step_s": a.step_s * 0.9})
    )
    assert {r["cause"] for r in d.causes} <= {c.name for c in FASTER}
    assert "faster" in d.lines[0]


def test_mfu_and_tokens_stand_for_the_step():
    a = assess(Design.from_text(DENSE))
    by = [
        diagnose(Design.from_text(DENSE).change(measured=m)).measured_s
        for m in (
            {"mfu": a.mfu / 1.3},
            {"tokens_per_s_per_device": a.tokens_per_s_per_device / 1.3},
        )
    ]
    assert by == [pytest.approx(1.3 * a.step_s, rel=1e-6)] * 2


def test_weights_are_shares_and_every_cause_says_what_to_measure():
    _, design = measured_with(MOE, "tokens crowd", 1.6)
    d = diagnose(design)
    assert math.isclose(sum(r["weight"] for r in d.causes), 1) and all(
        len(r["measure"]) > 10 for r in d.causes
    )
    assert all(a["weight"] >= b["weight"] for a, b in zip(d.causes, d.causes[1:]))


def test_nothing_measured_is_said():
    with pytest.raises(ValueError, match="measured"):
        diagnose(Design.from_text(DENSE))


def test_no_cause_speeds_a_slow_run_up():
    seen = 0
    a = assess(Design.from_text(MOE))
    base = float(step_time(a.chosen.case).total)
    for cause in SLOWER:
        if not cause.name.startswith("the schedule"):
            seen += 1
            assert float(
                step_time(cause.change(a.chosen.case, cause.worst or 1.0)).total
            ) >= base * (1 - 1e-9), cause.name
    assert seen


def test_losses_add_up_to_what_is_not_matrix_products():
    a = assess(Design.from_text(DENSE))
    rows = losses(a)
    assert sum(r["step_s"] for r in rows) == pytest.approx(a.step_s - a.step_breakdown_s["gemm"])
    assert all(r["gain"] > a.mfu for r in rows)


def test_a_run_that_no_single_cause_explains():
    """Three times as slow: the first causes together come near, and a plan that was not given is
    said to be missing."""
    a = assess(Design.from_text(DENSE))
    ran = Design.from_text(DENSE).change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
    d = diagnose(ran.change(measured={"step_s": 3 * a.step_s}))
    assert (
        max(c["explains"] for c in d.causes) < 0.8
        and "none of these alone explains it" in d.lines[-1]
        and "<0.1 %" in d.lines[0]
    )
    open_plan = diagnose(
        Design.from_text(DENSE.partition("plan:")[0]).change(measured={"step_s": 3 * a.step_s})
    )
    assert "pin what ran" in open_plan.lines[1]
