"""Nearest fixes: the smallest changes to a design that meet what it asks for, each assessed before
it is shown."""

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import chain, combinations, islice, product
from math import inf, log, log2

from ..base.quantities.table import show
from ..base.records import record
from ..design.constraints import CONSTRAINTS
from ..plans.space import COARSE, DEFAULT
from ..verdict.assess import changed
from ..verdict.constraints import value_of
from ..verdict.limits import WORTH_A_BATCH
from ..verdict.record import Assessment
from ..verdict.sensible import MORE_DEVICES, nearest, sensible
from ..verdict.unpublished import gone
from .moves import (
    Change,
    all_of,
    misses,
    move,
    plan_changes,
    recovery_changes,
    relaxation,
    relaxations,
    site_changes,
)

MOST = 8
CHEAPEST = 5
# legal plans that a design and its changes may cost: some five seconds of a core, fifteen where the
# layers of a model differ
WORK = 2_500_000
VERIFIED = 3_100_000  # the same, with what is shown looked at in the whole space
EACH = 15_000  # plans in the time that one assessment takes beside its search
LARGE_SEARCH = 50_000  # legal plans of a design from which its changes are tried coarsely
LARGE = 6.0  # effort above which pairs of changes are tried too: ten times the devices
CLOSEST = 3  # changes shown that help and do not suffice, where none suffices
PAIRED = 6  # changes that are tried in pairs
CURES = 3  # changes that meet one constraint alone and are tried with those of the others
CLEARLY = 1.05  # times the cost of all others from which a change is the dearest
WORTH_SHOWING = 0.2  # share of the gap that such a change closes, where there is one that does
HARDLY = 1.05  # times the gap of before within which a constraint is missed by hardly more
CLOSER = 0.005  # least that a gap shrinks by
WHOLE = "whole batch"  # kind of the changes that put idle devices to work
FEWER_DEVICES = (0.875, 0.75, 0.5, 0.25)
STEPS = 7  # of the ladder where a plan fits already
LARGEST = 2_000_000  # devices: more is no fix
FEWER_HELPS = ("budget_usd", "min_mfu", "max_power_mw", "min_goodput", "max_checkpoint_overhead")


@record
class Tried:
    """A change and the assessment after it, None where the design does not allow it."""

    change: Change
    after: Assessment | None

    @property
    def fits(self) -> bool:
        return self.after is not None and self.after.fits

    @property
    def feasible(self) -> bool:
        return self.after is not None and self.after.met

    @property
    def safe(self) -> bool:
        """Feasible, and not at risk."""
        return self.after is not None and self.after.verdict == "feasible"

    @property
    def counts_devices(self) -> bool:
        """True where nothing but the number of devices changes."""
        return set(self.change.set) == {"cluster.devices"}

    def row(self) -> dict:
        """Change, verdict, MFU, days, dollars and devices as plain values."""
        change = self.change
        after = self.after
        text = change.text
        if "job.precision" in change.set:  # a share of another peak: say it of the common one too
            peak = show("mfu", after.mfu_bf16_peak)
            text = text.replace("(", f"({peak} of the bf16 peak; ", 1)
        if after.plan["offload"] != "none" and "plan.offload" not in change.set:
            text += f", {gone(after.chosen)}"
        return {
            "change": text,
            **after.figures("verdict", "mfu", "mfu_shown", "days", "cost_usd"),
            "devices": after.resolved.cluster.devices,
        }

    def fix(self) -> dict:
        """The row with the fields that are set and what is still missed."""
        return self.row() | {"set": self.change.set, "missed": [m.text for m in self.after.missed]}


