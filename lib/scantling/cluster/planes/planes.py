"""Control, compute, data and storage planes of a design: what decides, runs, feeds and remembers;
the step as a timeline; the states.

Two state planes: the training state, sharded over the devices and saved; and the state of the job
(which step, which data, which ranks
where), small, kept by the control plane and saved with it. A copy is consistent when both are of
the same step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.records import Record
from ...base.units import DAY_S
from ...endure import checkpoint, storage
from ...endure.reliability import communicator_init_s
from ...physics.cases import micro_batches
from ..network.network import network
from .step import CollectiveRow, Piece, collectives, timeline

HEARTBEAT_S = 30.0  # period of a node's health report
HEARTBEAT_BYTES = 1024
SCHEDULE_BYTES = 4096  # step, learning-rate schedule, batch ramp, loss-scale state, plan, versions


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class State(Record):
    """One item of the state: bytes of one whole copy, who holds it, what a copy without it does."""

    item: str
    plane: str  # training | job
    bytes: float
    bytes_per_device: (
        float  # its share of a save where all devices write; of what is not saved, what it holds
    )
    held: str
    saved: bool
    without: str


@dataclass(frozen=True)
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
    consistent: tuple[str, ...]  # what one copy must have for a resume to be exact


def planes(assessment) -> Planes:
    """Planes, step and states of the main phase's plan."""
    assessment = getattr(assessment, "a", assessment)
    found = states(assessment)
    parts = contents(assessment)
    total = lambda plane: sum(s.bytes for s in found if s.plane == plane and s.saved)  # noqa: E731
    return Planes(
        of_the_design(assessment),
        timeline(assessment),
        float(assessment.figures["step_s"]),
        collectives(assessment),
        found,
        total("training"),
        total("job"),
        float(parts.total),
        parts.as_dict(),
        consistent(assessment, parts),
    )


def contents(assessment) -> checkpoint.Contents:
    """Bytes of one whole copy, the same that the checkpoint figures count."""
    n, plan = assessment.resolved.params, assessment.chosen.plan
    return checkpoint.contents(
        n.total + n.mtp,
        optimizer=assessment.chosen.phase.optimizer,
        ranks=assessment.figures["devices_used"],
        readers=plan["dp"],
    )


def states(assessment) -> tuple[State, ...]:
    """What is held where. Training state by checkpoint.contents; working gradients, activations and
    buffers live for one step only."""
    parts, plan = contents(assessment), assessment.chosen.plan
    n, readers = assessment.figures["devices_used"], plan["dp"]
    model = plan["tp"] * plan["pp"]
    shards = {
        "none": f"tp x pp = {model:,} ways, a copy per replica",
        "zero1": (
            f"weights {model:,} ways, moments and masters {model * plan['dp'] * plan['cp']:,} ways"
        ),
        "zero2": (
            f"weights {model:,} ways, moments and masters {model * plan['dp'] * plan['cp']:,} ways"
        ),
        "zero3": f"all of it {model * plan['dp'] * plan['cp']:,} ways",
        "hsdp": f"all of it {model * plan['shard_group']:,} ways, a copy per shard group",
    }[plan["sharding"]]
    memory = assessment.figures["memory_bytes"]
    grads = float(memory["gradients"])
    return (
        State(
            "weights",
            "training",
            parts.weights,
            parts.weights / n,
            shards,
            True,
            "nothing to resume from",
        ),
        State(
            "master weights",
            "training",
            parts.master_weights,
            parts.master_weights / n,
            shards,
            True,
            "rounded weights restart the run off its path",
        ),
        State(
            "optimizer moments",
            "training",
            parts.moments,
            parts.moments / n,
            shards,
            True,
            "the first steps after a resume are steps of a fresh optimizer: a loss spike",
        ),
        State(
            "random-number states",
            "training",
            parts.rng,
            parts.rng / n,
            f"one per rank, {n:,}",
            True,
            "dropout and sampling differ: no bit-exact resume",
        ),
        State(
            "data position",
            "job",
            parts.dataloader,
            0.0,
            f"one per reader, {readers:,}: epoch, seed, shard, offset",
            True,
            "tokens are read twice or skipped, and the token budget is wrong",
        ),
        State(
            "schedule and versions",
            "job",
            float(SCHEDULE_BYTES),
            0.0,
            "one, at the launcher",
            True,
            "a wrong learning rate, or a layout that nobody can load",
        ),
        State(
            "ranks to nodes",
            "job",
            16.0 * n,
            0.0,
            f"one map of {n:,} ranks at the scheduler",
            False,
            "made anew at every start; a copy must not depend on it",
        ),
        State(
            "health of nodes",
            "job",
            float(HEARTBEAT_BYTES) * assessment.resolved.cluster.nodes,
            0.0,
            "scheduler's database",
            False,
            "a bad node is given work again",
        ),
        State(
            "gradients",
            "training",
            grads * n,
            grads,
            "each device, for one step",
            False,
            "none: a save lies between steps",
        ),
        State(
            "activations",
            "training",
            float(memory["activations"]) * n,
            float(memory["activations"]),
            "each device, for one micro-batch in flight",
            False,
            "none: a save lies between steps",
        ),
    )


