"""The pieces of the memory model: what a layer saves, what a parameter costs, and what one pipeline
device holds of both.

Every function takes cases and returns numbers or columns. Factors of the shape and the stack come
before the columns of the plan, so
that a search over one model works on the plan's columns alone.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ...catalogue.models.shape import parameters
from ..cases import (
    OFFLOADS,
    PRECISIONS,
    RECOMPUTES,
    SHARDINGS,
    Cases,
    micro_batches,
    sequence_shards,
    tokens,
)
from ..pipeline import SCHEDULES, in_flight, weight_copies, weight_kept
from .constants import GENERIC

ZERO1, ZERO2, ZERO3, HSDP = (SHARDINGS.index(n) for n in ("zero1", "zero2", "zero3", "hsdp"))
SELECTIVE, FULL = RECOMPUTES.index("selective"), RECOMPUTES.index("full")
BF16, FP32 = (PRECISIONS.index(n) for n in ("bf16", "fp32"))
HOST_STATES, HOST_ALL = OFFLOADS.index("optimizer"), OFFLOADS.index("optimizer+params")
VEE = np.array([row.placement == "vee" for row in SCHEDULES.values()], dtype=float)
MIRROR = np.array([row.placement == "mirror" for row in SCHEDULES.values()], dtype=float)
LOW_BYTES = np.array(
    [
        {"mxfp8": 33 / 32, "nvfp4": 9 / 16}.get(name, 1.0 if name.startswith("fp8") else 0.0)
        for name in PRECISIONS
    ]
)
SPLIT = np.array([row.split_backward for row in SCHEDULES.values()])

# One large block, freed at once: the C library then keeps what temporaries free, and column
# arithmetic runs at twice the speed
np.empty(3_900_000)


def constants_of(c: Cases):
    """The memory constants gathered beside the case; the generic ones where none were."""
    return getattr(c.constants, "memory", None) or GENERIC


def low_bytes(job):
    """Bytes of a value of the linear layers in 8 or 4 bits, block scales included (mxfp8: 1 per 32
    values, nvfp4: 1 per 16); 0 in 16 bit and fp32."""
    return LOW_BYTES[job.precision]


def layer_bytes(c: Cases):
    """What one layer and micro-batch leave for the backward pass on one device: dense, moe, both
    under `selective`, and the layer's input.

    `rows` are the expert rows of one rank. `selective` drops what the stack repeats: shares of the
    GEMM outputs, of the materialised
    scores and of the element-wise outputs.
    """
    s, p, k, sw = c.shape, c.plan, constants_of(c), c.software
    t = tokens(c)
    outer, inner = t / sequence_shards(p), t / p.tp
    low = low_bytes(c.job)
    wide = 1.0 + (c.job.precision == FP32)
    kept = np.where(low > 0, low, 2.0)  # bytes of a linear layer's input
    eager = 1.0 - sw.fused_norm
    repeated = np.maximum(sw.selective_elementwise, k.per_op)
    gemm, scored, chain = 1.0 - sw.selective_gemm, 1.0 - sw.selective_attention, 1.0 - repeated
    hidden = s.hidden * wide
    norms = (2 * kept + eager * (1.0 - sw.norm_kernel) * 12.0 + 2.0 * k.dropout) * hidden
    core = (2.0 * s.q_width + 4.0 * s.kv_width) * wide
    lse = 4.0 * s.heads * (sw.flash > 0)
    out, out_chosen = (
        (2.0 + low * cast) * s.out_width * wide + lse * wide for cast in (1.0, chain)
    )
    out_chosen = out_chosen * (
        1.0 - k.per_op * sw.selective_attention
    )  # what lists its products keeps no output of a core that it repeats
    scores = (
        (sw.flash == 0) * (2.0 + 3.0 * k.dropout + 4.0 * eager) * s.heads * c.job.seq_len * wide
    )
    up = 2.0 * (s.ffn_matrices - 1) * wide  # gate and up, or up
    mid = kept * wide
    first, second = (up + 2 * wide * eager) * s.ffn_hidden, mid * s.ffn_hidden
    narrow = 1.0 - 0.5 * (low > 0) * repeated * (1.0 - k.per_op)
    up_chosen = (
        up * narrow
    )  # a repeated SwiGLU keeps its inputs in 8 bits (DeepSeek-V3, section 3.3.3)
    latent = s.mla * 4.0 * (s.q_lora + s.kv_lora + s.qk_rope) * wide * t if np.any(s.mla) else 0.0
    inputs = (
        4.0 - 2.0 * s.parallel_block
    ) * hidden  # attention and MLP read one input where they run in parallel
    whole_outer, chosen_outer = inputs + norms, inputs + chain * norms
    # the latents bring q, k and v back: their up-projections are what `selective` repeats first
    # (DeepSeek-V3, section 3.2.3)
    whole_inner, chosen_inner = (
        core + out + scores,
        gemm * (1 - s.mla) * core + out_chosen + scored * scores,
    )
    a = SimpleNamespace(
        dense=outer * whole_outer + inner * (whole_inner + first + second) + latent,
        dense_selective=outer * chosen_outer
        + inner * (chosen_inner + gemm * first * narrow + chain * second)
        + latent,
        boundary=outer * (2.0 * hidden),
        rows=0.0,
        moe=0.0,
        moe_selective=0.0,
    )
    if np.any(s.moe_layers):
        a.rows = inner * (s.top_k * k.imbalance) * p.etp
        width = (
            s.top_k * k.imbalance * s.expert_ffn_hidden + s.shared_ffn_hidden
        )  # of a row's experts, split over etp, and the shared ones
        router = 8.0 * s.experts * wide
        a.moe = (
            outer * (whole_outer + router)
            + inner * (whole_inner + (up + mid) * width)
            + a.rows * ((kept + 2.0) * hidden)
            + latent
        )
        a.moe_selective = (
            outer * (chosen_outer + router)
            + inner * (chosen_inner + (gemm * up_chosen + chain * mid) * width)
            + a.rows * ((gemm * kept + chain * 2.0) * hidden)
            + latent
        )
    return a


def parameter_bytes(c: Cases, group):
    """Bytes of one parameter that `group` ranks share: weight, gradient, states, host, gathered
    (while in use) and step (fp32 gradients)."""
    p, job, k = c.plan, c.job, constants_of(c)
    wide = job.precision == FP32
    weight = 2.0 + 2.0 * wide
    low = low_bytes(job)
    cached = (
        weight + 2.0 * low - weight * k.low_weights * (low > 0)
    )  # and the low-precision copies, both ways round
    states = job.optimizer_bytes + job.master_bytes * (1.0 - wide)
    gradient = np.maximum(job.grad_bytes, (job.precision == BF16) * k.bf16_gradients)
    away, gone = p.offload >= HOST_STATES, p.offload >= HOST_ALL
    z1, z2, z3 = p.sharding >= ZERO1, p.sharding >= ZERO2, p.sharding >= ZERO3
    share = 1.0 / group
    stored = weight * (
        1.0 - np.where(k.fp32_shards, 1.0, 0.0)
    )  # the fp32 shard is the weight: no 16-bit one beside it
    within = c.software.optimizer_group
    owned = np.where(z1, share, 1.0)
    if np.any(within):
        owned = np.where(
            (p.sharding == ZERO1) & (within > 0),
            np.maximum(share, 1.0 / np.maximum(within, 1)),
            owned,
        )
    copies = weight_copies(p.schedule)
    resident = np.where(z3, share * stored, cached) * copies
    gathered = np.where(z3, 1.0 - share * (stored > 0), 0.0) * cached
    step = (job.grad_bytes <= 2) * (1.0 - wide) * k.step_bytes
    states = states * owned
    host = 0.0 * share
    if np.any(p.offload):
        # ZeRO-Infinity and FSDP's CPU offload: weights come and gradients go a layer at a time
        # (Rajbhandari et al. 2021, section 5)
        host = away * states + gone * (
            weight * np.where(z3, share, 1.0) + gradient * np.where(z2, share, 1.0)
        )
        resident, gathered, gradient = (
            np.where(gone, 0.0, resident),
            np.where(gone, cached + weight, gathered),
            np.where(gone, 0.0, gradient),
        )
        states, step = np.where(away, 0.0, states), np.where(away, 0.0, step)
    cache = np.where(z3 | gone, 0.0, cached - weight) * copies
    return SimpleNamespace(
        weight=resident,
        cache=cache,
        gradient=np.where(z2, gradient * share, gradient) * copies,
        states=states,
        host=host,
        gathered=gathered,
        gathered_ends=gathered * (weight / cached),
        step=step * owned,
    )


def frame(c: Cases):
    """What all devices of a case share: saved bytes and parameters by layer, bytes by parameter,
    buffers."""
    s, p, job, k = c.shape, c.plan, c.job, constants_of(c)
    n, a, t = parameters(s), layer_bytes(c), tokens(c)
    routed = bool(np.any(s.moe_layers))
    on_device = k.activation * (1.0 - c.software.activation_offload)
    partly, wholly = (
        (p.recompute == SELECTIVE) * p.recompute_share,
        (p.recompute == FULL) * p.recompute_share,
    )
    left, partly, wholly = (
        on_device * (1.0 - partly - wholly),
        on_device * partly,
        on_device * wholly,
    )
    ends = wholly * a.boundary
    ranks = p.dp * p.cp
    group = np.where(p.sharding == HSDP, np.minimum(p.shard_group, ranks), ranks)
    per_tp = 1.0 / p.tp
    largest = np.maximum(a.moe, a.dense * (s.moe_layers < s.layers))
    f = SimpleNamespace(
        n=n,
        routed=routed,
        m=micro_batches(job, p),
        a=a,
        largest=largest,
        per_tp=per_tp,
        repeats=np.any(p.recompute > 0),
        per_dense=left * a.dense + partly * a.dense_selective + ends,
        bytes=parameter_bytes(c, group),
        widest=np.maximum(
            (n.moe_layer - n.experts_per_moe_layer) * (s.moe_layers > 0),
            n.dense_layer * (s.moe_layers < s.layers),
        ),
        head=np.where(s.tied > 0, n.embedding, n.lm_head),
        mtp=n.mtp - s.mtp_layers * (s.moe_layers > 0) * n.experts_per_moe_layer,
        logits=t
        * per_tp
        * (
            np.where(c.software.chunked_loss > 0, np.minimum(s.hidden, s.vocab), s.vocab)
            * k.logit_bytes
            * (1 + s.mtp_layers)
        ),
        kept=weight_kept(s.hidden, s.heads, job.seq_len, c.software.flash > 0)
        if np.any(SPLIT[p.schedule])
        else 1.0,
    )
    # a layer that repeats its forward holds for that time what it had dropped
    chosen, whole = partly > 0, wholly > 0
    dropped = chosen * (a.dense - a.dense_selective) + whole * (a.dense - a.boundary)
    if routed:
        dropped = np.maximum(
            chosen * (a.moe - a.moe_selective) + whole * (a.moe - a.boundary),
            dropped * (s.moe_layers < s.layers),
        )
    f.transient = k.activation * (largest * k.working + dropped)
    f.buffers = (p.tp > 1) * (4.0 * s.hidden) * t + (p.pp > 1) * 8.0 * a.boundary
    if np.any(p.cp > 1):
        f.buffers = f.buffers + (p.cp > 1) * (8.0 * s.kv_width) * t * per_tp
    if np.any(k.dense_masks):
        f.buffers = f.buffers + k.dense_masks * k.pair_bytes * job.seq_len * t
    if routed:
        f.per_moe = left * a.moe + partly * a.moe_selective + ends
        f.expert_bytes = parameter_bytes(c, np.maximum(group * p.tp / (p.ep * p.etp), 1.0))
        f.experts = n.experts_per_moe_layer / (p.ep * p.etp)
        f.buffers = f.buffers + a.rows * (8.0 * s.hidden)
    return f


def device(c: Cases, f, held, layers, moe, embeds, heads, tail):
    """What one pipeline device holds: dense and expert parameters, activations with logits, logits,
    and what is gathered for a moment.

    `held` micro-batches in flight, `layers`, `moe` of them with experts; embeds and heads (with the
    MTP modules) are the copies of these
    over the schedule's copies of a weight, tail is 1 where the loss is. The last value is what of
    the dense parameters stays in 16 bit.
    """
    s, k, n, a = c.shape, constants_of(c), f.n, f.a
    ends = embeds * n.embedding + heads * np.where(embeds * s.tied > 0, 0, f.head)
    trunk = layers * n.dense_layer + ends
    mtp = s.mtp_layers * tail
    if np.any(s.mtp_layers):
        trunk = trunk + heads * f.mtp
    if f.routed:
        trunk = trunk + moe * (n.moe_layer - n.experts_per_moe_layer - n.dense_layer)
        last = s.moe_layers > 0
        experts = (moe + s.mtp_layers * heads * last) * f.experts
        saved = (
            held * ((layers - moe) * f.per_dense + moe * f.per_moe)
            + np.where(last, f.per_moe, f.per_dense) * mtp
        )
        most = (
            held * ((layers - moe) * a.dense + moe * a.moe) + np.where(last, a.moe, a.dense) * mtp
        )
    else:
        experts, run = 0.0, held * layers
        saved, most = (run + mtp) * f.per_dense, (run + mtp) * a.dense
    trunk = trunk * f.per_tp
    activations = saved + f.transient
    if f.repeats:  # never more than with nothing repeated, however few layers a device has
        activations = np.minimum(activations, k.activation * (most + k.working * f.largest))
    logits = tail * f.logits
    activations = activations + logits
    gathered = (
        2.0 * heads * f.head * f.per_tp
    )  # the head's weight gradient, before it is accumulated
    if np.any(f.bytes.gathered) or (f.routed and np.any(f.expert_bytes.gathered)):
        outside = ends * f.per_tp
        gathered = (
            gathered
            + np.minimum(k.layers_gathered * f.widest * f.per_tp, trunk - outside)
            * f.bytes.gathered
            + np.minimum(np.maximum(embeds, heads) * n.embedding * f.per_tp, outside)
            * f.bytes.gathered_ends
        )
        if f.routed:
            gathered = (
                gathered
                + np.minimum(k.layers_gathered * f.experts, experts) * f.expert_bytes.gathered
            )
    if np.any(
        f.bytes.step
    ):  # fp32 gradients of the optimizer's step take the place of the activations
        gathered = np.maximum(
            gathered,
            trunk * f.bytes.step
            + (experts * f.expert_bytes.step if f.routed else 0.0)
            - activations,
        )
    return trunk, experts, activations, logits, gathered, ends * f.per_tp


def in_flight_of(c: Cases, f, stages):
    """Micro-batches in flight on the devices `stages` of each case, one entry per device."""
    p = c.plan
    ndim = np.broadcast(p.schedule, p.pp, p.vpp, f.m, f.kept).ndim
    return in_flight(
        p.schedule, p.pp, p.vpp, f.m, np.reshape(stages, (len(stages),) + (1,) * ndim), f.kept
    )


def states_of(f, trunk, experts, ends):
    """(weights, gradients, optimizer, host) of so many dense and expert parameters, `ends` of the
    dense ones outside the layers. [bytes]"""
    b = f.bytes
    weights = trunk * b.weight - ends * b.cache  # embedding and head have no low-precision copies
    if not f.routed:
        return weights, trunk * b.gradient, trunk * b.states, trunk * b.host
    e = f.expert_bytes
    return (
        weights + experts * e.weight,
        trunk * b.gradient + experts * e.gradient,
        trunk * b.states + experts * e.states,
        trunk * b.host + experts * e.host,
    )
