"""Utilisation and queueing: how long a job waits for its share of a busy cluster, what blocks of
nodes cost, where the paid time goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.records import Record
from ...base.show import several
from ...base.units import HOUR_S
from ...endure.failures import EVICTS
from ..placement import leaf_nodes
from ..site import run_of

FRACTIONS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
PREEMPT_S = 2 * HOUR_S  # a job may be stopped after two hours (RSC fleets, arXiv 2410.21680)


@dataclass(frozen=True)
class Queue(Record):
    """Waiting by share of the cluster, availability by size of block, and the chain from paid to
    useful time."""

    waits: tuple[
        dict, ...
    ]  # {fraction, nodes, wait_in_mean_jobs, idle_in_mean_node_jobs, wait_preempting_s}
    fragments: tuple[dict, ...]  # {block_nodes, whole, spare_nodes, usable}
    node_down: float  # share of the time that one node is in repair
    chain: tuple[dict, ...]  # {stage, share, running}
    useful: float  # share of the paid device time that trains
    useful_of_peak: float  # times MFU
    lines: tuple[str, ...]


def gather(nodes: int, wanted: int) -> tuple[float, float]:
    """(wait, idle) to gather `wanted` of `nodes` busy nodes with no backfill, in mean run times of
    the other jobs.

    One job a node, run times exponential: the k-th of n to end comes at H(n) - H(n - k), H the
    harmonic numbers; the nodes held meanwhile
    idle for the sum over i < k of i / (n - i). Exact for exponential one-node jobs whatever has run
    already; longer-tailed jobs are worse,
    backfill makes the idle time useful but not the wait shorter. A whole cluster takes ln(n) mean
    run times.
    """
    i = np.arange(1, wanted + 1, dtype=float)
    gaps = 1 / (nodes - i + 1)
    return float(gaps.sum()), float((gaps * (i - 1)).sum())


def whole_blocks(block: int, down: float, spare: int = 0) -> float:
    """Share of blocks that have all but `spare` of their nodes up: P(Binomial(block, down) <=
    spare); nodes fail on their own."""
    from scipy.special import bdtr

    return float(bdtr(min(spare, block), block, down))


def queue(assessment, topology: dict) -> Queue:
    """The queueing side of a design: waits (`gather`), blocks (`whole_blocks`), and paid -> used ->
    running -> useful."""
    e, cluster, run = assessment.endurance, assessment.resolved.cluster, run_of(assessment)
    nodes = int(cluster.nodes)
    waits = []
    for f in FRACTIONS:
        k = max(1, round(f * nodes))
        wait, idle = gather(nodes, k)
        waits.append(
            dict(
                fraction=f,
                nodes=k,
                wait_in_mean_jobs=wait,
                idle_in_mean_node_jobs=idle,
                wait_preempting_s=PREEMPT_S,
            )
        )
    per_node = EVICTS / float(e.mtbf_s) / nodes * float(e.repair_s)
    down = per_node / (1 + per_node)
    blocks, seen, leaf = [], set(), leaf_nodes(assessment.resolved.cluster)
    segment, block = (
        int(topology["segment_nodes"]),
        int(topology.get("block_nodes") or topology["segment_nodes"]),
    )
    for size, spare in (
        (1, 0),
        (4, 0),
        (segment, 0),
        (block, block - segment),
        (leaf, 0),
        (leaf, 1),
        (-(-int(cluster.pod_devices or cluster.devices) // int(cluster.devices_per_node)), 0),
    ):
        if size <= max(nodes, block) and (size, spare) not in seen:
            seen.add((size, spare))
            good = whole_blocks(size, down, spare)
            blocks.append(
                dict(
                    block_nodes=size,
                    spare_nodes=spare,
                    whole=good,
                    usable=good * (size - spare) / size,
                )
            )
    used, paid = int(assessment.figures["devices_used"]), run.devices_paid
    chain, left = [], 1.0
    bad = {k: float(v) for k, v in e.badput.items()}
    for stage, share in (
        ("in the plan (spares and left-over devices out)", used / paid),
        ("not waiting for nodes", 1 - bad["spare shortage"]),
        (
            "useful (saves, failures, restarts out)",
            float(e.goodput) / max(1 - bad["spare shortage"], 1e-9),
        ),
    ):
        left *= share
        chain.append(dict(stage=stage, share=share, running=left))
    worst = min(blocks, key=lambda b: b["usable"])
    wait = waits[-1]["wait_in_mean_jobs"]
    lines = (
        (
            f"taking the whole cluster from others waits {wait:.1f} of their mean run times "
            f"with no preemption, {waits[2]['wait_in_mean_jobs']:.1f} for half of it; with "
            f"preemption after 2 h at most that"
        ),
        (
            f"a node is in repair {down:.2%} of the time; of blocks of "
            f"{several(worst['block_nodes'], 'node')} {worst['whole']:.1%} are whole"
        ),
        (
            f"{left:.1%} of the paid device time trains, at {assessment.figures['mfu']:.1%} "
            f"of the peak"
        ),
    )
    return Queue(
        tuple(waits),
        tuple(blocks),
        down,
        tuple(chain),
        left,
        left * assessment.figures["mfu"],
        lines,
    )
