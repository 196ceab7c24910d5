"""Every execution of the space that Calculon's exhaustive search walks (Isaev et al. 2023),
streamed through the same models in chunks.

Its axes, for a dense model: tensor and pipeline degrees that divide the devices, the rest
data-parallel; every chunk count that divides a
stage; every micro-batch that divides a replica's batch; recompute none, attention, full; optimizer
sharded or not; tensor-parallel traffic
as all-reduce, or reduce-scatter and all-gather without or with sequence-parallel norms; the gather
redone in the backward or kept; three
ways of overlapping tensor and two of data traffic; and which of two networks each axis rides. It is
a measure of speed and breadth: for
planning, `searching.find` leaves out what differs in name only.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace

import numpy as np

from ..base.records import take
from ..physics.cases import Plan, accumulated
from ..physics.gather import Situation
from ..physics.memory.peak import memory
from ..physics.pipeline import schedule_code
from ..physics.step import step_time
from ..plans.enumerate import divisors
from ..plans.fit import REASONS, host_bytes, why_not

CHUNK = 8192
TIER = "an axis does not fit on the network it is given"
UNEVEN = "micro-batches do not divide over the pipeline for interleaving"


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
    """(tp, pp, dp, vpp, micro_batch) of every execution as columns: what its memory and most of its
    time depend on."""
    n, layers, heads, batch = (
        where.resolved.cluster.devices,
        where.resolved.model.layers,
        where.resolved.model.heads,
        where.phase.global_batch,
    )
    rows = []
    for tp in divisors(n):
        if heads % tp or where.resolved.model.hidden % tp:
            continue
        for pp in divisors(min(n // tp, layers)):
            if layers % pp or n % (tp * pp):
                continue
            dp = n // (tp * pp)
            local = batch // dp
            chunks = divisors(layers // pp) if pp > 1 else (1,)
            rows += [
                (int(tp), int(pp), int(dp), int(v), int(b))
                for v in chunks
                for b in (divisors(local) if local else ())
                if b * where.phase.seq_len % tp == 0
            ]
    return np.array(rows, float).T


def variants(tp: bool, pp: bool, dp: bool):
    """The other axes for executions with or without each degree, as columns: recompute, sharded,
    sequence-parallel norms, gather redone, overlaps, networks."""
    rows = [
        (recompute, sharded, how == "norms", redo, data, tensor, *nets)
        for recompute in (2, 1, 0)
        for sharded in ((1, 0) if dp else (0,))
        for how in ("all-reduce", "scatter", "norms")
        for redo in ((1, 0) if how == "norms" and recompute != 2 else (0,))
        for data in ((1, 0) if dp else (0,))
        for tensor in ((-1, 0, 1) if tp else (0,))
        for nets in itertools.product(
            range(2 if tp else 1), range(2 if pp else 1), range(2 if dp else 1)
        )
    ]
    return np.array(rows, float).T


def exhaust(where: Situation, top: int = 10, progress=None) -> Exhausted:
    """Score the whole space; memory once for what differs in traffic alone. Holds no more than a
    chunk of rows at a time.

    progress : function(executions so far), called after each chunk; it may raise to stop.
    """
    start = time.perf_counter()
    tp, pp, dp, vpp, micro = bases(where)
    host, domain = host_bytes(where.resolved.cluster), where.link.domain
    interleaved, plain = schedule_code("interleaved"), schedule_code("1f1b")
    total, timed, rejected, best = 0, 0, dict.fromkeys((*REASONS, TIER, UNEVEN), 0), []
    for kind in itertools.product((False, True), repeat=3):
        base = np.flatnonzero(((tp > 1) == kind[0]) & ((pp > 1) == kind[1]) & ((dp > 1) == kind[2]))
        inner = variants(*kind)
        width = inner.shape[1]
        state, group = np.unique(
            inner[:3], axis=1, return_inverse=True
        )  # recompute, sharded, sequence-parallel norms: what memory sees
        group = group.ravel()
        for i in range(0, len(base), max(CHUNK // width, 1)):
            rows = base[i : i + max(CHUNK // width, 1)]
            across = np.repeat(rows, state.shape[1])
            recompute, sharded, norms = np.tile(state, len(rows))
            code = np.where(vpp[across] > 1, interleaved, plain)
            plan = Plan(
                tp=tp[across],
                cp=1.0,
                pp=pp[across],
                vpp=vpp[across],
                dp=dp[across],
                ep=1.0,
                etp=1.0,
                sp=np.where(tp[across] > 1, norms, 0.0),
                sharding=sharded.astype(int),
                shard_group=dp[across],
                schedule=code,
                micro_batch=micro[across],
                recompute=recompute.astype(int),
            )
            reason = why_not(memory(where.cases(plan)), host)
            m = accumulated(where.phase.global_batch, dp[rows], micro[rows])
            ragged = (vpp[rows] > 1) & (m % pp[rows] != 0)
            fast = (
                np.where(inner[6] == 0, 1.0, 0.0),
                np.where(inner[7] == 0, 1.0, 0.0),
                np.where(inner[8] == 0, 1.0, 0.0),
            )
            sizes = (
                tp[rows][:, None] ** fast[0]
                * pp[rows][:, None] ** fast[1]
                * dp[rows][:, None] ** fast[2]
            )
            of_memory = reason.reshape(len(rows), -1)[:, group]
            legal = sizes <= domain
            even = ~ragged[:, None] & np.ones_like(legal)
            good = legal & even & (of_memory < 0)
            total += good.size
            rejected[TIER] += int((~legal).sum())
            rejected[UNEVEN] += int((legal & ~even).sum())
            counts = np.bincount(of_memory[legal & even & (of_memory >= 0)], minlength=len(REASONS))
            for text, n in zip(REASONS, counts):
                rejected[text] += int(n)
            r, v = np.nonzero(good)
            if len(r):
                part = take(plan, (r * state.shape[1] + group[v]))
                link = replace(
                    where.link,
                    domain=np.where(inner[6][v] == 0, np.maximum(sizes[r, v], part.tp), 1.0),
                )
                case = where.cases(part)
                software = replace(case.software, tp_overlap=inner[5][v], dp_overlap=inner[4][v])
                seconds = step_time(replace(case, link=link, software=software)).total
                timed += len(r)
                k = np.argsort(seconds, kind="stable")[:top]
                best += [
                    (
                        float(seconds[j]),
                        *(
                            float(x)
                            for x in (
                                part.tp[j],
                                part.pp[j],
                                part.dp[j],
                                part.vpp[j],
                                part.micro_batch[j],
                            )
                        ),
                        *(float(x) for x in inner[:, v[j]]),
                    )
                    for j in k
                ]
                best = sorted(best)[:top]
            if progress:
                progress(total)
    names = (
        "step_s",
        "tp",
        "pp",
        "dp",
        "vpp",
        "micro_batch",
        "recompute",
        "sharded",
        "sp",
        "gather_redone",
        "dp_overlap",
        "tp_overlap",
        "tp_network",
        "pp_network",
        "dp_network",
    )
    return Exhausted(
        total,
        timed,
        {k: n for k, n in rejected.items() if n},
        [dict(zip(names, row)) for row in best],
        time.perf_counter() - start,
    )
