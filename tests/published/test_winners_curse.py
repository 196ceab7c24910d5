"""Over the gallery's designs the search never promises much more than anybody has published for the device, precision and kind of model."""
from __future__ import annotations

from pathlib import Path

import pytest
from scantling import Design, assess, published
from scantling.figures import UNTRIED
from scantling.limits import record_of, untried

DESIGNS = sorted((Path(__file__).parents[2] / "gallery/designs").glob("*.yaml"))


@pytest.mark.parametrize("path", DESIGNS, ids=lambda p: p.stem)
def test_the_winner_is_no_more_than_a_tenth_above_the_best_published(path):
    design = Design.read(path)
    given = design.plan.given()
    a = assess(design.change({f"plan.{k}": None for k in given}) if given else design)
    if a.verdict == "impossible":
        pytest.skip("refused")
    record = record_of(a.chosen)
    if record is None:
        pytest.skip("nobody has published such a run")
    assert a.mfu <= 1.10 * record.mfu
    if a.mfu > record.mfu:
        assert any(line.startswith("untried") for line in a.limits)


def test_a_promise_above_all_published_runs_stands_is_said_and_widens_the_band(monkeypatch):
    text = "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {seq_len: 8192, global_batch: 256}\n"
    plain = assess(Design.from_text(text))
    monkeypatch.setitem(published.BESTS, ("hopper", "16 bit", False), published.Best(0.3, "a run", "a source"))
    a = assess(Design.from_text(text))
    assert a.mfu == plain.mfu and untried(a.chosen)
    assert any("untried" in line and "30.0%" in line and "a source" in line for line in a.limits)
    assert a.step_s_high / a.step_s == pytest.approx((plain.step_s_high / plain.step_s) ** UNTRIED)


def test_tensor_parallelism_across_nodes_wins_only_where_nothing_else_fits():
    a = assess(Design.from_text("model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\njob: {seq_len: 131072, global_batch: 128}"))
    assert a.plan["tp"] <= 8
    pinned = assess(Design.from_text("model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\njob: {seq_len: 8192, global_batch: 2048}\nplan: {tp: 16}"))
    assert pinned.plan["tp"] == 16 and any("crosses the scale-up domain" in line for line in pinned.limits)
