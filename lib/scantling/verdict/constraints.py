"""Which of a design's constraints the estimate misses, by how much, and with what chance."""

from collections.abc import Callable, Mapping
from math import erf, inf, isnan, log, sqrt

from ..base.plugins import Table
from ..base.records import Known, get
from ..base.show import chance as chance_text, share
from ..design.constraints import CONSTRAINTS, Constraint
from ..endure.cost import PUE, Z80, power_w
from ..endure.elastic import STANDS
from ..endure.reliability import GOES_ON, Endurance
from .assessment import Assessment, Missed
from .result import StatedConstraint

EDGE = 1e-9  # share of a limit within which a value meets it
LEAST_CHANCE = 1e-9


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
    stated = assessment.resolved.constraints.stated()
    misses = [
        _missed(assessment, row, stated[field])
        for field, row in CONSTRAINTS.items()
        if field in stated
    ]
    misses.append(_overlapping_saves(assessment.endurance))
    return tuple(sorted((m for m in misses if m is not None), key=lambda m: -m.gap))


def value_of(assessment: Assessment, row: Constraint) -> Known:
    """The figure that answers a constraint, in the unit of its field; None where there is none."""
    formula = FORMULAS.get(row.field)
    if formula is not None:
        value = formula(assessment)
    else:
        section, _, name = row.figure.rpartition(".")
        value = get(vars(assessment)[section] if section else assessment, name)
    return None if value is None or isnan(value) else float(value) / row.scale


def _power_w(assessment: Assessment) -> float:
    """Power of all devices that are paid for, with the site's overhead. [W]"""
    cluster = assessment.resolved.cluster
    pue = assessment.resolved.prices.pue
    paid = cluster.devices + assessment.endurance.spares * cluster.devices_per_node
    return float(power_w(cluster, paid, pue=PUE if pue is None else pue))


def _likely_days(assessment: Assessment) -> Known:
    """Days that the run is likely to take."""
    return assessment.likely.days


def _likely_usd(assessment: Assessment) -> Known:
    """Dollars that the run is likely to take."""
    return assessment.likely.cost_usd


# field of a constraint -> what answers it, where that is no number of the assessment itself; a
# constraint from outside enters its formula here
FORMULAS: Mapping[str, Callable[[Assessment], Known]] = Table(
    {"deadline_days": _likely_days, "budget_usd": _likely_usd, "max_power_mw": _power_w},
    group="scantling.constraint_figures",
)


def stated_constraints(assessment: Assessment) -> list[StatedConstraint]:
    """The constraints that a design states, each with the figure that answers it, as people read
    them."""
    failed = {m.field for m in assessment.missed}
    stated = assessment.resolved.constraints.stated()
    return [
        StatedConstraint(
            field=field,
            what=row.name,
            limit=row.shown(stated[field]),
            value=_answer(assessment, row),
            met=field not in failed,
        )
        for field, row in CONSTRAINTS.items()
        if field in stated
    ]


def _answer(assessment: Assessment, row: Constraint) -> str:
    if not row.computed:
        return f"copies survive a {row.shown(assessment.endurance.copies_survive)}"
    return row.shown(value_of(assessment, row))


def _missed(assessment: Assessment, row: Constraint, stated: float | str) -> Missed | None:
    if not row.computed:
        return _not_survived(assessment.endurance, row, str(stated))
    value = value_of(assessment, row)
    limit = float(stated)
    if value is None or _keeps(value, limit, row):
        return None
    chance = chance_of(assessment, row, value, limit)
    text = row.missed(row.shown(value), row.shown(limit))
    return Missed(
        row.field, limit, value, chance, text + _details(assessment, row, limit, value, chance)
    )


def _keeps(value: float, limit: float, row: Constraint) -> bool:
    """Whether a value meets its limit, or misses it by no more than rounding does."""
    if row.ceiling:
        return value <= limit * (1 + EDGE)
    return value >= limit * (1 - EDGE)


def chance_of(assessment: Assessment, row: Constraint, value: float, limit: float) -> Known:
    """The chance that a figure meets its limit: for days and dollars the share of the drawn runs
    that do, else the chance within the band of the step; None where no band applies."""
    if not row.band:
        return None
    if row.promise is not None and assessment.promise is not None:
        return assessment.promise[row.promise]
    have, uses = (limit, value) if row.ceiling else (value, limit)
    room = have / uses if uses else inf  # factor that is left to what the figure grows with
    low, mid, high = _band(assessment, row.band)
    # a price of nothing has no band, and keeps every budget
    return chance_below(room * mid, low, mid, high) if mid else 1.0


