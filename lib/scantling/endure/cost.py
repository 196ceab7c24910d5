"""What a run costs: device-hours, dollars with their date, energy, carbon, and the share that
failures burn."""

from dataclasses import replace
from math import erf, exp, log, sqrt
from typing import NamedTuple, TypedDict

import numpy as np

from .. import catalogue
from ..base.columns import Column
from ..base.json import clean
from ..base.records import Assumed, AssumedRow, Known, Record, get, record, value_or
from ..base.units import HOUR_S
from ..design.cluster import Cluster
from .stated import Section

PUE = 1.1  # large operators 1.08-1.2; the world's average is 1.58 (Uptime Institute 2024)
# of a node's rated power, while training: devices near their limit, fans and host below theirs
POWER_SHARE = 0.9
USD_PER_KWH = 0.078  # United States, industrial, 2024 (0.05-0.12)

Z80 = 1.2815515655446004  # standard normal quantile of 0.9

# g CO2e per kWh of generation, 2023, life cycle; all but the United States' (recalled) read in the
# source
GRIDS = {
    "world": 481,
    "norway": 30,
    "france": 56,
    "finland": 79,
    "brazil": 98,
    "denmark": 152,
    "canada": 170,
    "ireland": 291,
    "united-states": 369,
    "germany": 381,
    "australia": 549,
    "china": 582,
    "india": 713,
}
GRID_SOURCE = "Ember, carbon intensity of electricity generation 2023, through Our World in Data"


@record
class Cost(Record):
    """Cost of one job, or of the same job on many device counts (arrays). Dollars are None where no
    price is known, energy where no power is; dates stand by the price."""

    device_hours: Column
    usd_per_device_hour: Known
    usd_per_device_hour_low: Known
    usd_per_device_hour_high: Known
    price_date: str
    price_source: str
    cost_usd: Column | None
    cost_usd_low: Column | None
    cost_usd_high: Column | None
    lost_usd: Column | None
    lost_device_hours: Column
    energy_kwh: Column | None
    energy_usd: Column | None
    power_w: Column | None
    pue: float
    usd_per_kwh: float
    carbon_kg: dict[str, Column]
    carbon_source: str
    assumed: tuple[Assumed, ...]


def at_one_price(cost: Cost) -> Cost:
    """The cost where the price of a device-hour is known."""
    price = cost.usd_per_device_hour
    return replace(
        cost,
        usd_per_device_hour_low=price,
        usd_per_device_hour_high=price,
        cost_usd_low=cost.cost_usd,
        cost_usd_high=cost.cost_usd,
    )


class CostFigures(TypedDict):
    """What the run costs: `Cost` as plain data."""

    device_hours: float
    usd_per_device_hour: Known
    usd_per_device_hour_low: Known
    usd_per_device_hour_high: Known
    price_date: str
    price_source: str
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known
    lost_usd: Known
    lost_device_hours: float
    energy_kwh: Known
    energy_usd: Known
    power_w: Known
    pue: float
    usd_per_kwh: float
    carbon_kg: dict[str, float]
    carbon_source: str
    assumed: list[AssumedRow]


def figures(cost: Cost) -> CostFigures:
    """What a run costs, in the keys of `design --json`."""
    return {
        "device_hours": clean(cost.device_hours),
        "usd_per_device_hour": clean(cost.usd_per_device_hour),
        "usd_per_device_hour_low": clean(cost.usd_per_device_hour_low),
        "usd_per_device_hour_high": clean(cost.usd_per_device_hour_high),
        "price_date": clean(cost.price_date),
        "price_source": clean(cost.price_source),
        "cost_usd": clean(cost.cost_usd),
        "cost_usd_low": clean(cost.cost_usd_low),
        "cost_usd_high": clean(cost.cost_usd_high),
        "lost_usd": clean(cost.lost_usd),
        "lost_device_hours": clean(cost.lost_device_hours),
        "energy_kwh": clean(cost.energy_kwh),
        "energy_usd": clean(cost.energy_usd),
        "power_w": clean(cost.power_w),
        "pue": clean(cost.pue),
        "usd_per_kwh": clean(cost.usd_per_kwh),
        "carbon_kg": clean(cost.carbon_kg),
        "carbon_source": clean(cost.carbon_source),
        "assumed": clean(cost.assumed),
    }


