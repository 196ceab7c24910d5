"""How often things break: rates of published fleets, their causes, and the job's time between
failures.

Rates are counted per 1,000 node-days of 8-device nodes, the unit of the field, and scale per
device: a node of 4 counts half.
"""

from typing import NamedTuple

import numpy as np

from .. import catalogue
from ..base.columns import Column
from ..base.records import Assumed, Record, get, record, value_or
from ..base.units import DAY_S
from ..catalogue.rows import FailurePreset
from ..design.cluster import Cluster
from .stated import Section, Usual

LEAST_RATE = 1e-6  # failures per 1,000 node-days
CORRUPTION = "sdc"  # the cause that nobody sees at once
SMALL_JOB = 1024
SMALL_JOB_SOONER = (3.2, 3.7)


@record
class Cause:
    """One cause of stops: its share of all failures, the nearest copy that survives it (0 host
    memory, 1 a peer, 2 the shared file system, 3 an object store), and whether a node has to be
    replaced."""

    id: str
    count: float  # of the 419 unexpected interruptions of Llama 3
    copy: int
    evicts: bool
    what: str

    @property
    def share(self) -> float:
        return self.count / 419


# Unexpected interruptions by cause: Llama 3 Herd of Models, arXiv 2407.21783, Table 5 and s3.3.4;
# its printed percentages disagree with its counts (148 of 419 is 35.3 %, printed 30.1 %), so counts
# it is. Its 35 of "switch or cable" are split by the 1 % of failures that take a switch
# (ByteRobust, arXiv 2509.16293 s8.2).
CAUSES = (
    Cause(
        id="gpu",
        count=262,
        copy=1,
        evicts=True,
        what="GPU 148, HBM3 72, SRAM 19, system processor 17, thermal 6",
    ),
    Cause(
        id="node",
        count=18,
        copy=1,
        evicts=True,
        what="NIC 7, SSD 3, CPU 2, memory 2, chassis 2, IO board 2",
    ),
    Cause(id="link", count=30.81, copy=1, evicts=True, what="cable or transceiver"),
    Cause(id="switch", count=4.19, copy=1, evicts=True, what="switch"),
    Cause(
        id="storage",
        count=0,
        copy=3,
        evicts=False,
        what="none among the 419; what lies on the shared file system is out of reach",
    ),
    Cause(
        id="software",
        count=63,
        copy=0,
        evicts=False,
        what="software bug 54, dependency 2, NCCL watchdog 7",
    ),
    Cause(id="power", count=3, copy=1, evicts=True, what="power supply"),
    Cause(id="maintenance", count=32, copy=1, evicts=True, what="unplanned host maintenance"),
    Cause(id="sdc", count=6, copy=2, evicts=True, what="silent data corruption, found late"),
)
GROWS_FROM = 16_384

# What slows a job without stopping it, where the design says nothing
SLOW_SHARE = Usual(
    3.8e-5,
    "1 % of 3.8 per 1,000 node-days: 442 of 44,184 incidents (ByteRobust, arXiv 2509.16293, Table"
    " 1)",
)
SLOWDOWN = Usual(1.34, "GREYHOUND (ATC'25): mean of 16 of 27 jobs of 512 devices and more")
NOTICE_S = Usual(4320.0, "72 min, GREYHOUND's mean before mitigation")
LEMON_SHARE = Usual(0.0, "a fleet's rate holds its lemons; RSC found 40 (arXiv 2410.21680)")
LEMON_FACTOR = Usual(
    200.0,
    "40 of the 3,000 nodes of RSC-1 and RSC-2 took 73 % of large jobs' failures, 14 % to 4 %"
    " without them (arXiv 2410.21680; catalogue R052, R176 to R179)",
)
FLAPS = Usual(
    0.19, "judgement: ten flaps for each link that fails (0.057 % a month, Alibaba HPN s2.3)"
)
FLAP_S = Usual(15.0, "judgement: what the transport retries before it gives up")


@record
class Stop(Record):
    """One cause of stops of one job: failures a second of the whole job, seconds until noticed,
    restarted and repaired."""

    cause: Cause
    per_s: Column
    detect_s: Column
    restart_s: Column
    repair_s: Column


@record
class Pause(Record):
    """Something that holds a job up and loses no work: how often a second of running, how long."""

    id: str
    per_s: Column
    seconds: Column


class StopTimes(NamedTuple):
    """Seconds of a stop, of every cause that states none of its own."""

    detect_s: Column
    restart_s: Column
    repair_s: Column


