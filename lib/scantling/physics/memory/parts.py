"""The pieces of the memory model: what a layer saves, what a parameter costs, and what one pipeline
device holds of both.

Every function takes cases and returns numbers or columns. Factors of the shape and the stack come
before the columns of the plan, so that a search over one model works on the plan's columns alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from ...base.columns import Array, Column, some
from ...base.records import record
from ...blocks.answers import Saved, fold, weighted
from ...blocks.attention import Softmax
from ...blocks.block import Block
from ...blocks.block_table import Shape, plain_share
from ...blocks.head import Head
from ...blocks.mixer import Mixer
from ...blocks.mlp import Mlp
from ...blocks.moe import Moe
from ...blocks.saved_tensors import Keeping
from ...catalogue.models.shape import as_floats, parameters
from ...catalogue.words import PRECISIONS, OffloadModule
from ..cases import BF16, FP32, HOST_ALL, HOST_STATES, HSDP, ZERO1, ZERO2, ZERO3, Cases, Job
from ..layout import saved_for_weights, sorts_of
from ..pipeline import SCHEDULES, in_flight, weight_copies
from .constants import MemoryConstants
from .dispatch import dispatcher_bytes, exchange_rows_bytes

VEE = np.array([row.placement == "vee" for row in SCHEDULES.values()], dtype=float)
MIRROR = np.array([row.placement == "mirror" for row in SCHEDULES.values()], dtype=float)
_SCALED = {"mxfp8": 33 / 32, "mxfp4": 17 / 32, "nvfp4": 9 / 16}
LOW_BYTES = np.array([_SCALED.get(name, 1.0 * name.startswith("fp8")) for name in PRECISIONS])
SPLIT = np.array([row.split_backward for row in SCHEDULES.values()])

# One large block, freed at once: the C library then keeps what temporaries free, and column
# arithmetic runs at twice the speed
np.empty(3_900_000)


@record
class LayerSort:
    """Layers with the same blocks, or where layers have no order those that share a kind of
    feed-forward, the mixers in the model's own proportion; bytes of one layer and micro-batch on
    one device."""

    feed: Block
    saved: Column  # under the plan's recompute, on the device
    away: Column  # that wait in host memory
    whole: Column  # saved, nothing repeated
    dropped: Column  # what a layer that repeats its forward holds for that time
    rows: Column  # token copies that the experts of the device receive [count]
    trunk: Column  # parameters but the routed experts
    experts: Column  # routed experts' parameters on one expert-parallel rank
    last: Column  # 1 where an MTP module's layer is of this sort


@record
class ParameterBytes:
    """Bytes of one parameter on a device."""

    weight: Column
    cache: Column  # of weight, its low-precision copies
    gradient: Column
    states: Column
    host: Column
    gathered: Column  # while in use
    gathered_ends: Column  # outside the layers, where there are no low-precision copies
    step: Column  # fp32 gradients while the optimizer steps
    stays: Column  # weight, gradient and states together


@record
class Frame:
    """What all devices of a case share."""

    constants: MemoryConstants
    sorts: tuple[LayerSort, ...]
    micro_batches: Column
    bytes: ParameterBytes
    expert_bytes: ParameterBytes
    embedding: Column  # parameters
    head: Column  # parameters of the output head, tied or not
    mtp: Column  # parameters of the MTP modules but their routed experts
    logits: Column
    transient: Column  # the layer at work
    most: Column  # the same with nothing repeated
    step_most: Column  # fp32 gradients that the optimizer steps over at once
    buffers: Column
    per_tp: Column
    repeats: bool  # whether any plan recomputes
    split_saved: Column  # what weight gradients that wait keep of a layer's activations


@record
class Place:
    """What stands on one pipeline device; embeds and heads (with the MTP modules) are copies over
    the schedule's copies of a weight, tail is 1 where the loss is."""

    in_flight: Column  # micro-batches
    counts: tuple[Column, ...]  # layers of each sort
    embeds: Column
    heads: Column
    tail: Column


