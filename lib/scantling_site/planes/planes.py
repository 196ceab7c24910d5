"""Control, compute, data and storage planes of a design: what decides, runs, feeds and remembers;
the step as a timeline; the states.

Two state planes: the training state, sharded over the devices and saved; and the state of the job
(which step, which data, which ranks where), small, kept by the control plane and saved with it. A
copy is consistent when both are of the same step.
"""

from scantling.base import show
from scantling.base.records import Lines, Record, record
from scantling.base.units import DAY_S
from scantling.catalogue.words import Sharding
from scantling.endure import checkpoint
from scantling.endure.first_step import communicator_init_s

from ..constants import CONSTANTS
from ..job_site import Site
from ..network.traffic import axes, bursts
from ..placement import placement
from ..storage import corpus
from .operations import CollectiveRow, collectives
from .timeline import Piece, timeline

Figures = dict[str, float | None]


@record
class Plane(Record):
    """One plane: its question, what answers it here, how much of it there is, what happens without
    it."""

    plane: str  # control | compute | data | storage
    role: str  # decides | runs | feeds | remembers
    what: str
    where: str
    rate_bytes_per_s: float
    figures: Figures
    without: str


@record
class State(Record):
    """One item of the state: bytes of one whole copy, who holds it, what a copy without it does."""

    item: str
    plane: str  # training | job
    bytes: float
    # its share of a save where all devices write; of what is not saved, what it holds
    bytes_per_device: float
    held: str
    saved: bool
    without: str


@record
class Planes(Record):
    """Everything point by point."""

    planes: tuple[Plane, ...]
    timeline: tuple[Piece, ...]
    step_s: float
    collectives: tuple[CollectiveRow, ...]
    states: tuple[State, ...]
    training_state_bytes: float
    job_state_bytes: float
    checkpoint_bytes: float
    checkpoint_parts: dict[str, float]
    consistent: Lines  # what one copy must have for a resume to be exact


def planes(s: Site) -> Planes:
    """Planes, step and states of the main phase's plan."""
    items = states(s)
    parts = contents(s)
    return Planes(
        planes=(control_plane(s), compute_plane(s), data_plane(s), storage_plane(s)),
        timeline=timeline(s),
        step_s=s.step_s,
        collectives=collectives(s),
        states=items,
        training_state_bytes=sum(x.bytes for x in items if x.plane == "training" and x.saved),
        job_state_bytes=sum(x.bytes for x in items if x.plane == "job" and x.saved),
        checkpoint_bytes=parts.total,
        checkpoint_parts=parts.as_dict(),
        consistent=consistent(s, parts),
    )


def contents(s: Site) -> checkpoint.Contents:
    """Bytes of one whole copy, the same that the checkpoint figures count."""
    n = s.a.resolved.params
    return checkpoint.contents(
        float(n.total + n.mtp), optimizer=s.phase.optimizer, ranks=s.used, readers=s.plan["dp"]
    )


def states(s: Site) -> tuple[State, ...]:
    """What is held where. Training state by checkpoint.contents; working gradients, activations and
    buffers live for one step only."""
    return (*_training_states(s), *_job_states(s), *_working_states(s))


def _training_states(s: Site) -> tuple[State, ...]:
    parts = contents(s)
    shards = sharded(s)

    def state(item: str, size: float, holder: str, without: str) -> State:
        return State(
            item=item,
            plane="training",
            bytes=size,
            bytes_per_device=size / s.used,
            held=holder,
            saved=True,
            without=without,
        )

    return (
        state("weights", parts.weights, shards, "nothing to resume from"),
        state(
            "master weights",
            parts.master_weights,
            shards,
            "rounded weights restart the run off its path",
        ),
        state(
            "optimizer moments",
            parts.moments,
            shards,
            "the first steps after a resume are steps of a fresh optimizer: a loss spike",
        ),
        state(
            "random-number states",
            parts.rng,
            f"one per rank, {s.used:,}",
            "dropout and sampling differ: no bit-exact resume",
        ),
    )


def _job_states(s: Site) -> tuple[State, ...]:
    def state(item: str, size: float, holder: str, saved: bool, without: str) -> State:
        return State(
            item=item,
            plane="job",
            bytes=size,
            bytes_per_device=0.0,
            held=holder,
            saved=saved,
            without=without,
        )

    return (
        state(
            "data position",
            contents(s).dataloader,
            f"one per reader, {s.plan['dp']:,}: epoch, seed, shard, offset",
            True,
            "tokens are read twice or skipped, and the token budget is wrong",
        ),
        state(
            "schedule and versions",
            CONSTANTS.schedule_bytes,
            "one, at the launcher",
            True,
            "a wrong learning rate, or a layout that nobody can load",
        ),
        state(
            "ranks to nodes",
            16.0 * s.used,
            f"one map of {s.used:,} ranks at the scheduler",
            False,
            "made anew at every start; a copy must not depend on it",
        ),
        state(
            "health of nodes",
            CONSTANTS.heartbeat_bytes * s.nodes,
            "scheduler's database",
            False,
            "a bad node is given work again",
        ),
    )


def _working_states(s: Site) -> tuple[State, ...]:
    memory = s.a.memory_bytes

    def state(item: str, bytes_per_device: float, holder: str) -> State:
        return State(
            item=item,
            plane="training",
            bytes=bytes_per_device * s.used,
            bytes_per_device=bytes_per_device * s.used / s.used,
            held=holder,
            saved=False,
            without="none: a save lies between steps",
        )

    return (
        state("gradients", memory["gradients"], "each device, for one step"),
        state("activations", memory["activations"], "each device, for one micro-batch in flight"),
    )


