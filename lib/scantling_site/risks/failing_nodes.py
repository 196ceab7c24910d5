"""Trouble with nodes that fail: more often than assumed, with no spare at hand, several at a time,
a whole site cut off."""

import numpy as np
from scantling import catalogue
from scantling.base import show
from scantling.base.show import several
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import elastic, spares
from scantling.endure.times import SLOW_REPAIR_S, SLOW_REPAIRS

from ..constants import CONSTANTS
from ..domains import DomainLoss, domains
from ..facts import number, source
from ..job_site import STANDSTILL, Site
from .trouble import (
    DELIVERY,
    EVEN,
    NETWORK_ENGINEER,
    NO_RATE,
    SIGNING,
    SITE_ENGINEER,
    TRAINING_ENGINEER,
    Trouble,
    at_least_one,
    days_at,
    goodput_at,
    goodputs_of_fleets,
    idle_nodes,
    usd_of_nodes,
)

FLEETS = {
    "rsc-1": "Meta RSC-1",
    "rsc-2": "Meta RSC-2",
    "ft-hsdp": "FT-HSDP",
    "imbue": "Imbue",
    "bloom": "BLOOM",
    "opt-175b": "OPT-175B",
    "llama3": "Llama 3",
}


def standstill(s: Site) -> Trouble | None:
    """Failures faster than recovery."""
    e = s.e
    if e.goodput > STANDSTILL:
        return None
    return Trouble(
        id="standstill",
        risk="failures come faster than the job recovers from them: the run does not end",
        likelihood=1.0,
        likelihood_from="the design's failure rate",
        days=s.run.days,
        usd=s.run.usd(s.run.days),
        in_headline=True,
        evidence=(
            f"{e.mtbf_s:,.0f} s between failures, {e.recovery_s:,.0f} s to recover from one; "
            f"counted on {s.run.days:.0f} days"
        ),
        mitigation=(
            "recovery replica by replica, copies in peers' memory, or fewer devices in one job"
        ),
        owner=TRAINING_ENGINEER,
        by=SIGNING,
    )


def worse_fleet(s: Site) -> Trouble | None:
    """The fleet fails as often as published ones that are worse than the assumed."""
    assumed = s.e.failures_per_1000_node_days
    presets = catalogue.failure_presets()
    fleets = {name: float(presets[id].per_1000_node_days) for id, name in FLEETS.items()}
    worse = {name: rate for name, rate in fleets.items() if rate > assumed * 1.05}
    if not worse:
        return None

    more = np.array(list(worse.values())) / assumed
    screened = np.maximum(more * (1 - CONSTANTS.lemons), 1.0)
    with_all, without_lemons = goodputs_of_fleets(s, np.array([more, screened])).tolist()
    chance = (len(worse) + 1) / (len(fleets) + 2)
    days = float(np.mean([days_at(s, g) for g in with_all]))
    left = float(np.mean([days_at(s, g) for g in without_lemons]))
    names = ", ".join(f"{name} {rate:.3g}" for name, rate in worse.items())
    soak = number("R167")
    return Trouble(
        id="failures",
        risk="the fleet fails more often than assumed",
        likelihood=chance,
        likelihood_from=f"{len(worse)} of {len(fleets)} published fleets",
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{show.number(assumed)} failures per 1,000 node-days assumed; evaluated at {names}: "
            f"goodput down to {min(with_all):.1%}"
        ),
        mitigation=(
            f"soak {soak:.0f} days and return nodes that fail twice: {CONSTANTS.lemons:.0%} of the "
            "failures go with them"
        ),
        left=chance * left,
        mitigation_usd=s.run.usd(soak),
        owner=SITE_ENGINEER,
        by=DELIVERY,
    )


def no_spares(s: Site) -> Trouble | None:
    """The spares that the design counts on are not there."""
    if s.spares < 1:
        return None
    e = s.e
    bare = float(goodput_at(s, spares=s.idle_nodes))
    days = days_at(s, bare)
    per_day = s.evictions_per_s * DAY_S
    return Trouble(
        id="spares",
        risk="the hot spares are not there (lent out, not bought, not on the job's fabric)",
        likelihood=EVEN,
        likelihood_from=NO_RATE,
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{several(s.spares, 'spare')} for {show.number(per_day, 2)} evictions a day of "
            f"{e.repair_s / HOUR_S:.1f} h: the job stands {e.badput['spare shortage']:.2%} of the "
            f"time; without them goodput is {bare:.1%} instead of {e.goodput:.1%}, even where it "
            f"shrinks{idle_nodes(s)}"
        ),
        mitigation=(
            f"{several(s.spares, 'spare node')} inside the allocation, under the same spines"
        ),
        left=0.0,
        mitigation_usd=s.run.usd(s.run.days * s.spares / (s.nodes + s.spares)),
        owner=SITE_ENGINEER,
        by=SIGNING,
    )