@record
class DeviceContents:
    """What one pipeline device holds."""

    trunk: Column  # parameters
    experts: Column  # parameters
    ends: Column  # of trunk, outside the layers
    activations: Column  # logits included
    logits: Column
    gathered: Column  # bytes for a moment
    away: Column  # activations in host memory


def constants_of(c: Cases) -> MemoryConstants:
    """The memory constants gathered beside the case, the generic ones where none were; weights that
    are not given back after the forward are gathered in every layer."""
    k = c.constants.memory
    stays_whole = c.software.reshard <= 0
    if not some(stays_whole):
        return k
    return replace(k, layers_gathered=np.where(stays_whole, c.shape.layers, k.layers_gathered))


def low_bytes(job: Job) -> Column:
    """Bytes of a value of the linear layers in 8 or 4 bits, block scales included (mxfp8 and
    mxfp4: 1 per 32 values, nvfp4: 1 per 16); 0 in 16 bit and fp32."""
    return LOW_BYTES[job.precision]


def input_bytes(job: Job) -> Column:
    """Bytes of an input of the linear layers as it is saved, the mean of layers in low precision
    and of those that stay in 16 bit."""
    low = low_bytes(job)
    return np.where(low > 0, low + (2.0 - low) * job.kept_16bit, 2.0)


def keeping(c: Cases) -> Keeping:
    """How one device keeps the tensors of a micro-batch.

    `selective` drops what the stack repeats: shares of the GEMM outputs, of the materialised scores
    and of the element-wise outputs. A repeated SwiGLU keeps its inputs in 8 bits (DeepSeek-V3,
    section 3.3.3); what lists its products keeps no output of a core that it repeats.
    """
    k, software = constants_of(c), c.software
    low = low_bytes(c.job)
    eager = np.maximum(1.0 - software.fused_norm, k.eager * (1.0 - software.chunked_loss))
    linear = input_bytes(c.job)
    act = np.maximum(software.selective_act, k.per_op)
    # an eager norm keeps its input in fp32 and the normalised value in 16 bit (transformers,
    # LlamaRMSNorm): 6 bytes
    return Keeping(
        seq_len=c.job.seq_len,
        wide=1.0 + (c.job.precision == FP32),
        linear_bytes=linear,
        low=low * (1.0 - c.job.kept_16bit),
        eager=eager,
        norm_bytes=linear + eager * (1.0 - software.norm_kernel) * 6.0 + k.dropout,
        dropout=k.dropout,
        flash=software.flash,
        gemm=1.0 - software.selective_gemm,
        scores=1.0 - software.selective_attention,
        up=1.0 - software.selective_up,
        norm=1.0 - np.maximum(software.selective_norm, k.per_op),
        act=1.0 - act,
        moe=1.0 - software.selective_moe,
        core=1.0 - k.per_op * software.selective_attention,
        narrow=1.0 - 0.5 * (low > 0) * act * (1.0 - k.per_op),
        imbalance=k.imbalance,
        expert_bytes=2.0 * (1.0 - k.weighted_inside) + 2.0 * k.weighted_fp32,
        eager_experts=np.maximum(eager, k.eager_experts),
        chunked_loss=software.chunked_loss,
        logit_bytes=np.where(software.logit_bytes > 0, software.logit_bytes, k.logit_bytes),
    )


