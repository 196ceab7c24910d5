"""How the fields that a design leaves out of `cluster` are filled in, each with the rule that did
it."""

from collections.abc import Mapping, Sequence
from math import ceil, inf, isnan, nan, prod
from typing import Any, NamedTuple

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Assumed, Derived
from ..base.units import GB
from ..catalogue.hardware import (
    SITE_BYTES_PER_S,
    SITE_RTT_S,
    USUAL_FABRIC,
    Accelerator,
    Fabric,
    Node,
)
from ..catalogue.packet_switches import leaf_ports, switch_of
from .cluster import Cluster, Delivery, NetworkMeasured
from .fields import defaults
from .replaced_rows import resolve_accelerator, resolve_fabric
from .schema import ClusterSpec

# where no node row fits: 8 devices, one NIC each, and what such hosts usually hold
_PLAIN_HOST_MEMORY_GB = 1024.0
_PLAIN_NVME_GB = 7600.0
_PLAIN_DEVICES = 8
_POWER_FACTOR = 1.8  # watts of a node over those of its devices
DEFAULT_STORAGE = "superpod-better"
MEASURED = ("all_reduce", "all_reduce_in_node", "all_to_all")  # of the network


class _Network(NamedTuple):
    """How the network is joined, and where it narrows."""

    bytes_per_s: float  # of one device, one way
    oversubscription: float
    pod_devices: int
    topology: str
    rails: int  # 0: one a card
    leaf_devices: int  # 0: as many as its ports allow
    ratios: tuple[float, ...]  # card to leaf, leaf to spine, spine to core, where listed


class _Pod(NamedTuple):
    """Devices at full bandwidth, and by how much the tiers above narrow."""

    devices: int
    oversubscription: float
    why: str


class _Sites(NamedTuple):
    """How many sites, and the way between one and the others."""

    number: int
    bytes_per_s: float
    rtt_s: float
    uneven: tuple[int, ...]  # devices of each, where they differ


def build_cluster(spec: Mapping[str, Any]) -> tuple[Cluster, tuple[Assumed, ...]]:
    """The Cluster that a design file's `cluster` mapping describes, and what had to be assumed.

    Parameters
    ----------
    spec : fields of `ClusterSpec`, which has checked them; what is left out is looked up.
    `accelerator` and `scale_out`
        take an id, an alias or `{like: id, …}`. Units are those of the names: decimal GB, GB/s one
        way per device.

    Rules, in this order: the given value; the node row of the catalogue (one that has this
    accelerator and this fabric, else the accelerator's usual node); a rule of the family. Each
    value not given is an `Assumed` of the result.
    scale_out_bytes_per_s = scale_out_gbytes_per_s_per_device, else nics_per_node x port rate /
    devices_per_node.
    Where the scale-up domain is the node, it follows devices_per_node. `devices` need not fill the
    last node.
    Switches that could reduce in the network count only when `in_network_reduction: true` says so.
    Raises DesignError for an unknown id and for numbers that do not fit one another.
    """
    new = Derived(spec, "cluster")
    devices: int = spec["devices"]
    chip = resolve_accelerator(spec["accelerator"])
    refusal = chip.refusal()
    if refusal:
        raise refusal
    named = _named_fabric(spec)
    node = _node(spec, chip, named)
    network = named or _usual_fabric(new, node)
    per_node = _devices_per_node(new, node)
    node_share = per_node / node.devices if node else min(per_node / _PLAIN_DEVICES, 1.0)
    domain, why = _domain(chip, node, per_node, devices)
    domain = new.take("scale_up_domain", domain, why)
    up = catalogue.fabric(chip.scale_up)
    up_rate = chip.link_bytes_per_s
    if "link_gbytes_per_s" not in _changed(spec, "accelerator"):
        up_rate = min(up_rate, up.device_bytes_per_s)
    nics, rate = _scale_out(new, node, network, per_node)
    host_memory = _host_memory_bytes(new, node, node_share)
    nvme = _nvme_bytes(new, node, node_share)
    reduces = _reduces(new, network)
    sites = _sites(new, devices)
    joined = _network(new, network, per_node, nics, rate, sites)
    cluster = Cluster(
        accelerator=chip,
        devices=devices,
        devices_per_node=per_node,
        scale_up_domain=domain,
        scale_up_bytes_per_s=up_rate,
        scale_up_latency_s=up.latency_s,
        scale_up=up.id,
        scale_up_efficiency=up.efficiency,
        scale_out=network.id,
        scale_out_bytes_per_s=joined.bytes_per_s,
        scale_out_latency_s=network.latency_s,
        scale_out_efficiency=network.efficiency,
        in_network_reduction=reduces,
        nics_per_node=nics,
        oversubscription=joined.oversubscription,
        pod_devices=joined.pod_devices,
        topology=joined.topology,
        rails=joined.rails,
        leaf_devices=joined.leaf_devices,
        ratios=joined.ratios,
        sites=sites.number,
        site_bytes_per_s=sites.bytes_per_s,
        site_rtt_s=sites.rtt_s,
        uneven=sites.uneven,
        delivery=_delivery(new, devices),
        host_memory_bytes=host_memory,
        nvme_bytes=nvme,
        storage=_storage(new),
        node_power_w=_power(new, chip, node, per_node, node_share),
        node=node.id if node else "",
        measured=_measured(new),
        storage_client_bytes_per_s=float(new.stated.get("storage_client_gbytes_per_s", inf)) * GB,
    )
    return cluster, tuple(new.assumed)


