"""Lines that few designs reach: each by a design that does, with the figure that stands in it."""

from __future__ import annotations

import pytest
from scantling import Design, assess
from scantling.advise.diagnose import FULL_SHARE, diagnose

RUN = (
    "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 256}\njob: {seq_len: "
    "8192, global_batch: 512}\nplan: {tp: 4, pp: 4, cp: 1, sharding: zero1, recompute: "
    "none, offload: none}\n"
)


@pytest.fixture(scope="module")
def sound():
    return assess(Design.from_text(RUN))


def measured(**figures):
    return diagnose(Design.from_text(RUN).change(measured=figures)).lines


def test_a_step_inside_the_band_may_be_nothing(sound):
    inside = measured(step_s=(sound.step_s + sound.step_s_high) / 2)
    assert "inside the band" in inside[0] and "outside the band" not in inside[0]
    assert "outside the band" in measured(step_s=1.01 * sound.step_s_high)[0]


def test_a_full_memory_is_a_cause_of_its_own(sound):
    capacity_gb = sound.chosen.memory.capacity / 1e9
    retries = "allocator retries"
    full, roomy = (
        measured(step_s=1.2 * sound.step_s, memory_gb=share * capacity_gb)
        for share in (1.02 * FULL_SHARE, 0.98 * FULL_SHARE)
    )
    assert any(retries in line for line in full)
    assert not any(retries in line for line in roomy)


def test_causes_that_explain_a_step_together_are_named(sound):
    """A fifth faster than predicted: no cause alone makes a run so fast; at a hundred times the
    step no cause at all is left."""
    *_, last = measured(step_s=0.8 * sound.step_s)
    assert last.startswith("none of these alone explains it; the first ")
    together_s = float(last.partition("would make ")[2].partition(" s")[0])
    assert 0.8 * sound.step_s * 0.98 <= together_s < sound.step_s
    assert measured(step_s=100 * sound.step_s)[-1].startswith("no single cause")


def test_a_design_that_varies_a_measured_one_says_so(sound):
    origin = Design.from_text(RUN).change(measured={"step_s": 1.25 * sound.step_s})
    varied = assess(origin.change({"job.global_batch": 1024}))
    lines = varied.as_dict(advice=False)["limits"]
    assert any(line.startswith("calibrated: the step is 1.25 times") for line in lines)
    assert varied.step_s == pytest.approx(1.25 * float(varied.chosen.step.total))


def test_power_that_nobody_has_published_leaves_its_limit_unchecked():
    design = Design.from_text("8B on 64 TPU v5p, 1T tokens").change(
        {"constraints.max_power_mw": 1.0}
    )
    a = assess(design)
    (reason,) = (r for r in a.reasons if r.field == "max_power_mw")
    assert a.verdict == reason.verdict == "not-checked"
    assert "the power of" in reason.text and "nobody has published" in reason.text
