"""Health checks with the thresholds of this machine."""

from collections.abc import Iterator
from typing import TypedDict

from ..fabric.build import cards
from ..facts import source
from ..job_site import Site
from ..rollout.burn_in import ACCEPTED, acceptance_limits, accepted, node_busbw
from ..rollout.watch import hang_timeout_s

OFTEN = "every 5 min"
BEFORE = "before the job"
ACCEPTANCE = f"{ACCEPTED} (catalogue/acceptance.csv)"


class HealthCheck(TypedDict):
    """One check of a node, its threshold and what is done beyond it."""

    check: str
    when: str
    threshold: float
    unit: str
    on_fail: str
    source: str


def health_checks(s: Site) -> tuple[HealthCheck, ...]:
    """Checks while the job runs, before it, and after failures."""
    return (*_device_checks(s), *_rate_checks(s), *_link_checks(s), *_node_checks(s))


def _device_checks(s: Site) -> Iterator[HealthCheck]:
    """Devices and the file system that should be there."""
    yield HealthCheck(
        check="devices present",
        when=OFTEN,
        threshold=s.per_node,
        unit="devices",
        on_fail="drain",
        source=source("R054"),
    )
    yield HealthCheck(
        check="uncorrectable memory errors since boot",
        when=OFTEN,
        threshold=0.0,
        unit="at most",
        on_fail="drain",
        source="an error that the hardware could not correct is a wrong answer",
    )
    yield HealthCheck(
        check="driver fault of the fatal kinds (off the bus, link, memory)",
        when=OFTEN,
        threshold=0.0,
        unit="at most",
        on_fail="drain",
        source=source("R100"),
    )
    yield HealthCheck(
        check="clock held down for heat or power",
        when=OFTEN,
        threshold=0.0,
        unit="at most",
        on_fail="ticket",
        source=ACCEPTANCE,
    )
    yield HealthCheck(
        check="job file system mounted, a 1 MB write",
        when=BEFORE,
        threshold=5.0,
        unit="s at most",
        on_fail="drain",
        source="a tenth of a save's fixed time is noticed",
    )


def _rate_checks(s: Site) -> Iterator[HealthCheck]:
    """Rates of devices and of a node before the job starts."""
    cluster = s.cluster
    chip = cluster.accelerator.id
    yield HealthCheck(
        check="matrix product of the plan's shape",
        when=BEFORE,
        threshold=float(0.97 * (s.case.constants.gemm * s.case.chip.bf16_flops)),
        unit="FLOP/s at least",
        on_fail="drain",
        source="calibrated share of the peak less two standard deviations",
    )
    host_copy = accepted(chip, "host copy")
    if host_copy is not None:
        yield HealthCheck(
            check="host copy",
            when=BEFORE,
            threshold=1e9 * host_copy.value,
            unit="bytes/s at least",
            on_fail="drain",
            source=host_copy.source,
        )
    if s.per_node > 1:
        ring = accepted(chip, "node all-reduce")
        loosest = acceptance_limits("node all-reduce")[0]
        least = node_busbw(cluster)[0] * loosest if ring is None else 1e9 * ring.value
        yield HealthCheck(
            check="all-reduce in the node, 16 GB",
            when=BEFORE,
            threshold=least,
            unit="bytes/s at least",
            on_fail="drain",
            source="the burn-in's threshold" if ring is None else ring.source,
        )


def _link_checks(s: Site) -> Iterator[HealthCheck]:
    """Cards and links, where they join nodes."""
    if not s.wired:
        return
    rate = cards(s.cluster).bytes_per_s
    yield HealthCheck(
        check="rate that each card negotiated",
        when=OFTEN,
        threshold=rate,
        unit="bytes/s",
        on_fail="drain",
        source="line rate",
    )
    yield HealthCheck(
        check="flaps of a link",
        when=OFTEN,
        threshold=0.0,
        unit="in 6 h at most",
        on_fail="ticket",
        source=ACCEPTANCE,
    )
    card = accepted(s.cluster.accelerator.id, "card to card")
    share = acceptance_limits("card to card")[0] if card is None else card.value / card.rated
    yield HealthCheck(
        check="card to card",
        when=BEFORE,
        threshold=share * rate,
        unit="bytes/s at least",
        on_fail="drain",
        source="loosest published acceptance test" if card is None else card.source,
    )


def _node_checks(s: Site) -> Iterator[HealthCheck]:
    """Nodes that fail again, fall silent or stand idle."""
    yield HealthCheck(
        check="node that failed twice",
        when="after each failure",
        threshold=2.0,
        unit="failures in 30 days",
        on_fail="return to the maker",
        source=source("R052"),
    )
    yield HealthCheck(
        check="silent for",
        when="always",
        threshold=hang_timeout_s(s.step_s, 0.0),
        unit="s at most",
        on_fail="dump the flight recorder, restart in place",
        source=source("R067"),
    )
    yield HealthCheck(
        check="weekly, idle nodes",
        when="every 7 days",
        threshold=1.0,
        unit="whole burn-in of the node",
        on_fail="drain",
        source=source("R127"),
    )