def fleet_rate(
    spec: Section, devices: Column, assumed: list[Assumed]
) -> tuple[Column, FailurePreset, str]:
    """(failures per 1,000 node-days, the fleet, its name): as given, else the preset's, more where
    the job is larger than the fleet's."""
    explicit = get(spec, "failures_per_1000_node_days")
    name = get(spec, "preset")
    fleet = catalogue.failure_preset(name or "typical")
    field = "reliability.failures_per_1000_node_days"
    if explicit is not None:
        if explicit <= 0:
            why = "no fleet never fails; the least rate that is reckoned with"
            assumed.append(Assumed(field, LEAST_RATE, why))
        return max(explicit, LEAST_RATE), fleet, "explicit"
    rate = fleet.per_1000_node_days * grown(devices, fleet.devices)
    if name is None:
        why = (
            f"none given; {fleet.per_1000_node_days:g} failures per 1,000 8-device node-days "
            f"({fleet.source})"
        )
        if np.min(devices) <= SMALL_JOB:
            low, high = SMALL_JOB_SOONER
            why += f"; so small a job stopped {low} to {high} times as often on Meta's RSC"
        assumed.append(Assumed("reliability.preset", fleet.id, why))
    if np.max(devices) > GROWS_FROM:
        most = np.max(rate)
        why = (
            f"{most / fleet.per_1000_node_days:.2f} x the fleet's: time between failures fell "
            "faster than devices grew from Llama 3 (16,384) to FT-HSDP (98,304, arXiv 2602.00277)"
        )
        assumed.append(Assumed(field, most, why))
    return rate, fleet, fleet.id


def planned_per_day(
    spec: Section, fleet: FailurePreset, nodes: Column, cluster: Cluster, assumed: list[Assumed]
) -> Column:
    """Planned stops of a job a day: as given, else the fleet's per 1,000 8-device node-days times
    the nodes, so in proportion to the machine."""
    rate = fleet.planned_per_1000_node_days
    often = failure_rate_per_s(rate, nodes * cluster.devices_per_node) * DAY_S
    why = (
        f"{rate:.3g} per 1,000 node-days of 8 devices: Llama 3 had 47 in 54 days on 2,048 nodes "
        "(arXiv 2407.21783, s3.3.4); each saves first"
    )
    if rate == 0:
        why = f"none is counted for {fleet.id} ({fleet.source})"
    stops: Column = value_or(spec, "reliability.planned_per_day", often, why, assumed)
    return stops


def grown(devices: Column, measured_at: float = GROWS_FROM) -> Column:
    """Failures per device of a job of `devices` over those of the job that was counted: (n / n0)^g
    from GROWS_FROM devices to the 98,304 that were counted, 1 below and no more above.

    Time between failures falls faster than devices grow: 3.79 per 1,000 node-days at 16,384
    (Llama 3), 6.51 at 98,304 (FT-HSDP, arXiv 2602.00277) give g = 0.30. A third fleet lies below
    both, 2.3 at 32,768 (same paper, Table 1), so fleets differ by more than this.
    """
    one, two = (catalogue.failure_preset(name) for name in ("llama3", "ft-hsdp"))
    power = np.log(two.per_1000_node_days / one.per_1000_node_days)
    power = power / np.log(two.devices / one.devices)
    larger = np.clip(devices, GROWS_FROM, two.devices) / np.fmax(measured_at, GROWS_FROM)
    growth: Column = larger**power
    return growth


def stops(
    spec: Section,
    per_1000_node_days: Column,
    devices: Column,
    times: StopTimes,
    assumed: list[Assumed],
) -> tuple[Stop, ...]:
    """Every cause of stops of a job, corruption too: each rate as given, else its share (Table 5)
    of the total; times as given, else those of all causes.

    spec : the design's `reliability`. Lemons multiply what takes nodes by 1 + share x (factor - 1):
    exact as long as none is taken out.
    """
    lemons = get(spec, "lemons")
    share = usual(lemons, "reliability.lemons.share", LEMON_SHARE, assumed)
    factor = usual(lemons, "reliability.lemons.factor", LEMON_FACTOR, assumed)
    more = 1 + share * (factor - 1)
    causes = []
    for cause in CAUSES:
        if cause.id == CORRUPTION:
            section, path = get(spec, "sdc"), "reliability.sdc"
        else:
            section, path = get(get(spec, "causes"), cause.id), f"reliability.causes.{cause.id}"
        rate = value_or(
            section,
            f"{path}.per_1000_node_days",
            per_1000_node_days * cause.share,
            f"{cause.count:g} of 419 failures of Llama 3 (Table 5), of the fleet's rate",
            assumed,
        )
        detect_s, restart_s, repair_s = (
            get(section, field) for field in ("detect_s", "restart_s", "repair_s")
        )
        causes.append(
            Stop(
                cause=cause,
                per_s=failure_rate_per_s(rate, devices) * (more if cause.evicts else 1.0),
                detect_s=times.detect_s if detect_s is None else detect_s,
                restart_s=times.restart_s if restart_s is None else restart_s,
                repair_s=times.repair_s if repair_s is None else repair_s,
            )
        )
    return tuple(causes)


