"""Compute time of one layer and one micro-batch on one device: GEMMs, attention, element-wise
traffic, routing, launches.

Every time is forward; the backward of a GEMM is two GEMMs of the same volume, of flash attention
2.5 times the forward
(FlashAttention-2, section 3.1), of element-wise chains twice the bytes. All results are columns or
scalars, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..catalogue.models.shape import attention_weights
from .cases import PRECISIONS, SHARDINGS, Cases, moe_share, sequence_shards, tokens

# rate of heads of 64 over 128: FlashAttention-3, Figure 5; the first FlashAttention was no slower
# at 64 (FlashAttention-2, Figure 4)
NARROW = 0.8
FP8, FP4 = PRECISIONS.index("fp8"), PRECISIONS.index("nvfp4")
ZERO3 = SHARDINGS.index("zero3")
MXFP8, FP8_ROW = PRECISIONS.index("mxfp8"), PRECISIONS.index("fp8-row")


@dataclass(frozen=True)
class LayerTime:
    """Forward seconds of one average layer and micro-batch; `*_backward` where it is not twice the
    forward."""

    gemm: object
    attention: object
    attention_backward: object
    elementwise: object
    cast: object  # once per micro-batch, forward and backward together
    host: object
    accumulate: object  # adding weight gradients to their buffer, once per micro-batch
    tail: object = 0.0  # of gemm: the dense down-projection, whose output the backward never reads


def low_precision(c: Cases):
    """1 where linear layers run below 16 bit."""
    return np.where((c.job.precision >= FP8) & (c.job.precision <= FP4), 1.0, 0.0)


def linear_rate(c: Cases):
    """FLOP/s of large plain GEMMs at the job's precision: peak x measured share, less where the
    width is unaligned."""
    k, p = c.constants, c.job.precision
    share = np.where(p == FP4, k.gemm_fp4, np.where(low_precision(c) > 0, k.gemm_fp8, k.gemm))
    share = np.where(p == FP8_ROW, share * k.fp8_row, share)
    return c.chip.linear_flops * share * np.where(c.shape.hidden % 128 == 0, 1.0, k.unaligned)


def gemm_s(flops, elements, kernels, c: Cases, rate=None, idle=0.0):
    """Seconds of GEMMs: (FLOPs + those idle in part-filled waves) / rate + c x 2 bytes per operand
    element / HBM + launches.

    The additive roofline: for m x n x k it equals 2mnk/R (1 + c (R/B)(1/m + 1/n + 1/k)) + t0.
    """
    k = c.constants
    return (
        (flops + idle) / (linear_rate(c) if rate is None else rate)
        + k.gemm_bytes * 2 * elements / (c.chip.hbm_bytes_per_s * k.hbm_share)
        + kernels * k.gemm_launch_s
    )


def idle_flops(c: Cases, t, f):
    """FLOPs of one layer's forward that its units could have done while the last wave of tiles was
    part-filled, per dense product.

    A product of m x n outputs runs in m n / wave waves, rounded up; `wave` is units x a tile of 128
    x 256. Forward and data gradient
    are counted, each a third of a product's three passes; weight gradients split their long sum and
    fill the device.
    NVIDIA, Matrix Multiplication Background User's Guide, wave quantization; Anthony et al. 2024,
    arXiv 2401.14489.
    """
    s, tp, wave = c.shape, c.plan.tp, np.maximum(c.chip.wave_outputs, 1.0)
    h, q, up = s.hidden, s.q_width / tp, f * (s.ffn_matrices - 1)
    qkv = q + 2 * s.kv_width / tp

    def part(width):
        waves = t * width / wave
        return np.minimum(np.ceil(waves) / waves - 1, 1.0)

    whole = part(h)
    lost = c.constants.wave * 2 / 3 * h * t
    if np.any(wave == 1.0):
        lost = lost * (wave > 1.0)
    latent = s.mla > 0
    attention = q * (whole + part(q)) + (
        0.0 if np.all(latent) else qkv * (whole + part(qkv)) * (1 - latent)
    )
    if not np.any(s.ffn_hidden):
        return attention * lost, 0.0
    some = np.maximum(f, 1.0) if np.any(s.ffn_hidden == 0) else f
    tail = part(some)
    head = tail if np.all(s.ffn_matrices == 2) else part(some * (s.ffn_matrices - 1))
    return attention * lost, (up * (head + whole) + f * (whole + tail)) * lost


def attention_linear(c: Cases, t):
    """(FLOPs, operand elements, kernels) of the projections of one layer for t tokens on one
    tensor-parallel rank."""
    s, tp = c.shape, c.plan.tp
    h, q = s.hidden, s.q_width / tp
    kv = np.maximum(s.kv_width / tp, np.minimum(s.head_dim, s.kv_width))
    qkv = q + 2 * kv
    flops, elements, kernels = 2 * t * h * (qkv + q), t * (2 * h + qkv + q) + h * (qkv + q), 2.0
    if np.any(s.mla):
        down = s.q_lora + s.kv_lora + s.qk_rope
        up_q, up_kv = (
            s.heads * (s.qk_nope + s.qk_rope) / tp,
            s.heads * (s.qk_nope + s.v_head_dim) / tp,
        )
        out = s.heads * s.v_head_dim / tp
        q_in = np.where(s.q_lora > 0, s.q_lora, h)
        f = 2 * t * (h * down + q_in * up_q + s.kv_lora * up_kv + h * out)
        e = (
            t * (2 * h + down + q_in + up_q + s.kv_lora + up_kv + out)
            + h * down
            + q_in * up_q
            + s.kv_lora * up_kv
            + h * out
        )
        flops, elements = np.where(s.mla > 0, f, flops), np.where(s.mla > 0, e, elements)
    return flops, elements, kernels


def score_width(c: Cases):
    """Query-key plus value width of one head: 2 x head_dim, or MLA's own."""
    s = c.shape
    return np.where(s.mla > 0, s.qk_nope + s.qk_rope + s.v_head_dim, 2 * s.head_dim)


