"""How the fields that a design leaves out of `cluster` are filled in, each with the rule that did
it."""

from collections.abc import Mapping
from math import ceil, inf, isnan, nan, prod

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Derived
from ..base.units import GB
from ..catalogue.hardware import (
    SITE_BYTES_PER_S,
    SITE_RTT_S,
    USUAL_FABRIC,
    Accelerator,
    Fabric,
    Node,
)
from ..catalogue.packet_switches import leaf_ports, radix_of, switch_of
from .cluster import Cluster, resolve_accelerator, resolve_fabric
from .fields import defaults
from .schema import ClusterSpec

# where no node row fits: 8 devices, one NIC each, and what such hosts usually hold
_PLAIN = {"host_memory_gb": 1024.0, "nvme_gb": 7600.0}
_PLAIN_DEVICES = 8
_POWER_FACTOR = 1.8  # watts of a node over those of its devices
USUAL_WAY = {"gbits_per_s": SITE_BYTES_PER_S / GB, "rtt_ms": SITE_RTT_S * 1e3}
DEFAULT_STORAGE = "superpod-better"


def build_cluster(spec: Mapping) -> tuple:
    """The Cluster that a design file's `cluster` mapping describes, and what had to be assumed.

    Parameters
    ----------
    spec : fields of `ClusterSpec`, which has checked them; what is left out is looked up.
    `accelerator` and `scale_out`
        take an id, an alias or `{like: id, …}`. Units are those of the names: decimal GB, GB/s one
        way per device.

    Rules, in this order: the given value; the node row of the catalogue (one that has this
    accelerator and this fabric, else the
    accelerator's usual node); a rule of the family. Each value not given is an `Assumed` of the
    result.
    scale_out_bytes_per_s = scale_out_gbytes_per_s_per_device, else nics_per_node x port rate /
    devices_per_node.
    Where the scale-up domain is the node, it follows devices_per_node. `devices` need not fill the
    last node.
    Switches that could reduce in the network count only when `in_network_reduction: true` says so.
    Raises DesignError for an unknown id and for numbers that do not fit one another.
    """
    new = Derived(spec, "cluster")
    given = new.given
    absent = "no node of this accelerator in the catalogue"
    chip = resolve_accelerator(given["accelerator"])
    devices = given["devices"]
    network = resolve_fabric(given["scale_out"]) if "scale_out" in given else None
    if network is not None and network.kind not in ("scale-out", "wan"):
        raise DesignError(
            "cluster.scale_out",
            network.id,
            list(catalogue.fabrics("scale-out")),
            problem=f"is a {network.kind} fabric, it does not join nodes",
        )
    node = _node(given, chip, network)
    if network is None:
        network = catalogue.fabric(node.scale_out if node else USUAL_FABRIC)
        new.note("scale_out", network.id, f"that of node {node.id}" if node else absent)
    usual, why = (node.devices, f"node {node.id}") if node else (_PLAIN_DEVICES, absent)
    per_node = new.take("devices_per_node", usual, why)
    share = per_node / node.devices if node else 1.0

    domain = new.take("scale_up_domain", *_domain(chip, node, per_node, devices))
    up = catalogue.fabric(chip.scale_up)
    up_rate = chip.link_bytes_per_s
    if "link_gbytes_per_s" not in _changed(given, "accelerator"):
        up_rate = min(up_rate, up.device_bytes_per_s)
    nics, rate = _scale_out(new, node, network, per_node)
    memory, disks = (_of_node(new, field, node, share) for field in _PLAIN)
    return Cluster(
        accelerator=chip,
        devices=devices,
        devices_per_node=per_node,
        scale_up_domain=domain,
        scale_up_bytes_per_s=up_rate,
        scale_up_latency_s=up.latency_s,
        scale_up=up.id,
        scale_up_efficiency=up.efficiency,
        scale_out=network.id,
        scale_out_latency_s=network.latency_s,
        scale_out_efficiency=network.efficiency,
        in_network_reduction=_reduces(new, network),
        nics_per_node=nics,
        **_shape(new, network, per_node, nics, rate),
        **_sites(new, devices),
        delivery=_delivery(new, devices),
        host_memory_bytes=memory,
        nvme_bytes=disks,
        storage=_storage(new),
        node_power_w=_power(new, chip, node, per_node, share),
        node=node.id if node else "",
    ), tuple(new.assumed)


