"""Search: every legal plan of a phase through memory and step time in one pass, chunk by chunk, and
the best of those that fit."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..base.columns import Array, Column, among
from ..base.records import joined, record, take
from ..base.show import percent
from ..catalogue.published import EVERYDAY
from ..catalogue.words import RECOMPUTES, SHARDINGS, Recompute
from ..design.pins import Pins, pins_from
from ..physics.cases import Cases, Plan, devices
from ..physics.gather import Situation, cases_together
from ..physics.layout import runs
from ..physics.memory.chance import most_bytes
from ..physics.memory.peak import SAFE, memory, zone
from ..physics.pipeline import SCHEDULES
from ..physics.recompute import modules_of
from ..physics.step import step_time
from .enumerate import Question, enumerate_plans
from .fit import REASONS, host_bytes, host_of, on_disk, streamed_weights, through_disks, why_not
from .plan_names import PlanRow, as_dict, plan_at
from .ran import spread_of
from .remote import Progress, Scheduler, across
from .space import DEFAULT, SHORT_CHUNK, Space
from .stack_laws import run_by

CHUNK = 32768  # rows of one pass: with fewer, what Python adds to each pass shows
REMOTE = 2 * CHUNK  # rows that one task of a cluster takes
ROUNDING = 1e-9  # share of a number of bytes by which two ways to it may differ
TIE = 0.03  # share of a step within which the plainest plan is taken
HOST_TIE = 0.10  # the same of plans that keep more on the device, or that a framework runs


class Counts(TypedDict):
    """What a search looked at, which may be more than the plans that it holds."""

    legal: int  # plans that keep the laws
    evaluated: int  # of them those that fit and were timed
    rejected: dict[str, int]  # those that do not, by the reason that comes first in REASONS
    seconds: float
    unseen: int  # legal plans (parts of a streamed space) left out as the search was stopped


class Outcome(NamedTuple):
    """What comes of plans, a row each."""

    total_bytes: Array
    reason: Array  # index into REASONS where a plan does not fit, -1 where it does
    step_s: Array  # inf where it does not fit
    practised: Array  # bool: of a kind that published runs use

    def at(self, rows: Array | slice) -> "Outcome":
        """Some of the rows."""
        return Outcome(*(column[rows] for column in self))


@record
class Search:
    """The outcome of one search: all legal plans as columns, which fit, their memory [bytes] and
    step [s], best first in `order`."""

    situation: Situation
    plan: Plan  # columns of every legal plan
    total_bytes: Array
    reason: Array  # index into REASONS where it does not fit, -1 where it does
    step_s: Array  # inf where it does not fit
    order: Array  # indices of the fitting plans, best first, as `by_merit`
    practised: Array  # bool: of a kind that published runs use
    counts: Counts

    @property
    def legal(self) -> int:
        """Legal plans that were looked at."""
        return self.counts["legal"]

    @property
    def fits(self) -> Array:
        """True for plans that fit. bool"""
        return self.reason < 0

    @property
    def outcome(self) -> Outcome:
        """What comes of every plan."""
        return Outcome(self.total_bytes, self.reason, self.step_s, self.practised)

    def best(self) -> int | None:
        """Row of the fastest plan with the allowed chance of going out of memory, else of the one
        with the least chance; None where none fits."""
        return int(self.order[0]) if len(self.order) else None

    def only(self, rows: Sequence[int] | Array) -> "Search":
        """Some plans of the search, best first, as a search of its own, its counts kept."""
        index = np.asarray(rows, int)
        outcome = self.outcome.at(index)
        return replace(
            self, plan=take(self.plan, index), order=np.arange(len(index)), **outcome._asdict()
        )

    def fastest(self, mask: Array) -> int | None:
        """Row of the fastest plan under a mask with the allowed chance of going out of memory, else
        of the one with the least chance; None where none fits."""
        rows = np.flatnonzero(mask & self.fits)
        roomy = rows[self.roomy[rows]]
        if len(roomy):
            return int(roomy[np.argmin(self.step_s[roomy])])
        return int(rows[np.argmin(self.total_bytes[rows])]) if len(rows) else None

    @cached_property
    def roomy(self) -> Array:
        """True for plans with the allowed chance of going out of memory. bool"""
        return self.total_bytes <= roomy_bytes(self.situation, self.plan)

    def simplest(self) -> int | None:
        """Row of the plainest plan with the best's headroom, below SAFE_SHARE of the memory where
        the best is; None where none fits. Of the plans within HOST_TIE of the best those are left
        that send least state off the device (or through NVMe) and that a framework runs as they
        are; of them the plainest within TIE of the fastest."""
        best = self.best()
        if best is None:
            return None
        tied = self.fits & (self.step_s <= (1 + HOST_TIE) * self.step_s[best])
        tied &= (self.practised == self.practised[best]) & (self.roomy == self.roomy[best])
        zones = np.asarray(zone(self.total_bytes, self.capacity))
        tied &= zones <= zones[best]
        if not self.roomy[best]:
            tied &= self.total_bytes <= self.total_bytes[best]
        rows = np.flatnonzero(tied)
        away = self.sent_away(rows) + self.run_by_none(rows)
        rows = rows[away == away.min()]
        rows = rows[self.step_s[rows] <= (1 + TIE) * self.step_s[rows].min()]
        keys = complexity(take(self.plan, rows), self.situation, self.idle_for_nothing(rows))
        return int(rows[np.lexsort((self.step_s[rows], *reversed(keys)))[0]])

    def idle_for_nothing(self, rows: Array) -> Array:
        """Where devices stand idle and one of the plans that put all to work is faster. Idle ones
        of a plan that is as fast are spares. bool"""
        used = np.broadcast_to(devices(take(self.plan, rows)), len(rows))
        idle = used < self.situation.resolved.cluster.devices
        step_s = self.step_s[rows]
        return np.asarray(idle & (step_s > np.min(step_s[~idle], initial=np.inf)))

    def sent_away(self, rows: Array) -> Array:
        """How far state goes in some plans: 0 it stays on the device, 1 moments and gradients go to
        the host, 2 weights too, and 3 more where NVMe holds a part. [rows]"""
        away = self.column("offload")[rows].astype(int)
        if np.any(away):
            case = self.situation.cases(take(self.plan, rows))
            disk = on_disk(host_of(self.situation.resolved.cluster), memory(case))
            away = away + 3 * (np.broadcast_to(disk, len(rows)) > 0)
        return away

    def run_by_none(self, rows: Array) -> Array:
        """Where no framework with a launch kit runs some plans as they are, of a design that names
        no stack. bool"""
        if self.situation.resolved.stack:
            return np.zeros(len(rows), bool)
        able = run_by(take(self.plan, rows), self.situation).values()
        some = np.array([np.broadcast_to(runs, len(rows)) for runs in able], bool)
        return np.logical_not(some.reshape(-1, len(rows)).any(axis=0))

    def why_passed_over(self, faster: int, chosen: int) -> str:
        """Why `simplest` takes a plan in the place of a faster one."""
        rows = np.array([faster, chosen])
        away, by_none = self.sent_away(rows), self.run_by_none(rows)
        if away[0] > away[1]:
            return "it keeps more state off the device"
        if by_none[0] > by_none[1]:
            return "no framework with a launch kit runs it"
        return f"a plainer plan lies within {percent(TIE, 0)} of it"

    def column(self, name: str) -> Array:
        """A field of all plans."""
        return column_of(self.plan, name)

    @property
    def capacity(self) -> float:
        """What a program can have of a device's memory. [bytes]"""
        return self.situation.usable_bytes

    def best_safe(self) -> int | None:
        """Row of the fastest plan that keeps a fifth of the memory free."""
        safe = self.order[zone(self.total_bytes[self.order], self.capacity) == SAFE]
        return int(safe[0]) if len(safe) else None

    def case(self, i: int) -> Cases:
        """The case of one plan, in scalars."""
        case = self.situation.cases(plan_at(self.plan, i))
        if not case.plan.offload:
            return case
        return through_disks(host_of(self.situation.resolved.cluster), case, memory(case))

    def row(self, i: int, case: Cases | None = None) -> PlanRow:
        """One plan as plain values. A stack that lists operations of its own under `selective`
        (`per_op`) has no modules to name. case : of the plan, where it is at hand."""
        situation = self.situation
        if case is None:
            case = situation.cases(plan_at(self.plan, i))
        plan = case.plan
        recompute = RECOMPUTES[int(plan.recompute)]
        listed = recompute == Recompute.SELECTIVE and situation.stack.memory.get("per_op")
        own_runs = plan.pp > 1 and (plan.layer_split or case.layout)
        return as_dict(
            self.plan,
            i,
            situation.resolved.model,
            situation.phase,
            [] if listed else modules_of(recompute, case.software, situation.shape),
            runs(case) if own_runs else (),
        )


