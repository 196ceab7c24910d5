"""What a design would lose with no scheduler to serve a criterion: each evaluated, as a share of
the run's useful time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.units import DAY_S
from ...endure import elastic
from ...physics.step import step_time
from ..domains import domains
from ..placement import blocks
from ..site import Run, is_torus

# ByteRobust, arXiv 2509.16293, Table 7: machines of 16 devices -> seconds of a requeue
REQUEUE = ((128, 454.0), (256, 545.0), (512, 635.0), (1024, 768.0))


def stakes(assessment, run: Run):
    """(criterion, stake, why) of this design, the criteria that apply only."""
    cluster, plan = assessment.resolved.cluster, assessment.chosen.plan
    nodes = int(cluster.nodes)
    torus, wide = is_torus(cluster), int(cluster.scale_up_domain) > int(cluster.devices_per_node)
    yield "gang", 0.0, "asked of every scheduler: without all ranks no step starts"
    yield (
        "nodes",
        0.0,
        f"asked of every scheduler: {nodes + int(assessment.endurance.spares):,} nodes",
    )
    if torus:
        share = scattered(assessment)
        yield (
            "torus",
            share,
            (
                f"outside one slice the chips would meet over the data-centre network: "
                f"{share:.0%} of the time lost"
            ),
        )
    elif wide and nodes > 1:
        share = scattered(assessment)
        yield (
            "rack",
            share,
            (
                f"with groups scattered over racks the step would take {1 / (1 - share):.2f} "
                f"times as long (tp {plan['tp']}, ep {plan['ep']})"
            ),
        )
    elif nodes > 1:
        share = scattered(assessment)
        why = (
            (
                f"pods of {cluster.pod_devices:,} devices at {cluster.oversubscription:g}:1: "
                f"scattered, the step would take {1 / (1 - share):.3f} times as long"
            )
            if share > 0
            else "the fabric is as fast everywhere; fewer hops only"
        )
        yield "leaf", share, why
    kept, gone = in_place_gain(assessment)
    yield (
        "swap",
        max(kept - gone, 0.0),
        f"a requeue instead of a restart in place: goodput {gone:.1%} instead of {kept:.1%}",
    )
    waits = unshrunk(assessment, run)
    yield (
        "shrink",
        waits,
        (
            f"waiting for whole domains to be repaired instead of going on smaller: "
            f"{waits:.2%} of the time"
        ),
    )
    idle = 1 - assessment.figures["devices_used"] / run.devices_paid
    yield "share", idle, f"{idle:.1%} of the devices paid for are spares or left over by the plan"
    yield "services", 0.0, "a pre-training run needs none; rollouts and evaluation would"


def scattered(assessment) -> float:
    """Share of the time lost where ranks lie anywhere: 1 - step / step with the scale-up domain cut
    to one node, or with every ring over
    the top of the fabric."""
    c, cluster = assessment.chosen.case, assessment.resolved.cluster
    per_node = float(cluster.devices_per_node)
    if c.link.domain > per_node:
        link = replace(c.link, domain=per_node)
    else:
        link = replace(
            c.link,
            pod_devices=min(
                float(c.link.pod_devices), float(blocks(assessment.resolved.cluster)[0])
            ),
        )
    return max(0.0, 1 - float(step_time(c).total) / float(step_time(replace(c, link=link)).total))


def requeue_s(nodes, devices_per_node) -> float:
    """Seconds of a requeue at this size: a straight line in log2(machines of 16 devices) through
    ByteRobust's four sizes, none below the first's
    half. [s]"""
    machines = max(float(nodes) * devices_per_node / 16, 1.0)
    x, y = np.log2([m for m, _ in REQUEUE]), np.array([s for _, s in REQUEUE])
    slope, base = np.polyfit(x, y, 1)
    return float(max(base + slope * np.log2(machines), REQUEUE[0][1] / 2))


def in_place_gain(assessment) -> tuple[float, float]:
    """(goodput with restarts in place, with a requeue for each failure) of this design; the other
    losses as they are."""
    e, cluster = assessment.endurance, assessment.resolved.cluster
    both = elastic.in_place_or_requeue(
        float(e.mtbf_s),
        float(e.checkpoint_stall_s),
        requeue_s=requeue_s(cluster.nodes, cluster.devices_per_node),
        restore_s=max(float(e.restart_s) - 65.0, 0.0),
        detect_s=float(e.detect_s),
        durable_s=float(e.checkpoint_durable_s),
    )
    now = float(both["in_place"])
    return float(e.goodput), float(e.goodput) * float(both["requeue"]) / max(now, 1e-300)


def unshrunk(assessment, run: Run) -> float:
    """Share of the time that going on shrunk saves against waiting for the repair of domains that
    the spares do not cover."""
    repair = float(assessment.endurance.repair_s)
    lost = float(
        sum(
            (x.events_per_run or 0.0) * max(repair - x.wait_s, 0.0)
            for x in domains(assessment).rows
            if not x.spares_cover and x.wait_s > 0
        )
        / DAY_S
        / run.days
    )
    return lost / (1 + lost)
