"""Nearest fixes: the smallest changes to a design that meet what it asks for, each assessed before
it is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, product
from math import inf, log

from ..design.constraints import CONSTRAINTS, Remedy
from ..plans.batch import WORTH_A_BATCH
from ..plans.space import COARSE
from ..verdict.assess import changed
from ..verdict.assessment import Assessment
from ..verdict.constraints import value_of
from ..verdict.result import FixRow, TrialRow
from ..verdict.sensible import LARGEST, MORE_DEVICES, nearest, sensible
from .candidates import (
    WHOLE,
    Misses,
    answered_by,
    device_change,
    every_chip,
    helped,
    misses,
    pins_let_go,
    plan_changes,
    recovery_changes,
    relaxation,
    relaxations,
    site_changes,
    whole_plan_open,
)
from .changes import Change, all_of
from .saving import fewer_devices
from .trials import Trials, Tried
from .why import pinned_loss

MOST = 8
CHEAPEST = 5
LARGE = 6.0  # effort above which pairs of changes are tried too: ten times the devices
CLOSEST = 3  # changes shown that help and do not suffice, where none suffices
PAIRED = 6  # changes that are tried in pairs
CURES = 3  # changes that meet one constraint alone and are tried with those of the others
CLEARLY = 1.05  # times the cost of all others from which a change is the dearest
WORTH_SHOWING = 0.2  # share of the gap that such a change closes, where there is one that does
DEAR = 1.5  # times today's days or dollars from which a change that closes less is not shown
HARDLY = 1.05  # times the gap of before within which a constraint is missed by hardly more
CLOSER = 0.005  # least that a gap shrinks by
SAVED = 0.005  # share of the cost that a cheaper change saves at least
FEWER_DEVICES = (0.875, 0.75, 0.5, 0.25)
STEPS = 7  # of the ladder where a plan fits already


def fixes(assessment: Assessment, tried: Trials | None = None) -> list[FixRow]:
    """Changes that keep what is asked for, with their verdict, feasible ones first, in the order of
    how little they change: [{change, set, verdict, missed, days, cost_usd, mfu, devices}].

    `set` are dotted paths and values for `Design.change`; applying it gives the verdict shown.
    `missed` lists what such a design still misses. Where none makes the design feasible, the
    changes that come closest are listed. The dearest never comes first. A feasible design has those
    that put its idle devices to work. Empty where nothing helps (then `can_do`).
    tried : `tries(assessment)`, where it is at hand.
    """
    tried = tries(assessment) if tried is None else tried
    before = tried.before
    helpful = [t for t in tried if _helps(before, t) and not t.change.gives_way]
    by = _seconds_a_sequence if assessment.verdict == "feasible" else _effort
    feasible = sorted((t for t in helpful if t.feasible), key=by)
    feasible = _one_each(_worth(feasible, before.resolved.cluster.devices))
    feasible = [t for t in tried.verified(feasible, MOST) if _helps(assessment, t)]
    if feasible:
        return [t.fix() for t in _dearest_not_first(feasible)]
    rest = _one_each(sorted(helpful, key=lambda t: _distance(before, t)))
    rest = [t for t in rest if _nearer(before, t)] or [t for t in rest if not _dear(before, t)][:1]
    rest = [t for t in tried.verified(rest, CLOSEST) if _helps(assessment, t)]
    return [t.fix() for t in sorted(rest, key=lambda t: not t.feasible)]


def can_do(assessment: Assessment, tried: Trials | None = None) -> list[FixRow]:
    """What this cluster can do of what is asked for: rows as of `fixes` in which a constraint,
    the tokens or the sequence gives way, the one that gives up least first."""
    tried = tries(assessment) if tried is None else tried
    able = [t for t in tried if t.change.gives_way and t.feasible and not assessment.met]
    return [t.fix() for t in tried.verified(_one_each(sorted(able, key=_effort)))]


def _dearest_not_first(tried: list[Tried]) -> list[Tried]:
    """The first one moved down until one that costs no less stands after it."""
    costs = [t.result.cost_usd for t in tried]
    known = [cost for cost in costs if cost is not None]
    if len(tried) < 2 or len(known) < len(costs) or known[0] < CLEARLY * max(known[1:]):
        return tried
    first, second, *others = tried
    return [second, first, *others]


def singles(tried: Iterable[Tried]) -> list[TrialRow]:
    """What every single change that was tried and fits comes to: [{change, verdict, mfu, days,
    cost_usd, devices}]."""
    return [
        t.row()
        for t in tried
        if t.fits
        and not t.change.gives_way
        and not (t.change.kind and "cluster.devices" in t.change.set)
    ]


def cheaper(assessment: Assessment, any_chip: bool = False) -> list[FixRow]:
    """Changes to a feasible design that likely cost less and take no longer (or stay within its
    deadline): same rows as `fixes`, cheapest first. any_chip : every other chip that ships and
    has a price is tried too.

    Empty without tokens or a price.
    """
    now = assessment.likely
    if not assessment.met or now.cost_usd is None or now.days is None:
        return []
    deadline = assessment.resolved.constraints.deadline_days
    latest = now.days * 1.0001 if deadline is None else deadline
    tried = Trials(assessment)
    tried.judge((*plan_changes(assessment), *site_changes(assessment)))
    if any_chip:
        tried.judge(every_chip(assessment.resolved.cluster))
    fewer_devices(tried)
    able = [t for t in tried if t.feasible and t.result.cost_usd is not None]
    able = tried.verified(sorted(able, key=_cost), 2 * CHEAPEST)
    less = [t for t in able if _days(t) <= latest and _cost(t) < now.cost_usd * (1 - SAVED)]
    return [t.fix() for t in sorted(less, key=_cost)[:CHEAPEST]]


def _cost(t: Tried) -> float:
    return t.result.likely.cost_usd or 0.0


def _days(t: Tried) -> float:
    return t.result.likely.days or 0.0


def tries(assessment: Assessment, others: Trials | None = None) -> Trials:
    """Every change that is tried on a design that is not feasible, each once: real changes alone,
    device counts, pairs where no small change suffices, one change for each missed constraint
    together, and giving way. `others`: as of `Trials`."""
    tried = Trials(assessment, others)
    if assessment.verdict in ("feasible", "not-checked"):
        if assessment.devices_used < assessment.resolved.cluster.devices:
            tried.judge(change for change in site_changes(assessment) if change.kind == WHOLE)
        if pinned_loss(assessment) is not None:
            tried.judge(pins_let_go(assessment))
        return tried
    alone = chain(plan_changes(assessment), site_changes(assessment), recovery_changes(assessment))
    tried.judge(sorted(alone, key=lambda change: change.effort))
    if assessment.met:  # at risk: single changes that take the risk away
        return tried
    tried.judge(relaxations(assessment))
    _ladder(tried)
    if not any(t.feasible and t.change.effort < LARGE and not t.change.gives_way for t in tried):
        _pairs(tried)
    _together(tried)
    return tried


def _try_devices(tried: Trials, count: float, *also: Change) -> bool:
    """Whether about so many devices are feasible without risk, with these changes."""
    cluster = tried.assessment.resolved.cluster
    whole = cluster.counted(count)
    if whole == cluster.devices or whole > LARGEST:
        return False
    return tried.tried(all_of(*also, device_change(tried.assessment, whole))).safe


def _fewer(tried: Trials) -> None:
    """Fewer of the same devices."""
    for share in FEWER_DEVICES:
        _try_devices(tried, share * tried.assessment.resolved.cluster.devices)


def _ladder(tried: Trials) -> None:
    """The fewest more, or the least fewer, devices that are feasible without risk; of a design past
    a limit of sense the ones that its limits name."""
    assessment = tried.before
    enough = sensible(tried.assessment)
    if "dp" in assessment.design.plan.stated():
        return
    if enough:
        _try_devices(tried, enough.devices_used)
        return
    cluster, scales = assessment.resolved.cluster, _scales(assessment)
    nearest(cluster, scales, partial(_try_devices, tried))
    if not assessment.fits and assessment.design.plan.stated():
        # pins that do not fit may ask for more devices than the model does
        freed = replace(whole_plan_open(assessment), kind="open plan")
        nearest(cluster, scales, lambda count: _try_devices(tried, count, freed))


def _scales(assessment: Assessment) -> Sequence[float]:
    """Times today's devices that are tried: more where a plan has to fit or to be done in time,
    fewer where these help."""
    missed = misses(assessment)
    late = answered_by(missed, "likely.days")
    cluster = assessment.resolved.cluster
    if not assessment.fits:
        # fewer devices hold no more than the most: where those hold nothing no rung does
        most = cluster.counted(min(cluster.devices * MORE_DEVICES[-1], LARGEST))
        last_rung = changed(assessment.design, {"cluster.devices": most}, space=COARSE)
        return MORE_DEVICES if last_rung and last_rung.fits else ()
    if late:
        least = 0.8 * float(late[0].value) / float(late[0].limit)
        return [scale for scale in MORE_DEVICES if scale >= least][:STEPS]
    return FEWER_DEVICES if helped(missed, Remedy.FEWER_DEVICES) else ()


def _pairs(tried: Trials) -> None:
    """Two changes of different kinds at once, where no single one suffices: those that alone help
    most, each with each, and with more devices."""
    assessment = tried.before
    helpful = [
        t
        for t in tried
        if t.fits
        and not t.change.gives_way
        and not t.change.counts_devices
        and _helps(assessment, t)
    ]
    best: dict[frozenset[str], Change] = {}
    for t in sorted(helpful, key=lambda t: _distance(assessment, t)):
        best.setdefault(frozenset(t.change.set), t.change)
    leading = [*best.values()][:PAIRED]
    for one, other in combinations(leading, 2):
        if not one.set.keys() & other.set.keys():
            tried.tried(all_of(one, other))
    if "dp" in assessment.design.plan.stated():
        return
    alone = [c for c in site_changes(assessment) if c.kind in ("chip", "precision")]
    scales = (1.5, 2, 4) if assessment.fits else (2, 4, 16, 64)
    for change in leading[:3] or alone[:3]:
        if "cluster.devices" in change.set:
            continue
        for scale in scales:
            if _try_devices(tried, assessment.resolved.cluster.devices * scale, change):
                break


def _together(tried: Trials) -> None:
    """Where several constraints are missed: the changes that meet each of them alone, all of these
    at once, every choice of CURES for each; and giving way on what the best choice leaves."""
    missed = misses(tried.before)
    if not tried.before.fits or len(missed) < 2:
        return
    cures = [changes for name in missed if (changes := _cures(tried, name))]
    joint = []
    for choice in product(*cures):
        parts = {part.key: part for part in choice}.values()
        both = all_of(*parts)
        if both.set and len(both.set) == sum(len(part.set) for part in parts):
            t = tried.tried(both)
            if t.fits and _hardly_worse(missed, misses(t.result)):
                joint.append(t)
    if not joint:
        return
    best = min(joint, key=lambda t: (len(t.result.missed), t.change.effort))
    after = best.result
    relaxations = [relaxation(after, name) for name in misses(after)]
    relaxed = [change for change in relaxations if change is not None]
    if len(relaxed) == len(relaxations):
        tried.tried(all_of(best.change, *relaxed))


def _cures(tried: Trials, name: str) -> list[Change]:
    """Changes tried that meet one of the missed constraints without missing a new one, the smallest
    of each kind first; fewer devices where they were not tried."""
    missed = misses(tried.before)

    def cured() -> list[Tried]:
        return [
            t
            for t in tried
            if t.fits
            and not t.change.gives_way
            and name not in misses(t.result)
            and misses(t.result).keys() <= missed.keys()
        ]

    row = CONSTRAINTS.get(name)
    spends = row is not None and row.figure in ("cost.power_w", "likely.cost_usd")
    if not cured() and spends:
        _fewer(tried)
    changes = [t.change for t in sorted(cured(), key=_effort)]
    fields = [frozenset(change.set) for change in changes]
    before = [fields[:i].count(own) for i, own in enumerate(fields)]  # smaller ones of its kind
    order = sorted(range(len(changes)), key=lambda i: (before[i], i))
    return [changes[i] for i in order[:CURES]]


def _hardly_worse(before: Misses, after: Misses) -> bool:
    """Nothing new is missed, and nothing by more than hardly more."""
    if not after.keys() <= before.keys():
        return False
    return all(after[name].gap <= HARDLY * before[name].gap for name in after)


def _helps(assessment: Assessment, t: Tried) -> bool:
    """It is feasible now, or fits now; or nothing new is missed, and what is missed is fewer (and
    hardly farther) or nearer to its limit."""
    if assessment.met:
        return _betters(assessment, t)
    if t.feasible or not t.fits:
        return t.feasible
    if not assessment.fits:
        return True
    if not assessment.missed:
        return False
    before = misses(assessment)
    after = misses(t.result)
    if not after.keys() <= before.keys():
        return False
    if len(after) < len(before) and _hardly_worse(before, after):
        return True
    return all(after[name].gap < before[name].gap - CLOSER for name in after)


def _betters(assessment: Assessment, t: Tried) -> bool:
    """A design that may be run is better for it: without risk now, or clearly faster a step, and
    done no later: devices that stand idle are spares, which a plan on all of them has not."""
    if not t.safe:
        return False
    if assessment.verdict != "feasible":
        return True
    now, then = assessment.likely.days, t.result.likely.days
    if now is not None and then is not None and then > now:
        return False
    return _seconds_a_sequence(t) <= (1 - WORTH_A_BATCH) * _sequence_s(assessment)


def _nearer(assessment: Assessment, t: Tried) -> bool:
    """Whether a change that does not suffice meets one constraint more, or closes a share
    WORTH_SHOWING of the gap to an MFU floor, deadline or budget."""
    if not assessment.fits or len(t.result.missed) < len(assessment.missed):
        return True
    for miss in assessment.missed:
        value = value_of(t.result, CONSTRAINTS[miss.field]) if miss.banded else None
        if value is not None:
            before, limit = float(miss.value), float(miss.limit)
            if log(value / before) / log(limit / before) >= WORTH_SHOWING:
                return True
    return False


def _dear(assessment: Assessment, t: Tried) -> bool:
    """Whether a change takes DEAR times the days or dollars of today's design."""
    now, then = assessment.likely, t.result.likely
    pairs = ((now.days, then.days), (now.cost_usd, then.cost_usd))
    return any(a and b and b >= DEAR * a for a, b in pairs)