class Trials:
    """Changes of one design, each tried once, until WORK legal plans have been looked at: what
    comes after that is in `left`. Changes of a design with LARGE_SEARCH legal plans or more are
    tried in the coarse space, from a coarse assessment (`before`); whoever shows one has it
    `verified`."""

    def __init__(self, assessment: Assessment):
        legal = sum(one.found.legal for one in assessment.phases)
        self.assessment = assessment
        self.spent = legal
        self.seen: dict[str, Tried] = {}
        self.left: list[Change] = []
        self.space = COARSE if legal > LARGE_SEARCH else DEFAULT

    @cached_property
    def before(self) -> Assessment:
        """The design as it is, in the space that its changes are tried in."""
        if self.space is DEFAULT:
            return self.assessment
        coarse = self._after({}, COARSE, None)
        return coarse if coarse.fits == self.assessment.fits else self.assessment

    def _after(self, set: dict, space, like: Assessment | None) -> Assessment | None:
        after = changed(self.assessment.design, set, space=space, like=like)
        kept = {id(one.found.reason) for one in like.phases} if like else ()
        found = [one.found for one in after.phases] if after else ()
        self.spent += EACH + sum(f.legal for f in found if id(f.reason) not in kept)
        return after

    def tried(self, change: Change) -> Tried:
        """The assessment after one change."""
        key = change.key
        if key not in self.seen:
            if self.spent > WORK:
                self.left.append(change)
                return Tried(change=change, after=None)
            whole = change.gives_way or self.space is DEFAULT
            near = (DEFAULT, self.assessment) if whole else (COARSE, self.before)
            self.seen[key] = Tried(change=change, after=self._after(change.set, *near))
        return self.seen[key]

    def all(self, changes: Iterable) -> None:
        """Try every one of the changes."""
        for change in changes:
            self.tried(change)

    def verified(self, rows: Iterable, most: int | None = None) -> list:
        """The first `most` rows that hold in the whole space too, as long as WORK lasts twice."""
        return [*islice(self._holding(rows), most)]

    def _holding(self, rows: Iterable) -> Iterator:
        for t in rows:
            if self.space is not COARSE:
                yield t
            elif self.spent <= VERIFIED:
                whole = Tried(
                    change=t.change, after=self._after(t.change.set, DEFAULT, self.assessment)
                )
                if whole.fits >= t.fits and whole.feasible >= t.feasible:
                    yield whole

    def __iter__(self):
        return iter(self.seen.values())


def fixes(assessment: Assessment, tried: Trials | None = None) -> list[dict]:
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
    kept = [t for t in tried if _helps(before, t) and not t.change.gives_way]
    by = _sequence_s if assessment.verdict == "feasible" else _effort
    feasible = _one_each(
        _worth(sorted((t for t in kept if t.feasible), key=by), before.resolved.cluster.devices)
    )
    feasible = tried.verified(feasible, MOST)
    if feasible:
        return [t.fix() for t in _dearest_not_first(feasible)]
    rest = _one_each(sorted(kept, key=lambda t: _distance(before, t)))
    rest = [t for t in rest if _nearer(before, t)] or rest[:1]
    rest = tried.verified(rest, CLOSEST)
    return [t.fix() for t in sorted(rest, key=lambda t: not t.feasible)]


def can_do(assessment: Assessment, tried: Trials | None = None) -> list:
    """What this cluster can do of what is asked for: rows as of `fixes` in which a constraint,
    the tokens or the sequence gives way, the one that gives up least first."""
    tried = tries(assessment) if tried is None else tried
    able = [t for t in tried if t.change.gives_way and t.feasible and not assessment.met]
    return [t.fix() for t in tried.verified(_one_each(sorted(able, key=_effort)))]


def _dearest_not_first(tried: list) -> list:
    """The first one moved down until one that costs no less stands after it."""
    costs = [t.after.cost_usd for t in tried]
    if len(tried) < 2 or None in costs or costs[0] < CLEARLY * max(costs[1:]):
        return tried
    first, second, *others = tried
    return [second, first, *others]


def singles(tried: Iterable) -> list:
    """What every single change that was tried and fits comes to: [{change, verdict, mfu, days,
    cost_usd, devices}]."""
    return [
        t.row()
        for t in tried
        if t.fits
        and not t.change.gives_way
        and not (t.change.kind and "cluster.devices" in t.change.set)
    ]


def cheaper(assessment: Assessment) -> list:
    """Changes to a feasible design that cost less and take no longer (or stay within its deadline):
    same rows as `fixes`, cheapest first.

    Empty without tokens or a price.
    """
    if not assessment.met or assessment.cost_usd is None:
        return []
    deadline = assessment.resolved.constraints.deadline_days
    latest = assessment.days * 1.0001 if deadline is None else deadline
    tried = Trials(assessment)
    tried.all((*plan_changes(assessment), *site_changes(assessment)))
    _fewer(tried)
    able = [t for t in tried if t.feasible and t.after.cost_usd is not None]
    able = tried.verified(sorted(able, key=lambda t: t.after.cost_usd), 2 * CHEAPEST)
    less = (
        t for t in able if t.after.days <= latest and t.after.cost_usd < assessment.cost_usd * 0.995
    )
    return [t.fix() for t in sorted(less, key=lambda t: t.after.cost_usd)[:CHEAPEST]]


