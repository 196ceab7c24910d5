"""What a launch kit is made from: a framework, and one phase of an assessment as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import ceil, gcd, nan
from typing import Any, NamedTuple

from scantling import catalogue
from scantling.advise.recovery import between_sites
from scantling.base.records import Lines, record
from scantling.catalogue.families import Family, family
from scantling.catalogue.hardware import Fabric
from scantling.catalogue.models.shape import Model, Params
from scantling.catalogue.words import Recompute
from scantling.design.cluster import Cluster
from scantling.design.resolved import Phase
from scantling.endure.spares import Segments, segments
from scantling.physics.software import Software
from scantling.plans.plan_names import PlanRow
from scantling.plans.space import Space
from scantling.verdict.assessment import Assessment, Numbers
from scantling.verdict.result import Line
from scantling_site.rollout.watch import hang_timeout_s
from scantling_site.scheduler.request import stop_lead_s

from .values import DeviceMemory, Plan, RunValues, SiteExchange, Survival, Tier, Traffic

LAYOUTS = ("torchrun", "slurm", "kubernetes")
SEED = 1234
# of a collective before the first step is done: PyTorch's own for NCCL is 600 s
FIRST_HANG_S = 1800
Pins = dict[str, Any]  # field of a plan -> the value that a design file fixes


@dataclass(frozen=True)
class Gap:
    """One thing of the plan that a framework cannot express: the field, its value, why, and what
    stands there instead."""

    field: str
    value: Any  # of the field, of whatever kind it is
    why: str
    instead: Any = None  # a value of the field, or words
    cost: str = ""


@record
class Domain:
    """The values of one field of a plan that a framework has words for, the preferred first, and
    why no others."""

    values: tuple[Any, ...]
    why: str = ""


class Install(NamedTuple):
    """A shell line that installs, and what is said of it."""

    command: str
    remark: str = ""
    chips: Lines = ()  # vendor stacks that it is for; of none: for all


@record
class Saves:
    """A framework's checkpoints in words."""

    format: str
    place: str
    resume: str
    hand_over: str
    begin: str = ""  # what INIT names: where weights come from that a run begins with
    of_shards: str = ""  # the format under ZeRO-2 and 3, where it is another


@record
class Knobs:
    """Where a framework sets what of a plan is turned in a need."""

    micro_batch: str
    recompute: str
    offload: str
    sharding: Mapping[str, str]  # of a plan -> what shards more than that
    spill: str  # what a plan that is too large is split into


def same_model(model: Model) -> Model:
    """The framework builds every model."""
    return model


def same_pins(pins: Pins, launch: LaunchPlan, outside: set[str]) -> Pins:
    """No pin stands in the way of another."""
    return pins


def no_text(launch: LaunchPlan) -> str:
    """Nothing is said."""
    return ""


def last_rank(launch: LaunchPlan) -> str:
    """The last of a node: Megatron prints on the last rank of all (print_rank_last)."""
    return "$((PER_NODE - 1))"


