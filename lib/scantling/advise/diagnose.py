"""From a measured run back to its losses: which defect, how bad, would make this plan as slow as it
was, and what to measure to tell.

Every cause is one change to the case (a rate, a switch, the plan that was really in force), put
through the same models. A cause with a
size is solved for the size that explains the measurement; one without is compared with it. The
order is prior x likelihood, a guide to
what to look at first and not a probability to act on: causes combine, and the priors below are
judgement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..base.show import percent, shown
from ..catalogue.words import RECOMPUTES
from ..physics.cases import Cases
from ..physics.memory.peak import memory
from ..physics.step import rates, step_time
from ..plans.words import short
from ..verdict.assess import assess
from ..verdict.constraints import Z80
from ..verdict.numbers import utilisation

ENOUGH = 0.8  # share of the gap below which a cause does not explain it alone
MEMORY_SD = (
    0.10  # of ln(measured / predicted memory), the spread of the memory model over published peaks
)
FULL = RECOMPUTES.index("full")


@dataclass(frozen=True)
class Cause:
    """One defect: prior weight, change(case, size) -> case; size from 1 (sound) to `worst`, sd of
    ln(size); worst None: it is there or not."""

    name: str
    prior: float
    change: object
    measure: str
    worst: float | None = None
    sd: float = 0.0
    says: str = "{x:.2f} times"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """measured and predicted step [s], the band [s], whether the measurement lies in it, the chance
    of a run as slow, and the causes in order."""

    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    inside: bool
    chance: float  # that a sound run is as slow (or, where it was faster, as fast)
    causes: list  # [{cause, weight, size, step_s, memory_bytes, explains, measure}]
    lines: list  # for the reader


def _chip(c: Cases, **f):
    return replace(c, chip=replace(c.chip, **f))


def _link(c: Cases, **f):
    return replace(c, link=replace(c.link, **f))


def _soft(c: Cases, **f):
    return replace(c, software=replace(c.software, **f))


def _const(c: Cases, **f):
    return replace(c, constants=replace(c.constants, **f))


SLOWER = (
    Cause(
        "devices run below their clock (power cap, heat)",
        1.0,
        lambda c, x: _chip(
            c, linear_flops=c.chip.linear_flops / x, bf16_flops=c.chip.bf16_flops / x
        ),
        (
            "SM clock and power of every device over ten minutes; one GEMM of the model's "
            "shape alone on each node"
        ),
        1.8,
        0.2,
        "clocks {x:.2f} times lower than rated",
    ),
    Cause(
        "the network between nodes is slower than rated",
        1.0,
        lambda c, x: _link(c, out_bytes_per_s=c.link.out_bytes_per_s / x),
        (
            "an all-reduce and an all-to-all of this plan's group sizes between nodes, "
            "alone; routing and congestion counters of the switches"
        ),
        8.0,
        0.5,
        "{x:.1f} times slower",
    ),
    Cause(
        "the link inside the node is slower than rated",
        0.5,
        lambda c, x: _link(c, up_bytes_per_s=c.link.up_bytes_per_s / x),
        "an all-reduce inside each node; link widths and error counters",
        8.0,
        0.4,
        "{x:.1f} times slower",
    ),
    Cause(
        "tensor-parallel ranks or expert groups are spread over nodes",
        0.6,
        lambda c, x: _link(c, domain=1.0),
        (
            "the rank order of the launcher against the node list; traffic on the network "
            "cards in a forward pass"
        ),
    ),
    Cause(
        "waiting for slow nodes",
        1.2,
        lambda c, x: _const(
            c,
            straggler=c.constants.straggler
            + (x - 1) / np.log2(max(float(c.plan.tp * c.plan.pp * c.plan.dp * c.plan.cp) / 8, 2.0)),
        ),
        (
            "time in the first collective of a step by rank; the step of each node alone; "
            "leave the slowest out and repeat"
        ),
        2.5,
        0.15,
        "the slowest takes {x:.2f} times as long",
    ),
    Cause(
        "the input pipeline or logging holds the step up",
        0.8,
        lambda c, x: _const(c, step_host_s=c.constants.step_host_s + _one_step(c) * (x - 1)),
        (
            "the step with synthetic data and no logging; time between the end of one step "
            "and the first kernel of the next"
        ),
        3.0,
        0.2,
        "{y:.2f} s a step outside the model",
    ),
    Cause(
        "kernels are launched too slowly by the host",
        0.8,
        lambda c, x: _const(
            c, layer_host_s=c.constants.layer_host_s * x, moe_host_s=c.constants.moe_host_s * x
        ),
        (
            "gaps between kernels in a trace; processor governor and pinning; the step with "
            "CUDA graphs"
        ),
        20.0,
        0.7,
        "{x:.1f} times the usual launch time",
    ),
    Cause(
        "element-wise kernels are not fused",
        0.7,
        lambda c, x: _soft(c, fused_norm=0.0),
        "kernels per layer in a trace: norm, rotary and activation should be one each",
    ),
    Cause(
        "attention materialises its scores",
        0.5,
        lambda c, x: _soft(c, flash=0.0),
        "the attention kernel's name in a trace; memory against the sequence length",
    ),
    Cause(
        "gradient traffic does not overlap with the backward pass",
        0.9,
        lambda c, x: _soft(c, dp_overlap=0.0),
        "a trace of the last micro-batch: are reductions beside compute or after it?",
    ),
    Cause(
        "sends between stages do not overlap",
        0.4,
        lambda c, x: _soft(c, p2p_overlap=0.0),
        "a trace of one pipeline rank: send and receive beside compute or between",
    ),
    Cause(
        "layers are recomputed that should not be",
        0.7,
        lambda c, x: c.with_plan(recompute=FULL, recompute_share=1.0),
        "forward kernels in the backward pass of a trace; peak memory against the prediction",
    ),
    Cause(
        "the schedule is not interleaved",
        0.4,
        lambda c, x: c.with_plan(vpp=1.0, schedule=1),
        "the pipeline's warm-up in a trace: chunks per rank",
    ),
    Cause(
        "tokens crowd on few experts",
        1.2,
        lambda c, x: _const(c, ep_imbalance=c.constants.ep_imbalance * x),
        "tokens by expert and rank over a hundred steps; the all-to-all's slowest rank",
        4.0,
        0.35,
        "the fullest rank has {x:.2f} times the mean",
    ),
    Cause(
        "all-to-all does not overlap with compute",
        0.7,
        lambda c, x: _soft(c, ep_overlap=0.0),
        "a trace of one MoE layer",
    ),
)
FASTER = (
    Cause(
        "tensor-parallel traffic overlaps with its products",
        1.0,
        lambda c, x: _soft(c, tp_overlap=1.0),
        "a trace of one layer",
    ),
    Cause(
        "less is recomputed than planned",
        1.0,
        lambda c, x: c.with_plan(recompute=0),
        "forward kernels in the backward pass; peak memory",
    ),
    Cause(
        "CUDA graphs cover the step",
        0.7,
        lambda c, x: _soft(c, graphs=2.0),
        "launches per step in a trace",
    ),
    Cause(
        "a newer attention kernel",
        0.7,
        lambda c, x: _soft(c, flash=3.0),
        "the attention kernel's name",
    ),
    Cause(
        "traffic between experts overlaps",
        0.7,
        lambda c, x: _soft(c, ep_overlap=1.0),
        "a trace of one MoE layer",
    ),
    Cause(
        "the loss is computed in chunks",
        0.4,
        lambda c, x: _soft(c, chunked_loss=1.0),
        "the size of the logits tensor",
    ),
)


def _one_step(c: Cases) -> float:
    return float(step_time(c).total)


def diagnose(design) -> Diagnosis:
    """The likely losses of a measured run, most likely first. `design` carries `measured` (step_s,
    mfu or tokens_per_s_per_device; memory_gb too
    where known) and, best, the plan that ran, pinned.

    Raises ValueError where nothing that tells the step time was measured.
    """
    a = assess(design)
    if not a.phases:
        raise ValueError(
            "no plan of this design fits: there is nothing to compare a measurement with"
        )
    said = a.resolved.measured
    if not set(said) & {"step_s", "mfu", "tokens_per_s_per_device"}:
        raise ValueError(
            "measured.step_s, measured.mfu or measured.tokens_per_s_per_device is needed"
        )
    measured, chosen = a.step_s, a.chosen
    sound = assess(
        design.change({"measured": None, **{f"plan.{k}": v for k, v in pins(chosen.plan).items()}})
    )
    predicted = float(sound.chosen.step.total)
    low, high = sound.chosen.step_s_low, sound.chosen.step_s_high
    side = math.log(high / predicted) if measured > predicted else math.log(predicted / low)
    spread = max(side / Z80, 0.02)
    z = abs(math.log(measured / predicted)) / spread
    chance = 0.5 * math.erfc(z / math.sqrt(2))
    peak = said.get("memory_gb")
    rows = [
        _row(cause, sound.chosen.case, measured, predicted, spread, peak)
        for cause in (SLOWER if measured > predicted else FASTER)
    ]
    rows = [r for r in rows if r and r["weight"] > 1e-6]
    total = sum(r["weight"] for r in rows) or 1.0
    rows = sorted(({**r, "weight": r["weight"] / total} for r in rows), key=lambda r: -r["weight"])
    lines = _lines(sound, measured, chance, rows, peak)
    if not design.plan.given():
        lines.insert(
            1,
            (
                f"the plan that ran is not in the design: the prediction is of the search's "
                f"own ({short(chosen.plan)}); pin what ran before trusting the order below"
            ),
        )
    return Diagnosis(
        measured_s=measured,
        predicted_s=predicted,
        low_s=low,
        high_s=high,
        inside=low <= measured <= high,
        chance=chance,
        causes=[{k: v for k, v in r.items() if k != "_changed"} for r in rows],
        lines=lines,
    )


def pins(plan: dict) -> dict:
    """The fields of a plan that a design file takes as pins."""
    out = {
        k: plan[k]
        for k in (
            "tp",
            "cp",
            "pp",
            "vpp",
            "dp",
            "sharding",
            "schedule",
            "micro_batch",
            "recompute",
            "offload",
            "sp",
        )
    }
    if plan["ep"] > 1 or plan["etp"] > 1:
        out |= {"ep": plan["ep"], "etp": plan["etp"]}
    if plan["sharding"] == "hsdp":
        out["shard_group"] = plan["shard_group"]
    if plan["recompute"] != "none":
        out["recompute_layers"] = plan["recompute_layers"]
    if plan["tp"] == 1:
        out.pop("sp")
    return out


def _row(cause: Cause, case: Cases, measured, predicted, spread, peak):
    at = lambda x: float(step_time(cause.change(case, x)).total)  # noqa: E731
    size, penalty = None, 0.0
    if cause.worst is None:
        seconds = at(1.0)
        if (
            abs(seconds / predicted - 1) < 0.01
            or (seconds - predicted) * (measured - predicted) < 0
        ):
            return None
    else:
        if at(cause.worst) / predicted - 1 < 0.01:
            return None
        lo, hi = 1.0, cause.worst
        for _ in range(30):
            mid = math.sqrt(lo * hi)
            lo, hi = (mid, hi) if at(mid) < measured else (lo, mid)
        size = math.sqrt(lo * hi)
        seconds = at(size)
        penalty = (math.log(size) / cause.sd) ** 2
    changed = cause.change(case, size or 1.0)
    again = lambda other: cause.change(other, size or 1.0)  # noqa: E731
    used = float(memory(changed).total)
    penalty += (math.log(measured / seconds) / spread) ** 2
    if peak is not None:
        penalty += (math.log(peak * 1e9 / used) / MEMORY_SD) ** 2
    return dict(
        cause=cause.name,
        weight=cause.prior * math.exp(-penalty / 2),
        size=None if size is None else cause.says.format(x=size, y=seconds - predicted),
        step_s=seconds,
        memory_bytes=used,
        explains=min((seconds - predicted) / (measured - predicted), 1.0),
        measure=cause.measure,
        _changed=again,
    )


def _lines(sound, measured: float, chance: float, rows: list[dict], peak: float | None):
    """What is measured and predicted, and the first causes, in words."""
    one = sound.chosen
    predicted, low, high = one.step_s, one.step_s_low, one.step_s_high
    inside = low <= measured <= high
    word = "slower" if measured > predicted else "faster"
    use = utilisation(sound.chosen, measured)
    out = [
        (
            f"measured {measured:.4g} s a step (MFU {percent(use['mfu'])}), predicted "
            f"{predicted:.4g} s ({low:.4g} to {high:.4g}): "
            f"{percent(abs(measured / predicted - 1), 0)} {word}; "
        )
        + (
            "inside the band, so it may be nothing but what the model cannot tell"
            if inside
            else (
                f"outside the band; a sound run is as {word[:-2]} in "
                f"{shown(chance, 'share')} of cases"
            )
        )
    ]
    if peak is not None:
        used = float(sound.chosen.memory.total) / 1e9
        out.append(
            (
                f"measured {peak:.4g} GB at the peak, predicted {used:.4g} GB: "
                f"{percent(peak / used - 1, 0, '+')}"
            )
            + (
                (
                    "; above nine tenths of the device, allocator retries alone can cost "
                    "several per cent"
                )
                if peak * 1e9 > 0.9 * float(sound.chosen.memory.capacity)
                else ""
            )
        )
    for i, r in enumerate(rows[:5], 1):
        out.append(
            f"{i}. {r['cause']}"
            + (f" ({r['size']})" if r["size"] else "")
            + f": explains {percent(r['explains'], 0)} of it; measure {r['measure']}"
        )
    if len(rows) > 1 and max(r["explains"] for r in rows) < ENOUGH:
        out.append(
            "none of these alone explains it; "
            + _at_once(rows[:5], sound.chosen.case, measured, predicted)
        )
    if not rows:
        out.append(
            "no single cause that the kit knows explains it; pin the plan that ran and "
            "check the measurement's own arithmetic (tokens, devices, peak)"
        )
    return out


def _at_once(rows, case, measured, predicted) -> str:
    """The first causes together, as many as it takes."""
    for row in rows:
        case = row["_changed"](case)
        seconds = _one_step(case)
        share = (seconds - predicted) / (measured - predicted)
        if share >= ENOUGH:
            break
    return (
        f"the first {rows.index(row) + 1} at once would make {seconds:.4g} s, "
        f"{percent(share, 0)} of it"
    )


def losses(assessment) -> list[dict]:
    """Where the step goes beside the matrix products, largest first: [{part, step_s, share, gain}];
    gain: MFU if that part were gone."""
    step_s = assessment.step_s
    _, _, mfu = rates(assessment.chosen.case, step_s)
    parts = sorted(
        ((k, v) for k, v in assessment.step_breakdown_s.items() if k != "gemm" and v > 0),
        key=lambda kv: -kv[1],
    )
    return [
        dict(
            part=k,
            step_s=v,
            share=v / step_s,
            gain=float(mfu) * step_s / (step_s - v),
        )
        for k, v in parts
    ]
