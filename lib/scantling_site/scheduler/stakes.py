"""What a design would lose with no scheduler to serve a criterion: each evaluated, as a share of
the run's useful time."""

from dataclasses import replace

import numpy as np
from scantling.base.units import DAY_S
from scantling.endure import elastic

from ..domains import domains
from ..placement import blocks
from ..site import Site
from ..texts import constant, fill, texts

# ByteRobust, arXiv 2509.16293, Table 7: machines of 16 devices -> seconds of a requeue
REQUEUE = ((128, 454.0), (256, 545.0), (512, 635.0), (1024, 768.0))


def stakes(s: Site) -> dict:
    """{criterion: (stake, why)} of this design, the criteria that apply only."""
    kept, gone = in_place_gain(s)
    share = scattered(s)
    waits = unshrunk(s)
    idle = 1 - s.used / s.run.devices_paid
    near = "torus" if s.torus else "rack" if s.racks_join else "leaf"
    found = {
        "gang": 0.0,
        "nodes": 0.0,
        **({near: share} if s.torus or s.nodes > 1 else {}),
        "swap": max(kept - gone, 0.0),
        "shrink": waits,
        "share": idle,
        "services": 0.0,
    }
    words = fill(
        texts("scheduler", "stakes"),
        s,
        share=share,
        longer=1 / (1 - share),
        kept=kept,
        gone=gone,
        waits=waits,
        idle=idle,
        all_nodes=s.nodes + s.spares,
    )
    if share <= 0:
        words["leaf"] = words["flat"]
    return {k: (stake, words[k]) for k, stake in found.items()}


def scattered(s: Site) -> float:
    """Share of the time lost where ranks lie anywhere: 1 - step / step with the scale-up domain cut
    to one node, or with every ring over the top of the fabric."""
    link = s.case.link
    if link.domain > s.per_node:
        apart = replace(s.case.link, domain=s.per_node)
    else:
        apart = replace(s.case.link, pod_devices=min(link.pod_devices, blocks(s.cluster).unit))
    return max(0.0, 1 - 1 / s.link_ratio(apart))


def requeue_s(nodes, devices_per_node) -> float:
    """Seconds of a requeue at this size: a straight line in log2(machines of 16 devices) through
    ByteRobust's four sizes, none below the first's half. [s]"""
    counted, seconds = np.array(REQUEUE).T
    line = np.polynomial.Polynomial.fit(np.log2(counted), seconds, 1)
    return max(line(np.log2(max(nodes * devices_per_node / 16, 1.0))), seconds[0] / 2)


def in_place_gain(s: Site) -> tuple:
    """(goodput with restarts in place, with a requeue for each failure) of this design; the other
    losses as they are."""
    e = s.e
    both = elastic.in_place_or_requeue(
        e.mtbf_s,
        e.checkpoint_stall_s,
        requeue_s=requeue_s(s.cluster.nodes, s.per_node),
        restore_s=max(e.restart_s - constant("restore_fixed_s"), 0.0),
        detect_s=e.detect_s,
        durable_s=e.checkpoint_durable_s,
    )
    return e.goodput, e.goodput * both["requeue"] / max(both["in_place"], 1e-300)


def unshrunk(s: Site) -> float:
    """Share of the time that going on shrunk saves against waiting for the repair of domains that
    the spares do not cover."""
    waits = [x for x in domains(s).rows if not x.spares_cover and x.wait_s > 0]
    saved = sum((x.events_per_run or 0.0) * max(s.e.repair_s - x.wait_s, 0.0) for x in waits)
    lost = saved / DAY_S / s.run.days
    return lost / (1 + lost)