def tries(assessment: Assessment) -> Trials:
    """Every change that is tried on a design that is not feasible, each once: real changes alone,
    device counts, pairs where no small change suffices, one change for each missed constraint
    together, and giving way."""
    tried = Trials(assessment)
    if assessment.verdict in ("feasible", "not-checked"):
        if assessment.devices_used < assessment.resolved.cluster.devices:
            tried.all(c for c in site_changes(assessment) if c.kind == WHOLE)
        return tried
    alone = chain(*(of(assessment) for of in (plan_changes, site_changes, recovery_changes)))
    tried.all(sorted(alone, key=lambda change: change.effort))
    if assessment.met:  # at risk: single changes that take the risk away
        return tried
    tried.all(relaxations(assessment))
    _ladder(tried)
    if not any(t.feasible and t.change.effort < LARGE and not t.change.gives_way for t in tried):
        _pairs(tried)
    _together(tried)
    return tried


def _try_devices(tried: Trials, count: float, *also: Change) -> bool:
    """Whether about so many devices are feasible without risk, with these changes."""
    whole = tried.assessment.resolved.cluster.whole(count)
    if whole == tried.assessment.resolved.cluster.devices or whole > LARGEST:
        return False
    return tried.tried(all_of(*also, _devices(tried.assessment, whole))).safe


def _fewer(tried: Trials) -> None:
    """Fewer of the same devices."""
    for share in FEWER_DEVICES:
        _try_devices(tried, share * tried.assessment.resolved.cluster.devices)


def _ladder(tried: Trials) -> None:
    """The fewest more, or the least fewer, devices that are feasible without risk; of a design past
    a limit of sense the ones that its limits name."""
    assessment = tried.before
    missed = misses(assessment)
    cluster = assessment.resolved.cluster
    late = missed.get("deadline_days")
    enough = sensible(tried.assessment)
    if "dp" in assessment.design.plan.given():
        return
    if enough:
        _try_devices(tried, enough.devices_used)
        return
    if not assessment.fits:
        scales = MORE_DEVICES
        # fewer devices hold no more than the most: where those hold nothing no rung does
        most = cluster.whole(min(cluster.devices * scales[-1], LARGEST))
        last_rung = changed(assessment.design, {"cluster.devices": most}, space=COARSE)
        if not (last_rung and last_rung.fits):
            return
    elif late:
        scales = [s for s in MORE_DEVICES if s >= 0.8 * late.value / late.limit][:STEPS]
    else:
        scales = FEWER_DEVICES if missed.keys() & FEWER_HELPS else ()
    nearest(cluster, scales, partial(_try_devices, tried))


def _pairs(tried: Trials) -> None:
    """Two changes of different kinds at once, where no single one suffices: those that alone help
    most, each with each, and with more devices."""
    assessment = tried.before
    helpful = [
        t
        for t in tried
        if t.fits and not t.change.gives_way and not t.counts_devices and _helps(assessment, t)
    ]
    best = {}
    for t in sorted(helpful, key=lambda t: _distance(assessment, t)):
        best.setdefault(frozenset(t.change.set), t)
    leading = [t.change for t in best.values()][:PAIRED]
    for one, other in combinations(leading, 2):
        if not one.set.keys() & other.set.keys():
            tried.tried(all_of(one, other))
    if "dp" in assessment.design.plan.given():
        return
    alone = [c for c in site_changes(assessment) if c.kind in ("chip", "precision")]
    for change in leading[:3] or alone[:3]:
        scales = (1.5, 2, 4) if assessment.fits else (2, 4, 16, 64)
        for scale in scales if "cluster.devices" not in change.set else ():
            if _try_devices(tried, assessment.resolved.cluster.devices * scale, change):
                break


def _devices(assessment, count: int) -> Change:
    """So many devices."""
    ratio = count / assessment.resolved.cluster.devices
    return move("devices", {"cluster.devices": count}, abs(log2(ratio)), devices=count, ratio=ratio)