def layer_sorts(c: Cases) -> tuple[LayerSort, ...]:
    """What one layer of each sort keeps and has, dense ones first."""
    s, p, keep = c.shape, c.plan, keeping(c)
    boundary = c.tokens / c.sequence_shards * (2.0 * s.hidden * keep.wide)
    on_device = constants_of(c).activation
    some_away = some(c.software.activation_offload)
    some_share, all_share = c.selective_share, c.full_share
    # whether the last layers, or the MTP modules, have experts
    routed = np.where(s.mtp_layers > 0, s.mtp_experts > 0, s.moe_layers > 0) * 1.0
    sorts = []
    for feed, mixers_of_layer in _layers(s):
        mixers = fold(Saved, [(n, b.saved_bytes(keep)) for n, b in mixers_of_layer])
        trunk = weighted((n, sum(b.parameters().values())) for n, b in mixers_of_layer)
        x, ffn_params = fold(Saved, [(1, mixers), (1, feed.saved_bytes(keep))]), feed.parameters()
        experts = ffn_params.pop("routed_experts", 0)
        ffn_params.pop("unused", 0)
        whole, selective, saved = saved_of(c, x)
        # of a repeated layer a compiler holds what its backward reads, and fuses the rest into it
        again = np.where(c.software.lazy_recompute > 0, selective, whole)
        kept = saved + all_share * boundary
        left: Column = kept
        away: Column = 0.0
        if some_away:
            left, away = split_with_host(c, kept, module_bytes(c, keep, mixers_of_layer, feed))
        sorts.append(
            LayerSort(
                feed=feed,
                saved=on_device * left,
                away=on_device * away,
                dropped=np.where(
                    all_share > 0, again - boundary, (some_share > 0) * (whole - selective)
                ),
                whole=whole,
                rows=c.tokens / p.tp * p.etp * x.copies,
                trunk=trunk + sum(ffn_params.values()),
                experts=experts / (p.ep * p.etp),
                last=routed if isinstance(feed, Moe) else (1.0 - routed) * plain_share(s, feed),
            )
        )
    if s.order:  # an MTP module is shared out among the sorts like it
        alike = np.maximum(sum(x.last for x in sorts), 1)
        sorts = [replace(x, last=x.last / alike) for x in sorts]
    return tuple(sorts)


def module_bytes(
    c: Cases, keep: Keeping, mixers_of_layer: Sequence[tuple[Column, Block]], feed: Block
) -> dict[str, Column]:
    """Bytes on a device of the inputs of each module of one layer and micro-batch: of the two norms
    the stream, of the first products what the norms give, of the core queries, keys and values, of
    the rest what the products or the activation before give."""
    outer, inner = c.tokens / c.sequence_shards, c.tokens / c.plan.tp
    wide = keep.wide
    stream = 2.0 * c.shape.hidden * wide * outer
    normed = keep.norm_bytes * c.shape.hidden * wide * outer
    inside: Column = 0.0
    out: Column = 0.0
    for n, block in mixers_of_layer:
        if not isinstance(block, Mixer):
            continue
        core = block.core_bytes(keep)
        width = 2.0 * block.out_width * wide if isinstance(block, Softmax) else 0.0
        inside = inside + n * ((core.inner - width) * inner + core.latent * c.tokens)
        out = out + n * width * inner
    of_feed = feed.saved_bytes(keep)
    width = 0.0
    if isinstance(feed, Moe):
        width = of_feed.copies * feed.width + feed.shared_width
    elif isinstance(feed, Mlp):
        width = feed.width
    last = keep.linear_bytes * wide * width
    act = (of_feed.inner - last) * inner
    experts = isinstance(feed, Moe)
    return {
        OffloadModule.ATTN_NORM: stream,
        OffloadModule.QKV_LINEAR: normed,
        OffloadModule.CORE_ATTN: inside,
        OffloadModule.ATTN_PROJ: out,
        OffloadModule.MLP_NORM: stream,
        OffloadModule.MLP_FC1: 0.0 if experts else normed,
        OffloadModule.MLP_ACT: 0.0 if experts else act,
        OffloadModule.MLP_FC2: last * inner,
        OffloadModule.EXPERT_FC1: of_feed.routed * inner * c.plan.etp,
        OffloadModule.MOE_ACT: act if experts else 0.0,
    }


