"""How often things break: rates of published fleets, their causes, and the job's time between
failures.

Rates are counted per 1,000 node-days of 8-device nodes, the unit of the field, and scale per
device: a node of 4 counts half.
"""

import numpy as np

from .. import catalogue
from ..base.records import Record, get, given, record
from ..base.units import DAY_S
from ..base.words import table

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


# causes.yaml: counts of Table 5 of the Llama 3 Herd of Models (arXiv 2407.21783); its printed
# percentages disagree with its counts (148 of 419 is 35.3 %, printed 30.1 %), so counts it is
CAUSES = tuple(Cause(**row) for row in table(__file__, "causes"))
PAUSES = table(__file__, "pauses")
GROWS_FROM = 16_384


@record
class Stop(Record):
    """One cause of stops of one job: failures a second of the whole job, seconds until noticed,
    restarted and repaired."""

    cause: Cause
    per_s: object
    detect_s: object
    restart_s: object
    repair_s: object


@record
class Pause(Record):
    """Something that holds a job up and loses no work: how often a second of running, how long."""

    id: str
    per_s: object
    seconds: object


def grown(devices, measured_at=GROWS_FROM):
    """Failures per device of a job of `devices` over those of the job that was counted: (n / n0)^g
    from GROWS_FROM devices to the 98,304 that were counted, 1 below and no more above.

    Time between failures falls faster than devices grow: 3.79 per 1,000 node-days at 16,384
    (Llama 3), 6.51 at 98,304 (FT-HSDP, arXiv 2602.00277) give g = 0.30. A third fleet lies below
    both, 2.3 at 32,768 (same paper, Table 1), so fleets differ by more than this.
    """
    one, two = (catalogue.failure_preset(name) for name in ("llama3", "ft-hsdp"))
    power = np.log(two.per_1000_node_days / one.per_1000_node_days)
    power = power / np.log(two.devices / one.devices)
    return (np.clip(devices, GROWS_FROM, two.devices) / np.fmax(measured_at, GROWS_FROM)) ** power


def stops(spec, per_1000_node_days, devices, times: dict, say: list) -> tuple:
    """Every cause of stops of a job, corruption too: each rate as given, else its share (Table 5)
    of the total; times as given, else those of all causes.

    spec : the design's `reliability`.  times : {detect_s, restart_s, repair_s}.  Lemons multiply
    what takes nodes by 1 + share x (factor - 1): exact as long as none is taken out.
    """
    out = []
    bad = _usuals(spec, "lemons", say)
    more = 1 + bad["share"] * (bad["factor"] - 1)
    for cause in CAUSES:
        late = cause.id == "sdc"
        own = get(spec, "sdc") if late else get(get(spec, "causes"), cause.id)
        where = "sdc" if late else f"causes.{cause.id}"
        rate = given(
            own,
            f"reliability.{where}.per_1000_node_days",
            per_1000_node_days * cause.share,
            f"{cause.count:g} of 419 failures of Llama 3 (Table 5), of the fleet's rate",
            say,
        )
        out.append(
            Stop(
                cause=cause,
                per_s=failure_rate_per_s(rate, devices) * (more if cause.evicts else 1.0),
                **{k: t if get(own, k) is None else get(own, k) for k, t in times.items()},
            )
        )
    return tuple(out)


def usual(spec, path: str, say: list) -> float:
    """A figure of `reliability` by its path, else the usual one of pauses.yaml."""
    row = PAUSES[path]
    return given(
        get(spec, path.partition(".")[0]), f"reliability.{path}", row["value"], row["why"], say
    )


def _usuals(spec, section: str, say: list) -> dict:
    """The figures of a section of `reliability` that pauses.yaml has."""
    paths = (path for path in PAUSES if path.startswith(f"{section}."))
    return {path.partition(".")[2]: usual(spec, path, say) for path in paths}


def pauses(spec, nodes, links, say: list) -> tuple:
    """Slow nodes and flapping links. A slow node holds the job up by notice_s x (1 - 1 / slowdown)
    in all, many at once by no more than the slowdown: (s - 1) (1 - exp(-rate x notice / s)) a
    second of running. A flap holds it up by its seconds. Rates per node-day and per link-day."""
    slow, flap = (_usuals(spec, section, say) for section in ("stragglers", "link_flaps"))
    often = nodes * slow["share"] / DAY_S
    times = slow["slowdown"]
    busy = np.maximum(often, 1e-300) * slow["notice_s"]
    return (
        Pause(
            id="stragglers",
            per_s=often,
            seconds=(times - 1) * -np.expm1(-busy / times) / np.maximum(often, 1e-300),
        ),
        Pause(
            id="link flaps",
            per_s=links * flap["per_1000_link_days"] / 1000 / DAY_S,
            seconds=flap["seconds"],
        ),
    )


def failure_rate_per_s(per_1000_node_days, devices):
    """Failures of a job per second: devices / 8 x rate / 1000 / 86,400 [1/s]; rate per 1,000 days
    of 8-device nodes.

    Series system of independent parts, any of which stops the job: M = 1 / sum(N_c l_c). Checked at
    16,384 devices and more; up to
    SMALL_JOB devices jobs died SMALL_JOB_SOONER times sooner in the RSC fleets (7.9 h measured at
    1,024 against 28.8 h, 47.7 days at 8 against
    154; arXiv 2410.21680), from causes the rate does not count.
    """
    return per_1000_node_days / 1000 / 8 / DAY_S * devices


def job_mtbf_s(per_1000_node_days, devices):
    """Mean time between failures of a job on `devices` devices: 1 / failure_rate_per_s [s]. Llama
    3: 11,134 s (3.09 h) at 16,384."""
    return 1 / failure_rate_per_s(per_1000_node_days, devices)


def network_crashes_per_s(links, tors):
    """Job crashes from the network alone [1/s]: links x 0.057 % + top-of-rack switches x 0.051 % a
    month (Alibaba HPN, SIGCOMM'24 s2.3).

    Single-homed NICs: each link failure stops the job; with two planes per NIC (HPN) it only halves
    that NIC. Their own jobs saw 1-2 a
    month.
    """
    return (links * 0.00057 + tors * 0.00051) / (30 * DAY_S)


def detection_s(timeout_s):
    """Mean time until a failure is seen and localised [s]: explicit ones after a minute, hangs
    when the collective's timeout expires.

    (1 - h) x 60 s + h x timeout + 120 s; h = 9.9 % of the failures, 5,506, hang without a
    word (ByteRobust, Table 1), and the usual timeout is 30 or 60 min (same, s2.3): 352 s on average
    at 30 min against 186 s with a watchdog that fires after 2 min.
    A flight recorder shortens the localisation (2-15 min, s2.2), not the timeout.
    """
    return 0.901 * 60 + 0.099 * timeout_s + 120


def rack_devices(cluster) -> int:
    """Devices that share a rack: nodes_per_rack of the node's catalogue row; where nobody printed
    it the scale-up domain that spans nodes, else
    four nodes (air-cooled nodes of 8 devices)."""
    node = catalogue.nodes().get(cluster.node) or catalogue.node_for(cluster.accelerator.id)
    per_node = cluster.devices_per_node
    domain = cluster.scale_up_domain
    if node is not None and node.nodes_per_rack == node.nodes_per_rack:
        held = max(node.nodes_per_rack, 1) * per_node
    else:
        held = domain if domain > per_node else 4 * per_node
    return int(min(cluster.devices, held))
