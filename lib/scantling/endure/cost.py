"""What a run costs: device-hours, dollars with their date, energy, carbon, and the share that
failures burn."""

from math import erf, exp, log, sqrt

import numpy as np

from .. import catalogue
from ..base.records import Assumed, Known, Record, get, given, record
from ..base.units import HOUR_S
from ..base.words import table, table_rows

PUE = 1.1  # large operators 1.08-1.2; the world's average is 1.58 (Uptime Institute 2024)
# of a node's rated power, while training: devices near their limit, fans and host below theirs
POWER_SHARE = 0.9
USD_PER_KWH = 0.078  # United States, industrial, 2024 (0.05-0.12)

Z80 = 1.2815515655446004  # standard normal quantile of 0.9

# {grid: (g CO2e per kWh, how the number was come by)}
GRIDS = table(__file__, "grids")
GRID_SOURCE = "Ember, carbon intensity of electricity generation 2023, through Our World in Data"


@record
class Cost(Record):
    """Cost of one job, or of the same job on many device counts (arrays). Dollars are None where no
    price
    is known, energy where no power is; dates stand by the price."""

    device_hours: object
    usd_per_device_hour: Known
    usd_per_device_hour_low: Known
    usd_per_device_hour_high: Known
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


def power_w(cluster, devices=None, *, pue=1.0, share=POWER_SHARE):
    """Power of the job [W]: devices / devices_per_node x node_power_w x share x PUE; nan where
    nobody has published the device's power."""
    n = cluster.devices if devices is None else devices
    return n * cluster.node_power_w / cluster.devices_per_node * share * pue


def price(cluster, prices=None, *, wall_s, devices_paid=None, goodput=1.0) -> Cost:
    """Cost of a run.

    cluster : Cluster.  prices : the design file's `prices` mapping or record (usd_per_device_hour,
    usd_per_node_hour, owned, kind, pue, usd_per_kwh; any may be missing).
    wall_s : wall time [s, scalar or (n,)], with devices_paid (spares included; the cluster's own
    count by default) [(n,)].
    goodput : useful share of the wall time; the rest is what failures and saves burn.

    device_hours = devices paid x wall time; cost = device_hours x price, rent, so energy is in it;
    energy = rated node power x POWER_SHARE
    x PUE x time; carbon = energy x each grid's intensity. The price is the design's, else the
    catalogue's for the kind of rent (date and range beside it), else None. A machine that is owned
    costs its share of what was bought and its staff, and energy on top.
    """
    say = []
    paid = cluster.devices if devices_paid is None else devices_paid
    seconds = paid * wall_s
    hours = seconds / HOUR_S
    rate, low, high, date, source = _price(cluster, prices, paid, say)
    site = "a large operator's site; 1.08-1.2, the world's average is 1.58 (Uptime Institute 2024)"
    industry = "United States, industrial, 2024; 0.05-0.12"
    pue, tariff = (
        given(prices, f"prices.{field}", usual, why, say)
        for field, usual, why in (("pue", PUE, site), ("usd_per_kwh", USD_PER_KWH, industry))
    )
    watts, each = (power_w(cluster, n, pue=pue) for n in (paid, 1.0))
    kwh = each * seconds / 3.6e6
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

    lost = 1 - goodput
    bill = None if kwh is None else kwh * tariff
    beside = 0.0 if get(prices, "owned") is None or bill is None else bill
    usd = [None if x is None else hours * x + beside for x in (rate, low, high)]
    return Cost(
        device_hours=hours,
        usd_per_device_hour=rate,
        usd_per_device_hour_low=low,
        usd_per_device_hour_high=high,
        price_date=date,
        price_source=source,
        cost_usd=usd[0],
        cost_usd_low=usd[1],
        cost_usd_high=usd[2],
        lost_usd=None if rate is None else usd[0] * lost,
        lost_device_hours=hours * lost,
        energy_kwh=kwh,
        energy_usd=bill,
        power_w=watts,
        pue=pue,
        usd_per_kwh=tariff,
        carbon_kg={} if kwh is None else {g: kwh * v[0] / 1000 for g, v in GRIDS.items()},
        carbon_source=GRID_SOURCE,
        assumed=tuple(say),
    )


def _price(cluster, prices, paid, say):
    """(price, low, high, date, source) of a device-hour: the design's, by device or node or of the
    machine that it owns, else the catalogue's for its kind of rent."""
    own, per_node = (get(prices, f"usd_per_{of}_hour") for of in ("device", "node"))
    if own is None and per_node is not None:
        own = per_node / cluster.devices_per_node
    elif own is None and get(prices, "owned") is not None:
        own = owned_usd_per_hour(get(prices, "owned"), say) / paid
    if own is not None:
        return own, own, own, "", "the design"
    kind = get(prices, "kind") or "on-demand"
    try:
        found = catalogue.price(cluster.accelerator.id, kind)
    except ValueError:
        found = None
    if found is None:
        say.append(
            Assumed(
                "prices.usd_per_device_hour",
                None,
                f"the catalogue has no dated {kind} price of {cluster.accelerator.name}; "
                "cost is not given",
            )
        )
        return None, None, None, "", ""
    why = f"{kind} in the catalogue ({found.date}, {found.notes}; {found.low:.3g}-{found.high:.3g})"
    say.append(Assumed("prices.usd_per_device_hour", found.value, why))
    return found.value, found.low, found.high, found.date, found.source


HOURS_A_YEAR = 8766.0
YEARS = 4.0


def owned_usd_per_hour(owned, say: list) -> float:
    """What a machine that is owned costs an hour, energy apart [USD/h]: (machine + network +
    storage) / years + staff a year."""
    years = given(
        owned,
        "prices.owned.years",
        YEARS,
        "the usual time over which accelerators are written off",
        say,
    )
    bought = sum(get(owned, part) or 0 for part in ("capex_usd", "network_usd", "storage_usd"))
    return (bought / years + (get(owned, "staff_usd_per_year") or 0)) / HOURS_A_YEAR


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


def to_plan_for(cost_usd: float, expected_usd: float) -> dict:
    """The cost to plan for: the run, what is expected to come on top of it, and the budget around
    it as shares of the run (around.csv). {run_usd, overrun_usd, around: [{what, share, usd,
    source}], total_usd}

    expected_usd : mean cost of the run [USD], bands, failures and risks counted once.
    """
    around = [
        {"what": row["what"], "share": share, "usd": share * cost_usd, "source": row["source"]}
        for row in table_rows(__file__, "around")
        for share in [float(row["share"])]
    ]
    return {
        "run_usd": cost_usd,
        "overrun_usd": expected_usd - cost_usd,
        "around": around,
        "total_usd": expected_usd + sum(row["usd"] for row in around),
    }