def column_of(plan: Plan, name: str) -> Array:
    """A field of plan columns, one number a plan."""
    column, n = np.asarray(vars(plan)[name], float), np.shape(plan.tp)
    return column if column.shape == n else np.broadcast_to(column, n)


def added(counts: Iterable[Counts]) -> Counts:
    """The counts of several searches as those of one."""
    total = Counts(legal=0, evaluated=0, seconds=0, unseen=0, rejected={})
    rejected: Counter[str] = Counter()
    for one in counts:
        total["legal"] += one["legal"]
        total["evaluated"] += one["evaluated"]
        total["seconds"] += one["seconds"]
        total["unseen"] += one["unseen"]
        rejected.update(one["rejected"])
    total["rejected"] = {text: rejected[text] for text in REASONS if rejected[text]}
    return total


def joined_plans(plans: Sequence[Plan]) -> Plan:
    """Plan columns one after the other; what all share stays a scalar."""
    return joined(plans, [np.size(plan.tp) for plan in plans])


def union(searches: Sequence[Search]) -> Search:
    """Several searches of one phase as one: their plans one after the other, each once; the counts
    are of these, or the sums where a search holds but its best."""
    first = searches[0]
    if len(searches) == 1:
        return first
    plan = joined_plans([search.plan for search in searches])
    outcome = Outcome(*map(np.concatenate, zip(*(search.outcome for search in searches))))
    counts = added(search.counts for search in searches)
    if all(search.legal == len(search.reason) for search in searches):
        rows = distinct(keys_of(plan))
        plan, outcome = take(plan, rows), outcome.at(rows)
        counts |= _counted(outcome.reason, counts["seconds"], counts["unseen"])
    return _search(first.situation, plan, outcome, counts)


