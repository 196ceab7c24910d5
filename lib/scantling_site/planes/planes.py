"""Control, compute, data and storage planes of a design: what decides, runs, feeds and remembers;
the step as a timeline; the states.

Two state planes: the training state, sharded over the devices and saved; and the state of the job
(which step, which data, which ranks where), small, kept by the control plane and saved with it. A
copy is consistent when both are of the same step.
"""

from scantling.base.records import Lines, Record, record
from scantling.base.units import DAY_S
from scantling.endure import checkpoint
from scantling.endure.first_step import communicator_init_s

from ..network.traffic import axes, bursts
from ..placement import placement
from ..site import Site
from ..storage import corpus
from ..texts import constant, fill, records, texts
from .step import CollectiveRow, Piece, collectives, timeline


@record
class Plane(Record):
    """One plane: its question, what answers it here, how much of it there is, what happens without
    it."""

    plane: str  # control | compute | data | storage
    role: str  # decides | runs | feeds | remembers
    what: str
    where: str
    rate_bytes_per_s: float
    figures: dict
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
    checkpoint_parts: dict
    consistent: Lines  # what one copy must have for a resume to be exact


def planes(s: Site) -> Planes:
    """Planes, step and states of the main phase's plan."""
    found = states(s)
    parts = contents(s)
    training, job = (
        sum(x.bytes for x in found if x.plane == plane and x.saved) for plane in ("training", "job")
    )
    return Planes(
        planes=of_the_design(s),
        timeline=timeline(s),
        step_s=s.step_s,
        collectives=collectives(s),
        states=found,
        training_state_bytes=training,
        job_state_bytes=job,
        checkpoint_bytes=parts.total,
        checkpoint_parts=parts.as_dict(),
        consistent=fill(texts("planes", "consistent"), s, parts=parts, each=parts.total / s.used),
    )


def contents(s: Site) -> checkpoint.Contents:
    """Bytes of one whole copy, the same that the checkpoint figures count."""
    n = s.a.resolved.params
    return checkpoint.contents(
        n.total + n.mtp, optimizer=s.phase.optimizer, ranks=s.used, readers=s.plan["dp"]
    )


def states(s: Site) -> tuple:
    """What is held where. Training state by checkpoint.contents; working gradients, activations and
    buffers live for one step only."""
    plan = s.plan
    memory = s.figures["memory_bytes"]
    words = texts("planes")
    model = plan["tp"] * plan["pp"]
    table = fill(
        words["states"],
        s,
        parts=contents(s),
        shards=fill(
            words["shards"][plan["sharding"]], model=model, group=model * plan["shard_group"]
        ),
        health_bytes=constant("heartbeat_bytes") * s.nodes,
        gradients=memory["gradients"] * s.used,
        activations=memory["activations"] * s.used,
    )
    return tuple(
        State(**row, bytes_per_device=row["bytes"] / s.used if row["plane"] == "training" else 0.0)
        for row in table
    )


def of_the_design(s: Site) -> tuple:
    """The four planes with this design's numbers."""
    plan = s.plan
    n = s.used
    sizes = plan["tp"], plan["cp"], plan["pp"], plan["dp"] * plan["cp"]
    fed = corpus(s)
    return records(
        Plane,
        texts("planes", "planes"),
        s,
        heartbeats=constant("heartbeat_bytes") * s.nodes / constant("heartbeat_s"),
        communicators=sum(n // size for size in sizes if size > 1),
        start_s=communicator_init_s(n),
        interruptions=DAY_S / s.e.mtbf_s,
        experts=f", ep {plan['ep']}" if plan["ep"] > 1 else "",
        sent=bursts(s, axes(s, placement(s))).mean_bytes_per_s * n,
        tflops=s.figures["model_tflops_per_device"] * n,
        corpus=fed,
        shards=f"{fed.shards:,} " if s.tokens else "",
        tokens=s.batch_tokens,
        read_bytes=fed.read_bytes_per_s * s.step_s,
        corpus_bytes=fed.bytes if s.tokens else None,
        saved=s.e.checkpoint_bytes / s.e.checkpoint_interval_s,
        between=s.e.checkpoint_interval_s / s.step_s,
        retention=s.e.retention,
    )
