"""Spaces too large to hold: the search part by part, keeping the best plans and the counts, here or
on a cluster."""

from __future__ import annotations

import time

import numpy as np

from ..base.errors import DesignError
from ..base.records import take
from ..physics.cases import Plan
from ..physics.gather import Situation
from .enumerate import depths, divisors
from .fit import REASONS
from .remote import across
from .run import Found, find, practised, ranked

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
        results = []
        for k, part in enumerate(parts):
            going = [True]

            def inner(done, of, k=k, going=going):
                if progress and progress(int(1000 * (k + done / of)), 1000 * len(parts)) is False:
                    going[0] = False
                return going[0]

            results.append(_best(where, space, part, keep, inner))
            if sum(len(r[5]) for r in results) > 4 * keep:
                for kind in (True, False):  # the two are ranked apart
                    _shed(
                        results,
                        [
                            i
                            for i in range(len(results))
                            if (parts[i]["tp"] <= where.link.domain) == kind
                        ],
                        keep,
                    )
            if not going[0]:
                break
    else:
        report = (lambda done, of: progress(1000 * done, 1000 * of)) if progress else None
        results = across(
            _best, [(where, space, part, keep) for part in parts], scheduler, report, len(parts)
        )
    done = [r for r in results if r is not None]
    if not any(r[0] for r in done):
        return find(where, space, pins)  # says which rule leaves none
    plan = _joined([r[3] for r in done if r[3] is not None])
    total, step_s = (np.concatenate([r[k] for r in done]) for k in (4, 5))
    known = practised(plan, where)
    order = np.concatenate(
        [ranked(plan, step_s, np.flatnonzero(kind)) for kind in (known, ~known)]
    )[:keep]
    plan, total, step_s, known = take(plan, order), total[order], step_s[order], known[order]
    n = len(order)
    tally = (
        sum(r[0] for r in done),
        sum(r[1] for r in done),
        {text: c for text in REASONS if (c := sum(r[2].get(text, 0) for r in done))},
    )
    return Found(
        situation=where,
        plan=plan,
        total_bytes=total,
        fits=np.ones(n, bool),
        reason=np.full(n, -1),
        step_s=step_s,
        order=np.arange(n),
        practised=known,
        seconds=time.perf_counter() - start,
        unseen=len(parts) - len(done),
        tally=tally,
    )


def _parts(where, space, pins):
    """Pins of each part: one tp; with experts, whose degrees multiply, one pp and offload too."""
    r = where.resolved
    tps = (
        [pins["tp"]]
        if pins.get("tp") is not None
        else [int(t) for t in space.tp or divisors(r.model.heads) if t <= r.cluster.devices]
    )
    pps = (
        [pins["pp"]]
        if pins.get("pp") is not None
        else depths(r.model.layers, space, r.cluster.devices)
    )
    if not r.model.is_moe:
        yield from ({**pins, "tp": tp} for tp in tps)
        return
    for tp in tps:
        for pp in pps:
            if tp * pp <= r.cluster.devices:
                for offload in (
                    [pins["offload"]] if pins.get("offload") is not None else space.offload
                ):
                    yield {**pins, "tp": tp, "pp": pp, "offload": offload}


def _best(where, space, pins, keep, progress=None):
    """(legal, fitting, rejected, plan columns, memory, step) of one part, the fastest `keep`
    fitting plans of it."""
    try:
        found = find(where, space, pins, progress=progress)
    except DesignError:  # no legal plan in this part
        return 0, 0, {}, None, np.empty(0), np.empty(0)
    rows = found.order[:keep]
    return (
        found.legal,
        int(found.fits.sum()),
        found.rejected,
        take(found.plan, rows) if len(rows) else None,
        found.total_bytes[rows],
        found.step_s[rows],
    )


def _shed(results: list, which: list, keep: int):
    """Drop, in place, the rows of some parts that can no longer be among the `keep` fastest of
    them."""
    steps = np.concatenate([results[i][5] for i in which]) if which else np.empty(0)
    if len(steps) <= keep:
        return
    limit = np.partition(steps, keep)[keep] * (1 + 1e-9)
    for k in which:
        legal, fitting, rejected, plan, total, step_s = results[k]
        good = step_s <= limit
        if plan is not None and not good.all():
            results[k] = (
                legal,
                fitting,
                rejected,
                take(plan, good) if good.any() else None,
                total[good],
                step_s[good],
            )


def _joined(plans: list[Plan]) -> Plan:
    """Plan columns one after the other; what all share stays a scalar."""
    if not plans:
        return Plan(**{f: np.empty(0) for f in Plan.__dataclass_fields__})
    columns = {}
    for f in Plan.__dataclass_fields__:
        values = [getattr(p, f) for p in plans]
        columns[f] = (
            values[0]
            if all(np.ndim(v) == 0 for v in values)
            else np.concatenate([np.broadcast_to(v, np.shape(p.tp)) for v, p in zip(values, plans)])
        )
    return Plan(**columns)
