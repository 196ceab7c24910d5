"""Compute time of one layer and one micro-batch on one device: GEMMs, attention, element-wise
traffic, routing, launches.

Every time is forward; the kinds of blocks time themselves (`scantling.blocks`), this module says
what a device gives them and folds their answers. All results are columns or scalars, in seconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.columns import Column, some
from ..blocks.answers import Time, fold, weighted
from ..blocks.attention import Softmax
from ..blocks.block import Block
from ..blocks.block_table import plain_share
from ..blocks.kernels import Device, mean_width, part_filled
from ..blocks.moe import Moe
from .cases import FP4, FP8, FP8_ROW, MXFP8, ZERO3, Cases

SHARP = 32.0  # exponent of `smaller`: a minimum, but for a derivative that a fit can follow


def expected_places(places: Column, draws: Column, limit: Column = 0) -> Column:
    """Mean number of distinct places that `draws` uniform picks hit: n (1 - (1 - 1/n)^k), at most
    `limit` where one is set."""
    hit = places * (1 - (1 - 1 / np.maximum(places, 1)) ** draws)
    return np.where(limit > 0, np.minimum(hit, limit), hit)


def low_precision(c: Cases) -> Column:
    """1 where linear layers run below 16 bit."""
    return 1.0 * ((c.job.precision >= FP8) & (c.job.precision <= FP4))


def low_share(c: Cases) -> Column:
    """Share of the layers whose products run below 16 bit."""
    return low_precision(c) * (1.0 - c.job.kept_16bit)


def smaller(a: Column, b: Column) -> Column:
    """The smaller of two shares, smoothly: (a^-p + b^-p)^(-1/p), p = SHARP; 2 % below two that are
    equal."""
    return (a**-SHARP + b**-SHARP) ** (-1 / SHARP)


def linear_rate(c: Cases) -> Column:
    """FLOP/s of large plain GEMMs at the job's precision: peak x measured share, less where scales
    are by row or block, and where the width is unaligned. Narrower formats reach no more of their
    peak than wider ones: 8 and 4 bit gain at most the ratio of the peaks. Layers kept in 16 bit
    take their share of the time at its rate: 1 / ((1 - kept) / low + kept / wide)."""
    k, p = c.constants, c.job.precision
    fp8 = smaller(k.gemm_fp8, k.gemm)
    fp4 = smaller(k.gemm_fp4, fp8)
    share = np.where((p > MXFP8) & (p <= FP4), fp4, np.where(low_precision(c) > 0, fp8, k.gemm))
    scaled = np.where(p == FP8_ROW, k.fp8_row, np.where(p == MXFP8, k.mxfp8, 1.0))
    aligned = np.where(c.shape.hidden % 128 == 0, 1.0, k.unaligned)
    rate: Column = c.chip.linear_flops * share * scaled * aligned
    kept = c.job.kept_16bit
    if not some(kept):
        return rate
    return 1.0 / ((1.0 - kept) / rate + kept / (c.chip.bf16_flops * k.gemm * aligned))


def operand_bytes(c: Cases) -> Column:
    """Mean bytes of an element of a product's operands, over the layers at the job's precision and
    those kept in 16 bit."""
    p, low = c.job.precision, low_share(c)
    width = np.where((p > MXFP8) & (p <= FP4), 0.5, 1.0)
    return low * mean_width(width) + (1.0 - low) * mean_width(2.0)


def hbm_rate(c: Cases) -> Column:
    """Bytes/s that kernels reach of the device's memory."""
    return c.chip.hbm_bytes_per_s * c.constants.hbm_share


def chain_factor(c: Cases) -> Column:
    """Bytes of element-wise chains over those of fused kernels."""
    k, software = c.constants, c.software
    kernel = np.where(software.norm_kernel > 0, k.norm_kernel, 1.0)
    return k.elementwise * kernel * np.where(software.fused_norm > 0, 1.0, k.eager)


def cast_bytes(c: Cases) -> Column:
    """Bytes that casting one element to the job's low precision moves; 0 in 16 bit. 4 bit without
    the random Hadamard transform is cast as current scaling is."""
    k, p = c.constants, c.job.precision
    recipe = np.where(
        (p > MXFP8) & (c.software.plain_fp4 == 0),
        k.cast_fp4,
        np.where(p == MXFP8, k.cast_mxfp8, k.cast_fp8),
    )
    return low_share(c) * recipe