def _band(assessment: Assessment, name: str) -> tuple[float, float, float]:
    """(low, estimate, high) of the band that a constraint's figure moves with."""
    a = assessment
    ends: tuple[Known, Known, Known] = a.step_s_low, a.step_s, a.step_s_high
    if name == "days":
        ends = a.days_low, a.days, a.days_high
    elif name == "cost_usd":
        ends = a.cost_usd_low, a.cost_usd, a.cost_usd_high
    low, mid, high = (0.0 if end is None else end for end in ends)
    return low, mid, high


def _details(
    assessment: Assessment, row: Constraint, limit: float, value: float, chance: Known
) -> str:
    """What is said of a missed deadline, budget or MFU beside both figures."""
    probability = f"; probability of meeting it {chance_text(max(chance or 0.0, LEAST_CHANCE))}"
    match row.figure:
        case "likely.days":
            return _late(assessment, value / limit, probability)
        case "likely.cost_usd":
            return probability + _dear(assessment, limit, value)
        case "mfu_shown":
            return _slow(assessment, limit) + probability
    return ""


def _late(assessment: Assessment, times: float, probability: str) -> str:
    """How many times as long a run takes, the chance that it does not, and the MFU that would be
    needed (of one phase alone)."""
    text = f", {times:.2f} times as long{probability}"
    if len(assessment.phases) > 1:
        return text
    if assessment.mfu_causal * times < 1:
        needed = share(assessment.mfu_shown * times)
        return f"{text}; these devices would have to reach MFU {needed}"
    return f"{text}; more than these devices can do at their peak"


def _dear(assessment: Assessment, limit: float, value: float) -> str:
    """The price of a device-hour that meets a budget."""
    price = assessment.cost and assessment.cost.usd_per_device_hour
    if not price:
        return ""
    needed = price * limit / value
    return f"; a device-hour would have to cost ${needed:.3g} instead of ${price:.3g}"


def _slow(assessment: Assessment, limit: float) -> str:
    """The band of the MFU, and where the floor lies against it."""
    low, high = assessment.mfu_shown_low, assessment.mfu_shown_high
    points = 100 * (limit - high)
    place = f"{points:.3g} points above the upper end of" if points > 0 else "inside"
    band = f"{share(low)} to {share(high)}"
    return f" ({band}), {share(limit)} asked for; the floor lies {place} the band"


def _not_survived(endurance: Endurance, row: Constraint, domain: str) -> Missed | None:
    """The loss of a domain needs copies outside it and as many nodes that stand by (spares, and
    nodes that the plan leaves idle), or, for a pod, replicas beyond it that go on without it."""
    if endurance.copies_survive == "process":
        text = row.missed("process", domain)
        return Missed(row.field, domain, "process", None, text)
    standing_by = int(endurance.segments.nodes(endurance.life.spares))
    needed = int(endurance.domain_nodes.get(domain, 0))
    if standing_by >= needed or _shrinks_past(endurance, domain, needed):
        return None
    text = (
        f"losing a {domain} leaves the job waiting for repair: {standing_by:,} nodes stand by, "
        f"{needed:,} needed"
    )
    if domain == "pod" and needed >= endurance.domain_nodes["job"]:
        text += "; the pod holds the whole job: only a second machine of its size outlives it"
    return Missed(row.field, domain, standing_by, None, text)


def _shrinks_past(endurance: Endurance, domain: str, lost: int) -> bool:
    """Whether the run goes on without a lost pod: it shrinks, and whole gangs of replicas stand
    outside."""
    gang = endurance.life.gang
    if domain != "pod" or endurance.recovery not in GOES_ON or gang is None:
        return False
    ratios = gang.ratios
    gone = -(-lost // gang.nodes)
    return gone < gang.replicas and (ratios is None or ratios[gone] < STANDS)


def _overlapping_saves(endurance: Endurance) -> Missed | None:
    """A save that is not durable when the next one begins."""
    period = float(endurance.checkpoint_interval_s + endurance.checkpoint_stall_s)
    durable = float(endurance.checkpoint_durable_s)
    if durable <= period * (1 + EDGE):
        return None
    writes = endurance.write_bytes_per_s / 1e9
    needed = endurance.write_bytes_per_s_needed / 1e9
    text = (
        f"a save takes {durable:,.0f} s to be durable, the next one begins after {period:,.0f} s; "
        f"the store writes {writes:,.1f} GB/s, the interval needs {needed:,.1f} GB/s"
    )
    return Missed("checkpoint.interval_s", period, durable, None, text)