def _search(situation: Situation, plan: Plan, outcome: Outcome, counts: Counts) -> Search:
    """Plans and what comes of them as a search, the best first."""
    return Search(
        situation=situation,
        plan=plan,
        total_bytes=outcome.total_bytes,
        reason=outcome.reason,
        step_s=outcome.step_s,
        practised=outcome.practised,
        order=by_merit(situation, plan, outcome),
        counts=counts,
    )


def keys_of(plan: Plan) -> Array:
    """One number for each plan, the same for the same plan: its fields mixed modulo 2^64."""
    mixed = np.zeros(np.shape(plan.tp), np.uint64)
    for value in vars(plan).values():
        fixed = np.round(np.asarray(value, float) * 4096).astype(np.int64).astype(np.uint64)
        mixed = (mixed ^ fixed) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def distinct(keys: Array) -> Array:
    """Positions of the first of each key, ascending."""
    order = np.argsort(keys)
    shared = np.sort(order[_equal_runs(keys[order])])
    first = np.ones(len(keys), bool)
    first[shared] = False
    first[shared[np.unique(keys[shared], return_index=True)[1]]] = True
    return np.flatnonzero(first)


def _equal_runs(ascending: Array) -> Array:
    """Where a value of a sorted column stands more than once. bool"""
    equal = ascending[1:] == ascending[:-1]
    shared = np.zeros(len(ascending), bool)
    shared[1:] |= equal
    shared[:-1] |= equal
    return shared


