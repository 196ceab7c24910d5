"""Trouble with what is there but does not give its rate: store, network, slow devices, devices that
compute wrongly."""

from dataclasses import replace

import numpy as np
from scantling import catalogue
from scantling.base import show
from scantling.base.show import seconds
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import storage

from ..constants import CONSTANTS
from ..facts import number, source
from ..job_site import Site
from ..rollout.screen import screen, straggler_share
from .trouble import (
    ACCEPTANCE,
    EVEN,
    FIRST_STEP,
    NETWORK_ENGINEER,
    NO_RATE,
    SIGNING,
    SITE_ENGINEER,
    STORAGE_ENGINEER,
    TRAINING_ENGINEER,
    Trouble,
    at_least_one,
    days_at,
    days_of_step,
    goodput_at,
)


def corruption(s: Site) -> Trouble | None:
    """A device that computes wrongly, found late."""
    events = s.e.corruptions_per_s * s.useful_s
    chance = at_least_one(events)
    if chance <= 0:
        return None
    checked_s = s.e.check_every_s / 2
    later_s = CONSTANTS.late_h * HOUR_S - checked_s
    days = events / chance * later_s / DAY_S
    return Trouble(
        id="corruption",
        risk="silent corruption is found late",
        likelihood=chance,
        likelihood_from=source("R010"),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{show.number(events, 2)} corruptions expected; the estimate has each found after "
            f"{checked_s / 60:.0f} min by checks, without them it takes more than 8 h "
            f"({source('R069')})"
        ),
        mitigation=f"recompute one step elsewhere every {seconds(s.e.check_every_s)}",
        left=0.0,
        mitigation_usd=0.0,
        owner=TRAINING_ENGINEER,
        by=FIRST_STEP,
    )


def slow_store(s: Site) -> Trouble | None:
    """A file system at a quarter of its rate."""
    e = s.e
    has = storage.rates(s.cluster, s.nodes)
    write = float(min(has.write_bytes_per_s, s.nodes * has.node_write_bytes_per_s))
    more = (CONSTANTS.slow_store - 1) * e.checkpoint_bytes
    durable = e.checkpoint_durable_s + more / write
    restart = e.restart_s + more / float(has.read_bytes_per_s)
    copied = np.array([durable, min(CONSTANTS.peers_s, durable)])
    slow, peers = np.asarray(goodput_at(s, durable_s=copied, restart_s=restart)).tolist()
    days = days_at(s, slow)
    if days <= 0:
        return None
    return Trouble(
        id="store",
        risk="the file system gives a quarter of its rate (shared, rebuilding, full)",
        likelihood=EVEN,
        likelihood_from=NO_RATE,
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{has.what}: {show.bytes_per_s(write)} assumed; at a quarter a save is durable after "
            f"{s.save_s + more / write:,.0f} s instead of {s.save_s:,.0f}, goodput {slow:.1%}"
        ),
        mitigation="saves to the peers' memory first, a rate in the contract",
        left=EVEN * days_at(s, peers),
        owner=STORAGE_ENGINEER,
        by=SIGNING,
    )


def slow_network(s: Site) -> Trouble | None:
    """A fabric below its rate: flows that collide on Ethernet, else one link at half its rate."""
    if not s.wired:
        return None
    ethernet = catalogue.fabric(s.cluster.scale_out).ethernet
    factor = 1 + number("R168") / 100 if ethernet else CONSTANTS.slow_link_factor
    link = s.case.link
    slow = s.link_ratio(replace(link, out_bytes_per_s=link.out_bytes_per_s / factor))
    if slow <= 1:
        return None
    return colliding_flows(s, factor, slow) if ethernet else slow_link(s, slow)


def colliding_flows(s: Site, factor: float, slow: float) -> Trouble:
    """An Ethernet fabric before its routing is tuned."""
    days = days_of_step(s, slow)
    return Trouble(
        id="network",
        risk="flows collide and the fabric gives less than its rate",
        likelihood=CONSTANTS.untuned,
        likelihood_from=(
            "each of three published Ethernet fabrics lost as much until its routing or uplinks "
            "were changed: " + source("R168", "R171", "R172")
        ),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"all-reduce at 1/{factor:.2f} of its rate, what collisions cost in a usual three-tier "
            f"Ethernet (40 and 70% elsewhere), makes the step {slow:.2f} times as long"
        ),
        mitigation=(
            "adaptive routing or paths pinned per rail, many queue pairs; all-reduce on all nodes "
            "before acceptance"
        ),
        left=0.0,
        mitigation_usd=0.0,
        owner=NETWORK_ENGINEER,
        by=ACCEPTANCE,
    )


def slow_link(s: Site, slow: float) -> Trouble:
    """One link at half its rate, until it is found."""
    days = (slow - 1) * (CONSTANTS.slow_link_min * 60) / DAY_S
    return Trouble(
        id="network",
        risk="a link at half its rate slows every ring until it is found",
        likelihood=CONSTANTS.shared_link * min(s.used / CONSTANTS.slow_link_devices, 1.0),
        likelihood_from=source("R138"),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"the step is {slow:.2f} times as long at half of a card's rate, for 72 min; "
            f"unnoticed, {days_of_step(s, slow):.1f} days of this run"
        ),
        mitigation="per-rank timers, pair tests at each stop",
        left=0.0,
        mitigation_usd=0.0,
        owner=NETWORK_ENGINEER,
        by=ACCEPTANCE,
    )


def unscreened(s: Site) -> Trouble | None:
    """Slow devices that stay in the job."""
    cut = screen(s)
    counted = straggler_share(s)
    extra = max(cut.waits_unscreened - counted, 0.0)
    after = max(cut.waits_screened - counted, 0.0)
    if extra <= 0:
        return None
    chance = number("R139") / 100
    days = s.run.days * extra
    return Trouble(
        id="stragglers",
        risk="slow devices stay in the job",
        likelihood=chance,
        likelihood_from=source("R139"),
        days=days,
        usd=s.run.usd(days),
        evidence=cut.lines[1],
        mitigation=f"screen: return nodes with a device {cut.evict_slower_than:.1%} over the mean",
        left=chance * after * s.run.days,
        mitigation_usd=cut.usd_cost,
        owner=SITE_ENGINEER,
        by=ACCEPTANCE,
    )
