"""Search: every legal plan of a phase through memory and step time in one pass, chunk by chunk, and
the best of those that fit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from .. import catalogue
from ..base.records import take
from ..physics.cases import SHARDINGS, Cases, Plan, devices
from ..physics.gather import Situation, situation
from ..physics.memory.peak import Memory, memory
from ..physics.step import Step, rates, step_time
from . import enumerate as planning
from .prepare import prepare
from .remote import across

CHUNK = 8192  # rows whose columns stay in a core's cache
REMOTE = 8 * CHUNK  # rows that one task of a cluster takes
LOCAL_DISKS = (
    "local-azure-h100"  # the measured node whose NVMe rate a byte of capacity stands for all
)
SAFE = 0.80  # share of the capacity below which a plan is safe
ZERO3 = SHARDINGS.index("zero3")
REASONS = (
    "weights, gradients and optimizer states alone exceed the device's memory",
    "activations exceed what the states leave of the device's memory",
    "framework, buffers and logits take the last of the device's memory",
    "offloaded state exceeds the host's memory and NVMe",
)


@dataclass(frozen=True)
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
    # legal plans (parts of a streamed space) that were not looked at, because the search was
    # stopped
    unseen: int = 0
    tally: tuple | None = None  # (legal, fitting, rejected) where only the best plans are held

    @property
    def legal(self) -> int:
        return len(self.fits) if self.tally is None else self.tally[0]

    @property
    def fitting(self) -> int:
        """Plans that fit, all of which were timed."""
        return int(self.fits.sum()) if self.tally is None else self.tally[1]

    @property
    def rejected(self) -> dict[str, int]:
        """Plans that do not fit, by the reason that comes first in REASONS."""
        if self.tally is not None:
            return self.tally[2]
        counts = np.bincount(self.reason[self.reason >= 0], minlength=len(REASONS))
        return {text: int(n) for text, n in zip(REASONS, counts) if n}

    def best(self) -> int | None:
        """Row of the fastest fitting plan, None where none fits."""
        return int(self.order[0]) if len(self.order) else None

    def best_safe(self) -> int | None:
        """Row of the fastest plan that keeps a fifth of the memory free."""
        capacity = self.situation.chip.usable_bytes
        safe = self.order[self.total_bytes[self.order] <= SAFE * capacity]
        return int(safe[0]) if len(safe) else None

    def case(self, i: int) -> Cases:
        """The case of one plan, in scalars."""
        case = self.situation.cases(planning.one(self.plan, i))
        return (
            through_disks(self.situation.resolved.cluster, case, memory(case))
            if case.plan.offload
            else case
        )

    def row(self, i: int) -> dict:
        """One plan as plain values."""
        return planning.as_dict(self.plan, i, self.situation.resolved.model, self.situation.phase)


def find(
    where: Situation,
    space=planning.DEFAULT,
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
        "cp_type": getattr(where.stack, "cp_type", "") or None,
        **(where.phase.pins if pins is None else pins),
    }
    plan = planning.enumerate_plans(
        where.resolved.model, where.phase, where.resolved.cluster, space, pins
    )
    n = np.size(plan.tp)
    total, reason, step_s, seen = np.empty(n), np.full(n, -1), np.full(n, np.inf), np.zeros(n, bool)
    size = CHUNK if scheduler is None else REMOTE
    parts = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    if scheduler is None:
        results = _here(where, plan, parts, progress, n)
    else:
        results = across(
            scored, [(where, take(plan, part)) for part in parts], scheduler, progress, n, size
        )
    for result, part in zip(results, parts):
        if result is not None:
            total[part], reason[part], step_s[part] = result
            seen[part] = True
    if not seen.all():
        plan, total, reason, step_s = take(plan, seen), total[seen], reason[seen], step_s[seen]
    fits = reason < 0
    known = practised(plan, where)
    order = np.concatenate(
        [ranked(plan, step_s, np.flatnonzero(fits & kind)) for kind in (known, ~known)]
    )
    return Found(
        where,
        plan,
        total,
        fits,
        reason,
        step_s,
        order,
        known,
        time.perf_counter() - start,
        int(n - seen.sum()),
    )


def _here(where, plan, parts, progress, n):
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
    reason, step_s = (
        np.broadcast_to(why_not(m, host_bytes(where.resolved.cluster)), n),
        np.full(n, np.inf),
    )
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


def host_bytes(cluster) -> float:
    """Host memory and NVMe that one device may take for offloaded state: an even share of its
    node's, nine tenths of it."""
    per_node = np.nan_to_num(cluster.host_memory_bytes) + np.nan_to_num(cluster.nvme_bytes)
    return 0.9 * per_node / cluster.devices_per_node