def _counted(reason: Array, seconds: float, unseen: int) -> Counts:
    """Counts of plans by the reason that they do not fit, -1 where they do."""
    numbers: list[int] = np.bincount(reason + 1, minlength=len(REASONS) + 1).tolist()
    return Counts(
        legal=len(reason),
        evaluated=numbers[0],
        rejected={text: n for text, n in zip(REASONS, numbers[1:]) if n},
        seconds=seconds,
        unseen=unseen,
    )


def legal(situation: Situation, space: Space, pins: Pins | None = None) -> Plan:
    """Columns of every legal plan of a space under the pins. Raises DesignError, naming the rule,
    where they leave none."""
    question = asked(situation, space, pins)
    return enumerate_plans(
        question.model, question.phase, question.cluster, question.space, question.pins
    )


def asked(situation: Situation, space: Space, pins: Pins | None = None) -> Question:
    """What plans of a space are asked for under the pins, with the stack's own way of context
    parallelism."""
    fixed = situation.phase.pins if pins is None else pins
    return Question(
        model=situation.resolved.model,
        phase=situation.phase,
        cluster=situation.resolved.cluster,
        space=space,
        pins=pins_from({"cp_type": situation.stack.cp_type or None, **fixed}),
    )


def find(
    situation: Situation,
    space: Space = DEFAULT,
    pins: Pins | None = None,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
) -> Search:
    """Search the space under the pins: `evaluate` of its legal plans. Raises DesignError, as
    `legal`."""
    return evaluate(situation, legal(situation, space, pins), progress, scheduler)


def evaluate(
    situation: Situation,
    plan: Plan,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
) -> Search:
    """Memory and step of plan columns, and their order.

    progress : function(done, of) called after each chunk; it may raise to stop, or return False to
    end with what has been looked at.
    scheduler : address of a Dask scheduler, or a distributed.Client; None searches here. The
    outcome is the same.
    """
    start = perf_counter()
    n = np.size(plan.tp)
    size = CHUNK if scheduler is None else REMOTE
    chunks = [slice(i, i + size) for i in range(0, n, size)]
    tasks = ((situation, take(plan, chunk)) for chunk in chunks)
    results = across(scored, tasks, scheduler, progress, n, size)
    outcome = np.full((4, n), np.nan)
    for result, chunk in zip(results, chunks):
        if result is not None:
            outcome[:, chunk] = result
    seen = ~np.isnan(outcome[1])
    if not seen.all():
        plan, outcome = take(plan, seen), outcome[:, seen]
    total_bytes, reason, step_s, practised = outcome
    columns = Outcome(total_bytes, reason.astype(int), step_s, practised.astype(bool))
    search = _search(situation, plan, columns, _counted(columns.reason, 0.0, n - len(total_bytes)))
    search.counts["seconds"] = perf_counter() - start
    return search


def evaluate_together(asks: Sequence[tuple[Situation, Plan]]) -> list[Search]:
    """`evaluate` of the plans of several situations, those of a kind in the same passes."""
    kinds = [situation.kind for situation, _ in asks]
    searches: dict[int, Search] = {}
    for batch in batches(kinds, [np.size(plan.tp) for _, plan in asks], CHUNK):
        if len(batch) == 1:
            searches[batch[0]] = evaluate(*asks[batch[0]])
            continue
        start = perf_counter()
        outcomes = scored_together([asks[i] for i in batch])
        each_s = (perf_counter() - start) / len(batch)
        for i, outcome in zip(batch, outcomes):
            searches[i] = _search(*asks[i], outcome, _counted(outcome.reason, each_s, 0))
    return [searches[i] for i in range(len(asks))]


