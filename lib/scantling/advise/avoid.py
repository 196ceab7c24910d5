"""What to avoid: tempting plans that lose on a design, from plans that its own search evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..catalogue.words import PRECISIONS
from ..endure.goodput import ettr
from ..physics.cases import micro_batches
from ..physics.collectives import Wires, members_inside, ring_s
from ..physics.step import device_params, step_time
from ..plans.fit import REASONS
from ..plans.run import ZERO3, Found
from ..plans.words import short
from ..verdict.record import Assessment, Chosen
from .alternatives import alternatives, best_where, column
from .words import say

WORTH = 0.05  # a trap is listed when it costs at least this share of a step
WORTH_GOODPUT = 0.01  # points of goodput from which hourly saves are a trap
HOUR_S = 3600.0
SMALL_BUCKET = 25e6  # bytes: the default of PyTorch's DistributedDataParallel
LARGE_BUCKET = 0.5e9  # bytes, of frameworks that choose it by the latency
FP16_LEAST = 2.0**-24  # the smallest number that fp16 can hold
FULL = 2  # code of full recompute


class Trap(NamedTuple):
    """A trait of plans that tempts, the plans that have it, and why it loses."""

    what: str
    mask: Any  # of the search's plans
    why: str
    worth: float = WORTH  # share of a step from which it is listed


class Entry(NamedTuple):
    """A trap and what it costs, as a number to sort by and in words."""

    what: str
    why: str
    size: float
    cost: str


def avoid(assessment: Assessment, others: Found | None = None) -> list[dict]:
    """Tempting plans that lose on this design, the most expensive first: [{what, why, cost}].

    others : `alternatives(assessment)`, where it is at hand."""
    found = others or alternatives(assessment)
    if found is None:
        return []
    entries = [_priced(found, assessment.chosen, trap) for trap in _traps(found, assessment)]
    entries += [question(assessment) for question in (_hourly_saves, _small_buckets, _fp16_range)]
    kept = sorted((e for e in entries if e is not None), key=lambda e: -e.size)
    return [
        dict(
            what=e.what,
            why=e.why,
            cost=e.cost,
        )
        for e in kept
    ]


def _priced(
    found: Found,
    chosen: Chosen,
    trap: Trap,
) -> Entry | None:
    """The entry of a trap if the best plan with its trait is worth avoiding here: slower by WORTH,
    or no plan with it fits."""
    if not np.any(trap.mask):
        return None
    row = best_where(found, trap.mask)
    if row is None:
        return _unfit(found, trap)
    now, then, plan = float(chosen.step.total), found.step_s[row], found.row(row)
    loss = then / now - 1
    if plan == chosen.plan or loss < trap.worth:
        return None
    why = say(
        "slower",
        why=trap.why,
        plan=short(plan),
        then=then,
        now=now,
    )
    return Entry(
        trap.what,
        why,
        round(100 * loss),
        say("step-time", loss=loss),
    )


def _unfit(found: Found, trap: Trap) -> Entry:
    """The entry of a trap that leads to no plan that fits: by its leanest."""
    leanest, n = _leanest(found, trap.mask), int(trap.mask.sum())
    need, have, plan = found.total_bytes[leanest], found.capacity, short(found.row(leanest))
    reason, more = REASONS[found.reason[leanest]], need / have - 1
    why = say(
        "unfit",
        why=trap.why,
        n=n,
        plan=plan,
        need=need,
        have=have,
        reason=reason,
    )
    return Entry(
        trap.what,
        why,
        abs(round(100 * more)),
        say("memory", more=more),
    )


def _leanest(found: Found, mask) -> int:
    return int(np.flatnonzero(mask)[np.argmin(found.total_bytes[mask])])


def _traps(found: Found, assessment: Assessment) -> Iterator[Trap]:
    """Traits of plans that are asked about."""
    chosen, model, job = assessment.chosen, assessment.resolved.model, found.situation.job
    link, domain = chosen.case.link, int(chosen.case.link.domain)
    tp, cp, dp, ep, etp, sharding = (
        column(found, k) for k in ("tp", "cp", "dp", "ep", "etp", "sharding")
    )
    yield Trap(
        say("tp-across", domain=domain),
        tp > domain,
        say("tp-across-why", times=link.up_bytes_per_s / link.out_bytes_per_s),
        worth=0.0,  # nobody runs it: named wherever it is slower at all
    )
    yield from _sharding_alone(found, assessment)
    yield from _starved_pipeline(found)
    yield Trap(
        "unsharded optimizer states",
        (sharding == 0) & (dp * cp > 1) & (chosen.plan["sharding"] != "none"),
        say("unsharded-why", bytes=job.optimizer_bytes + job.master_bytes),
    )
    stage = -(-model.layers // chosen.plan["pp"])
    if chosen.plan["recompute"] != "full" or chosen.plan["recompute_layers"] < stage:
        yield Trap(
            "recomputing everything",
            (column(found, "recompute") == FULL) & (column(found, "recompute_share") == 1),
            say("recompute-why", kept=_kept(chosen.plan)),
        )
    yield Trap(
        say("experts", domain=domain),
        ep * etp > domain,
        "dispatch and combine would ride the network cards in every MoE layer",
    )
    yield Trap(
        "expert parallelism of one",
        (ep == 1) & (model.experts > 1),
        "every rank would hold or gather all experts",
    )


def _sharding_alone(found: Found, assessment: Assessment) -> Iterator[Trap]:
    """Sharding over data-parallel ranks and nothing else: what is gathered where, and how many
    devices such a plan can use."""
    ways = column(found, "tp") * column(found, "pp") * column(found, "cp")
    mask = (ways == 1) & (column(found, "sharding") >= ZERO3)
    if not mask.any():
        return
    row = best_where(found, mask)
    row = _leanest(found, mask) if row is None else row
    used, group = int(column(found, "dp")[row]), int(column(found, "shard_group")[row])
    have, chosen = found.situation.resolved.cluster.devices, assessment.chosen
    where = say(
        f"gathered-{'inside' if group <= chosen.case.link.domain else 'across'}", group=group
    )
    why = say(
        "gathered",
        weights=assessment.resolved.params.total / 1e9,
        where=where,
    )
    if used < have:
        why += say(
            "gathered-idle",
            used=used,
            have=have,
            batch=chosen.phase.global_batch,
        )
    yield Trap("sharded data parallelism alone (no tp, pp or cp)", mask, why)


def _starved_pipeline(found: Found) -> Iterator[Trap]:
    """A pipeline with too few micro-batches, where it is the bubble that costs."""
    pp = column(found, "pp")
    m = np.broadcast_to(micro_batches(found.situation.job, found.plan), pp.shape)
    mask = (pp > 1) & (m < 4 * pp) & (column(found, "vpp") == 1)
    row = best_where(found, mask)
    if row is None:
        return
    step, plan = step_time(found.case(row)), found.row(row)
    share = float(step.bubble / step.total)
    if share >= WORTH:
        yield Trap(
            "a pipeline with fewer micro-batches than four a stage, not interleaved",
            mask,
            say(
                "starved",
                plan=plan,
                share=share,
            ),
        )


def _kept(plan: dict) -> str:
    return {
        "none": "without",
        "selective": "with selective recompute",
    }.get(plan["recompute"], f"with {plan['recompute_layers']} layers a stage recomputed")


def _small_buckets(assessment: Assessment) -> Entry | None:
    """Small gradient buckets in a ring over many ranks: latency that no bandwidth hides."""
    c, p = assessment.chosen.case, assessment.chosen.case.plan
    ranks = int(p.dp * p.cp)
    if ranks < 2 or p.sharding >= ZERO3 or c.chip.is_tpu:  # XLA has no such buckets
        return None
    grads = float(sum(device_params(c))) * float(c.job.grad_bytes)
    wires = Wires(ranks, members_inside(ranks, p.tp, c.link.domain), c.link)
    ring = float(ring_s(0.0, wires))  # latency of all hops [s]
    extra = ring * (grads / SMALL_BUCKET - max(grads / LARGE_BUCKET, 1.0))
    loss = extra / float(assessment.chosen.step.total)
    if loss < WORTH:
        return None
    why = say(
        "buckets-why",
        grads=grads,
        n=grads / SMALL_BUCKET,
        hops=ranks - 1,
        hop=ring / (ranks - 1) * 1e6,
        extra=extra,
        large=LARGE_BUCKET / 1e9,
    )
    what = say(
        "buckets",
        small=SMALL_BUCKET / 1e6,
        ranks=ranks,
    )
    return Entry(
        what,
        why,
        round(100 * loss),
        say("step-time", loss=loss),
    )


def _fp16_range(assessment: Assessment) -> Entry | None:
    """fp16 without loss scaling: what the mean over a micro-batch leaves of one logit's
    gradient."""
    case, vocab = assessment.chosen.case, assessment.resolved.model.vocab
    if PRECISIONS[int(case.job.precision)] != "fp16":
        return None
    tokens = float(case.plan.micro_batch) * assessment.chosen.phase.seq_len
    size = 1.0 / (tokens * vocab)
    if size >= FP16_LEAST:
        return None
    scale = 2 ** int(np.ceil(np.log2(FP16_LEAST / size)))
    other = not np.isnan(assessment.resolved.cluster.accelerator.bf16_flops)
    why = say(
        "fp16-why",
        tokens=tokens,
        vocab=vocab,
        size=size,
        least=FP16_LEAST,
        scale=scale,
    )
    why += say("fp16-bf16") if other else ""
    return Entry(
        "fp16 without loss scaling",
        why,
        100.0,
        "+100 % of such gradients lost",
    )


def _hourly_saves(assessment: Assessment) -> Entry | None:
    """Hourly saves, where goodput falls by more than a point against the chosen interval."""
    e = assessment.endurance
    interval, mtbf, now = float(e.checkpoint_interval_s), float(e.mtbf_s), float(e.goodput)

    def at(seconds: float) -> float:
        lost = dict(
            durable_s=e.checkpoint_durable_s,
            restart_s=e.restart_s,
            down_s=e.detect_s,
        )
        return float(
            ettr(
                e.mtbf_s,
                e.checkpoint_stall_s,
                seconds,
                **lost,
            )
        )

    if interval >= HOUR_S:
        return None
    hourly = now * at(HOUR_S) / at(interval)
    if now - hourly < WORTH_GOODPUT:
        return None
    lost = say("hourly-half" if mtbf > HOUR_S else "hourly-none")
    why = say(
        "hourly-why",
        mtbf=mtbf,
        lost=lost,
        hourly=hourly,
        now=now,
        interval=interval,
    )
    loss = now - hourly
    return Entry(
        "hourly checkpoints",
        why,
        round(100 * loss, 1),
        say("hourly-cost", loss=loss),
    )