_NO_NODE = "no node of this accelerator in the catalogue"


def _named_fabric(spec: Mapping[str, Any]) -> Fabric | None:
    """The fabric between nodes that the design names."""
    if "scale_out" not in spec:
        return None
    network = resolve_fabric(spec["scale_out"])
    if network.kind not in ("scale-out", "wan"):
        raise DesignError(
            "cluster.scale_out",
            network.id,
            list(catalogue.fabrics("scale-out")),
            problem=f"is a {network.kind} fabric, it does not join nodes",
        )
    return network


def _usual_fabric(new: Derived, node: Node | None) -> Fabric:
    """The fabric of the node, where the design names none."""
    network = catalogue.fabric(node.scale_out if node else USUAL_FABRIC)
    new.note("scale_out", network.id, f"that of node {node.id}" if node else _NO_NODE)
    return network


def _devices_per_node(new: Derived, node: Node | None) -> int:
    """Devices in a node: the row's, or all that there are where these do not fill one. Whoever
    has one device of eight says the memory, the disks and the price of what stands there."""
    whole, why = (node.devices, f"node {node.id}") if node else (_PLAIN_DEVICES, _NO_NODE)
    devices: int = new.stated["devices"]
    if devices < whole:
        return new.take("devices_per_node", devices, f"{why}: {devices} of its {whole}")
    return new.take("devices_per_node", whole, why)