@record
class Framework:
    """One framework that kits are written for: facts, and functions of a launch plan."""

    id: str
    package: str  # on the package index
    version: str
    file: str  # its own configuration
    chips: Lines  # vendor stacks that it runs on
    launcher: str  # what starts the processes: torchrun, accelerate or python
    runtime: str  # torch or jax
    has_trainer: bool  # the kit writes the training loop
    transformer_engine: bool  # it is built on Transformer Engine
    reads_by_position: bool  # data are token ids, read by position
    saves_in_background: bool  # training goes on while a checkpoint is written
    # "file": a file `stop` in RUN_DIR ends the run after a checkpoint; "term": SIGTERM does; "":
    # nothing saves before the end
    stop: str
    whole: str  # the file below RUN_DIR, as a glob, that is written last of a checkpoint
    domain: Mapping[str, Domain]  # field of a plan -> what it has words for; not there: all
    saves: Saves
    install: tuple[Install, ...]  # for one stack of a vendor: `installs`
    data: str  # what DATA is
    log: str  # where loss, norm and throughput appear
    profile: str  # how to take one; its memory after "Memory: "
    skip: str  # how to leave out batches
    rehearse: str  # how to end after 100 steps
    knobs: Knobs
    mock_data: str  # the run without DATA
    stragglers: str  # how slow ranks are found
    network_limit: str  # what to do where gradients are exposed
    command: str  # what the launcher starts
    files: Callable[[LaunchPlan, RunValues], dict[str, str]]  # its own files by name
    gaps: Callable[[LaunchPlan], Iterable[Gap]]  # what else of model and plan it lacks
    notes: Callable[[LaunchPlan], list[str]]  # what no field of the plan says and it had to choose
    keep: Callable[[int, float], str]  # what becomes of old checkpoints: copies, days -> words
    syncs: Lines  # kinds of job.sync in which it keeps several sites in step
    sites: Callable[[LaunchPlan], str]  # what the kit sets for several sites
    no_local_steps: str = ""  # why it keeps them no other way
    # whose lines name the loss: the rank of its node, as the shell writes it; "": the first of all
    loss_rank: Callable[[LaunchPlan], str] = no_text
    prepare: str = ""  # shell lines before the command
    source: str = ""  # the variable that names the folder of its checkout
    # a glob below RUN_DIR of the checkpoints whose oldest launch.sh removes, where the framework
    # has no word for it
    thins: str = ""
    equivalent: Callable[[LaunchPlan], str] = no_text  # the command of its own launcher
    ordered_launch: bool = False  # it demands that kernels start in order
    packs: Lines = ()  # vendor stacks on which attention stays within packed documents
    # layout of the model's states between steps: "fp32 shards", "16-bit with master"; "" not stated
    states: str = ""
    keeps_16bit: bool = False  # layers at both ends stay in 16 bit beside others in 8 or 4
    whole_key_heads: bool = False  # every tensor-parallel rank has whole key-value heads
    selects_operations: bool = False  # `selective` has a list of operations that are kept
    modules: Mapping[str, str] = field(default_factory=dict)  # `selective` repeats: its words
    # modules whose inputs it sends to the host: its words for these
    offloads: Mapping[str, Lines] = field(default_factory=dict)
    # word of a model's pattern that its kit builds -> its own letter
    blocks: Mapping[str, str] = field(default_factory=dict)
    forces_even_routing: str = ""  # its option by which experts get equal shares of random tokens
    without_transformer_engine: str = ""  # what is said where the chip has none
    # axes that the search for another plan fixes
    space: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    adjust: Callable[[Pins, LaunchPlan, set[str]], Pins] = same_pins  # pins of a nearest plan
    builds: Callable[[Model], Model] = same_model  # the model in place of one it cannot build

    def installs(self, chip: str) -> list[Install]:
        """What is installed for devices of a vendor's stack."""
        return [one for one in self.install if not one.chips or chip in one.chips]

    @property
    def offers(self) -> dict[str, tuple[Any, ...]]:
        """Axis of a plan -> the values that the framework has words for, of the axes that a search
        varies."""
        axes = {axis.name for axis in fields(Space)} - {"precision"}
        stated = {name: domain.values for name, domain in self.domain.items()}
        stated |= self.space
        return {name: values for name, values in stated.items() if name in axes}


def rotary_base(model: Model) -> int:
    """Base of the rotary positions: the model's own, where it is not known Llama 3's, and
    DeepSeek's under latent attention."""
    return round(model.rope_base) or (10_000 if model.attention == "mla" else 500_000)


def norm_epsilon(model: Model) -> float:
    """What the norms add to the variance: the model's own, where it is not known the usual."""
    return model.norm_epsilon or 1e-5


def constants_source(model: Model) -> str:
    """Where the rotary base and the norms' epsilon come from."""
    known = model.norm_epsilon and (model.rope_base or model.position_rows)
    return "the model's own" if known else "the model's own are not known here, set them"


def known(value: float | None) -> float:
    """A figure of a plan that is launched. Raises ValueError where there is none."""
    if value is None:
        raise ValueError("an impossible design has no plan to launch")
    return value


def no_lines() -> list[str]:
    """No limits to print."""
    return []


def no_reasons() -> list[Line]:
    """No reasons to print."""
    return []


