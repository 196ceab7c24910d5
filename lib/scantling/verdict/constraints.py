"""Which of a design's constraints the estimate misses, by how much, and with what chance."""

from __future__ import annotations

import math
from operator import attrgetter

from ..base.quantities.table import show
from ..design.constraints import CONSTRAINTS, Constraint
from ..endure.cost import PUE, power_w
from .record import Assessment, Missed
from .words import say

Z80 = 1.2815515655446004  # standard normal quantile of 0.9
EDGE = 1e-9  # share of a limit within which a value meets it
LEAST_CHANCE = 1e-9
DOMAINS_OF_SPARES = ("node", "rack")  # a lost pod is waited for, or the job shrinks (`elastic`)


def chance_below(
    limit: float,
    low: float,
    mid: float,
    high: float,
) -> float:
    """Probability that a log-normal with 80 % band [low, high] around mid stays below limit; each
    side with its own width."""
    if limit <= 0:
        return 0.0
    side = math.log(high / mid) if limit > mid else math.log(mid / low)
    if side <= 0:
        return float(limit >= mid)
    return 0.5 * (1 + math.erf(math.log(limit / mid) / (side / Z80) / math.sqrt(2)))


def missed(assessment: Assessment) -> tuple[Missed, ...]:
    """Constraints of the design that the estimate does not meet, the worst first by ratio to its
    limit."""
    out = [m for row in CONSTRAINTS.values() if (m := _missed(assessment, row)) is not None]
    out += [*_overlapping_saves(assessment.endurance)]
    return tuple(sorted(out, key=lambda m: -m.gap))


def value_of(assessment: Assessment, row: Constraint) -> float | None:
    """The figure that answers a constraint, in the unit of its field; None where there is none."""
    power = row.field == "max_power_mw"
    value = _power_w(assessment) if power else attrgetter(row.figure)(assessment)
    known = value is not None and not math.isnan(value)
    return float(value) / row.scale if known else None


def _power_w(assessment) -> float:
    """Power of all devices that are paid for, with the site's overhead. [W]"""
    cluster, pue = assessment.resolved.cluster, assessment.resolved.prices.pue
    paid = cluster.devices + float(assessment.endurance.spares) * cluster.devices_per_node
    return float(power_w(cluster, paid, pue=PUE if pue is None else pue))


def _missed(assessment, row: Constraint) -> Missed | None:
    limit = getattr(assessment.resolved.constraints, row.field)
    if limit is None:
        return None
    if row.field == "survive":
        return _not_survived(assessment.endurance, limit)
    value, limit = value_of(assessment, row), float(limit)
    if value is None or (
        value <= limit * (1 + EDGE) if row.ceiling else value >= limit * (1 - EDGE)
    ):
        return None
    said = {
        "value": show(row.figure, value * row.scale),
        "limit": show(row.figure, limit * row.scale),
    }
    chance = _chance(assessment, row, limit / value if row.ceiling else value / limit)
    text = row.missed.format(**said)
    if row.field in DETAILS:
        text += DETAILS[row.field](assessment, limit, value)
    return Missed(
        row.field,
        limit,
        value,
        chance,
        text,
    )


def _chance(
    assessment,
    row: Constraint,
    room: float,
) -> float | None:
    """The chance within the band that a figure meets its limit; `room`: the factor that is left to
    what it grows with."""
    if not row.band:
        return None
    low, mid, high = (getattr(assessment, row.band + end) for end in ("_low", "", "_high"))
    return chance_below(
        room,
        low / mid,
        1.0,
        high / mid,
    )


def _chance_said(
    assessment,
    row: Constraint,
    room: float,
) -> str:
    chance = max(_chance(assessment, row, room), LEAST_CHANCE)
    return say("chance", chance=chance)


def _late(
    assessment,
    limit: float,
    value: float,
) -> str:
    """How late a run is, the chance that it is not, and the MFU that would be needed (of one phase
    alone)."""
    late = value / limit
    chance = _chance_said(assessment, CONSTRAINTS["deadline_days"], 1 / late)
    text = say("late", late=late) + chance
    if len(assessment.phases) > 1:
        return text
    within = assessment.mfu_causal * late < 1
    return text + say("late-mfu" if within else "late-never", mfu=assessment.mfu * late)


def _dear(
    assessment,
    limit: float,
    value: float,
) -> str:
    """The chance that a budget holds, and the price of a device-hour that meets it."""
    price = assessment.cost.usd_per_device_hour
    chance = _chance_said(assessment, CONSTRAINTS["budget_usd"], limit / value)
    return chance + (
        say(
            "price",
            needed=price * limit / value,
            price=price,
        )
        if price
        else ""
    )


def _slow(
    assessment,
    limit: float,
    value: float,
) -> str:
    """The band of the MFU, where the floor lies against it, and the chance that it is met."""
    gap = limit / assessment.mfu_high - 1
    return (
        say(
            "slow",
            a=assessment,
            limit=limit,
        )
        + say("slow-above" if gap > 0 else "slow-inside", gap=gap)
        + _chance_said(assessment, CONSTRAINTS["min_mfu"], value / limit)
    )


DETAILS = {
    "deadline_days": _late,
    "budget_usd": _dear,
    "min_mfu": _slow,
}


def _not_survived(endurance, domain: str) -> Missed | None:
    """The loss of a domain needs copies outside it and, for a node or a rack, as many spare
    nodes."""
    if endurance.copies_survive == "process":
        text = CONSTRAINTS["survive"].missed.format(limit=domain)
        return Missed(
            "survive",
            domain,
            "process",
            None,
            text,
        )
    spares, needed = int(endurance.spares), int(endurance.domain_nodes.get(domain, 0))
    if spares >= needed or domain not in DOMAINS_OF_SPARES:
        return None
    text = say(
        "not-survived",
        domain=domain,
        spares=spares,
        needed=needed,
    )
    return Missed(
        "survive",
        domain,
        spares,
        None,
        text,
    )


def _overlapping_saves(endurance) -> list[Missed]:
    """A save that is not durable when the next one begins."""
    period = float(endurance.checkpoint_interval_s + endurance.checkpoint_stall_s)
    durable = float(endurance.checkpoint_durable_s)
    if durable <= period * (1 + EDGE):
        return []
    writes, needed = endurance.write_bytes_per_s / 1e9, endurance.write_bytes_per_s_needed / 1e9
    text = say(
        "overlapping",
        durable=durable,
        period=period,
        writes=writes,
        needed=needed,
    )
    return [
        Missed(
            "reliability.checkpoint_interval_s",
            period,
            durable,
            None,
            text,
        )
    ]