def split_with_host(c: Cases, kept: Column, modules: dict[str, Column]) -> tuple[Column, Column]:
    """(on the device, in host memory) of the `kept` bytes of one layer and micro-batch: all of them
    leave, or the inputs of the modules named, in the share `activation_offload` of the layers.

    Of a layer that repeats its forward the device keeps its input alone, which leaves with
    `attn_norm`; inputs of other modules are then kept by the host alone (save_and_offload_only in
    MaxText, qkv_proj_offloaded).
    """
    share, named = c.software.activation_offload, c.offloaded_modules
    if not named:
        return (1.0 - share) * kept, share * kept
    whole, sent = c.full_share, sum(modules[name] for name in named)
    first = modules[OffloadModule.ATTN_NORM] * (OffloadModule.ATTN_NORM in named)
    leaves = np.minimum((1.0 - whole) * sent + whole * first, kept)
    return kept - share * leaves, share * np.where(whole > 0, sent, np.minimum(sent, kept))


def offloaded_bytes(c: Cases) -> Column:
    """Bytes that an average layer and micro-batch sends to the host and takes back. [bytes]"""
    if c.offloaded_modules is None or not some(c.software.activation_offload):
        return 0.0
    sorts = layer_sorts(c)
    count = sum(x.feed.count for x in sorts)
    return weighted((x.feed.count / count, x.away) for x in sorts)


class SavedBytes(NamedTuple):
    """What a device saves of a layer for its backward. [bytes]"""

    whole: Column  # with nothing repeated
    selective: Column  # with all `selective` repeated
    planned: Column  # as the plan repeats, without the inputs of layers that run again


def saved_of(c: Cases, x: Saved) -> SavedBytes:
    """Bytes on a device of what `x` is a token. Under a compiler's memory budget `selective` keeps
    that share of what stands between the layer's input and all of it."""
    p, t = c.plan, c.tokens
    some_share, all_share = c.selective_share, c.full_share
    outer, inner = t / c.sequence_shards, t / p.tp
    latent, rows = t * x.latent, inner * p.etp
    whole = outer * x.outer + inner * x.inner + latent + rows * x.routed
    selective = outer * x.outer_selective + inner * x.inner_selective
    selective = selective + latent + rows * x.routed_selective
    budget = c.software.memory_budget
    if some(budget >= 0):
        input_bytes = outer * 2.0 * c.shape.hidden
        bounded = input_bytes + budget * np.maximum(whole - input_bytes, 0.0)
        selective = np.where(budget >= 0, bounded, selective)
    planned = (1.0 - some_share - all_share) * whole + some_share * selective
    return SavedBytes(whole, selective, planned)


def _layers(s: Shape) -> list[tuple[Block, list[tuple[Column, Block]]]]:
    """(feed-forward, (how many, block) beside it) of each sort of layer: the mixers in the model's
    own proportion where the layers have no order."""
    mixers_of_layer = [(b.count / s.layers, b) for b in s.of("mixer") + s.of("stream")]
    if not s.order:
        return [(feed, mixers_of_layer) for feed in s.of("feed")]
    stream = [(n, b) for n, b in mixers_of_layer if b.kind == "stream"]
    out = []
    for blocks in ([s.blocks[i] for i in layer] for layer in sorts_of(s)[0]):
        feed = next((b for b in blocks if b.place == "feed"), None) or s.of("bare")[0]
        out.append((feed, [(1, b) for b in blocks if b is not feed] + stream))
    return out


def gradient_bytes(c: Cases, group: Column) -> Column:
    """Bytes of the gradient of one parameter that `group` ranks share, before it is divided: as the
    job says, with what the stack keeps beside it (catalogue/memory_facts.csv)."""
    job, k = c.job, constants_of(c)
    driven = c.software.step_engine > 0
    plain: Column = np.minimum(job.grad_bytes, np.where(driven, np.inf, k.plain_gradients))
    accumulated: Column = np.maximum(k.bf16_gradients, driven * k.engine_gradients)
    gradient: Column = np.maximum(plain, (job.precision == BF16) * accumulated)
    return gradient + (group > 1) * np.minimum(k.bucket_bytes, job.grad_bytes)


