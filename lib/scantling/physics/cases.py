"""Cases: the one columnar form in which designs, searches, sweeps and published runs pass through
the models.

Every field is a number or a column of shape (n,); scalars broadcast. Text stops at the door:
precision, sharding, schedule,
recompute and attention kernels are small integer codes, listed here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base.columns import Column
from ..base.records import Lines, length, record, take
from ..blocks.kernels import STREAM_BYTES
from ..blocks.table import Shape, few_dense
from ..catalogue.words import (
    CP_TYPES,
    MODULES,
    OFFLOADS,
    PRECISIONS as RECIPES,
    RECOMPUTES,
    SHARDINGS,
)
from .constants import Constants
from .software import Software

SAME_RATE = {"fp8-block": "fp8-current"}  # recipes that the models time alike
PRECISIONS = tuple(name for name in RECIPES if name not in SAME_RATE)
# codes of the words that formulas ask for
BF16, FP32, FP8, FP8_ROW, MXFP8, FP4 = map(
    PRECISIONS.index, ("bf16", "fp32", "fp8", "fp8-row", "mxfp8", "nvfp4")
)
ZERO1, ZERO2, ZERO3, HSDP = map(SHARDINGS.index, ("zero1", "zero2", "zero3", "hsdp"))
SELECTIVE, FULL = map(RECOMPUTES.index, ("selective", "full"))
HOST_STATES, HOST_ALL = map(OFFLOADS.index, ("optimizer", "optimizer+params"))
ULYSSES = CP_TYPES.index("ulysses")
WEIGHT_BYTES = 2.0  # of a weight in 16 bit
# outputs of the tile that large matrix products are cut into (CUTLASS, cuBLAS on A100 and H100)
TILE = 128 * 256


def code(names: Lines, value: str) -> int:
    """Position of a name in its table. Raises ValueError, listing the table, when it is not
    there."""
    try:
        return names.index(value)
    except ValueError:
        raise ValueError(f"{value!r} is none of {', '.join(names)}") from None


@record
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


@record
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
    srd: Column = 0  # 1 where cards deliver packets in any order (EFA)
    nvls: Column = 0  # 1 where the switches of the domain reduce
    sharp: Column = 0  # 1 where those of the network do
    rail_only: Column = 0.0  # 1 where no switch joins the rails
    sites: Column = 1.0
    smallest_site: Column = 1.0  # its share of the devices
    site_bytes_per_s: Column = np.inf  # of one site to the others, one direction
    site_rtt_s: Column = 0.0


@record
class Job:
    """What one optimizer step must do."""

    seq_len: Column
    global_batch: Column  # sequences
    precision: Column  # code in PRECISIONS
    optimizer_bytes: Column = 8.0  # moments per parameter; 8 = two fp32 moments
    master_bytes: Column = 4.0  # fp32 copy of the weights
    grad_bytes: Column = 4.0  # accumulated gradient
    token_bytes: Column = 4.0  # of a token in the shards
    read_bytes_per_s: Column = np.inf  # of the store, for all ranks together
    reads_per_s: Column = np.inf  # sequences that it can hand out
    local_steps: Column = 1  # that sites take between two exchanges; 0: searched
    exchange_bytes: Column = 0.0  # of a value between sites; 0: as wide as the gradients
    exchange_overlap: Column = 0.0  # 1 where the exchange runs beside the steps that follow
    newton_schulz: Column = 0.0  # iterations that make a matrix orthogonal in the update (Muon)

    @property
    def state_bytes(self):
        """Bytes of state a parameter: weight in 16 bit, gradient, moments, master weight."""
        return WEIGHT_BYTES + self.grad_bytes + self.optimizer_bytes + self.master_bytes


@record
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
    layer_split: Column = 0  # code in LAYER_SPLITS


@record
class Cases:
    """Columns of shape, job, chip, link, plan and software, with the calibrated constants gathered
    beside them."""

    shape: Shape
    job: Job
    chip: Chip
    link: Link
    plan: Plan
    software: Software
    constants: Constants
    layout: tuple[int, ...] = ()  # bounds of the runs of layers, where a design gives them

    def __len__(self) -> int:
        return length(self)

    def take(self, index) -> "Cases":
        """The rows at `index`, a slice or an integer or boolean array."""
        return take(self, index)

    def with_plan(self, **columns) -> "Cases":
        """The same cases under another plan."""
        return replace(self, plan=replace(self.plan, **columns))


def accumulated(global_batch, dp, micro_batch):
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
    expert: Column  # of the exchanges between experts


SWITCH_OF = dict(  # module of a layer: the switch of Software that says that it is repeated
    zip(MODULES, (f"selective_{name}" for name in ("attention", "up", "norm", "act", "moe")))
)


def switches_of(modules: Sequence[str]) -> dict[str, float]:
    """The switches of Software under which `selective` repeats these modules and nothing else."""
    return {switch: 1.0 * (m in modules) for m, switch in SWITCH_OF.items()} | {
        "selective_gemm": 0.0
    }


def modules_of(recompute: str, software: Software, shape: Shape) -> list[str]:
    """The modules that a plan repeats: those of the switches that this model has, whole layers
    under `full`. A stack that keeps listed operations instead (`selective_gemm`) names none."""
    lacks = {"mla_up_proj": _share_of_ups(shape), "moe": shape.moe_layers}
    if recompute != "selective":
        return ["layers"] * (recompute == "full")
    return [
        m for m, s in SWITCH_OF.items() if np.all(getattr(software, s) >= 1) and lacks.get(m, 1) > 0
    ]


def _share_of_ups(shape: Shape):
    """Of the FLOPs of a layer's weights, those of up-projections of latent attention."""
    return 6 * shape.mean("softmax", lambda b: b.up_weights) / _linear_flops(shape)


