"""Why this plan, and what to avoid: every line from plans that this design's own search
evaluated."""

from __future__ import annotations

import numpy as np

from ..base.errors import DesignError
from ..base.quantities.table import show
from ..base.show import percent
from ..catalogue.words import SHARDINGS
from ..endure.goodput import ettr
from ..physics.cases import PRECISIONS, devices, micro_batches
from ..physics.collectives import Wires, members_inside, ring_s
from ..physics.communication import communication
from ..physics.step import PARTS, device_params, step_time
from ..plans import space as planning
from ..plans.fit import REASONS
from ..plans.run import ZERO3, Found, find, unpinned
from ..plans.words import short
from ..verdict.limits import LOSSES
from ..verdict.unpublished import exchanges

WORTH_SAYING = 0.005
NEARLY_ALL = 0.9  # share of today's devices that a neighbouring value has to keep at work
OWN = (
    "gemm",
    "attention",
    "elementwise",
    "logits",
)  # what the fullest stage does itself: which of them it is depends on where the head is
WORTH = 0.05  # a trap is listed when it costs at least this share of a step
AXES = ("tp", "cp", "pp", "dp", "ep")
SMALL_BUCKET = 25e6  # bytes: the default of PyTorch's DistributedDataParallel
FP16_LEAST = 2.0**-24  # the smallest number that fp16 can hold


def alternatives(assessment) -> Found | None:
    """The search that alternatives come from: the design's own, or one without its pins; None where
    the plan does not fit."""
    if not assessment.phases or not assessment.chosen.fits:
        return None
    found = assessment.chosen.found
    if not found.situation.phase.pins:
        return found
    return find(
        unpinned(found.situation), planning.offered(planning.DEFAULT, assessment.resolved.stack)
    )


def _column(found, name):
    return np.broadcast_to(np.asarray(getattr(found.plan, name), float), found.fits.shape)


def best_where(found, mask, practised: bool = True):
    """Row of the fastest fitting plan under a mask, of a kind that has been run where there is one;
    None where none fits."""
    for kind in (mask & found.practised, mask) if practised else (mask,):
        rows = np.flatnonzero(kind & found.fits)
        if len(rows):
            return int(rows[np.argmin(found.step_s[rows])])
    return None


def _trap(found, chosen, what, mask, why) -> list[dict]:
    """One entry if the best plan with this trait is worth avoiding here: slower by WORTH, or no
    plan with it fits."""
    if not np.any(mask):
        return []
    base, row = float(chosen.step.total), best_where(found, mask)
    if row is not None and found.row(row) == chosen.plan:
        return []
    if row is None:
        leanest = int(np.flatnonzero(mask)[np.argmin(found.total_bytes[mask])])
        need, have = found.total_bytes[leanest], found.capacity
        return [
            dict(
                what=what,
                why=f"{why}; none of its {int(mask.sum()):,} plans fits: the leanest "
                f"({short(found.row(leanest))}) needs {show('memory_bytes.total', need)} "
                f"of "
                f"{show('memory_bytes.capacity', have)}: {REASONS[found.reason[leanest]]}",
                cost=percent(need / have - 1, 0, "+") + " memory",
            )
        ]
    loss = found.step_s[row] / base - 1
    if loss < WORTH:
        return []
    return [
        dict(
            what=what,
            why=(
                f"{why}; its best plan ({short(found.row(row))}) takes "
                f"{show('step_s', found.step_s[row])} a step against {show('step_s', base)}"
            ),
            cost=percent(loss, 0, "+") + " step time",
        )
    ]


