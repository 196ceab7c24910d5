"""How fast the kernels of a block run on one device: GEMMs, the attention core, streams of bytes.

The backward of a GEMM is two GEMMs of the same volume, of flash attention 2.5 times the forward
(FlashAttention-2, section 3.1), of element-wise chains twice the bytes.
"""

from typing import NamedTuple, Protocol

import numpy as np

from ..base.columns import Array, Column, some
from ..base.records import record
from .answers import Gemm, weighted

# heads of 64 over 128: FlashAttention-3, Figure 5; the first FlashAttention was no slower at 64
# (FlashAttention-2, Figure 4)
NARROW = 0.8
# width of a query and a value at which the rates of TPUs stand: products a score grow with it, and
# exponentials do not
WIDTH = 256
Code = int | Array  # of a word in its table
GATHERED = 3  # the code of zero3 in catalogue.words.SHARDINGS; hsdp follows
QUERIES = 128  # of one tile of flash attention
# bytes that one sub-layer's norm and residual move for a value of the stream: Korthikanti et al.
# 2022, section 4, each tensor read or written once in 16 bit, dropout masks in one byte
STREAM_BYTES = 11


class Degrees(Protocol):
    """Of a plan, what kernels ask for."""

    @property
    def tp(self) -> Column: ...
    @property
    def cp(self) -> Column: ...
    @property
    def cp_type(self) -> Column: ...  # 0: ring
    @property
    def ep(self) -> Column: ...
    @property
    def etp(self) -> Column: ...
    @property
    def sharding(self) -> Code: ...  # GATHERED and above: weights are gathered layer by layer


class Switches(Protocol):
    """Of what a stack does, what kernels ask for; 0 or 1 unless said otherwise."""

    @property
    def whole_experts(self) -> Column: ...  # above 0: weights of experts are not gathered
    @property
    def flash(self) -> Column: ...  # generation of flash attention; 0: scores are materialised
    @property
    def fp8_attention(self) -> Column: ...
    @property
    def unfused_scores(self) -> Column: ...
    @property
    def fused_norm(self) -> Column: ...
    @property
    def lazy_recompute(self) -> Column: ...
    @property
    def expert_skew(
        self,
    ) -> Column: ...  # rows of the fullest expert rank over the mean; 0: the constant
    @property
    def capacity_factor(self) -> Column: ...  # most rows of an expert over the mean; 0: none
    @property
    def even_routing(self) -> Column: ...
    @property
    def fused_experts(self) -> Column: ...
    @property
    def looped_experts(self) -> Column: ...
    @property
    def balanced_ring(self) -> Column: ...


class Rates(Protocol):
    """Of the calibrated constants, what kernels ask for; catalogue/priors.csv has their units."""

    @property
    def gemm(self) -> Column: ...
    @property
    def gemm_bytes(self) -> Column: ...
    @property
    def gemm_launch_s(self) -> Column: ...
    @property
    def unaligned(self) -> Column: ...
    @property
    def wave(self) -> Column: ...
    @property
    def attention(self) -> Column: ...
    @property
    def attention_half(self) -> Column: ...
    @property
    def attention_forward(self) -> Column: ...
    @property
    def attention_backward(self) -> Column: ...
    @property
    def attention_fa1(self) -> Column: ...
    @property
    def attention_fa2(self) -> Column: ...
    @property
    def attention_fa4(self) -> Column: ...
    @property
    def attention_fp8(self) -> Column: ...
    @property
    def attention_odd_head(self) -> Column: ...
    @property
    def attention_tiles(self) -> Column: ...
    @property
    def attention_tiles_backward(self) -> Column: ...
    @property
    def attention_gathered(self) -> Column: ...
    @property
    def attention_gathered_backward(self) -> Column: ...
    @property
    def attention_full(self) -> Column: ...
    @property
    def scores_passes(self) -> Column: ...
    @property
    def scores_unfused(self) -> Column: ...
    @property
    def ring_loss(self) -> Column: ...
    @property
    def ring_merge(self) -> Column: ...
    @property
    def scan(self) -> Column: ...
    @property
    def scan_gemm(self) -> Column: ...
    @property
    def scan_vector(self) -> Column: ...
    @property
    def scan_backward(self) -> Column: ...
    @property
    def grouped_gemm(self) -> Column: ...
    @property
    def grouped_half(self) -> Column: ...
    @property
    def router(self) -> Column: ...
    @property
    def permute(self) -> Column: ...
    @property
    def ep_imbalance(self) -> Column: ...
    @property
    def expert_loop_s(self) -> Column: ...
    @property
    def expert_gather_s(self) -> Column: ...
    @property
    def moe_host_s(self) -> Column: ...
    @property
    def static_host(self) -> Column: ...
    @property
    def layer_host_s(self) -> Column: ...
    @property
    def logit_bytes(self) -> Column: ...
    @property
    def logit_eager(self) -> Column: ...