def usual(section: Section, path: str, figure: Usual, assumed: list[Assumed]) -> float:
    """A field of a section of the design by its path, else the usual figure."""
    value: float = value_or(section, path, figure.value, figure.why, assumed)
    return value


def pauses(
    spec: Section, nodes: Column, links: Column, assumed: list[Assumed]
) -> tuple[Pause, Pause]:
    """Slow nodes and flapping links. A slow node holds the job up by notice_s x (1 - 1 / slowdown)
    in all, many at once by no more than the slowdown: (s - 1) (1 - exp(-rate x notice / s)) a
    second of running. A flap holds it up by its seconds. Rates per node-day and per link-day."""
    slow, flaps = get(spec, "stragglers"), get(spec, "link_flaps")
    share = usual(slow, "reliability.stragglers.share", SLOW_SHARE, assumed)
    slowdown = usual(slow, "reliability.stragglers.slowdown", SLOWDOWN, assumed)
    notice_s = usual(slow, "reliability.stragglers.notice_s", NOTICE_S, assumed)
    flapping = usual(flaps, "reliability.link_flaps.per_1000_link_days", FLAPS, assumed)
    flap_s = usual(flaps, "reliability.link_flaps.seconds", FLAP_S, assumed)
    often = nodes * share / DAY_S
    busy = np.maximum(often, 1e-300) * notice_s
    return (
        Pause(
            id="stragglers",
            per_s=often,
            seconds=(slowdown - 1) * -np.expm1(-busy / slowdown) / np.maximum(often, 1e-300),
        ),
        Pause(id="link flaps", per_s=links * flapping / 1000 / DAY_S, seconds=flap_s),
    )


def failure_rate_per_s(per_1000_node_days: Column, devices: Column) -> Column:
    """Failures of a job per second: devices / 8 x rate / 1000 / 86,400 [1/s]; rate per 1,000 days
    of 8-device nodes.

    Series system of independent parts, any of which stops the job: M = 1 / sum(N_c l_c). Checked at
    16,384 devices and more; up to SMALL_JOB devices jobs died SMALL_JOB_SOONER times sooner in the
    RSC fleets (7.9 h measured at 1,024 against 28.8 h, 47.7 days at 8 against 154; arXiv
    2410.21680), from causes the rate does not count.
    """
    return per_1000_node_days / 1000 / 8 / DAY_S * devices


def job_mtbf_s(per_1000_node_days: Column, devices: Column) -> Column:
    """Mean time between failures of a job on `devices` devices: 1 / failure_rate_per_s [s]. Llama
    3: 11,134 s (3.09 h) at 16,384."""
    return 1 / failure_rate_per_s(per_1000_node_days, devices)


def rate_of_mtbf(mtbf_s: Column, devices: Column) -> Column:
    """Failures per 1,000 days of 8-device nodes of a job on `devices` devices that fails once in
    `mtbf_s`, whatever its own nodes hold: the inverse of `job_mtbf_s`. [1/(1,000 days)]"""
    return 1 / mtbf_s / failure_rate_per_s(1.0, devices)


def network_crashes_per_s(links: Column, tors: Column) -> Column:
    """Job crashes from the network alone [1/s]: links x 0.057 % + top-of-rack switches x 0.051 % a
    month (Alibaba HPN, SIGCOMM'24 s2.3).

    Single-homed NICs: each link failure stops the job; with two planes per NIC (HPN) it only halves
    that NIC. Their own jobs saw 1-2 a month.
    """
    return (links * 0.00057 + tors * 0.00051) / (30 * DAY_S)


def detection_s(timeout_s: Column) -> Column:
    """Mean time until a failure is seen and localised [s]: explicit ones after a minute, hangs
    when the collective's timeout expires.

    (1 - h) x 60 s + h x timeout + 120 s; h = 9.9 % of the failures, 5,506, hang without a
    word (ByteRobust, Table 1), and the usual timeout is 30 or 60 min (same, s2.3): 352 s on average
    at 30 min against 186 s with a watchdog that fires after 2 min.
    A flight recorder shortens the localisation (2-15 min, s2.2), not the timeout.
    """
    return 0.901 * 60 + 0.099 * timeout_s + 120


def rack_devices(cluster: Cluster) -> int:
    """Devices that share a rack: nodes_per_rack of the node's catalogue row; where nobody printed
    it the scale-up domain that spans nodes, else four nodes (air-cooled nodes of 8 devices)."""
    node = catalogue.nodes().get(cluster.node) or catalogue.node_for(cluster.accelerator.id)
    per_node = cluster.devices_per_node
    domain = cluster.scale_up_domain
    if node is not None and node.nodes_per_rack == node.nodes_per_rack:
        held = max(node.nodes_per_rack, 1) * per_node
    else:
        held = domain if domain > per_node else 4 * per_node
    return int(min(cluster.devices, held))
