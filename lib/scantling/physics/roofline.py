"""Roofline of a plan: for each kind of kernel its arithmetic intensity, the rate it reaches, what
bounds it and its share of the step.

Williams, Waterman and Patterson 2009 (doi:10.1145/1498765.1498785): a kernel of F FLOP that moves b
bytes runs at no more than
min(peak, F / b x bandwidth). The same line drawn for the links (FLOP per byte sent, times the
link's rate) says whether an axis of the plan could be hidden at all. Times are those of `compute`
and `step`; nothing is timed twice.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from ..base.columns import Array, Column
from ..base.records import fields_of, record
from ..blocks.answers import weighted
from . import compute
from .cases import Cases
from .communication import communication
from .step import COMPUTE, optimizer_rate, overall

# Kingma and Ba 2015 (arXiv 1412.6980), algorithm 1, with decoupled decay: operations per parameter
ADAM_FLOP = 16.0
# forward and backward of flash attention in forwards: Dao 2023 (arXiv 2307.08691), section 3.1
FLASH_PASSES = 3.5


@record
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


@record
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


@record
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


class Work(NamedTuple):
    """One kind of kernel before it is set under its roofs."""

    kernel: str
    label: str
    flops: Column  # of one forward
    bytes: Column  # of one forward, every operand once
    once_s: Column  # of one forward
    seconds: Column  # in one step, all passes together
    peak: Column  # dense, of its number format [FLOP/s]


def roofline(assessment: Any) -> Roofline | None:
    """The roofline of the plan that an assessment chose; None where no plan fits.

    flops = what the device executes: matrix products three times the forward (plus recompute),
    flash attention 3.5 times the causal forward; `mfu` counts full attention and no recompute, so
    the sum over kernels is not flops_per_token x tokens. bytes = 2 per operand element, each read
    or written once (perfect reuse inside a kernel); tables of measured counters show more.
    Element-wise work counts one FLOP a value moved. Seconds are the parts of `step_breakdown_s`,
    each split among its kernels as `compute` times them. Source: Williams et al. 2009; volumes of
    `compute` and `traffic`.
    """
    if not assessment.phases:
        return None
    chosen = assessment.chosen
    c, parts, step_s = chosen.case, assessment.step_breakdown_s, assessment.step_s
    stretch = step_s / float(chosen.step.total) * float(overall(c))
    work = [*_layer_work(c, parts), _head(c, parts), _update(c, parts)]
    kernels = tuple(_kernel(c, w, stretch, step_s) for w in work if w.seconds > 0)
    done = sum(k.flops for k in kernels)
    peak = float(c.chip.linear_flops)
    hbm = float(c.chip.hbm_bytes_per_s)
    link = {"scale-up": float(c.link.up_bytes_per_s), "scale-out": float(c.link.out_bytes_per_s)}
    return Roofline(
        kernels=kernels,
        axes=tuple(
            Axis(
                **fields_of(row, ("axis", "tier", "bytes", "time_s", "exposed_s")),
                intensity=done / row["bytes"],
                attainable_flops=min(peak, done / row["bytes"] * link[row["tier"]]),
                achieved_flops=done / step_s,
            )
            for row in communication(c, chosen.step)
            if row["bytes"] > 0
        ),
        peak_flops=peak,
        bf16_flops=float(c.chip.bf16_flops),
        hbm_bytes_per_s=hbm,
        scale_up_bytes_per_s=link["scale-up"],
        scale_out_bytes_per_s=link["scale-out"],
        ridge=peak / hbm,
        achieved_flops=done / step_s,
        step_s=step_s,
    )


def _kernel(c: Cases, work: Work, stretch: float, step_s: float) -> Kernel:
    """The kind under its roofs: min(peak, intensity x HBM rate)."""
    kernel, label, *figures = work
    flops, moved, once_s, seconds, peak = map(float, figures)
    intensity, rate = flops / moved, flops / (once_s * stretch)
    roof = intensity * float(c.chip.hbm_bytes_per_s)
    return Kernel(
        kernel=kernel,
        label=label,
        flops=rate * seconds,
        bytes=rate * seconds / intensity,
        intensity=intensity,
        achieved_flops=rate,
        attainable_flops=min(peak, roof),
        peak_flops=peak,
        seconds=seconds,
        share=seconds / step_s,
        bound="compute" if roof >= peak else "memory",
    )


LABELS = {
    "projections": "QKV and output projections",
    "mlp": "MLP",
    "experts": "Routed experts (grouped)",
    "shared_experts": "Shared experts",
    "latent": "Into the latent width and back",
    "shared layer": "Shared layer",
}


def _gemms(c: Cases) -> list[tuple]:
    """(name, label, FLOP, bytes, seconds) of the forward GEMMs of one average layer and micro-batch
    on one rank."""
    on, rows = compute.device(c), {}
    for weight, block in compute.layer_mix(c):
        for product in block.gemms(on):
            if product.flops * weight > 0:
                figures = product.flops, 2 * product.elements, on.gemm_s(product, idle=False)
                before = rows.get(product.name, (0.0, 0.0, 0.0))
                rows[product.name] = tuple(x + float(y * weight) for x, y in zip(before, figures))
    return [(name, LABELS.get(name, name), *figures) for name, figures in rows.items()]


def _layer_work(c: Cases, parts: Mapping[str, float]) -> list[Work]:
    """What runs once a layer. The recomputed forwards' seconds go to the kernels they repeat; the
    router and the adding of weight gradients are spread over the GEMMs."""
    layer, again, chip = compute.layer_time(c), c.recomputed, c.chip
    once = fields_of(layer, COMPUTE)
    repeated = {name: once[name] * getattr(again, name) for name in COMPUTE}
    whole = sum(repeated.values()) + layer.host * again.layer
    spent = {
        name: parts[name] + (parts["recompute"] * repeated[name] / whole if whole else 0.0)
        for name in COMPUTE
    }
    gemms = _gemms(c)
    timed = sum(seconds for *_, seconds in gemms)
    passes = 3.0 if np.all(c.software.flash == 0) else FLASH_PASSES
    core_s = layer.attention + layer.attention_backward
    scans, *scan = _scans(c)
    scanned = float(scans / np.maximum(core_s, 1e-30))
    moved = once["elementwise"] * compute.hbm_rate(c)
    products = (
        Work(*gemm, seconds=spent["gemm"] * gemm[-1] / timed, peak=chip.linear_flops)
        for gemm in gemms
    )
    return [
        *products,
        Work(
            "attention",
            "Attention core",
            *_attention(c),
            (core_s - scans) / passes,
            spent["attention"] * (1 - scanned),
            chip.bf16_flops,
        ),
        Work(
            "scan",
            "Scans",
            *scan,
            scans / (1 + c.constants.scan_backward),
            spent["attention"] * scanned,
            chip.bf16_flops,
        ),
        Work(
            "elementwise",
            "Element-wise chains",
            moved / 2,
            moved,
            once["elementwise"],
            spent["elementwise"],
            chip.bf16_flops,
        ),
    ]


def _scans(c: Cases) -> Array:
    """Of the scans of one average layer: seconds of both passes, FLOP and bytes of a forward."""
    on, t = compute.device(c), c.tokens / c.plan.tp
    return weighted(
        (
            b.count / c.shape.layers,
            np.array([sum(b.core_s(on)), t * b.scan_flops(), t * b.scan_bytes()]),
        )
        for b in c.shape.of("recurrent")
    ) + np.zeros(3)


def _attention(c: Cases) -> tuple[float, float]:
    """(FLOP, bytes) of one forward of the attention core: causal where flash skips the upper half,
    all of the scores where they are materialised."""
    t, tp, seq_len, passes = c.tokens, c.plan.tp, c.attended, c.constants.scores_passes
    flops = moved = 0.0
    materialised = np.any(c.software.flash == 0)
    for block in c.shape.of("softmax"):
        weight, heads, width = block.count / c.shape.layers, block.heads / tp, block.score_width
        kept = np.maximum(block.kept_heads / tp, 1.0)
        keys = seq_len if materialised else block.keys_seen(seq_len)
        scores = passes * 2 * t * seq_len * heads if materialised else 0.0
        flops += weight * 2 * t * keys * heads * width
        # queries and outputs, keys and values
        moved += weight * (2 * t * (heads + kept) * width + scores)
    return flops, moved


def _head(c: Cases, parts: Mapping[str, float]) -> Work:
    """Output head and loss."""
    s, t = c.shape, c.tokens
    v, h = sum(b.vocab for b in s.of("head")) / c.plan.tp, s.hidden
    return Work(
        kernel="logits",
        label="Output head and loss",
        flops=2 * t * h * v,
        bytes=2 * (t * h + h * v + t * v) + c.constants.logit_bytes * t * v / 3,
        once_s=compute.logits_s(c) / (3 * (1 + s.mtp_passes)),
        seconds=parts["logits"],
        peak=c.chip.bf16_flops,
    )


def _update(c: Cases, parts: Mapping[str, float]) -> Work:
    """The optimizer, per parameter."""
    moved = c.constants.optimizer_bytes
    return Work(
        "optimizer",
        "Optimizer update",
        ADAM_FLOP,
        moved,
        moved / optimizer_rate(c),
        parts["optimizer"],
        c.chip.bf16_flops,
    )
