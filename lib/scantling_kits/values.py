"""Plain values that a launch plan and the files of a kit are made of."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypedDict

from scantling.base.records import record
from scantling.catalogue.words import MEMORY_PARTS
from scantling.plans.plan_names import PlanRow


@record
class Plan:
    """The plan of a phase as plain values, in the keys and the order of `design --json`."""

    tp: int  # ranks
    cp: int  # ranks
    pp: int  # stages
    vpp: int  # chunks of a stage
    dp: int  # ranks
    ep: int  # ranks
    etp: int  # ranks
    sp: bool
    sharding: str
    shard_group: int  # ranks, those of cp included
    schedule: str
    micro_batch: int  # sequences
    grad_accum: int  # micro-batches of a replica in a step
    recompute: str
    recompute_modules: Sequence[str]
    recompute_layers: int  # of a stage
    layer_split: str
    layout: list[list[int]]  # first layer and end of each virtual stage; [] where even
    cp_type: str
    offload: str
    precision: str

    def as_dict(self) -> dict[str, Any]:
        """The plan by its keys."""
        return asdict(self)

    @property
    def row(self) -> PlanRow:
        """The plan as an assessment has it."""
        return PlanRow(
            tp=self.tp,
            cp=self.cp,
            pp=self.pp,
            vpp=self.vpp,
            dp=self.dp,
            ep=self.ep,
            etp=self.etp,
            sp=self.sp,
            sharding=self.sharding,
            shard_group=self.shard_group,
            schedule=self.schedule,
            micro_batch=self.micro_batch,
            grad_accum=self.grad_accum,
            recompute=self.recompute,
            recompute_modules=self.recompute_modules,
            recompute_layers=self.recompute_layers,
            layer_split=self.layer_split,
            layout=self.layout,
            cp_type=self.cp_type,
            offload=self.offload,
            precision=self.precision,
        )


@record
class DeviceMemory:
    """Memory of the fullest device [bytes]; the five parts sum to the total."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    other: float
    total: float
    capacity: float

    @property
    def parts(self) -> dict[str, float]:
        """Part -> bytes, in the order of `catalogue.words`."""
        values = asdict(self)
        return {part: values[part] for part in MEMORY_PARTS}

    @property
    def state(self) -> float:
        """Weights, gradients and optimizer states [bytes]."""
        return self.weights + self.gradients + self.optimizer

    @property
    def fill(self) -> float:
        """Share of the capacity."""
        return self.total / self.capacity


class Tier(TypedDict):
    """A place where copies live."""

    tier: str  # L0, L1, L2
    every_s: float
    write_s: float
    restores: list[str]  # causes of failures after which it is read


class Traffic(TypedDict):
    """Traffic of one axis in a step (`physics.communication`)."""

    axis: str
    what: str
    group: int  # devices
    tier: str  # scale-up, scale-out
    bytes: float  # of a device
    calls: int
    time_s: float
    exposed_s: float


@record
class SiteExchange:
    """What several sites exchange, and what that costs (`recovery.between_sites`)."""

    sites: int
    kind: str  # synchronous, local-steps
    local_steps: int  # between two exchanges
    exchange_bytes: float  # that leave a site
    exchange_s: float
    share: float  # of the time
    gbits_per_s: float  # between two sites
    rtt_ms: float  # there and back

    @property
    def synchronous(self) -> bool:
        """Whether the sites keep in step."""
        return self.kind == "synchronous"

    @property
    def bytes_in_flight(self) -> float:
        """What is on its way at a time."""
        return self.gbits_per_s * 1e9 / 8 * self.rtt_ms * 1e-3


@record
class Survival:
    """How the run lives through failures."""

    recovery: str  # restart, in-place, elastic
    restart_s: float
    stall_s: float  # that a save holds up training; 0 where not known
    durable_s: float  # from the end of the stall until the copy is whole; 0 where not known
    keep_days: float  # of the daily copies
    tiers: tuple[Tier, ...]  # nearest first; the last is the store that RUN_DIR is on

    @property
    def whole_s(self) -> float:
        """From a save's start until the copy is whole."""
        return self.stall_s + self.durable_s

    @property
    def waited_s(self) -> float:
        """Of the same save where training waits until it is written."""
        return max(self.stall_s, self.durable_s)


class Var(NamedTuple):
    """One environment variable: name, value, why. A value that starts with $ is left for the shell
    to expand."""

    name: str
    value: str
    why: str


class Train(TypedDict):
    """What the kit's own trainers read: the plan, the job, and the arithmetic that they hold
    themselves against."""

    dp: int
    sharding: str
    shards: int
    micro_batch: int
    grad_accum: int
    recompute: str
    recompute_layers: int
    eager: bool  # blocks run uncompiled
    precision: str
    global_batch: int
    seq_len: int
    vocab: int
    steps: int | None
    save_steps: int
    keep: int
    async_save: bool
    seed: int
    lr: float
    flops_per_token: float | None
    peak_flops: float
    state_bytes: dict[str, int]


@record
class RunValues:
    """What is worked out once for all files of a kit."""

    environment: tuple[Var, ...]
    train: Train
    shape: dict[str, Any]  # the model's dimensions, as plan.json and the trainers have them
    wall_s: float | None  # None where the design names no tokens
    lr_source: str  # where the learning rate is from
