"""Roofline of a plan: for each kind of kernel its arithmetic intensity, the rate it reaches, what
bounds it and its share of the step.

Williams, Waterman and Patterson 2009 (doi:10.1145/1498765.1498785): a kernel of F FLOP that moves b
bytes runs at no more than
min(peak, F / b x bandwidth). The same line drawn for the links (FLOP per byte sent, times the
link's rate) says whether an axis of the
plan could be hidden at all. Times are those of `compute` and `step`; nothing is timed twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from . import compute
from .cases import RECOMPUTES, Cases, moe_share, tokens
from .communication import communication

SELECTIVE, FULL = RECOMPUTES.index("selective"), RECOMPUTES.index("full")
# Kingma and Ba 2015 (arXiv 1412.6980), algorithm 1, with decoupled decay: operations per parameter
ADAM_FLOP = 16.0
# forward and backward of flash attention in forwards: Dao 2023 (arXiv 2307.08691), section 3.1
FLASH_PASSES = 3.5


@dataclass(frozen=True)
class Kernel:
    """One kind of kernel on the fullest stage's device, forward, backward and recompute of one step
    together."""

    kernel: (
        str  # projections, mlp, experts, shared_experts, attention, elementwise, logits, optimizer
    )
    label: str
    flops: float  # executed in one step [FLOP]
    bytes: float  # to and from HBM in one step, every operand once [bytes]
    intensity: float  # flops / bytes [FLOP/byte]
    achieved_flops: float  # flops / seconds [FLOP/s]
    attainable_flops: float  # min(peak, intensity x HBM rate) [FLOP/s]
    peak_flops: float  # dense peak of the number format it runs in [FLOP/s]
    seconds: float  # in one step [s]
    share: float  # of the step
    bound: str  # compute or memory: the lower of the two roofs


@dataclass(frozen=True)
class Axis:
    """One axis of the plan against the link that its slowest hop takes."""

    axis: str
    tier: str  # scale-up or scale-out
    bytes: float  # sent by one device in a step [bytes]
    intensity: float  # FLOP of the step per byte sent [FLOP/byte]
    attainable_flops: (
        float  # min(peak, intensity x link rate): above it this axis cannot be hidden [FLOP/s]
    )
    achieved_flops: float  # of the whole step [FLOP/s]
    time_s: float  # on the wire [s]
    exposed_s: float  # of it, what adds to the step [s]


@dataclass(frozen=True)
class Roofline:
    """Kernels and axes of one plan under the roofs of one device."""

    kernels: tuple[Kernel, ...]
    axes: tuple[Axis, ...]
    peak_flops: float  # dense, of the job's precision [FLOP/s]
    bf16_flops: float  # dense, of what stays in 16 bit [FLOP/s]
    hbm_bytes_per_s: float
    scale_up_bytes_per_s: float  # per device, one direction
    scale_out_bytes_per_s: float  # per device, one direction
    ridge: float  # peak_flops / hbm_bytes_per_s [FLOP/byte]
    achieved_flops: float  # executed FLOP of the step / step time [FLOP/s]
    step_s: float

    def as_dict(self) -> dict:
        """Plain data."""
        return asdict(self)


def roofline(assessment) -> Roofline | None:
    """The roofline of the plan that an assessment chose; None where no plan fits.

    flops = what the device executes: matrix products three times the forward (plus recompute),
    flash attention 3.5 times the causal
    forward; `mfu` counts full attention and no recompute, so the sum over kernels is not
    flops_per_token x tokens. bytes = 2 per operand
    element, each read or written once (perfect reuse inside a kernel); tables of measured counters
    show more. Element-wise work counts
    one FLOP a value moved. Seconds are the parts of `step_breakdown_s`, each split among its
    kernels as `compute` times them.
    Source: Williams et al. 2009; volumes of `compute` and `traffic`.
    """
    if not assessment.phases:
        return None
    chosen, figures = assessment.chosen, assessment.figures
    c, parts, step_s = chosen.case, figures["step_breakdown_s"], figures["step_s"]
    stretch = (
        step_s
        / float(chosen.step.total)
        * float(c.constants.overall * np.where(c.software.step_engine > 0, c.constants.engine, 1.0))
    )
    kernels = tuple(
        _kernel(c, row, stretch, step_s)
        for row in [*_layer_rows(c, parts), *_other_rows(c, parts)]
        if row[5] > 0
    )
    done = sum(k.flops for k in kernels)
    peak, hbm = float(c.chip.linear_flops), float(c.chip.hbm_bytes_per_s)
    link = {"scale-up": float(c.link.up_bytes_per_s), "scale-out": float(c.link.out_bytes_per_s)}
    axes = tuple(
        Axis(
            row["axis"],
            row["tier"],
            row["bytes"],
            done / row["bytes"],
            min(peak, done / row["bytes"] * link[row["tier"]]),
            done / step_s,
            row["time_s"],
            row["exposed_s"],
        )
        for row in communication(c, chosen.step)
        if row["bytes"] > 0
    )
    return Roofline(
        kernels,
        axes,
        peak,
        float(c.chip.bf16_flops),
        hbm,
        link["scale-up"],
        link["scale-out"],
        peak / hbm,
        done / step_s,
        step_s,
    )


def _kernel(c: Cases, row, stretch: float, step_s: float) -> Kernel:
    """(name, label, forward FLOP, forward bytes, forward seconds, seconds in the step, peak,
    passes) to a `Kernel`."""
    name, label, flops, moved, once_s, seconds, peak = row
    intensity, rate = flops / moved, flops / (once_s * stretch)
    roof = intensity * float(c.chip.hbm_bytes_per_s)
    done = rate * seconds
    return Kernel(
        name,
        label,
        done,
        done / intensity,
        intensity,
        rate,
        min(peak, roof),
        peak,
        seconds,
        seconds / step_s,
        "compute" if roof >= peak else "memory",
    )


def _again(c: Cases) -> tuple[float, float, float]:
    """Forwards repeated by recompute: of GEMMs, attention, element-wise chains."""
    full = float(np.where(c.plan.recompute == FULL, c.plan.recompute_share, 0.0))
    some = float(np.where(c.plan.recompute == SELECTIVE, c.plan.recompute_share, 0.0))
    return (
        full + some * float(c.software.selective_gemm),
        full + some * float(c.software.selective_attention),
        full + some * float(c.software.selective_elementwise),
    )


def _gemms(c: Cases) -> list[tuple]:
    """(name, label, FLOP, operand bytes, seconds) of the forward GEMMs of one average layer and
    micro-batch on one rank."""
    s, p, k = c.shape, c.plan, c.constants
    t, h = float(tokens(c)), float(s.hidden)
    moe = float(moe_share(c))
    matrices = float(
        s.ffn_matrices
    )  # as many as inner widths that are read or written: gate, up, down
    rows = [
        ("projections", "QKV and output projections", *compute.attention_linear(c, t), 1.0, None)
    ]
    dense = float(s.ffn_hidden / p.tp)
    if moe < 1:
        rows.append(
            (
                "mlp",
                "MLP",
                2 * t * h * dense * matrices,
                t * (2 * h + matrices * dense) + matrices * h * dense,
                2.0,
                1 - moe,
                None,
            )
        )
    if moe:
        copies, local = float(compute.busiest_rows(c, t)), float(s.experts / p.ep)
        wide, shared = float(s.expert_ffn_hidden / p.etp), float(s.shared_ffn_hidden / p.tp)
        each = max(copies / max(local, 1), 1.0)
        rate = compute.linear_rate(c) * k.grouped_gemm * each / (each + k.grouped_half)
        rows.append(
            (
                "experts",
                "Routed experts (grouped)",
                2 * copies * h * wide * matrices,
                copies * (2 * h + matrices * wide) + local * matrices * h * wide,
                2.0,
                moe,
                rate,
            )
        )
        if shared:
            rows.append(
                (
                    "shared_experts",
                    "Shared experts",
                    2 * t * h * shared * matrices,
                    t * (2 * h + matrices * shared) + matrices * h * shared,
                    2.0,
                    moe,
                    None,
                )
            )
    return [
        (
            name,
            label,
            float(flops) * weight,
            2 * float(elements) * weight,
            float(compute.gemm_s(flops, elements, kernels, c, rate)) * weight,
        )
        for name, label, flops, elements, kernels, weight, rate in rows
    ]


def _layer_rows(c: Cases, parts) -> list[tuple]:
    """Rows of `_kernel` for what runs once a layer."""
    layer = compute.layer_time(c)
    once = {
        "gemm": float(layer.gemm),
        "attention": float(layer.attention),
        "elementwise": float(layer.elementwise),
    }
    again = dict(zip(once, _again(c)))
    repeated = {name: once[name] * again[name] for name in once}
    whole = sum(repeated.values()) + float(layer.host) * float(
        np.where(c.plan.recompute == FULL, c.plan.recompute_share, 0.0)
    )
    spent = {
        name: parts[name] + (parts["recompute"] * repeated[name] / whole if whole else 0.0)
        for name in once
    }
    gemms = _gemms(c)
    timed = sum(
        row[4] for row in gemms
    )  # the router and the adding of weight gradients are spread over them
    peak = float(c.chip.linear_flops)
    out = [
        (name, label, flops, moved, seconds, spent["gemm"] * seconds / timed, peak)
        for name, label, flops, moved, seconds in gemms
    ]
    passes = 3.0 if np.all(c.software.flash == 0) else FLASH_PASSES
    flops, moved = _attention(c)
    core_s = (float(layer.attention) + float(layer.attention_backward)) / passes
    out.append(
        (
            "attention",
            "Attention core",
            flops,
            moved,
            core_s,
            spent["attention"],
            float(c.chip.bf16_flops),
        )
    )
    moved = once["elementwise"] * float(c.chip.hbm_bytes_per_s * c.constants.hbm_share)
    out.append(
        (
            "elementwise",
            "Element-wise chains",
            moved / 2,
            moved,
            once["elementwise"],
            spent["elementwise"],
            float(c.chip.bf16_flops),
        )
    )
    return out


def _attention(c: Cases) -> tuple[float, float]:
    """(FLOP, bytes) of one forward of the attention core: causal where flash skips the upper half,
    all of the scores where they are materialised."""
    s, t = c.shape, float(tokens(c))
    heads, width = float(s.heads / c.plan.tp), float(np.asarray(compute.score_width(c)))
    kept = float(np.maximum(s.kv_heads / c.plan.tp, 1.0))
    flash = 2 * t * float(compute.keys_seen(c)) * heads * width
    operands = 2 * t * (heads + kept) * width  # queries and outputs, keys and values
    if np.any(c.software.flash == 0):
        scores = t * float(c.job.seq_len) * heads
        return 2 * scores * width, operands + float(c.constants.scores_passes) * 2 * scores
    return flash, operands


def _other_rows(c: Cases, parts) -> list[tuple]:
    """Rows of `_kernel` for the output head and the optimizer."""
    s, t, k = c.shape, float(tokens(c)), c.constants
    v, h = float(s.vocab / c.plan.tp), float(s.hidden)
    moved = 2 * (t * h + h * v + t * v) + float(k.logit_bytes) * t * v / 3
    head = (
        "logits",
        "Output head and loss",
        2 * t * h * v,
        moved,
        float(compute.logits_s(c)) / (3 * (1 + float(s.mtp_layers))),
        parts["logits"],
        float(c.chip.bf16_flops),
    )
    rate = float(
        np.where(
            c.plan.offload > 0,
            np.minimum(c.chip.host_bytes_per_s, 16e9),
            c.chip.hbm_bytes_per_s * k.hbm_share,
        )
    )
    per = float(k.optimizer_bytes)
    update = (
        "optimizer",
        "Optimizer update",
        ADAM_FLOP,
        per,
        per / rate,
        parts["optimizer"],
        float(c.chip.bf16_flops),
    )
    return [head, update]