def parameter_bytes(c: Cases, group: Column) -> ParameterBytes:
    """Bytes of one parameter that `group` ranks share."""
    p, job, k = c.plan, c.job, constants_of(c)
    wide, low = job.precision == FP32, low_bytes(job)
    weight = 2.0 + 2.0 * wide
    # and the low-precision copies, both ways round, of the layers that are not kept in 16 bit
    alone = k.low_weights * c.software.fp8_gather * (low > 0)
    cached = weight + (2.0 * low - weight * alone) * (1.0 - job.kept_16bit)
    states = job.optimizer_bytes + job.master_bytes * (1.0 - wide)
    gradient = gradient_bytes(c, group)
    away, gone = p.offload >= HOST_STATES, p.offload >= HOST_ALL
    whole = p.sharding >= ZERO3
    share = 1.0 / group
    of_weight, of_gradient, owned = (
        np.where(p.sharding >= kind, share, 1.0) for kind in (ZERO3, ZERO2, ZERO1)
    )
    # not exchanged before the last micro-batch: whole until then, on the device in any case
    waits = (c.micro_batches > 1) * (1.0 - c.software.sync_each_batch) * (k.whole_gradients > 0)
    unreduced = waits * np.minimum(gradient, np.maximum(k.whole_gradients, weight))
    # the fp32 shard is the weight: no 16-bit one beside it
    plain = weight * (1.0 - k.fp32_shards * (job.master_bytes > 0) * (1.0 - away))
    stored = np.minimum(plain, cached)  # a shard is never more than its part of the whole weight
    within = c.software.optimizer_group
    owned = np.where(
        (p.sharding == ZERO1) & (within > 0), np.maximum(share, 1.0 / np.maximum(within, 1)), owned
    )
    copies = weight_copies(p.schedule)
    states, host = states * owned, 0.0 * share
    resident = of_weight * np.where(whole, stored, cached) * copies
    cache = np.where(whole, share * (stored - plain), cached - weight)
    gathered = np.where(whole, 1.0 - share * (stored > 0), 0.0) * cached
    step = (job.grad_bytes <= 2) * (job.master_bytes > 0) * (1.0 - wide) * k.step_bytes
    step = step + k.foreach * job.optimizer_bytes / 2
    if some(p.offload):
        # ZeRO-Infinity and FSDP's CPU offload: weights come and gradients go a layer at a time
        # (Rajbhandari et al. 2021, section 5)
        host = away * host_states(c, states, owned, gradient) + gone * (
            weight * of_weight + gradient * of_gradient
        )
        states, step = (np.where(away, 0.0, x) for x in (states, step))
        resident, gradient, cache = (np.where(gone, 0.0, x) for x in (resident, gradient, cache))
        gathered = np.where(gone, cached + weight, gathered)
    gradients = np.maximum(gradient * of_gradient, unreduced) * copies
    return ParameterBytes(
        weight=resident,
        cache=cache * copies,
        gradient=gradients,
        states=states,
        host=host,
        gathered=gathered,
        gathered_ends=gathered * (weight / cached),
        step=step * owned,
        stays=resident + gradients + states,
    )


def host_states(c: Cases, states: Column, owned: Column, gradient: Column) -> Column:
    """Bytes a parameter of a device that offloaded states take of its host: the states that it owns
    and, in some stacks, their gradient and buffers (catalogue/memory_facts.csv)."""
    k, p = constants_of(c), c.plan
    apart = (p.offload >= HOST_ALL) * gradient  # counted with the weights
    own = states + np.maximum(k.host_gradient_bytes - apart, 0.0) * owned
    whole = 2.0 * k.host_accumulates * (c.micro_batches > 1)
    buffered = p.sharding < ZERO3
    return own * (1.0 + (k.host_factor - 1.0) * buffered) + whole * buffered