@record
class Device:
    """What one device gives the kernels of one micro-batch; numbers or columns over plans.

    plan, software and constants are records of physics (`physics.cases`, `physics.constants`).
    """

    plan: Degrees
    software: Switches
    constants: Rates
    tokens: Column  # of one tensor-parallel group
    seq_len: Column
    shards: Column  # by how much sequence parallelism divides the stream
    bf16_flops: Column  # dense peak for what stays in 16 bit [FLOP/s]
    linear_flops: Column  # large plain GEMMs at the job's precision [FLOP/s]
    operand_bytes: Column  # mean of an element of a product's operands
    bytes_per_s: Column  # HBM, what kernels reach
    chain_s: Column  # a byte of an element-wise chain [s]
    cast_s: Column  # an element cast to low precision [s]
    cast_shards: Column  # by how much the stream is divided when it is cast
    gradient_s: Column  # a weight whose gradient is added to its buffer [s]
    host_share: Column  # of the host's time, what captured graphs leave
    wave_outputs: Column  # of a product, made by one wave of tiles; 0: no waves
    stream_idle: Column  # `part_filled` of a product as wide as the stream
    newer_flash: Column  # 1 where FlashAttention-3 or its like exists
    softmax_bound: Column  # 1 where attention kernels wait for exponentials (TPU)

    def gemm_s(self, product: Gemm, idle: bool = True) -> Column:
        """Seconds of a block's products: FLOPs / rate + c x bytes of the operands / HBM +
        launches; without `idle` as if all waves were full.

        The additive roofline: for m x n x k it equals 2mnk/R (1 + c (R/B)(1/m + 1/n + 1/k)) + t0.
        """
        k, rate = self.constants, product.rate
        rate = self.linear_flops if rate is None else rate
        flops = product.flops + product.idle if idle else product.flops
        moved = product.elements * (k.gemm_bytes * self.operand_bytes / self.bytes_per_s)
        return flops / rate + moved + product.kernels * k.gemm_launch_s

    def idle_flops(self, hidden: Column, *products: tuple[Column, Column]) -> Column:
        """FLOPs of a forward that the device's units could have done while last waves of tiles were
        part-filled, summed over `products` (m, n) of one dense product's two widths.

        A product of t x n outputs runs in t n / wave waves, rounded up; `wave` is units x a tile of
        128 x 256. Forward and data gradient are counted, each a third of a product's three passes;
        weight gradients split their long sum and fill the device.
        NVIDIA, Matrix Multiplication Background User's Guide, wave quantization; Anthony et al.
        2024, arXiv 2401.14489.
        """
        if not some(self.wave_outputs):
            return 0.0
        whole, t, wave = self.stream_idle, self.tokens, self.wave_outputs
        lost = weighted((n, whole + part_filled(t * outputs, wave)) for n, outputs in products)
        return lost * (t * (self.constants.wave * 2 / 3 * (wave > 0) * hidden))


def mean_width(bytes_each: Column) -> Column:
    """Mean bytes of an element of a product's three operands: two read at their own width, one
    written in 16 bit."""
    return (2 * bytes_each + 2.0) / 3


def part_filled(outputs: Column, wave: Column) -> Array:
    """Share by which a product of so many outputs takes longer than full waves would."""
    waves = np.maximum(outputs, 1.0) / np.maximum(wave, 1.0)
    return np.minimum(np.ceil(waves) / waves - 1, 1.0)


