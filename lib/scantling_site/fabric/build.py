"""Which network a design gets, from which switches, and the rule that chooses it."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, prod
from typing import NamedTuple

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.hardware import Fabric
from scantling.catalogue.packet_switches import radix_of, switch_of
from scantling.design.cluster import Cluster

from ..job_site import is_torus
from . import trees
from .dragonflies import dragonfly, dragonfly_plus, dragonfly_plus_reach, dragonfly_reach
from .topology import Topology, copies, joined
from .torus import near_cube, torus


class Built(NamedTuple):
    """The network of a design."""

    topology: Topology
    rule: str  # that chose it
    provided: bool  # whether a provider owns it, and a tenant cannot choose it


class Cards(NamedTuple):
    """Scale-out cards of a cluster."""

    number: int
    bytes_per_s: float  # of one


def cards(cluster: Cluster) -> Cards:
    """The scale-out cards of a cluster and the rate of one."""
    return Cards(
        number=cluster.nodes * cluster.nics_per_node,
        bytes_per_s=cluster.scale_out_bytes_per_s
        * cluster.devices_per_node
        / cluster.nics_per_node,
    )


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
        return trees.clos(
            self.cards,
            self.radix,
            self.rate,
            rails=rails,
            oversubscription=r,
            leaf_ratio=leaf,
            leaf_down=self.leaf_down,
            kind="rail-optimised" if rails > 1 else "fat-tree",
        )

    @property
    def leaf_ratio(self) -> float:
        """How far the leaves of a tree narrow."""
        ratios = self.cluster.ratios
        return ratios[1] if len(ratios) > 1 else 1.0

    @property
    def top_ratio(self) -> float:
        """How far a tree narrows above its leaves."""
        return self.cluster.oversubscription / self.leaf_ratio

    def stated_tree(self) -> Topology:
        """Fat tree oversubscribed as the design says."""
        return self.tree(self.top_ratio, leaf=self.leaf_ratio)

    def rail_only(self) -> Topology:
        """One network a rail, none between, each oversubscribed as the design says."""
        return trees.rail_only(
            self.cluster.nodes, self.rails, self.radix, self.rate, self.top_ratio, self.leaf_ratio
        )

    def two_planes(self) -> Topology:
        """Cards split over two planes, each oversubscribed as the design says."""
        return trees.clos(
            self.cards,
            2 * self.radix,
            self.rate / 2,
            planes=2,
            rails=self.rails,
            oversubscription=self.top_ratio,
            leaf_ratio=self.leaf_ratio,
        )

    def pods(self, inside: int, r: float) -> Topology:
        """Pods of so many cards, oversubscribed r : 1 above."""
        return trees.pods(
            self.cards, inside, self.radix, self.rate, r, rails=self.rails, leaf_down=self.leaf_down
        )

    def groups(self, build: Callable[[int, int, float, float], Topology]) -> Topology:
        """A dragonfly of either kind, its groups joined as the design says."""
        return build(self.cards, self.radix, self.rate, prod(self.cluster.ratios[1:]))

    def named(self, topology: str) -> Topology:
        """The network of a name of `catalogue.words.TOPOLOGIES`."""
        if topology == "fat-tree":
            return self.tree(self.cluster.oversubscription, 1)
        if topology == "rail-only":
            return self.rail_only()
        if topology == "multi-plane":
            return self.two_planes()
        if topology == "dragonfly":
            return self.groups(dragonfly)
        if topology == "dragonfly+":
            return self.groups(dragonfly_plus)
        return self.stated_tree()


def wiring(cluster: Cluster) -> Wiring:
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


def one_site(cluster: Cluster, devices: int = 0) -> Cluster:
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


def built(cluster: Cluster) -> Built:
    """The network of a design; with several sites one such network in each. Raises DesignError
    where the named topology does not reach so far."""
    if is_torus(cluster):
        return _torus(cluster)
    try:
        t, rule = _built(wiring(cluster))
    except ValueError as e:
        raise DesignError(
            "cluster.topology",
            cluster.topology or f"leaf_devices {cluster.leaf_devices}",
            f"another one, or more devices below a leaf: {e}",
            problem="is out of reach",
        ) from None
    provided = not catalogue.fabric(cluster.scale_out).topology_open
    if provided and rule.of_design:
        rule = replace(rule, text=f"{rule.text} (of the provider: an equivalent is shown)")
    text = rule.text
    if cluster.sites > 1:
        sizes = (one_site(cluster, devices) for devices in cluster.by_site)
        t = joined(*(_built(wiring(one))[0] for one in sizes))
        text += f"; one in each of {cluster.sites} sites"
    return Built(topology=t, rule=text, provided=provided)


@record
class Rule:
    """Why a network is built as it is."""

    text: str
    of_design: bool  # whether it rests on the design or the switches, not on what the product is


def _built(w: Wiring) -> tuple[Topology, Rule]:
    """The network of one site and the rule that chose it."""
    cluster = w.cluster
    n = w.cards
    k = w.radix
    r = cluster.oversubscription
    if cluster.topology:
        text = f"the design says {cluster.topology}"
        return w.named(cluster.topology), Rule(text=text, of_design=True)
    usual = catalogue.fabric(cluster.scale_out).usual_topology
    if usual and k < n <= dragonfly_reach(k):
        text = "Slingshot is built as a dragonfly"
        return w.named(usual), Rule(text=text, of_design=False)
    deepest = k**3 // 4
    pod = ceil(w.pod_devices / cluster.devices_per_node) * cluster.nics_per_node
    if pod < n and pod <= deepest and not cluster.ratios:
        above = f"{r:g} : 1 above" if r > 1 else "non-blocking above"
        text = f"the design says pods of {cluster.pod_devices:,} devices, {above}"
        return w.pods(pod, r), Rule(text=text, of_design=True)
    if n > dragonfly_plus_reach(k):
        text = (
            f"beyond three tiers and a dragonfly+ of {k} ports: the largest three-tier trees "
            "joined by a fourth tier"
        )
        return w.pods(deepest, r), Rule(text=text, of_design=True)
    if n > deepest:
        text = f"beyond three tiers of {k} ports: groups joined directly"
        return w.groups(dragonfly_plus), Rule(text=text, of_design=True)
    t = w.stated_tree()
    if cluster.devices <= cluster.scale_up_domain:
        text = "one scale-up domain holds every device; this is what its cards would need beyond it"
        return t, Rule(text=text, of_design=False)
    text = f"non-blocking, as few tiers as {k} ports allow: {t.tiers}"
    if r != 1:
        text = f"the design says {r:g} : 1; no pods are named, so at the top of {t.tiers} tiers"
    if w.rails > 1 and t.tiers > 1:
        text += ", every card of a node on its own rail"
    return t, Rule(text=text, of_design=True)


def _torus(cluster: Cluster) -> Built:
    fabric = catalogue.fabric(cluster.scale_up)
    slices, chips, sharing = slices_of(cluster)
    rule = f"{fabric.name}: the most compact torus of {chips:,} chips"
    if slices > 1:
        rule += f", {slices} such slices over {cluster.scale_out}"
    one = torus_of(fabric, chips, sharing)
    circuits = ceil(slices / sharing) * one.circuits
    t = replace(copies(one, slices), circuits=circuits)
    return Built(topology=t, rule=rule, provided=True)


class Slices(NamedTuple):
    """Slices of a torus that a cluster consists of."""

    number: int
    chips: int  # of one
    sharing: int  # slices that share the optical switches of a pod


def slices_of(cluster: Cluster) -> Slices:
    """The fewest slices of one size that hold the devices; a pod has as many chips as its family
    allows, and no site shares one."""
    n = cluster.devices
    fewest = max(ceil(n / cluster.scale_up_domain), cluster.sites)
    slices = next((k for k in range(fewest, 2 * fewest) if n % k == 0), fewest)
    chips = ceil(n / slices)
    sharing = min(cluster.accelerator.scale_up_domain_max // chips, slices // cluster.sites)
    return Slices(number=slices, chips=chips, sharing=max(sharing, 1))


def torus_of(fabric: Fabric, chips: int, sharing: int = 1) -> Topology:
    """The most compact torus of so many chips on a fabric; `sharing` such slices a pod."""
    dimensions = 2 if "2D" in fabric.name else 3
    return torus(near_cube(chips, dimensions), fabric.p2p_bytes_per_s, sharing)
