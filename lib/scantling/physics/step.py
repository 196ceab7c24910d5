"""Step time: what one optimizer step spends where, for every plan at once.

step = micro-batches x slowest stage + bubble + exposed data-parallel traffic + optimizer + host,
stretched by stragglers.
Narayanan et al. 2021 (arXiv 2104.04473), section 2 and 3, gives the frame; the terms are those of
compute.py and traffic.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..catalogue.models.shape import flops_per_token, parameters
from . import compute, traffic
from .cases import PRECISIONS, RECOMPUTES, SHARDINGS, Cases, devices, micro_batches
from .pipeline import SCHEDULES, bubble_time, schedule_code, stage_layers, weight_kept

ZERO3, HSDP, FP32 = SHARDINGS.index("zero3"), SHARDINGS.index("hsdp"), PRECISIONS.index("fp32")
SELECTIVE, FULL = RECOMPUTES.index("selective"), RECOMPUTES.index("full")
# what one of eight ranks gets of its host's memory: Adam on the CPU and copies share it
# (ml-engineering's offload rows, 12 to 20)
HOST_RANK_BYTES_PER_S = 16e9
GPIPE, ONE_F, INTERLEAVED = (
    schedule_code("gpipe"),
    schedule_code("1f1b"),
    schedule_code("interleaved"),
)
MIRRORED = np.array([row.placement == "mirror" for row in SCHEDULES.values()], dtype=float)
PARTS = (
    "gemm",
    "attention",
    "elementwise",
    "logits",
    "recompute",
    "tp",
    "cp",
    "ep",
    "dp",
    "pp",
    "bubble",
    "optimizer",
    "host",
    "straggler",
    "data",
)


@dataclass(frozen=True)
class Step:
    """Exposed seconds of one step by part (they sum to `total`), and what ran hidden beside
    compute. Columns or scalars."""

    gemm: object
    attention: object
    elementwise: object
    logits: object
    recompute: object
    tp: object
    cp: object
    ep: object
    dp: object
    pp: object
    bubble: object
    optimizer: object
    host: object
    straggler: object
    data: object
    hidden_tp: object
    hidden_cp: object
    hidden_ep: object
    hidden_dp: object
    hidden_pp: object

    @property
    def total(self):
        """Seconds of one step: the sum of the exposed parts."""
        return sum(getattr(self, part) for part in PARTS)


def layers_per_stage(c: Cases):
    """(first, fullest middle, last) layers of the stages.

    Even where layers divide; one fewer at both ends where layers + 2 divide (embedding and loss
    stand for a layer each:
    Llama 3, BLOOM); three fewer at the end under a balanced MTP layout; otherwise as even as whole
    layers allow.
    """
    s, p = c.shape, c.plan
    balanced = (c.software.balanced_layout > 0) & (p.pp > 1)
    both = (s.layers % p.pp != 0) & ((s.layers + 2) % p.pp == 0)
    return stage_layers(
        s.layers,
        p.pp,
        1,
        np.where(both & ~balanced, 1, 0),
        np.where(balanced, np.minimum(3, -(-s.layers // p.pp) - 1), np.where(both, 1, 0)),
    )


def device_params(c: Cases):
    """(dense, expert) parameters that one device of the average stage holds before data-parallel
    sharding; embedding with it."""
    s, p = c.shape, c.plan
    n = parameters(s)
    stage = 1.0 / (p.tp * p.pp)
    experts = n.routed_experts + np.where(
        s.mtp_layers > 0, s.mtp_layers * n.experts_per_moe_layer, 0
    )
    dense = (
        n.total - n.routed_experts - n.embedding - n.lm_head + n.mtp - (experts - n.routed_experts)
    )
    ends = np.where(p.pp > 1, np.maximum(n.embedding, n.lm_head), n.embedding + n.lm_head) / p.tp
    return dense * stage + ends, experts / (p.pp * p.ep * p.etp)


def step_time(c: Cases) -> Step:
    """The step of every case. [s] Each part is exposed time; hidden_* is communication that compute
    covers."""
    s, k, p, job = c.shape, c.constants, c.plan, c.job
    m = micro_batches(job, p)
    layer = compute.layer_time(c)
    tp = traffic.tensor_parallel(c)
    cp = traffic.context_parallel(c, layer.attention)
    ep = traffic.expert_parallel(c) if np.any(s.moe_layers) else traffic.Exchange(0.0, 0.0, 0.0)
    pp = traffic.pipeline_send(c)
    logits = compute.logits_s(c)

    full = np.where(p.recompute == FULL, p.recompute_share, 0.0)
    selective = np.where(p.recompute == SELECTIVE, p.recompute_share, 0.0)
    again = (
        (layer.gemm - layer.tail * c.software.lazy_recompute) * full
        + layer.gemm * selective * c.software.selective_gemm
        + layer.attention * (full + selective * c.software.selective_attention)
        + layer.elementwise * (full + selective * c.software.selective_elementwise)
        + layer.host * full
    )
    tp_back = 1 + 0.25 * np.where(p.sp > 0, 1.0, 0.0)
    rounds_tp, rounds_ep, rounds_cp = 1 + tp_back + full, 2 + full, 3 + full
    gemm, elementwise = 3 * layer.gemm + layer.accumulate, 3 * layer.elementwise + layer.cast
    attention, host = layer.attention + layer.attention_backward, 2.5 * layer.host
    tp_s, cp_s, ep_s = tp.exposed_s * rounds_tp, cp.exposed_s * rounds_cp, ep.exposed_s * rounds_ep
    one = gemm + attention + elementwise + again + host + tp_s + cp_s + ep_s

    first, middle, last = layers_per_stage(c)
    mtp = s.mtp_layers * np.where(p.pp > 0, 1.0, 0.0)
    tail = logits + mtp * one
    end_layers, end_share = last, 1.0
    mirrored = MIRRORED[p.schedule] * (p.pp > 1)
    if np.any(
        mirrored
        # the outer devices hold the first and the last stage both, and run half of the
        # micro-batches
        # through each
    ):
        end_layers, end_share = (
            np.where(mirrored > 0, (first + last) / 2, last),
            np.where(mirrored > 0, 0.5, 1.0),
        )
        first = np.where(mirrored > 0, 0, first)
    stages_last = end_layers * one + end_share * tail
    slowest = np.maximum(np.maximum(first, middle) * one, stages_last)
    at_end = (stages_last >= slowest) | (p.pp == 1)
    held = np.where(at_end, end_layers + end_share * mtp, np.maximum(first, middle))
    mean = (s.layers * one + tail) / p.pp
    forward_share = (layer.gemm + layer.attention + layer.elementwise) / (
        gemm + attention + elementwise
    )
    weight = p_share(layer, gemm, attention, elementwise) * mean
    kept = weight_kept(s.hidden, s.heads, job.seq_len, c.software.flash > 0)
    bubble = bubble_time(
        p.schedule,
        p.pp,
        p.vpp,
        m,
        mean * forward_share,
        mean * (1 - forward_share),
        weight,
        weight_kept=kept,
    )

    dense, experts = device_params(c)
    dp = traffic.data_parallel(c, dense, experts)
    work = slowest + pp.exposed_s
    q = k.fsdp_power
    contended = (
        (work**q + dp.micro_wire_s**q) ** (1 / q)
        - work
        + k.fsdp_contention * np.minimum(dp.micro_wire_s, work)
    )
    micro_exposed = np.where(
        dp.micro_wire_s > 0, np.where(c.software.dp_overlap > 0, contended, dp.micro_wire_s), 0.0
    )
    alone = (
        (c.chip.is_tpu > 0) & (p.sharding == HSDP)
        # XLA's reductions between TPU slices wait for the backward: the step grows with the slices
        # (MaxText)
    )
    window = np.where(
        (c.software.dp_overlap > 0) & np.logical_not(alone),
        k.dp_window * slowest * (1 - forward_share),
        0.0,
    )
    step_exposed = traffic.exposed(dp.step_wire_s, window)
    if np.any(c.software.broadcast_gather):
        group = np.where(
            c.software.optimizer_group > 0,
            np.minimum(c.software.optimizer_group, p.dp * p.cp),
            p.dp * p.cp,
        )
        step_exposed = step_exposed + np.where(
            (c.software.broadcast_gather > 0) & (p.sharding > 0), k.broadcast_s * group, 0.0
        )
    shards = np.where(p.sharding > 0, np.where(p.sharding == HSDP, p.shard_group, p.dp * p.cp), 1.0)
    expert_shards = np.where(p.sharding > 0, np.maximum(shards * p.tp / (p.ep * p.etp), 1.0), 1.0)
    updated = dense / shards + experts / expert_shards
    optimizer = (
        k.optimizer_bytes
        * updated
        / np.where(
            p.offload > 0,
            np.minimum(c.chip.host_bytes_per_s, HOST_RANK_BYTES_PER_S),
            c.chip.hbm_bytes_per_s * k.hbm_share,
        )
    )
    streamed = 0.0
    if np.any(
        p.offload > 1
        # weights of every micro-batch from the host, forward and backward, gradients back to it;
        # compute hides what it can
    ):
        wide = 2.0 + 2.0 * (job.precision == FP32)
        bytes_ = (
            3
            * wide
            * (
                dense / np.where(p.sharding >= ZERO3, shards, 1.0)
                + experts / np.where(p.sharding >= ZERO3, expert_shards, 1.0)
            )
        )
        streamed = np.where(
            p.offload > 1,
            np.maximum(
                bytes_ / np.minimum(c.chip.host_bytes_per_s, HOST_RANK_BYTES_PER_S) - slowest, 0.0
            ),
            0.0,
        )
    step_host = (
        k.step_host_s
        * (0.1 + 0.9 * np.minimum(s.layers / p.pp / 24.0, 1.0))
        * np.where(c.software.graphs >= 2, 0.5, 1.0)
    )
    nodes = np.maximum(devices(p) / 8, 1.0)

    overall = k.overall * np.where(c.software.step_engine > 0, k.engine, 1.0)
    rounds = m * held * overall
    parts = dict(
        gemm=rounds * gemm,
        attention=rounds * attention,
        elementwise=rounds * elementwise,
        logits=m * overall * np.where(at_end, end_share * logits, 0.0),
        recompute=rounds * again,
        tp=rounds * tp_s,
        cp=rounds * cp_s,
        ep=rounds * ep_s,
        dp=(m * micro_exposed + step_exposed) * overall,
        pp=m * pp.exposed_s * overall,
        bubble=bubble * overall,
        optimizer=optimizer * overall,
        host=(rounds * host + m * streamed + step_host * overall),
    )
    busy = sum(parts.values())
    hidden = dict(
        hidden_tp=rounds * np.maximum(tp.wire_s - tp.exposed_s, 0) * rounds_tp,
        hidden_cp=rounds * np.maximum(cp.wire_s - cp.exposed_s, 0) * rounds_cp,
        hidden_ep=rounds * np.maximum(ep.wire_s - ep.exposed_s, 0) * rounds_ep,
        hidden_pp=m * np.maximum(pp.wire_s - pp.exposed_s, 0),
        hidden_dp=np.maximum(m * (dp.micro_wire_s - micro_exposed), 0)
        + np.maximum(dp.step_wire_s - step_exposed, 0),
    )
    return Step(**parts, straggler=busy * k.straggler * np.log2(nodes), data=0.0 * busy, **hidden)


def p_share(layer, gemm, attention, elementwise):
    """Share of a micro-batch's time that computes weight gradients and can be moved by zero-bubble
    schedules: one GEMM pass of three."""
    return layer.gemm / (gemm + attention + elementwise)


def rates(c: Cases, step_s):
    """(tokens/s per device, model FLOP/s per device, MFU): flops_per_token of the PaLM and Megatron
    count; MFU against the dense
    peak of the job's precision."""
    tokens_per_s = c.job.global_batch * c.job.seq_len / (step_s * devices(c.plan))
    f = flops_per_token(c.shape, c.job.seq_len)
    flops = tokens_per_s * (f.total + f.mtp)
    return tokens_per_s, flops, flops / c.chip.linear_flops


def part_names() -> tuple[str, ...]:
    """Names of the parts of a step, in the order they are drawn."""
    return tuple(f.name for f in fields(Step) if f.name in PARTS)


def hardware_share(c: Cases):
    """FLOPs the devices execute over model FLOPs: 1 + what is recomputed (HFU / MFU). Output head
    and MTP are not recomputed."""
    f = flops_per_token(c.shape, c.job.seq_len)
    scores = f.attention_scores
    linear = f.total - scores - f.lm_head
    share = c.plan.recompute_share / 3.0
    full, selective = (
        np.where(c.plan.recompute == FULL, share, 0.0),
        np.where(c.plan.recompute == SELECTIVE, share, 0.0),
    )
    again = linear * (full + selective * c.software.selective_gemm) + scores * (
        full + selective * c.software.selective_attention
    )
    return 1 + again / (f.total + f.mtp)
