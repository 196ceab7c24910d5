"""What to avoid: tempting plans that lose on a design, from plans that its own search evaluated."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base.columns import Array
from ..base.show import percent, seconds, share, size
from ..base.units import HOUR_S
from ..catalogue.words import PRECISIONS, Precision, Recompute, Sharding
from ..endure.life import lived
from ..physics.cases import FULL, ZERO3, Cases, accumulated
from ..physics.collectives import ring_s
from ..physics.step import device_params, step_time
from ..physics.wires import Wires, members_inside
from ..plans.evaluate import Search
from ..plans.fit import REASONS
from ..plans.plan_names import PlanRow, short
from ..verdict.assessment import Assessment, Chosen
from ..verdict.result import Avoid
from .alternatives import alternatives, best_among, longer

WORTH = 0.05  # a trap is listed when it costs at least this share of a step
SLOWER_CARDS = (0.5, 0.25, 0.125)  # shares of the cards' rate that are looked at
WORTH_GOODPUT = 0.01  # points of goodput from which hourly saves are a trap
SMALL_BUCKET = 25e6  # bytes: the default of PyTorch's DistributedDataParallel
LARGE_BUCKET = 0.5e9  # bytes, of frameworks that choose it by the latency
FP16_LEAST = 2.0**-24  # the smallest number that fp16 can hold


class Trap(NamedTuple):
    """A trait of plans that tempts, the plans that have it, and why it loses."""

    what: str
    mask: Array  # of the search's plans
    why: str
    worth: float = WORTH  # share of a step from which it is listed


class Entry(NamedTuple):
    """A trap and what it costs, as a share to sort by and in words."""

    what: str
    why: str
    loss: float
    cost: str


def avoid(assessment: Assessment) -> list[Avoid]:
    """Tempting plans that lose on this design, the most expensive first."""
    search = alternatives(assessment)
    if search is None:
        return []
    entries = [*_pinned(search, assessment)]
    named = {entry.what for entry in entries}
    for trap in _traps(search, assessment):
        if trap.what not in named:
            entries += _priced(search, assessment.chosen, trap)
    for question in (_hourly_saves, _small_buckets, _fp16_range):
        entries += question(assessment)
    entries.sort(key=lambda entry: -round(100 * abs(entry.loss), 1))
    return [Avoid(what=entry.what, why=entry.why, cost=entry.cost) for entry in entries]


def _step_time(loss: float) -> str:
    """What a trap costs of a step."""
    return f"{percent(loss, 0, '+')} step time"


def _priced(search: Search, chosen: Chosen, trap: Trap) -> Iterator[Entry]:
    """The entry of a trap if the best plan with its trait is worth avoiding here: slower by WORTH,
    or no plan with it fits."""
    if not np.any(trap.mask):
        return
    row = best_among(search, trap.mask)
    if row is None:
        yield _unfit(search, trap)
        return
    loss = longer(search, chosen, row)
    if search.row(row) != chosen.plan and loss >= trap.worth:
        then, now = seconds(search.step_s[row]), seconds(chosen.step.total)
        plan = short(search.row(row))
        why = f"{trap.why}; its best plan ({plan}) takes {then} a step against {now}"
        yield Entry(trap.what, why, loss, _step_time(loss))


def _unfit(search: Search, trap: Trap) -> Entry:
    """The entry of a trap that leads to no plan that fits: by its leanest."""
    row = _leanest(search, trap.mask)
    need = search.total_bytes[row]
    loss = float(need / search.capacity - 1)
    why = (
        f"{trap.why}; none of its {trap.mask.sum():,} plans fits: the leanest "
        f"({short(search.row(row))}) needs {size(need)} of {size(search.capacity)}: "
        f"{REASONS[search.reason[row]]}"
    )
    return Entry(trap.what, why, loss, f"{percent(loss, 0, '+')} memory")


def _leanest(search: Search, mask: Array) -> int:
    return int(np.flatnonzero(mask)[np.argmin(search.total_bytes[mask])])


def _pinned(search: Search, assessment: Assessment) -> Iterator[Entry]:
    """The entries of traps that the pins themselves spring: the chosen plan has the trait, and the
    best plan without it is faster by what makes the trap worth naming."""
    chosen = assessment.chosen
    if not chosen.search.situation.phase.pins:
        return
    nowhere = np.zeros(len(search.fits), bool)
    everywhere = {t.what: t.mask for t in _traps(search, assessment, every=True)}
    for trap in _traps(chosen.search.only([chosen.row]), assessment, every=True):
        row = best_among(search, ~everywhere.get(trap.what, nowhere))
        loss = 0.0 if row is None else float(chosen.step.total / search.step_s[row] - 1)
        if row is not None and trap.mask[0] and loss >= WORTH:
            then, now = seconds(search.step_s[row]), seconds(chosen.step.total)
            plan = short(search.row(row))
            why = f"{trap.why}; it is pinned: without it {plan} takes {then} instead of {now}"
            yield Entry(trap.what, why, loss, _step_time(loss))


def _traps(search: Search, assessment: Assessment, every: bool = False) -> Iterator[Trap]:
    """Traits of plans that are asked about; `every`: also those that the chosen plan has itself."""
    chosen = assessment.chosen
    model = assessment.resolved.model
    job = search.situation.job
    link = chosen.case.link
    tp, ep, etp = search.column("tp"), search.column("ep"), search.column("etp")
    times = link.up_bytes_per_s / link.out_bytes_per_s
    of_nodes = link.domain == assessment.resolved.cluster.devices_per_node
    yield Trap(
        f"tensor parallelism across {'nodes' if of_nodes else 'scale-up domains'} "
        f"(tp above {link.domain:.0f})",
        tp > link.domain,
        "every layer's collectives would leave the scale-up domain for a network "
        f"{times:.0f} times slower per device{_on_slower_cards(search, tp > link.domain)}",
        worth=0.0,  # nobody runs it: named wherever it is slower at all
    )
    yield from _sharding_alone(search, assessment)
    yield from _starved_pipeline(search)
    ranks = search.column("dp") * search.column("cp")
    unsharded = every or chosen.plan["sharding"] != Sharding.NONE
    yield Trap(
        "unsharded optimizer states",
        (search.column("sharding") == 0) & (ranks > 1) & unsharded,
        f"each replica keeps {job.optimizer_bytes + job.master_bytes:g} bytes a parameter that its "
        "data-parallel peers could share",
    )
    yield from _full_recompute(search, assessment, every)
    yield Trap(
        f"experts spread across scale-up domains (ep x etp above {link.domain:.0f})",
        ep * etp > link.domain,
        "dispatch and combine would ride the network cards in every MoE layer",
    )
    yield Trap(
        "expert parallelism of one",
        (ep == 1) & (model.experts > 1),
        "every rank would hold or gather all experts",
    )


def _on_slower_cards(search: Search, across: Array) -> str:
    """What decides whether tensor parallelism across nodes ruins a run: the step of its best plan
    on the cards that there are, and on slower ones, against the best plan inside a domain there."""
    rows = search.fastest(search.practised & across), search.fastest(search.practised & ~across)
    if None in rows:
        rows = search.fastest(across), search.fastest(~across)
    far, near = rows
    if far is None or near is None:
        return ""
    far_case, near_case = search.case(far), search.case(near)
    more = []
    for part in (1.0, *SLOWER_CARDS):
        far_s, near_s = (
            float(step_time(_with_cards(case, part)).total) for case in (far_case, near_case)
        )
        more.append(percent(far_s / near_s - 1, 0, "+"))
    rates = ", ".join(f"{text} at {part:g} of it" for text, part in zip(more[1:], SLOWER_CARDS))
    return (
        f"; whether that ruins the step is a matter of the cards and of the layer's width: here "
        f"{more[0]} against the best plan inside a domain at the cards' own rate, {rates}"
    )


def _with_cards(case: Cases, part: float) -> Cases:
    """The case with cards at a part of their rate."""
    out = case.link.out_bytes_per_s * part
    return replace(case, link=replace(case.link, out_bytes_per_s=out))


def _full_recompute(search: Search, assessment: Assessment, every: bool) -> Iterator[Trap]:
    """Recomputing everything, where less is enough."""
    chosen = assessment.chosen
    plan = chosen.plan
    stage_layers = -(-assessment.resolved.model.layers // plan["pp"])
    whole = plan["recompute"] == Recompute.FULL and plan["recompute_layers"] >= stage_layers
    if whole and not (every and "recompute" in chosen.search.situation.phase.pins):
        return
    fits = "with less of it" if whole else _recomputed(plan)
    yield Trap(
        "recomputing everything",
        (search.column("recompute") == FULL) & (search.column("recompute_share") == 1),
        f"a second forward pass that this design does not need: it fits {fits}",
    )


def _recomputed(plan: PlanRow) -> str:
    """What a plan computes again, in words that follow `it fits`."""
    if plan["recompute"] == Recompute.NONE:
        return "without"
    if plan["recompute"] == Recompute.SELECTIVE:
        return "with selective recompute"
    return f"with {plan['recompute_layers']} layers a stage recomputed"


def _sharding_alone(search: Search, assessment: Assessment) -> Iterator[Trap]:
    """Sharding over data-parallel ranks and nothing else: what is gathered where, and how many
    devices such a plan can use."""
    ways = search.column("tp") * search.column("pp") * search.column("cp")
    mask = (ways == 1) & (search.column("sharding") >= ZERO3)
    if not mask.any():
        return
    row = best_among(search, mask)
    plan = search.row(_leanest(search, mask) if row is None else row)
    have = search.situation.resolved.cluster.devices
    chosen = assessment.chosen
    group = plan["shard_group"]
    place = f"over {group:,} ranks across the network"
    if group <= chosen.case.link.domain:
        place = f"inside each scale-up domain of {group}"
    weights = assessment.resolved.params.total / 1e9
    why = f"all {weights:,.0f}B weights are gathered {place} every micro-batch"
    if plan["dp"] < have:
        why += (
            f", and only {plan['dp']:,} of {have:,} devices work: dp x micro-batch has to divide "
            f"the global batch of {chosen.phase.global_batch:,}"
        )
    yield Trap("sharded data parallelism alone (no tp, pp or cp)", mask, why)


def _starved_pipeline(search: Search) -> Iterator[Trap]:
    """A pipeline with too few micro-batches, where it is the bubble that costs."""
    pp = search.column("pp")
    batch = search.situation.job.global_batch
    m = accumulated(batch, search.plan.dp, search.plan.micro_batch)
    mask = (pp > 1) & (m < 4 * pp) & (search.column("vpp") == 1)
    row = best_among(search, mask)
    if row is None:
        return
    step = step_time(search.case(row))
    bubble = float(step.bubble / step.total)
    if bubble >= WORTH:
        plan = search.row(row)
        yield Trap(
            "a pipeline with fewer micro-batches than four a stage, not interleaved",
            mask,
            f"with {plan['grad_accum']:,} micro-batches over {plan['pp']} stages the bubble is "
            f"{percent(bubble, 0)} of the step",
        )


def _small_buckets(assessment: Assessment) -> Iterator[Entry]:
    """Small gradient buckets in a ring over many ranks: latency that no bandwidth hides."""
    case = assessment.chosen.case
    plan = case.plan
    ranks = int(plan.dp * plan.cp)
    if ranks < 2 or plan.sharding >= ZERO3 or case.chip.is_tpu:  # XLA has no such buckets
        return
    grads = float(sum(device_params(case)) * case.job.grad_bytes)
    wires = Wires(ranks, members_inside(ranks, plan.tp, case.link.domain), case.link)
    ring = float(ring_s(0.0, wires))  # latency of all hops
    buckets = grads / SMALL_BUCKET
    extra = ring * (buckets - max(grads / LARGE_BUCKET, 1.0))
    loss = float(extra / assessment.chosen.step.total)
    if loss < WORTH:
        return
    hops = ranks - 1
    why = (
        f"{size(grads)} of gradients a device make {buckets:,.0f} buckets, each {hops:,} hops of "
        f"{ring / hops * 1e6:.1f} µs: {seconds(extra)} more than in buckets of "
        f"{LARGE_BUCKET / 1e9:g} GB; trees or larger buckets"
    )
    what = f"a ring all-reduce in {SMALL_BUCKET / 1e6:.0f} MB buckets over {ranks:,} ranks"
    yield Entry(what, why, loss, _step_time(loss))


def _fp16_range(assessment: Assessment) -> Iterator[Entry]:
    """fp16 without loss scaling: what the mean over a micro-batch leaves of one logit's
    gradient."""
    chosen = assessment.chosen
    vocab = assessment.resolved.model.vocab
    if PRECISIONS[int(chosen.case.job.precision)] != Precision.FP16:
        return
    tokens = float(chosen.case.plan.micro_batch) * chosen.phase.seq_len
    gradient = 1.0 / (tokens * vocab)
    if gradient >= FP16_LEAST:
        return
    scale = 2 ** int(np.ceil(np.log2(FP16_LEAST / gradient)))
    why = (
        f"the mean over {tokens:,.0f} tokens leaves about 1/({tokens:,.0f} x {vocab:,}) = "
        f"{gradient:.1e} of a typical logit's gradient, below fp16's smallest number "
        f"{FP16_LEAST:.1e}; scale the loss by {scale:,} or more, dynamically"
    )
    if not np.isnan(assessment.resolved.cluster.accelerator.bf16_flops):
        why += ", or use bf16, which this chip has"
    yield Entry("fp16 without loss scaling", why, 1.0, "+100 % of such gradients lost")


def _hourly_saves(assessment: Assessment) -> Iterator[Entry]:
    """Hourly saves, where goodput falls by more than a point against the chosen interval."""
    endurance = assessment.endurance
    if endurance.checkpoint_interval_s >= HOUR_S:
        return
    hourly = float(lived(replace(endurance.life, interval_s=HOUR_S))[0])
    loss = float(endurance.goodput - hourly)
    if loss < WORTH_GOODPUT:
        return
    lost = "comes before the hour is over"
    if endurance.mtbf_s > HOUR_S:
        lost = "throws away half an hour on average"
    why = (
        f"a failure every {seconds(endurance.mtbf_s)} {lost}; goodput {share(hourly)} against "
        f"{share(endurance.goodput)} at {seconds(endurance.checkpoint_interval_s)}"
    )
    yield Entry("hourly checkpoints", why, loss, f"{percent(loss)}-points less goodput")
