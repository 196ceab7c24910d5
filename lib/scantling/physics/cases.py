"""Cases: the one columnar form in which designs, searches, sweeps and published runs pass through
the models.

Every field is a number or a column of shape (n,); scalars broadcast. Text stops at the door:
precision, sharding, schedule,
recompute and attention kernels are small integer codes, listed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..base.records import length, take
from ..blocks.table import Shape, few_dense
from ..catalogue.words import PRECISIONS as RECIPES
from ..catalogue.words import RECOMPUTES

Column = Any  # float, int or numpy array of shape (n,)

SAME_RATE = {"fp8-block": "fp8-current"}  # recipes that the models time alike
PRECISIONS = tuple(name for name in RECIPES if name not in SAME_RATE)
# outputs of the tile that large matrix products are cut into (CUTLASS, cuBLAS on A100 and H100)
TILE = 128 * 256


def code(names: tuple[str, ...], value: str) -> int:
    """Position of a name in its table. Raises ValueError, listing the table, when it is not
    there."""
    try:
        return names.index(value)
    except ValueError:
        raise ValueError(f"{value!r} is none of {', '.join(names)}") from None


@dataclass(
    frozen=True,
    kw_only=True,
)
class Chip:
    """What one device can do. FLOP/s dense, bytes, bytes/s one direction."""

    linear_flops: Column  # dense peak at the job's precision for the linear layers
    bf16_flops: Column  # dense peak for what stays in 16 bit: attention, logits, router
    hbm_bytes_per_s: Column
    usable_bytes: Column  # what a program can have, not the name on the box
    host_bytes_per_s: Column  # PCIe or C2C, one direction
    is_tpu: Column = 0.0
    # 1 where FlashAttention-3 or its like exists: Hopper and later, and TPUs' own kernels not
    newer_flash: Column = 0.0
    # outputs of a matrix product that one wave of tiles makes: units x 128 x 256; 0 where there are
    # few large units
    wave_outputs: Column = 0.0


@dataclass(
    frozen=True,
    kw_only=True,
)
class Link:
    """The network's tiers as seen from one device; bytes/s one direction, seconds."""

    domain: Column  # devices in one scale-up domain
    up_bytes_per_s: Column
    out_bytes_per_s: Column  # scale-out, per device
    pod_devices: Column = 1e9  # devices under one full-bisection pod
    oversubscription: Column = 1.0  # down : up at the top of the pod
    # 1 where no switch joins a domain: each pair of devices has a link of its own, (domain - 1)
    # make up the rate
    mesh: Column = 0.0
    generation: Column = 1  # NVLink generation less 3, 0 to 2; 0 also for what is not NVLink
    # share of the link a ring reaches and seconds of a step, where no series is published of the
    # scale-up fabric; nan: those fitted on NVLink's
    up_share: Column = np.nan
    up_hop_s: Column = np.nan
    # share of the cards' rate and time of a step between domains, over those of InfiniBand NDR
    out_share: Column = 1.0
    out_hop: Column = 1.0
    ordered: Column = 1  # the network writes in order: the protocols LL and LL128 work across it
    efa: Column = 0  # 1 for EFA
    nvls: Column = 0  # 1 where the switches of the domain reduce
    sharp: Column = 0  # 1 where those of the network do


@dataclass(
    frozen=True,
    kw_only=True,
)
class Job:
    """What one optimizer step must do."""

    seq_len: Column
    global_batch: Column  # sequences
    precision: Column  # code in PRECISIONS
    optimizer_bytes: Column = 8.0  # moments per parameter; 8 = two fp32 moments
    master_bytes: Column = 4.0  # fp32 copy of the weights
    grad_bytes: Column = 4.0  # accumulated gradient


@dataclass(
    frozen=True,
    kw_only=True,
)
class Plan:
    """How the job is laid out. tp x cp x pp x dp = devices; ep divides dp x cp x tp / etp and
    multiplies nothing."""

    tp: Column = 1
    cp: Column = 1
    pp: Column = 1
    vpp: Column = 1
    dp: Column = 1
    ep: Column = 1
    etp: Column = 1
    sp: Column = 0
    sharding: Column = 0  # code in SHARDINGS
    shard_group: Column = 1  # ranks that share one copy under hsdp
    schedule: Column = 1  # code in pipeline.SCHEDULES
    micro_batch: Column = 1
    recompute: Column = 0  # code in RECOMPUTES
    recompute_share: Column = 1.0  # share of the layers that recompute
    cp_type: Column = 0
    offload: Column = 0


