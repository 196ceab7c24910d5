"""The network blueprint of a design: scale-up domain, topology with its counts and price,
alternatives, tiers, axes, bursts, settings, curves."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, isnan, nan
from typing import Any, TypedDict

from scantling import catalogue
from scantling.base.records import Known, Lines, Record, record
from scantling.catalogue.packet_switches import Switch, radix_of, switch_for, switch_of
from scantling.design.cluster import Cluster
from scantling.endure.failures import rack_devices
from scantling.physics.collectives import Curve

from ..constants import CONSTANTS
from ..fabric.build import built, cards, torus_of
from ..fabric.prices import Prices, prices
from ..fabric.published_networks import PublishedNetwork, published
from ..fabric.topology import Topology
from ..job_site import Site, is_torus
from ..placement import Placement, blocks, placement
from .fabric_settings import Setting, settings
from .other_networks import Alternative, alternatives
from .traffic import (
    Axis,
    Burst,
    CurveError,
    MeasuredCurve,
    axes,
    bursts,
    curves_of,
    measured,
    trust,
)

# NVL72: 18 switch chips, one link of every device to each; four wire pairs a link and direction
# pair make the rack's copper
PAIRS_PER_LINK = 4


@record
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
    # both directions of the link, as data sheets print it, over one direction of a card
    ratio_as_printed: float


@record
class Tier(Record):
    """One tier of the network as a device sees it."""

    tier: str
    devices: int
    device_bytes_per_s: float  # one direction, all devices sending
    switches_passed: float
    switching_s: float  # in the switches of the way
    hop_s: float  # one step of a collective, software included
    oversubscription: float


@record
class Crossing(Record):
    """What one step sends over one kind of edge, and how long that keeps the edge busy when spread
    evenly."""

    edge: str  # domains (scale-up) | units (under one leaf a rail) | pods
    blocks: int
    bytes: float  # one direction, all devices, a step
    by_axis: dict[str, float]
    capacity_bytes_per_s: float
    busy_s: float
    busy_share: float  # of the step


class Total(TypedDict):
    """One line of what has to be bought."""

    what: str
    amount: float
    unit: str


@record
class Network(Record):
    """Everything point by point; `topology` is what the design is built with, `alternatives` starts
    with it."""

    scale_up: ScaleUp
    phase: str  # the one that waits most for it: axes, crossings, bursts and settings are its own
    fabric: str
    fabric_name: str
    switch: Switch | None
    rails: int
    card_bytes_per_s: float
    topology: Topology
    rule: str
    provided: bool
    racks: int  # of the devices
    usd: Known
    usd_per_device: Known
    prices: Prices
    alternatives: tuple[Alternative, ...]
    cheapest: str
    cheapest_saves_usd: Known
    tiers: tuple[Tier, ...]
    axes: tuple[Axis, ...]
    crossings: tuple[Crossing, ...]
    bursts: Burst
    settings: tuple[Setting, ...]
    curves: tuple[Curve, ...]
    curve_errors: tuple[CurveError, ...]  # how far such curves were off where somebody has measured
    measured_curves: tuple[MeasuredCurve, ...]  # of the same accelerator
    published: tuple[PublishedNetwork, ...]  # published networks nearest in size
    notes: Lines

    @property
    def totals(self) -> tuple[Total, ...]:
        """What has to be bought, in a few lines; those that there are."""
        t = self.topology
        watts = self.switch.max_w if self.switch else nan
        megawatts = 0.0 if isnan(watts) else 1e-6 * (t.switches * watts)
        lines: list[tuple[str, Known, str]] = [
            ("leaf switches", t.leaf, ""),
            ("spine switches", t.spine, ""),
            ("core switches", t.core, ""),
            ("optical circuit switches", t.circuits, ""),
            *((f"links, {name}", n, "") for name, n in t.cables.items()),
            ("optics", t.transceivers, ""),
            ("copper cables of a scale-up domain", self.scale_up.copper_cables, ""),
            ("racks", self.racks, ""),
            ("power of the switches, at most", megawatts, "MW"),
            ("price", self.usd, "USD"),
            ("price of a device's share", self.usd_per_device, "USD"),
            ("bisection", 1e-12 * t.bisection_bytes_per_s, "TB/s"),
            ("oversubscription", t.oversubscription, ": 1"),
            ("switches passed at most", t.hops, ""),
        ]
        return tuple(
            Total(what=what, amount=amount, unit=unit) for what, amount, unit in lines if amount
        )

    def as_dict(self) -> dict[str, Any]:
        return {"totals": self.totals, **super().as_dict()}


def network(s: Site) -> Network:
    """Network of the design's cluster, judged in the phase of the run that waits most for it.

    Rule of the topology: a torus where the chips are one; what the design says of pods and
    oversubscription; a dragonfly on Slingshot; else a non-blocking tree of as few tiers as the
    switch's ports allow, rails on their own leaves. `alternatives` prices the others by the main
    phase.
    """
    cluster = s.cluster
    main = s
    s = s.most(lambda one: one.network_share)
    place = placement(s)
    topology, rule, provided = built(cluster)
    torus = topology.kind == "torus"
    fabric = catalogue.fabric(cluster.scale_out)
    switch = None if torus else switch_of(cluster.scale_out)
    rows = axes(s, place)
    others = alternatives(main, topology)
    built_as = others[0]
    priced = [a for a in others if a.run_usd is not None]
    best = min(priced, key=lambda a: a.run_usd or 0.0, default=built_as)
    saves = None
    if built_as.run_usd is not None and best.run_usd is not None:
        saves = built_as.run_usd - best.run_usd
    near = [row for row in published() if (row["kind"] == "torus") == torus]
    near.sort(key=lambda row: abs(row["devices"] - cluster.devices))
    return Network(
        scale_up=scale_up(cluster),
        phase=s.phase.name,
        fabric=fabric.id,
        fabric_name=fabric.name,
        switch=switch,
        rails=cluster.rails or cluster.nics_per_node,
        card_bytes_per_s=cards(cluster).bytes_per_s,
        topology=topology,
        rule=rule,
        provided=provided,
        racks=ceil(cluster.devices / rack_devices(cluster)),
        usd=built_as.usd,
        usd_per_device=built_as.usd_per_device,
        prices=prices(),
        alternatives=others,
        cheapest=best.what,
        cheapest_saves_usd=saves,
        tiers=tuple(tiers(cluster, topology, switch)),
        axes=rows,
        crossings=crossings(s, topology, place),
        bursts=bursts(s, rows),
        settings=settings(s, topology, switch, rows),
        curves=curves_of(s),
        curve_errors=trust(cluster),
        measured_curves=measured(cluster),
        published=tuple(near[: 1 if torus else 3]),
        notes=_notes(s, topology, switch, provided, rows, main),
    )


def scale_up(cluster: Cluster) -> ScaleUp:
    """The scale-up domain: HGX board, NVL72 rack, mesh or torus.

    Links: one of a device to each switch chip, times the links a device has to it. NVL72: 18 chips
    x 72 = 1,296 links, four twisted pairs each: 5,184 copper cables. bisection: half of the
    devices' links where switches join them; of a torus the worst cut.
    """
    up = catalogue.fabric(cluster.scale_up)
    rate = cluster.scale_up_bytes_per_s
    size = min(cluster.scale_up_domain, cluster.devices)
    wide = size > cluster.devices_per_node
    chip = switch_for(up.id, "scale-up")
    count = links = 0
    if chip and size > 1:
        count = chip.per_domain if wide else ceil(chip.per_domain * size / up.domain_devices)
        links = round(size * cluster.accelerator.link_bytes_per_s / chip.port_bytes_per_s)
    bisection = size / 2 * rate
    if is_torus(cluster):
        bisection = torus_of(up, size).bisection_bytes_per_s
    return ScaleUp(
        fabric=up.id,
        name=up.name,
        devices=size,
        domains=ceil(cluster.devices / size),
        link_bytes_per_s=rate,
        switches=count,
        links=links,
        copper_cables=links * PAIRS_PER_LINK if wide else 0,
        bisection_bytes_per_s=bisection,
        egress_bytes_per_s=size * cluster.scale_out_bytes_per_s,
        reduction=up.in_network_reduction,
        ratio_one_way=rate / cluster.scale_out_bytes_per_s,
        ratio_as_printed=2 * rate / cards(cluster).bytes_per_s,
    )


def tiers(cluster: Cluster, t: Topology, switch: Switch | None) -> Iterator[Tier]:
    """The tiers from the scale-up domain to the site (or sites), the narrowest last."""
    delay = 0.0 if switch is None or isnan(switch.latency_s) else switch.latency_s
    devices = cluster.devices
    widest = min(cluster.scale_up_domain, devices)
    yield Tier(
        tier="scale-up domain",
        devices=widest,
        device_bytes_per_s=cluster.scale_up_bytes_per_s,
        switches_passed=1,
        switching_s=0.0,
        hop_s=cluster.scale_up_latency_s,
        oversubscription=1.0,
    )
    if t.kind == "torus":
        if devices > cluster.scale_up_domain:
            yield Tier(
                tier="slices",
                devices=devices,
                device_bytes_per_s=cluster.scale_out_bytes_per_s,
                switches_passed=3,
                switching_s=0.0,
                hop_s=cluster.scale_out_latency_s,
                oversubscription=1.0,
            )
        return
    if devices > widest:
        yield from switched_tiers(cluster, t, delay)
    if cluster.sites > 1:
        yield Tier(
            tier="sites",
            devices=devices,
            device_bytes_per_s=cluster.site_bytes_per_s * cluster.sites / devices,
            switches_passed=t.hops,
            switching_s=t.hops * delay,
            hop_s=next(iter(catalogue.fabrics("wan").values())).latency_s,
            oversubscription=nan,
        )


def switched_tiers(cluster: Cluster, t: Topology, delay: float) -> Iterator[Tier]:
    """Leaf unit, pod and site of a network of switches, each of which takes `delay` seconds."""
    devices = cluster.devices
    sites = cluster.sites
    rate = cluster.scale_out_bytes_per_s
    per_card = devices / t.endpoints

    def tier(name: str, within: int, passed: float, r: float = 1.0) -> Tier:
        return Tier(
            tier=name,
            devices=within,
            device_bytes_per_s=rate / r,
            switches_passed=passed,
            switching_s=passed * delay,
            hop_s=cluster.scale_out_latency_s,
            oversubscription=r,
        )

    def joined(endpoints: int) -> int:
        """Devices that so many cards join."""
        return min(devices, max(round(endpoints * per_card), cluster.devices_per_node))

    widest = joined(t.unit_endpoints)
    yield tier("leaf unit", widest, 1)
    pod = joined(t.pod_endpoints)
    if pod > widest:
        widest = pod
        yield tier("pod", pod, hops_in_a_pod(t, sites))
    site = -(-devices // sites)
    if widest < site:
        yield tier("site", site, t.hops, t.oversubscription)


def hops_in_a_pod(t: Topology, sites: int) -> float:
    """Switches passed between two cards of a pod."""
    if t.pod_endpoints * sites >= t.endpoints:
        return t.hops
    if t.kind == "pods":
        return max(3, t.hops - 2)
    if t.kind == "dragonfly":
        return 2
    return 3 if t.kind == "dragonfly+" else t.hops


def crossings(s: Site, t: Topology, place: Placement) -> tuple[Crossing, ...]:
    """Load of every edge under the kit's rank order (placement.orders): capacity is all devices'
    share of the cards, over the oversubscription where that lies (pods, or leaves of two tiers).
    Even spreading is the best case; `settings` says what hashing makes of it."""
    narrow = t.tiers == 2 and t.pod_endpoints <= t.unit_endpoints
    order = place.orders[0]
    edges = (
        ("domains", place.per_domain, order["over_domain"], 1.0),
        ("units", place.per_unit, order["over_unit"], t.oversubscription if narrow else 1.0),
        ("pods", place.per_pod, order["over_pod"], t.oversubscription),
    )
    out: dict[int, Crossing] = {}  # by the number of blocks: the same edges once
    for edge, per, by_axis, ratio in edges:
        count = ceil(place.devices / per)
        if by_axis and count not in out:
            total = sum(by_axis.values())
            capacity = place.devices * s.cluster.scale_out_bytes_per_s / ratio
            busy = total / capacity
            out[count] = Crossing(
                edge=edge,
                blocks=count,
                bytes=total,
                by_axis=by_axis,
                capacity_bytes_per_s=capacity,
                busy_s=busy,
                busy_share=busy / s.model_step_s,
            )
    return tuple(out.values())


def is_mesh(cluster: Cluster) -> bool:
    """True where each device of a domain has a link of its own to every other."""
    up = catalogue.fabric(cluster.scale_up)
    if not up.p2p_bytes_per_s > 0:
        return False
    links = round(up.device_bytes_per_s / up.p2p_bytes_per_s)
    return links == up.domain_devices - 1 > 1


def _notes(
    s: Site, t: Topology, switch: Switch | None, provided: bool, rows: Sequence[Axis], main: Site
) -> Lines:
    return (
        *_unnamed_pods(s, t),
        *_small_groups(s, rows),
        *_judged_phase(s, main),
        *_switch_notes(s.cluster, t, switch, provided),
    )


def _unnamed_pods(s: Site, t: Topology) -> Iterator[str]:
    """What an oversubscription costs that the estimate does not count."""
    cluster = s.cluster
    flat = cluster.devices <= (cluster.pod_devices or cluster.devices)
    if not (cluster.oversubscription > 1 and flat and t.tiers > 1):
        return
    longer = s.link_ratio(replace(s.case.link, pod_devices=blocks(cluster).unit)) - 1
    if longer:
        yield (
            "the estimate takes one pod for the whole job; with the "
            f"{cluster.oversubscription:g} : 1 above the leaf the step is {longer:.1%} longer: "
            "name the pods (pod_devices) to count it"
        )


def _small_groups(s: Site, rows: Sequence[Axis]) -> Iterator[str]:
    """Groups on a mesh that have only some of a device's links."""
    domain = s.cluster.scale_up_domain
    if not is_mesh(s.cluster):
        return
    for a in rows:
        if a.ranks < domain and a.alone_s > CONSTANTS.slow_group * a.time_s:
            yield (
                f"{a.axis} {a.ranks} has {a.ranks - 1} of a device's {domain - 1} links: its calls "
                f"alone take {a.alone_s:.2f} s a step, {a.time_s:.2f} s in the estimate, which "
                f"counts all links; a group of {domain} has them"
            )