def _linear_flops(shape: Shape):
    """Training FLOPs a token of an average layer's weights."""
    return sum(shape.mean(place, _weight_flops) for place in ("mixer", "stream", "feed"))


def _weight_flops(block):
    return sum(v for k, v in block.flops(1.0).items() if k != "attention_scores")


def _chains(shape: Shape):
    """(of activations of feed-forwards, of those in MoE blocks) in the bytes that a layer's
    element-wise chains move, tensor parallelism aside."""
    acts = [(b.count / shape.layers * b.active_bytes, b.kind == "moe") for b in shape.of("feed")]
    whole = sum(x for x, _ in acts) + 2 * STREAM_BYTES * shape.hidden
    return sum(x for x, _ in acts) / whole, sum(x for x, moe in acts if moe) / whole


def site_ranks(c: Cases):
    """Data-parallel ranks, cp among them, of the smallest site: what is sharded stays inside."""
    return np.maximum(np.floor(c.plan.dp * c.link.smallest_site + 1e-9), 1.0) * c.plan.cp


def recompute_shares(plan: Plan):
    """Shares of the layers that repeat what `selective` drops, and everything."""
    return tuple((plan.recompute == kind) * plan.recompute_share for kind in (SELECTIVE, FULL))


def recomputed(c: Cases) -> Recomputed:
    """What recompute repeats: under `full` everything in that share of the layers, under
    `selective` the modules of SWITCH_OF that are switched on (Korthikanti et al. 2022, section 5;
    DeepSeek-V3, section 3.2.3). A module's share of the layer goes by FLOPs and bytes."""
    p, on = c.plan, c.software
    some, full = recompute_shares(p)
    gemm, moe, chain = on.selective_gemm, on.selective_moe, on.selective_norm
    gemm = gemm + on.selective_up * _share_of_ups(c.shape)
    if np.any(on.selective_act != on.selective_norm) or np.any(moe):
        acts, of_experts = _chains(c.shape)
        chain = (1 - acts) * on.selective_norm + acts * on.selective_act
        chain = chain + of_experts * moe * (1 - on.selective_act)
    within = c.shape.mean("moe", _weight_flops) / _linear_flops(c.shape)
    gemm = gemm + moe * within * (1 - on.selective_gemm)
    return Recomputed(
        layer=full,
        gemm=full + some * gemm,
        attention=full + some * on.selective_attention,
        elementwise=full + some * chain,
        expert=full + some * moe,
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


def attended(c: Cases):
    """Tokens of one sequence for attention: all, or those of a document where several are packed
    into it and scores stay within each."""
    document, seq_len = c.software.document_tokens, c.job.seq_len
    return np.where(document > 0, np.minimum(document, seq_len), seq_len)[()]


def moe_share(c: Cases):
    """MoE layers over all layers on the pipeline stages that set the pace: a few dense layers all
    stand on the first stage (DeepSeek-V3,
    section 4.2), more of them are spread evenly."""
    s, pp = c.shape, np.maximum(c.plan.pp, 1)
    share = s.moe_layers / s.layers
    if s.order or not np.any(share):
        return share
    leading = (s.moe_layers > 0) & (pp > 1) & few_dense(s)
    return np.where(leading, np.minimum(share / np.maximum(1 - 1 / pp, 0.5), 1.0), share)


def low_precision_bytes(c: Cases):
    """Bytes per value of activations sent to experts: 1 under the fp8 recipes' dispatch, 2 in 16
    bit and fp4."""
    narrow = (c.job.precision >= 2) & (c.job.precision <= 4) & (c.software.dedup_dispatch > 0)
    return 2.0 - narrow
