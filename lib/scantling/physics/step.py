"""Step time: what one optimizer step spends where, for every plan at once.

step = micro-batches x slowest stage + bubble + exposed data-parallel traffic + optimizer + host,
stretched by stragglers. Narayanan et al. 2021 (arXiv 2104.04473), section 2 and 3, gives the frame;
the terms are those of compute.py and traffic.py. One function answers each question:
`layer_exchanges` and `layer_parts` a layer's forward and backward, `stage_times` the pace,
`bubble_s`, `gathers_exposed_s` and `reduction_exposed_s` what shows of data-parallel traffic,
`optimizer_s`, `streamed_s` and `step_host_s` the rest; `step_time` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..blocks.table import mean_heads
from ..catalogue.models.shape import flops_per_token, parameters
from ..catalogue.words import SHARDINGS
from . import compute, traffic
from .cases import PRECISIONS, Cases, Column, devices, host_rate, micro_batches, recomputed
from .pipeline import SCHEDULES, bubble_time, stage_layers, weight_kept
from .traffic import Exchange

ZERO3, HSDP, FP32 = SHARDINGS.index("zero3"), SHARDINGS.index("hsdp"), PRECISIONS.index("fp32")
MIRRORED = np.array([row.placement == "mirror" for row in SCHEDULES.values()])
COMPUTE = ("gemm", "attention", "elementwise")
AXES = ("tp", "cp", "ep", "dp", "pp")
PARTS = (*COMPUTE, "logits", "recompute", *AXES, "bubble", "optimizer", "host", "straggler", "data")


@dataclass(
    frozen=True,
    kw_only=True,
)
class AxisTraffic:
    """What one axis of the plan exchanges in a step, as it was timed. Columns or scalars."""

    exposed_s: Column  # adds to the step
    hidden_s: Column  # runs beside compute
    bytes: Column  # sent by one device
    calls: Column

    def stretched(self, factor) -> AxisTraffic:
        """The same traffic in so many times the time."""
        return replace(
            self,
            exposed_s=factor * self.exposed_s,
            hidden_s=factor * self.hidden_s,
        )


@dataclass(
    frozen=True,
    kw_only=True,
)
class Step:
    """Exposed seconds of one step by part (they sum to `total`), and the traffic of each axis.
    Columns or scalars."""

    gemm: Column
    attention: Column
    elementwise: Column
    logits: Column
    recompute: Column
    tp: Column
    cp: Column
    ep: Column
    dp: Column
    pp: Column
    bubble: Column
    optimizer: Column
    host: Column
    straggler: Column
    data: Column = 0.0  # input pipelines are taken to keep up
    axes: dict[str, AxisTraffic]

    @property
    def total(self):
        """Seconds of one step: the sum of the exposed parts."""
        return sum(getattr(self, part) for part in PARTS)


class Stages(NamedTuple):
    """The stage that sets the pace of the pipeline."""

    slowest_s: Column  # one micro-batch on it
    mean_s: Column  # one micro-batch on the average stage
    layers: Column  # on the slowest one, MTP modules counted as layers
    heads: Column  # output heads on it


def layers_per_stage(c: Cases):
    """(first, fullest middle, last) layers of the stages.

    Even where layers divide; one fewer at both ends where layers + 2 divide (embedding and loss
    stand for a layer each: Llama 3, BLOOM); three fewer at the end under a balanced MTP layout;
    otherwise as even as whole layers allow.
    """
    layers, pp = c.shape.layers, c.plan.pp
    balanced = (c.software.balanced_layout > 0) & (pp > 1)
    even, ends_less = layers / pp, (layers + 2) / pp
    both = (even != np.floor(even)) & (ends_less == np.floor(ends_less))
    fewer = np.where(balanced, np.minimum(3, np.ceil(even) - 1), both)
    return stage_layers(
        layers,
        pp,
        both & ~balanced,
        fewer,
    )


def device_params(c: Cases):
    """(dense, expert) parameters that one device of the average stage holds before data-parallel
    sharding; embedding with it."""
    s, p = c.shape, c.plan
    n = parameters(s)
    experts = n.routed_experts + s.mtp_layers * n.experts_per_moe_layer
    inner = n.total + n.mtp - experts - n.embedding - n.lm_head
    ends = np.where(p.pp > 1, np.maximum(n.embedding, n.lm_head), n.embedding + n.lm_head)
    return (inner / p.pp + ends) / p.tp, experts / (p.pp * p.ep * p.etp)


def exchange_passes(c: Cases) -> dict[str, tuple]:
    """Volume of a layer's exchanges over the forward's: (forward, recomputed forward, backward).

    tp: the same both ways, and `tp_sequence` more with sequence parallelism; cp: keys and values
    again and their gradients; ep: the same both ways.
    """
    again = recomputed(c).layer
    tp = 1 + c.constants.tp_sequence * (c.plan.sp > 0)
    return {
        "tp": (1, again, tp),
        "cp": (1, again, 2),
        "ep": (1, again, 1),
    }


def layer_exchanges(c: Cases, layer: compute.LayerTime) -> dict[str, Exchange]:
    """tp, cp and ep of one average layer and micro-batch: forward, backward and recompute
    together."""
    forward = {
        "tp": traffic.tensor_parallel(c),
        "cp": traffic.context_parallel(c, layer.attention),
        "ep": traffic.expert_parallel(c) if np.any(c.shape.moe_layers) else traffic.NOTHING,
    }
    calls = 2 + recomputed(c).layer
    passes = exchange_passes(c)
    return {axis: each.times(sum(passes[axis]), calls) for axis, each in forward.items()}


def layer_parts(c: Cases, layer: compute.LayerTime) -> dict:
    """Seconds that one average layer and micro-batch computes by part of the step: forward,
    backward (twice a forward's GEMMs and element-wise chains) and recompute."""
    again = recomputed(c)
    return {
        "gemm": 3 * layer.gemm + layer.accumulate,
        "attention": layer.attention + layer.attention_backward,
        "elementwise": 3 * layer.elementwise + layer.cast,
        "recompute": layer.gemm * again.gemm
        - layer.tail * c.software.lazy_recompute * again.layer
        + layer.attention * again.attention
        + layer.elementwise * again.elementwise
        + layer.host * again.layer,
        "host": c.constants.host_passes * layer.host,
    }


def stage_times(
    c: Cases,
    layer_s,
    logits_s,
) -> Stages:
    """The slowest stage: the fullest one, or the last with output head and MTP modules.

    Under a mirrored schedule the outer devices hold the first and the last stage both, and run half
    of the micro-batches through each.
    """
    s, p = c.shape, c.plan
    first, middle, last = layers_per_stage(c)
    tail = logits_s + s.mtp_layers * layer_s
    mirrored = MIRRORED[p.schedule] & (p.pp > 1)
    share = np.where(mirrored, 0.5, 1.0)
    inner = np.where(mirrored, middle, np.maximum(first, middle))
    outer = np.where(mirrored, (first + last) / 2, last)
    inner_s, outer_s = inner * layer_s, outer * layer_s + share * tail
    at_end = (outer_s >= inner_s) | (p.pp == 1)
    return Stages(
        slowest_s=np.maximum(inner_s, outer_s),
        mean_s=(s.layers * layer_s + tail) / p.pp,
        layers=np.where(at_end, outer + share * s.mtp_layers, inner),
        heads=np.where(at_end, share, 0.0),
    )


def bubble_s(
    c: Cases,
    m,
    stage_s,
    forward_share,
    weight_share,
):
    """Idle time of a device waiting for other stages, over m micro-batches of `stage_s` on the
    average one. [s]

    A zero-bubble schedule can move the weight gradients, one GEMM pass of three.
    """
    s, p = c.shape, c.plan
    return bubble_time(
        p.schedule,
        p.pp,
        p.vpp,
        m,
        stage_s * forward_share,
        stage_s * (1 - forward_share),
        stage_s * weight_share,
        weight_kept=weight_kept(
            s.hidden,
            mean_heads(s),
            c.job.seq_len,
            c.software.flash > 0,
        ),
    )


def gathers_exposed_s(
    c: Cases,
    wire_s,
    work_s,
):
    """What sharded weights add to one micro-batch: all of the wire without overlap, else
    (work^q + wire^q)^(1/q) − work + contention · min(wire, work). [s]"""
    k = c.constants
    q = k.fsdp_power
    longer = (work_s**q + wire_s**q) ** (1 / q) - work_s
    contended = longer + k.fsdp_contention * np.minimum(wire_s, work_s)
    beside = np.where(c.software.dp_overlap > 0, contended, wire_s)
    return np.where(wire_s > 0, beside, 0.0)


def reduction_exposed_s(
    c: Cases,
    wire_s,
    backward_s,
):
    """What the traffic of the whole step adds: the rest that a window of one micro-batch's backward
    leaves, and one broadcast a rank where sharded states come back so. [s]

    XLA's reductions between TPU slices wait for the backward: the step grows with the slices
    (MaxText).
    """
    p, k, software = c.plan, c.constants, c.software
    beside = (software.dp_overlap > 0) & ~((c.chip.is_tpu > 0) & (p.sharding == HSDP))
    window = np.where(beside, k.dp_window * backward_s, 0.0)
    left = traffic.exposed(wire_s, window)
    if not np.any(software.broadcast_gather):
        return left
    ranks = p.dp * p.cp
    group = np.where(
        software.optimizer_group > 0, np.minimum(software.optimizer_group, ranks), ranks
    )
    sent = (software.broadcast_gather > 0) & (p.sharding > 0)
    return left + np.where(sent, k.broadcast_s * group, 0.0)


def shards_of(c: Cases):
    """Ranks among which a device's dense and expert parameters are divided for the update."""
    p = c.plan
    whole = np.where(p.sharding == HSDP, p.shard_group, p.dp * p.cp)
    dense = np.where(p.sharding > 0, whole, 1.0)
    experts = np.where(p.sharding > 0, np.maximum(dense * p.tp / (p.ep * p.etp), 1.0), 1.0)
    return dense, experts


def optimizer_rate(c: Cases):
    """Bytes/s of the memory that holds the optimizer's states: the device's, or the host's."""
    hbm = c.chip.hbm_bytes_per_s * c.constants.hbm_share
    return np.where(c.plan.offload > 0, host_rate(c), hbm)


def optimizer_s(
    c: Cases,
    dense,
    experts,
):
    """Update of the parameters that this rank owns: bytes touched over the memory's rate. [s]"""
    over, experts_over = shards_of(c)
    updated = dense / over + experts / experts_over
    return c.constants.optimizer_bytes * updated / optimizer_rate(c)


def streamed_s(
    c: Cases,
    dense,
    experts,
    slowest_s,
):
    """What offloaded parameters add to one micro-batch: weights from the host, forward and
    backward, gradients back to it, less what compute hides. [s]"""
    p = c.plan
    if not np.any(p.offload > 1):
        return 0.0
    width = np.where(c.job.precision == FP32, 4.0, 2.0)
    over, experts_over = (np.where(p.sharding >= ZERO3, n, 1.0) for n in shards_of(c))
    wire = 3 * width * (dense / over + experts / experts_over) / host_rate(c)
    return np.where(p.offload > 1, np.maximum(wire - slowest_s, 0.0), 0.0)


def step_host_s(c: Cases):
    """Host time once a step: least + (1 − least) · min(layers on a stage / enough layers, 1) of
    `step_host_s`. [s]"""
    k, least = c.constants, c.constants.step_host_least
    full = np.minimum(c.shape.layers / c.plan.pp / k.step_host_layers, 1.0)
    captured = np.where(c.software.graphs >= 2, k.step_host_graphs, 1.0)
    return k.step_host_s * (least + (1 - least) * full) * captured


def overall(c: Cases):
    """Factor on every part of the step: what the terms leave, and DeepSpeed's pipeline engine."""
    k = c.constants
    return k.overall * np.where(c.software.step_engine > 0, k.engine, 1.0)


def straggler_share(c: Cases):
    """Share of the step lost to the slowest node, per doubling of nodes."""
    k = c.constants
    return k.straggler * np.log2(np.maximum(devices(c.plan) / k.straggler_devices, 1.0))


def step_traffic(exchange: Exchange, rounds) -> AxisTraffic:
    """An exchange that a device runs so many times in a step."""
    return AxisTraffic(
        exposed_s=rounds * exchange.exposed_s,
        hidden_s=rounds * exchange.hidden_s,
        bytes=rounds * exchange.bytes,
        calls=rounds * exchange.calls,
    )


def data_parallel_traffic(
    c: Cases,
    m,
    held,
    work_s,
    backward_s,
) -> AxisTraffic:
    """Gathers of each of m micro-batches and the reduction of the step, for the (dense, expert)
    parameters held; a micro-batch works `work_s` on the slowest stage, `backward_s` of it after the
    forward."""
    dp = traffic.data_parallel(c, *held)
    gathers = gathers_exposed_s(c, dp.micro_wire_s, work_s)
    reduction = reduction_exposed_s(c, dp.step_wire_s, backward_s)
    return AxisTraffic(
        exposed_s=m * gathers + reduction,
        hidden_s=np.maximum(m * (dp.micro_wire_s - gathers), 0)
        + np.maximum(dp.step_wire_s - reduction, 0),
        bytes=dp.bytes,
        calls=dp.calls,
    )


def step_time(c: Cases) -> Step:
    """The step of every case. [s] Each part is exposed time; what compute covers stands in
    `axes`."""
    m, on = micro_batches(c.job, c.plan), compute.device(c)
    layer, logits = compute.layer_time(c, on), compute.logits_s(c, on)
    exchanges, send = layer_exchanges(c, layer), traffic.pipeline_send(c)
    one = layer_parts(c, layer)
    layer_s = sum(one.values()) + sum(each.exposed_s for each in exchanges.values())
    stages, held = stage_times(c, layer_s, logits), device_params(c)
    kernels = sum(one[name] for name in COMPUTE)
    forward = (layer.gemm + layer.attention + layer.elementwise) / kernels
    work = stages.slowest_s + send.exposed_s
    rounds = m * stages.layers
    axes = {axis: step_traffic(each, rounds) for axis, each in exchanges.items()} | {
        "dp": data_parallel_traffic(
            c,
            m,
            held,
            work,
            stages.slowest_s * (1 - forward),
        ),
        "pp": step_traffic(send, m),
    }
    stretch = overall(c)
    axes = {axis: each.stretched(stretch) for axis, each in axes.items()}
    spent = rounds * stretch
    parts = {name: spent * seconds for name, seconds in one.items()}
    parts |= {axis: each.exposed_s for axis, each in axes.items()} | {
        "logits": stretch * m * stages.heads * logits,
        "bubble": stretch
        * bubble_s(
            c,
            m,
            stages.mean_s,
            forward,
            layer.gemm / kernels,
        ),
        "optimizer": stretch * optimizer_s(c, *held),
        "host": parts["host"]
        + stretch * step_host_s(c)
        + m * streamed_s(c, *held, stages.slowest_s),
    }
    return Step(
        **parts,
        straggler=sum(parts.values()) * straggler_share(c),
        axes=axes,
    )


def rates(c: Cases, step_s):
    """(tokens/s per device, model FLOP/s per device, MFU): flops_per_token of the PaLM and Megatron
    count; MFU against the dense peak of the job's precision."""
    tokens_per_s = c.job.global_batch * c.job.seq_len / (step_s * devices(c.plan))
    f = flops_per_token(c.shape, c.job.seq_len)
    flops = tokens_per_s * (f.total + f.mtp)
    return tokens_per_s, flops, flops / c.chip.linear_flops


def hardware_share(c: Cases):
    """FLOPs the devices execute over model FLOPs, that is HFU / MFU: 1 + what is recomputed.

    Matrix products in full, non-causal attention, as in `flops_per_token`; output head and MTP are
    not recomputed. Korthikanti et al. 2022 (arXiv 2205.05198), section 6.3, for the two rates.
    """
    f = flops_per_token(c.shape, c.job.seq_len)
    linear = f.total - f.attention_scores - f.lm_head
    again = recomputed(c)
    repeated = linear * again.gemm + f.attention_scores * again.attention
    return 1 + repeated / 3 / (f.total + f.mtp)