def keys_seen(c: Cases):
    """Mean keys a query attends to under the causal mask: seq/2, or about the window where one
    slides."""
    s, seq = c.shape, c.job.seq_len
    w = np.where(s.window > 0, np.minimum(s.window, seq), seq)
    share = np.where(s.layers > 0, s.windowed_layers / s.layers, 0)
    return (1 - share) * seq / 2 + share * (w - w * w / (2 * seq))


def attention_core_s(c: Cases, t):
    """(forward, backward) seconds of the attention core for t tokens on one rank.

    Flash: causal FLOPs / (peak x share x s'/(s' + half)), s' = seq_len / cp; backward 2.5 x.
    Materialised: full FLOPs at the
    batched-GEMM rate plus passes over the scores; backward 2 x.
    """
    s, k, heads = c.shape, c.constants, c.shape.heads / c.plan.tp
    width = score_width(c)
    ring = (c.plan.cp > 1) & (np.asarray(c.plan.cp_type) == 0)
    chunk = np.where(
        ring, c.job.seq_len / (2 * c.plan.cp), c.job.seq_len
    )  # balanced rings hold two chunks a rank
    tiles = (
        heads * t / np.where(ring, 256.0, 128.0)
    )  # a ring works on half a rank's tokens at a time
    rate = (
        c.chip.bf16_flops
        * k.attention
        * chunk
        / (chunk + k.attention_half)
        * np.where((width <= 128) & (c.software.flash != 1), NARROW, 1.0)
    )
    older = np.where(c.software.flash == 1, k.attention_fa1, 1.0) * np.where(
        (c.software.flash < 3) & (c.chip.newer_flash > 0), k.attention_fa2, 1.0
    )
    older = older * np.where(c.software.flash > 3, k.attention_fa4, 1.0)
    rate = rate * older * np.where(s.head_dim % 8 == 0, 1.0, 0.67)
    rate = rate * np.where(c.software.fp8_attention > 0, 1.4, 1.0)
    flops = 2 * t * keys_seen(c) * heads * width / rate
    forward = flops / 1.08 * (1 + k.attention_tiles / tiles) + k.gemm_launch_s
    backward = 2.5 * flops / 0.97 * (1 + 0.2 * k.attention_tiles / tiles)
    if np.any(ring):
        merge = np.where(
            ring,
            k.ring_merge
            * (c.plan.cp - 1)
            * t
            * heads
            * width
            / 2
            / (c.chip.hbm_bytes_per_s * k.hbm_share),
            0.0,
        )
        slow = np.where(ring, 1 + k.ring_loss * np.maximum(1 - 2 / c.plan.cp, 0.0), 1.0)
        forward, backward = forward * slow + merge, backward * slow + 2 * merge
    if np.any(c.software.flash == 0):
        scores = t * c.job.seq_len * heads
        full = 2 * scores * width / (c.chip.bf16_flops * k.attention_full * k.gemm / 0.75)
        full = full + k.scores_passes * np.where(
            c.software.unfused_scores > 0, k.scores_unfused, 1.0
        ) * 2 * scores / (c.chip.hbm_bytes_per_s * k.hbm_share)
        forward = np.where(c.software.flash == 0, full, forward)
        backward = np.where(c.software.flash == 0, 2 * full, backward)
    return forward, backward


def expert_rows(c: Cases, t):
    """Token copies that one rank's experts process: t x top_k x etp / tp, at even routing."""
    return t * c.shape.top_k * c.plan.etp / c.plan.tp


def busiest_rows(c: Cases, t):
    """Token copies of the fullest expert rank: it sets the pace, unless routing is forced even or
    what is over an even share dropped."""
    return expert_rows(c, t) * np.where(c.software.even_routing > 0, 1.0, c.constants.ep_imbalance)


