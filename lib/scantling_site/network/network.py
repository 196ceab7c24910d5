"""The network blueprint of a design: scale-up domain, topology with its counts and price,
alternatives, tiers, axes, bursts, settings, curves."""

from dataclasses import replace
from math import ceil, isnan, nan

from scantling import catalogue
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.catalogue.packet_switches import Switch, radix_of, switch_for, switch_of
from scantling.endure.failures import rack_devices
from scantling.physics.collectives import Curve

from ..placement import Placement, blocks, placement
from ..site import Site, is_torus
from ..texts import constant, fill, lines, texts
from .build import Alternative, Prices, alternatives, built, cards, prices, published, torus_of
from .topology import Topology
from .traffic import Axis, Burst, Setting, axes, bursts, curves_of, measured, settings, trust

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
    switches_passed: int
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
    by_axis: dict
    capacity_bytes_per_s: float
    busy_s: float
    busy_share: float  # of the step


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
    curve_errors: Rows  # how far such curves were off where somebody has measured
    measured_curves: Rows  # of the same accelerator
    published: Rows  # published networks nearest in size
    notes: Lines

    @property
    def totals(self) -> Rows:
        """What has to be bought, in a few lines: {what, amount, unit}; those that there are."""
        switches, rest = texts("networks", "totals").values()
        watts = self.switch.max_w if self.switch else nan
        links = [("links, " + name, n) for name, n in self.topology.cables.items() if n]
        return (
            *fill(switches, self),
            *({"what": what, "amount": n, "unit": ""} for what, n in links),
            *fill(rest, self, watts=0 if isnan(watts) else self.topology.switches * watts),
        )

    def as_dict(self) -> dict:
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
    s = s.most("network_share")
    place = placement(s)
    own, rule, provided = built(cluster)
    torus = own.kind == "torus"
    fabric = catalogue.fabric(cluster.scale_out)
    switch = None if torus else switch_of(cluster.scale_out)
    rows = axes(s, place)
    others = alternatives(main, own)
    built_as = others[0]
    best = min(
        (a for a in others if a.run_usd is not None), key=lambda a: a.run_usd, default=built_as
    )

    near = [row for row in published() if (row["kind"] == "torus") == torus]
    near.sort(key=lambda row: abs(row["devices"] - cluster.devices))
    return Network(
        scale_up=scale_up(cluster),
        phase=s.phase.name,
        fabric=fabric.id,
        fabric_name=fabric.name,
        switch=switch,
        rails=cluster.rails or cluster.nics_per_node,
        card_bytes_per_s=cards(cluster)[1],
        topology=own,
        rule=rule,
        provided=provided,
        racks=ceil(cluster.devices / rack_devices(cluster)),
        usd=built_as.usd,
        usd_per_device=built_as.usd_per_device,
        prices=prices(),
        alternatives=others,
        cheapest=best.what,
        cheapest_saves_usd=built_as.run_usd and built_as.run_usd - best.run_usd,
        tiers=tuple(tiers(cluster, own, switch)),
        axes=rows,
        crossings=crossings(s, own, place),
        bursts=bursts(s, rows),
        settings=settings(s, own, switch, rows),
        curves=curves_of(s),
        curve_errors=trust(cluster),
        measured_curves=measured(cluster),
        published=tuple(near[: 1 if torus else 3]),
        notes=_notes(s, own, switch, provided, rows, main),
    )


def scale_up(cluster) -> ScaleUp:
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
    torus = torus_of(up, size).bisection_bytes_per_s if is_torus(cluster) else None
    return ScaleUp(
        fabric=up.id,
        name=up.name,
        devices=size,
        domains=ceil(cluster.devices / size),
        link_bytes_per_s=rate,
        switches=count,
        links=links,
        copper_cables=links * PAIRS_PER_LINK if wide else 0,
        bisection_bytes_per_s=size / 2 * rate if torus is None else torus,
        egress_bytes_per_s=size * cluster.scale_out_bytes_per_s,
        reduction=up.in_network_reduction,
        ratio_one_way=rate / cluster.scale_out_bytes_per_s,
        ratio_as_printed=2 * rate / cards(cluster)[1],
    )


