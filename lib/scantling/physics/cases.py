"""Cases: the one columnar form in which designs, searches, sweeps and published runs pass through
the models.

Every field is a number or a column of shape (n,); scalars broadcast. Text stops at the door:
precision, sharding, schedule, recompute and attention kernels are small integer codes, listed here.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.columns import Array, Column, some
from ..base.records import Lines, length, record, take
from ..blocks.block_table import Shape, few_dense
from ..catalogue.words import CP_TYPES, OFFLOADS, PRECISIONS, RECOMPUTES, SHARDINGS, Precision
from .constants import Constants
from .recompute import Recomputed, repeated
from .software import OWN_ZERO1, Software
from .wires import Link, Wires, members_inside

# a recipe that is timed and counted as another, since no published run tells the two apart: a job
# has the code of the other, and keeps its own name in the design, the plan and the launch kit
TIMED_AS = {Precision.FP8_BLOCK: Precision.FP8_CURRENT}
# codes of the words that formulas ask for
BF16, FP32, FP8, FP8_ROW, MXFP8, FP4 = map(
    PRECISIONS.index, ("bf16", "fp32", "fp8", "fp8-row", "mxfp8", "nvfp4")
)
ZERO1, ZERO2, ZERO3, HSDP = map(SHARDINGS.index, ("zero1", "zero2", "zero3", "hsdp"))
SELECTIVE, FULL = map(RECOMPUTES.index, ("selective", "full"))
HOST_STATES, HOST_ALL = map(OFFLOADS.index, ("optimizer", "optimizer+params"))
ULYSSES = CP_TYPES.index("ulysses")
Code = int | Array  # of a word in its table
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
    # memory of its host over that of one with a link of the fifth generation, both by rate
    host_age: Column = 1.0
    is_tpu: Column = 0.0
    # 1 where FlashAttention-3 or its like exists: Hopper and later, and TPUs' own kernels not
    newer_flash: Column = 0.0
    # outputs of a matrix product that one wave of tiles makes: units x 128 x 256; 0 where there are
    # few large units
    wave_outputs: Column = 0.0


@record
class Job:
    """What one optimizer step must do."""

    seq_len: Column
    global_batch: Column  # sequences
    precision: Code  # in PRECISIONS
    optimizer_bytes: Column = 8.0  # moments per parameter; 8 = two fp32 moments
    master_bytes: Column = 4.0  # fp32 copy of the weights
    grad_bytes: Column = 4.0  # accumulated gradient
    token_bytes: Column = 4.0  # of a token in the shards
    read_bytes_per_s: Column = np.inf  # of the store, for all ranks together
    reads_per_s: Column = np.inf  # sequences that it can hand out
    local_steps: Column = 1  # that sites take between two exchanges; 0: searched
    exchange_bytes: Column = 0.0  # of a value between sites; 0: as wide as the gradients
    exchange_overlap: Column = 0.0  # 1 where the exchange runs beside the steps that follow
    kept_16bit: Column = 0.0  # share of the layers whose products stay in 16 bit
    newton_schulz: Column = 0.0  # iterations that make a matrix orthogonal in the update (Muon)

    @property
    def state_bytes(self) -> Column:
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
    sharding: Code = 0  # in SHARDINGS
    shard_group: Column = 1  # ranks that share one copy under hsdp
    schedule: Code = 1  # in pipeline.SCHEDULES
    micro_batch: Column = 1
    recompute: Code = 0  # in RECOMPUTES
    recompute_share: Column = 1.0  # share of the layers that recompute
    modules: Code = 0  # that `selective` repeats, bits as of recompute.bits_of; 0: the stack's own
    cp_type: Code = 0  # in CP_TYPES
    offload: Code = 0  # in OFFLOADS
    layer_split: Code = 0  # in LAYER_SPLITS


def accumulated(global_batch: Column, dp: Column, micro_batch: Column) -> Column:
    """Micro-batches per replica and step: global_batch / (dp x micro_batch), at least one."""
    return np.maximum(global_batch / (dp * micro_batch), 1.0)


def devices(plan: Plan) -> Column:
    """tp x cp x pp x dp."""
    return plan.tp * plan.cp * plan.pp * plan.dp


@record
class Cases:
    """Columns of shape, job, chip, link, plan and software, with the calibrated constants gathered
    beside them; what follows from those alone and several formulas ask for is worked out once."""

    shape: Shape
    job: Job
    chip: Chip
    link: Link
    plan: Plan
    software: Software
    constants: Constants
    layout: tuple[int, ...] = ()  # bounds of the runs of layers, where a design gives them
    # modules whose inputs wait in host memory, in the share `activation_offload` of the layers;
    # none named is all that the plan keeps; None: of a row that says no more than the share, which
    # takes no time
    offloaded_modules: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return length(self)

    def take(self, index: Any) -> "Cases":
        """The rows at `index`, a slice or an integer or boolean array."""
        return take(self, index)

    def with_plan(self, **columns: Code) -> "Cases":
        """The same cases under another plan."""
        return replace(self, plan=replace(self.plan, **columns))

    # Sizes

    @cached_property
    def devices(self) -> Column:
        """tp x cp x pp x dp."""
        return devices(self.plan)

    @cached_property
    def micro_batches(self) -> Column:
        """Micro-batches per replica and step."""
        return accumulated(self.job.global_batch, self.plan.dp, self.plan.micro_batch)

    @cached_property
    def tokens(self) -> Column:
        """Tokens that one tensor-parallel group holds of a micro-batch: micro_batch x seq_len /
        cp."""
        return self.plan.micro_batch * self.job.seq_len / self.plan.cp

    @cached_property
    def attended(self) -> Column:
        """Tokens of one sequence for attention: all, or those of a document where several are
        packed into it and scores stay within each."""
        document, seq_len = self.software.document_tokens, self.job.seq_len
        return np.where(document > 0, np.minimum(document, seq_len), seq_len)[()]

    @cached_property
    def sequence_shards(self) -> Column:
        """By how much sequence parallelism divides what lies outside the tensor-parallel blocks: tp
        when sp is on, else 1."""
        return np.where(self.plan.sp > 0, self.plan.tp, 1)

    # Groups of ranks

    @cached_property
    def site_ranks(self) -> Column:
        """Data-parallel ranks, cp among them, of the smallest site: what is sharded stays
        inside."""
        replicas = np.floor(self.plan.dp * self.link.smallest_site + 1e-9)
        return np.maximum(replicas, 1.0) * self.plan.cp

    @property
    def shard_ranks(self) -> Column:
        """Ranks among which sharded dense parameters are divided."""
        return np.where(self.plan.sharding == HSDP, self.plan.shard_group, self.site_ranks)

    @cached_property
    def link_under_compute(self) -> Link:
        """The links at the share of a ring's own rate that is left beside compute."""
        link, k = self.link, self.constants
        return replace(
            link,
            up_bytes_per_s=link.up_bytes_per_s * k.scale_up_share,
            out_bytes_per_s=link.out_bytes_per_s * k.scale_out_share,
        )

    def group(self, ranks: Column, packed: Column) -> Wires:
        """The wires of a group of ranks, `packed` others placed before its next member."""
        inside = members_inside(ranks, packed, self.link.domain)
        return Wires(ranks, inside, self.link_under_compute)

    @cached_property
    def tp_group(self) -> Wires:
        """The wires of a tensor-parallel group."""
        return self.group(self.plan.tp, 1)

    @cached_property
    def cp_group(self) -> Wires:
        """The wires of a context-parallel group."""
        return self.group(self.plan.cp, self.plan.tp)

    @cached_property
    def ep_group(self) -> Wires:
        """The wires of an expert-parallel group."""
        return self.group(self.plan.ep, self.plan.etp)

    # Layers

    @cached_property
    def expert_sharding(self) -> Code:
        """Code in SHARDINGS of what the replicas of expert ranks share: at most optimizer states
        where experts have zero1 of their own."""
        own = (self.software.whole_experts == OWN_ZERO1) & (self.plan.ep > 1)
        sharding: Code = np.where(own, np.minimum(self.plan.sharding, ZERO1), self.plan.sharding)[
            ()
        ]
        return sharding

    @cached_property
    def selective_share(self) -> Column:
        """Share of the layers that repeat what `selective` drops."""
        return (self.plan.recompute == SELECTIVE) * self.plan.recompute_share

    @cached_property
    def full_share(self) -> Column:
        """Share of the layers that repeat everything."""
        return (self.plan.recompute == FULL) * self.plan.recompute_share

    @cached_property
    def recomputed(self) -> Recomputed:
        """What recompute repeats, by kind of kernel."""
        return repeated(self.shape, self.software, self.selective_share, self.full_share)

    @cached_property
    def moe_share(self) -> Column:
        """MoE layers over all layers on the pipeline stages that set the pace: a few dense layers
        all stand on the first stage (DeepSeek-V3, section 4.2), more of them are spread evenly."""
        s, pp = self.shape, np.maximum(self.plan.pp, 1)
        share = s.moe_layers / s.layers
        if s.order or not some(share):
            return share
        leading = (s.moe_layers > 0) & (pp > 1) & few_dense(s)
        return np.where(leading, np.minimum(share / np.maximum(1 - 1 / pp, 0.5), 1.0), share)

    # Rates and widths

    @cached_property
    def host_rate(self) -> Column:
        """Bytes/s at which one rank reaches its host's memory: its link, or its share of that
        memory's rate."""
        own = self.constants.host_rank_bytes_per_s * self.chip.host_age
        return np.minimum(self.chip.host_bytes_per_s, own)

    @cached_property
    def dispatch_bytes(self) -> Column:
        """Bytes per value of activations sent to experts: 1 under the fp8 recipes' dispatch, 2 in
        16 bit and fp4; the mean over layers."""
        precision = self.job.precision
        narrow = (precision >= 2) & (precision <= 4) & (self.software.dedup_dispatch > 0)
        return 2.0 - narrow * (1.0 - self.job.kept_16bit)
