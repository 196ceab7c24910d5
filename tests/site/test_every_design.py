"""Each part of operations on every design of the gallery: plain data, nothing negative, nothing
missing, quick."""

import json
import math

import pytest
import scantling_site as cluster
from lookups import one
from scantling import Design, assess
from scantling.base.json import clean
from scantling_site import blueprint
from scantling_site.facts import number
from scantling_site.job_site import site_of
from scantling_site.risks.register import HARMLESS

PARTS = ("scheduler", "stores", "domains", "risks", "rollout", "evolution")
MAY_FALL = ("gain", "days_gained")  # differences: of either sign


def walk(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from walk(v, f"{path}.{k}")
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from walk(v, f"{path}[{i}]")
    else:
        yield path, value


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_plain_data_with_no_negative_figure(each, part):
    seen = 0
    data = cluster.part(each, part).as_dict()
    json.dumps(data, allow_nan=False)
    for path, value in walk(data):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seen += 1
            assert math.isfinite(value), path
            assert value >= -1e-12 or path.rsplit(".", 1)[-1] in MAY_FALL, (path, value)
        elif isinstance(value, str):
            seen += 1
            assert (
                "nan" not in value.split() and "inf" not in value.split() and "None" not in value
            ), (path, value)
    assert seen


def test_an_impossible_design_has_none_of_it(assessed):
    assert all(cluster.part(assessed("case-2-1t-dense-8-v100"), part) is None for part in PARTS)


def test_figures_follow_the_design_and_are_not_canned(assessed):
    small, large = map(blueprint, (assessed("bloom-176b-384-a100"), assessed("case-6-100k-gpus")))
    for part in PARTS:
        a, b = (dict(walk(getattr(x, part).as_dict())) for x in (small, large))
        same = [
            p
            for p in a.keys() & b.keys()
            if isinstance(a[p], float) and a[p] == b[p] and a[p] not in (0.0, 1.0)
        ]
        numbers = [p for p in a.keys() & b.keys() if isinstance(a[p], float)]
        assert len(same) < 0.35 * len(numbers), (part, same)


def test_a_run_without_tokens_is_counted_on_thirty_days(assessed):
    run = site_of(assessed("case-3-500b-4096-h100")).run
    assert not run.of_the_run and run.days == 30
    assert site_of(assessed("llama-3.1-405b")).run.days == pytest.approx(
        assessed("llama-3.1-405b").days
    )


def test_a_day_costs_what_the_run_costs_a_day(assessed):
    a = assessed("llama-3.1-405b")
    assert site_of(a).run.usd_per_day == pytest.approx(a.cost_usd / a.days)


def test_facts_that_are_used_are_numbers_with_sources():
    assert number("R148") == 20 and number("R149") == 255_000  # PaLM 540B, arXiv 2204.02311
    with pytest.raises(ValueError, match="R030|R124|R067|not one number"):
        number("R067")  # "30 or 60" minutes
    assert clean({"a": float("nan"), "b": (1, float("inf"))}) == {"a": None, "b": [1, None]}


def test_more_failures_never_help_any_part(assessed):
    base = assessed("llama-3.1-405b")
    worse = assess(base.design.change({"reliability.failures_per_1000_node_days": 14.0}))
    a, b = blueprint(base), blueprint(worse)
    assert b.domains.unplanned_cost > a.domains.unplanned_cost
    assert b.scheduler.requeue["gain"] > a.scheduler.requeue["gain"]
    assert one(b.stores.needs, "write").needed > one(a.stores.needs, "write").needed
    assert b.rollout.on_call.failures_per_week > a.rollout.on_call.failures_per_week
    fleet = {r.id: r for r in b.risks.rows}.get("failures")
    assert (
        fleet is None
        or fleet.likelihood < next(r for r in a.risks.rows if r.id == "failures").likelihood
    )


def test_prices_move_dollars_and_nothing_else(assessed):
    base = assessed("llama-3.1-405b")
    free = assess(
        base.design.change({"prices.usd_per_device_hour": base.cost.usd_per_device_hour * 2})
    )
    a, b = cluster.part(base, "domains"), cluster.part(free, "domains")
    assert one(b.rows, "device").usd_lost == pytest.approx(2 * one(a.rows, "device").usd_lost)
    assert one(b.rows, "device").days_lost == pytest.approx(one(a.rows, "device").days_lost)


def test_harmless_risks_are_small_and_listed_ones_are_not(each):
    found = cluster.part(each, "risks")
    whole = found.run.usd(found.run.days)
    for r in found.rows:
        assert r.expected_days >= HARMLESS * found.run.days or (r.expected_usd or 0) >= HARMLESS * (
            whole or math.inf
        )


def test_a_price_that_is_not_known_leaves_days():
    a = assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": "llama-3.1-8b",
                "cluster": {"accelerator": "tpu-v5p", "devices": 64},
                "job": {"tokens": 1e11},
            }
        )
    )
    data = cluster.part(a, "risks")
    assert data.rows and all(r.expected_days >= 0 for r in data.rows)
