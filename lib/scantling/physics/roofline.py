"""Roofline of a plan: for each kind of kernel its arithmetic intensity, the rate it reaches, what
bounds it and its share of the step.

Williams, Waterman and Patterson 2009 (doi:10.1145/1498765.1498785): a kernel of F FLOP that moves b
bytes runs at no more than min(peak, F / b x bandwidth). The same line drawn for the links (FLOP per
byte sent, times the link's rate) says whether an axis of the plan could be hidden at all. Times are
those of `compute` and `step`; nothing is timed twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..base.columns import Column
from ..base.records import record
from ..blocks.answers import weighted
from ..blocks.attention import Softmax
from ..blocks.head import Head
from ..blocks.recurrent import Recurrent
from . import compute
from .cases import Cases
from .communication import communication
from .step import COMPUTE, Step, optimizer_rate, overall

# Kingma and Ba 2015 (arXiv 1412.6980), algorithm 1, with decoupled decay: operations per parameter
ADAM_FLOP = 16.0
# forward and backward of flash attention in forwards: Dao 2023 (arXiv 2307.08691), section 3.1
FLASH_PASSES = 3.5


@record
class Kernel:
    """One kind of kernel on the fullest stage's device, forward, backward and recompute of one step
    together."""

    # projections, mlp, experts, shared_experts, attention, elementwise, logits, optimizer
    kernel: str
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
    # min(peak, intensity x link rate): above it this axis cannot be hidden [FLOP/s]
    attainable_flops: float
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

    def as_dict(self) -> dict[str, Any]:
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


class Chosen(Protocol):
    """A plan with its case and its step as computed."""

    @property
    def case(self) -> Cases: ...
    @property
    def step(self) -> Step: ...


class Assessed(Protocol):
    """Of an assessment, what its roofline is drawn of (`verdict.assessment.Assessment`)."""

    @property
    def phases(self) -> Sequence[Chosen]: ...
    @property
    def chosen(self) -> Chosen: ...
    @property
    def step_breakdown_s(self) -> Mapping[str, float]: ...
    @property
    def step_s(self) -> float: ...


def roofline(assessment: Assessed) -> Roofline | None:
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
                axis=row["axis"],
                tier=row["tier"],
                bytes=row["bytes"],
                time_s=row["time_s"],
                exposed_s=row["exposed_s"],
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
    flops, moved, peak = float(work.flops), float(work.bytes), float(work.peak)
    once_s, seconds = float(work.once_s), float(work.seconds)
    intensity, rate = flops / moved, flops / (once_s * stretch)
    roof = intensity * float(c.chip.hbm_bytes_per_s)
    return Kernel(
        kernel=work.kernel,
        label=work.label,
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


class Product(NamedTuple):
    """The forward GEMMs of one name in one average layer, of one micro-batch on one rank."""

    name: str
    flops: float
    bytes: float
    seconds: float


def _gemms(c: Cases) -> list[Product]:
    """The forward GEMMs of one average layer and micro-batch on one rank, by name."""
    on = compute.device(c)
    rows: dict[str, Product] = {}
    for weight, block in compute.layer_mix(c):
        for product in block.gemms(on):
            if product.flops * weight > 0:
                before = rows.get(product.name) or Product(product.name, 0.0, 0.0, 0.0)
                rows[product.name] = Product(
                    product.name,
                    before.flops + float(product.flops * weight),
                    before.bytes + float(on.operand_bytes * product.elements * weight),
                    before.seconds + float(on.gemm_s(product, idle=False) * weight),
                )
    return list(rows.values())


def _layer_work(c: Cases, parts: Mapping[str, float]) -> list[Work]:
    """What runs once a layer. The recomputed forwards' seconds go to the kernels they repeat; the
    router and the adding of weight gradients are spread over the GEMMs."""
    layer, again, chip = compute.layer_time(c), c.recomputed, c.chip
    repeated = {
        "gemm": layer.gemm * again.gemm,
        "attention": layer.attention * again.attention,
        "elementwise": layer.elementwise * again.elementwise,
    }
    whole = sum(repeated.values()) + layer.host * again.layer
    spent = {
        name: parts[name] + (parts["recompute"] * repeated[name] / whole if whole else 0.0)
        for name in COMPUTE
    }
    gemms = _gemms(c)
    timed = sum(product.seconds for product in gemms)
    passes = 3.0 if np.all(c.software.flash == 0) else FLASH_PASSES
    core_s = layer.attention + layer.attention_backward
    scans, scan_flops, scan_bytes = _scans(c)
    scanned = float(scans / np.maximum(core_s, 1e-30))
    attention_flops, attention_bytes = _attention(c)
    moved = layer.elementwise * compute.hbm_rate(c)
    products = (
        Work(
            kernel=product.name,
            label=LABELS.get(product.name, product.name),
            flops=product.flops,
            bytes=product.bytes,
            once_s=product.seconds,
            seconds=spent["gemm"] * product.seconds / timed,
            peak=chip.linear_flops,
        )
        for product in gemms
    )
    return [
        *products,
        Work(
            kernel="attention",
            label="Attention core",
            flops=attention_flops,
            bytes=attention_bytes,
            once_s=(core_s - scans) / passes,
            seconds=spent["attention"] * (1 - scanned),
            peak=chip.bf16_flops,
        ),
        Work(
            kernel="scan",
            label="Scans",
            flops=scan_flops,
            bytes=scan_bytes,
            once_s=scans / (1 + c.constants.scan_backward),
            seconds=spent["attention"] * scanned,
            peak=chip.bf16_flops,
        ),
        Work(
            kernel="elementwise",
            label="Element-wise chains",
            flops=moved / 2,
            bytes=moved,
            once_s=layer.elementwise,
            seconds=spent["elementwise"],
            peak=chip.bf16_flops,
        ),
    ]


class Scans(NamedTuple):
    """The scans of one average layer."""

    seconds: Column  # of both passes
    flops: Column  # of a forward
    bytes: Column  # of a forward


def _scans(c: Cases) -> Scans:
    """What the scans of one average layer take."""
    on, t = compute.device(c), c.tokens / c.plan.tp
    blocks = [(b.count / c.shape.layers, b) for b in c.shape.of(Recurrent)]
    return Scans(
        seconds=weighted((share, sum(b.core_s(on))) for share, b in blocks),
        flops=weighted((share, t * b.scan_flops()) for share, b in blocks),
        bytes=weighted((share, t * b.scan_bytes()) for share, b in blocks),
    )


def _attention(c: Cases) -> tuple[Column, Column]:
    """(FLOP, bytes) of one forward of the attention core: causal where flash skips the upper half,
    all of the scores where they are materialised."""
    t, tp, seq_len, passes = c.tokens, c.plan.tp, c.attended, c.constants.scores_passes
    flops: Column = 0.0
    moved: Column = 0.0
    materialised = np.any(c.software.flash == 0)
    for block in c.shape.of(Softmax):
        weight, heads, width = block.count / c.shape.layers, block.heads / tp, block.score_width
        saved = np.maximum(block.saved_heads / tp, 1.0)
        keys = seq_len if materialised else block.keys_seen(seq_len)
        scores = passes * 2 * t * seq_len * heads if materialised else 0.0
        flops += weight * 2 * t * keys * heads * width
        # queries and outputs, keys and values
        moved += weight * (2 * t * (heads + saved) * width + scores)
    return flops, moved


def _head(c: Cases, parts: Mapping[str, float]) -> Work:
    """Output head and loss."""
    s, t = c.shape, c.tokens
    v, h = sum(b.vocab for b in s.of(Head)) / c.plan.tp, s.hidden
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
        kernel="optimizer",
        label="Optimizer update",
        flops=ADAM_FLOP,
        bytes=moved,
        once_s=moved / optimizer_rate(c),
        seconds=parts["optimizer"],
        peak=c.chip.bf16_flops,
    )
