"""Utilisation and queueing: how long a job waits for its share of a busy cluster, what blocks of
nodes cost, where the paid time goes."""

import numpy as np
from scantling.base.records import Lines, Record, Rows, record
from scantling.base.stats import binomial_share

from ..placement import leaf_nodes
from ..site import Site
from ..texts import columns, constant, fill, texts

FRACTIONS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@record
class Queue(Record):
    """Waiting by share of the cluster, availability by size of block, and the chain from paid to
    useful time."""

    # {fraction, nodes, wait_in_mean_jobs, idle_in_mean_node_jobs, wait_preempting_s}
    waits: Rows
    fragments: Rows  # {block_nodes, whole, spare_nodes, usable}
    node_down: float  # share of the time that one node is in repair
    chain: Rows  # {stage, share, running}
    useful: float  # share of the paid device time that trains
    useful_of_peak: float  # times MFU
    lines: Lines


def gather(nodes: int, wanted: int) -> tuple:
    """(wait, idle) to gather `wanted` of `nodes` busy nodes with no backfill, in mean run times of
    the other jobs.

    One job a node, run times exponential: the k-th of n to end comes at H(n) - H(n - k), H the
    harmonic numbers; the nodes held meanwhile
    idle for the sum over i < k of i / (n - i). Exact for exponential one-node jobs whatever has run
    already; longer-tailed jobs are worse,
    backfill makes the idle time useful but not the wait shorter. A whole cluster takes ln(n) mean
    run times.
    """
    held = np.arange(wanted)
    gaps = 1 / (nodes - held)
    return gaps.sum(), (gaps * held).sum()


def whole_blocks(block: int, down: float, spare: int = 0) -> float:
    """Share of blocks that have all but `spare` of their nodes up: P(Binomial(block, down) <=
    spare); nodes fail on their own."""
    return sum(binomial_share(k, block, down) for k in range(min(spare, block) + 1))


def queue(s: Site, topology: dict) -> Queue:
    """The queueing side of a design: waits (`gather`), blocks (`whole_blocks`), and paid -> used ->
    running -> useful."""
    nodes = s.nodes
    wanted = [max(1, round(f * nodes)) for f in FRACTIONS]
    wait, idle = zip(*(gather(nodes, k) for k in wanted))
    waits = columns(
        fraction=FRACTIONS,
        nodes=wanted,
        wait_in_mean_jobs=wait,
        idle_in_mean_node_jobs=idle,
        wait_preempting_s=[constant("preempt_s")] * len(wanted),
    )
    down = s.in_repair / (nodes + s.in_repair)
    leaf = leaf_nodes(s.cluster)
    segment = topology["segment_nodes"]
    block = topology.get("block_nodes") or segment
    pod = -(-(s.cluster.pod_devices or s.cluster.devices) // s.per_node)
    sizes = (1, 0), (4, 0), (segment, 0), (block, block - segment), (leaf, 0), (leaf, 1), (pod, 0)
    fragments = [
        {
            "block_nodes": size,
            "spare_nodes": spare,
            "whole": good,
            "usable": good * (size - spare) / size,
        }
        for size, spare in dict.fromkeys(sizes)
        if size <= max(nodes, block)
        for good in [whole_blocks(size, down, spare)]
    ]
    held = 1 - s.e.badput["spare shortage"]
    stages = {
        "in the plan (spares and left-over devices out)": s.used / s.run.devices_paid,
        "not waiting for nodes": held,
        "useful (saves, failures, restarts out)": s.e.goodput / held,
    }
    *_, left = running = np.cumprod([*stages.values()]).tolist()
    worst = min(fragments, key=lambda b: b["usable"])
    return Queue(
        waits=waits,
        fragments=tuple(fragments),
        node_down=down,
        chain=columns(stage=stages, share=stages.values(), running=running),
        useful=left,
        useful_of_peak=left * s.figures["mfu"],
        lines=fill(
            texts("scheduler", "queue"),
            s,
            down=down,
            left=left,
            intact=worst["whole"],
            whole=waits[-1]["wait_in_mean_jobs"],
            half=waits[2]["wait_in_mean_jobs"],
            block=worst["block_nodes"],
        ),
    )
