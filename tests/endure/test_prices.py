"""Prices are compared like with like, and what a machine of one's own costs is counted once."""

from __future__ import annotations

import csv
import io

import pytest
from scantling import catalogue
from scantling.catalogue.pricing import GOOD, RANKS, WANTED
from scantling.catalogue.quotes import prices_with
from scantling.catalogue.words import RENTS
from scantling.cli.app import main
from scantling.design.design import Design, DesignError
from scantling.endure import cost
from scantling.plans.prepare import prepare
from scantling.verdict.assess import assess
from scantling_site.promise import assessment_json

DAY = 86400.0
BASE = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12},
}


def cluster(accelerator="h100-sxm", devices=64):
    machine = {"accelerator": accelerator, "devices": devices}
    return prepare(Design.from_data(BASE | {"cluster": machine})).cluster


def test_one_kind_of_rent_across_chips():
    """The review: "GB200 4.54 (median of 1 observations; 4.54-4.54), GB300 12.32, H200 4.54, B200
    5.3..6: GB200 cheaper than B200, a third of GB300"."""
    price = {
        id: catalogue.price(id)
        for id in ("h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72", "gb300-nvl72")
    }
    values = [p.value for p in price.values()]
    assert values == sorted(values)
    assert price["gb300-nvl72"].value < 1.6 * price["gb200-nvl72"].value
    assert all(p.kind == "on-demand" and p.date for p in price.values())


def test_one_observation_is_no_spread():
    seen = 0
    for chip in catalogue.accelerators():
        p = catalogue.price(chip)
        if p is not None:
            seen += 1
            assert p.low < p.value < p.high, chip
            many = p.notes.startswith("median of ")
            assert many or "usual spread" in p.notes
    assert seen


def test_a_price_says_how_good_its_sources_are():
    """The review: MI300X at $1.50 from one provider makes it half of an H100 with no remark; the
    bill names blogs."""
    thin = catalogue.price("mi300x")
    assert "1 offer (1 press)" in thin.notes
    assert "no good source" in thin.notes
    for chip in catalogue.accelerators():
        p = catalogue.price(chip)
        if p is None:
            continue
        assert " offer" in p.notes and "$" in p.notes and p.date[:4] in p.notes, p.notes
        rents = [
            r for r in catalogue.prices(category="rent") if r.item == chip and r.source in p.source
        ]
        good = {r.provider for r in rents if r.rank in GOOD}
        assert ("good source" in p.notes) == (len(good) < WANTED), (chip, p.notes)


def test_sources_of_a_price_stand_with_the_best_first():
    p = catalogue.price("h100-sxm")
    ranks = {r.source: r.rank for r in catalogue.prices(category="rent") if r.item == p.item}
    order = [[*RANKS].index(ranks[source]) for source in p.source.split("; ") if source in ranks]
    assert order == sorted(order)
    assert order[0] < order[-1]


def test_a_node_price_and_a_kind_of_rent():
    by_node = cost.price(cluster(), {"usd_per_node_hour": 20.0}, wall_s=DAY)
    assert by_node.cost_usd == pytest.approx(64 * 24 * 2.5)
    reserved = cost.price(cluster(), {"kind": "reserved"}, wall_s=DAY)
    assert reserved.cost_usd < cost.price(cluster(), {}, wall_s=DAY).cost_usd


def test_a_machine_that_is_owned_pays_its_energy_and_its_years():
    """Cottier et al. 2024 (arXiv 2405.21015) count hardware over its life and energy apart."""
    owned = {"capex_usd": 3.0e6, "years": 4, "staff_usd_per_year": 2e5, "network_usd": 4e5}
    c = cost.price(cluster(), {"owned": owned, "usd_per_kwh": 0.1}, wall_s=365.25 * DAY)
    assert c.cost_usd == pytest.approx(3.4e6 / 4 + 2e5 + c.energy_usd)
    rented = cost.price(cluster(), {"usd_per_device_hour": 2.0}, wall_s=DAY)
    assert rented.cost_usd == pytest.approx(64 * 24 * 2.0)  # energy is in it
    with pytest.raises(DesignError, match="usd_per_device_hour"):
        Design.from_data(BASE | {"prices": {"owned": owned, "usd_per_device_hour": 2}})