def on_disk(cluster, m: Memory):
    """State of a device that its share of the host's memory does not hold: it goes to the node's
    NVMe. [bytes]"""
    return np.maximum(
        m.host - 0.9 * np.nan_to_num(cluster.host_memory_bytes) / cluster.devices_per_node, 0.0
    )


def disk_bytes_per_s(cluster) -> float:
    """What one device draws from or sends to its node's NVMe when all do. [bytes/s]

    A byte of capacity brings the rate that fio measured on a node of eight drives, the mean of
    reading and writing as much of each.
    """
    row = catalogue.storage(LOCAL_DISKS)
    both = 2 / (1 / row.client_read_bytes_per_s + 1 / row.client_write_bytes_per_s)
    return (
        both
        / row.capacity_bytes
        * float(np.nan_to_num(cluster.nvme_bytes))
        / cluster.devices_per_node
    )


def through_disks(cluster, c: Cases, m: Memory) -> Cases:
    """The same cases with the host link no faster than NVMe feeds it, where state does not stay in
    the host's memory.

    NVMe and host link run at once (Rajbhandari et al. 2021, section 5.2.2): the link moves all of
    the state in the time that the drives take for their part.
    """
    disk = on_disk(cluster, m)
    if not np.any(disk):
        return c
    fed = disk_bytes_per_s(cluster) * m.host / np.where(disk > 0, disk, 1.0)
    return replace(
        c,
        chip=replace(
            c.chip,
            host_bytes_per_s=np.where(
                disk > 0, np.minimum(c.chip.host_bytes_per_s, fed), c.chip.host_bytes_per_s
            )[()],
        ),
    )


def why_not(m: Memory, host: float):
    """Index of the first reason in REASONS that a plan does not fit, -1 where it fits."""
    states = m.weights + m.gradients + m.optimizer
    over = np.where(
        states > m.capacity,
        0,
        np.where(states + m.activations > m.capacity, 1, np.where(m.total > m.capacity, 2, -1)),
    )
    return np.where((over < 0) & (m.host > host), 3, over)


def ranked(plan: Plan, step_s, rows):
    """Rows by step time; plans within a part in 10^9 count as equal, the simpler one first (fewer
    ways split, less sharding, less recompute)."""
    at = lambda name: np.broadcast_to(np.asarray(getattr(plan, name), float), np.shape(plan.tp))[
        rows
    ]  # noqa: E731
    simplicity = (
        at("pp") * at("vpp") * 1e3
        + at("cp") * 1e2
        + at("ep") * 10
        + at("tp")
        + at("sharding") / 8
        + at("recompute") / 64
        + at("offload") / 4
    )
    key = np.round(np.log(np.maximum(step_s[rows], 1e-12)) * 1e9)
    return rows[np.lexsort((at("micro_batch"), simplicity, key))]


