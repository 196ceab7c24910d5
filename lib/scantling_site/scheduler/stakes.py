"""What a design would lose with no scheduler to serve a criterion: each evaluated, as a share of
the run's useful time."""

from dataclasses import replace

import numpy as np
from scantling.base.records import Record, record
from scantling.base.units import DAY_S
from scantling.endure import elastic

from ..constants import CONSTANTS
from ..domains import domains
from ..job_site import Site
from ..placement import blocks

# ByteRobust, arXiv 2509.16293, Table 7: machines of 16 devices -> seconds of a requeue
REQUEUE = ((128, 454.0), (256, 545.0), (512, 635.0), (1024, 768.0))
WORDS = {
    "gang": "starts whole or not at all",
    "leaf": "keeps the job under few leaves",
    "rack": "keeps groups inside one NVLink rack",
    "torus": "hands out whole slices of the torus",
    "swap": "replaces a node without a requeue",
    "shrink": "goes on with fewer replicas",
    "share": "lends idle devices to others",
    "services": "runs services beside the job",
    "nodes": "holds so many nodes",
}


@record
class Criterion(Record):
    """One criterion as this design puts it: what is at stake [share of the run's useful time], and
    why it is that much."""

    id: str
    what: str
    stake: float
    why: str


def criterion(id: str, stake: float, why: str) -> Criterion:
    """A criterion of catalogue/schedulers.csv."""
    return Criterion(id=id, what=WORDS[id], stake=stake, why=why)


def stakes(s: Site) -> tuple[Criterion, ...]:
    """The criteria that apply to this design."""
    in_place, requeued = in_place_gain(s)
    waits = unshrunk(s)
    idle = 1 - s.used / s.run.devices_paid
    return (
        criterion("gang", 0.0, "asked of every scheduler: without all ranks no step starts"),
        criterion("nodes", 0.0, f"asked of every scheduler: {s.nodes + s.spares:,} nodes"),
        *_nearness(s),
        criterion(
            "swap",
            max(in_place - requeued, 0.0),
            f"a requeue instead of a restart in place: goodput {requeued:.1%} instead of "
            f"{in_place:.1%}",
        ),
        criterion(
            "shrink",
            waits,
            f"waiting for whole domains to be repaired instead of going on smaller: {waits:.2%} of "
            "the time",
        ),
        criterion(
            "share", idle, f"{idle:.1%} of the devices paid for are spares or left over by the plan"
        ),
        criterion("services", 0.0, "a pre-training run needs none; rollouts and evaluation would"),
    )


def _nearness(s: Site) -> tuple[Criterion, ...]:
    """What scattered ranks would cost, by the tier that keeps them together."""
    if s.nodes < 2 and not s.torus:
        return ()
    share = scattered(s)
    longer = 1 / (1 - share)
    if s.torus:
        why = (
            "outside one slice the chips would meet over the data-centre network: "
            f"{share:.0%} of the time lost"
        )
        return (criterion("torus", share, why),)
    if s.racks_join:
        why = (
            f"with groups scattered over racks the step would take {longer:.2f} times as long (tp "
            f"{s.plan['tp']}, ep {s.plan['ep']})"
        )
        return (criterion("rack", share, why),)
    why = "the fabric is as fast everywhere; fewer hops only"
    if share > 0:
        why = (
            f"pods of {s.cluster.pod_devices:,} devices at {s.cluster.oversubscription:g}:1: "
            f"scattered, the step would take {longer:.3f} times as long"
        )
    return (criterion("leaf", share, why),)


def scattered(s: Site) -> float:
    """Share of the time lost where ranks lie anywhere: 1 - step / step with the scale-up domain cut
    to one node, or with every ring over the top of the fabric."""
    link = s.case.link
    if float(link.domain) > s.per_node:
        apart = replace(link, domain=s.per_node)
    else:
        pod = min(float(link.pod_devices), blocks(s.cluster).unit)
        apart = replace(link, pod_devices=pod)
    return max(0.0, 1 - 1 / s.link_ratio(apart))


def requeue_s(nodes: int, devices_per_node: int) -> float:
    """Seconds of a requeue at this size: a straight line in log2(machines of 16 devices) through
    ByteRobust's four sizes, none below the first's half. [s]"""
    counted, seconds = np.array(REQUEUE).T
    line = np.polynomial.Polynomial.fit(np.log2(counted), seconds, 1)
    machines = max(nodes * devices_per_node / 16, 1.0)
    return max(float(line(np.log2(machines))), float(seconds[0]) / 2)


def in_place_gain(s: Site) -> tuple[float, float]:
    """(goodput with restarts in place, with a requeue for each failure) of this design; the other
    losses as they are."""
    e = s.e
    both = elastic.in_place_or_requeue(
        e.mtbf_s,
        e.checkpoint_stall_s,
        requeue_s=requeue_s(s.cluster.nodes, s.per_node),
        restore_s=max(e.restart_s - CONSTANTS.restore_fixed_s, 0.0),
        detect_s=e.detect_s,
        durable_s=e.checkpoint_durable_s,
    )
    in_place = max(float(both["in_place"]), 1e-300)
    return e.goodput, e.goodput * float(both["requeue"]) / in_place


def unshrunk(s: Site) -> float:
    """Share of the time that going on shrunk saves against waiting for the repair of domains that
    the spares do not cover."""
    waits = [x for x in domains(s).rows if not x.spares_cover and x.wait_s > 0]
    saved = sum((x.events_per_run or 0.0) * max(s.e.repair_s - x.wait_s, 0.0) for x in waits)
    lost = saved / DAY_S / s.run.days
    return lost / (1 + lost)
