"""What follows a failure, joined for one design: published ladders and stores, and arithmetic that
must close."""

import json
from pathlib import Path

import pytest
import scantling as sc
from scantling.advise.recovery import finishing_day, recovery

GALLERY = Path(__file__).parents[2] / "gallery" / "designs"


@pytest.fixture(scope="module")
def large():
    return sc.assess(sc.Design.read(GALLERY / "case-6-100k-gpus.yaml"))


def test_ladder_starts_below_one_half_and_each_rung_adds_its_gain(large):
    rungs = recovery(large)["ladder"]
    assert (
        rungs[0]["goodput"] < 0.5 < rungs[-1]["goodput"]
    )  # Meta printed 44 % before and 80 % after (arXiv 2602.00277)
    for before, after in zip(rungs, rungs[1:]):
        assert after["goodput"] - before["goodput"] == pytest.approx(after["gain"], abs=1e-9)


def test_copies_near_by_raise_goodput_and_only_stores_that_keep_up_carry(large):
    seen = 0
    assert recovery(large)["tiers"]["gain"] > 0
    for store in recovery(large)["stores"]:
        if store["carries"]:
            seen += 1
            assert (
                store["durable_s"]
                <= large.checkpoint_interval_s + large.endurance.checkpoint_stall_s + 1e-6
            )
    assert seen


def test_corpus_of_a_large_vocabulary_takes_four_bytes_a_token():
    a = sc.assess(sc.Design.read(GALLERY / "llama-3.1-405b.yaml"))
    corpus = recovery(a)["corpus"]
    assert corpus["bytes"] == pytest.approx(
        4 * 15.6e12
    )  # vocabulary 128,256 needs more than 16 bits
    assert corpus["read_bytes_per_s"] == pytest.approx(4 * 2048 * 8192 / a.step_s)


def test_simulated_finish_surrounds_the_closed_form():
    a = sc.assess(sc.Design.read(GALLERY / "case-1-175b-moe-1024-a100.yaml"))
    day = finishing_day(a)
    assert day["days_p10"] <= day["days_p50"] <= day["days_p90"]
    assert day["days_p50"] == pytest.approx(a.days, rel=0.02)


def test_plain_json_and_nothing_where_impossible(large):
    json.dumps(recovery(large), allow_nan=False)
    assert recovery(sc.assess(sc.Design.read(GALLERY / "case-2-1t-dense-8-v100.yaml"))) == {}
