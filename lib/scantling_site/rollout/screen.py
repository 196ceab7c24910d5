"""The straggler screen: where to cut slow nodes before the run, what it costs, what it brings."""

from functools import lru_cache
from typing import TypedDict

import numpy as np
from scantling.base.columns import Array
from scantling.base.records import Known, Lines, Record, record
from scantling.base.stats import quantile
from scantling.physics.stragglers import slowest_of

from ..facts import number, source
from ..job_site import Site

# standard deviations between the whiskers of a normal box plot (quartiles +- 1.5 ranges)
WHISKERS = 2 * 2.698
CUTS: Array = np.concatenate([[0.0], np.geomspace(1e-5, 0.2, 120)])


class CutPoint(TypedDict):
    """One share of the nodes to return, and what it makes of the step."""

    cut: float  # share of the nodes
    waits: float  # share of the step
    paid_per_step: float  # of one without stragglers


@record
class Screen(Record):
    """The straggler screen: where to cut, what it costs and what it brings. Shares of the step or
    of the nodes."""

    spread: float  # standard deviation of one device's time over its mean, unscreened
    spread_from: str
    spread_in_the_estimate: float
    slow_share: float  # machines that are outliers
    slow_by: float
    waits_unscreened: float  # step time lost to the slowest device, no screen
    cut: float  # share of nodes to return
    percentile: float  # 100 (1 - cut): of a node's slowest device
    evict_slower_than: float  # its time over the mean of all devices
    nodes_cut: int
    waits_screened: float
    gain: float  # of the step
    usd_cost: Known  # of the nodes held beyond the job for as long as the run
    usd_gain: Known
    curve: tuple[CutPoint, ...]
    lines: Lines


def spread() -> float:
    """Standard deviation of the times of equal devices over their mean (SC'22)."""
    return number("R153") / 100 / WHISKERS


@lru_cache(maxsize=256)
def slowest_kept(n: int, per_node: int) -> tuple[Array, Array]:
    """(quantile below which devices are kept, the slowest of n of them) at each of CUTS."""
    keep = np.minimum((1 - CUTS) ** (1 / per_node), 1 - 1e-15)
    return keep, slowest_of(n, keep)


def straggler_share(s: Site) -> float:
    """Share of the step that the estimate counts for the slowest device."""
    return float(s.a.step_breakdown_s["straggler"]) / s.step_s


def screen(s: Site) -> Screen:
    """Where to cut slow nodes before the run, so that what is paid for a useful step is least.

    Device times normal with the spread that equal devices showed (SC'22: 8 % between whiskers, 5.4
    standard deviations), and a share of machines 10 % slower on top (MegaScale). The step waits for
    the slowest of n devices: 1 + sd x E[max]. Returning the share q of the nodes, by each node's
    slowest device, truncates the devices at Phi^-1((1 - q)^(1 / devices per node)) and holds q more
    nodes; the cut minimises (1 + sd x E[max | cut]) / (1 - q). Independent and normal; heat in one
    row is correlated and is found by position.
    """
    nodes = s.used_nodes
    sd = spread()
    slow_share = number("R155") / 100
    slow_by = number("R156") / 100
    keep, slowest = slowest_kept(s.used, s.per_node)
    waits = np.maximum(sd * slowest, 0)
    paid = (1 + waits) / (1 - CUTS)
    best = int(np.argmin(paid))
    alone = float(slowest_of(max(s.used, 2)))
    slow_among = 1 - (1 - slow_share) ** nodes  # chance that one of the slow machines is there
    unscreened = slow_among * max(slow_by, alone * sd) + (1 - slow_among) * alone * sd
    cut = float(CUTS[best]) + slow_share
    screened = float(waits[best])
    returned = nodes * cut / (1 - cut)
    slower_than = min(float(quantile(keep[best])) * sd, (screened + slow_by) / 2)
    return Screen(
        spread=sd,
        spread_from=source("R153"),
        spread_in_the_estimate=straggler_share(s) / alone,
        slow_share=slow_share,
        slow_by=slow_by,
        waits_unscreened=unscreened,
        cut=cut,
        percentile=100 * (1 - cut),
        evict_slower_than=slower_than,
        nodes_cut=int(np.ceil(returned)),
        waits_screened=screened,
        gain=unscreened - screened,
        usd_cost=s.run.usd(s.run.days * returned / nodes),
        usd_gain=s.run.usd(s.run.days * (unscreened - screened) / (1 + unscreened)),
        curve=tuple(
            CutPoint(cut=q, waits=w, paid_per_step=p)
            for q, w, p in zip(CUTS[::10].tolist(), waits[::10].tolist(), paid[::10].tolist())
        ),
        lines=(
            f"cut the slowest {cut:.2%} of the nodes (about {returned:,.1f} of {nodes:,}): those "
            f"with a device {slower_than:.1%} over the mean of all; {slow_share:.1%} are machines "
            f"that are {slow_by:.0%} slow",
            waiting(s, unscreened, screened),
        ),
    )


def waiting(s: Site, unscreened: float, screened: float) -> str:
    """What the slowest device costs, as shares of the step."""
    return (
        f"the slowest of {s.used:,} devices costs {unscreened:.1%} of every step unscreened, "
        f"{screened:.1%} screened; {straggler_share(s):.1%} is in the estimate"
    )