def power_w(
    cluster: Cluster, devices: Column | None = None, *, pue: float = 1.0, share: float = POWER_SHARE
) -> Column:
    """Power of the job [W]: devices / devices_per_node x node_power_w x share x PUE; nan where
    nobody has published the device's power."""
    n = cluster.devices if devices is None else devices
    return n * cluster.node_power_w / cluster.devices_per_node * share * pue


def price(
    cluster: Cluster,
    prices: Section = None,
    *,
    wall_s: Column,
    devices_paid: Column | None = None,
    goodput: Column = 1.0,
) -> Cost:
    """Cost of a run.

    cluster : Cluster.  prices : the design file's `prices` mapping or record (usd_per_device_hour,
    usd_per_node_hour, owned, kind, pue, usd_per_kwh; any may be missing).
    wall_s : wall time [s, scalar or (n,)], with devices_paid (spares included; the cluster's own
    count by default) [(n,)].
    goodput : useful share of the wall time; the rest is what failures and saves burn.

    device_hours = devices paid x wall time; cost = device_hours x price, rent, so energy is in it;
    energy = rated node power x POWER_SHARE x PUE x time; carbon = energy x each grid's intensity.
    The price is the design's, else the catalogue's for the kind of rent (date and range beside it),
    else None. A machine that is owned costs its share of what was bought and its staff, and energy
    on top.
    """
    assumed: list[Assumed] = []
    paid: Column = cluster.devices if devices_paid is None else devices_paid
    seconds = paid * wall_s
    hours = seconds / HOUR_S
    rent = rate_of(cluster, prices, paid, assumed)
    site = "a large operator's site; 1.08-1.2, the world's average is 1.58 (Uptime Institute 2024)"
    pue = value_or(prices, "prices.pue", PUE, site, assumed)
    industry = "United States, industrial, 2024; 0.05-0.12"
    usd_per_kwh = value_or(prices, "prices.usd_per_kwh", USD_PER_KWH, industry, assumed)
    drawn_w = power_w(cluster, paid, pue=pue)
    watts: Column | None = drawn_w
    kwh: Column | None = power_w(cluster, 1.0, pue=pue) * seconds / 3.6e6
    if not np.all(np.isfinite(drawn_w)):
        why = (
            f"nobody has published the power of {cluster.accelerator.name}; energy and carbon are"
            " not given"
        )
        assumed.append(Assumed("energy_kwh", None, why))
        watts = kwh = None
    lost = 1 - goodput
    energy_usd = None if kwh is None else kwh * usd_per_kwh
    on_top = 0.0 if get(prices, "owned") is None or energy_usd is None else energy_usd

    def cost_at(usd_per_hour: float | None) -> Column | None:
        return None if usd_per_hour is None else hours * usd_per_hour + on_top

    cost_usd = cost_at(rent.usd)
    return Cost(
        device_hours=hours,
        usd_per_device_hour=rent.usd,
        usd_per_device_hour_low=rent.low,
        usd_per_device_hour_high=rent.high,
        price_date=rent.date,
        price_source=rent.source,
        cost_usd=cost_usd,
        cost_usd_low=cost_at(rent.low),
        cost_usd_high=cost_at(rent.high),
        lost_usd=None if cost_usd is None else cost_usd * lost,
        lost_device_hours=hours * lost,
        energy_kwh=kwh,
        energy_usd=energy_usd,
        power_w=watts,
        pue=pue,
        usd_per_kwh=usd_per_kwh,
        carbon_kg={} if kwh is None else {grid: kwh * g / 1000 for grid, g in GRIDS.items()},
        carbon_source=GRID_SOURCE,
        assumed=tuple(assumed),
    )


class Rent(NamedTuple):
    """What a device-hour costs [USD], None where nobody has priced it; its range, date and
    source."""

    usd: float | None = None
    low: float | None = None
    high: float | None = None
    date: str = ""
    source: str = ""


