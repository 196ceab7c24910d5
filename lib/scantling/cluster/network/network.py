"""The network blueprint of a design: scale-up domain, topology with its counts and price,
alternatives, tiers, axes, bursts, settings, curves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isnan

from ... import catalogue
from ...base.records import Record
from ...physics.curves import Curve
from ..placement import blocks, placement
from ..site import is_torus, site_of
from .build import (
    Alternative,
    Prices,
    Switch,
    alternatives,
    built,
    cards,
    prices,
    published,
    radix_of,
    switch_for,
    switches,
)
from .topology import Topology
from .traffic import Axis, Burst, Setting, axes, bursts, curves_of, measured, settings, trust

# NVL72: 18 switch chips, one link of every device to each; four wire pairs a link and direction
# pair make the rack's copper
PAIRS_PER_LINK = 4


@dataclass(frozen=True)
class ScaleUp(Record):
    """The domain inside which every device reaches every other at the link's rate."""

    fabric: str
    name: str
    devices: int
    domains: int
    link_bytes_per_s: float  # of one device, one direction
    switches: int  # of one domain; 0 where chips are joined directly
    links: int  # of one domain; 0 where nobody has published them
    copper_cables: int  # of one domain, where it is wider than a board
    bisection_bytes_per_s: float  # of one domain, one direction
    egress_bytes_per_s: float  # scale-out of one domain, one direction
    reduction: bool
    ratio_one_way: float  # link over the device's share of the cards, both one direction
    ratio_as_printed: (
        float  # both directions of the link, as data sheets print it, over one direction of a card
    )


@dataclass(frozen=True)
class Tier(Record):
    """One tier of the network as a device sees it."""

    tier: str
    devices: int
    device_bytes_per_s: float  # one direction, all devices sending
    switches_passed: int
    switching_s: float  # in the switches of the way
    hop_s: float  # one step of a collective, software included
    oversubscription: float


@dataclass(frozen=True)
class Crossing(Record):
    """What one step sends over one kind of edge, and how long that keeps the edge busy when spread
    evenly."""

    edge: str  # domains (scale-up) | units (under one leaf a rail) | pods
    blocks: int
    bytes: float  # one direction, all devices, a step
    by_axis: dict
    capacity_bytes_per_s: float
    busy_s: float
    busy_share: float  # of the step


@dataclass(frozen=True)
class Network(Record):
    """Everything point by point; `topology` is what the design is built with, `alternatives` starts
    with it."""

    scale_up: ScaleUp
    fabric: str
    fabric_name: str
    switch: Switch | None
    rails: int
    card_bytes_per_s: float
    topology: Topology
    rule: str
    provided: bool
    usd: float | None
    usd_per_device: float | None
    prices: Prices
    alternatives: tuple[Alternative, ...]
    cheapest: str
    cheapest_saves_usd: float | None
    tiers: tuple[Tier, ...]
    axes: tuple[Axis, ...]
    crossings: tuple[Crossing, ...]
    bursts: Burst
    settings: tuple[Setting, ...]
    curves: tuple[Curve, ...]
    curve_errors: tuple[dict, ...]  # how far such curves were off where somebody has measured
    measured_curves: tuple[dict, ...]  # of the same accelerator
    published: tuple[dict, ...]  # published networks nearest in size
    notes: tuple[str, ...]


def network(assessment) -> Network:
    """Network of the main phase's plan on the design's cluster.

    Rule of the topology: a torus where the chips are one; what the design says of pods and
    oversubscription; a dragonfly on Slingshot;
    else a non-blocking tree of as few tiers as the switch's ports allow, rails on their own leaves.
    `alternatives` prices the others.
    """
    s = site_of(assessment)
    assessment = s.a
    cluster = assessment.resolved.cluster
    own, rule, provided = built(cluster)
    fabric = catalogue.fabric(cluster.scale_out)
    n, rate = cards(cluster)
    others = alternatives(assessment, own)
    ranked = [a for a in others if a.run_usd is not None]
    best = min(ranked, key=lambda a: a.run_usd) if ranked else others[0]
    saves = others[0].run_usd - best.run_usd if ranked and others[0].run_usd is not None else None
    switch = None if own.kind == "torus" else switch_for(cluster.scale_out) or switches()["sn5600"]
    rows = axes(assessment)
    price = others[0].usd
    near = sorted(
        published(),
        key=lambda p: (
            (p["kind"] == "torus") != (own.kind == "torus"),
            abs(p["devices"] - cluster.devices),
        ),
    )[: 1 if own.kind == "torus" else 3]
    return Network(
        scale_up(cluster),
        fabric.id,
        fabric.name,
        switch,
        cluster.nics_per_node,
        rate,
        own,
        rule,
        provided,
        price,
        None if price is None else price / cluster.devices,
        prices(),
        others,
        best.what,
        saves,
        tiers(cluster, own, switch),
        rows,
        crossings(assessment, own),
        bursts(assessment, rows),
        settings(assessment, own, switch, rows),
        curves_of(assessment),
        trust(cluster),
        measured(cluster),
        tuple(near),
        _notes(assessment, own, switch, provided, rate, rows),
    )


