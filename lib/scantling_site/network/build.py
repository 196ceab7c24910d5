"""Which network a design gets, from which switches, at what price, and what the others would be:
counts, cost, step time."""

from dataclasses import replace
from functools import cache
from math import ceil, inf

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.records import Known, Record, Rows, record
from scantling.catalogue.load import rows
from scantling.catalogue.packet_switches import leaf_ports, radix_of, switch_of
from scantling.design.cluster import Cluster

from ..site import HORIZON_DAYS, Site, is_torus
from ..texts import constant, fill, texts
from . import topology as shapes
from .topology import Topology

Built = tuple[Topology, str, bool]  # the rule that chose it, whether a provider owns it
RATIOS = (2.0, 7.0)  # of oversubscribed pods that are tried: 7 as at Meta (arXiv 2407.21783)


@cache
def published() -> Rows:
    """Counts of published networks (catalogue/topologies.csv); None where a source prints none."""
    words = ("id", "name", "kind", "notes", "source", "date", "verified", "verified_except")
    return tuple(
        {k: v if k in words else int(float(v)) if v else None for k, v in row.items()}
        for row in rows("topologies")
    )


def cards(cluster) -> tuple:
    """(scale-out cards of the cluster, bytes/s of one)."""
    return (
        cluster.nodes * cluster.nics_per_node,
        cluster.scale_out_bytes_per_s * cluster.devices_per_node / cluster.nics_per_node,
    )


@record
class Prices(Record):
    """Dollars of network parts, per port and per cable with both its ends, at 400 Gb/s; other rates
    in proportion."""

    usd_per_port_400g: float
    usd_per_cable_400g: float
    date: str
    source: str
    basis: str


@cache
def prices() -> Prices:
    """The switch's dated price over its ports; the cable's from the all-in price of a two-tier
    cluster.

    cable = (8 to 13 %, middle 10.5 %, of the all-in price per device less the switches) / 2 cables
    per device. Check: a third tier then adds 2 switch ports and one cable a device, 2.9 k$, where
    the same source prints 2.4 k$ (51.6 against 49.2 k$).
    """
    one = {p.item: p for p in catalogue.prices(category="capex")}
    switch = one["ib-ndr-switch-64p"]
    port = switch.value / 64
    network = constant("network_share") * one["h100 cluster all-in"].value
    return Prices(
        usd_per_port_400g=port,
        usd_per_cable_400g=(network - 3 * port) / 2,
        date=switch.date,
        source=one["h100 8-GPU node"].source,
        basis=texts("networks", "prices"),
    )


def usd(t: Topology) -> Known:
    """Price of a network's switches, cables and transceivers; None for a torus, whose parts nobody
    sells alone."""
    if t.kind == "torus":
        return None
    ports = t.switches * t.radix * prices().usd_per_port_400g
    return (ports + t.all_cables * prices().usd_per_cable_400g) * t.port_bytes_per_s / 50e9


@record
class Wiring:
    """What the networks of one site are built from."""

    cluster: Cluster  # of one site
    cards: int
    rate: float  # of a card
    radix: int
    rails: int

    @property
    def per_card(self) -> float:
        """Devices of a card."""
        return self.cluster.devices / self.cards

    @property
    def leaf_down(self) -> float:
        """The most cards below a leaf."""
        return self.cluster.leaf_devices / self.per_card / self.rails or inf

    @property
    def pod_devices(self) -> int:
        """Devices of a pod, all of them where the design names no pods."""
        return min(self.cluster.pod_devices or self.cluster.devices, self.cluster.devices)

    def tree(self, r: float = 1.0, rails: int = 0, leaf: float = 1.0) -> Topology:
        """Fat tree, every card of a node on its own rail, oversubscribed r : 1 at the top and leaf
        : 1 at the leaves."""
        rails = rails or self.rails
        return shapes.clos(
            self.cards,
            self.radix,
            self.rate,
            rails=rails,
            oversubscription=r,
            leaf_ratio=leaf,
            leaf_down=self.leaf_down,
            kind="rail-optimised" if rails > 1 else "fat-tree",
        )

    def rail_only(self) -> Topology:
        """One network a rail, none between."""
        return shapes.rail_only(self.cluster.nodes, self.rails, self.radix, self.rate)

    def two_planes(self) -> Topology:
        """Cards split over two planes."""
        return shapes.clos(self.cards, 2 * self.radix, self.rate / 2, planes=2, rails=self.rails)

    def pods(self, inside: int, r: float) -> Topology:
        """Pods of so many cards, oversubscribed r : 1 above."""
        return shapes.pods(
            self.cards, inside, self.radix, self.rate, r, rails=self.rails, leaf_down=self.leaf_down
        )

    def ratios(self) -> tuple:
        """(at the top, rails, at the leaves)."""
        leaf, *above = self.cluster.ratios[1:] or (1.0,)
        return self.cluster.oversubscription / leaf, 0, leaf

    def groups(self, build) -> Topology:
        """A dragonfly of either kind."""
        return build(self.cards, self.radix, self.rate)


