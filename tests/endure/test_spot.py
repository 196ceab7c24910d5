"""Runs on devices that are taken back: goodput and dollars, and what a notice is worth."""

from __future__ import annotations

import pytest
from scantling import Design, DesignError, assess
from scantling.base.show import usd
from scantling.endure.life import lived
from scantling.endure.simulate import of_life, simulate
from scantling.endure.spot import preempted
from scantling.verdict.limits import limits
from scantling.verdict.spot import spot

RUN = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: 1e12}\n"
    "prices: {usd_per_device_hour: 2.5, spot: {usd_per_device_hour: 1.1, preemptions_per_day: %s, "
    "notice_s: %s, replacement_s: 300}}"
)


def row_of(per_day, notice_s):
    row = spot(assess(Design.from_text(RUN % (per_day, notice_s))))
    assert row is not None
    return row


def test_no_preemption_is_the_run_at_another_price():
    a = assess(Design.from_text(RUN % (0, 30)))
    row = spot(a)
    assert row["goodput"] == pytest.approx(a.goodput) and row["days"] == pytest.approx(a.days)
    assert row["cost_usd"] / a.cost_usd == pytest.approx(1.1 / 2.5)
    assert row["saved_usd"] == pytest.approx(a.cost_usd - row["cost_usd"])


def test_more_preemptions_never_gain_and_a_longer_notice_never_loses():
    goods = [row_of(n, 5)["goodput"] for n in (0, 1, 4, 16, 64)]
    assert goods == sorted(goods, reverse=True) and goods[-1] < goods[0]
    short, long = row_of(16, 5), row_of(16, 120)
    assert not short["saved_in_notice"] and long["saved_in_notice"]
    assert long["goodput"] > short["goodput"]


def test_a_preemption_that_is_saved_costs_the_save_the_wait_and_the_restart():
    """4 a day that each take so many seconds of running: 1 / (1 + 4 x seconds / day)."""
    a = assess(Design.from_text(RUN % (4, 120)))
    life, row = a.endurance.life, spot(a)
    each_s = row["save_s"] + 300 + float(life.mean_restart_s)
    before = 1 + sum(float(p.per_s * p.seconds) for p in life.all_pauses)
    expected = a.goodput * before / (before + 4 * each_s / 86_400)
    assert row["goodput"] == pytest.approx(expected, rel=1e-3)


def test_the_closed_form_is_borne_out_by_drawn_runs():
    """16 a day without time for a save, 1,000 h of work drawn 200 times."""
    life = assess(Design.from_text(RUN % (16, 5))).endurance.life
    run = preempted(life, 16, 5.0, 300.0, 10.0)
    drawn = simulate(of_life(run.life, 1000 * 3600.0), 200, 0).as_dict()
    assert run.goodput == pytest.approx(float(lived(run.life)[0]))
    assert float(drawn["goodput"]) == pytest.approx(run.goodput, rel=0.01)


def test_the_line_says_it_and_what_was_assumed():
    a = assess(Design.from_text((RUN % (4, 120)).replace(", replacement_s: 300", "")))
    (line,) = (x for x in limits(a) if x.startswith("spot:"))
    assert "prices.spot.replacement_s" in line and "$1.10 a device-hour" in line
    assert not any(
        x.startswith("spot:") for x in limits(assess(Design.from_text(RUN.split("prices")[0])))
    )
    with pytest.raises(DesignError, match="preemptions_per_day"):
        Design.from_text(RUN.split("prices")[0] + "prices: {spot: {usd_per_device_hour: 1}}")


def test_the_dollars_of_the_line_are_of_one_kind():
    """Beside the likely dollars of the headline stand those of the run on spot devices, which are
    undisturbed: the line says so, and what they stand in place of."""
    a = assess(Design.from_text(RUN % (4, 120)))
    row = spot(a)
    assert row["cost_usd"] + row["saved_usd"] == pytest.approx(a.cost_usd)
    (line,) = (x for x in limits(a) if x.startswith("spot:"))
    assert f"{usd(row['cost_usd'])} at " in line
    assert f"undisturbed, in place of {usd(a.cost_usd)};" in line
