"""Search: every legal plan of a phase through memory and step time in one pass, chunk by chunk, and
the best of those that fit."""

from collections import Counter
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter

import numpy as np

from ..base.records import record, take
from ..catalogue.published import EVERYDAY
from ..catalogue.words import RECOMPUTES, SHARDINGS
from ..physics.cases import Cases, Plan
from ..physics.gather import Situation
from ..physics.layout import runs
from ..physics.memory.chance import most_bytes, spread
from ..physics.memory.peak import SAFE, capacity, memory, zone
from ..physics.pipeline import SCHEDULES
from ..physics.recompute import modules_of
from ..physics.step import step_time
from .enumerate import enumerate_plans
from .fit import REASONS, host_bytes, streamed_weights, through_disks, why_not
from .remote import across
from .space import DEFAULT, Space
from .words import as_dict, one

COLUMNS = ("total_bytes", "reason", "step_s", "practised")  # of Found, beside those of its plan
CHUNK = 32768  # rows of one pass: with fewer, what Python adds to each pass shows
REMOTE = 2 * CHUNK  # rows that one task of a cluster takes
TIE = 0.01  # share of a step within which the simpler plan is taken


@record
class Found:
    """The outcome of one search: all legal plans as columns, which fit, their memory [bytes] and
    step [s], best first in `order`."""

    situation: Situation
    plan: Plan  # columns of every legal plan
    total_bytes: np.ndarray
    reason: np.ndarray  # index into REASONS where it does not fit, -1 where it does
    step_s: np.ndarray  # inf where it does not fit
    order: np.ndarray  # indices of the fitting plans, best first, as `by_merit`
    practised: np.ndarray  # bool: of a kind that published runs use
    # of all that was looked at, which may be more than the plans held: `legal` plans, those that
    # fit and were timed (`evaluated`), those that do not by the reason that comes first in REASONS
    # (`rejected`), `seconds`, and `unseen`, legal plans (parts of a streamed space) that were not
    # looked at because the search was stopped
    counts: dict

    @property
    def legal(self) -> int:
        """Legal plans that were looked at."""
        return self.counts["legal"]

    @property
    def fits(self) -> np.ndarray:
        """True for plans that fit. bool"""
        return self.reason < 0

    def best(self) -> int | None:
        """Row of the fastest plan with the allowed chance of going out of memory, else of the one
        with the least chance; None where none fits."""
        return int(self.order[0]) if len(self.order) else None

    def only(self, rows) -> "Found":
        """Some plans of the search, best first, as a search of its own, its counts kept."""
        return replace(
            self,
            plan=take(self.plan, rows),
            order=np.arange(len(rows)),
            **{n: getattr(self, n)[rows] for n in COLUMNS},
        )

    def fastest(self, mask) -> int | None:
        """Row of the fastest plan under a mask with the allowed chance of going out of memory, else
        of the one with the least chance; None where none fits."""
        rows = np.flatnonzero(mask & self.fits)
        roomy = rows[self.roomy[rows]]
        if len(roomy):
            return int(roomy[np.argmin(self.step_s[roomy])])
        return int(rows[np.argmin(self.total_bytes[rows])]) if len(rows) else None

    @cached_property
    def roomy(self) -> np.ndarray:
        """True for plans with the allowed chance of going out of memory. bool"""
        return self.total_bytes <= roomy_bytes(self.situation, self.plan)

    def simplest(self) -> int | None:
        """Row of the simplest plan within TIE of the best with the best's headroom, and below
        SAFE_SHARE of the memory where the best is; None where none fits."""
        best = self.best()
        if best is None:
            return None
        tied = self.fits & (self.step_s <= (1 + TIE) * self.step_s[best])
        tied &= (self.practised == self.practised[best]) & (self.roomy == self.roomy[best])
        zones = zone(self.total_bytes, self.capacity)
        tied &= zones <= zones[best]
        if not self.roomy[best]:
            tied &= self.total_bytes <= self.total_bytes[best]
        rows = np.flatnonzero(tied)
        keys = complexity(take(self.plan, rows), self.situation)
        return int(rows[np.lexsort((self.step_s[rows], *reversed(keys)))[0]])

    def column(self, name: str) -> np.ndarray:
        """A field of all plans."""
        return axis(self.plan, name)

    @cached_property
    def capacity(self) -> float:
        """What a program can have of a device's memory. [bytes]"""
        return float(capacity(self.situation.cases(self.plan)))

    def best_safe(self) -> int | None:
        """Row of the fastest plan that keeps a fifth of the memory free."""
        safe = self.order[zone(self.total_bytes[self.order], self.capacity) == SAFE]
        return int(safe[0]) if len(safe) else None

    def case(self, i: int) -> Cases:
        """The case of one plan, in scalars."""
        case = self.situation.cases(one(self.plan, i))
        if not case.plan.offload:
            return case
        return through_disks(self.situation.resolved.cluster, case, memory(case))

    def row(self, i: int) -> dict:
        """One plan as plain values."""
        where, plan = self.situation, one(self.plan, i)
        case = where.cases(plan)
        return as_dict(
            self.plan,
            i,
            where.resolved.model,
            where.phase,
            modules_of(RECOMPUTES[plan.recompute], case.software, where.shape),
            runs(case) if plan.pp > 1 and (plan.layer_split or case.layout) else (),
        )


