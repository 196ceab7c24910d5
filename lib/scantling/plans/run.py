"""Search: every legal plan of a phase through memory and step time in one pass, chunk by chunk, and
the best of those that fit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from ..base.records import take
from ..catalogue.words import SHARDINGS
from ..physics.cases import Cases, Plan
from ..physics.gather import Situation
from ..physics.memory.peak import SAFE, Memory, capacity, memory, zone
from ..physics.step import Step, step_time
from .enumerate import enumerate_plans
from .fit import REASONS, host_bytes, through_disks, why_not
from .remote import across
from .space import DEFAULT, Space
from .words import as_dict, one

CHUNK = 8192  # rows whose columns stay in a core's cache
REMOTE = 8 * CHUNK  # rows that one task of a cluster takes
ZERO3 = SHARDINGS.index("zero3")


@dataclass(
    frozen=True,
    kw_only=True,
)
class Found:
    """The outcome of one search: all legal plans as columns, which fit, their memory [bytes] and
    step [s], best first in `order`."""

    situation: Situation
    plan: Plan  # columns of every legal plan
    total_bytes: np.ndarray
    fits: np.ndarray  # bool
    reason: np.ndarray  # index into REASONS where it does not fit, -1 where it does
    step_s: np.ndarray  # inf where it does not fit
    order: (
        np.ndarray
    )  # indices of the fitting plans: those of a kind that has been run best first, then the others
    practised: np.ndarray  # bool: of a kind that published runs use
    seconds: float
    # counts of all that was looked at, which may be more than the plans held: legal plans, those
    # that fit and were timed, and those that do not by the reason that comes first in REASONS
    legal: int
    fitting: int
    rejected: dict[str, int]
    # legal plans (parts of a streamed space) that were not looked at, because the search was
    # stopped
    unseen: int = 0

    def best(self) -> int | None:
        """Row of the fastest fitting plan, None where none fits."""
        return int(self.order[0]) if len(self.order) else None

    @property
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
        return (
            through_disks(self.situation.resolved.cluster, case, memory(case))
            if case.plan.offload
            else case
        )

    def row(self, i: int) -> dict:
        """One plan as plain values."""
        return as_dict(
            self.plan,
            i,
            self.situation.resolved.model,
            self.situation.phase,
        )


def find(
    where: Situation,
    space: Space = DEFAULT,
    pins: dict | None = None,
    progress=None,
    scheduler=None,
) -> Found:
    """Search the space under the pins. Raises DesignError, naming the rule, where the pins leave no
    legal plan.

    progress : function(done, of) called after each chunk; it may raise to stop, or return False to
    end with what has been looked at.
    scheduler : address of a Dask scheduler, or a distributed.Client; None searches here. The
    outcome is the same.
    """
    start = time.perf_counter()
    pins = {
        "cp_type": where.stack.cp_type or None,
        **(where.phase.pins if pins is None else pins),
    }
    plan = enumerate_plans(
        where.resolved.model,
        where.phase,
        where.resolved.cluster,
        space,
        pins,
    )
    n = np.size(plan.tp)
    size = CHUNK if scheduler is None else REMOTE
    parts = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    if scheduler is None:
        results = _here(
            where,
            plan,
            parts,
            progress,
            n,
        )
    else:
        tasks = [(where, take(plan, part)) for part in parts]
        results = across(
            scored,
            tasks,
            scheduler,
            progress,
            n,
            size,
        )
    outcome = np.full((3, n), np.nan)
    for result, part in zip(results, parts):
        if result is not None:
            outcome[:, part] = result
    seen = ~np.isnan(outcome[1])
    if not seen.all():
        plan, outcome = take(plan, seen), outcome[:, seen]
    total, reason, step_s = outcome
    reason = reason.astype(int)
    fits, known = reason < 0, practised(plan, where)
    return Found(
        situation=where,
        plan=plan,
        total_bytes=total,
        fits=fits,
        reason=reason,
        step_s=step_s,
        order=by_practice(
            plan,
            step_s,
            known,
            fits,
        ),
        practised=known,
        seconds=time.perf_counter() - start,
        legal=len(fits),
        fitting=int(fits.sum()),
        rejected={text: k for i, text in enumerate(REASONS) if (k := int((reason == i).sum()))},
        unseen=int(n - len(fits)),
    )


def _here(
    where,
    plan,
    parts,
    progress,
    n,
):
    """Results of the parts one after the other, as far as progress lets them."""
    for part in parts:
        yield scored(where, take(plan, part))
        if progress and progress(part.stop, n) is False:
            return


def scored(where: Situation, plan: Plan) -> tuple:
    """(memory [bytes], index of the reason it does not fit or -1, step [s], inf where it does not
    fit) of plan columns."""
    c = where.cases(plan)
    m = memory(c)
    c, n = through_disks(where.resolved.cluster, c, m), np.size(plan.tp)
    reason = np.broadcast_to(why_not(m, host_bytes(where.resolved.cluster)), n)
    step_s = np.full(n, np.inf)
    ok = np.flatnonzero(reason < 0)
    if len(ok):
        step_s[ok] = step_time(c.take(ok)).total
    return np.broadcast_to(m.total, n), reason, step_s


def practised(plan: Plan, where: Situation):
    """True for plans of a kind that somebody has published a large run of.

    Tensor parallelism beyond the scale-up domain is not: the few measurements of it are far slower
    than any estimate, and what fails
    there (stragglers, jitter in every layer) is in no formula. Such plans are timed and shown, and
    win only where no other fits.
    """
    return np.broadcast_to(np.asarray(plan.tp) <= where.link.domain, np.shape(plan.tp))


def skipped(found: Found) -> tuple[int, float] | None:
    """(row, step time over the winner's) of the fastest fitting plan of a kind that nobody has
    published, where it beats the winner."""
    rows = np.flatnonzero(found.fits & ~found.practised)
    if not len(rows) or not found.practised[found.order[0]]:
        return None
    row = int(rows[np.argmin(found.step_s[rows])])
    ratio = float(found.step_s[row] / found.step_s[found.order[0]])
    return (row, ratio) if ratio < 1 else None


SIMPLICITY = {
    **{
        "cp": 1e2,
        "ep": 10,
        "tp": 1,
    },
    **{
        "sharding": 1 / 8,
        "recompute": 1 / 64,
        "offload": 1 / 4,
    },
}


def by_practice(
    plan: Plan,
    step_s,
    known,
    fits=True,
):
    """Rows that fit, best first: those of a kind that has been run, then the others."""
    return np.concatenate(
        [ranked(plan, step_s, np.flatnonzero(fits & kind)) for kind in (known, ~known)]
    )


def ranked(
    plan: Plan,
    step_s,
    rows,
):
    """Rows by step time; plans within a part in 10^9 count as equal, the simpler one first (fewer
    ways split, less sharding, less recompute)."""

    def at(name):
        return np.broadcast_to(np.asarray(getattr(plan, name), float), np.shape(plan.tp))[rows]

    simplicity = at("pp") * at("vpp") * 1e3
    for name, weight in SIMPLICITY.items():
        simplicity += at(name) * weight
    key = np.round(np.log(np.maximum(step_s[rows], 1e-12)) * 1e9)
    return rows[np.lexsort((at("micro_batch"), simplicity, key))]


def timed(c: Cases) -> tuple[Memory, Step]:
    """Memory and step of cases that are already laid out."""
    return memory(c), step_time(c)


def unpinned(where: Situation, *but) -> Situation:
    """The same phase with its pins removed, except those named."""
    pins = {k: v for k, v in where.phase.pins.items() if k in but}
    return replace(where, phase=replace(where.phase, pins=pins))
