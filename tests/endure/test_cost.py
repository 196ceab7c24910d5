"""Device-hours, dollars, energy and carbon of published runs; the frontier."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scantling import Design, assess, catalogue
from scantling.advise.candidates import chip_change
from scantling.advise.frontier import undominated
from scantling.design.cluster_rules import build_cluster
from scantling.endure import cost

DAY = 86_400.0


def cluster(devices=16_384, accelerator="h100-sxm", **spec):
    return build_cluster({"accelerator": accelerator, "devices": devices, **spec})[0]


def test_deepseek_v3_at_its_own_price():
    """2.788M H800-hours at 2 dollars: 5.576M (DeepSeek-V3, arXiv 2412.19437, Table 1)."""
    c = cost.price(
        cluster(2048, "h800-sxm"), {"usd_per_device_hour": 2.0}, wall_s=2.788e6 * 3600 / 2048
    )
    assert c.device_hours == pytest.approx(2.788e6)
    assert c.cost_usd == pytest.approx(5.576e6)


def test_llama31_405b_energy_and_carbon():
    """30.84M H100-hours at 700 W: 8,930 t CO2e location-based (Llama 3.1 model card), for devices
    alone at the US grid."""
    kwh = 30.84e6 * 0.7
    assert kwh * cost.GRIDS["united-states"] / 1e6 == pytest.approx(8930, rel=0.15)
    c = cost.price(cluster(), {}, wall_s=30.84e6 * 3600 / 16_384)
    assert c.energy_kwh == pytest.approx(
        kwh * 1.275 / 0.7 * 0.9 * 1.1, rel=0.01
    )  # whole node, 10.2 kW for eight, at its share and PUE


def test_a_hundred_thousand_h100_draw_150_megawatts():
    """SemiAnalysis' 150 MW for 100,000 H100, everything on."""
    assert cost.power_w(cluster(100_000), pue=1.1, share=1.0) == pytest.approx(150e6, rel=0.1)


def test_price_is_the_catalogues_with_its_date_and_range():
    c = cost.price(cluster(), None, wall_s=DAY)
    assert c.usd_per_device_hour == catalogue.price("h100-sxm").middle
    assert c.usd_per_device_hour_low <= c.usd_per_device_hour <= c.usd_per_device_hour_high
    assert c.cost_usd_low < c.cost_usd < c.cost_usd_high
    assert c.price_date
    assert "prices.usd_per_device_hour" in {a.field for a in c.assumed}


def test_no_price_is_none_not_a_guess():
    without = next(a for a in catalogue.accelerators().values() if catalogue.price(a.id) is None)
    c = cost.price(cluster(64, without.id), {}, wall_s=DAY)
    assert c.cost_usd is None
    assert c.lost_usd is None
    assert c.device_hours == pytest.approx(64 * 24)
    json.dumps(c.as_dict(), allow_nan=False)


def test_spares_are_paid_and_losses_priced():
    c = cost.price(
        cluster(),
        {"usd_per_device_hour": 2.5, "pue": 1.2, "usd_per_kwh": 0.08},
        wall_s=10 * DAY,
        devices_paid=16_384 + 128,
        goodput=0.9,
    )
    assert c.device_hours == pytest.approx(16_512 * 240)
    assert c.cost_usd == pytest.approx(16_512 * 240 * 2.5)
    assert c.lost_usd == pytest.approx(0.1 * c.cost_usd)
    assert c.energy_usd == pytest.approx(c.energy_kwh * 0.08)
    assert c.assumed == ()


def test_frontier_has_no_dominated_point():
    rng = np.random.default_rng(0)
    d, u = rng.random(400), rng.random(400)
    d[5], u[7] = np.nan, np.inf
    best = undominated(np.column_stack([d, u]))
    for i in best:
        assert not np.any((d <= d[i]) & (u <= u[i]) & ((d < d[i]) | (u < u[i])))
    for i in set(range(400)) - set(best.tolist()) - {5, 7}:
        assert np.any((d <= d[i]) & (u <= u[i]))
    assert list(np.diff(d[best]) > 0) == [True] * (len(best) - 1)
    assert len(undominated(np.empty((0, 2)))) == 0


def test_scalars_and_columns_agree():
    n = np.array([1024.0, 16_384.0])
    many = cost.price(cluster(), {}, wall_s=DAY, devices_paid=n)
    for i, x in enumerate(n):
        one = cost.price(cluster(), {}, wall_s=DAY, devices_paid=x)
        assert many.cost_usd[i] == pytest.approx(float(one.cost_usd))
        assert many.carbon_kg["world"][i] == pytest.approx(float(one.carbon_kg["world"]))


def test_more_devices_of_an_owned_machine_cost_more():
    """Twice the devices of a machine that is owned cost twice as much to buy and to run: a
    device-hour costs what it did, and dollars follow device-hours. A price that is stated beside
    them stands."""
    design = Design.from_text(
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\n"
        "job: {tokens: 1e12, seq_len: 8192, global_batch: 512}\n"
        "prices: {owned: {capex_usd: 2.4e6, years: 5, staff_usd_per_year: 2e5}}"
    )
    twice = design.change({"cluster.devices": 128})
    assert twice.prices.owned.capex_usd == 4.8e6
    assert twice.prices.owned.years == 5 and twice.prices.owned.staff_usd_per_year == 4e5
    assert twice.change({"cluster.devices": 64}) == design
    assert design.change(cluster={"devices": 128}) == twice
    paid = design.change({"cluster.devices": 128, "prices.owned.capex_usd": 1e6})
    assert paid.prices.owned.capex_usd == 1e6
    assert design.change({"job.tokens": 2e12}).prices == design.prices


def test_another_chip_is_not_had_at_the_price_of_this_one():
    """Whoever owns H100s, or rents them at 1.10 USD, has no offer for B200s."""
    for stated in ("owned: {capex_usd: 2.4e6}", "usd_per_device_hour: 1.1"):
        design = Design.from_text(
            "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\n"
            f"job: {{tokens: 1e12, seq_len: 8192, global_batch: 512}}\nprices: {{{stated}}}"
        )
        change = chip_change(assess(design).resolved.cluster, "b200-sxm")
        other = assess(design.change(change.set))
        rented = assess(Design.from_data({**design.change(change.set).data(), "prices": {}}))
        assert other.cost.usd_per_device_hour == rented.cost.usd_per_device_hour > 1.2, stated