def batches(kinds: Sequence[Any], rows: Sequence[int], most: int) -> list[list[int]]:
    """Places of a list, each once: those of one kind together, as long as they have no more than so
    many rows."""
    open_batches: list[tuple[Any, list[int]]] = []
    done: list[list[int]] = []
    for i, kind in enumerate(kinds):
        at = next((k for k, (other, _) in enumerate(open_batches) if other == kind), None)
        if at is not None and sum(rows[j] for j in open_batches[at][1]) + rows[i] > most:
            done.append(open_batches.pop(at)[1])
            at = None
        if at is None:
            open_batches.append((kind, [i]))
        else:
            open_batches[at][1].append(i)
    return [*done, *(batch for _, batch in open_batches)]


def scored(situation: Situation, plan: Plan) -> Outcome:
    """Memory [bytes], index of the reason that it does not fit or -1, step [s], inf where it does
    not fit, and whether somebody has published a large run of its kind, of plan columns.

    Tensor parallelism beyond the scale-up domain is of no such kind: the few measurements of it are
    far slower than any estimate, and what fails there (stragglers, jitter in every layer) is in no
    formula. Nor are weights that come from NVMe in every pass, nor context parallelism that leaves
    a rank fewer than SHORT_CHUNK tokens of a sequence. Such plans are timed and shown, and win only
    where no other fits.
    """
    return scored_together([(situation, plan)])[0]


def scored_together(asks: Sequence[tuple[Situation, Plan]]) -> list[Outcome]:
    """`scored` of the plans of situations of one kind, in one pass."""
    rows = [np.size(plan.tp) for _, plan in asks]
    cases = cases_together(asks, rows)
    host = joined([host_of(situation.resolved.cluster) for situation, _ in asks], rows)
    plan, job, n = cases.plan, cases.job, sum(rows)
    used = memory(cases)
    streamed = streamed_weights(host, cases, used)
    whole = (plan.cp <= 1) | (job.seq_len / plan.cp >= SHORT_CHUNK)
    practised = (plan.tp <= cases.link.domain) & (streamed <= 0) & whole
    cases = through_disks(host, cases, used)
    reason = np.broadcast_to(why_not(used, host.all_bytes), n)
    step_s = np.full(n, np.inf)
    fitting = np.flatnonzero(reason < 0)
    if len(fitting):
        timed = cases.take(fitting) if len(fitting) < n else cases
        step_s[fitting] = step_time(timed).total
    outcome = Outcome(
        total_bytes=np.broadcast_to(used.total, n),
        reason=reason,
        step_s=step_s,
        practised=np.broadcast_to(practised, n),
    )
    ends = np.cumsum(rows).tolist()
    return [outcome.at(slice(end - size, end)) for end, size in zip(ends, rows)]


def any_fits(situation: Situation, space: Space) -> bool:
    """Whether a plan of the space fits under the pins: by memory alone, a part of the plans after
    another. Raises DesignError, as `legal`."""
    plan, host = legal(situation, space), host_bytes(situation.resolved.cluster)
    for i in range(0, np.size(plan.tp), CHUNK):
        used = memory(situation.cases(take(plan, slice(i, i + CHUNK))))
        if np.any(why_not(used, host) < 0):
            return True
    return False


def skipped(search: Search) -> tuple[int, float] | None:
    """(row, step time over the winner's) of the fastest fitting plan of a kind that nobody has
    published, where it beats the winner."""
    across_domains = search.column("tp") > search.situation.link.domain
    row, best = search.fastest(~search.practised & across_domains), search.best()
    if row is None or not search.practised[best]:
        return None
    ratio = float(search.step_s[row] / search.step_s[best])
    return (row, ratio) if ratio < 1 else None