def slow_repairs(s: Site) -> Trouble | None:
    """Nodes that are back the next day only, where the design states no repair time."""
    e = s.e
    if s.a.resolved.reliability.repair_s is not None or e.repair_s >= SLOW_REPAIR_S:
        return None
    load = s.evictions_per_s * SLOW_REPAIR_S
    segments, loads = e.segments, [(1.0, load)]
    most = min(s.nodes + 2, 4096)
    need = int(segments.nodes(spares.cheapest(loads, s.nodes / segments.nodes(1), limit=most)))
    standing_by = np.array([s.standbys, max(need, s.spares)])
    lived = goodput_at(s, repair_s=SLOW_REPAIR_S, spares=standing_by)
    slow, with_parts = np.asarray(lived).tolist()
    days = days_at(s, slow)
    return Trouble(
        id="repairs",
        risk="nodes are back the next day only (parts and hands not on site)",
        likelihood=SLOW_REPAIRS,
        likelihood_from=(
            "two of three published repair times are a day or more: "
            + source("R131", "R169", "R170")
        ),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{e.repair_s / HOUR_S:.1f} h assumed; at 24 h {load:.1f} nodes are out on average "
            f"against {several(s.spares, 'spare')}: goodput {slow:.1%}, waiting, or launched "
            f"again on fewer replicas, against {e.goodput:.1%}{idle_nodes(s)}"
        ),
        mitigation=f"parts on site, or {several(need, 'spare')}",
        left=SLOW_REPAIRS * days_at(s, with_parts),
        mitigation_usd=usd_of_nodes(s, need - s.spares),
        owner=SITE_ENGINEER,
        by=SIGNING,
    )


def beyond_spares(s: Site) -> Trouble | None:
    """Domains of several nodes whose loss the spares do not cover: single nodes that find no spare
    are the headline's spare shortage."""
    rows = [x for x in domains(s).rows if x.wait_s > 0 and x.nodes > 1 and _events(x)]
    if not rows:
        return None
    # of the domains of more than one node each stands once, under its own name
    waited = {x.id: _events(x) * x.wait_s / DAY_S for x in rows}
    chance = at_least_one(sum(_events(x) for x in rows))
    days = sum(waited.values()) / chance
    need = max((x.nodes for x in rows if x.id != "building"), default=0)
    together = ", ".join(
        f"{x.id}: {several(x.nodes, 'node')}, {show.number(_events(x), 2)} a run" for x in rows
    )
    mitigation = "a second site's copies"
    if need:
        mitigation = (
            f"{several(need, 'spare')} or switches that nodes reach twice; else continue with "
            "fewer nodes"
        )
    return Trouble(
        id="domains",
        risk="more nodes fail together than there are spares",
        likelihood=chance,
        likelihood_from="; ".join(dict.fromkeys(x.rate_source for x in rows)),
        days=days,
        usd=s.run.usd(days),
        evidence=f"{together}; {several(s.spares, 'spare')}",
        mitigation=mitigation,
        left=waited.get("building", 0.0),
        mitigation_usd=usd_of_nodes(s, need - s.spares),
        owner=NETWORK_ENGINEER,
        by=SIGNING,
    )


def _events(x: DomainLoss) -> float:
    """Losses of a domain in the run; none where nobody has published a rate."""
    return x.events_per_run or 0.0


def sites_apart(s: Site) -> Trouble | None:
    """A site that is cut off from the others."""
    if s.sites < 2:
        return None
    every = number("R157")
    back = number("R158")
    events = s.sites * s.run.days * 24 / every
    chance = at_least_one(events)
    days = events * back / 24 / s.sites / chance
    return Trouble(
        id="sites",
        risk="a site is cut off from the others and its steps do not count",
        likelihood=chance,
        likelihood_from=source("R157", "R158"),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{s.sites} sites, an edge fails every {every:,.0f} h and is back in {back:.0f} h: "
            f"{show.number(events, 2)} in the run; a synchronous run would lose {s.sites} times as "
            "much"
        ),
        mitigation="two disjoint paths to each site",
        left=0.0,
        owner=NETWORK_ENGINEER,
        by=SIGNING,
    )


def lost_replica(s: Site) -> Trouble | None:
    """No spare at all."""
    plan = s.plan
    if plan["dp"] < 2 or s.standbys > 0:
        return None
    events = s.evictions_per_s * s.run.days * DAY_S
    chance = at_least_one(events)
    days = events * s.e.repair_s / DAY_S / max(chance, 1e-12)
    ratio = elastic.shrink_ratio(plan["grad_accum"], plan["dp"])
    return Trouble(
        id="no-spare",
        risk="there is no spare at all: each lost node stops the job until it is repaired",
        likelihood=chance,
        likelihood_from="the design's failure rate",
        days=days,
        usd=s.run.usd(days),
        in_headline=True,
        evidence=(
            f"{show.number(events, 2)} evictions in the run, {s.e.repair_s / HOUR_S:.1f} h each; "
            f"with one replica less the step is {ratio:.2f} times as long"
        ),
        mitigation="one spare node",
        left=0.0,
        mitigation_usd=usd_of_nodes(s, 1),
        owner=SITE_ENGINEER,
        by=SIGNING,
    )