def _shape(new: Derived, network: Fabric, per_node: int, nics: int, rate: float) -> dict:
    """How the network is joined, and where it narrows: {oversubscription, pod_devices, …}.

    A list of ratios narrows from the first tier above 1 on: a leaf's devices or, above, those of
    the k/2 leaves that share spines. A dragonfly of g groups sends g / (2 (g - 1)) of what its
    halves send each other (Kim et al. 2008; Shpiner et al. 2017).
    """
    devices = new.given["devices"]
    given = new.given
    ratios = given.get("oversubscription")
    listed = tuple(ratios) if isinstance(ratios, list) else ()
    card, *above = listed or (1.0,)
    topology = given.get("topology") or ""
    why = "one a card of a node"
    rails = given["rails"] if "rails" in given else new.note("rails", nics, why)
    if nics % rails:
        raise DesignError("cluster.rails", rails, f"a divisor of the {nics} cards of a node", nics)
    k = radix_of(switch_of(network.id), rate * per_node / nics)
    each = per_node / nics  # devices of a card
    half = k // 2
    pod = devices
    why = "one pod holds the whole job"
    wide = prod(above)
    if topology.startswith("dragonfly"):
        size = half * (half if topology.endswith("+") else half // 2) * each
        groups = ceil(devices / size)
        if groups > 1:
            pod = int(size)
            wide = 2 * (groups - 1) / groups
            why = f"a group of a {topology}"
    elif wide > 1:
        ports, _ = leaf_ports(k, above[0], given.get("leaf_devices", inf) / each / rails)
        pod, why = (ports * rails, "a leaf of each rail") if above[0] > 1 else (half * half, "k²/4")
        pod = max(per_node, int(pod * each))
        why = f"{why}, of {k} ports each"
    if "topology" not in given:
        new.note("topology", None, "by the fabric, its size and what is said of pods and ratios")
    if listed or wide > 1:
        total = new.note("oversubscription", wide, f"over the tiers that narrow, of a {topology}")
    else:
        total = new.take("oversubscription", 1.0, "non-blocking")
    return {
        "scale_out_bytes_per_s": rate / card,
        "oversubscription": total,
        "pod_devices": new.take("pod_devices", min(pod, devices), why),
        "topology": topology,
        "rails": rails if rails != nics else 0,
        "leaf_devices": new.take("leaf_devices", 0, "0: as many as the ports of a leaf allow"),
        "ratios": listed,
    }


def _adds_up(field: str, listed, devices: int) -> None:
    """Raises DesignError where the devices of a list are not those of the cluster."""
    total = sum(one["devices"] for one in listed)
    if total != devices:
        raise DesignError(
            f"cluster.{field}",
            f"{total:,} devices in all",
            f"{field} that add up to cluster.devices {devices:,}",
            problem="do not add up",
        )


def _delivery(new: Derived, devices: int) -> tuple:
    """The parts of the machine by the day of their delivery."""
    parts = new.take("delivery", [{"day": 0.0, "devices": devices}], "all of it on day 0")
    _adds_up("delivery", parts, devices)
    return tuple(sorted(parts, key=lambda part: part["day"]))


def _sites(new: Derived, devices: int) -> dict:
    """How many sites, how far apart; the narrowest and the longest way of a list of them."""
    listed = new.given.get("sites")
    if isinstance(listed, list):
        sites = len(listed)
        _adds_up("sites", listed, devices)
    else:
        sites = new.take("sites", 1, "one site")
        listed = ()
    out = {"sites": sites, "site_bytes_per_s": SITE_BYTES_PER_S}
    if any(site["devices"] != listed[0]["devices"] for site in listed):
        out["uneven"] = tuple(site["devices"] for site in listed)
    ways = (
        ("site_bytes_per_s", "site_gbytes_per_s", GB, "a 100 Gbit/s wave", min, "gbits_per_s", 8),
        ("site_rtt_s", "site_rtt_ms", 1e-3, "about 1,000 km", max, "rtt_ms", 1),
    )
    for name, field, unit, why, worst, own, parts in ways if sites > 1 else ():
        said = worst((site[own] / parts for site in listed if site.get(own)), default=None)
        if said is None:
            why += " between one site and the others"
            said = new.take(field, USUAL_WAY[own], why)
        out[name] = said * unit
    return out


def _storage(new: Derived) -> str:
    why = "the middle tier of the DGX SuperPOD storage guidance, per node"
    named = new.take("storage", DEFAULT_STORAGE, why)
    catalogue.storage(named, "cluster.storage")
    return named.strip().lower()


def _changed(given, field: str) -> Mapping:
    """The figures that a design replaces in a row of the catalogue."""
    return given[field] if isinstance(given.get(field), Mapping) else {}


def _reduces(new: Derived, network: Fabric) -> bool:
    """Whether the switches reduce: only where the design says so, of a fabric that can or of one of
    its own."""
    field = "in_network_reduction"
    own = _changed(new.given, "scale_out")
    asked = new.given.get(field) is True
    if own.get(field) or network.in_network_reduction and asked:
        return new.note(
            field,
            True,
            "the launch kit turns it on; an all-reduce of unsharded gradients goes through the "
            "switches, what is sharded in rings",
        )
    return (
        new.note(field, False, f"switches of {network.id} do not reduce")
        if asked
        else new.take(field, *defaults(ClusterSpec)[field])
    )


def _node(given, chip: Accelerator, network: Fabric | None) -> Node | None:
    if "node" not in given:
        return catalogue.node_for(chip.id, network.id if network else None)
    node = catalogue.node(given["node"], "cluster.node")
    if node.accelerator != chip.id:
        fitting = [n.id for n in catalogue.nodes().values() if n.accelerator == chip.id]
        raise DesignError(
            "cluster.node",
            node.id,
            fitting or "no node row has this accelerator: leave the field out",
            problem=f"holds {node.accelerator}, not {chip.id}",
        )
    return node


def _domain(chip: Accelerator, node: Node | None, per_node: int, devices: int) -> tuple:
    """Devices of one scale-up domain, and why."""
    domain = chip.scale_up_domain
    link = chip.scale_up
    why = f"{link} joins {domain} {chip.id}"
    if node and node.scale_up_domain == node.devices == domain:
        domain = min(per_node, chip.scale_up_domain_max)
        why = f"{link} joins the devices of "
        why += "one node"
    if catalogue.fabric(link).kind == "host":
        domain = per_node
        why = f"no NVLink: the cards of one node talk over {link}"
    if domain > devices:
        domain = devices
        why += ", cut to the devices there are"
    return domain, why


def _nics(node, network: Fabric, per_node: int, own: bool) -> tuple:
    """Ports per node, and why: those of the node's own network, else the fabric's, else as many as
    the node has."""
    a_device = network.nics_per_device
    if not own and not isnan(network.nics_per_node):
        return network.nics_per_node, f"{network.id} is a host network"
    if not own and not isnan(a_device):
        return a_device * per_node, f"{network.id} has {a_device:g} a device"
    if node is None:
        return per_node, "one a device"
    why = f"node {node.id}" if own else f"as many as node {node.id} has ports"
    return node.nics * per_node / node.devices, f"{why}: {node.nics} for {node.devices} devices"


def _scale_out(new: Derived, node, network: Fabric, per_node: int) -> tuple:
    """Ports per node and bytes/s per device, one way."""
    changed = _changed(new.given, "scale_out")
    field = "scale_out_gbytes_per_s_per_device"
    own = node is not None and node.scale_out == network.id and not changed
    port = node.nic_bytes_per_s if own else network.port_bytes_per_s
    count, why = _nics(node, network, per_node, own)
    nics = new.take("nics_per_node", max(1, ceil(count)), why)
    if "device_gbytes_per_s" in changed and field not in new.given:
        return nics, network.device_bytes_per_s
    why = f"ports x rate over devices: {nics} x {port / GB:g} GB/s / {per_node}"
    return nics, new.take(field, nics * port / per_node / GB, why) * GB


def _of_node(new: Derived, field: str, node: Node | None, share: float) -> float:
    """Bytes of memory or disks of one node: the row's, by the node's share of its devices."""
    size = getattr(node, field.removesuffix("_gb") + "_bytes", nan) / GB
    if isnan(size):
        size = _PLAIN[field]
        why = "not in the catalogue for this node: a common size"
        share = max(1.0, share)
    else:
        why = f"node {node.id}" + ("" if share == 1 else ", by its share of the devices")
    return new.take(field, size * share, why) * GB


def _power(new: Derived, chip: Accelerator, node: Node | None, per_node: int, share) -> float:
    """Watts of a full node at the wall; nan where neither the node nor the device has a published
    figure."""
    devices_w = per_node * chip.tdp_w
    watts = devices_w * _POWER_FACTOR
    why = "1.8 x device power, as on DGX H100 and DGX B200"
    if node is not None and not isnan(node.power_w):
        watts = node.power_w * share
        why = f"maximum of node {node.id}"
        if node.accelerator != chip.id:
            watts += devices_w - per_node * catalogue.accelerator(node.accelerator).tdp_w
            why += ", moved by the difference in device power"
    if isnan(watts):
        new.note("node_power_w", None, "no power figure is published for this device")
        return watts
    return new.note("node_power_w", watts, why)