def exchange_buffers(c: Cases, sorts: Sequence[LayerSort]) -> Column:
    """Bytes of the buffers of exchanges, and of masks that a stack builds pair by pair."""
    s, p, k, t = c.shape, c.plan, constants_of(c), c.tokens
    wide = 1.0 + (c.job.precision == FP32)
    buffers = (p.tp > 1) * (4.0 * s.hidden) * t
    buffers = buffers + (p.pp > 1) * (16.0 * s.hidden * wide) * (t / c.sequence_shards)
    kv = s.mean("mixer", lambda b: b.exchanges().kv)
    buffers = buffers + (p.cp > 1) * (4.0 * kv) * t / p.tp
    buffers = buffers + k.dense_masks * k.pair_bytes * c.job.seq_len * t
    rows = exchange_rows_bytes(c, _largest(sorts, lambda x: x.rows))
    return buffers + rows + dispatcher_bytes(c)


def frame(c: Cases) -> Frame:
    """What all devices of a case share: saved bytes and parameters by layer, bytes by parameter,
    buffers."""
    s, p, k = c.shape, c.plan, constants_of(c)
    n, sorts = as_floats(parameters(s)), layer_sorts(c)
    ranks = c.site_ranks
    group = np.where(p.sharding == HSDP, np.minimum(p.shard_group, ranks), ranks)
    replicas = np.maximum(group * p.tp / (p.ep * p.etp), 1.0)
    replicas = np.where((c.software.whole_experts >= 1) & (p.ep > 1), 1.0, replicas)[()]
    of_dense = parameter_bytes(c, group)
    largest, repeats = _largest(sorts, lambda x: x.whole), some(p.recompute > 0)
    dropped = _largest(sorts, lambda x: x.dropped) if repeats else 0.0
    keep, per_tp = keeping(c), 1.0 / p.tp
    logits = fold(Saved, [(b.count, b.saved_bytes(keep)) for b in s.of("end")]).logits
    waits = some(SPLIT[p.schedule])
    return Frame(
        constants=k,
        sorts=sorts,
        micro_batches=c.micro_batches,
        bytes=of_dense,
        expert_bytes=parameter_bytes(c.with_plan(sharding=c.expert_sharding), replicas)
        if s.of("moe")
        else of_dense,
        embedding=n.embedding,
        head=weighted((1, np.where(b.tied > 0, n.embedding, n.lm_head)) for b in s.of(Head)),
        mtp=n.mtp - s.mtp_experts,
        logits=c.tokens * np.maximum(per_tp, k.whole_logits) * logits,
        per_tp=per_tp,
        repeats=repeats,
        transient=k.activation * (largest * k.working + dropped),
        most=k.activation * k.working * largest,
        step_most=np.where(p.sharding >= ZERO3, k.step_bytes * k.step_parameters, np.inf),
        buffers=exchange_buffers(c, sorts),
        split_saved=saved_for_weights(c) if waits else 1.0,
    )


def _largest(sorts: Sequence[LayerSort], value: Callable[[LayerSort], Column]) -> Column:
    """The most of any sort of layer that a model has."""
    if len(sorts) == 1:
        return value(sorts[0])
    return reduce(np.maximum, (np.where(x.feed.count > 0, value(x), 0.0) for x in sorts))