@record
class LaunchPlan:
    """One phase of a design with its plan, as a framework's module needs it. Bytes, seconds."""

    assessment: Assessment  # that the phase is of
    name: str
    slug: str
    framework: Framework
    on: str
    model: Model
    params: Params
    cluster: Cluster
    phase: Phase
    does: Software  # what the step counts on of the framework's options
    plan: Plan
    devices: int
    runs: tuple[int, ...]  # layers of each virtual stage, in the order in which a token meets them
    memory: DeviceMemory
    step_s: float
    figures: Numbers  # of the plan that is launched; days and dollars of all phases
    survival: Survival
    reasons: Callable[[], list[Line]] = no_reasons  # asked for where printed
    communication: tuple[Traffic, ...] = ()
    limits: Callable[[], Iterable[str]] = no_lines
    assumed: tuple[dict[str, Any], ...] = ()
    gaps: tuple[Gap, ...] = ()
    assessed: Plan  # the assessment's own
    assessed_step_s: float = nan
    stack: str | None = None
    dispatcher: str = ""  # what the design names to send tokens to experts
    keep: int = 3  # checkpoints that stay beside the one being written
    later: bool = False  # another phase comes before it
    time_share: float = 1.0  # of the training time of all phases that this one takes
    run_tokens: float = 0.0  # of all phases; 0 where a design names none
    leaf_nodes: int = 1  # nodes below one set of leaf switches of the network
    # (plan, step_s) of what the framework runs clearly faster once the design's own pins may move
    faster: tuple[PlanRow, float] | None = None

    @property
    def parameters(self) -> int:
        """All parameters of the model, without modules that predict further tokens."""
        return int(self.params.total)

    @property
    def begins(self) -> bool:
        """Whether it begins with weights: of a checkpoint, or of the phase before it."""
        return self.phase.from_checkpoint or self.later

    @property
    def repeats_operations(self) -> bool:
        """Whether `selective` repeats all operations but those of a list, and no module by name."""
        p = self.plan
        return p.recompute == Recompute.SELECTIVE and not p.recompute_modules

    @property
    def routes_at_random(self) -> bool:
        """Whether the kit sends tokens to experts evenly, whatever the router says."""
        forced = bool(self.does.even_routing == 1) and self.model.is_moe
        return forced and bool(self.framework.forces_even_routing)

    @property
    def to(self) -> str:
        """The framework's id."""
        return self.framework.id

    @property
    def stages(self) -> list[int]:
        """Layers of each pipeline stage."""
        pp = self.plan.pp
        return [sum(self.runs[i::pp]) for i in range(pp)]

    @property
    def per_node(self) -> int:
        """Devices of a full node that the run uses."""
        return min(self.cluster.devices_per_node, self.devices)

    @property
    def nodes(self) -> int:
        """Nodes of the run, spares not counted."""
        return -(-self.devices // self.per_node)

    @property
    def last_node(self) -> int:
        """Devices of the last node: fewer than `per_node` where the devices are no multiple of
        it."""
        return self.devices - (self.nodes - 1) * self.per_node

    @property
    def steps(self) -> int | None:
        """Optimizer steps of the phase; None without tokens."""
        job = self.phase
        if job.tokens is None:
            return None
        return max(1, ceil(job.tokens / (job.global_batch * job.seq_len)))

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """Where copies live, nearest first; the last is the store that RUN_DIR is on."""
        return self.survival.tiers

    @property
    def save_steps(self) -> int:
        """Steps between checkpoints in RUN_DIR: the interval of the assessment, at least one
        step."""
        steps = max(1, round(self.tiers[-1]["every_s"] / self.step_s))
        return steps if self.steps is None else min(steps, self.steps)

    @property
    def near_save_steps(self) -> int:
        """Steps between copies at the nearest tier."""
        return max(1, round(self.tiers[0]["every_s"] / self.step_s))

    @property
    def save_s(self) -> float:
        """Seconds between checkpoints in RUN_DIR."""
        return self.save_steps * self.step_s

    @property
    def joined(self) -> bool:
        """Whether NVLink joins devices of several nodes of the run."""
        k = self.cluster
        return self.kin.imex and self.nodes > 1 and k.scale_up_domain > k.devices_per_node

    @property
    def stands(self) -> Segments:
        """How the nodes stand in racks that NVLink joins."""
        return segments(self.cluster, self.nodes)

    @property
    def segment_nodes(self) -> int:
        """Nodes of one segment that train; 1 where a node is the domain."""
        return int(self.stands.size)

    @property
    def segment_group(self) -> int:
        """Nodes of one segment with the trays that stand by in its rack."""
        return int(self.stands.group(self.covered))

    @property
    def covered(self) -> int:
        """Losses of a node at a time that the design's spares cover."""
        endurance = self.assessment.endurance
        if endurance is None:
            return 0
        return int(endurance.segments.covered(self.figures.spares))

    @property
    def slices(self) -> int:
        """Slices of TPUs that the run takes: the fewest that hold it and share hosts and
        data-parallel ranks evenly; 1 elsewhere."""
        if not self.kin.torus:
            return 1
        sites = self.cluster.sites
        fewest = max(sites, -(-self.devices // self.cluster.accelerator.scale_up_domain_max))
        shared = gcd(self.nodes, self.plan.dp)
        return next((n for n in range(fewest, self.nodes + 1) if shared % n == n % sites == 0), 1)

    @property
    def sync(self) -> str:
        """How several sites keep in step, synchronous or local-steps; "" on one site."""
        if self.cluster.sites == 1:
            return ""
        return "local-steps" if self.cluster.sync.apart else "synchronous"

    @property
    def between(self) -> SiteExchange | None:
        """What several sites exchange; None on one site."""
        row = between_sites(self.assessment)
        if row is None:
            return None
        return SiteExchange(
            sites=row["sites"],
            kind=row["kind"],
            local_steps=row["local_steps"],
            exchange_bytes=row["exchange_bytes"],
            exchange_s=row["exchange_s"],
            share=row["share"],
            gbits_per_s=row["gbits_per_s"],
            rtt_ms=row["rtt_ms"],
        )

    @property
    def shards(self) -> int:
        """Data-parallel ranks that share one copy of what is sharded: a shard group, else those of
        one site."""
        return self.plan.shard_group // self.plan.cp

    @property
    def spares(self) -> int:
        """Nodes held beside those that train: trays of the same racks, or whole segments. None on a
        torus: a slice is wired when it is handed out, and no host of another takes a place in
        it."""
        return 0 if self.kin.torus else int(self.stands.nodes(self.covered))

    @property
    def by_queue(self) -> bool:
        """Whether Slurm hands out other nodes after a failure: the job goes back to the queue."""
        return self.survival.recovery == "restart" or self.kin.torus

    @property
    def chip(self) -> str:
        """The vendor whose words the templates speak: nvidia, amd, tpu or other."""
        return self.kin.vendor_stack

    @property
    def gpu(self) -> bool:
        """Whether NCCL or RCCL is the library of its collectives."""
        return self.chip in ("nvidia", "amd")

    @property
    def kin(self) -> Family:
        """The family of the accelerator."""
        return family(self.cluster.accelerator.family)

    @property
    def network(self) -> Fabric | None:
        """The fabric between nodes; None on one node."""
        return catalogue.fabric(self.cluster.scale_out) if self.nodes > 1 else None

    @property
    def networked(self) -> bool:
        """Whether NCCL or RCCL talks between nodes."""
        return self.nodes > 1 and bool(self.kin.collectives)

    @property
    def lead_s(self) -> int:
        """Seconds between the signal to stop and the end, as the scheduler is asked for."""
        return stop_lead_s(self.step_s, self.survival.whole_s)

    @property
    def hang_s(self) -> int:
        """Seconds of silence in a collective after which the run is given up, once it steps."""
        between = self.between if self.sync else None
        exchange_s = between.exchange_s if between else 0.0
        return ceil(hang_timeout_s(self.step_s, max(self.survival.stall_s, exchange_s)))

    @property
    def first_hang_s(self) -> int:
        """The same for the first step, which waits for the slowest node to read weights and to
        compile, in whole minutes."""
        return 60 * ceil(max(FIRST_HANG_S, self.lead_s, 2 * self.hang_s) / 60)

    @property
    def dp_exposed(self) -> float:
        """Share of the step for which data-parallel traffic is exposed."""
        return sum(r["exposed_s"] / self.step_s for r in self.communication if r["axis"] == "dp")

    @property
    def dp_tier(self) -> str:
        """The tier of data-parallel traffic; "" without any."""
        return next((r["tier"] for r in self.communication if r["axis"] == "dp"), "")