def sharded(s: Site) -> str:
    """Over how many devices the training state is spread."""
    model = s.plan["tp"] * s.plan["pp"]
    group = model * s.plan["shard_group"]
    sharding = s.plan["sharding"]
    if sharding == Sharding.NONE:
        return f"tp x pp = {model:,} ways, a copy per replica"
    if sharding == Sharding.ZERO3:
        return f"all of it {group:,} ways"
    if sharding == Sharding.HSDP:
        return f"all of it {group:,} ways, a copy per shard group"
    return f"weights {model:,} ways, moments and masters {group:,} ways"


def consistent(s: Site, parts: checkpoint.Contents) -> Lines:
    """What one copy must have for a resume to be exact."""
    return (
        f"the same step on all {s.used:,} writers: the snapshot is taken between optimizer and "
        f"next forward ({s.e.checkpoint_stall_s:.2f} s), {show.size(parts.total / s.used)} a "
        "device",
        f"model {show.size(parts.weights)}, masters {show.size(parts.master_weights)}, "
        f"moments {show.size(parts.moments)}, random states {show.size(parts.rng)}, data "
        f"position {show.size(parts.dataloader)}",
        f"the data position is that step's: sequence {s.phase.global_batch:,} x step, the same "
        f"whatever dp is, so that {s.plan['dp']:,} readers or fewer resume alike",
        "a manifest written last: a copy without it does not exist; the one before stays until it "
        "does",
    )


def control_plane(s: Site) -> Plane:
    """Scheduler, launcher, rendezvous, health checks."""
    plan = s.plan
    sizes = plan["tp"], plan["cp"], plan["pp"], plan["dp"] * plan["cp"]
    return Plane(
        plane="control",
        role="decides",
        what="scheduler, launcher, rendezvous, health checks",
        where=f"outside the job; an agent on each of {s.nodes:,} nodes",
        rate_bytes_per_s=CONSTANTS.heartbeat_bytes * s.nodes / CONSTANTS.heartbeat_s,
        figures={
            "nodes": s.nodes,
            "ranks": s.used,
            "communicators": sum(s.used // size for size in sizes if size > 1),
            "start_of_communicators_s": float(communicator_init_s(s.used)),
            "spare_nodes": s.spares,
            "interruptions_per_day": DAY_S / s.e.mtbf_s,
            "detect_s": s.e.detect_s,
            "restart_s": s.e.restart_s,
        },
        without="the step in flight ends; nothing restarts after the next failure",
    )


def compute_plane(s: Site) -> Plane:
    """The devices under the plan."""
    plan = s.plan
    experts = f", ep {plan['ep']}" if plan["ep"] > 1 else ""
    return Plane(
        plane="compute",
        role="runs",
        what=(
            f"tp {plan['tp']} x cp {plan['cp']} x pp {plan['pp']} x dp {plan['dp']}{experts}, "
            f"{plan['schedule']}, {plan['sharding']}"
        ),
        where=f"{s.used:,} {s.cluster.accelerator.name}",
        rate_bytes_per_s=bursts(s, axes(s, placement(s))).mean_bytes_per_s * s.used,
        figures={
            "step_s": s.step_s,
            "micro_batches": s.micro_batches,
            "mfu": s.a.mfu_shown,
            "model_tflops": s.a.model_tflops_per_device * s.used,
            "memory_bytes_per_device": s.a.memory_bytes["total"],
        },
        without=f"all {s.used:,} devices wait at the same barrier",
    )


def data_plane(s: Site) -> Plane:
    """Token shards and their readers."""
    tokens = corpus(s)
    shards = f"{tokens.shards:,} " if s.tokens else ""
    return Plane(
        plane="data",
        role="feeds",
        what=f"{shards}token shards, memory mapped, dealt by (epoch, seed, dp rank)",
        where=f"{s.plan['dp']:,} readers, on the hosts",
        rate_bytes_per_s=tokens.read_bytes_per_s,
        figures={
            "tokens_per_step": s.batch_tokens,
            "bytes_per_step": tokens.read_bytes_per_s * s.step_s,
            "corpus_bytes": tokens.bytes if s.tokens else None,
            "token_bytes": tokens.token_bytes,
            "read_bytes_per_s_per_reader": tokens.read_bytes_per_s_per_reader,
        },
        without="the devices idle once the prefetched batches are used",
    )


def storage_plane(s: Site) -> Plane:
    """The copies of the state, from host memory to the object store."""
    e = s.e
    return Plane(
        plane="storage",
        role="remembers",
        what=f"snapshot in host memory, peer copy, {s.cluster.storage}, object store",
        where="host memory, a peer's disk, file system, object store",
        rate_bytes_per_s=e.checkpoint_bytes / e.checkpoint_interval_s,
        figures={
            "checkpoint_bytes": e.checkpoint_bytes,
            "interval_s": e.checkpoint_interval_s,
            "stall_s": e.checkpoint_stall_s,
            "durable_s": e.checkpoint_durable_s,
            "steps_between": e.checkpoint_interval_s / s.step_s,
            "copies_kept": e.retention,
        },
        without=(
            "a failure costs everything since the last copy that is left, "
            f"{e.lost_work_s / 60:,.0f} min at worst with saves running"
        ),
    )
