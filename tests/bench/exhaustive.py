"""Every execution of the space that Calculon's exhaustive search walks (Isaev et al. 2023),
streamed through the same models in chunks.

Its axes, for a dense model: tensor and pipeline degrees that divide the devices, the rest
data-parallel; every chunk count that divides a stage; every micro-batch that divides a replica's
batch; recompute none, attention, full; optimizer sharded or not; tensor-parallel traffic as
all-reduce, or reduce-scatter and all-gather without or with sequence-parallel norms; the gather
redone in the backward or kept; three ways of overlapping tensor and two of data traffic; and which
of two networks each axis rides. It is a measure of speed and breadth: for planning,
`searching.find` leaves out what differs in name only.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace

import numpy as np
from scantling.base.records import take
from scantling.physics.cases import Plan, accumulated
from scantling.physics.gather import Situation
from scantling.physics.memory.peak import memory
from scantling.physics.pipeline import schedule_code
from scantling.physics.step import step_time
from scantling.plans.enumerate import divisors
from scantling.plans.fit import REASONS, host_bytes, why_not

CHUNK = 8192
TIER = "an axis does not fit on the network it is given"
UNEVEN = "micro-batches do not divide over the pipeline for interleaving"
BASE = ("tp", "pp", "dp", "vpp", "micro_batch")
VARIANT = (
    "recompute sharded sp gather_redone dp_overlap tp_overlap tp_network pp_network dp_network"
).split()


@dataclass(frozen=True)
class Exhausted:
    """Outcome: executions looked at, those timed, rejected by reason, the best ones [{fields,
    step_s}], seconds taken."""

    executions: int
    timed: int
    rejected: dict
    best: list
    seconds: float


def bases(where: Situation):
    """BASE of every execution as columns: what its memory and most of its time depend on."""
    model, phase, n = where.resolved.model, where.phase, where.resolved.cluster.devices
    layers, batch = model.layers, phase.global_batch
    rows = [
        (tp, pp, dp, chunks, micro)
        for tp in divisors(n)
        if not (model.heads % tp or model.hidden % tp)
        for pp in divisors(min(n // tp, layers))
        if not (layers % pp or n % (tp * pp))
        for dp in [n // (tp * pp)]
        for chunks in (divisors(layers // pp) if pp > 1 else (1,))
        for micro in (divisors(batch // dp) if batch >= dp else ())
        if micro * phase.seq_len % tp == 0
    ]
    return np.array(rows, float).T


def variants(tp: bool, pp: bool, dp: bool):
    """VARIANT, the other axes, for executions with or without each degree, as columns."""
    rows = [
        (recompute, sharded, how == "norms", redo, data, tensor, *nets)
        for recompute in (2, 1, 0)
        for sharded in ((1, 0) if dp else (0,))
        for how in ("all-reduce", "scatter", "norms")
        for redo in ((1, 0) if how == "norms" and recompute != 2 else (0,))
        for data in ((1, 0) if dp else (0,))
        for tensor in ((-1, 0, 1) if tp else (0,))
        for nets in itertools.product(*(range(1 + axis) for axis in (tp, pp, dp)))
    ]
    return np.array(rows, float).T


def exhaust(where: Situation, top: int = 10, progress=None) -> Exhausted:
    """Score the whole space; memory once for what differs in traffic alone. Holds no more than a
    chunk of rows at a time.

    progress : function(executions so far), called after each chunk; it may raise to stop.
    """
    start = time.perf_counter()
    columns, reasons = bases(where), (*REASONS, TIER, UNEVEN)
    total, timed, rejected, best = 0, 0, np.zeros(len(reasons), int), []
    for kind in itertools.product((False, True), repeat=3):
        base = columns[:, ((columns[:3] > 1) == np.array(kind)[:, None]).all(axis=0)]
        inner = variants(*kind)
        most = max(CHUNK // inner.shape[1], 1)
        for i in range(0, base.shape[1], most):
            size, counts, found = _chunk(where, base[:, i : i + most], inner, top)
            total, timed, rejected = total + size, timed + size - counts.sum(), rejected + counts
            best = sorted(best + found)[:top]
            if progress:
                progress(total)
    return Exhausted(
        total,
        int(timed),
        {reason: n for reason, n in zip(reasons, rejected.tolist()) if n},
        [dict(zip(("step_s", *BASE, *VARIANT), row)) for row in best],
        time.perf_counter() - start,
    )


def _chunk(where, rows, inner, top):
    """(executions, rejected by reason, the `top` fastest as rows) of every base under every
    variant."""
    # recompute, sharded, sequence-parallel norms: what memory sees
    state, group = np.unique(inner[:3], axis=1, return_inverse=True)
    group, states = group.ravel(), state.shape[1]
    tp, pp, dp, vpp, micro = np.repeat(rows, states, axis=1)
    recompute, sharded, norms = np.tile(state, rows.shape[1])
    plan = Plan(
        tp=tp,
        pp=pp,
        vpp=vpp,
        dp=dp,
        sp=np.where(tp > 1, norms, 0.0),
        sharding=sharded.astype(int),
        shard_group=dp,
        schedule=np.where(vpp > 1, schedule_code("interleaved"), schedule_code("1f1b")),
        micro_batch=micro,
        recompute=recompute.astype(int),
    )
    reason = why_not(memory(where.cases(plan)), host_bytes(where.resolved.cluster))
    reason = reason.reshape(-1, states)[:, group]
    _, pp, dp, vpp, micro = rows
    ragged = (vpp > 1) & (accumulated(where.phase.global_batch, dp, micro) % pp != 0)
    sizes = np.prod(rows[:3, :, None] ** (inner[6:] == 0)[:, None], axis=0)
    legal = sizes <= where.link.domain
    even = legal & ~ragged[:, None]
    fit, *unfit = np.bincount(reason[even] + 1, minlength=len(REASONS) + 1)
    counts = np.array([*unfit, (~legal).sum(), (legal & ~even).sum()])
    if not fit:
        return legal.size, counts, []
    r, v = np.nonzero(even & (reason < 0))
    case, variant = where.cases(take(plan, r * states + group[v])), inner[:, v]
    inside = np.where(variant[6] == 0, np.maximum(sizes[r, v], case.plan.tp), 1.0)
    timed = replace(
        case,
        link=replace(where.link, domain=inside),
        software=replace(case.software, tp_overlap=variant[5], dp_overlap=variant[4]),
    )
    seconds = step_time(timed).total
    k = np.argsort(seconds, kind="stable")[:top]
    return (legal.size, counts, np.vstack([seconds, rows[:, r], variant])[:, k].T.tolist())
