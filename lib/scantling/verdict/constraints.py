"""Which of a design's constraints the estimate misses, by how much, and with what chance."""

from math import erf, inf, isnan, log, sqrt
from operator import attrgetter

from ..base.plugins import Table
from ..base.records import Known
from ..design.constraints import CONSTRAINTS, Constraint
from ..endure.cost import PUE, power_w
from .record import Assessment, Missed
from .words import say

Z80 = 1.2815515655446004  # standard normal quantile of 0.9
EDGE = 1e-9  # share of a limit within which a value meets it
LEAST_CHANCE = 1e-9
DOMAINS_OF_SPARES = ("node", "rack")  # a lost pod is waited for, or the job shrinks (`elastic`)


def chance_below(limit: float, low: float, mid: float, high: float) -> float:
    """Probability that a log-normal with 80 % band [low, high] around mid stays below limit; each
    side with its own width."""
    if limit <= 0:
        return 0.0
    side = log(high / mid) if limit > mid else log(mid / low)
    if side <= 0:
        return float(limit >= mid)
    return 0.5 * (1 + erf(log(limit / mid) / (side / Z80) / sqrt(2)))


def missed(assessment: Assessment) -> tuple[Missed, ...]:
    """Constraints of the design that the estimate does not meet, the worst first by ratio to its
    limit."""
    out = [_missed(assessment, row) for row in CONSTRAINTS.values()]
    out.append(_overlapping_saves(assessment.endurance))
    return tuple(sorted(filter(None, out), key=lambda m: -m.gap))


def value_of(assessment: Assessment, row: Constraint) -> Known:
    """The figure that answers a constraint, in the unit of its field; None where there is none."""
    value = FORMULAS.get(row.field, attrgetter(row.figure))(assessment)
    known = value is not None and not isnan(value)
    return float(value) / row.scale if known else None


def _power_w(assessment) -> float:
    """Power of all devices that are paid for, with the site's overhead. [W]"""
    cluster = assessment.resolved.cluster
    pue = assessment.resolved.prices.pue
    return float(
        power_w(
            cluster,
            cluster.devices + assessment.endurance.spares * cluster.devices_per_node,
            pue=PUE if pue is None else pue,
        )
    )


# field of a constraint -> what answers it, where that is no number of the assessment itself
FORMULAS = Table({"max_power_mw": _power_w}, group="scantling.constraint_figures")


def asked(assessment: Assessment) -> list[dict]:
    """The constraints that a design states, each with the figure that answers it, as people read
    them: [{field, what, limit, value, met}]."""
    failed = {m.field for m in assessment.missed}
    stated = assessment.resolved.constraints.given()
    return [
        {
            "field": field,
            "what": row.name,
            "limit": row.shown(stated[field]),
            "value": _answer(assessment, row),
            "met": field not in failed,
        }
        for field, row in CONSTRAINTS.items()
        if field in stated
    ]


def _answer(assessment, row: Constraint) -> str:
    if row.field == "survive":
        return f"copies survive a {row.shown(assessment.endurance.copies_survive)}"
    return row.shown(value_of(assessment, row))


def _missed(assessment, row: Constraint) -> Missed | None:
    limit = getattr(assessment.resolved.constraints, row.field)
    if limit is None:
        return None
    if row.field == "survive":
        return _not_survived(assessment.endurance, limit)
    value = value_of(assessment, row)
    limit = float(limit)
    if value is None or (
        value <= limit * (1 + EDGE) if row.ceiling else value >= limit * (1 - EDGE)
    ):
        return None
    chance = chance_of(assessment, row, value, limit)
    text = row.missed.format(value=row.shown(value), limit=row.shown(limit))
    if row.field in DETAILS:
        text += DETAILS[row.field](
            assessment, limit, value, say("chance", chance=max(chance, LEAST_CHANCE))
        )
    return Missed(row.field, limit, value, chance, text)


def chance_of(assessment, row: Constraint, value: float, limit: float) -> Known:
    """The chance within the band that a figure meets its limit; None where no band applies."""
    if not row.band:
        return None
    have, uses = (limit, value) if row.ceiling else (value, limit)
    room = have / uses if uses else inf  # factor that is left to what the figure grows with
    low, mid, high = (getattr(assessment, row.band + end) for end in ("_low", "", "_high"))
    # a price of nothing has no band, and keeps every budget
    return chance_below(room * mid, low, mid, high) if mid else 1.0


def _late(assessment, limit: float, value: float, chance: str) -> str:
    """How late a run is, the chance that it is not, and the MFU that would be needed (of one phase
    alone)."""
    late = value / limit
    text = say("late", late=late) + chance
    if len(assessment.phases) > 1:
        return text
    within = assessment.mfu_causal * late < 1
    return text + say("late-mfu" if within else "late-never", mfu=assessment.mfu_shown * late)


def _dear(assessment, limit: float, value: float, chance: str) -> str:
    """The chance that a budget holds, and the price of a device-hour that meets it."""
    price = assessment.cost.usd_per_device_hour
    if not price:
        return chance
    return chance + say("price", needed=price * limit / value, price=price)


def _slow(assessment, limit: float, value: float, chance: str) -> str:
    """The band of the MFU, where the floor lies against it, and the chance that it is met."""
    gap = 100 * (limit - assessment.mfu_shown_high)
    return (
        say("slow", a=assessment, limit=limit)
        + say("slow-above" if gap > 0 else "slow-inside", gap=gap)
        + chance
    )


DETAILS = {"deadline_days": _late, "budget_usd": _dear, "min_mfu": _slow}


def _not_survived(endurance, domain: str) -> Missed | None:
    """The loss of a domain needs copies outside it and, for a node or a rack, as many spare
    nodes."""
    if endurance.copies_survive == "process":
        text = CONSTRAINTS["survive"].missed.format(limit=domain)
        return Missed("survive", domain, "process", None, text)
    spares = endurance.spares
    needed = endurance.domain_nodes.get(domain, 0)
    if spares >= needed or domain not in DOMAINS_OF_SPARES:
        return None
    text = say("not-survived", domain=domain, spares=spares, needed=needed)
    return Missed("survive", domain, int(spares), None, text)


def _overlapping_saves(endurance) -> Missed | None:
    """A save that is not durable when the next one begins."""
    period = endurance.checkpoint_interval_s + endurance.checkpoint_stall_s
    durable = endurance.checkpoint_durable_s
    if durable <= period * (1 + EDGE):
        return None
    text = say("overlapping", e=endurance, period=period, durable=durable)
    return Missed("checkpoint.interval_s", period, durable, None, text)