@dataclass(
    frozen=True,
    kw_only=True,
)
class Software:
    """What the stack's kernels and runtime do; 0 or 1 unless said otherwise."""

    # 0 materialised scores, 1 FlashAttention-1, 2 FlashAttention-2 or its like, 3 FA-3 / cuDNN, 4
    # FA-4
    flash: Column = 2.0
    fused_norm: Column = (
        1.0  # element-wise chains run as fused kernels; 0: one kernel per operation
    )
    unfused_scores: Column = 0.0  # materialised scores without a fused mask and softmax
    # 1: tensor-parallel collectives pipelined with their GEMMs, between 0 and 1: that share, the
    # rest alone; -1: nothing runs beside them
    tp_overlap: Column = 0.0
    ep_overlap: Column = 0.0  # all-to-all run beside the other micro-batch's compute
    dp_overlap: Column = 1.0  # gradient and parameter traffic run beside compute
    p2p_overlap: Column = 1.0  # sends between stages run beside compute
    dedup_dispatch: Column = (
        0.0  # a token crosses a link once however many of its experts live there
    )
    group_limit: Column = 0.0  # most nodes a token may visit; 0 = any
    graphs: Column = (
        0.0  # 0 none, 0.5 the router alone, 1 attention and router, 2 the whole iteration captured
    )
    chunked_loss: Column = 0.0  # cross entropy without the whole logits
    parallel_block: Column = (
        0.0  # attention and MLP read the same input: one collective pair a layer
    )
    balanced_layout: Column = (
        0.0  # pipeline stages laid out so that loss and MTP share the last stage with fewer layers
    )
    fp8_attention: Column = 0.0
    # 1: routing forced even, no expert rank works longer than another; 2: tokens dropped and padded
    # to an even share
    even_routing: Column = 0.0
    activation_offload: Column = 0.0  # share of the saved activations sent to host memory
    norm_kernel: Column = 0.0  # one fused norm kernel added to an otherwise eager stack
    selective_gemm: Column = 0.0  # what `selective` recompute repeats: share of the layer's GEMMs,
    selective_attention: Column = 1.0  # of the attention core,
    selective_elementwise: Column = 0.0  # of the element-wise chains
    lazy_recompute: Column = (
        0.0  # full recompute stops before the product whose output the backward never reads
    )
    broadcast_gather: Column = (
        0.0  # sharded optimizer states come back by one broadcast per rank, not one all-gather
    )
    optimizer_group: Column = 0.0  # ranks that zero1 shards over; 0 = all of dp x cp
    step_engine: Column = 0.0  # 1: DeepSpeed's pipeline engine drives the step
    grad_all_reduce: Column = 0.0  # zero1 that all-reduces the gradients instead of scattering them
    released: Column = 2026.5  # year of the software, fraction of months included


@dataclass(
    frozen=True,
    kw_only=True,
)
class Cases:
    """Columns of shape, job, chip, link, plan and software, with the calibrated constants gathered
    beside them."""

    shape: Shape
    job: Job
    chip: Chip
    link: Link
    plan: Plan
    software: Software
    constants: Any  # constants.Constants

    def __len__(self) -> int:
        return length(self)

    def take(self, index) -> Cases:
        """The rows at `index`, a slice or an integer or boolean array."""
        return take(self, index)

    def with_plan(self, **columns) -> Cases:
        """The same cases under another plan."""
        return replace(self, plan=replace(self.plan, **columns))


def accumulated(
    global_batch,
    dp,
    micro_batch,
):
    """Micro-batches per replica and step: global_batch / (dp x micro_batch), at least one."""
    return np.maximum(global_batch / (dp * micro_batch), 1.0)


def micro_batches(job: Job, plan: Plan):
    """Micro-batches per replica and step of columns of plans: `accumulated`."""
    return accumulated(job.global_batch, plan.dp, plan.micro_batch)


def devices(plan: Plan):
    """tp x cp x pp x dp."""
    return plan.tp * plan.cp * plan.pp * plan.dp


class Recomputed(NamedTuple):
    """Forwards that the backward repeats: of whole layers, and of a layer's kernels by kind."""

    layer: Column
    gemm: Column
    attention: Column
    elementwise: Column


def recomputed(c: Cases) -> Recomputed:
    """What recompute repeats: under `full` everything in that share of the layers, under
    `selective` what the stack's form of it names (Korthikanti et al. 2022, section 5)."""
    p, repeats = c.plan, c.software
    full = np.where(p.recompute == RECOMPUTES.index("full"), p.recompute_share, 0.0)
    some = np.where(p.recompute == RECOMPUTES.index("selective"), p.recompute_share, 0.0)
    return Recomputed(
        layer=full,
        gemm=full + some * repeats.selective_gemm,
        attention=full + some * repeats.selective_attention,
        elementwise=full + some * repeats.selective_elementwise,
    )


def host_rate(c: Cases):
    """Bytes/s at which one rank reaches its host's memory: its link, or its share of that memory's
    rate."""
    return np.minimum(c.chip.host_bytes_per_s, c.constants.host_rank_bytes_per_s)


def sequence_shards(plan: Plan):
    """By how much sequence parallelism divides what lies outside the tensor-parallel blocks: tp
    when sp is on, else 1."""
    return np.where(plan.sp > 0, plan.tp, 1)


def tokens(c: Cases):
    """Tokens that one tensor-parallel group holds of a micro-batch: micro_batch x seq_len / cp."""
    return c.plan.micro_batch * c.job.seq_len / c.plan.cp


def moe_share(c: Cases):
    """MoE layers over all layers on the pipeline stages that set the pace: a few dense layers all
    stand on the first stage (DeepSeek-V3,
    section 4.2), more of them are spread evenly."""
    s, pp = c.shape, np.maximum(c.plan.pp, 1)
    share = s.moe_layers / s.layers
    if not np.any(share):
        return share
    leading = (s.moe_layers > 0) & (pp > 1) & few_dense(s)
    return np.where(leading, np.minimum(share / np.maximum(1 - 1 / pp, 0.5), 1.0), share)


def low_precision_bytes(c: Cases):
    """Bytes per value of activations sent to experts: 1 under the fp8 recipes' dispatch, 2 in 16
    bit and fp4."""
    return np.where(
        (c.job.precision >= 2) & (c.job.precision <= 4) & (c.software.dedup_dispatch > 0), 1.0, 2.0
    )
