"""How often things break: rates of published fleets, their causes, the domains that fail together,
and the job's time between failures.

Rates are counted per 1,000 node-days of 8-device nodes, the unit of the field, and scale per
device: a node of 4 counts half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import catalogue
from ..base.units import DAY_S

_LLAMA3 = "Llama 3 Herd of Models, arXiv 2407.21783, Table 5 and s3.3.4"
SMALL_JOB, SMALL_JOB_SOONER = 1024, (3.2, 3.7)


@dataclass(
    frozen=True,
    kw_only=True,
)
class Cause:
    """One cause: its share of all failures, the nearest copy that survives it, and whether a node
    has to be replaced."""

    id: str
    share: float
    # "host" (the process died), "peer" (the node is gone), "remote" (a whole domain is gone or the
    # state is wrong)
    survivor: str
    evicts: bool
    what: str


# counts of Table 5; its printed percentages disagree with its counts (148 of 419 is 35.3 %, printed
# 30.1 %), so counts it is
CAUSES = tuple(
    Cause(
        id=i,
        share=n / 419,
        survivor=s,
        evicts=e,
        what=w,
    )
    for i, n, s, e, w in (
        (
            "accelerator",
            262,
            "peer",
            True,
            "GPU 148, HBM3 72, SRAM 19, system processor 17, thermal 6",
        ),
        ("sdc", 6, "remote", True, "silent data corruption, found late"),
        (
            "host",
            21,
            "peer",
            True,
            "NIC 7, SSD 3, power supply 3, CPU 2, memory 2, chassis 2, IO board 2",
        ),
        ("network", 35, "peer", True, "switch or cable"),
        ("software", 63, "host", False, "software bug 54, dependency 2, NCCL watchdog 7"),
        ("maintenance", 32, "peer", True, "unplanned host maintenance"),
    )
)
EVICTS = sum(c.share for c in CAUSES if c.evicts)
SDC_SHARE = next(c.share for c in CAUSES if c.id == "sdc")


def failure_rate_per_s(per_1000_node_days, devices):
    """Failures of a job per second: devices / 8 x rate / 1000 / 86,400 [1/s]; rate per 1,000 days
    of 8-device nodes.

    Series system of independent parts, any of which stops the job: M = 1 / sum(N_c l_c). Checked at
    16,384 devices and more; up to
    SMALL_JOB devices jobs died SMALL_JOB_SOONER times sooner in the RSC fleets (7.9 h measured at
    1,024 against 28.8 h, 47.7 days at 8 against
    154; arXiv 2410.21680), from causes the rate does not count.
    """
    return np.asarray(per_1000_node_days, float) / 1000 / 8 / DAY_S * np.asarray(devices, float)


def job_mtbf_s(per_1000_node_days, devices):
    """Mean time between failures of a job on `devices` devices: 1 / failure_rate_per_s [s]. Llama
    3: 11,134 s (3.09 h) at 16,384."""
    return 1 / failure_rate_per_s(per_1000_node_days, devices)


def rates_by_cause(per_1000_node_days, devices) -> dict:
    """Failures of the job per day by cause, split by the counts of Llama 3's Table 5 [1/day]."""
    per_day = failure_rate_per_s(per_1000_node_days, devices) * DAY_S
    return {c.id: per_day * c.share for c in CAUSES}


def network_crashes_per_s(
    links,
    tors,
    *,
    links_per_month=0.00057,
    tors_per_month=0.00051,
):
    """Job crashes from the network alone [1/s]: links x 0.057 % + top-of-rack switches x 0.051 % a
    month (Alibaba HPN, SIGCOMM'24 s2.3).

    Single-homed NICs: each link failure stops the job; with two planes per NIC (HPN) it only halves
    that NIC. Their own jobs saw 1-2 a
    month.
    """
    return (
        np.asarray(links, float) * links_per_month + np.asarray(tors, float) * tors_per_month
    ) / (30 * DAY_S)