def _judged_phase(s: Site, main: Site) -> Iterator[str]:
    """Which phase the network is judged in, where it is not the main one."""
    if s.chosen is not main.chosen:
        yield (
            f"judged in the phase {s.phase.name}: traffic between scale-up domains holds up "
            f"{s.network_share:.1%} of its step, {main.network_share:.1%} of that of "
            f"{main.phase.name}, in which most tokens are trained"
        )


def _switch_notes(
    cluster: Cluster, t: Topology, switch: Switch | None, provided: bool
) -> Iterator[str]:
    """What is assumed of the switches, and where their ports end."""
    if provided and switch is not None:
        yield (
            f"{cluster.scale_out} is the provider's network: counts are those of an equivalent of "
            f"{t.radix}-port switches"
        )
    if switch is not None and switch.verified != "text":
        yield f"ports of {switch.name} are {switch.verified}, not read in a maker's text"
    if t.reach_endpoints < 2 * t.endpoints and t.kind not in ("torus", "pods"):
        yield (
            f"{t.tiers} tiers of {t.radix} ports end at {t.reach_endpoints:,.0f} cards: twice this "
            "size needs another tier"
        )
    if t.kind == "dragonfly" and t.oversubscription > 1:
        yield (
            "all ports between groups are counted as cabled; Frontier fills 292 of a group's 512 "
            "(1.75 : 1 between groups)"
        )
    if switch is not None and t.radix != radix_of(switch, cards(cluster).bytes_per_s):
        yield f"radix {t.radix} after splitting ports"