def consistent(assessment, parts) -> tuple[str, ...]:
    """What one copy must have in common, with this design's numbers."""
    plan, phase = assessment.chosen.plan, assessment.chosen.phase
    n = assessment.figures["devices_used"]
    e = assessment.endurance
    each = float(parts.total) / n
    stride = phase.global_batch
    return (
        (
            f"the same step on all {n:,} writers: the snapshot is taken between optimizer "
            f"and next forward ({float(e.checkpoint_stall_s):.2f} s), {each / 1e6:,.0f} MB a "
            f"device"
        ),
        (
            f"model {parts.weights / 1e9:,.1f} GB, masters {parts.master_weights / 1e9:,.1f} "
            f"GB, moments {parts.moments / 1e9:,.1f} GB, random states "
            f"{parts.rng / 1e6:,.1f} MB, data position {parts.dataloader / 1e3:,.1f} kB"
        ),
        (
            f"the data position is that step's: sequence {stride:,} x step, the same "
            f"whatever dp is, so that {plan['dp']:,} readers or fewer resume alike"
        ),
        (
            "a manifest written last: a copy without it does not exist; the one before "
            "stays until it does"
        ),
    )


def of_the_design(assessment) -> tuple[Plane, ...]:
    """The four planes with this design's numbers."""
    chosen, cluster, r = assessment.chosen, assessment.resolved.cluster, assessment.resolved
    plan, phase, f, e = chosen.plan, chosen.phase, assessment.figures, assessment.endurance
    n, nodes = f["devices_used"], cluster.nodes
    m = int(round(float(micro_batches(chosen.case.job, chosen.case.plan))))
    tokens = sum(c.phase.tokens or 0.0 for c in assessment.phases)
    corpus = storage.corpus(
        tokens or phase.global_batch * phase.seq_len,
        r.model.vocab,
        step_s=f["step_s"],
        global_batch_tokens=phase.global_batch * phase.seq_len,
        readers=plan["dp"],
    )
    groups = sum(
        n // size
        for size in (plan["tp"], plan["cp"], plan["pp"], plan["dp"] * plan["cp"])
        if size > 1
    )
    start = float(communicator_init_s(n))
    save = float(e.checkpoint_bytes) / float(e.checkpoint_interval_s)
    step_flops = f["model_tflops_per_device"] * n
    return (
        Plane(
            "control",
            "decides",
            "scheduler, launcher, rendezvous, health checks",
            f"outside the job; an agent on each of {nodes:,} nodes",
            HEARTBEAT_BYTES * nodes / HEARTBEAT_S,
            {
                "nodes": nodes,
                "ranks": n,
                "communicators": groups,
                "start_of_communicators_s": start,
                "spare_nodes": int(np.max(e.spares)),
                "interruptions_per_day": DAY_S / float(e.mtbf_s),
                "detect_s": float(e.detect_s),
                "restart_s": float(e.restart_s),
            },
            "the step in flight ends; nothing restarts after the next failure",
        ),
        Plane(
            "compute",
            "runs",
            f"tp {plan['tp']} x cp {plan['cp']} x pp {plan['pp']} x dp {plan['dp']}"
            + (f", ep {plan['ep']}" if plan["ep"] > 1 else "")
            + f", {plan['schedule']}, {plan['sharding']}",
            f"{n:,} {cluster.accelerator.name}",
            network(assessment).bursts.mean_bytes_per_s * n,
            {
                "step_s": f["step_s"],
                "micro_batches": m,
                "mfu": f["mfu"],
                "model_tflops": step_flops,
                "memory_bytes_per_device": f["memory_bytes"]["total"],
            },
            f"all {n:,} devices wait at the same barrier",
        ),
        Plane(
            "data",
            "feeds",
            (f"{corpus.shards:,} " if tokens else "")
            + "token shards, memory mapped, dealt by (epoch, seed, dp rank)",
            f"{plan['dp']:,} readers, on the hosts",
            corpus.read_bytes_per_s,
            {
                "tokens_per_step": float(phase.global_batch * phase.seq_len),
                "bytes_per_step": corpus.read_bytes_per_s * f["step_s"],
                "corpus_bytes": corpus.bytes if tokens else None,
                "token_bytes": corpus.token_bytes,
                "read_bytes_per_s_per_reader": corpus.read_bytes_per_s_per_reader,
            },
            "the devices idle once the prefetched batches are used",
        ),
        Plane(
            "storage",
            "remembers",
            f"snapshot in host memory, peer copy, {cluster.storage}, object store",
            "host memory, a peer's disk, file system, object store",
            save,
            {
                "checkpoint_bytes": float(e.checkpoint_bytes),
                "interval_s": float(e.checkpoint_interval_s),
                "stall_s": float(e.checkpoint_stall_s),
                "durable_s": float(e.checkpoint_durable_s),
                "steps_between": float(e.checkpoint_interval_s) / f["step_s"],
                "copies_kept": int(np.max(e.retention)),
            },
            (
                f"a failure costs everything since the last copy that is left, "
                f"{float(e.lost_work_s) / 60:,.0f} min at worst with saves running"
            ),
        ),
    )