def scale_up(cluster) -> ScaleUp:
    """The scale-up domain: HGX board, NVL72 rack, mesh or torus.

    Links: one of a device to each switch chip, times the links a device has to it. NVL72: 18 chips
    x 72 = 1,296 links, four twisted pairs
    each: 5,184 copper cables. bisection: half of the devices' links where switches join them; of a
    torus the worst cut.
    """
    up = catalogue.fabric(cluster.scale_up)
    size = max(1, min(cluster.scale_up_domain, cluster.devices))
    chip = switch_for(up.id, "scale-up")
    count = ceil(chip.per_domain * size / max(up.domain_devices, 1)) if chip and size > 1 else 0
    if chip and size > cluster.devices_per_node:
        count = chip.per_domain
    links = (
        round(size * cluster.accelerator.link_bytes_per_s / chip.port_bytes_per_s)
        if chip and size > 1
        else 0
    )
    rack = size > cluster.devices_per_node and links > 0
    torus = is_torus(cluster)
    from .topology import near_cube
    from .topology import torus as of

    bisection = (
        of(near_cube(size, 2 if "2D" in up.name else 3), up.p2p_bytes_per_s).bisection_bytes_per_s
        if torus
        else size / 2 * cluster.scale_up_bytes_per_s
    )
    out = cluster.scale_out_bytes_per_s
    _, card = cards(cluster)
    return ScaleUp(
        up.id,
        up.name,
        size,
        ceil(cluster.devices / size),
        cluster.scale_up_bytes_per_s,
        count,
        links,
        links * PAIRS_PER_LINK if rack else 0,
        bisection,
        size * out,
        up.in_network_reduction,
        cluster.scale_up_bytes_per_s / out,
        2 * cluster.scale_up_bytes_per_s / card,
    )


