"""Dashboards: each metric with its value in a sound run, the threshold of this design, and what to
do beyond it."""

from collections.abc import Iterator
from math import ceil, sqrt

from scantling.base.records import Record, record
from scantling.base.show import seconds
from scantling.base.stats import poisson_quantile, quantile
from scantling.base.units import DAY_S, HOUR_S

from ..constants import CONSTANTS
from ..job_site import Site
from .screen import Screen
from .watch import hang_timeout_s

FALSE_ALARMS_PER_DAY = 1 / 30
ONE_IN_A_HUNDRED = 2.33  # standard deviations


@record
class Alert(Record):
    """One line of the dashboards: metric, its value in a sound run, the threshold, how long, what
    to do. Units in `unit`."""

    metric: str
    board: str  # job | devices | network | storage | data | fleet
    normal: float
    threshold: float
    unit: str
    beyond: str = "above"  # above | below
    for_s: float
    level: str  # page | ticket
    action: str
    why: str


def alerts(s: Site, cut: Screen) -> tuple[Alert, ...]:
    """Thresholds from the estimate: bands of step and MFU, saves from the endurance, counts at the
    99 % quantile of their Poisson law, loss and gradient norm at the deviation that a month of
    sound steps reaches once."""
    return (
        *pace_alerts(s),
        *training_alerts(s),
        *progress_alerts(s),
        *device_alerts(s, cut),
        *fleet_alerts(s),
        *storage_alerts(s),
        *network_alerts(s),
    )


def pace_alerts(s: Site) -> Iterator[Alert]:
    """Step time and MFU outside their bands."""
    yield Alert(
        metric="step time, median of 10",
        board="job",
        normal=s.step_s,
        threshold=s.a.step_s_high,
        unit="s",
        for_s=10 * s.step_s,
        level="page",
        action="creeping step time",
        why="upper edge of the 80 % band",
    )
    yield Alert(
        metric="step time over its median of the last day",
        board="job",
        normal=1.0,
        threshold=1 + CONSTANTS.fleet_pace,
        unit="ratio",
        for_s=HOUR_S,
        level="ticket",
        action="creeping step time",
        why="the temperature alone moves it by 1 to 2 % (Llama 3, s3.3.4)",
    )
    yield Alert(
        metric="MFU, attention counted in full",
        board="job",
        normal=s.a.mfu,
        threshold=s.a.mfu_low,
        unit="share",
        beyond="below",
        for_s=HOUR_S,
        level="ticket",
        action="creeping step time",
        why="lower edge of the band; frameworks print MFU so",
    )


def training_alerts(s: Site) -> Iterator[Alert]:
    """Loss and gradient norm off their trend."""
    deviation = -float(quantile(min(FALSE_ALARMS_PER_DAY * s.step_s / DAY_S, 0.4)))
    yield Alert(
        metric="loss over its trend",
        board="job",
        normal=0.0,
        threshold=deviation,
        unit="standard deviations",
        for_s=s.step_s,
        level="page",
        action="loss spike",
        why=f"a sound run with steps of {seconds(s.step_s)} goes there once a month",
    )
    yield Alert(
        metric="gradient norm over its trend",
        board="job",
        normal=0.0,
        threshold=deviation,
        unit="standard deviations",
        for_s=3 * s.step_s,
        level="page",
        action="loss spike",
        why="as the loss; three steps running",
    )


def progress_alerts(s: Site) -> Iterator[Alert]:
    """A job that hangs, a day that trains too little."""
    e = s.e
    # of one day's goodput: failures are Poisson, what one loses is uniform between two saves
    spread = sqrt(s.failures_per_day * (s.failure_s**2 + s.period_s**2 / 12)) / DAY_S
    yield Alert(
        metric="seconds since the last step",
        board="job",
        normal=s.step_s,
        threshold=hang_timeout_s(s.step_s, e.checkpoint_stall_s),
        unit="s",
        for_s=0.0,
        level="page",
        action="abort the collectives and restart in place",
        why="a step, a save and a margin; the default of 30 min is paid for by every hang",
    )
    yield Alert(
        metric="goodput of the last day",
        board="job",
        normal=e.goodput,
        threshold=max(e.goodput - ONE_IN_A_HUNDRED * spread, 0.0),
        unit="share",
        beyond="below",
        for_s=DAY_S,
        level="ticket",
        action="go through the day's stops by cause",
        why="a sound day in a hundred is worse",
    )