def _together(tried: Trials) -> None:
    """Where several constraints are missed: the changes that meet each of them alone, all of these
    at once, every choice of CURES for each; and giving way on what the best choice leaves."""
    missed = misses(tried.before)
    if not tried.before.fits or len(missed) < 2:
        return
    cures = [found for name in missed if (found := _cures(tried, name))]
    joint = []
    for parts in product(*cures):
        parts = {part.key: part for part in parts}.values()
        both = all_of(*parts)
        if both.set and len(both.set) == sum(len(part.set) for part in parts):
            t = tried.tried(both)
            if t.fits and _hardly_worse(missed, misses(t.after)):
                joint.append(t)
    if not joint:
        return
    best = min(joint, key=lambda t: (len(t.after.missed), t.change.effort))
    given = [relaxation(best.after, name) for name in misses(best.after)]
    if None not in given:
        tried.tried(all_of(best.change, *given))


def _cures(tried: Trials, name: str) -> list:
    """Changes tried that meet one of the missed constraints without missing a new one, the smallest
    first; fewer devices where they were not tried."""
    missed = misses(tried.before)

    def cured():
        return [
            t
            for t in tried
            if t.fits
            and not t.change.gives_way
            and name not in misses(t.after)
            and misses(t.after).keys() <= missed.keys()
        ]

    if not cured() and name in ("max_power_mw", "budget_usd"):
        _fewer(tried)
    return [t.change for t in sorted(cured(), key=_effort)[:CURES]]


def _hardly_worse(before: dict, after: dict) -> bool:
    """Nothing new is missed, and nothing by more than hardly more."""
    return after.keys() <= before.keys() and all(
        after[k].gap <= HARDLY * before[k].gap for k in after
    )


def _helps(assessment, t: Tried) -> bool:
    """It is feasible now, or fits now; or nothing new is missed, and what is missed is fewer (and
    hardly farther) or nearer to its limit."""
    if assessment.met:
        if not t.safe:
            return False
        before = _sequence_s(Tried(change=t.change, after=assessment))
        return assessment.verdict != "feasible" or _sequence_s(t) <= (1 - WORTH_A_BATCH) * before
    if t.feasible or not t.fits or not assessment.missed and assessment.fits:
        return t.feasible
    if not assessment.fits:
        return True
    before = misses(assessment)
    after = misses(t.after)
    if not after.keys() <= before.keys():
        return False
    if len(after) < len(before) and _hardly_worse(before, after):
        return True
    return all(after[k].gap < before[k].gap - CLOSER for k in after)


def _nearer(assessment, t: Tried) -> bool:
    """Whether a change that does not suffice meets one constraint more, or closes a share
    WORTH_SHOWING of the gap to an MFU floor, deadline or budget."""
    if not assessment.fits or len(t.after.missed) < len(assessment.missed):
        return True
    return any(
        log(value_of(t.after, CONSTRAINTS[m.field]) / m.value) / log(m.limit / m.value)
        >= WORTH_SHOWING
        for m in assessment.missed
        if m.banded
    )


def _effort(t: Tried) -> float:
    return t.change.effort


def _sequence_s(t: Tried) -> float:
    """Time of a step for each of its sequences. [s]"""
    return t.after.step_s / t.after.resolved.main_phase.global_batch


def _distance(assessment, t: Tried) -> tuple:
    """Fewest constraints missed, then the best MFU (or the fewest days or dollars), then the least
    effort."""
    missed = misses(assessment)
    after = t.after
    if "min_mfu" in missed or after.days is None:
        by = -after.mfu
    else:
        by = after.cost_usd or 0 if "budget_usd" in missed else after.days
    return len(after.missed), by, t.change.effort


def _one_each(tried: list) -> list:
    """The first of each kind (device counts, chips, fabrics), one without risk where there is one;
    what is of no kind stays."""
    first = {}
    for t in sorted(tried, key=lambda t: not t.safe):
        first.setdefault(t.change.kind or ("devices" if t.counts_devices else t.change.key), t)
    kept = {id(t) for t in first.values()}
    return [t for t in tried if id(t) in kept]


def _worth(tried: list, have) -> list:
    """Without more devices than `have` that finish no sooner than a smaller change on those."""
    best = inf
    out = []
    for t in tried:
        days = t.after.days or inf
        if not t.counts_devices or t.after.devices_used < have or days <= best:
            out.append(t)
        if not (t.counts_devices or t.change.gives_way or "cluster.accelerator" in t.change.set):
            best = min(best, days)
    return out