def detection_s(
    *,
    hang_share=0.099,
    timeout_s=600.0,
    explicit_s=60.0,
    localise_s=120.0,
):
    """Mean time until a failure is seen and localised [s]: explicit ones after `explicit_s`, hangs
    when the collective's timeout expires.

    (1 - h) x explicit + h x timeout + localise. A tenth of the failures hang without a word (5,506,
    9.9 %: ByteRobust, Table 1), and the
    usual timeout is 30 or 60 min (same, s2.3): 352 s on average at 30 min against 186 s with a
    watchdog that fires after 2 min.
    A flight recorder shortens `localise_s` (2-15 min, s2.2), not the timeout.
    """
    h = np.asarray(hang_share, float)
    return (1 - h) * explicit_s + h * timeout_s + localise_s


@dataclass(
    frozen=True,
    kw_only=True,
)
class Domain:
    """A set of devices that fails, or is drained, together."""

    id: str
    devices: int
    count: int
    share: float  # of the job's failures, nan where nobody has published one
    what: str
    source: str


def domains(cluster) -> tuple[Domain, ...]:
    """The failure domains of a cluster, smallest first: device, node, power supply, rail, top of
    rack or NVLink rack, pod, site.

    The catastrophic share (1 % of failures, a switch with its 32 machines) is ByteRobust's (arXiv
    2509.16293, s8.2); what nobody published
    is nan.
    """
    per_node, n = int(cluster.devices_per_node), int(cluster.devices)
    rack = rack_devices(cluster)
    pod = int(min(n, cluster.pod_devices or n))
    sites = max(1, int(cluster.sites))
    node_share = sum(c.share for c in CAUSES if c.survivor == "peer")

    def count(size):
        return max(1, -(-n // max(1, size)))

    return (
        Domain(
            id="process",
            devices=1,
            count=n,
            share=CAUSES[4].share,
            what="a rank dies, the node is well: restart in place from host memory",
            source=_LLAMA3,
        ),
        Domain(
            id="node",
            devices=per_node,
            count=count(per_node),
            share=node_share,
            what="device, HBM, NIC, host or board: the node is drained",
            source=_LLAMA3,
        ),
        Domain(
            id="power-supply",
            devices=per_node,
            count=count(per_node),
            share=3 / 419,
            what="redundant supplies (4 + 2) ride through two losses",
            source=_LLAMA3,
        ),
        Domain(
            id="rail",
            devices=min(n, 32),
            count=count(32),
            share=CAUSES[3].share,
            what="a rail leaf: 32 nodes lose one NIC each; with dual top-of-rack nothing stops",
            source="rail-optimised reference designs; " + _LLAMA3,
        ),
        Domain(
            id="rack",
            devices=rack,
            count=count(rack),
            share=0.01,
            what="top of rack, busbar or NVLink domain: every node in it",
            source="ByteRobust, arXiv 2509.16293 s8.2 (32 machines, 1 % of failures)",
        ),
        Domain(
            id="pod",
            devices=pod,
            count=count(pod),
            share=float("nan"),
            what="aggregation layer or cooling loop; also the unit of a maintenance drain",
            source="no published rate",
        ),
        Domain(
            id="site",
            devices=-(-n // sites),
            count=sites,
            share=float("nan"),
            what="building or power feed",
            source="no published rate",
        ),
    )


def rack_devices(cluster) -> int:
    """Devices that share a rack: nodes_per_rack of the node's catalogue row; where nobody printed
    it the scale-up domain that spans nodes, else
    four nodes (air-cooled nodes of 8 devices)."""
    node = catalogue.nodes().get(cluster.node) or catalogue.node_for(cluster.accelerator.id)
    per_node, many = int(cluster.devices_per_node), 4.0
    if node is not None and node.nodes_per_rack == node.nodes_per_rack:
        many = node.nodes_per_rack
    elif cluster.scale_up_domain > per_node:
        many = cluster.scale_up_domain / per_node
    return int(min(cluster.devices, max(many, 1) * per_node))