def wiring(cluster) -> Wiring:
    """What the networks of one of a cluster's sites are built from."""
    one = one_site(cluster)
    n, rate = cards(one)
    return Wiring(
        cluster=one,
        cards=n,
        rate=rate,
        radix=radix_of(switch_of(one.scale_out), rate),
        rails=one.rails or one.nics_per_node,
    )


def one_site(cluster, devices: int = 0):
    """The cluster of one of the sites, the largest where no size is named; the cluster itself where
    there is one."""
    if cluster.sites <= 1:
        return cluster
    devices = devices or max(cluster.by_site)
    return replace(
        cluster,
        devices=devices,
        sites=1,
        uneven=(),
        pod_devices=min(cluster.pod_devices or devices, devices),
    )


def built(cluster) -> Built:
    """(topology of the design, the rule that chose it, whether the provider owns it); with several
    sites one such network in each."""
    words = texts("networks", "rules")
    if is_torus(cluster):
        return _torus(cluster, words)
    try:
        t, why, adds = _built(wiring(cluster), words)
    except ValueError as e:
        raise DesignError(
            "cluster.topology",
            cluster.topology or f"leaf_devices {cluster.leaf_devices}",
            f"another one, or more devices below a leaf: {e}",
            problem="is out of reach",
        ) from None
    provided = not catalogue.fabric(cluster.scale_out).topology_open
    why += words["provider"] if provided and adds else ""
    if cluster.sites > 1:
        sizes = (one_site(cluster, devices) for devices in cluster.by_site)
        t = shapes.joined(*(_built(wiring(one), words)[0] for one in sizes))
        why += fill(words["sites"], sites=cluster.sites)
    return t, why, provided