# fields of a plan by how much a larger value takes away from its simplicity
SIMPLICITY = {
    "cp": 1e2,
    "ep": 10,
    "tp": 1,
    "sharding": 0.125,
    "recompute": 1 / 64,
    "offload": 0.25,
    "layer_split": 1 / 128,
}


def by_merit(situation: Situation, plan: Plan, outcome: Outcome) -> Array:
    """Rows that fit, best first: those of a kind that has been run, then the others; of each, those
    with the allowed chance of going out of memory by step time, then the rest by memory."""
    total_bytes, step_s = outcome.total_bytes, outcome.step_s
    roomy = total_bytes <= roomy_bytes(situation, plan) * (1 + ROUNDING)
    parts = []
    for kind in (outcome.practised, ~outcome.practised):
        fits = (outcome.reason < 0) & kind
        parts.append(ranked(plan, step_s, np.flatnonzero(fits & roomy)))
        tight = np.flatnonzero(fits & ~roomy)
        parts.append(tight[np.lexsort((step_s[tight], total_bytes[tight]))])
    return np.concatenate(parts)


def roomy_bytes(situation: Situation, plan: Plan) -> Column:
    """Memory up to which plans have the allowed chance of going out of it. [bytes]"""
    allowed = situation.resolved.max_oom_probability
    return most_bytes(situation.usable_bytes, allowed, spread_of(situation, plan))


def complexity(plan: Plan, situation: Situation, idle: Array) -> tuple[Array, ...]:
    """Keys by which one plan is simpler than another, the weightiest first: a schedule that is
    neither everyday's nor the stack's own, devices that stand idle for nothing, axes in use, a
    sharding that is not the stack's own, chunks that layers do not divide into, modules that are
    not the stack's own list, recompute of a part of the layers, recompute at all. [n] each"""

    def at(name: str) -> Array:
        return column_of(plan, name)

    axes = sum(at(name) > 1 for name in ("tp", "cp", "pp", "vpp", "ep"))
    everyday = (*EVERYDAY, *([situation.stack.schedule] if situation.stack.schedule else []))
    unusual = ~among(at("schedule"), [SCHEDULES[name].code for name in everyday])
    usual = SHARDINGS.index(situation.stack.sharding)
    layers = situation.resolved.model.layers
    parts = at("pp") * at("vpp")
    return (
        unusual & (at("pp") > 1),
        idle,
        np.asarray(axes),
        (at("sharding") != usual) & (at("dp") * at("cp") > 1),
        (layers % parts != 0) & ((layers + 2) % parts != 0),
        at("modules") > 0,
        (at("recompute") > 0) & (at("recompute_share") < 1),
        at("recompute"),
    )


def ranked(plan: Plan, step_s: Array, rows: Array) -> Array:
    """Rows by step time; plans within a part in 10^9 count as equal, the simpler one first (fewer
    ways split, less sharding, less recompute)."""
    key = np.round(np.log(np.maximum(step_s[rows], 1e-12)) * 1e9)
    order = np.argsort(key)
    tied = _equal_runs(key[order])
    if not tied.any():
        return np.asarray(rows[order])
    some = np.sort(order[tied])  # only these ask which plan is simpler

    def at(name: str) -> Array:
        column: Array = column_of(plan, name)[rows[some]]
        return column

    simplicity = at("pp") * at("vpp") * 1e3
    for name, weight in SIMPLICITY.items():
        simplicity += at(name) * weight
    order[tied] = some[np.lexsort((at("micro_batch"), simplicity, key[some]))]
    ranks: Array = rows[order]
    return ranks


def unpinned(situation: Situation, *but: str) -> Situation:
    """The same phase with its pins removed, except those named."""
    pins = pins_from({name: x for name, x in situation.phase.pins.items() if name in but})
    return replace(situation, phase=replace(situation.phase, pins=pins))