def _network(
    new: Derived, network: Fabric, per_node: int, nics: int, rate: float, sites: _Sites
) -> _Network:
    """How the network of each site is joined, and where it narrows.

    One ratio narrows the top tier of the tree, as the third of a list does where it has three
    tiers and the second where it has two; one switch has nothing to narrow. A list narrows from
    the first tier above 1 on: a leaf's devices or, above, those of the k/2 leaves that share
    spines. Pods say where one ratio narrows instead; a list's tiers they never widen. A dragonfly
    of g groups sends g / (2 (g - 1)) of what its halves send each other (Kim et al. 2008; Shpiner
    et al. 2017).
    """
    stated = new.stated.get("oversubscription")
    listed = tuple(stated) if isinstance(stated, list) else ()
    topology: str = new.stated.get("topology") or ""
    rails = _rails(new, nics)
    devices = max(sites.uneven, default=-(-new.stated["devices"] // sites.number))
    devices_per_card = per_node / nics
    switch = switch_of(network.id)
    leaf_cards = new.stated.get("leaf_devices", inf) / devices_per_card / rails
    # the ports of a switch as it is: those of slower cards split, and reach at least as far
    tree = _Tree(switch.ports, leaf_cards, rails, per_node, devices_per_card)
    ratios = listed
    if stated is not None and not listed:
        ratios = tree.at_the_top(devices, stated)
    if topology.startswith("dragonfly"):
        pod = _dragonfly(devices, topology, switch.ports, devices_per_card, ratios)
    else:
        pod = tree.pod(devices, ratios)
    if "topology" not in new.stated:
        new.note("topology", None, "by the fabric, its size and what is said of pods and ratios")
    own_pods: int | None = new.stated.get("pod_devices")
    total = pod.oversubscription
    if listed or (topology.startswith("dragonfly") and total > 1):
        new.note("oversubscription", total, f"over the tiers that narrow, of a {topology}")
    else:
        total = new.take("oversubscription", 1.0, "non-blocking")
    why = "one pod a site" if sites.number > 1 and pod.devices >= devices else pod.why
    pod_devices = new.take("pod_devices", min(pod.devices, devices), why)
    if listed and total > 1:
        pod_devices = min(pod_devices, pod.devices)
    leaf = new.take("leaf_devices", 0, "0: as many as the ports of a leaf allow")
    return _Network(
        bytes_per_s=rate / listed[0] if listed else rate,
        oversubscription=total,
        pod_devices=pod_devices,
        topology=topology,
        rails=rails if rails != nics else 0,
        leaf_devices=leaf,
        ratios=listed if own_pods else ratios,
    )


def _rails(new: Derived, nics: int) -> int:
    """Leaf switches that the cards of a node are spread over."""
    if "rails" not in new.stated:
        return new.note("rails", nics, "one a card of a node")
    rails: int = new.stated["rails"]
    if nics % rails:
        raise DesignError("cluster.rails", rails, f"a divisor of the {nics} cards of a node", nics)
    return rails


def _whole_job(devices: int, oversubscription: float) -> _Pod:
    return _Pod(devices, oversubscription, "one pod holds the whole job")


def _dragonfly(
    devices: int, topology: str, radix: int, devices_per_card: float, ratios: tuple[float, ...]
) -> _Pod:
    """A group of a dragonfly: radix / 2 routers of a quarter of the ports in cards, or of half of
    them below the leaves of a dragonfly+."""
    half = radix // 2
    cards = half * (half if topology.endswith("+") else half // 2)
    group = cards * devices_per_card
    groups = ceil(devices / group)
    narrowing = max(prod(ratios[1:]), 1.0)
    if groups == 1:
        return _whole_job(devices, narrowing)
    across = 2 * (groups - 1) / groups * narrowing
    return _Pod(int(group), across, f"a group of a {topology}")


class _Tree(NamedTuple):
    """A tree of switches, as far as it settles where the network narrows."""

    radix: int
    leaf_cards: float  # cards that may stand below one leaf; inf: as its ports allow
    rails: int
    per_node: int  # devices
    devices_per_card: float

    def at_the_top(self, devices: int, ratio: float) -> tuple[float, ...]:
        """The ratios of all tiers where the top one of so many devices has this: card to leaf, leaf
        to spine, spine to core. None where one switch joins them."""
        cards = devices / self.devices_per_card
        if cards <= min(self.radix, self.leaf_cards):
            return ()
        if cards <= self.radix * min(self.radix // 2, self.leaf_cards):
            return (1.0, ratio)
        return (1.0, 1.0, ratio)

    def pod(self, devices: int, ratios: tuple[float, ...]) -> _Pod:
        """A leaf of each rail where the leaves narrow, else the radix² / 4 cards below common
        spines."""
        narrowing = prod(ratios[1:])
        if narrowing <= 1:
            return _whole_job(devices, narrowing)
        if ratios[1] > 1:
            cards = leaf_ports(self.radix, ratios[1], self.leaf_cards)[0] * self.rails
            why = "a leaf of each rail"
        else:
            cards = (self.radix // 2) ** 2
            why = "k²/4"
        pod = max(self.per_node, int(cards * self.devices_per_card))
        return _Pod(pod, narrowing, f"{why}, of {self.radix} ports each")


def _adds_up(field: str, parts: Sequence[Mapping[str, Any]], devices: int) -> None:
    """Raises DesignError where the devices of a list are not those of the cluster."""
    total = sum(part["devices"] for part in parts)
    if total != devices:
        raise DesignError(
            f"cluster.{field}",
            f"{total:,} devices in all",
            f"{field} that add up to cluster.devices {devices:,}",
            problem="do not add up",
        )


def _delivery(new: Derived, devices: int) -> tuple[Delivery, ...]:
    """The parts of the machine by the day of their delivery."""
    parts = new.take("delivery", [{"day": 0.0, "devices": devices}], "all of it on day 0")
    _adds_up("delivery", parts, devices)
    by_day = sorted(parts, key=lambda part: part["day"])
    return tuple(Delivery(day=part["day"], devices=int(part["devices"])) for part in by_day)


def _sites(new: Derived, devices: int) -> _Sites:
    """How many sites, how far apart; the narrowest and the longest way of a list of them."""
    stated = new.stated.get("sites")
    listed: list[Mapping[str, Any]] = stated if isinstance(stated, list) else []
    if listed:
        count = len(listed)
        _adds_up("sites", listed, devices)
    else:
        count = new.take("sites", 1, "one site")
    if count == 1:
        return _Sites(1, SITE_BYTES_PER_S, SITE_RTT_S, ())
    sizes = tuple(site["devices"] for site in listed)
    narrowest = min(
        (site["gbits_per_s"] / 8 for site in listed if "gbits_per_s" in site), default=0
    )
    if not narrowest:
        why = "a 100 Gbit/s wave between one site and the others"
        narrowest = new.take("site_gbytes_per_s", SITE_BYTES_PER_S / GB, why)
    round_trips = [site["rtt_ms"] for site in listed if "rtt_ms" in site]
    if round_trips:
        longest = max(round_trips)
    else:
        why = "about 1,000 km between one site and the others"
        longest = new.take("site_rtt_ms", SITE_RTT_S * 1e3, why)
    uneven = sizes if len(set(sizes)) > 1 else ()
    return _Sites(count, narrowest * GB, longest * 1e-3, uneven)


def _measured(new: Derived) -> NetworkMeasured:
    """What was measured of the network."""
    stated: Mapping[str, float] = new.stated.get("measured") or {}
    rates = {
        name: stated[f"{name}_gbytes_per_s"] * GB
        for name in MEASURED
        if f"{name}_gbytes_per_s" in stated
    }  # what is not measured stays the record's own nan: equal clusters are equal
    return NetworkMeasured(**rates)


def _storage(new: Derived) -> str:
    why = "the middle tier of the DGX SuperPOD storage guidance, per node"
    name = new.take("storage", DEFAULT_STORAGE, why)
    catalogue.storage(name, "cluster.storage")
    return name.strip().lower()


def _changed(spec: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """The figures that a design replaces in a row of the catalogue."""
    value = spec.get(field)
    return value if isinstance(value, Mapping) else {}


def _reduces(new: Derived, network: Fabric) -> bool:
    """Whether the switches reduce: only where the design says so, of a fabric that can or of one of
    its own."""
    field = "in_network_reduction"
    wanted = new.stated.get(field) is True
    if _changed(new.stated, "scale_out").get(field) or network.in_network_reduction and wanted:
        return new.note(
            field,
            True,
            "the launch kit turns it on; an all-reduce of unsharded gradients goes through the "
            "switches, what is sharded in rings",
        )
    if wanted:
        return new.note(field, False, f"switches of {network.id} do not reduce")
    usual, rule = defaults(ClusterSpec)[field]
    return bool(new.take(field, usual, rule))


def _node(spec: Mapping[str, Any], chip: Accelerator, network: Fabric | None) -> Node | None:
    if "node" not in spec:
        return catalogue.node_for(chip.id, network.id if network else None)
    node = catalogue.node(spec["node"], "cluster.node")
    if node.accelerator != chip.id:
        fitting = [n.id for n in catalogue.nodes().values() if n.accelerator == chip.id]
        raise DesignError(
            "cluster.node",
            node.id,
            fitting or "no node row has this accelerator: leave the field out",
            problem=f"holds {node.accelerator}, not {chip.id}",
        )
    return node


def _domain(chip: Accelerator, node: Node | None, per_node: int, devices: int) -> tuple[int, str]:
    """Devices of one scale-up domain, and why."""
    domain = chip.scale_up_domain
    link = chip.scale_up
    why = f"{link} joins {domain} {chip.id}"
    if node and node.scale_up_domain == node.devices == domain:
        domain = min(per_node, chip.scale_up_domain_max)
        why = f"{link} joins the devices of one node"
    if catalogue.fabric(link).kind == "host":
        domain = per_node
        why = f"no NVLink: the cards of one node talk over {link}"
    if domain > devices:
        domain = devices
        why += ", cut to the devices there are"
    return domain, why


def _nics(
    node: Node | None, network: Fabric, per_node: int, own_network: bool
) -> tuple[float, str]:
    """Ports per node, and why: those of the node's own network, else the fabric's, else as many as
    the node has."""
    if not own_network and not isnan(network.nics_per_node):
        return network.nics_per_node, f"{network.id} is a host network"
    if not own_network and not isnan(network.nics_per_device):
        per_device = network.nics_per_device
        return per_device * per_node, f"{network.id} has {per_device:g} a device"
    if node is None:
        return per_node, "one a device"
    why = f"node {node.id}" if own_network else f"as many as node {node.id} has ports"
    return node.nics * per_node / node.devices, f"{why}: {node.nics} for {node.devices} devices"


def _scale_out(
    new: Derived, node: Node | None, network: Fabric, per_node: int
) -> tuple[int, float]:
    """Ports per node and bytes/s per device, one way."""
    changed = _changed(new.stated, "scale_out")
    field = "scale_out_gbytes_per_s_per_device"
    if node is not None and node.scale_out == network.id and not changed:
        own_network = True
        port = node.nic_bytes_per_s
    else:
        own_network = False
        port = network.port_bytes_per_s
    count, why = _nics(node, network, per_node, own_network)
    nics = new.take("nics_per_node", max(1, ceil(count)), why)
    if "device_gbytes_per_s" in changed and field not in new.stated:
        return nics, network.device_bytes_per_s
    why = f"ports x rate over devices: {nics} x {port / GB:g} GB/s / {per_node}"
    return nics, new.take(field, nics * port / per_node / GB, why) * GB


def _host_memory_bytes(new: Derived, node: Node | None, node_share: float) -> float:
    size_gb = node.host_memory_bytes / GB if node else nan
    return _of_node(new, "host_memory_gb", node, size_gb, _PLAIN_HOST_MEMORY_GB, node_share)


def _nvme_bytes(new: Derived, node: Node | None, node_share: float) -> float:
    size_gb = node.nvme_bytes / GB if node else nan
    return _of_node(new, "nvme_gb", node, size_gb, _PLAIN_NVME_GB, node_share)


def _of_node(
    new: Derived, field: str, node: Node | None, size_gb: float, usual_gb: float, node_share: float
) -> float:
    """Bytes of memory or disks of one node: the row's, by the share of its devices that stand in
    a node of the design; else what such nodes usually hold."""
    if node is None or isnan(size_gb):
        why = "not in the catalogue for this node: a common size"
        return new.take(field, usual_gb * _share_of_usual(new, node_share), why) * GB
    why = f"node {node.id}"
    if node_share != 1:
        why += ", by its share of the devices"
    return new.take(field, size_gb * node_share, why) * GB


def _share_of_usual(new: Derived, node_share: float) -> float:
    """Of what a node of the usual kind holds: more in a larger one, a part where the devices that
    there are do not fill it, all where the design says how many it has."""
    if "devices_per_node" in new.stated or node_share > 1:
        return max(1.0, node_share)
    return node_share


def _power(
    new: Derived, chip: Accelerator, node: Node | None, per_node: int, node_share: float
) -> float:
    """Watts of a full node at the wall; nan where neither the node nor the device has a published
    figure."""
    devices_w = per_node * chip.tdp_w
    if node is None or isnan(node.power_w):
        watts = devices_w * _POWER_FACTOR
        why = "1.8 x device power, as on DGX H100 and DGX B200"
    else:
        watts = node.power_w * node_share
        why = f"maximum of node {node.id}"
        if node.accelerator != chip.id:
            watts += devices_w - per_node * catalogue.accelerator(node.accelerator).tdp_w
            why += ", moved by the difference in device power"
    if isnan(watts):
        new.note("node_power_w", None, "no power figure is published for this device")
        return watts
    return new.note("node_power_w", watts, why)