def layer_time(c: Cases) -> LayerTime:
    """One average layer (dense and MoE layers in the model's own proportion) for one micro-batch on
    one device."""
    s, k, p = c.shape, c.constants, c.plan
    t, h = tokens(c), s.hidden
    moe = moe_share(c) if np.any(s.moe_layers) else 0.0
    flops, elements, kernels = attention_linear(c, t)
    f = s.ffn_hidden / p.tp
    gated = s.ffn_matrices - 2.0
    dense = 1.0 - moe
    weights = attention_weights(s) / p.tp + dense * s.ffn_matrices * h * f
    tail = (
        dense * gemm_s(2 * t * h * f, t * (h + f) + h * f, 1.0, c)
        if np.any(c.software.lazy_recompute)
        else 0.0
    )
    flops = flops + dense * 2 * t * h * f * s.ffn_matrices
    elements = elements + dense * (t * (2 * h + (2 + gated) * f) + s.ffn_matrices * h * f)
    kernels = kernels + 2 * dense
    idle = 0.0
    if np.any(c.chip.wave_outputs):
        idle, idle_dense = idle_flops(c, t, f)
        idle = idle + dense * idle_dense
    attn, attn_back = attention_core_s(c, t)
    norm = np.where(c.software.norm_kernel > 0, k.norm_kernel, 1.0) * np.where(
        c.software.fused_norm > 0, 1.0, k.eager
    )
    inner = np.where(gated > 0, 6.0, 4.0)
    q_kv = np.where(
        s.mla > 0, s.heads * (s.qk_nope + s.qk_rope + s.v_head_dim) / 2, s.q_width + s.kv_width
    )
    per_token = 22 * h / sequence_shards(p) + (4 * q_kv + dense * inner * s.ffn_hidden) / p.tp
    low = low_precision(c)
    cast_rate = np.where(
        c.job.precision == FP4,
        k.cast_fp4,
        np.where(c.job.precision == MXFP8, k.cast_mxfp8, k.cast_fp8),
    )
    gathered = np.where(
        c.job.precision == FP8_ROW, 1.0, sequence_shards(p)
    )  # scales along rows: gathered in 16 bit, cast by every rank
    cast = t * (
        (2 * h / gathered + 2 * (s.q_width + s.kv_width) / p.tp)
        + dense * (2 * h / gathered + 3 * f)
    )
    gemm = gemm_s(flops, elements, kernels, c, idle=idle)
    host = k.layer_host_s * np.ones_like(t)
    bandwidth = c.chip.hbm_bytes_per_s * k.hbm_share
    moved = k.elementwise * norm * t * per_token
    if np.any(moe):
        local = s.experts / p.ep
        rows = busiest_rows(c, t)
        fe, fs = s.expert_ffn_hidden / p.etp, s.shared_ffn_hidden / p.tp
        m3 = s.ffn_matrices
        expert_f = 2 * rows * h * fe * m3
        expert_e = rows * (2 * h + (2 + gated) * fe) + local * m3 * h * fe
        each = np.maximum(rows / np.maximum(local, 1), 1.0)
        rate = linear_rate(c) * k.grouped_gemm * each / (each + k.grouped_half)
        weights = weights + moe * m3 * h * (local * fe + fs)
        gemm = gemm + moe * gemm_s(expert_f, expert_e, 2.0, c, rate)
        gemm = gemm + moe * gemm_s(
            2 * t * h * fs * m3, t * (2 * h + 3 * fs) + m3 * h * fs, np.where(fs > 0, 2.0, 0.0), c
        )
        gemm = gemm + moe * 2 * t / sequence_shards(p) * h * s.experts / (c.chip.bf16_flops * 0.3)
        moved = moved + moe * (
            k.elementwise * norm * inner * (rows * fe + t * fs) + k.permute * 2 * rows * h
        )
        cast = cast + moe * (rows * (2 * h + 3 * fe) + t * 3 * fs)
        host = host + moe * k.moe_host_s * np.where(c.software.even_routing > 1, k.static_host, 1.0)
    host = host * np.where(
        c.software.graphs >= 2,
        k.graphs_full,
        1 - (1 - k.graphs_part) * np.minimum(c.software.graphs, 1.0),
    )
    added = (
        np.where(c.plan.sharding >= ZERO3, 0.0, np.maximum(2 * c.job.grad_bytes - 2, 0.0))
        * weights
        / bandwidth
    )
    return LayerTime(
        gemm,
        attn,
        attn_back,
        moved / bandwidth,
        low * cast_rate * cast / bandwidth,
        host,
        added,
        tail,
    )


def logits_s(c: Cases):
    """Forward plus backward seconds of output head and loss for one micro-batch on the last stage,
    MTP heads included."""
    s, k = c.shape, c.constants
    t, v = tokens(c), s.vocab / c.plan.tp
    rate = c.chip.bf16_flops * k.gemm * np.where(s.hidden % 128 == 0, 1.0, k.unaligned)
    gemms = 3 * 2 * t * v * s.hidden / rate + 3 * k.gemm_launch_s
    loss = (
        k.logit_bytes
        * np.where(c.software.fused_norm > 0, 1.0, k.logit_eager)
        * t
        * v
        / (c.chip.hbm_bytes_per_s * k.hbm_share)
    )
    return (gemms + loss) * (1 + s.mtp_layers)