def search(design, space=None, progress=None, scheduler=None):
    """All fitting plans of a design's longest phase, best first, as a pandas DataFrame.

    Where the space names precisions and the design leaves its own open, each of them that the chip
    has is searched too.
    A space with offload (the wide one) is streamed: its 50,000 fastest plans are listed, its counts
    are of all.
    progress, scheduler : as `find`.

    Columns: the fields of a plan, precision, devices_used, step_s [s], tokens_per_s_per_device,
    mfu, memory_bytes, zone ("safe" | "tight"),
    practised (False for a kind of plan that nobody has published: `assess` takes the first row
    where it is True).
    `.attrs`: legal, evaluated (plans timed), seconds, rejected {reason: count}, unseen (legal plans
    not looked at); legal = fitting + rejected.
    """
    import pandas as pd

    from .stream import stream

    resolved = prepare(design)
    phase = resolved.main_phase
    space = planning.offered(space or planning.DEFAULT, resolved.stack)
    run = stream if space.offload != ("none",) else find
    outcomes = []
    for name in precisions(resolved, phase, space):
        found = run(
            situation(resolved, replace(phase, precision=name)),
            space,
            progress=progress,
            scheduler=scheduler,
        )
        outcomes.append(found)
        if found.unseen:
            break
    tables = [_table(found) for found in outcomes]
    table = (
        tables[0]
        if len(tables) == 1
        else pd.concat([t for t in tables if len(t)] or tables[:1]).sort_values(
            "step_s", kind="stable", ignore_index=True
        )
    )
    rejected = {
        text: n for text in REASONS if (n := sum(f.rejected.get(text, 0) for f in outcomes))
    }
    table.attrs = {
        "legal": sum(f.legal for f in outcomes),
        "evaluated": sum(f.fitting for f in outcomes),
        "seconds": sum(f.seconds for f in outcomes),
        "rejected": rejected,
        "unseen": sum(f.unseen for f in outcomes),
    }
    return table


def precisions(resolved, phase, space) -> list[str]:
    """The phase's precision and, where the design leaves it open, those of the space that the chip
    has."""
    left_open = any(a.field.rpartition(".")[2] == "precision" for a in resolved.assumed)
    chip = resolved.cluster.accelerator
    return [
        phase.precision,
        *(
            p
            for p in space.precision
            if left_open and p != phase.precision and getattr(chip, f"{p[:3]}_flops", 0) > 0
        ),
    ]


def _table(found: Found):
    import pandas as pd

    rows = ranked(found.plan, found.step_s, np.flatnonzero(found.fits))
    plan = take(found.plan, rows)
    table = pd.DataFrame(columns_of(found, plan, len(rows)))
    if len(rows):
        tokens, _, mfu = rates(found.situation.cases(plan), found.step_s[rows])
        table = table.assign(
            devices_used=devices(plan).astype(int),
            step_s=found.step_s[rows],
            tokens_per_s_per_device=tokens,
            mfu=mfu,
            memory_bytes=found.total_bytes[rows],
            practised=found.practised[rows],
            zone=np.where(
                found.total_bytes[rows] <= SAFE * found.situation.chip.usable_bytes, "safe", "tight"
            ),
        )
    return table.assign(precision=found.situation.phase.precision)


def columns_of(found: Found, plan: Plan, n: int) -> dict:
    """Plan columns with names instead of codes."""
    from ..physics.cases import CP_TYPES, OFFLOADS, RECOMPUTES
    from ..physics.pipeline import SCHEDULE_NAMES

    full = lambda name: np.broadcast_to(np.asarray(getattr(plan, name)), n)  # noqa: E731
    out = {k: full(k).astype(int) for k in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp")}
    out["sp"] = full("sp") > 0
    for name, words in (
        ("sharding", SHARDINGS),
        ("schedule", SCHEDULE_NAMES),
        ("recompute", RECOMPUTES),
        ("cp_type", CP_TYPES),
        ("offload", OFFLOADS),
    ):
        out[name] = np.array(words)[full(name).astype(int)]
    out["recompute_share"] = np.where(full("recompute") > 0, full("recompute_share"), 0.0)
    out["shard_group"], out["micro_batch"] = (
        full("shard_group").astype(int),
        full("micro_batch").astype(int),
    )
    out["grad_accum"] = np.maximum(
        found.situation.phase.global_batch // (out["dp"] * out["micro_batch"]), 1
    )
    return out


def timed(c: Cases) -> tuple[Memory, Step]:
    """Memory and step of cases that are already laid out."""
    return memory(c), step_time(c)


def unpinned(where: Situation, *but) -> Situation:
    """The same phase with its pins removed, except those named."""
    pins = {k: v for k, v in where.phase.pins.items() if k in but}
    return replace(where, phase=replace(where.phase, pins=pins))
