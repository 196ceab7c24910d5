"""Step time: what one optimizer step spends where, for every plan at once.

step = micro-batches x slowest stage + bubble + exposed data-parallel traffic + optimizer + host,
stretched by stragglers. Narayanan et al. 2021 (arXiv 2104.04473), section 2 and 3, gives the frame;
the terms are those of compute.py and traffic.py. One function answers each question:
`layer_exchanges` and `layer_parts` a layer's forward and backward, `stage_times` the pace,
`bubble_s`, `gathers_exposed_s` and `reduction_exposed_s` what shows of data-parallel traffic,
`optimizer_s`, `streamed_s` and `step_host_s` the rest; `step_time` puts them together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base.columns import Column, some
from ..base.records import record
from ..blocks.answers import Time
from ..catalogue.models.shape import as_floats, flops_per_token, parameters
from ..catalogue.words import STEP_PARTS
from . import compute, ingest, sites, traffic
from .cases import FP32, HSDP, ULYSSES, ZERO3, Cases
from .layout import layers_per_stage, saved_for_weights
from .memory.parts import offloaded_bytes
from .pipeline import SCHEDULES, bubble_time
from .traffic import Exchange

MIRRORED = np.array([row.placement == "mirror" for row in SCHEDULES.values()])
TORCH_ADAM = 1.39 / 0.22  # of a vectorised Adam's time, on the host
ADAM_BYTES = 12.0  # moments and master weights of the optimizer whose traffic is the prior
COMPUTE = ("gemm", "attention", "elementwise")
AXES = ("tp", "cp", "ep", "dp", "pp")
PARTS = STEP_PARTS
# devices from which an ordinary site loses more, and the doublings over which that was seen
WIDE_DEVICES, WIDE_DOUBLINGS = 1024, 2
CAUSAL_FROM = 0.1  # share of the full count by which the causal one differs where it leads
# parameters of a layer: two norms, queries with keys and values, output, gate with up, down
TENSORS = 6


@record
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
    data: Column = 0.0
    axes: dict[str, Exchange]

    @property
    def total(self) -> Column:
        """Seconds of one step: the sum of the exposed parts."""
        compute = self.gemm + self.attention + self.elementwise + self.logits + self.recompute
        sent = compute + self.tp + self.cp + self.ep + self.dp + self.pp
        return sent + self.bubble + self.optimizer + self.host + self.straggler + self.data


class Stages(NamedTuple):
    """The stage that sets the pace of the pipeline."""

    slowest_s: Column  # one micro-batch on it
    mean_s: Column  # one micro-batch on the average stage
    layers: Column  # on the slowest one, MTP modules counted as layers
    heads: Column  # output heads on it


def device_params(c: Cases) -> tuple[Column, Column]:
    """(dense, expert) parameters that one device of the average stage holds before data-parallel
    sharding; embedding with it."""
    s, p, n = c.shape, c.plan, as_floats(parameters(c.shape))
    experts = n.routed_experts + s.mtp_experts
    ends = n.embedding + n.lm_head
    inner = n.total + n.mtp - experts - ends
    ends_on_device = np.where(p.pp > 1, np.maximum(n.embedding, n.lm_head), ends)
    return (inner / p.pp + ends_on_device) / p.tp, experts / (p.pp * p.ep * p.etp)


# With sequence parallelism the backward gathers the inputs of a layer's two column-parallel
# products again: two collectives beside the forward's four (Korthikanti et al. 2022, section 4.2.2)
GATHERED_AGAIN = 0.5


def exchange_passes(c: Cases) -> dict[str, tuple[Column, Column, Column]]:
    """Volume of a layer's exchanges over the forward's: (forward, recomputed forward, backward).

    tp: the same both ways, and with sequence parallelism GATHERED_AGAIN more. cp: keys and values
    again and their gradients, under Ulysses the same both ways; ep: the same both ways.
    """
    again = c.recomputed.layer
    return {
        "tp": (1, again, 1 + GATHERED_AGAIN * (c.plan.sp > 0)),
        "cp": (1, again, np.where(c.plan.cp_type == ULYSSES, 1, 2)),
        "ep": (1, c.recomputed.expert, 1),
    }


def tensor_exposed(c: Cases) -> Column:
    """What of a layer's exchanges over the tp group adds to the step, over the forward's.

    Megatron-Core reduces the gradient of an input beside the product that gives the weights', and
    gathers the input again beside the other: of that `tp_sequence` is left, twice that under
    `async_reduce` (Korthikanti et al. 2022, Table 4: forward 7.7 and backward 11.9 ms, with
    sequence parallelism 7.2 and 11.8).
    """
    gathered = c.constants.tp_sequence * (1 + (c.software.async_reduce > 0)) * (c.plan.sp > 0)
    whole, hidden = traffic.tp_shares(c)  # what the backward's products cover is one forward's
    return 1 + c.recomputed.layer + gathered + hidden / whole


def layer_exchanges(c: Cases, layer: Time) -> dict[str, Exchange]:
    """tp, cp and ep of one average layer and micro-batch: forward, backward and recompute
    together."""
    forward = {
        "tp": traffic.tensor_parallel(c),
        "cp": traffic.context_parallel(c, layer.attention),
        "ep": traffic.expert_parallel(c) if some(c.shape.moe_layers) else traffic.NOTHING,
    }
    passes = exchange_passes(c)
    again = c.recomputed.layer
    calls = {"tp": sum(passes["tp"]), "cp": 2 + again, "ep": 2 + c.recomputed.expert}
    exposed = {"tp": tensor_exposed(c)}
    return {
        axis: each.times(sum(passes[axis]), calls[axis], exposed.get(axis))
        for axis, each in forward.items()
    }


def layer_parts(c: Cases, layer: Time) -> dict[str, Column]:
    """Seconds that one average layer and micro-batch computes by part of the step: forward,
    backward (twice a forward's GEMMs and element-wise chains) and recompute."""
    again = c.recomputed
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


def dispatch_s(c: Cases) -> Column:
    """What the host takes to launch a layer and micro-batch, both ways, kernel by kernel; it runs
    ahead of the device, so that the slower of the two sets the pace. [s]

    `eager_layer_s` where element-wise chains are not fused; `eager_tp_s` where DTensor dispatches
    tensor parallelism; where a pipeline leaves the domain and its stack stalls there,
    `eager_stall_s` more for each rank of tp. None is published of stacks that capture graphs.
    """
    k, p, software = c.constants, c.plan, c.software
    plain = np.where(software.fused_norm > 0, 0.0, k.eager_layer_s)
    over_nodes = (p.pp > 1) & (p.tp > 1) & (c.devices > c.link.domain)
    stalls = k.eager_stall_s * p.tp * (software.eager_pipeline * over_nodes)
    dtensor = np.where((software.eager_tp > 0) & (p.tp > 1), k.eager_tp_s, 0.0)
    return np.maximum(plain + stalls, dtensor)


def dispatch_waits_s(c: Cases, layer_s: Column) -> Column:
    """What the device waits for its host in a layer and micro-batch. [s]"""
    return np.maximum(dispatch_s(c) - layer_s, 0.0)


def stage_times(c: Cases, layer_s: Column, logits_s: Column) -> Stages:
    """The slowest stage: the fullest one, or the last with output head and MTP modules.

    Under a mirrored schedule the outer devices hold the first and the last stage both, and run half
    of the micro-batches through each.
    """
    s, p = c.shape, c.plan
    first, middle, last = layers_per_stage(c)
    tail = logits_s + s.mtp_depth * layer_s
    mirrored = MIRRORED[p.schedule] & (p.pp > 1)
    share = np.where(mirrored, 0.5, 1.0)
    inner = np.where(mirrored, middle, np.maximum(first, middle))
    outer = np.where(mirrored, (first + last) / 2, last)
    inner_s = inner * layer_s
    outer_s = outer * layer_s + share * tail
    at_end = (outer_s >= inner_s) | (p.pp == 1)
    return Stages(
        slowest_s=np.maximum(inner_s, outer_s),
        mean_s=(s.layers * layer_s + tail) / p.pp,
        layers=np.where(at_end, outer + share * s.mtp_depth, inner),
        heads=share * at_end,
    )


def forward_s(layer_s: Column, recomputed_s: Column) -> Column:
    """Forward of a layer and micro-batch: a pass of three, of all but what is repeated. [s] More
    arithmetic or bandwidth shortens it and its backward alike."""
    return (layer_s - recomputed_s) / 3


def bubble_s(c: Cases, m: Column, forward: Column, backward: Column, weights: Column) -> Column:
    """Idle time of a device waiting for other stages, over m micro-batches whose passes on the
    average one are given. [s]

    A zero-bubble schedule can move the weight gradients, one GEMM pass of three.
    """
    p = c.plan
    return bubble_time(
        p.schedule, p.pp, p.vpp, m, forward, backward, weights, weight_saved=saved_for_weights(c)
    )


def gathers_exposed_s(c: Cases, wire_s: Column, work_s: Column) -> Column:
    """What sharded weights add to one micro-batch: all of the wire without overlap, else
    (work^q + wire^q)^(1/q) − work + contention · min(wire, work). [s]"""
    k = c.constants
    q = k.fsdp_power
    longer = (work_s**q + wire_s**q) ** (1 / q) - work_s
    return np.where(
        (c.software.dp_overlap > 0) & (wire_s > 0),
        longer + k.fsdp_contention * np.minimum(wire_s, work_s),
        wire_s,
    )


def cards_busy_s(c: Cases, exchanges: dict[str, Exchange]) -> Column:
    """What a layer's exposed exchanges hold of the cards that gathers of sharded weights take where
    both leave the domain: nothing is gathered beside them."""
    p = c.plan
    shard = np.where(p.sharding == HSDP, p.shard_group, p.dp * p.cp)
    groups = {"tp": c.tp_group, "cp": c.cp_group, "ep": c.ep_group}
    exposed_s = sum(exchanges[axis].exposed_s * group.across for axis, group in groups.items())
    return exposed_s * c.group(shard, p.tp).across


def copies_s(c: Cases, parameters: Column) -> Column:
    """Time of one micro-batch to copy gathered weights out of the collective's buffer, each time,
    and their gradients into the one that is scattered, for stacks that shard parameter by parameter
    (`gather_copies`). [s]"""
    sharded = (c.plan.sharding >= ZERO3) & ((c.software.reshard > 0) | (c.plan.pp == 1))
    moved = 6.0 + 4.0 * (c.software.reshard > 0) + c.job.grad_bytes
    return c.software.gather_copies * sharded * parameters * moved / compute.hbm_rate(c)


def reduction_exposed_s(
    c: Cases, dp: traffic.DataParallel, forward_s: Column, backward_s: Column, idle_s: Column
) -> Column:
    """What the traffic of the whole step adds: the rest that a window of one micro-batch's backward
    leaves of the gradients, a window of the next one's forward of the weights, and one broadcast a
    rank where sharded states come back so. [s]

    XLA's reductions between TPU slices wait for the backward: the step grows with the slices
    (MaxText).
    """
    p, k, software = c.plan, c.constants, c.software
    overlaps = (software.dp_overlap > 0) & ((c.chip.is_tpu == 0) | (p.sharding != HSDP))
    # beside one pass of a micro-batch, and under interleaving those that follow a chunk's last one:
    # Megatron-LM's interleaved schedule reduces a chunk once its last micro-batch has passed
    window = k.dp_window * ((1 + p.pp * (p.vpp - 1)) / p.vpp) * overlaps
    left = traffic.exposed(dp.reduce_wire_s, window * backward_s)
    left = left + traffic.exposed(dp.gather_wire_s, window * forward_s)
    ranks, most = c.site_ranks, software.optimizer_group
    group = np.where(most > 0, np.minimum(most, ranks), ranks)
    broadcast = k.broadcast_s * group * ((software.broadcast_gather > 0) & (p.sharding > 0))
    return left + broadcast + tensors_gathered_s(c, idle_s)


def tensors_gathered_s(c: Cases, idle_s: Column) -> Column:
    """What sharded states that come back tensor by tensor add to a step, less what runs while the
    device waits for its host, `idle_s`: `gather_tensor_s` for each of a stage's tensors, and
    `gather_slice_s` for each rank's slice of it. [s]"""
    software, p = c.software, c.plan
    if not some(software.tensor_gather):
        return 0.0
    across = c.group(c.site_ranks, p.tp).across
    tensors = TENSORS * c.shape.layers / p.pp
    k = c.constants
    each = k.gather_tensor_s + k.gather_slice_s * c.site_ranks
    took = each * tensors * (across & (p.sharding > 0))
    return software.tensor_gather * np.maximum(took - idle_s, 0.0)


def shards_of(c: Cases) -> tuple[Column, Column]:
    """Ranks among which a device's dense and expert parameters are divided for the update."""
    p, sharded = c.plan, c.plan.sharding > 0
    dense = np.where(sharded, c.shard_ranks, 1.0)
    return dense, np.where(sharded, np.maximum(dense * p.tp / (p.ep * p.etp), 1.0), 1.0)


def optimizer_rate(c: Cases) -> Column:
    """Bytes/s of the memory that holds the optimizer's states: the device's, or the host's."""
    return np.where(c.plan.offload > 0, c.host_rate, compute.hbm_rate(c))


def torch_on_host(c: Cases) -> Column:
    """Time of an update on the host over that of a vectorised Adam: PyTorch's own goes over the
    states once for each of its operations, 1.39 against 0.22 s a billion parameters (Ren et al.
    2021, ZeRO-Offload, table 4). 1 elsewhere."""
    own = (c.plan.offload > 0) & (c.constants.memory.fp32_shards > 0)
    return np.where(own, TORCH_ADAM, 1.0)


def optimizer_s(c: Cases, dense: Column, experts: Column) -> Column:
    """Update of the parameters that this rank owns: bytes touched over the memory's rate, states
    read and written once, more or less than Adam's, and Newton-Schulz iterations, each 4 n + 2 n^2
    / m FLOP a parameter of an n x m matrix (Liu et al. 2025, arXiv 2502.16982). [s]"""
    (over, experts_over), job, n = shards_of(c), c.job, c.shape.hidden
    updated = dense / over + experts / experts_over
    states = 2 * (job.optimizer_bytes + job.master_bytes - ADAM_BYTES)
    touched = (c.constants.optimizer_bytes + states) * torch_on_host(c)
    took = touched * updated / optimizer_rate(c)
    return took + job.newton_schulz * 6 * n * updated / (c.chip.bf16_flops * c.constants.gemm)


def streamed_s(c: Cases, dense: Column, experts: Column, slowest_s: Column) -> Column:
    """What offloaded parameters add to one micro-batch: weights from the host, forward and
    backward, gradients back to it, less what compute hides. [s]

    Shards of PyTorch's FSDP are fp32 on the host and are cast on the device; their gradients are
    added to those of earlier micro-batches there: twice read and once written (CPUOffloadPolicy,
    torch.distributed.fsdp).
    """
    p = c.plan
    if not some(p.offload > 1):
        return 0.0
    shards = c.constants.memory.fp32_shards > 0
    width = np.where((c.job.precision == FP32) | shards, 4.0, 2.0)
    added = np.where(shards & (c.micro_batches > 1), 3.0, 0.0)
    over, experts_over = (np.where(p.sharding >= ZERO3, n, 1.0) for n in shards_of(c))
    wire = (3 + added) * width * (dense / over + experts / experts_over) / c.host_rate
    return np.maximum(wire - slowest_s, 0.0) * (p.offload > 1)


def activations_waited_s(c: Cases, layers: Column, forward_s: Column, backward_s: Column) -> Column:
    """What activations that wait in host memory add to one micro-batch of `layers` layers: their
    way out less the forward that covers it, and back less the backward. [s] The host's link has its
    rate both ways; its memory takes what is DMA'd."""
    bytes_sent = offloaded_bytes(c)
    if not some(bytes_sent):
        return 0.0
    wire = layers * bytes_sent / c.chip.host_bytes_per_s
    return np.maximum(wire - forward_s, 0.0) + np.maximum(wire - backward_s, 0.0)


def step_host_s(c: Cases) -> Column:
    """Host time once a step: least + (1 − least) · min(layers on a stage / enough layers, 1) of
    `step_host_s`. [s]"""
    k, least = c.constants, c.constants.step_host_least
    captured = np.where(c.software.graphs >= 2, k.step_host_graphs, 1.0)
    return (
        k.step_host_s
        * (least + (1 - least) * np.minimum(c.shape.layers / c.plan.pp / k.step_host_layers, 1.0))
        * captured
    )


def overall(c: Cases) -> Column:
    """Factor on every part of the step: what the terms leave, and DeepSpeed's pipeline engine."""
    return c.constants.overall * np.where(c.software.step_engine > 0, c.constants.engine, 1.0)


def straggler_share(c: Cases) -> Column:
    """Share of the step lost to the slowest node: `straggler` a doubling of nodes, a law with a
    fitted constant, and where nobody has tuned the run to its machine `straggler_wide` more for
    each of the first two doublings beyond a thousand devices. What the spread of equal devices
    alone would cost: `stragglers.slowest_of`."""
    k = c.constants
    doublings = np.log2(np.maximum(c.devices / WIDE_DEVICES, 1.0))
    untuned = np.where(c.software.tuned > 0, 0.0, k.straggler_wide)
    wide: Column = untuned * np.minimum(doublings, WIDE_DOUBLINGS)
    return wide + k.straggler * np.log2(np.maximum(c.devices / k.straggler_devices, 1.0))


class Pace(NamedTuple):
    """What one micro-batch is made of, before the factor on every part."""

    m: Column  # micro-batches of a step
    layer: Time  # of an average layer
    one: dict[str, Column]  # what a layer computes by part, waits for the host with it [s]
    exchanges: dict[str, Exchange]  # tp, cp and ep of a layer
    send: Exchange  # from stage to stage
    logits_s: Column
    waits_s: Column  # what the device waits for its host in a layer
    stages: Stages
    parameters: tuple[Column, Column]  # dense and expert ones of a device
    ahead_s: Column  # forward of a layer
    mean: Column  # layers on the average stage, MTP modules counted

    @property
    def rounds(self) -> Column:
        """Layers of the slowest stage that a step runs through."""
        return self.m * self.stages.layers

    @property
    def forward_s(self) -> Column:
        """Forward of a micro-batch on the slowest stage."""
        return self.stages.layers * self.ahead_s + self.stages.heads * self.logits_s / 3


def pace(c: Cases) -> Pace:
    """What the micro-batches of every case are made of."""
    on = compute.device(c)
    layer = compute.layer_time(c, on)
    logits = compute.logits_s(c, on)
    exchanges = layer_exchanges(c, layer)
    send = traffic.pipeline_send(c)
    one = layer_parts(c, layer)
    layer_s = sum(one.values()) + sum(each.exposed_s for each in exchanges.values())
    waits = dispatch_waits_s(c, layer_s)
    layer_s, one["host"] = layer_s + waits, one["host"] + waits
    return Pace(
        m=c.micro_batches,
        layer=layer,
        one=one,
        exchanges=exchanges,
        send=send,
        logits_s=logits,
        waits_s=waits,
        stages=stage_times(c, layer_s, logits),
        parameters=device_params(c),
        ahead_s=forward_s(layer_s, one["recompute"]),
        mean=(c.shape.layers + c.shape.mtp_layers) / c.plan.pp,
    )


def micro_gathers_s(c: Cases, pace: Pace, dp: traffic.DataParallel) -> Column:
    """What the gathers of sharded weights add to each micro-batch, which works forward, backward
    and transfers on the slowest stage, less what the cards that the gathers take are busy. [s]"""
    work_s = pace.stages.slowest_s + pace.send.exposed_s
    cards_s = pace.stages.layers * cards_busy_s(c, pace.exchanges)
    return gathers_exposed_s(c, dp.micro_wire_s, work_s - cards_s)


def data_parallel_exchange(c: Cases, pace: Pace) -> Exchange:
    """Gathers of each micro-batch and the reduction of the step, for the parameters of a device."""
    dp = traffic.data_parallel(c, *pace.parameters)
    gathers = micro_gathers_s(c, pace, dp)
    forward = pace.forward_s
    idle_s = pace.rounds * pace.waits_s
    backward = pace.stages.slowest_s - forward
    reduction = reduction_exposed_s(c, dp, forward, backward, idle_s)
    return Exchange(
        wire_s=pace.m * dp.micro_wire_s + dp.reduce_wire_s + dp.gather_wire_s,
        exposed_s=pace.m * gathers + reduction,
        bytes=dp.bytes,
        calls=dp.calls,
    )


def step_time(c: Cases) -> Step:
    """The step of every case. [s] Each part is exposed time; what compute covers stands in
    `axes`."""
    of = pace(c)
    m, stages, stretch, rounds = of.m, of.stages, overall(c), of.rounds
    tail = of.logits_s / 3 / c.plan.pp
    forward = of.mean * of.ahead_s + tail
    axes = {axis: each.times(rounds, rounds) for axis, each in of.exchanges.items()} | {
        "dp": data_parallel_exchange(c, of),
        "pp": of.send.times(m, m),
    }
    axes = {axis: each.stretched(stretch) for axis, each in axes.items()}
    parts = {name: rounds * stretch * seconds for name, seconds in of.one.items()}
    backward = stages.mean_s - of.mean * of.ahead_s - tail
    parts |= {axis: each.exposed_s for axis, each in axes.items()} | {
        "logits": stretch * m * stages.heads * of.logits_s,
        "bubble": stretch * bubble_s(c, m, forward, backward, of.mean * of.layer.gemm + tail),
        "optimizer": stretch * optimizer_s(c, *of.parameters),
    }
    parts["elementwise"] += stretch * m * copies_s(c, sum(of.parameters))
    parts["host"] += stretch * step_host_s(c) + m * streamed_s(c, *of.parameters, stages.slowest_s)
    pass_s = of.forward_s
    away = activations_waited_s(c, stages.layers, pass_s, stages.slowest_s - pass_s)
    parts["host"] += m * away
    waited = sites.waited_s(c, sum(parts.values()))
    dp = axes["dp"]
    parts["dp"] = parts["dp"] + waited
    axes["dp"] = replace(dp, wire_s=dp.wire_s + waited, exposed_s=parts["dp"])
    parts["straggler"] = sum(parts.values()) * straggler_share(c)
    return Step(**parts, data=ingest.stall_s(c, sum(parts.values())), axes=axes)


class Rates(NamedTuple):
    """What a device gets through."""

    tokens_per_s: Column
    flops_per_s: Column  # of the model
    mfu: Column


def rates(c: Cases, step_s: Column) -> Rates:
    """What a device gets through in steps of so many seconds: flops_per_token of the PaLM and
    Megatron count; MFU against the dense peak of the job's precision."""
    tokens_per_s = c.job.global_batch * c.job.seq_len / (step_s * c.devices)
    f = flops_per_token(c.shape, c.attended)
    flops = tokens_per_s * (f.total + f.mtp)
    return Rates(tokens_per_s, flops, flops / c.chip.linear_flops)


def causal_share(c: Cases) -> Column:
    """Share of the FLOPs of the full count that a causal mask leaves, that is causal MFU / MFU:
    of the scores and values of attention those of the keys that a query sees.

    DeepSeek-V3 (arXiv 2412.19437) and Megatron-Bridge print MFU so; the PaLM count
    (arXiv 2204.02311, appendix B) has attention in full.
    """
    f = flops_per_token(c.shape, c.attended)
    masked = f.attention_scores * (1 - compute.keys_seen(c) / c.attended)
    return 1 - masked / (f.total + f.mtp)


def mfu_basis(c: Cases) -> str:
    """How the MFU that leads counts attention, in cases of one model and length: "causal" where the
    mask leaves nine tenths of the FLOPs or less, "full" elsewhere.

    Under long or windowed contexts the full count holds work that nobody does and may pass 1.
    """
    return "causal" if np.all(causal_share(c) <= 1 - CAUSAL_FROM) else "full"


def counted_share(c: Cases, basis: str) -> Column:
    """Share of the FLOPs of the full count that an MFU of this basis ("full", "causal") counts."""
    return causal_share(c) if basis == "causal" else 1.0


def hardware_share(c: Cases) -> Column:
    """FLOPs the devices execute over model FLOPs, that is HFU / MFU: 1 + what is recomputed.

    Matrix products in full, non-causal attention, as in `flops_per_token`; output head and MTP are
    not recomputed. Korthikanti et al. 2022 (arXiv 2205.05198), section 6.3, for the two rates.
    """
    f = flops_per_token(c.shape, c.attended)
    linear = f.total - f.attention_scores - f.lm_head
    again = c.recomputed
    repeated = linear * again.gemm + f.attention_scores * again.attention
    return 1 + repeated / 3 / (f.total + f.mtp)
