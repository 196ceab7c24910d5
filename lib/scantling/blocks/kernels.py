"""How fast the kernels of a block run on one device: GEMMs, the attention core, streams of bytes.

The backward of a GEMM is two GEMMs of the same volume, of flash attention 2.5 times the forward
(FlashAttention-2, section 3.1), of element-wise chains twice the bytes.
"""

import numpy as np

from ..base.records import record
from .table import Column, Gemm, weighted

# heads of 64 over 128: FlashAttention-3, Figure 5; the first FlashAttention was no slower at 64
# (FlashAttention-2, Figure 4)
NARROW = 0.8
QUERIES = 128  # of one tile of flash attention
# bytes that one sub-layer's norm and residual move for a value of the stream: Korthikanti et al.
# 2022, section 4, each tensor read or written once in 16 bit, dropout masks in one byte
STREAM_BYTES = 11


@record
class Device:
    """What one device gives the kernels of one micro-batch; numbers or columns over plans.

    plan, software and constants are records of columns (`physics.cases`, `physics.constants`).
    """

    plan: object
    software: object
    constants: object
    tokens: Column  # of one tensor-parallel group
    seq_len: Column
    shards: Column  # by how much sequence parallelism divides the stream
    bf16_flops: Column  # dense peak for what stays in 16 bit [FLOP/s]
    linear_flops: Column  # large plain GEMMs at the job's precision [FLOP/s]
    bytes_per_s: Column  # HBM, what kernels reach
    chain_s: Column  # a byte of an element-wise chain [s]
    cast_s: Column  # an element cast to low precision [s]
    cast_shards: Column  # by how much the stream is divided when it is cast
    gradient_s: Column  # a weight whose gradient is added to its buffer [s]
    host_share: Column  # of the host's time, what captured graphs leave
    wave_outputs: Column  # of a product, made by one wave of tiles; 0: no waves
    stream_idle: Column  # `part_filled` of a product as wide as the stream
    newer_flash: Column  # 1 where FlashAttention-3 or its like exists

    def gemm_s(self, product: Gemm, idle: bool = True):
        """Seconds of a block's products: FLOPs / rate + c x 2 bytes per operand element / HBM +
        launches; without `idle` as if all waves were full.

        The additive roofline: for m x n x k it equals 2mnk/R (1 + c (R/B)(1/m + 1/n + 1/k)) + t0.
        """
        k, rate = self.constants, product.rate
        rate = self.linear_flops if rate is None else rate
        flops = product.flops + product.idle if idle else product.flops
        moved = product.elements * (k.gemm_bytes * 2 / self.bytes_per_s)
        return flops / rate + moved + product.kernels * k.gemm_launch_s

    def idle_flops(self, hidden, *products):
        """FLOPs of a forward that the device's units could have done while last waves of tiles were
        part-filled, summed over `products` (m, n) of one dense product's two widths.

        A product of t x n outputs runs in t n / wave waves, rounded up; `wave` is units x a tile of
        128 x 256. Forward and data gradient are counted, each a third of a product's three passes;
        weight gradients split their long sum and fill the device.
        NVIDIA, Matrix Multiplication Background User's Guide, wave quantization; Anthony et al.
        2024, arXiv 2401.14489.
        """
        if not np.any(self.wave_outputs):
            return 0.0
        whole, t, wave = self.stream_idle, self.tokens, self.wave_outputs
        lost = weighted((n, whole + part_filled(t * outputs, wave)) for n, outputs in products)
        return lost * (t * (self.constants.wave * 2 / 3 * (wave > 0) * hidden))


def part_filled(outputs, wave):
    """Share by which a product of so many outputs takes longer than full waves would."""
    waves = np.maximum(outputs, 1.0) / np.maximum(wave, 1.0)
    return np.minimum(np.ceil(waves) / waves - 1, 1.0)


def attention_core_s(block, on: Device):
    """(forward, backward) seconds of the core of an attention block on one rank: its `heads`,
    `score_width` of queries and values together, the mean keys that a query attends to."""
    ring = (on.plan.cp > 1) & (on.plan.cp_type == 0)
    heads, width = block.heads / on.plan.tp, block.score_width
    seconds = _flash_s(block, on, heads, ring)
    if np.any(ring):
        seconds = _ring_s(on, ring, heads * width, *seconds)
    none = on.software.flash == 0
    if np.any(none):
        full = _materialised_s(on, heads, width)
        seconds = (np.where(none, n * full, x) for n, x in enumerate(seconds, 1))
    return tuple(seconds)


def _flash_s(block, on: Device, heads, ring):
    """Causal FLOPs / (peak x share x s'/(s' + half)), s' = the chunk that a kernel sees; backward
    2.5 x. Few tiles of queries and heads leave units idle, less so in the backward."""
    k, flash, width = on.constants, on.software.flash, block.score_width
    # balanced rings hold two chunks a rank and work on half a rank's tokens at a time
    chunk = np.where(ring, on.seq_len / (2 * on.plan.cp), on.seq_len)
    tiles = heads * on.tokens / np.where(ring, 2 * QUERIES, QUERIES)
    kernel = (
        np.where((width <= 128) & (flash != 1), NARROW, 1.0)
        * np.where(flash == 1, k.attention_fa1, 1.0)
        * np.where((flash < 3) & (on.newer_flash > 0), k.attention_fa2, 1.0)
        * np.where(flash > 3, k.attention_fa4, 1.0)
        * np.where(block.v_head % 8 == 0, 1.0, k.attention_odd_head)
        * np.where(on.software.fp8_attention > 0, k.attention_fp8, 1.0)
    )
    rate = on.bf16_flops * k.attention * kernel * (chunk / (chunk + k.attention_half))
    seconds = 2 * on.tokens * block.keys_seen(on.seq_len) * heads * width / rate
    idle = k.attention_tiles / tiles
    forward, backward = k.attention_forward, k.attention_backward
    if block.gathered:
        forward = forward * k.attention_gathered
        backward = backward * k.attention_gathered_backward
    return (
        seconds / forward * (1 + idle) + k.gemm_launch_s,
        2.5 * seconds / backward * (1 + k.attention_tiles_backward * idle),
    )


def _ring_s(on: Device, ring, width, forward, backward):
    """The core's times where keys and values go round a ring: steps that wait, and partial outputs
    merged in fp32."""
    k, cp = on.constants, on.plan.cp
    merge = k.ring_merge * (cp - 1) * on.tokens * width / 2 / on.bytes_per_s
    slow = 1 + k.ring_loss * np.maximum(1 - 2 / cp, 0.0)
    return (
        np.where(ring, forward * slow + merge, forward),
        np.where(ring, backward * slow + 2 * merge, backward),
    )


def _materialised_s(on: Device, heads, width):
    """Forward seconds where the scores are written out: all their FLOPs as batched GEMMs, and
    passes over the scores."""
    k = on.constants
    scores = on.tokens * on.seq_len * heads
    passes = k.scores_passes * np.where(on.software.unfused_scores > 0, k.scores_unfused, 1.0)
    rate = on.bf16_flops * k.attention_full * k.gemm
    return 2 * scores * width / rate + passes * 2 * scores / on.bytes_per_s
