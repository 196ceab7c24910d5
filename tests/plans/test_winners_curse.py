"""Over the gallery's designs the search never promises much more than anybody has published for the
device, precision and kind of model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import best_published as worked_out
import pytest
from scantling import Design, assess, catalogue
from scantling.catalogue import published
from scantling.verdict.limits import limits
from scantling.verdict.numbers import UNTRIED
from scantling.verdict.unpublished import record_of, untried

# record: how far above it a promise goes where the only one of the die is 8 devices in a library's
# example of a model of 8B
SMALL = {"mi300x 16 bit 0": 1.70}
DESIGNS = sorted((Path(__file__).parents[2] / "gallery/designs").glob("*.yaml"))


@pytest.mark.parametrize("path", DESIGNS, ids=lambda p: p.stem)
def test_the_winner_is_no_more_than_a_tenth_above_the_best_published(path):
    design = Design.read(path)
    given = design.plan.stated()
    a = assess(design.change({f"plan.{k}": None for k in given}) if given else design)
    if a.verdict == "impossible":
        pytest.skip("refused")
    record = record_of(a.chosen)
    if record is None:
        pytest.skip("nobody has published such a run")
    assert a.mfu <= SMALL.get(record.id, 1.10) * record.mfu
    if a.mfu > record.mfu:
        assert any(line.startswith("untried") for line in limits(a))


def test_a_promise_above_all_published_runs_stands_is_said_and_widens_the_band(monkeypatch):
    text = (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {seq_len: "
        "8192, global_batch: 256}\n"
    )
    plain = assess(Design.from_text(text))
    monkeypatch.setitem(
        published.records(),
        ("h100-sxm", "16 bit", False),
        replace(
            published.records()["h100-sxm", "16 bit", False],
            mfu=0.3,
            source="a source",
            devices=1024,
        ),
    )
    a = assess(Design.from_text(text))
    assert a.mfu == plain.mfu and untried(a.chosen)
    assert any("untried" in line and "30.0 %" in line and "a source" in line for line in limits(a))
    assert a.step_s_high / a.step_s == pytest.approx((plain.step_s_high / plain.step_s) ** UNTRIED)


def test_tensor_parallelism_across_nodes_wins_only_where_nothing_else_fits():
    a = assess(
        Design.from_text(
            "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: "
            "16384}\njob: {seq_len: 131072, global_batch: 128}"
        )
    )
    assert a.plan["tp"] <= 8
    pinned = assess(
        Design.from_text(
            "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: "
            "16384}\njob: {seq_len: 8192, global_batch: 2048}\nplan: {tp: 16}"
        )
    )
    assert pinned.plan["tp"] == 16 and any(
        "crosses the scale-up domain" in line for line in limits(pinned)
    )


def test_a_device_is_held_to_its_own_record_where_a_large_run_made_it():
    """DeepSeek-V3 and ERNIE 4.5 on H800; one 8B model on 8 H200 says nothing of what an H200 can
    do: its die's record stands in."""
    own = published.best_published("h800-sxm", "fp8-block", True, 4096)
    assert own.chip == "h800-sxm" and own.devices >= 1000 and own.mfu < 0.25
    die = published.best_published("h200-sxm", "bf16", False, 8192)
    assert (
        die.chip != "h200-sxm" and catalogue.accelerator(die.chip).die == "hopper" and die.mfu > 0.5
    )
    assert published.best_published("h100-sxm", "bf16", False, 131072) is None


def test_further_than_anybody_went_is_said_and_widens_the_band():
    """131,072 devices: four times the largest run of which a rate was printed."""
    text = (
        "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: %d}\njob: "
        "{tokens: 1.0e13, seq_len: 8192, global_batch: 8192}\nplan: {tp: 8, pp: 16, cp: 1, "
        "dp: %d, micro_batch: 1}\n"
    )
    large, tried = (assess(Design.from_text(text % (n, n // 128))) for n in (131_072, 16_384))
    assert any(line.startswith("untried: 131,072 devices") for line in limits(large)) and untried(
        large.chosen
    )
    assert not any("devices, beyond" in line for line in limits(tried))
    plain = (tried.step_s_high / tried.step_s) ** UNTRIED
    assert large.step_s_high / large.step_s == pytest.approx(plain, rel=0.1)
    zero = assess(
        Design.from_text((text % (2048, 16)).replace("plan: {", "plan: {schedule: zb-1p, "))
    )
    assert any("schedule zb-1p" in line and "at most" in line for line in limits(zero))


@pytest.mark.slow
def test_the_records_are_those_of_the_published_runs(tmp_path, monkeypatch):
    """The tables, worked out again from the runs."""
    made = ("published_best.csv", "published_reach.csv", "published_plans.csv")
    for source in catalogue.HERE.iterdir():  # the runs, and the configs that they name
        if source.name not in made:
            (tmp_path / source.name).symlink_to(source)
    monkeypatch.setattr(worked_out, "HERE", tmp_path)
    worked_out.main()
    for name in made:
        assert (tmp_path / name).read_text() == (catalogue.HERE / name).read_text()
