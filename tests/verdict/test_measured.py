"""A measured value calibrates: variations of a measured design scale from it."""

from __future__ import annotations

import pickle

import pytest
from scantling import Design, assess
from scantling.advise import extremes, sweeps
from scantling.advise.fixes import fixes
from scantling.advise.sensitivity import tornado

D = Design.from_text(
    "model: llama-3.1-70b\n"
    "cluster: {accelerator: h100-sxm, devices: 1024}\n"
    "job: {tokens: 2.0e12, seq_len: 8192, global_batch: 1024}\n"
    "measured: {step_s: 10.5}\n"
)


def test_more_devices_are_not_as_slow_as_fewer():
    """The review: "512 / 1,024 / 2,048 devices = 72.9 / 73.1 / 73.2 days"."""
    cells = sweeps.sweep(D, {"cluster.devices": [512, 1024, 2048]})
    days = [c.figures["days"] for c in cells]
    free = D.change({"measured": None})
    for cell, n in zip(cells, (512, 1024, 2048)):
        computed = assess(free.change({"cluster.devices": n}))
        ratio = 10.5 / assess(free).step_s
        assert cell.figures["step_s"] == pytest.approx(computed.step_s * ratio)
    assert days[0] > 1.8 * days[1] > 3.2 * days[2]
    assert cells[1].figures["step_s"] == 10.5


def test_no_answer_is_beyond_the_hardware():
    """ "`answer fewest-devices` MFU 152 %, longest-sequence 92.9 %"."""
    now = assess(D).mfu
    assert extremes.fewest_devices(D)["mfu"] < 1.2 * now
    assert extremes.longest_sequence(D)["mfu"] < 1.5 * now


@pytest.mark.slow
def test_a_fix_of_a_measured_design_holds():
    """ "batch 2,048 -> "feasible, 36.6 days, MFU 76.0 %""."""
    a = assess(D.change({"constraints.deadline_days": 20}))
    assert a.days == pytest.approx(assess(D).days)
    offered = fixes(a)
    assert offered
    for fix in offered:
        assert fix["mfu"] < 0.6 or "job.precision" in fix["set"] or "accelerator" in str(fix["set"])
        assert assess(a.design.change(fix["set"])).verdict == fix["verdict"]


def test_the_swing_of_devices_is_seen():
    """ "sensitivity swing of devices 0.3 %"."""
    rows = {r["what"]: r for r in tornado(assess(D), "days")}
    assert rows["Devices"]["swing"] > 0.05


def test_what_does_not_touch_the_step_keeps_the_measurement():
    assert assess(D.change({"constraints.deadline_days": 50})).step_s == 10.5
    assert assess(D.change({"job.tokens": 1e12})).step_s == 10.5
    away = D.change({"cluster.devices": 512})
    assert assess(away).step_s != 10.5
    assert assess(away.change({"cluster.devices": 1024})).step_s == 10.5
    assert assess(pickle.loads(pickle.dumps(away))).step_s == assess(away).step_s
    assert any(line.startswith("calibrated:") for line in _limits(assess(away)))


def test_memory_and_goodput_scale_too():
    d = D.change({"measured": {"step_s": 10.5, "memory_gb": 70.0, "goodput": 0.9}})
    computed = assess(D.change({"measured": None}))
    ratio = 70e9 / computed.memory_bytes["total"]
    half, plain = (
        assess(x.change({"cluster.devices": 512})) for x in (d, D.change({"measured": None}))
    )
    if half.plan == plain.plan:
        assert half.memory_bytes["total"] == pytest.approx(plain.memory_bytes["total"] * ratio)
    assert half.goodput < plain.goodput


def _limits(a):
    from scantling.verdict.limits import limits

    return limits(a)