def _built(w: Wiring, words: dict) -> Built:
    """(topology, the rule that chose it, whether it says what the provider's is) of one site."""
    cluster = w.cluster
    n = w.cards
    k = w.radix
    r = cluster.oversubscription
    half = (k // 2) ** 2
    pod = ceil(w.pod_devices / cluster.devices_per_node) * cluster.nics_per_node
    if cluster.topology:
        t = CHOICES[cluster.topology](w)
        return t, fill(words["asked"], topology=cluster.topology), True
    usual = catalogue.fabric(cluster.scale_out).usual_topology
    if usual and k < n <= shapes.dragonfly_reach(k):
        return CHOICES[usual](w), words[usual], False
    deepest = k**3 // 4
    if pod < n and pod <= deepest and not cluster.ratios:
        return (
            w.pods(pod, r),
            fill(
                words["pods"],
                cluster=cluster,
                above=fill(words["above" if r > 1 else "above flat"], r=r),
            ),
            True,
        )
    if n > half * (half + 1):
        return w.pods(deepest, r), fill(words["fourth"], k=k), True
    if n > deepest:
        return w.groups(shapes.dragonfly_plus), fill(words["groups"], k=k), True
    t = w.tree(*w.ratios())
    if cluster.devices <= cluster.scale_up_domain:
        return t, words["one domain"], False
    why = fill(words["flat" if r == 1 else "stated"], k=k, r=r, tiers=t.tiers)
    return t, why + (words["rails"] if w.rails > 1 and t.tiers > 1 else ""), True


CHOICES = {
    "fat-tree": lambda w: w.tree(w.cluster.oversubscription, 1),
    "rail-optimized": lambda w: w.tree(*w.ratios()),
    "rail-only": Wiring.rail_only,
    "multi-plane": Wiring.two_planes,
    "dragonfly": lambda w: w.groups(shapes.dragonfly),
    "dragonfly+": lambda w: w.groups(shapes.dragonfly_plus),
}


def _torus(cluster, words: dict) -> Built:
    fabric = catalogue.fabric(cluster.scale_up)
    slices, chips, sharing = slices_of(cluster)
    why = fill(words["torus"], name=fabric.name, chips=chips)
    if slices > 1:
        why += fill(words["slices"], slices=slices, cluster=cluster)
    one = torus_of(fabric, chips, sharing)
    return (
        replace(shapes.copies(one, slices), circuits=ceil(slices / sharing) * one.circuits),
        why,
        True,
    )


def slices_of(cluster) -> tuple:
    """(slices of a torus, chips of one, slices that share the optical switches of a pod): the
    fewest slices of one size that hold the devices; a pod has as many chips as its family allows,
    and no site shares one."""
    n = cluster.devices
    fewest = max(ceil(n / cluster.scale_up_domain), cluster.sites)
    slices = next((k for k in range(fewest, 2 * fewest) if n % k == 0), fewest)
    chips = ceil(n / slices)
    sharing = min(cluster.accelerator.scale_up_domain_max // chips, slices // cluster.sites)
    return slices, chips, max(sharing, 1)


def torus_of(fabric, chips: int, sharing: int = 1) -> Topology:
    """The most compact torus of so many chips on a fabric; `sharing` such slices a pod."""
    return shapes.torus(
        shapes.near_cube(chips, 2 if "2D" in fabric.name else 3), fabric.p2p_bytes_per_s, sharing
    )


@record
class Alternative(Record):
    """One other network for the same design: counts, price, what the step model makes of its
    bandwidth, and the price of that over the run."""

    kind: str
    what: str
    topology: Topology
    usd: Known
    usd_per_device: Known
    step_s: float
    step_change: float  # against the design's own network
    run_usd: Known  # network written off over the run, and devices for the extra time
    chosen: bool


def candidates(cluster) -> list:
    """(what, topology, the step model's view of it: pod_devices and oversubscription) of every
    network within reach."""
    found = _candidates(wiring(cluster))
    if cluster.sites > 1:
        found = ((what, shapes.copies(t, cluster.sites), own) for what, t, own in found)
    return list(found)


def _view(pod: float = 1e9, r: float = 1.0) -> dict:
    return {"pod_devices": pod, "oversubscription": r}


def _candidates(w: Wiring):
    cluster = w.cluster
    n = w.cards
    k = w.radix
    on_rails = ", rails on their own leaves" if w.rails > 1 else ""
    reach = k**3 // 4
    half = (k // 2) ** 2
    if n <= reach:
        yield f"non-blocking fat tree{on_rails}", w.tree(), _view()
    if w.rails > 1 and 1 < cluster.nodes <= reach:
        yield "one network per rail, none between", w.rail_only(), {**_view(), "rail_only": 1.0}
    if k < n <= 8 * reach:
        yield "cards split over two planes", w.two_planes(), _view()
    whole = w.pod_devices == cluster.devices
    pod = int(k * k // 4 * w.per_card) if whole else w.pod_devices
    for r in sorted({*RATIOS, cluster.oversubscription} - {1.0}):
        # two tiers hold it: the leaves are what can be oversubscribed
        if whole and k < n <= k * k // 2:
            yield f"leaves {r:g} : 1, two tiers", w.tree(r), _view(leaf_devices(w, r), r)
        elif 0 < pod < cluster.devices and pod <= reach * w.per_card:
            yield (
                f"pods of {pod:,} devices, {r:g} : 1 above",
                w.pods(round(pod / w.per_card), r),
                _view(pod, r),
            )
    for build, most in (
        (shapes.dragonfly_plus, half * (half + 1)),
        (shapes.dragonfly, shapes.dragonfly_reach(k)),
    ):
        if n <= most and (t := w.groups(build)).oversubscription > 1:
            yield (
                f"{t.kind}, groups of {t.pod_endpoints:,} cards",
                t,
                _view(t.pod_endpoints * w.per_card, t.oversubscription),
            )


def leaf_devices(w: Wiring, r: float) -> int:
    """Devices under one leaf (of each rail) that is oversubscribed r : 1, as `topology.clos` builds
    it."""
    held = round(leaf_ports(w.radix, r)[0] * w.rails * w.per_card)
    return min(w.cluster.devices, max(w.cluster.devices_per_node, held))


def alternatives(s: Site, own: Topology) -> tuple:
    """The design's own network first, then the others, the cheapest over the run first.

    step_s is the kit's step model with the fabric's pod and ratio in place of the design's.
    run_usd = network price x run / 4 years + extra device-time x price; without a price the
    network's own counts.
    """
    cluster = s.cluster
    wide = cluster.devices > cluster.scale_up_domain
    days = s.figures["days"] or HORIZON_DAYS
    hourly = s.cost and s.cost.usd_per_device_hour
    per_day = hourly * cluster.devices * 24 if hourly else 0.0
    written_off = days / (constant("network_life_years") * 365.25)
    others = candidates(cluster) if wide and own.kind != "torus" else []

    def counts(row):
        t = row[1]
        return t.kind, t.switches, t.all_cables

    mine = "the design's own", own, {}
    same = next((row for row in others if counts(row) == counts(mine)), mine)
    out = []
    for row in [same, *(row for row in others if row is not same)]:
        what, t, view = row
        seconds = s.model_step_s * (1 if row is same else s.step_ratio(link=s.link(**view)))
        change = seconds / s.model_step_s - 1
        # nothing to buy where one domain holds the job
        price = usd(t) if wide else None
        out.append(
            Alternative(
                kind=t.kind,
                what=what,
                topology=t,
                usd=price,
                usd_per_device=price and price / cluster.devices,
                step_s=seconds,
                step_change=change,
                run_usd=price and price * written_off + per_day * days * change,
                chosen=row is same,
            )
        )
    return tuple(sorted(out, key=lambda a: (not a.chosen, a.run_usd or 0.0)))
