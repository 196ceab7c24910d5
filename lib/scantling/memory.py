"""Memory of the fullest device: weights, gradients, optimizer states, activations and the rest, for every plan at once.

Three pipeline devices can be the fullest: the first (most micro-batches in flight, the embedding), the second (one layer more where
layers do not divide) and the last (the output head and the loss). Each is one evaluation of the same column arithmetic.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from .cases import OFFLOADS, PRECISIONS, RECOMPUTES, SHARDINGS, Cases, micro_batches, sequence_shards, tokens
from .memory_constants import GENERIC
from .model import parameters
from .pipeline import SCHEDULES, in_flight, weight_copies, weight_kept
from .step import layers_per_stage

PARTS = ("weights", "gradients", "optimizer", "activations", "other")
STAGES = ("first", "middle", "last")
ZONES = ("safe", "tight", "over")
SAFE_SHARE = 0.80
_ZERO1, _ZERO2, _ZERO3, _HSDP = (SHARDINGS.index(n) for n in ("zero1", "zero2", "zero3", "hsdp"))
_SELECTIVE, _FULL = RECOMPUTES.index("selective"), RECOMPUTES.index("full")
_BF16, _FP32 = PRECISIONS.index("bf16"), PRECISIONS.index("fp32")
_HOST_STATES, _HOST_ALL = OFFLOADS.index("optimizer"), OFFLOADS.index("optimizer+params")
_VEE = np.array([row.placement == "vee" for row in SCHEDULES.values()], dtype=float)
_MIRROR = np.array([row.placement == "mirror" for row in SCHEDULES.values()], dtype=float)
_SPLIT = np.array([row.split_backward for row in SCHEDULES.values()])


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest device by part; the parts sum to `total`. Columns or scalars.

    `logits` is part of `activations`; `gathered`, `buffers`, `framework` and `fragmentation` are what `other` is made of.
    `stage` is a code in STAGES, `host` what one device keeps in host memory.
    """

    weights: Any
    gradients: Any
    optimizer: Any
    activations: Any
    other: Any
    capacity: Any
    stage: Any
    host: Any
    logits: Any
    gathered: Any
    buffers: Any
    framework: Any
    fragmentation: Any

    @property
    def total(self):
        """Bytes of the fullest device: the sum of the five parts."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.other

    @property
    def fits(self):
        """True where the total is within what a program can have."""
        return self.total <= self.capacity


def zone(memory: Memory):
    """Code in ZONES: safe up to 80 % of the usable memory, tight up to all of it, over above."""
    share = memory.total / memory.capacity
    return (np.where(share <= SAFE_SHARE, 0, 1) + np.where(share <= 1.0, 0, 1))[()]


def memory(c: Cases) -> Memory:
    """Memory of the fullest device of every case. [bytes]

    Weights: 2 bytes a parameter in 16 bit, 4 in fp32, with 2 more for the cached low-precision copies of the fp8 and fp4 recipes;
    gradients, moments and master weights as the job says; all divided as the sharding says, experts over their own replicas
    (dp x cp x tp / (ep x etp)). Activations: Korthikanti et al. 2022, section 4, extended to gated MLPs, grouped and latent
    attention and experts; times the micro-batches in flight of the schedule. Logits of one micro-batch on the last stage.
    Other: gathered layers under ZeRO-3, communication and dispatch buffers, the framework's own memory and fragmentation.
    Counters of allocated tensors leave the framework's memory out, nvidia-smi counts it: `framework` and `fragmentation` are
    fitted to what each stack's sources report.
    """
    f = _frame(c)
    first, middle, last = layers_per_stage(c)
    s, p = c.shape, c.plan
    lone = np.where(p.pp == 1, 1.0, 0.0)
    both = np.maximum(lone, np.maximum(_VEE[f.schedule], _MIRROR[f.schedule]))
    dense = s.layers - s.moe_layers
    dense_first = np.where(4 * dense <= s.layers, 1.0, 0.0)
    spread = s.moe_layers / s.layers
    ends = _stage(c, f, first, np.where(dense_first > 0, np.maximum(first - dense, 0), first * spread), 0, 1.0, both, both)
    tail = np.where(dense_first > 0, np.maximum(last - np.maximum(dense - (s.layers - last), 0), 0), last * spread)
    head = np.maximum(1 - _VEE[f.schedule], lone)
    close = _stage(c, f, last, tail, -1, np.maximum(lone, np.maximum(s.tied * head, _MIRROR[f.schedule])), head, head)
    parts, where = ends, 0 * f.framework
    if np.any(p.pp > 2):
        inner = _stage(c, f, middle, np.where(dense_first > 0, np.maximum(middle - np.maximum(dense - first, 0), 0), middle * spread), 1, 0.0, 0.0, 0.0)
        parts, where = _fuller(parts, where, inner, 1, p.pp > 2)
    if np.any(p.pp > 1):
        parts, where = _fuller(parts, where, close, 2, p.pp > 1)
    weights, gradients, optimizer, activations, logits, gathered, host = parts
    k = c_memory(c)
    share = k.fragmentation
    capacity = c.chip.usable_bytes * (1 - k.unseen_share) - k.unseen_bytes
    fragmentation = share * (weights + gradients + optimizer + activations + gathered + f.buffers)
    other = gathered + f.buffers + f.framework + fragmentation
    return Memory(weights, gradients, optimizer, activations, other, capacity, where, host, logits, gathered, f.buffers, f.framework, fragmentation)


def c_memory(c: Cases):
    """The memory constants gathered beside the case; the generic ones where none were."""
    return getattr(c.constants, "memory", None) or GENERIC


def saved_bytes(c: Cases):
    """(dense layer, MoE layer) bytes that one micro-batch leaves for the backward pass on one device, nothing recomputed.

    Per token of a tensor-parallel group, h hidden, q and kv widths, f width of the MLP, 16-bit tensors:
      norms: their inputs 4h, their outputs 4h (each over tp with sequence parallelism); two dropout masks 2h where dropout is on
      attention: (2q + 4kv + 2o + 4 heads)/tp; materialised scores 2 seq heads/tp, 5 with dropout; latent attention its latents too
      MLP: 6f/tp gated, 4f/tp plain
      experts: rows of the rank x (4h + 6 f_e/etp or 4), shared experts as the MLP, router 8 E
    A GPT layer with dropout is 34 h + 5 seq heads a token, Korthikanti et al. 2022, equation 1. fp8 recipes keep the inputs of the
    linear layers in one byte.
    """
    a = _layer(c)
    return a.outside + a.attention + a.scores + a.mlp, a.outside + a.attention + a.scores + a.experts


def _layer(c: Cases):
    """Saved bytes of one layer and micro-batch, by piece, with what `selective` recompute leaves of them."""
    s, p, k = c.shape, c.plan, c_memory(c)
    t = tokens(c)
    shards = sequence_shards(p)
    low = (c.job.precision >= 2) & (c.job.precision < _FP32)
    wide = np.where(c.job.precision == _FP32, 2.0, 1.0)
    kept = np.where(low, 1.0, 2.0)                      # bytes of a linear layer's input
    eager = 1 - c.software.fused_norm
    fp32_norms = eager * (1 - c.software.norm_kernel) * 12.0
    norm_in, norm_out = 4.0 * s.hidden * t / shards, (2 * kept + fp32_norms) * s.hidden * t / shards
    masks = k.dropout * 2.0 * s.hidden * t / shards
    core = (2.0 * s.q_width + 4.0 * s.kv_width) * t / p.tp
    out = (2.0 * s.out_width + np.where(low, s.out_width, 0.0) + 4.0 * s.heads) * t / p.tp
    latent = s.mla * 4.0 * (s.q_lora + s.kv_lora + s.qk_rope) * t
    scores = np.where(c.software.flash == 0, (2.0 + 3.0 * k.dropout + 4.0 * eager) * s.heads * c.job.seq_len * t / p.tp, 0.0)
    inner = 2.0 * (s.ffn_matrices - 1)                  # gate and up, or up
    mlp_in, mlp_mid = (inner + 2 * eager) * s.ffn_hidden * t / p.tp, kept * s.ffn_hidden * t / p.tp
    rows = t * s.top_k * p.etp / p.tp * k.imbalance
    shared = s.shared_ffn_hidden * t / p.tp
    moe_in = rows * (kept * s.hidden + inner * s.expert_ffn_hidden / p.etp) + inner * shared
    moe_mid = rows * (2.0 * s.hidden + kept * s.expert_ffn_hidden / p.etp) + kept * shared
    router = 8.0 * s.experts * t / shards
    chosen = SimpleNamespace(gemm=1 - c.software.selective_gemm, attention=1 - c.software.selective_attention, ew=1 - c.software.selective_elementwise)
    full = wide * (norm_in + norm_out + masks + core + out + latent + scores)
    part = wide * (norm_in + chosen.ew * (norm_out + masks) + chosen.gemm * core + out + latent + chosen.attention * scores)
    return SimpleNamespace(
        outside=wide * (norm_in + norm_out + masks), attention=wide * (core + out + latent), scores=wide * scores, mlp=wide * (mlp_in + mlp_mid),
        experts=wide * (moe_in + moe_mid + router), dense=full + wide * (mlp_in + mlp_mid), moe=full + wide * (moe_in + moe_mid + router),
        dense_selective=part + wide * (chosen.gemm * mlp_in + chosen.ew * mlp_mid), rows=rows,
        moe_selective=part + wide * (chosen.gemm * moe_in + chosen.ew * moe_mid + router), boundary=wide * 2.0 * s.hidden * t / shards)


def _frame(c: Cases):
    """What all stages of a case share: parameters and saved bytes by layer, bytes by parameter, buffers."""
    s, p, job, k = c.shape, c.plan, c.job, c_memory(c)
    n = parameters(s)
    a = _layer(c)
    schedule = np.asarray(p.schedule)
    share = np.where(p.recompute > 0, p.recompute_share, 0.0)
    partly, wholly = np.where(p.recompute == _SELECTIVE, share, 0.0), np.where(p.recompute == _FULL, share, 0.0)
    on_device = k.activation * (1 - c.software.activation_offload)

    def saved(whole, chosen):
        return on_device * (whole + partly * (chosen - whole) + wholly * (np.minimum(a.boundary, whole) - whole))

    ranks = p.dp * p.cp
    group = np.where(p.sharding == _HSDP, np.minimum(p.shard_group, ranks), ranks)
    expert_group = np.maximum(group * p.tp / (p.ep * p.etp), 1.0)
    low = (job.precision >= 2) & (job.precision < _FP32)
    weight = np.where(job.precision == _FP32, 4.0, 2.0)
    whole_shards = (p.sharding >= _ZERO3) & (k.fp32_shards > 0)
    stored = np.where(whole_shards, 0.0, weight)        # the fp32 shard is the weight
    states = job.optimizer_bytes + np.where(job.precision == _FP32, 0.0, job.master_bytes)
    away = np.where(p.offload >= _HOST_STATES, 0.0, 1.0)
    home = np.where(p.offload >= _HOST_ALL, 0.0, 1.0)
    copies = weight_copies(schedule)
    gradient = np.maximum(job.grad_bytes, np.where(job.precision == _BF16, k.bf16_gradients, 0.0))
    step_bytes = away * np.where((job.grad_bytes <= 2) & (job.precision < _FP32), k.step_bytes, 0.0)
    tables = []
    within = np.where((p.sharding == _ZERO1) & (c.software.optimizer_group > 0), c.software.optimizer_group, np.inf)
    for g in (group, expert_group):
        g1, g2, g3 = (np.where(p.sharding >= z, g, 1.0) for z in (_ZERO1, _ZERO2, _ZERO3))
        g1 = np.minimum(g1, within)
        resident = np.where(p.sharding >= _ZERO3, home * stored / g3, np.where(p.offload >= _HOST_ALL, 0.0, weight)) * copies
        working = np.where(p.sharding >= _ZERO3, 0.0, np.where(low, 2.0, 0.0) * home) * copies
        tables.append((resident + working, gradient / g2 * copies, away * states / g1,
                       (1 - away) * states / g1 + (1 - home) * weight / g3,
                       np.where((p.sharding >= _ZERO3) | (p.offload >= _HOST_ALL), weight + np.where(low, 2.0, 0.0), 0.0) * (1 - 1 / np.maximum(g3, np.where(p.offload >= _HOST_ALL, 2.0, 1.0))), step_bytes / g1))
    experts = n.experts_per_moe_layer / (p.ep * p.etp)
    rows_bytes = np.where(s.moe_layers > 0, a.rows * s.hidden * 8.0, 0.0)
    t = tokens(c)
    buffers = rows_bytes + k.dense_masks * k.pair_bytes * t * job.seq_len + np.where(p.tp > 1, 4.0 * s.hidden * t, 0.0) + np.where(p.cp > 1, 8.0 * s.kv_width * t / p.tp, 0.0) + np.where(p.pp > 1, 8.0 * a.boundary, 0.0)
    largest = np.where(s.moe_layers > 0, np.maximum(a.moe, a.dense * (s.moe_layers < s.layers)), a.dense)
    return SimpleNamespace(
        n=n, schedule=schedule, m=micro_batches(job, p), per_dense=saved(a.dense, a.dense_selective), per_moe=saved(a.moe, a.moe_selective),
        transient=k.activation * largest * (k.working + np.where(wholly > 0, 1.0, 0.0)), cap=k.activation * (a.dense, a.moe)[0], largest=largest,
        trunk_dense=n.dense_layer / p.tp, trunk_moe=(n.moe_layer - n.experts_per_moe_layer) / p.tp, experts=experts,
        embedding=n.embedding / p.tp, head=np.where(s.tied > 0, n.embedding, n.lm_head) / p.tp, mtp_trunk=_mtp_trunk(s, n) / p.tp,
        dense_bytes=tables[0], expert_bytes=tables[1], buffers=buffers, framework=k.framework_bytes + 0.0 * t, a=a,
        logits=t * np.where(c.software.chunked_loss > 0, np.minimum(s.hidden, s.vocab), s.vocab) / p.tp * k.logit_bytes * (1 + s.mtp_layers),
        kept=weight_kept(s.hidden, s.heads, job.seq_len, c.software.flash > 0) if np.any(_SPLIT[schedule]) else 1.0)


def _mtp_trunk(s, n):
    """Parameters of the MTP modules without their routed experts."""
    return n.mtp - np.where(s.moe_layers > 0, s.mtp_layers * n.experts_per_moe_layer, 0.0)


def _stage(c: Cases, f, layers, moe, index, embeds, heads, tail):
    """Parts of one pipeline device that holds `layers`, `moe` of them with experts; embeds, heads, tail (loss, MTP) are 0 or 1."""
    s, p, k = c.shape, c.plan, c_memory(c)
    dense = layers - moe
    held = in_flight(p.schedule, p.pp, p.vpp, f.m, index, f.kept)
    trunk = dense * f.trunk_dense + moe * f.trunk_moe + embeds * f.embedding + np.where(embeds * s.tied > 0, 0.0, heads) * f.head + tail * f.mtp_trunk
    moe_mtp = np.where(s.moe_layers > 0, s.mtp_layers * tail, 0.0)
    experts = (moe + moe_mtp) * f.experts
    (w, g, o, h, _, u), (we, ge, oe, he, _, ue) = f.dense_bytes, f.expert_bytes
    mtp = s.mtp_layers * tail
    saved = held * (dense * f.per_dense + moe * f.per_moe) + np.where(s.moe_layers > 0, f.per_moe, f.per_dense) * mtp
    most = k.activation * (held * (dense * f.a.dense + moe * f.a.moe) + np.where(s.moe_layers > 0, f.a.moe, f.a.dense) * mtp + k.working * f.largest)
    logits = tail * f.logits
    activations = np.minimum(saved + f.transient, most) + logits
    layer = np.where(s.moe_layers > 0, np.maximum(f.trunk_moe, f.trunk_dense * (s.moe_layers < s.layers)), f.trunk_dense)
    gathered = np.minimum(2 * layer + np.maximum(embeds, heads) * f.embedding, trunk) * f.dense_bytes[4]
    gathered = gathered + np.where(s.moe_layers > 0, np.minimum(2 * f.experts, experts) * f.expert_bytes[4], 0.0)
    # fp32 gradients of the optimizer's step come when the activations are gone; the head's weight gradient while they are there
    gathered = np.maximum(gathered + 2.0 * heads * f.head, trunk * u + experts * ue - activations)
    return trunk * w + experts * we, trunk * g + experts * ge, trunk * o + experts * oe, activations, logits, gathered, trunk * h + experts * he


def _fuller(parts, where, candidate, code, exists):
    """Part by part the fuller of two devices."""
    more = exists & (sum(candidate) - candidate[4] - candidate[6] > sum(parts) - parts[4] - parts[6])
    return tuple(np.where(more, b, a)[()] for a, b in zip(parts, candidate)), np.where(more, code, where)[()]


def memory_by_stage(c: Cases) -> tuple[dict, ...]:
    """Memory of every pipeline device of one case, first to last: stage, layers, the five parts and their total. [bytes]

    The devices that stand for their kind (first, second, last) equal what `memory` takes the fullest of.
    Raises ValueError where the case has more than one row.
    """
    if len(c) != 1:
        raise ValueError(f"memory_by_stage takes one case, got {len(c)}")
    s, p = c.shape, c.plan
    pp = int(np.ravel(p.pp)[0])
    f = _frame(c)
    first, middle, last = (int(np.ravel(x)[0]) for x in layers_per_stage(c))
    layers = np.full(pp, middle)
    layers[0], layers[-1] = first, last
    inner = layers[1:-1]
    spare = int(inner.sum() - (int(np.ravel(s.layers)[0]) - first - last)) if pp > 2 else 0
    if spare > 0:       # places that the left-over layers do not reach, from the end
        inner[len(inner) - spare:] -= 1
    index = np.arange(pp)
    total, routed = int(np.ravel(s.layers)[0]), int(np.ravel(s.moe_layers)[0])
    plain = total - routed
    before = np.concatenate([[0], np.cumsum(layers)[:-1]])
    moe = layers - np.clip(plain - before, 0, layers) if 4 * plain <= total else layers * (routed / total)
    vee, mirror = _VEE[f.schedule] > 0, _MIRROR[f.schedule] > 0
    is_first, is_last = index == 0, index == pp - 1
    embeds = np.where(is_first | (is_last & ((np.asarray(s.tied) > 0) & ~vee | mirror)), 1.0, 0.0)
    heads = np.where(is_last & ~vee | (is_first & (vee | mirror)) | (pp == 1), 1.0, 0.0)
    tail = np.where(is_first & (vee | mirror) | (is_last & ~vee), 1.0, 0.0)
    weights, gradients, optimizer, activations, _, gathered, _ = _stage(c, f, layers, moe, index, embeds, heads, tail)
    held = weights + gradients + optimizer + activations + gathered + f.buffers
    other = gathered + f.buffers + f.framework + c_memory(c).fragmentation * held
    columns = np.broadcast_arrays(weights, gradients, optimizer, activations, other)
    rows = []
    for i in range(pp):
        parts = {name: float(column[i]) for name, column in zip(PARTS, columns)}
        rows.append({"stage": i, "layers": int(layers[i]), **parts, "total": sum(parts.values())})
    return tuple(rows)