class Core(NamedTuple):
    """What an attention core works on: its heads over all ranks of a tensor-parallel group, the
    width of a query and a value together, that of a value, the mean keys that a query attends to,
    and whether each query reads keys of its own."""

    heads: Column
    score_width: Column
    v_head: Column
    keys: Column
    gathered: bool


def attention_core_s(core: Core, on: Device) -> tuple[Column, Column]:
    """(forward, backward) seconds of an attention core on one rank."""
    ring = (on.plan.cp > 1) & (on.plan.cp_type == 0)
    heads, width = core.heads / on.plan.tp, core.score_width
    forward, backward = _flash_s(core, on, heads, ring)
    if some(ring):
        forward, backward = _ring_s(on, ring, heads * width, forward, backward)
    none = on.software.flash == 0
    if some(none):
        full = _materialised_s(on, heads, width)
        return np.where(none, full, forward), np.where(none, 2 * full, backward)
    return forward, backward


def _flash_s(core: Core, on: Device, heads: Column, ring: bool | Array) -> tuple[Column, Column]:
    """Causal FLOPs / (peak x share x s'/(s' + half)), s' = the chunk that a kernel sees; backward
    2.5 x. Few tiles of queries and heads leave units idle, less so in the backward."""
    k, flash, width = on.constants, on.software.flash, core.score_width
    # balanced rings hold two chunks a rank and work on half a rank's tokens at a time
    chunk = np.where(ring, on.seq_len / (2 * on.plan.cp), on.seq_len)
    tiles = heads * on.tokens / np.where(ring, 2 * QUERIES, QUERIES)
    kernel = (
        np.where((width <= 128) & (flash != 1), NARROW, 1.0)
        * np.where(flash == 1, k.attention_fa1, 1.0)
        * np.where((flash < 3) & (on.newer_flash > 0), k.attention_fa2, 1.0)
        * np.where(flash > 3, k.attention_fa4, 1.0)
        * np.where(on.softmax_bound > 0, np.clip(width / WIDTH, 1.0, 2.0), 1.0)
        * np.where(core.v_head % 8 == 0, 1.0, k.attention_odd_head)
        * np.where(on.software.fp8_attention > 0, k.attention_fp8, 1.0)
    )
    rate = on.bf16_flops * k.attention * kernel * (chunk / (chunk + k.attention_half))
    seconds = 2 * on.tokens * core.keys * heads * width / rate
    idle = k.attention_tiles / tiles
    forward, backward = k.attention_forward, k.attention_backward
    if core.gathered:
        forward = forward * k.attention_gathered
        backward = backward * k.attention_gathered_backward
    return (
        seconds / forward * (1 + idle) + k.gemm_launch_s,
        2.5 * seconds / backward * (1 + k.attention_tiles_backward * idle),
    )


def _ring_s(
    on: Device, ring: bool | Array, width: Column, forward: Column, backward: Column
) -> tuple[Column, Column]:
    """The core's times where keys and values go round a ring: steps that wait, and partial outputs
    merged in fp32."""
    k, cp = on.constants, on.plan.cp
    merge = k.ring_merge * (cp - 1) * on.tokens * width / 2 / on.bytes_per_s
    loss = k.ring_loss * (1 - on.software.balanced_ring)
    slow = 1 + loss * np.maximum(1 - 2 / cp, 0.0)
    return (
        np.where(ring, forward * slow + merge, forward),
        np.where(ring, backward * slow + 2 * merge, backward),
    )


def _materialised_s(on: Device, heads: Column, width: Column) -> Column:
    """Forward seconds where the scores are written out: all their FLOPs as batched GEMMs, and
    passes over the scores."""
    k = on.constants
    scores = on.tokens * on.seq_len * heads
    passes = k.scores_passes * np.where(on.software.unfused_scores > 0, k.scores_unfused, 1.0)
    rate = on.bf16_flops * k.attention_full * k.gemm
    return 2 * scores * width / rate + passes * 2 * scores / on.bytes_per_s