def rate_of(cluster: Cluster, prices: Section, paid: Column, assumed: list[Assumed]) -> Rent:
    """The price of a device-hour: the design's, by device or node or of the machine that it owns,
    else the catalogue's for its kind of rent."""
    usd = get(prices, "usd_per_device_hour")
    per_node, owned = get(prices, "usd_per_node_hour"), get(prices, "owned")
    if usd is None and per_node is not None:
        usd = per_node / cluster.devices_per_node
    elif usd is None and owned is not None:
        usd = owned_usd_per_hour(owned, assumed) / paid
    if usd is not None:
        return Rent(usd, usd, usd, "", "the design")
    field = "prices.usd_per_device_hour"
    kind = get(prices, "kind") or "on-demand"
    try:
        row = catalogue.price(cluster.accelerator.id, kind)
    except ValueError:
        row = None
    if row is None:
        why = (
            f"the catalogue has no dated {kind} price of {cluster.accelerator.name}; cost is not"
            " given"
        )
        assumed.append(Assumed(field, None, why))
        return Rent()
    ends = f"${row.low:.3g} to ${row.high:.3g}"
    notes = row.notes if ends in row.notes else f"{row.notes}; {ends}"
    why = f"{kind} in the catalogue ({row.date}, {notes})"
    assumed.append(Assumed(field, row.value, why))
    return Rent(row.value, row.low, row.high, row.date, row.source)


HOURS_A_YEAR = 8766.0
YEARS = 4.0


def owned_usd_per_hour(owned: Section, assumed: list[Assumed]) -> float:
    """What a machine that is owned costs an hour, energy apart [USD/h]: (machine + network +
    storage) / years + staff a year."""
    years = value_or(
        owned,
        "prices.owned.years",
        YEARS,
        "the usual time over which accelerators are written off",
        assumed,
    )
    bought = sum(get(owned, part) or 0 for part in ("capex_usd", "network_usd", "storage_usd"))
    staff = get(owned, "staff_usd_per_year") or 0
    return float((bought / years + staff) / HOURS_A_YEAR)


def expected(low: float, mid: float, high: float) -> float:
    """Mean of a log-normal with 80 % band [low, high] around the median mid, each side with its own
    width s: the sum over sides of mid exp(+-...) = mid (exp(s1^2/2) Phi(-s1) + exp(s2^2/2)
    Phi(s2)). What costs nothing has no band."""
    if not low:
        return mid
    below = log(low / mid) / Z80
    above = log(high / mid) / Z80
    halves = (exp(s * s / 2) * 0.5 * (1 + erf(s / sqrt(2))) for s in (below, above))
    return mid * sum(halves)


class Around(TypedDict):
    """What a budget holds beside the run."""

    what: str
    share: float  # of the run's cost
    usd: float
    source: str


class Budget(TypedDict):
    """The cost to plan for, in parts. [USD]"""

    run_usd: float
    overrun_usd: float  # expected on top of the run
    around: list[Around]
    total_usd: float


# of the run's cost, for the development of its model
DEVELOPMENT = 0.5
DEVELOPMENT_WHAT = (
    "ablations, failed starts, evaluation and the other runs of a model's development"
)
DEVELOPMENT_SOURCE = (
    "Morrison et al. 2025, arXiv 2503.05804, abstract: model development amounted to 50 % of that"
    " of training (OLMo series, 20M to 13B); the DeepSeek-V3 report leaves it out of its 5.576M USD"
)


def to_plan_for(cost_usd: float, expected_usd: float) -> Budget:
    """The cost to plan for: the run, what is expected to come on top of it, and the budget around
    it as shares of the run.

    expected_usd : mean cost of the run [USD], bands, failures and risks counted once.
    """
    development: Around = {
        "what": DEVELOPMENT_WHAT,
        "share": DEVELOPMENT,
        "usd": DEVELOPMENT * cost_usd,
        "source": DEVELOPMENT_SOURCE,
    }
    return {
        "run_usd": cost_usd,
        "overrun_usd": expected_usd - cost_usd,
        "around": [development],
        "total_usd": expected_usd + development["usd"],
    }
