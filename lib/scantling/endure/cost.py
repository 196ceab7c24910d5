"""What a run costs: device-hours, dollars with their date, energy, carbon, and the share that
failures burn; the frontier of days against dollars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import catalogue
from ..base.records import Assumed, Record, get, given
from ..base.units import HOUR_S

PUE = 1.1  # large operators 1.08-1.2; the world's average is 1.58 (Uptime Institute 2024)
# of a node's rated power, while training: devices near their limit, fans and host below theirs
POWER_SHARE = 0.9
USD_PER_KWH = 0.078  # United States, industrial, 2024 (0.05-0.12)

# g CO2e per kWh of generation, 2023, life cycle; Ember through Our World in Data (text: read;
# memory: recalled)
GRIDS = {
    "world": (481, "text"),
    "norway": (30, "text"),
    "france": (56, "text"),
    "finland": (79, "text"),
    "brazil": (98, "text"),
    "denmark": (152, "text"),
    "canada": (170, "text"),
    "ireland": (291, "text"),
    "united-states": (369, "memory"),
    "germany": (381, "text"),
    "australia": (549, "text"),
    "china": (582, "text"),
    "india": (713, "text"),
}
GRID_SOURCE = "Ember, carbon intensity of electricity generation 2023, through Our World in Data"


@dataclass(
    frozen=True,
    kw_only=True,
)
class Cost(Record):
    """Cost of one job, or of the same job on many device counts (arrays). Dollars are None where no
    price
    is known, energy where no power is; dates stand by the price."""

    device_hours: object
    usd_per_device_hour: float | None
    usd_per_device_hour_low: float | None
    usd_per_device_hour_high: float | None
    price_date: str
    price_source: str
    cost_usd: object
    cost_usd_low: object
    cost_usd_high: object
    lost_usd: object
    lost_device_hours: object
    energy_kwh: object
    energy_usd: object
    power_w: object
    pue: float
    usd_per_kwh: float
    carbon_kg: dict
    carbon_source: str
    assumed: tuple[Assumed, ...]


def power_w(
    cluster,
    devices=None,
    *,
    pue=1.0,
    share=POWER_SHARE,
):
    """Power of the job [W]: devices / devices_per_node x node_power_w x share x PUE; nan where
    nobody has published the device's power."""
    n = np.asarray(cluster.devices if devices is None else devices, float)
    return n * cluster.node_power_w / cluster.devices_per_node * share * pue


def price(
    cluster,
    prices=None,
    *,
    wall_s=None,
    device_seconds=None,
    devices_paid=None,
    goodput=1.0,
) -> Cost:
    """Cost of a run.

    cluster : Cluster.  prices : the design file's `prices` mapping or record (usd_per_device_hour,
    pue, usd_per_kwh; any may be missing).
    wall_s : wall time [s, scalar or (n,)], with devices_paid (spares included; the cluster's own
    count by default) [(n,)]; or
    device_seconds.
    goodput : useful share of the wall time; the rest is what failures and saves burn.

    device_hours = devices paid x wall time; cost = device_hours x price, rent, so energy is in it;
    energy = rated node power x POWER_SHARE
    x PUE x time; carbon = energy x each grid's intensity. The price is the design's, else the
    catalogue's newest (date and range beside
    it), else None.
    """
    say: list[Assumed] = []
    paid = np.asarray(cluster.devices if devices_paid is None else devices_paid, float)
    seconds = (
        np.asarray(device_seconds, float)
        if device_seconds is not None
        else paid * np.asarray(wall_s, float)
    )
    hours = seconds / HOUR_S
    rate, low, high, date, source = _price(cluster, prices, say)
    site = "a large operator's site; 1.08-1.2, the world's average is 1.58 (Uptime Institute 2024)"
    pue = float(
        given(
            prices,
            "prices.pue",
            PUE,
            site,
            say,
        )
    )
    industry = "United States, industrial, 2024; 0.05-0.12"
    tariff = float(
        given(
            prices,
            "prices.usd_per_kwh",
            USD_PER_KWH,
            industry,
            say,
        )
    )
    watts = power_w(cluster, paid, pue=pue)
    kwh = power_w(cluster, 1.0, pue=pue) * seconds / 3.6e6
    if not np.all(np.isfinite(watts)):
        say.append(
            Assumed(
                "energy_kwh",
                None,
                f"nobody has published the power of {cluster.accelerator.name}; energy "
                "and carbon are not given",
            )
        )
        watts = kwh = None

    def usd(x):
        return None if x is None else hours * x

    lost = 1 - np.asarray(goodput, float)
    return Cost(
        device_hours=hours,
        usd_per_device_hour=rate,
        usd_per_device_hour_low=low,
        usd_per_device_hour_high=high,
        price_date=date,
        price_source=source,
        cost_usd=usd(rate),
        cost_usd_low=usd(low),
        cost_usd_high=usd(high),
        lost_usd=None if rate is None else hours * rate * lost,
        lost_device_hours=hours * lost,
        energy_kwh=kwh,
        energy_usd=None if kwh is None else kwh * tariff,
        power_w=watts,
        pue=pue,
        usd_per_kwh=tariff,
        carbon_kg={} if kwh is None else {g: kwh * v[0] / 1000 for g, v in GRIDS.items()},
        carbon_source=GRID_SOURCE,
        assumed=tuple(say),
    )


def frontier(days, cost_usd):
    """Indices of the points that no other beats in both days and dollars, fastest first; nan never
    counts.

    Sorted by days then dollars, a point stays when it is cheaper than everything faster.
    """
    d, c = np.asarray(days, float), np.asarray(cost_usd, float)
    order = np.lexsort((c, d))
    order = order[np.isfinite(d[order]) & np.isfinite(c[order])]
    best = np.minimum.accumulate(c[order]) if order.size else c[order]
    keep = np.concatenate([[True], c[order][1:] < best[:-1]]) if order.size else np.zeros(0, bool)
    return order[keep]


def _price(
    cluster,
    prices,
    say,
):
    explicit = get(prices, "usd_per_device_hour")
    if explicit is not None:
        return *(3 * [float(explicit)]), "", "the design"
    try:
        found = catalogue.price(cluster.accelerator.id)
    except ValueError:
        found = None
    if found is None:
        say.append(
            Assumed(
                "prices.usd_per_device_hour",
                None,
                f"the catalogue has no dated price of {cluster.accelerator.name}; cost "
                "is not given",
            )
        )
        return *(3 * [None]), "", ""
    rate = float(found.middle)
    low, high = (float(x) if _known(x) else rate for x in (found.low, found.high))
    say.append(
        Assumed(
            "prices.usd_per_device_hour",
            rate,
            f"newest in the catalogue ({found.date}, {found.notes or found.term}; "
            f"{low:g}-{high:g})",
        )
    )
    return rate, low, high, found.date, found.source


def _known(value) -> bool:
    return value is not None and value == value and value > 0