def axis(plan: Plan, name: str) -> np.ndarray:
    """A field of plan columns, one number a plan."""
    return np.broadcast_to(np.asarray(getattr(plan, name), float), np.shape(plan.tp))


def added(counts) -> dict:
    """The counts of several searches as those of one."""
    counts = list(counts)
    rejected = sum((Counter(c["rejected"]) for c in counts), Counter())
    return {k: sum(c[k] for c in counts) for k in ("legal", "evaluated", "seconds", "unseen")} | {
        "rejected": {text: rejected[text] for text in REASONS if rejected[text]}
    }


def joined(plans: list) -> Plan:
    """Plan columns one after the other; what all share stays a scalar."""
    columns = {f: [getattr(p, f) for p in plans] for f in Plan.__dataclass_fields__}
    shapes = [np.shape(p.tp) for p in plans]
    for f, values in columns.items():
        if any(np.ndim(v) for v in values):
            columns[f] = np.concatenate([*map(np.broadcast_to, values, shapes)])
        else:
            columns[f] = values[0] if values else np.empty(0)
    return Plan(**columns)


def union(searches: list) -> Found:
    """Several searches of one phase as one: their plans one after the other, each once; the counts
    are of these, or the sums where a search holds but its best."""
    first = searches[0]
    if len(searches) == 1:
        return first
    plan = joined([found.plan for found in searches])
    columns = {n: np.concatenate([getattr(found, n) for found in searches]) for n in COLUMNS}
    counts = added(found.counts for found in searches)
    if all(found.legal == len(found.reason) for found in searches):
        rows = np.sort(np.unique(_keys(plan), return_index=True)[1])
        plan, columns = take(plan, rows), {n: column[rows] for n, column in columns.items()}
        counts |= _counted(columns["reason"])
    return Found(
        situation=first.situation,
        plan=plan,
        order=by_merit(first.situation, plan, **columns),
        counts=counts,
        **columns,
    )


def _keys(plan: Plan) -> np.ndarray:
    """One number for each plan, the same for the same plan: its fields mixed modulo 2^64."""
    mixed = np.zeros(np.shape(plan.tp), np.uint64)
    for value in vars(plan).values():
        fixed = np.round(np.asarray(value, float) * 4096).astype(np.int64).astype(np.uint64)
        mixed = (mixed ^ fixed) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _counted(reason: np.ndarray) -> dict:
    """Counts of plans by the reason that they do not fit, -1 where they do."""
    found = np.bincount(reason + 1, minlength=len(REASONS) + 1).tolist()
    return {
        "legal": len(reason),
        "evaluated": found[0],
        "rejected": {text: n for text, n in zip(REASONS, found[1:]) if n},
    }


def legal(where: Situation, space: Space, pins: dict | None = None) -> Plan:
    """Columns of every legal plan of a space under the pins. Raises DesignError, naming the rule,
    where they leave none."""
    return enumerate_plans(
        where.resolved.model,
        where.phase,
        where.resolved.cluster,
        space,
        {"cp_type": where.stack.cp_type or None, **(where.phase.pins if pins is None else pins)},
    )


def find(
    where: Situation,
    space: Space = DEFAULT,
    pins: dict | None = None,
    progress=None,
    scheduler=None,
) -> Found:
    """Search the space under the pins: `looked_at` of its legal plans. Raises DesignError, as
    `legal`."""
    return looked_at(where, legal(where, space, pins), progress, scheduler)


def looked_at(where: Situation, plan: Plan, progress=None, scheduler=None) -> Found:
    """Memory and step of plan columns, and their order.

    progress : function(done, of) called after each chunk; it may raise to stop, or return False to
    end with what has been looked at.
    scheduler : address of a Dask scheduler, or a distributed.Client; None searches here. The
    outcome is the same.
    """
    start = perf_counter()
    n = np.size(plan.tp)
    size = CHUNK if scheduler is None else REMOTE
    parts = [slice(i, i + size) for i in range(0, n, size)]
    results = across(
        scored, ((where, take(plan, part)) for part in parts), scheduler, progress, n, size
    )
    outcome = np.full((4, n), np.nan)
    for result, part in zip(results, parts):
        if result is not None:
            outcome[:, part] = result
    seen = ~np.isnan(outcome[1])
    if not seen.all():
        plan, outcome = take(plan, seen), outcome[:, seen]
    total, reason, step_s, practised = outcome
    columns = dict(
        total_bytes=total,
        reason=reason.astype(int),
        step_s=step_s,
        practised=practised.astype(bool),
    )
    return Found(
        situation=where,
        plan=plan,
        order=by_merit(where, plan, **columns),
        counts={
            **_counted(columns["reason"]),
            "seconds": perf_counter() - start,
            "unseen": n - len(total),
        },
        **columns,
    )