def tiers(cluster, t: Topology, switch: Switch | None) -> tuple[Tier, ...]:
    """The tiers from the scale-up domain to the site (or sites), the narrowest last."""
    delay = 0.0 if switch is None or isnan(switch.latency_s) else switch.latency_s
    out, hop = cluster.scale_out_bytes_per_s, cluster.scale_out_latency_s
    rows = [
        Tier(
            "scale-up domain",
            max(1, min(cluster.scale_up_domain, cluster.devices)),
            cluster.scale_up_bytes_per_s,
            1,
            0.0,
            cluster.scale_up_latency_s,
            1.0,
        )
    ]
    if t.kind == "torus":
        if cluster.devices > cluster.scale_up_domain:
            rows.append(Tier("slices", cluster.devices, out, 3, 0.0, hop, 1.0))
        return tuple(rows)
    per = cluster.devices / max(t.endpoints, 1)
    within = lambda endpoints: int(
        min(cluster.devices, max(round(endpoints * per), cluster.devices_per_node))
    )  # noqa: E731
    if cluster.devices > rows[0].devices:
        rows.append(Tier("leaf unit", within(t.unit_endpoints), out, 1, delay, hop, 1.0))
        last = rows[-1].devices
        if within(t.pod_endpoints) > last:
            passed = (
                t.hops
                if t.pod_endpoints * max(1, cluster.sites) >= t.endpoints
                else max(3, t.hops - 2)
                if t.kind == "pods"
                else {"dragonfly": 2, "dragonfly+": 3}.get(t.kind, t.hops)
            )
            rows.append(Tier("pod", within(t.pod_endpoints), out, passed, passed * delay, hop, 1.0))
            last = rows[-1].devices
        site = -(-cluster.devices // max(1, cluster.sites))
        if last < site:
            rows.append(
                Tier(
                    "site",
                    site,
                    out / t.oversubscription,
                    t.hops,
                    t.hops * delay,
                    hop,
                    t.oversubscription,
                )
            )
    if cluster.sites > 1:
        wan = catalogue.fabric("spectrum-xgs")
        rows.append(
            Tier(
                "sites",
                cluster.devices,
                cluster.site_bytes_per_s * cluster.sites / cluster.devices,
                t.hops,
                t.hops * delay,
                wan.latency_s,
                float("nan"),
            )
        )
    return tuple(rows)


def crossings(assessment, t: Topology) -> tuple[Crossing, ...]:
    """Load of every edge under the kit's rank order (placement.orders): capacity is all devices'
    share of the cards, over the
    oversubscription where that lies (pods, or leaves of two tiers). Even spreading is the best
    case; `settings` says what hashing makes of it."""
    cluster, place = assessment.resolved.cluster, placement(assessment)
    step, out = float(assessment.chosen.step.total), []
    at_leaf = t.oversubscription if t.tiers == 2 and t.pod_endpoints <= t.unit_endpoints else 1.0
    for name, per, ratio in (
        ("domain", place.per_domain, 1.0),
        ("unit", place.per_unit, at_leaf),
        ("pod", place.per_pod, t.oversubscription),
    ):
        by = place.orders[0][f"over_{name}"]
        if by and ceil(place.devices / per) != (out[-1].blocks if out else 0):
            total, capacity = (
                sum(by.values()),
                place.devices * cluster.scale_out_bytes_per_s / ratio,
            )
            out.append(
                Crossing(
                    f"{name}s",
                    ceil(place.devices / per),
                    total,
                    by,
                    capacity,
                    total / capacity,
                    total / capacity / step,
                )
            )
    return tuple(out)


def _notes(assessment, t: Topology, switch, provided, rate, rows) -> tuple[str, ...]:
    cluster, out = assessment.resolved.cluster, []
    if (
        cluster.oversubscription > 1
        and cluster.devices <= (cluster.pod_devices or cluster.devices)
        and t.tiers > 1
    ):
        from ...physics.step import step_time

        case = assessment.chosen.case
        longer = (
            float(
                step_time(
                    replace(
                        case,
                        link=replace(
                            case.link, pod_devices=float(blocks(assessment.resolved.cluster)[0])
                        ),
                    )
                ).total
                / step_time(case).total
            )
            - 1
        )
        out.append(
            f"the estimate takes one pod for the whole job; with the "
            f"{cluster.oversubscription:g} : 1 above the leaf the step is {longer:.1%} "
            f"longer: name the pods (pod_devices) to count it"
        )
    for a in rows:
        if (
            cluster.scale_up.startswith("xgmi-mi3")
            and a.ranks < cluster.scale_up_domain
            and a.alone_s > 1.3 * a.time_s
        ):
            out.append(
                f"{a.axis} {a.ranks} has {a.ranks - 1} of a device's "
                f"{cluster.scale_up_domain - 1} links: its calls alone take "
                f"{a.alone_s:.2f} s a step, {a.time_s:.2f} s in the estimate, which "
                f"counts all links; a group of {cluster.scale_up_domain} has them"
            )
    if provided and switch is not None:
        out.append(
            f"{cluster.scale_out} is the provider's network: counts are those of an "
            f"equivalent of {t.radix}-port switches"
        )
    if switch is not None and switch.verified != "text":
        out.append(f"ports of {switch.name} are {switch.verified}, not read in a maker's text")
    if t.reach_endpoints < 2 * t.endpoints and t.kind not in ("torus", "pods"):
        out.append(
            f"{t.tiers} tiers of {t.radix} ports end at {t.reach_endpoints:,.0f} cards: "
            f"twice this size needs another tier"
        )
    if t.kind == "dragonfly" and t.oversubscription > 1:
        out.append(
            "all ports between groups are counted as cabled; Frontier fills 292 of a "
            "group's 512 (1.75 : 1 between groups)"
        )
    if switch is not None and t.radix != radix_of(switch, rate):
        out.append(f"radix {t.radix} after splitting ports")
    return tuple(out)
