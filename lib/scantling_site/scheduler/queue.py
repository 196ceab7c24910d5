"""Utilisation and queueing: how long a job waits for its share of a busy cluster, what blocks of
nodes cost, where the paid time goes."""

from typing import TypedDict

import numpy as np
from scantling.base.records import Lines, Record, record
from scantling.base.show import several
from scantling.base.stats import binomial_share

from ..constants import CONSTANTS
from ..job_site import Site
from ..placement import leaf_nodes
from .request import Adjacency

FRACTIONS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Wait(TypedDict):
    """Waiting for a share of the cluster, in mean run times of the other jobs."""

    fraction: float
    nodes: int
    wait_in_mean_jobs: float
    idle_in_mean_node_jobs: float
    wait_preempting_s: float


class Fragment(TypedDict):
    """Blocks of so many nodes: the share of them that is whole, and of the nodes that is usable."""

    block_nodes: int
    spare_nodes: int
    whole: float
    usable: float


class Stage(TypedDict):
    """One loss on the way from paid to useful device time."""

    stage: str
    share: float
    running: float  # what is left after it


@record
class Queue(Record):
    """Waiting by share of the cluster, availability by size of block, and the chain from paid to
    useful time."""

    waits: tuple[Wait, ...]
    fragments: tuple[Fragment, ...]
    node_down: float  # share of the time that one node is in repair
    chain: tuple[Stage, ...]
    useful: float  # share of the paid device time that trains
    useful_of_peak: float  # times MFU
    lines: Lines


def gather(nodes: int, wanted: int) -> tuple[float, float]:
    """(wait, idle) to gather `wanted` of `nodes` busy nodes with no backfill, in mean run times of
    the other jobs.

    One job a node, run times exponential: the k-th of n to end comes at H(n) - H(n - k), H the
    harmonic numbers; the nodes held meanwhile idle for the sum over i < k of i / (n - i). Exact for
    exponential one-node jobs whatever has run already; longer-tailed jobs are worse, backfill makes
    the idle time useful but not the wait shorter. A whole cluster takes ln(n) mean run times.
    """
    ended = np.arange(wanted)
    gaps = 1 / (nodes - ended)
    return float(gaps.sum()), float((gaps * ended).sum())


def whole_blocks(block: int, down: float, spare: int = 0) -> float:
    """Share of blocks that have all but `spare` of their nodes up: P(Binomial(block, down) <=
    spare); nodes fail on their own."""
    return float(sum(binomial_share(k, block, down) for k in range(min(spare, block) + 1)))


def queue(s: Site, topology: Adjacency) -> Queue:
    """The queueing side of a design: waits (`gather`), blocks (`whole_blocks`), and paid -> used ->
    running -> useful."""
    waits = tuple(_wait(s.nodes, fraction) for fraction in FRACTIONS)
    down = s.in_repair / (s.nodes + s.in_repair)
    fragments = _fragments(s, topology, down)
    chain = _chain(s)
    useful = chain[-1]["running"]
    worst = min(fragments, key=lambda b: b["usable"])
    return Queue(
        waits=waits,
        fragments=fragments,
        node_down=down,
        chain=chain,
        useful=useful,
        useful_of_peak=useful * s.a.mfu_shown,
        lines=(
            f"taking the whole cluster from others waits {waits[-1]['wait_in_mean_jobs']:.1f} of "
            f"their mean run times with no preemption, {waits[2]['wait_in_mean_jobs']:.1f} for "
            "half of it; with preemption after 2 h at most that",
            f"a node is in repair {down:.2%} of the time; of blocks of "
            f"{several(worst['block_nodes'], 'node')} {worst['whole']:.1%} are whole",
            f"{useful:.1%} of the paid device time trains, at {s.a.mfu_shown:.1%} of the peak",
        ),
    )


def _wait(nodes: int, fraction: float) -> Wait:
    wanted = max(1, round(fraction * nodes))
    wait, idle = gather(nodes, wanted)
    return Wait(
        fraction=fraction,
        nodes=wanted,
        wait_in_mean_jobs=wait,
        idle_in_mean_node_jobs=idle,
        wait_preempting_s=CONSTANTS.preempt_s,
    )


def _fragments(s: Site, topology: Adjacency, down: float) -> tuple[Fragment, ...]:
    """Blocks of the sizes that this cluster is handed out in."""
    leaf = leaf_nodes(s.cluster)
    segment = topology["segment_nodes"]
    block = topology["block_nodes"] or segment
    pod = -(-(s.cluster.pod_devices or s.cluster.devices) // s.per_node)
    sizes = [(1, 0), (4, 0), (segment, 0), (block, block - segment), (leaf, 0), (leaf, 1), (pod, 0)]
    fragments = []
    for size, spare in dict.fromkeys(sizes):
        if size <= max(s.nodes, block):
            whole = whole_blocks(size, down, spare)
            usable = whole * (size - spare) / size
            fragments.append(
                Fragment(block_nodes=size, spare_nodes=spare, whole=whole, usable=usable)
            )
    return tuple(fragments)


def _chain(s: Site) -> tuple[Stage, ...]:
    """From paid to useful device time."""
    present = 1 - s.e.badput["spare shortage"]
    shares = {
        "in the plan (spares and left-over devices out)": s.used / s.run.devices_paid,
        "not waiting for nodes": present,
        "useful (saves, failures, restarts out)": s.e.goodput / present,
    }
    stages = []
    running = 1.0
    for stage, share in shares.items():
        running *= share
        stages.append(Stage(stage=stage, share=share, running=running))
    return tuple(stages)