def device(c: Cases, f: Frame, at: Place) -> DeviceContents:
    """What one pipeline device holds: dense and expert parameters, activations with logits, and
    what is gathered for a moment."""
    s, k, per_tp, modules = c.shape, f.constants, f.per_tp, c.shape.mtp_layers
    ends = at.embeds * f.embedding + at.heads * np.where(
        at.embeds * sum(b.tied for b in s.of(Head)) > 0, 0, f.head
    )
    trunk = weighted((n, x.trunk) for n, x in zip(at.counts, f.sorts)) + ends + at.heads * f.mtp
    run = [at.in_flight * n + s.mtp_passes * at.tail * x.last for n, x in zip(at.counts, f.sorts)]
    trunk, ends, last = trunk * per_tp, ends * per_tp, modules * at.heads
    experts = weighted((n + last * x.last, x.experts) for n, x in zip(at.counts, f.sorts))
    logits = at.tail * f.logits
    # the loss is over when the last layer's backward begins
    saved = weighted((n, x.saved) for n, x in zip(run, f.sorts))
    away = weighted((n, x.away) for n, x in zip(run, f.sorts))
    # two layers' are on their way out or back
    named = c.offloaded_modules is not None
    moving = 2.0 * _largest(f.sorts, lambda x: x.away) if named else 0.0
    activations = saved + np.maximum(f.transient, logits) + moving
    if f.repeats:
        # never more than with nothing repeated, however few layers a device has
        most = weighted((n, x.whole) for n, x in zip(run, f.sorts))
        activations = np.minimum(activations, k.activation * most + np.maximum(f.most, logits))
    # gradients that are not there before the backward take the place of activations that it frees
    grown = trunk * f.bytes.gradient + experts * f.expert_bytes.gradient
    fresh = np.maximum(saved + logits, np.maximum(saved, grown) + f.transient) - grown
    activations = np.where(
        k.fresh_gradients * (f.micro_batches <= 1) > 0, np.minimum(fresh, activations), activations
    )
    # the head's weight gradient, before it is accumulated
    gathered = 2.0 * at.heads * f.head * per_tp + _gathered(f, at, trunk, experts, ends)
    # fp32 gradients of the optimizer's step take the place of the activations
    step = np.minimum(trunk * f.bytes.step + experts * f.expert_bytes.step, f.step_most)
    return DeviceContents(
        trunk=trunk,
        experts=experts,
        ends=ends,
        activations=activations,
        logits=logits,
        gathered=np.maximum(gathered, step - activations),
        away=away,
    )


def _gathered(f: Frame, at: Place, trunk: Column, experts: Column, ends: Column) -> Column:
    """Bytes of sharded weights that are whole while in use: some layers, and what lies outside."""
    widest = f.constants.layers_gathered * _largest(f.sorts, lambda x: x.trunk) * f.per_tp
    outside = np.minimum(np.maximum(at.embeds, at.heads) * f.embedding * f.per_tp, ends)
    gathered = np.minimum(widest, trunk - ends) * f.bytes.gathered
    gathered = gathered + outside * f.bytes.gathered_ends
    most = f.constants.layers_gathered * _largest(f.sorts, lambda x: x.experts)
    return gathered + np.minimum(most, experts) * f.expert_bytes.gathered


def in_flight_of(c: Cases, f: Frame, stages: Sequence[int] | Array) -> Array:
    """Micro-batches in flight on the devices `stages` of each case, one entry per device."""
    p, m, share = c.plan, f.micro_batches, f.split_saved
    ndim = np.broadcast(p.schedule, p.pp, p.vpp, m, share).ndim
    at = np.reshape(stages, (len(stages),) + (1,) * ndim)
    return np.asarray(in_flight(p.schedule, p.pp, p.vpp, m, at, share))


def states_of(f: Frame, contents: DeviceContents) -> tuple[Column, Column, Column, Column]:
    """(weights, gradients, optimizer, host) of the parameters that a device holds. [bytes]"""
    dense, experts = f.bytes, f.expert_bytes
    # embedding and head have no low-precision copies
    weights = contents.trunk * dense.weight - contents.ends * dense.cache
    return (
        weights + contents.experts * experts.weight,
        contents.trunk * dense.gradient + contents.experts * experts.gradient,
        contents.trunk * dense.states + contents.experts * experts.states,
        contents.trunk * dense.host + contents.experts * experts.host + contents.away,
    )