def scored(where: Situation, plan: Plan) -> tuple:
    """(memory [bytes], index of the reason it does not fit or -1, step [s], inf where it does not
    fit, 1 for a kind of plan that somebody has published a large run of) of plan columns.

    Tensor parallelism beyond the scale-up domain is of no such kind: the few measurements of it are
    far slower than any estimate, and what fails there (stragglers, jitter in every layer) is in no
    formula. Nor are weights that come from NVMe in every pass. Such plans are timed and shown, and
    win only where no other fits.
    """
    c, cluster = where.cases(plan), where.resolved.cluster
    n = np.size(plan.tp)
    m = memory(c)
    practised = (plan.tp <= where.link.domain) & (streamed_weights(cluster, c, m) <= 0)
    c = through_disks(cluster, c, m)
    reason = np.broadcast_to(why_not(m, host_bytes(cluster)), n)
    step_s = np.full(n, np.inf)
    ok = np.flatnonzero(reason < 0)
    if len(ok):
        step_s[ok] = step_time(c.take(ok)).total
    return np.broadcast_to(m.total, n), reason, step_s, np.broadcast_to(practised, n)


def any_fits(where: Situation, space: Space) -> bool:
    """Whether a plan of the space fits under the pins: by memory alone, a part of the plans after
    another. Raises DesignError, as `legal`."""
    plan, host = legal(where, space), host_bytes(where.resolved.cluster)
    return any(
        np.any(why_not(memory(where.cases(take(plan, slice(i, i + CHUNK)))), host) < 0)
        for i in range(0, np.size(plan.tp), CHUNK)
    )


def skipped(found: Found) -> tuple[int, float] | None:
    """(row, step time over the winner's) of the fastest fitting plan of a kind that nobody has
    published, where it beats the winner."""
    across = found.column("tp") > found.situation.link.domain
    row, best = found.fastest(~found.practised & across), found.best()
    if row is None or not found.practised[best]:
        return None
    ratio = float(found.step_s[row] / found.step_s[best])
    return (row, ratio) if ratio < 1 else None


SIMPLICITY = {
    "cp": 1e2,
    "ep": 10,
    "tp": 1,
    "sharding": 0.125,
    "recompute": 1 / 64,
    "offload": 0.25,
    "layer_split": 1 / 128,
}


def by_merit(where: Situation, plan: Plan, *, total_bytes, reason, step_s, practised):
    """Rows that fit, best first: those of a kind that has been run, then the others; of each, those
    with the allowed chance of going out of memory by step time, then the rest by memory."""
    roomy, parts = total_bytes <= roomy_bytes(where, plan), []
    for kind in (practised, ~practised):
        fits = (reason < 0) & kind
        parts.append(ranked(plan, step_s, np.flatnonzero(fits & roomy)))
        tight = np.flatnonzero(fits & ~roomy)
        parts.append(tight[np.lexsort((step_s[tight], total_bytes[tight]))])
    return np.concatenate(parts)


def roomy_bytes(where: Situation, plan: Plan) -> float:
    """Memory up to which a plan has the allowed chance of going out of it. [bytes]"""
    return most_bytes(
        float(capacity(where.cases(plan))), where.resolved.max_oom_probability, spread_of(where)
    )


def spread_of(where: Situation) -> float:
    """Spread of the memory estimate for the stack of a phase, and of peaks measured here."""
    usual = spread(where.resolved.stack and where.stack.name)
    here = where.resolved.calibration
    return usual if here is None else here.spread(usual, float(where.resolved.params.active))


def complexity(plan: Plan, where: Situation) -> tuple:
    """Keys by which one plan is simpler than another, the weightiest first: state that leaves the
    device, a schedule that is not everyday's, axes in use, a sharding that is not the stack's own,
    recompute of a part of the layers, recompute at all. [n] each"""
    at = partial(axis, plan)
    axes = sum(at(name) > 1 for name in ("tp", "cp", "pp", "vpp", "ep"))
    unusual = ~np.isin(at("schedule"), [SCHEDULES[name].code for name in EVERYDAY])
    own = SHARDINGS.index(where.stack.sharding)
    return (
        at("offload"),
        unusual & (at("pp") > 1),
        axes,
        (at("sharding") != own) & (at("dp") * at("cp") > 1),
        (at("recompute") > 0) & (at("recompute_share") < 1),
        at("recompute"),
    )


def ranked(plan: Plan, step_s, rows):
    """Rows by step time; plans within a part in 10^9 count as equal, the simpler one first (fewer
    ways split, less sharding, less recompute)."""

    def at(name):
        return axis(plan, name)[rows]

    simplicity = at("pp") * at("vpp") * 1e3
    for name, weight in SIMPLICITY.items():
        simplicity += at(name) * weight
    key = np.round(np.log(np.maximum(step_s[rows], 1e-12)) * 1e9)
    return rows[np.lexsort((at("micro_batch"), simplicity, key))]


def unpinned(where: Situation, *but) -> Situation:
    """The same phase with its pins removed, except those named."""
    return replace(
        where,
        phase=replace(where.phase, pins={k: v for k, v in where.phase.pins.items() if k in but}),
    )