def tiers(cluster, t: Topology, switch: Switch | None):
    """The tiers from the scale-up domain to the site (or sites), the narrowest last."""
    delay = 0.0 if switch is None or isnan(switch.latency_s) else switch.latency_s
    devices = cluster.devices
    sites = cluster.sites
    per = devices / t.endpoints

    def within(endpoints):
        return min(devices, max(round(endpoints * per), cluster.devices_per_node))

    whole = Tier(
        tier="",
        devices=devices,
        device_bytes_per_s=cluster.scale_out_bytes_per_s,
        switches_passed=0,
        switching_s=0.0,
        hop_s=cluster.scale_out_latency_s,
        oversubscription=1.0,
    )

    def tier(name, passed=t.hops, **own):
        own = {"switching_s": passed * delay, **own}
        return replace(whole, tier=name, switches_passed=passed, **own)

    widest = min(cluster.scale_up_domain, devices)
    yield tier(
        "scale-up domain",
        1,
        devices=widest,
        device_bytes_per_s=cluster.scale_up_bytes_per_s,
        switching_s=0.0,
        hop_s=cluster.scale_up_latency_s,
    )
    if t.kind == "torus":
        if devices > cluster.scale_up_domain:
            yield tier("slices", 3, switching_s=0.0)
        return
    if devices > widest:
        widest = within(t.unit_endpoints)
        yield tier("leaf unit", 1, devices=widest)
        pod = within(t.pod_endpoints)
        if pod > widest:
            widest = pod
            yield tier("pod", hops_in_a_pod(t, sites), devices=pod)
        site = -(-devices // sites)
        if widest < site:
            yield tier(
                "site",
                devices=site,
                device_bytes_per_s=cluster.scale_out_bytes_per_s / t.oversubscription,
                oversubscription=t.oversubscription,
            )
    if sites > 1:
        yield tier(
            "sites",
            device_bytes_per_s=cluster.site_bytes_per_s * sites / devices,
            hop_s=next(iter(catalogue.fabrics("wan").values())).latency_s,
            oversubscription=float("nan"),
        )


def hops_in_a_pod(t: Topology, sites: int) -> int:
    """Switches passed between two cards of a pod."""
    if t.pod_endpoints * sites >= t.endpoints:
        return t.hops
    own = {"pods": max(3, t.hops - 2), "dragonfly": 2, "dragonfly+": 3}
    return own.get(t.kind, t.hops)


def crossings(s: Site, t: Topology, place: Placement) -> tuple:
    """Load of every edge under the kit's rank order (placement.orders): capacity is all devices'
    share of the cards, over the oversubscription where that lies (pods, or leaves of two tiers).
    Even spreading is the best case; `settings` says what hashing makes of it."""
    out = {}  # by the number of blocks: the same edges once
    narrow = t.tiers == 2 and t.pod_endpoints <= t.unit_endpoints
    for name, ratio in (
        ("domain", 1.0),
        ("unit", t.oversubscription if narrow else 1.0),
        ("pod", t.oversubscription),
    ):
        by = place.orders[0][f"over_{name}"]
        count = ceil(place.devices / place.layout.per(name))
        if by and count not in out:
            total = sum(by.values())
            capacity = place.devices * s.cluster.scale_out_bytes_per_s / ratio
            busy = total / capacity
            out[count] = Crossing(
                edge=f"{name}s",
                blocks=count,
                bytes=total,
                by_axis=by,
                capacity_bytes_per_s=capacity,
                busy_s=busy,
                busy_share=busy / s.model_step_s,
            )
    return tuple(out.values())


def is_mesh(cluster) -> bool:
    """True where each device of a domain has a link of its own to every other."""
    up = catalogue.fabric(cluster.scale_up)
    links = up.p2p_bytes_per_s > 0 and round(up.device_bytes_per_s / up.p2p_bytes_per_s)
    return links == up.domain_devices - 1 > 1


def _notes(s: Site, t: Topology, switch, provided: bool, rows, main: Site) -> Lines:
    cluster = s.cluster
    words = texts("networks")
    longer = 0.0
    flat = cluster.devices <= (cluster.pod_devices or cluster.devices)
    if cluster.oversubscription > 1 and flat and t.tiers > 1:
        longer = s.step_ratio(link=s.link(pod_devices=blocks(cluster)[0])) - 1
    small = [
        fill(words["mesh"], s, a=a, own=a.ranks - 1, all=cluster.scale_up_domain - 1)
        for a in rows
        if is_mesh(cluster)
        and a.ranks < cluster.scale_up_domain
        and a.alone_s > constant("slow_group") * a.time_s
    ]
    head, mesh, *rest = words["notes"]
    return lines(
        [head, *(dict(mesh, say=text) for text in small), *rest],
        s,
        t=t,
        switch=switch,
        longer=longer,
        mesh=small,
        main=main,
        judged=s.chosen is not main.chosen,
        provided=provided and switch is not None,
        unread=switch is not None and switch.verified != "text",
        ends=t.reach_endpoints < 2 * t.endpoints and t.kind not in ("torus", "pods"),
        filled=t.kind == "dragonfly" and t.oversubscription > 1,
        split=switch is not None and t.radix != radix_of(switch, cards(cluster)[1]),
    )
