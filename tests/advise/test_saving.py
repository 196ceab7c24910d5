"""A design that may be run and costs more than it need says so first."""

from __future__ import annotations

import pytest
from scantling.advise.design_json import as_dict
from scantling.advise.extremes import fewest_devices
from scantling.advise.fixes import cheaper
from scantling.advise.frontier import front
from scantling.advise.saving import FEWER, WORTH, enough_for_arithmetic, saving
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling.verdict.texts import verdict_sentence


def design(**changes):
    data = {
        "model": "llama-3.1-405b",
        "cluster": {
            "accelerator": "h100-sxm",
            "devices": 14_336,
            "scale_out": "rocev2-400",
            "pod_devices": 3072,
        },
        "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048, "precision": "bf16"},
        "reliability": {"preset": "llama3"},
    }
    return Design.from_data(data).change(changes)


@pytest.mark.parametrize("devices", [14_336, 12_288])
def test_a_batch_that_the_devices_cannot_share_leads_the_verdict(devices):
    """One stop left of 16,384 on the slider a third of the dollars is lost: 2,048 sequences do not
    divide over 14,336 devices. Another batch or fewer devices mend it."""
    assessment = assess(design(**{"cluster.devices": devices}))
    assert assessment.verdict == "feasible"
    row = saving(assessment)
    assert row["share"] > WORTH
    assert "sequences" in row["change"] or "devices" in row["change"]
    after = assess(design(**{"cluster.devices": devices}).change(row["set"]))
    assert after.met
    assert after.cost_usd == pytest.approx(row["cost_usd"])
    assert after.days == pytest.approx(row["days"])
    saved = assessment.likely.cost_usd - after.likely.cost_usd
    assert row["saved_usd"] == pytest.approx(saved, rel=0.02)
    sentence = verdict_sentence(as_dict(assessment))
    assert "dearer than it need be" in sentence.name
    assert row["change"] in sentence.reason
    assert sentence.tone == "warn"


def test_a_whole_batch_has_nothing_to_save():
    result = as_dict(assess(design(**{"cluster.devices": 16_384})))
    assert result["saving"] is None
    assert "dearer" not in verdict_sentence(result).text


@pytest.mark.parametrize("deadline_days", [None, 120.0])
def test_counts_that_arithmetic_rules_out_end_too_late(deadline_days):
    now = assess(design(**{"cluster.devices": 16_384, "constraints.deadline_days": deadline_days}))
    counts = [round(now.resolved.cluster.devices * share) for share in FEWER]
    too_few = [n for n in counts if not enough_for_arithmetic(now, n)]
    assert 0 < len(too_few) < len(counts)
    assert too_few == counts[-len(too_few) :]
    after = assess(now.design.change({"cluster.devices": too_few[0]}))
    assert after.likely.days > (deadline_days or now.likely.days)


def test_idle_devices_are_named():
    """70B on 10,000 H100: 1,680 stand idle for the batch."""
    d = Design.from_data(
        {
            "model": {"size": 70e9},
            "cluster": {"accelerator": "h100-sxm", "devices": 10_000},
            "job": {"tokens": 15e12, "global_batch": 2048, "seq_len": 8192},
        }
    )
    assessment = assess(d)
    row = saving(assessment)
    assert row is not None and row["cost_usd"] < 0.9 * assessment.cost_usd


@pytest.mark.parametrize(
    ("model", "devices", "batch"),
    [
        ("llama-3.1-70b", 1500, {"global_batch": 512}),  # 1,024 at work
        ("llama-3.1-405b", 12_000, {"global_batch": 1024}),  # 8,192
        ({"size": 2e12, "moe": True}, 100_000, {"global_batch": 8000}),  # 64,000
    ],
)
def test_devices_that_stand_idle_may_go_back(model, devices, batch):
    """What a plan leaves idle is paid for and does no work: without it, but for a few that stand by
    for failures, the run takes as long and is as much cheaper."""
    job = {"tokens": 2e12, "seq_len": 8192, **batch}
    cluster = {"accelerator": "h100-sxm", "devices": devices}
    d = Design.from_data({"model": model, "cluster": cluster, "job": job})
    now = assess(d)
    idle = 1 - now.devices_used / devices
    row = saving(now)
    assert row["share"] >= idle - 0.03 > WORTH
    after = assess(d.change(row["set"]))
    assert after.likely.days <= 1.005 * now.likely.days
    if row["set"].keys() & {"job.global_batch"}:
        assert after.chosen.phase.global_batch == now.chosen.phase.global_batch


def test_cheaper_reaches_the_fewest_devices():
    """30B, 4T tokens, 60 days: the fewest devices that keep the deadline were cheaper than all that
    `cheaper` offered."""
    d = Design.from_data(
        {
            "model": {"size": 30e9},
            "cluster": {"accelerator": "h100-sxm", "devices": 512},
            "job": {"tokens": 4e12},
            "constraints": {"deadline_days": 60},
        }
    )
    fewest = fewest_devices(d)
    alone = [row for row in cheaper(assess(d)) if row["set"].keys() == {"cluster.devices"}]
    assert min(row["cost_usd"] for row in alone) <= fewest["cost_usd"] * 1.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "devices", "size", "tokens", "days"),
    [
        ("h100-sxm", 512, 30e9, 4e12, 60),
        ("a100-80-sxm", 512, 13e9, 1e12, 30),
        ("mi300x", 1024, 34e9, 6e12, 75),
    ],
)
def test_cheaper_front_and_fewest_devices_agree(chip, devices, size, tokens, days):
    """The cheapest number of the same devices within a deadline is one, in likely dollars."""
    d = Design.from_data(
        {
            "model": {"size": size},
            "cluster": {"accelerator": chip, "devices": devices},
            "job": {"tokens": tokens},
            "constraints": {"deadline_days": days},
        }
    )
    alone = [row for row in cheaper(assess(d)) if row["set"].keys() == {"cluster.devices"}]
    least = alone[0]
    within = [row for row in front(d) if row["likely"]["days"] <= days]
    best = min(within, key=lambda row: row["likely"]["cost_usd"])
    assert best["devices"] == least["set"]["cluster.devices"]
    assert best["likely"]["cost_usd"] == pytest.approx(least["likely"]["cost_usd"], rel=0.02)
    fewest = fewest_devices(d)
    assert least["likely"]["cost_usd"] <= fewest["likely"]["cost_usd"] * 1.001
    assert fewest["devices"] in [row["set"]["cluster.devices"] for row in alone]