def device_alerts(s: Site, cut: Screen) -> Iterator[Alert]:
    """Devices that are slow, wrong or full."""
    memory = s.a.memory_bytes["total"] / s.a.memory_bytes["capacity"]
    yield Alert(
        metric="slowest node's forward time over the mean",
        board="devices",
        normal=1.0,
        threshold=1 + cut.evict_slower_than,
        unit="ratio",
        for_s=600.0,
        level="ticket",
        action="swap the node at the next stop",
        why="the straggler screen's cut",
    )
    yield Alert(
        metric="uncorrectable memory errors",
        board="devices",
        normal=0.0,
        threshold=1.0,
        unit="count",
        for_s=0.0,
        level="page",
        action="drain the node",
        why="one is enough: the answer is wrong",
    )
    yield Alert(
        metric="device memory in use",
        board="devices",
        normal=memory,
        threshold=0.5 * (1 + memory),
        unit="share of usable",
        for_s=0.0,
        level="ticket",
        action="watch fragmentation; fall back to the fastest safe plan",
        why="half of what the plan leaves free",
    )


def fleet_alerts(s: Site) -> Iterator[Alert]:
    """More failures than chance brings, fewer spares than repairs ask for."""
    yield Alert(
        metric="failures in a day",
        board="fleet",
        normal=s.failures_per_day,
        threshold=max(float(poisson_quantile(0.99, s.failures_per_day)), 1.0),
        unit="count",
        for_s=DAY_S,
        level="ticket",
        action="look for lemons: nodes that failed twice",
        why="99 % of sound days stay below",
    )
    yield Alert(
        metric="spares ready",
        board="fleet",
        normal=s.spares,
        threshold=max(s.spares - ceil(s.in_repair) - 1.0, 0.0),
        unit="nodes",
        beyond="below",
        for_s=HOUR_S,
        level="ticket",
        action="push repairs, lend from elsewhere",
        why=f"{s.in_repair:.1f} nodes are in repair on average",
    )


def storage_alerts(s: Site) -> Iterator[Alert]:
    """Saves that fail, stall or take too long; steps that wait for data."""
    e = s.e
    copy_age = s.period_s + e.checkpoint_durable_s
    yield Alert(
        metric="age of the newest durable copy",
        board="storage",
        normal=copy_age,
        threshold=copy_age + s.period_s,
        unit="s",
        for_s=0.0,
        level="page",
        action="find why saves fail before the next failure",
        why="one save was missed",
    )
    yield Alert(
        metric="stall of a save",
        board="storage",
        normal=e.checkpoint_stall_s,
        threshold=3 * e.checkpoint_stall_s,
        unit="s",
        for_s=0.0,
        level="ticket",
        action="look at host memory and pinning",
        why="three times the estimate",
    )
    yield Alert(
        metric="time until a save is durable",
        board="storage",
        normal=s.save_s,
        threshold=s.period_s,
        unit="s",
        for_s=0.0,
        level="page",
        action="longer interval, or fewer writers",
        why="the next save begins then",
    )
    yield Alert(
        metric="wait for data in a step",
        board="data",
        normal=0.0,
        threshold=0.01 * s.step_s,
        unit="s",
        for_s=10 * s.step_s,
        level="ticket",
        action="readers, prefetch, metadata server",
        why="one per cent of the step",
    )


def network_alerts(s: Site) -> Iterator[Alert]:
    """Links that came up slow or flap, where nodes are joined."""
    if s.nodes < 2:
        return
    rate = s.cluster.scale_out_bytes_per_s
    yield Alert(
        metric="rate that a card negotiated",
        board="network",
        normal=rate,
        threshold=0.99 * rate,
        unit="bytes/s per device",
        beyond="below",
        for_s=60.0,
        level="ticket",
        action="clean or swap the cable",
        why="a link that came up slower slows its whole ring",
    )
    yield Alert(
        metric="flaps of one link",
        board="network",
        normal=0.0,
        threshold=1.0,
        unit="per 6 h",
        for_s=6 * HOUR_S,
        level="ticket",
        action="swap transceiver or cable at the next stop",
        why="published acceptance test (catalogue/acceptance.csv)",
    )