def avoid(assessment, others: Found | None = None) -> list[dict]:
    """Tempting plans that lose on this design, the most expensive first: [{what, why, cost}].

    others : `alternatives(assessment)`, where it is at hand."""
    found = others or alternatives(assessment)
    if found is None:
        return []
    chosen = assessment.chosen
    link = chosen.case.link
    tp, pp, cp, dp, ep, etp = (_column(found, k) for k in ("tp", "pp", "cp", "dp", "ep", "etp"))
    sharding, vpp, recompute = (
        _column(found, "sharding"),
        _column(found, "vpp"),
        _column(found, "recompute"),
    )
    m = np.broadcast_to(micro_batches(found.situation.job, found.plan), found.fits.shape)
    ratio = link.up_bytes_per_s / link.out_bytes_per_s
    domain = int(link.domain)
    out = []
    out += _trap(
        found,
        chosen,
        f"tensor parallelism across nodes (tp above {domain})",
        tp > domain,
        (
            f"every layer's collectives would leave the scale-up domain for a network "
            f"{ratio:.0f} times slower per device"
        ),
    )
    out += _alone(
        found, chosen, (tp * pp * cp == 1) & (sharding >= ZERO3), assessment.resolved.params.total
    ) + _starved(found, chosen, (pp > 1) & (m < 4 * pp) & (vpp == 1))
    out += _trap(
        found,
        chosen,
        "unsharded optimizer states",
        (sharding == 0) & (dp * cp > 1) & (chosen.plan["sharding"] != "none"),
        (
            f"each replica keeps "
            f"{found.situation.job.optimizer_bytes + found.situation.job.master_bytes:g} "
            f"bytes a parameter that its data-parallel peers could share"
        ),
    )
    if chosen.plan["recompute"] != "full" or chosen.plan["recompute_layers"] < -(
        -assessment.resolved.model.layers // chosen.plan["pp"]
    ):
        out += _trap(
            found,
            chosen,
            "recomputing everything",
            (recompute == 2) & (_column(found, "recompute_share") == 1),
            f"a second forward pass that this design does not need: it fits {_kept(chosen.plan)}",
        )
    out += _trap(
        found,
        chosen,
        f"experts spread across scale-up domains (ep x etp above {domain})",
        ep * etp > domain,
        "dispatch and combine would ride the network cards in every MoE layer",
    )
    out += _trap(
        found,
        chosen,
        "expert parallelism of one",
        (ep == 1) & (assessment.resolved.model.experts > 1),
        "every rank would hold or gather all experts",
    )
    out += _intervals(assessment) + _buckets(assessment) + _range(assessment)
    return sorted(out, key=lambda a: -_size(a["cost"]))


