"""The date to promise: means add up, each risk is counted once, more spread promises later."""

import json

import pytest
from scantling import assess
from scantling.base.quantities.quantity import show
from scantling_site import part
from scantling_site.promise import DRAWS, promise
from scantling_site.risks.register import adds


def test_the_mean_is_the_run_and_what_each_part_adds(assessed):
    """Expectations add whatever hangs together: days = run + sum of the parts, dollars with the
    mean of the price beside them. Standard error of the mean of DRAWS draws."""
    for name in ("llama-3.1-405b", "case-5-deepseek-v3"):
        a = assessed(name)
        said = promise(a)
        parts = sum(row["days"] for row in said["by"])
        spread = (said["days_p90"] - said["days_p50"]) / 1.28
        assert said["days_mean"] == pytest.approx(a.days + parts, abs=4 * spread / DRAWS**0.5)
        assert a.days_low < said["days_p50"] < said["days_p90"]
        assert said["cost_p50"] < said["cost_p90"]
        json.dumps(said, allow_nan=False)


def test_each_risk_is_counted_once(assessed):
    a = assessed("llama-3.1-405b")
    said = [row["what"] for row in promise(a)["by"]]
    assert len(said) == len(set(said))
    outside = [x for x in part(a, "risks").rows if adds(x)]
    drawn = {x.risk for x in outside if x.id in ("slow-step", "price")}
    assert (
        set(said) - {"a step that may be faster or slower", "the first start"}
        == {x.risk for x in outside} - drawn
    )
    priced = [(x.impact_days, x.impact_usd) for x in part(a, "risks").rows if x.impact_usd]
    assert len(priced) == len(set(priced)), "two risks price the same loss"


def test_a_site_that_is_late_moves_the_start_and_not_the_days_after_it(assessed):
    """Four of ten sites come three months late (FT 2026): days are promised from the start on."""
    a = assessed("llama-3.1-405b")
    (late,) = (x for x in part(a, "risks").rows if x.before_start)
    assert late.impact_days > 90 and late.risk not in {row["what"] for row in promise(a)["by"]}
    assert promise(a)["days_p90"] < 2 * a.days


def test_a_measured_step_promises_sooner(assessed):
    """Without a band of the step there is less to fear."""
    a = assessed("llama-3.1-405b")
    sure = assess(a.design.change({"measured.step_s": a.step_s}))
    one, other = promise(sure), promise(a)
    assert one["days_p90"] - sure.days < other["days_p90"] - a.days


def test_nothing_is_promised_without_tokens(assessed):
    assert promise(assess(assessed("llama-3.1-405b").design.change({"job.tokens": None}))) is None


def test_devices_that_cost_nothing_promise_nothing_but_the_risks(assessed):
    free = {f"prices.usd_per_{what}": 0 for what in ("device_hour", "kwh")}
    said = promise(assess(assessed("llama-3.1-405b").design.change(free)))
    assert said["cost_p50"] <= said["cost_p90"]
    json.dumps(said, allow_nan=False)


def test_a_deadline_at_the_date_to_promise_is_kept_in_nine_of_ten_runs(assessed):
    """A verdict that is green by the band alone stands beside what failures and risks leave of
    it."""
    a = assessed("llama-3.1-405b")
    free = promise(a)
    assert free["deadline_kept"] is None and free["budget_kept"] is None
    asked = a.design.change(
        {"constraints.deadline_days": free["days_p90"], "constraints.budget_usd": free["cost_p50"]}
    )
    held = promise(assess(asked))
    assert held["deadline_kept"] == pytest.approx(0.9, abs=0.005)
    assert held["budget_kept"] == pytest.approx(0.5, abs=0.005)


def test_no_number_of_draws_says_never_or_always(assessed):
    """A deadline that no drawn run keeps is kept in less than one of a hundred, not in 0 %; the
    step may yet be faster than nine of ten bands say."""
    a = assessed("llama-3.1-405b")
    said = [
        promise(assess(a.design.change({"constraints.deadline_days": times * a.days})))
        for times in (0.3, 30)
    ]
    rare, sure = (one["deadline_kept"] for one in said)
    assert 0 < rare < 1 / DRAWS < 1 - 1 / DRAWS < sure < 1
    assert [show("promise.deadline_kept", x) for x in (rare, sure)] == ["<1 %", ">99 %"]