def test_the_cost_to_plan_for_is_summed_once():
    """Bands, failures and risks are in the mean of the promise and nowhere else; it holds what the
    band alone adds, and the risks on top."""
    a = assess(Design.from_data(BASE))
    result = assessment_json(a)
    plan, promise = result["to_plan_for"], result["promise"]
    around = sum(row["usd"] for row in plan["around"])
    assert plan["total_usd"] == pytest.approx(promise["cost_mean"] + around)
    assert plan["run_usd"] + plan["overrun_usd"] == pytest.approx(promise["cost_mean"])
    assert plan["overrun_usd"] > a.cost_at_risk_usd >= 0
    assert promise["cost_p10"] < promise["cost_p50"] < promise["cost_p90"]
    # Morrison et al. 2025: development was 50 % of training
    assert around == pytest.approx(0.5 * a.cost_usd)
    assert all("arXiv" in row["source"] for row in plan["around"])


def test_the_mean_of_a_band():
    """A log-normal of sigma s has mean median x exp(s^2 / 2)."""
    import math

    s = 0.5
    wide = math.exp(s * cost.Z80)
    assert cost.expected(1 / wide, 1.0, wide) == pytest.approx(math.exp(s * s / 2))


def test_a_table_of_ones_own(tmp_path, capsys):
    file = tmp_path / "prices.csv"
    out = io.StringIO()
    writer = csv.DictWriter(out, ("item", "value", "provider"))
    writer.writeheader()
    writer.writerow({"item": "h100-sxm", "value": 1.75, "provider": "our cloud"})
    file.write_text(out.getvalue())
    assert prices_with(file)["h100-sxm"]["on-demand"].value == 1.75
    assert main(["prices", str(file)]) == 0
    assert "$1.75" in capsys.readouterr().out
    for wrong in ("item,value\nh100-sxm,-1\n", "item,value\nh101,2\n", "item,cost\nh100-sxm,2\n"):
        file.write_text(wrong)
        assert main(["prices", str(file)]) == 2
        assert "line 2" in capsys.readouterr().err


def test_a_price_of_an_impossible_day_is_refused(tmp_path, capsys):
    """2026 is no leap year, a day of December stands as 2025-12-31 in ISO 8601."""
    file = tmp_path / "prices.csv"
    for day in ("2026-02-31", "2026-02-29", "31/12/2025", "2026-13", "soon"):
        file.write_text(f"item,value,date\nh100-sxm,2,{day}\n")
        assert main(["prices", str(file)]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and "line 2, date" in err and day in err
        assert "allowed: a date such as 2026, 2026-05 or 2026-05-07" in err
    file.write_text("item,value,date\nh100-sxm,2,2024-02-29\n")
    assert main(["prices", str(file)]) == 0


def test_the_kinds_that_are_printed_are_kinds_that_a_table_may_name(tmp_path, capsys):
    """A price of one's own that is named by a kind moves the price of that kind."""
    file = tmp_path / "prices.csv"
    for kind in RENTS:
        file.write_text(f"item,value,kind,date\nh100-sxm,1.00,{kind},2026-10\n", encoding="utf-8")
        assert main(["prices", str(file)]) == 0
        assert kind in capsys.readouterr().out
        own = prices_with(file)["h100-sxm"][kind]
        usual = catalogue.price("h100-sxm", kind)
        assert usual is None or own.value < usual.value


def test_a_machine_that_costs_nothing_costs_nothing_within_its_band():
    """A grant's device-hours: no price has no spread."""
    free = assess(Design.from_data(BASE | {"prices": {"usd_per_device_hour": 0}}))
    assert (free.cost_usd_low, free.cost_usd, free.cost_usd_high) == (0, 0, 0)
    assert free.cost_at_risk_usd == 0
