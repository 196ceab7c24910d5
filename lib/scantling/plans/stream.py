"""Spaces too large to hold: the search part by part, keeping the best plans and the counts, here or
on a cluster."""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from ..base.errors import DesignError
from ..base.records import take
from ..physics.gather import Situation
from .enumerate import Question, degrees
from .evaluate import Found, added, by_merit, find, joined, practised
from .remote import across

KEEP = 50_000  # fitting plans that are kept, the fastest


def stream(
    where: Situation,
    space,
    pins: dict | None = None,
    *,
    keep: int = KEEP,
    progress=None,
    scheduler=None,
) -> Found:
    """The search of `run.find`, whose outcome holds the `keep` fastest fitting plans alone;
    its counts are of all.

    Memory: one part of the space and what is kept, whatever the size of the space.
    progress : function(thousandths of a part done, of), may return False to end with what has been
    looked at (then `unseen` counts parts).
    scheduler : address of a Dask scheduler, or a distributed.Client; the outcome is the same.
    Raises DesignError as `find`.
    """
    start = time.perf_counter()
    pins = dict(where.phase.pins if pins is None else pins)
    parts = list(_parts(where, space, pins))
    if scheduler is None:
        counts, held = _here(
            where,
            space,
            parts,
            keep,
            progress,
        )
    else:
        tasks = [(where, space, part, keep) for part in parts]
        done = across(
            _best,
            tasks,
            scheduler,
            progress,
            1000 * len(parts),
            1000,
        )
        counts, held = zip(*(r for r in done if r is not None))
    total = added(counts)
    if not total["legal"]:
        return find(where, space, pins)  # says which rule leaves none
    plan, used, step_s = _fastest(where, held, keep)
    n = len(used)
    return Found(
        situation=where,
        plan=plan,
        total_bytes=used,
        fits=np.ones(n, bool),
        reason=np.full(n, -1),
        step_s=step_s,
        order=np.arange(n),
        practised=practised(plan, where),
        seconds=time.perf_counter() - start,
        legal=total["legal"],
        fitting=total["evaluated"],
        rejected=total["rejected"],
        unseen=len(parts) - len(counts),
    )


def _here(
    where,
    space,
    parts,
    keep,
    progress,
):
    """(counts of each part, rows held) of the parts one after the other, as far as progress lets
    them."""
    counts, held, going = [], [], True

    def inner(done, of):
        nonlocal going
        at = int(1000 * (len(counts) + done / of))
        going = going and not (progress and progress(at, 1000 * len(parts)) is False)
        return going

    for part in parts:
        count, rows = _best(
            where,
            space,
            part,
            keep,
            inner,
        )
        counts.append(count)
        held.append(rows)
        if sum(len(total) for _, total, _ in held) > 4 * keep:
            held = [_fastest(where, held, keep)]
        if not going:
            break
    return counts, held


def _parts(
    where,
    space,
    pins,
):
    """Pins of each part: one tp; with experts, whose degrees multiply, one pp and offload too."""
    model, cluster = where.resolved.model, where.resolved.cluster
    q = Question(
        model=model,
        phase=where.phase,
        cluster=cluster,
        space=space,
        pins=pins,
    )
    axes = degrees(q) | {"offload": q.pick("offload", space.offload)}
    names = ("tp", "pp", "offload") if model.is_moe else ("tp",)
    for values in product(*(axes[name] for name in names)):
        part = pins | dict(zip(names, values))
        if part["tp"] * (part.get("pp") or 1) <= cluster.devices:
            yield part


def _best(
    where,
    space,
    pins,
    keep,
    progress=None,
):
    """(counts, (plan columns, memory, step) of the fastest `keep` fitting
    plans) of one part."""
    try:
        found = find(
            where,
            space,
            pins,
            progress=progress,
        )
    except DesignError:  # no legal plan in this part
        return added(()), (None, np.empty(0), np.empty(0))
    rows = found.order[:keep]
    plan = take(found.plan, rows) if len(rows) else None
    return found.counts(), (plan, found.total_bytes[rows], found.step_s[rows])


def _fastest(
    where,
    held,
    keep,
):
    """Plan columns, memory and step of the `keep` best among the rows of several parts."""
    plans, *figures = zip(*held)
    plan = joined([p for p in plans if p is not None])
    total, step_s = map(np.concatenate, figures)
    rows = by_merit(
        where,
        plan,
        step_s,
        total,
        practised(plan, where),
    )[:keep]
    return take(plan, rows), total[rows], step_s[rows]