def _alone(found, chosen, mask, params) -> list[dict]:
    """Sharding over data-parallel ranks and nothing else: what is gathered where, and how many
    devices such a plan can use."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return []
    row = best_where(found, mask)
    row = int(rows[np.argmin(found.total_bytes[rows])]) if row is None else row
    used, have, group = (
        int(_column(found, "dp")[row]),
        found.situation.resolved.cluster.devices,
        int(_column(found, "shard_group")[row]),
    )
    where = (
        f"inside each scale-up domain of {group}"
        if group <= chosen.case.link.domain
        else f"over {group:,} ranks across the network"
    )
    few = (
        (
            f", and only {used:,} of {have:,} devices work: dp x micro-batch has to divide "
            f"the global batch of {chosen.phase.global_batch:,}"
        )
        if used < have
        else ""
    )
    return _trap(
        found,
        chosen,
        "sharded data parallelism alone (no tp, pp or cp)",
        mask,
        f"all {params / 1e9:,.0f}B weights are gathered {where} every micro-batch{few}",
    )


def _starved(found, chosen, mask) -> list[dict]:
    """A pipeline with too few micro-batches, where it is the bubble that costs."""
    row = best_where(found, mask)
    if row is None:
        return []
    step, plan = step_time(found.case(row)), found.row(row)
    share = float(step.bubble / step.total)
    if share < WORTH:
        return []
    return _trap(
        found,
        chosen,
        "a pipeline with fewer micro-batches than four a stage, not interleaved",
        mask,
        (
            f"with {plan['grad_accum']:,} micro-batches over {plan['pp']} stages the bubble "
            f"is {percent(share, 0)} of the step"
        ),
    )


def _kept(plan) -> str:
    return {"none": "without", "selective": "with selective recompute"}.get(
        plan["recompute"], f"with {plan['recompute_layers']} layers a stage recomputed"
    )


def _size(cost: str) -> float:
    return abs(float(cost.split("%")[0].replace(",", "").replace("−", "-")))


def _buckets(assessment) -> list[dict]:
    """Small gradient buckets in a ring over many ranks: latency that no bandwidth hides."""
    chosen = assessment.chosen
    c, p = chosen.case, chosen.case.plan
    ranks = int(p.dp * p.cp)
    if ranks < 2 or p.sharding >= ZERO3 or c.chip.is_tpu:  # XLA has no such buckets
        return []
    dense, experts = device_params(c)
    grads = float(dense + experts) * float(c.job.grad_bytes)
    inside = members_inside(ranks, c.plan.tp, c.link.domain)
    w = Wires(ranks, inside, c.link)
    hop = float(ring_s(0.0, w)) / (ranks - 1)
    extra = hop * (ranks - 1) * (grads / SMALL_BUCKET - max(grads / 0.5e9, 1.0))
    loss = extra / float(chosen.step.total)
    if loss < WORTH:
        return []
    return [
        dict(
            what=f"a ring all-reduce in {SMALL_BUCKET / 1e6:.0f} MB buckets over {ranks:,} ranks",
            cost=percent(loss, 0, "+") + " step time",
            why=f"{show('communication.bytes', grads)} of gradients a device make "
            f"{grads / SMALL_BUCKET:,.0f} buckets, each {ranks - 1:,} hops of "
            f"{hop * 1e6:.1f} µs: "
            f"{show('step_s', extra)} more than in buckets of 0.5 GB; trees or larger buckets",
        )
    ]


def _range(assessment) -> list[dict]:
    """fp16 without loss scaling: what the mean over a micro-batch leaves of one logit's
    gradient."""
    phase, p = assessment.chosen.phase, assessment.chosen.case.plan
    if PRECISIONS[int(assessment.chosen.case.job.precision)] != "fp16":
        return []
    tokens, chip = float(p.micro_batch) * phase.seq_len, assessment.resolved.cluster.accelerator
    size = 1.0 / (tokens * assessment.resolved.model.vocab)
    if size >= FP16_LEAST:
        return []
    scale = 2 ** int(np.ceil(np.log2(FP16_LEAST / size)))
    return [
        dict(
            what="fp16 without loss scaling",
            cost="+100 % of such gradients lost",
            why=f"the mean over {tokens:,.0f} tokens leaves about 1/({tokens:,.0f} x "
            f"{assessment.resolved.model.vocab:,}) = {size:.1e} of a typical logit's "
            f"gradient, below fp16's "
            f"smallest number {FP16_LEAST:.1e}; scale the loss by {scale:,} or more, dynamically"
            + ("" if np.isnan(chip.bf16_flops) else ", or use bf16, which this chip has"),
        )
    ]


def _intervals(assessment) -> list[dict]:
    """Hourly saves, where goodput falls by more than a point against the chosen interval."""
    e = assessment.endurance
    at = lambda interval: float(
        ettr(
            e.mtbf_s,
            e.checkpoint_stall_s,
            interval,
            durable_s=e.checkpoint_durable_s,
            restart_s=e.restart_s,
            down_s=e.detect_s,
        )
    )  # noqa: E731
    if float(e.checkpoint_interval_s) >= 3600:
        return []
    hourly = float(e.goodput) * at(3600.0) / at(float(e.checkpoint_interval_s))
    if float(e.goodput) - hourly < 0.01:
        return []
    return [
        dict(
            what="hourly checkpoints",
            why=(
                f"a failure every {show('mtbf_s', float(e.mtbf_s))} "
                + (
                    "throws away half an hour on average"
                    if float(e.mtbf_s) > 3600
                    else "comes before the hour is over"
                )
            )
            + f"; goodput {show('goodput', hourly)} "
            f"against {show('goodput', float(e.goodput))} at "
            f"{show('checkpoint_interval_s', float(e.checkpoint_interval_s))}",
            cost=percent(float(e.goodput) - hourly) + "-points less goodput",
        )
    ]


def why(assessment, others: Found | None = None) -> list[dict]:
    """One line per axis in use (and the next value of the others): tier, traffic, exposed time,
    cost of the neighbouring values.

    others : `alternatives(assessment)`, where it is at hand."""
    if not assessment.phases:
        return []
    chosen = assessment.chosen
    found, plan = others or alternatives(assessment) or chosen.found, chosen.plan
    rows = {r["axis"]: r for r in communication(chosen.case, chosen.step)}
    out = []
    for axis in AXES:
        if axis == "ep" and assessment.resolved.model.experts == 0:
            continue
        text = f"{axis} {plan[axis]}"
        if axis in rows:
            r = rows[axis]
            text += (
                f" on the {r['tier']} tier: {r['what']}, "
                f"{show('communication.bytes', r['bytes'])} a device and step, "
                f"{show('communication.exposed_s', r['exposed_s'])} of "
                f"{show('communication.time_s', r['time_s'])} exposed"
            )
        elif plan[axis] == 1:
            text += ": not used"
        if axis == "cp" and plan["cp"] > 1:
            text += _exchanges(chosen)
        sides = [
            s for s in (_beside(found, chosen, axis, plan[axis], up) for up in (True, False)) if s
        ]
        out.append(dict(axis=axis, text=text + ("; " + "; ".join(sides) if sides else "")))
    out += _pinned(assessment, found)
    shared = (_column(found, "dp") * _column(found, "cp")) > 1
    others = {
        name: best_where(found, shared & (_column(found, "sharding") == i))
        for i, name in enumerate(SHARDINGS)
        if name != plan["sharding"]
    }
    costs = [
        (
            f"{name}{' at one micro-batch a step' if name == 'zero2' else ''} "
            f"{percent(found.step_s[i] / float(chosen.step.total) - 1, sign='+')}"
        )
        for name, i in others.items()
        if i is not None and chosen.fits
    ]
    out.append(
        dict(
            axis="sharding",
            text=f"sharding {plan['sharding']}"
            + (": step time of the best plan with " + ", ".join(costs) if costs else ""),
        )
    )
    return out


def _exchanges(chosen) -> str:
    """The other ways of exchanging keys and values, by the same plan."""
    ways = ", ".join(
        f"{name} {percent(ratio - 1, sign='+')}" for name, ratio in exchanges(chosen).items()
    )
    return f"; by {chosen.plan['cp_type']} ({ways} step time on paper)" if ways else ""


def _beside(found, chosen, axis, value, up) -> str:
    """What the next value of an axis that leaves hardly a device idle would cost (else the next at
    all), at the best setting of everything else."""
    column = _column(found, axis)
    side = column > value if up else column < value
    if not side.any() or not chosen.fits:
        return ""
    every, now = np.broadcast_to(devices(found.plan), column.shape), int(devices(chosen.case.plan))
    busy = side & found.fits & (every >= NEARLY_ALL * now)
    beyond = column[busy] if busy.any() else column[side]
    other = beyond.min() if up else beyond.max()
    row = best_where(found, (busy if busy.any() else side) & (column == other))
    if row is None:
        return f"{axis} {int(other)} does not fit"
    used = int(every[row])
    return (
        (
            f"{axis} {int(other)} "
            f"{percent(found.step_s[row] / float(chosen.step.total) - 1, sign='+')} step "
            f"time"
        )
        + (f" on {used:,} devices" if used != now else "")
        + ("" if found.practised[row] else " on paper (untried)")
    )


def _pinned(assessment, found) -> list[dict]:
    """What the pins cost: the open search's best plan, and what letting go of each pin alone
    gains."""
    chosen = assessment.chosen
    where, base = chosen.found.situation, float(chosen.step.total)
    pins = [k for k, v in where.phase.pins.items() if v is not None]
    if not pins or not chosen.fits or found.best() is None:
        return []
    best = found.best()
    gain = 1 - float(found.step_s[best]) / base
    if gain < WORTH_SAYING:
        return [
            dict(
                axis="pins",
                text=(
                    f"pins: the open search finds nothing that is {percent(WORTH_SAYING)} "
                    f"faster than the pinned plan"
                ),
            )
        ]
    alone = {}
    for pin in pins:
        try:
            one = find(
                unpinned(where, *(p for p in pins if p != pin)),
                planning.offered(planning.DEFAULT, assessment.resolved.stack),
            )
        except DesignError:
            continue
        if one.best() is not None and 1 - float(one.step_s[one.best()]) / base >= WORTH_SAYING:
            alone[pin] = 1 - float(one.step_s[one.best()]) / base
    each = ", ".join(
        f"{pin} {percent(gained)}" for pin, gained in sorted(alone.items(), key=lambda kv: -kv[1])
    )
    other = step_time(found.case(best))
    of = lambda part: (float(getattr(chosen.step, part)) - float(getattr(other, part))) / base  # noqa: E731
    parts = sorted(
        [
            (sum(of(part) for part in OWN), "work of the fullest stage"),
            *((of(part), LOSSES.get(part, part)) for part in PARTS if part not in OWN),
        ]
    )
    saved = ", ".join(
        f"{name} {percent(share)}" for share, name in reversed(parts) if share >= WORTH_SAYING
    )
    spent = ", ".join(
        f"{name} {percent(-share)}" for share, name in parts if share <= -WORTH_SAYING
    )
    return [
        dict(
            axis="pins",
            text=(
                f"pins: the open search's best ({short(found.row(best))}) takes "
                f"{percent(gain)} less: of today's step it saves {saved}"
            )
            + (f" and adds {spent}" if spent else "")
            + "; letting go of one pin alone gains "
            + (each or "nothing"),
        )
    ]