def host_share(c: Cases) -> Column:
    """Of the host's time, what captured graphs leave."""
    k, graphs = c.constants, c.software.graphs
    return np.where(graphs >= 2, k.graphs_full, 1 - (1 - k.graphs_part) * np.minimum(graphs, 1.0))


def permute_share(c: Cases) -> Column:
    """Passes over a routed token that its dispatcher leaves, of the six that sort it for its ranks
    and experts and back: one that sends it once a rank writes it to its experts from what arrived,
    and back: 2 + 2 ranks / experts visited."""
    visited = np.maximum(sum(b.top_k for b in c.shape.of(Moe)), 1)
    left = (1 + expected_places(c.plan.ep, visited) / visited) / 3
    return np.where(c.software.dedup_dispatch > 0, left, 1.0)


def device(c: Cases, t: Column | None = None) -> Device:
    """What one device gives the kernels of a micro-batch of `t` tokens; left out, the case's."""
    t = c.tokens if t is None else t
    shards = c.sequence_shards
    bytes_per_s = hbm_rate(c)
    wave = c.chip.wave_outputs
    # gradients are added to a buffer: of whole weights, or of a rank's shard
    owners = np.where(c.plan.sharding >= ZERO3, c.shard_ranks, 1.0)
    added = np.maximum(2 * c.job.grad_bytes - 2, 0.0) / owners
    return Device(
        plan=c.plan,
        software=c.software,
        constants=replace(c.constants, permute=c.constants.permute * permute_share(c))
        if some(c.software.dedup_dispatch > 0)
        else c.constants,
        tokens=t,
        seq_len=c.attended,
        shards=shards,
        bf16_flops=c.chip.bf16_flops,
        linear_flops=linear_rate(c),
        operand_bytes=operand_bytes(c),
        bytes_per_s=bytes_per_s,
        chain_s=chain_factor(c) / bytes_per_s,
        cast_s=cast_bytes(c) / bytes_per_s,
        # scales along rows: gathered in 16 bit, cast by every rank
        cast_shards=np.where(c.job.precision == FP8_ROW, 1.0, shards),
        gradient_s=added / bytes_per_s,
        host_share=host_share(c),
        wave_outputs=wave,
        stream_idle=part_filled(t * c.shape.hidden, wave) if some(wave) else 0.0,
        newer_flash=c.chip.newer_flash,
        softmax_bound=c.chip.is_tpu,
    )


def layer_mix(c: Cases) -> list[tuple[Column, Block]]:
    """(blocks in one average layer, block) on the pipeline stages that set the pace: attention in
    the model's own proportion, feed-forwards by `moe_share`."""
    s = c.shape
    mix: list[tuple[Column, Block]] = [(b.count / s.layers, b) for b in s.of("mixer")]
    routed = c.moe_share if s.of(Moe) else 0.0
    for b in s.of("feed"):
        share = routed if isinstance(b, Moe) else (1.0 - routed) * plain_share(s, b)
        mix.append((share, b))
    return mix + [(b.count / s.layers, b) for b in s.of("stream")]


def layer_time(c: Cases, on: Device | None = None) -> Time:
    """One average layer (dense and MoE layers in the model's own proportion) for one micro-batch on
    one device, the case's where none is given."""
    on = on or device(c)
    return fold(Time, [(weight, b.kernel_s(on)) for weight, b in layer_mix(c)])


def logits_s(c: Cases, on: Device | None = None) -> Column:
    """Forward plus backward seconds of output head and loss for one micro-batch on the last stage,
    MTP heads included."""
    on = on or device(c)
    return fold(Time, [(b.count, b.kernel_s(on)) for b in c.shape.of("end")]).logits


def keys_seen(c: Cases) -> Column:
    """Mean keys that a query attends to, over the layers of a model that attend."""
    blocks, attending = c.shape.of(Softmax), c.shape.count(Softmax)
    return weighted((b.count / attending, b.keys_seen(c.attended)) for b in blocks)