def _effort(t: Tried) -> float:
    return t.change.effort


def _seconds_a_sequence(t: Tried) -> float:
    return _sequence_s(t.result)


def _sequence_s(assessment: Assessment) -> float:
    """Time of a step for each of its sequences. [s]"""
    return assessment.step_s / assessment.resolved.main_phase.global_batch


def _distance(assessment: Assessment, t: Tried) -> tuple[int, float, float]:
    """Fewest constraints missed, then the best MFU (or the fewest days or dollars), then the least
    effort."""
    missed = misses(assessment)
    after = t.result
    if answered_by(missed, "mfu_shown") or after.days is None:
        by = -after.mfu
    elif answered_by(missed, "likely.cost_usd"):
        by = after.cost_usd or 0.0
    else:
        by = after.days
    return len(after.missed), by, t.change.effort


def _one_each(tried: Sequence[Tried]) -> list[Tried]:
    """The first of each kind (device counts, chips, fabrics), one without risk where there is one;
    what is of no kind stays."""
    first: dict[str, Tried] = {}
    for t in sorted(tried, key=lambda t: not t.safe):
        kind = t.change.kind or ("devices" if t.change.counts_devices else t.change.key)
        first.setdefault(kind, t)
    leading = {id(t) for t in first.values()}
    return [t for t in tried if id(t) in leading]


def _worth(tried: Iterable[Tried], have: int) -> list[Tried]:
    """Without more devices than `have` that finish no sooner than a smaller change on those."""
    best = inf
    worth = []
    for t in tried:
        days = t.result.days or inf
        counts = t.change.counts_devices
        if not counts or t.result.devices_used < have or days <= best:
            worth.append(t)
        if not (counts or t.change.gives_way or "cluster.accelerator" in t.change.set):
            best = min(best, days)
    return worth
