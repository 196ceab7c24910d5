"""What to avoid: tempting plans that lose on a design, from plans that its own search evaluated."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..catalogue.words import PRECISIONS
from ..endure.reliability import lived
from ..physics.cases import ZERO3, accumulated
from ..physics.collectives import ring_s
from ..physics.step import device_params, step_time
from ..physics.wires import Wires, members_inside
from ..plans.evaluate import Found
from ..plans.fit import REASONS
from ..plans.words import short
from ..verdict.record import Assessment, Chosen
from .alternatives import alternatives, best_where
from .why import longer
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
    """A trap and what it costs, as a share to sort by and by the id of its words."""

    what: str
    why: str
    loss: float
    cost: str = "step-time"


def avoid(assessment: Assessment) -> list[dict]:
    """Tempting plans that lose on this design, the most expensive first: [{what, why, cost}]."""
    found = alternatives(assessment)
    if found is None:
        return []
    entries = [*_pinned(found, assessment)]
    named = {e.what for e in entries}
    for trap in _traps(found, assessment):
        if trap.what not in named:
            entries += _priced(found, assessment.chosen, trap)
    for question in (_hourly_saves, _small_buckets, _fp16_range):
        entries += question(assessment)
    kept = sorted(entries, key=lambda e: -round(100 * abs(e.loss), 1))
    return [{"what": e.what, "why": e.why, "cost": say(e.cost, loss=e.loss)} for e in kept]


def _priced(found: Found, chosen: Chosen, trap: Trap) -> Iterator:
    """The entry of a trap if the best plan with its trait is worth avoiding here: slower by WORTH,
    or no plan with it fits."""
    if not np.any(trap.mask):
        return
    row = best_where(found, trap.mask)
    if row is None:
        yield _unfit(found, trap)
        return
    loss = longer(found, chosen, row)
    if found.row(row) != chosen.plan and loss >= trap.worth:
        yield _beside("slower", found, row, chosen, trap, loss)


def _beside(id: str, found: Found, row: int, chosen: Chosen, trap: Trap, loss: float) -> Entry:
    """The entry of a trap, with the plan and the step that it is compared by."""
    why = say(
        id, why=trap.why, plan=short(found.row(row)), then=found.step_s[row], now=chosen.step.total
    )
    return Entry(trap.what, why, loss)


def _unfit(found: Found, trap: Trap) -> Entry:
    """The entry of a trap that leads to no plan that fits: by its leanest."""
    leanest = _leanest(found, trap.mask)
    have = found.capacity
    need = found.total_bytes[leanest]
    why = say(
        "unfit",
        why=trap.why,
        n=trap.mask.sum(),
        plan=short(found.row(leanest)),
        need=need,
        have=have,
        reason=REASONS[found.reason[leanest]],
    )
    return Entry(trap.what, why, need / have - 1, "memory")


def _leanest(found: Found, mask) -> int:
    return int(np.flatnonzero(mask)[np.argmin(found.total_bytes[mask])])


def _pinned(found: Found, assessment: Assessment) -> Iterator:
    """The entries of traps that the pins themselves spring: the chosen plan has the trait, and the
    best plan without it is faster by what makes the trap worth naming."""
    chosen = assessment.chosen
    if not chosen.found.situation.phase.pins:
        return
    everywhere = {t.what: t.mask for t in _traps(found, assessment, every=True)}
    for trap in _traps(chosen.found.only([chosen.row]), assessment, every=True):
        row = best_where(found, ~everywhere.get(trap.what, np.zeros(len(found.fits), bool)))
        loss = 0.0 if row is None else chosen.step.total / found.step_s[row] - 1
        if trap.mask[0] and loss >= WORTH:
            yield _beside("pinned", found, row, chosen, trap, loss)


def _traps(found: Found, assessment: Assessment, every: bool = False) -> Iterator:
    """Traits of plans that are asked about; `every`: also those that the chosen plan has itself."""
    chosen = assessment.chosen
    model = assessment.resolved.model
    job = found.situation.job
    link = chosen.case.link
    plan = chosen.plan
    tp, cp, dp, ep, etp, sharding = map(found.column, ("tp", "cp", "dp", "ep", "etp", "sharding"))
    yield Trap(
        say("tp-across", domain=link.domain),
        tp > link.domain,
        say("tp-across-why", times=link.up_bytes_per_s / link.out_bytes_per_s),
        worth=0.0,  # nobody runs it: named wherever it is slower at all
    )
    yield from _sharding_alone(found, assessment)
    yield from _starved_pipeline(found)
    yield Trap(
        "unsharded optimizer states",
        (sharding == 0) & (dp * cp > 1) & (every or plan["sharding"] != "none"),
        say("unsharded-why", bytes=job.optimizer_bytes + job.master_bytes),
    )
    stage = -(-model.layers // plan["pp"])
    again = plan["recompute"] == "full" and plan["recompute_layers"] >= stage
    if not again or (every and "recompute" in chosen.found.situation.phase.pins):
        kept = "pinned" if again else plan["recompute"]
        yield Trap(
            "recomputing everything",
            (found.column("recompute") == FULL) & (found.column("recompute_share") == 1),
            say("recompute-why", kept=say(f"kept-{kept}", plan=plan)),
        )
    yield Trap(say("experts", domain=link.domain), ep * etp > link.domain, say("experts-why"))
    yield Trap(
        "expert parallelism of one",
        (ep == 1) & (model.experts > 1),
        "every rank would hold or gather all experts",
    )


def _sharding_alone(found: Found, assessment: Assessment) -> Iterator:
    """Sharding over data-parallel ranks and nothing else: what is gathered where, and how many
    devices such a plan can use."""
    ways = found.column("tp") * found.column("pp") * found.column("cp")
    mask = (ways == 1) & (found.column("sharding") >= ZERO3)
    if not mask.any():
        return
    row = best_where(found, mask)
    plan = found.row(_leanest(found, mask) if row is None else row)
    have = found.situation.resolved.cluster.devices
    chosen = assessment.chosen
    inside = plan["shard_group"] <= chosen.case.link.domain
    why = say(
        "gathered",
        weights=assessment.resolved.params.total / 1e9,
        where=say("gathered-inside" if inside else "gathered-across", plan=plan),
    )
    if plan["dp"] < have:
        why += say("gathered-idle", plan=plan, have=have, phase=chosen.phase)
    yield Trap("sharded data parallelism alone (no tp, pp or cp)", mask, why)


def _starved_pipeline(found: Found) -> Iterator:
    """A pipeline with too few micro-batches, where it is the bubble that costs."""
    pp = found.column("pp")
    m = accumulated(found.situation.job.global_batch, found.plan.dp, found.plan.micro_batch)
    mask = (pp > 1) & (m < 4 * pp) & (found.column("vpp") == 1)
    row = best_where(found, mask)
    if row is None:
        return
    step = step_time(found.case(row))
    share = step.bubble / step.total
    if share >= WORTH:
        yield Trap(say("starving"), mask, say("starved", plan=found.row(row), share=share))


def _small_buckets(assessment: Assessment) -> Iterator:
    """Small gradient buckets in a ring over many ranks: latency that no bandwidth hides."""
    c = assessment.chosen.case
    p = assessment.chosen.case.plan
    ranks = int(p.dp * p.cp)
    if ranks < 2 or p.sharding >= ZERO3 or c.chip.is_tpu:  # XLA has no such buckets
        return
    grads = float(sum(device_params(c)) * c.job.grad_bytes)
    wires = Wires(ranks, members_inside(ranks, p.tp, c.link.domain), c.link)
    ring = float(ring_s(0.0, wires))
    n = grads / SMALL_BUCKET  # latency of all hops [s]
    extra = ring * (n - max(grads / LARGE_BUCKET, 1.0))
    loss = extra / assessment.chosen.step.total
    if loss < WORTH:
        return
    why = say(
        "buckets-why",
        grads=grads,
        n=n,
        hops=ranks - 1,
        hop=ring / (ranks - 1) * 1e6,
        extra=extra,
        large=LARGE_BUCKET / 1e9,
    )
    yield Entry(say("buckets", small=SMALL_BUCKET / 1e6, ranks=ranks), why, loss)


def _fp16_range(assessment: Assessment) -> Iterator:
    """fp16 without loss scaling: what the mean over a micro-batch leaves of one logit's
    gradient."""
    chosen = assessment.chosen
    vocab = assessment.resolved.model.vocab
    if PRECISIONS[int(chosen.case.job.precision)] != "fp16":
        return
    tokens = float(chosen.case.plan.micro_batch) * chosen.phase.seq_len
    size = 1.0 / (tokens * vocab)
    if size >= FP16_LEAST:
        return
    why = say(
        "fp16-why",
        tokens=tokens,
        vocab=vocab,
        size=size,
        least=FP16_LEAST,
        scale=2 ** int(np.ceil(np.log2(FP16_LEAST / size))),
    )
    if not np.isnan(assessment.resolved.cluster.accelerator.bf16_flops):
        why += say("fp16-bf16")
    yield Entry("fp16 without loss scaling", why, 1.0, "fp16-cost")


def _hourly_saves(assessment: Assessment) -> Iterator:
    """Hourly saves, where goodput falls by more than a point against the chosen interval."""
    e = assessment.endurance
    if e.checkpoint_interval_s >= HOUR_S:
        return
    hourly = float(lived(replace(e.life, interval_s=HOUR_S))[0])
    loss = e.goodput - hourly
    if loss < WORTH_GOODPUT:
        return
    why = say(
        "hourly-why",
        e=e,
        lost=say("hourly-half" if e.mtbf_s > HOUR_S else "hourly-none"),
        hourly=hourly,
    )
    yield Entry("hourly checkpoints", why, loss, "hourly-cost")
