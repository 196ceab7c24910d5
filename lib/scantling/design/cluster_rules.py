"""How the fields that a design leaves out of `cluster` are filled in, each with the rule that did
it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Assumed
from ..base.units import GB
from ..catalogue.hardware import SITE_BYTES_PER_S, Accelerator, Fabric, Node
from .cluster import CLUSTER_FIELDS, Cluster, _given, _number, resolve_accelerator, resolve_fabric

# where no node row fits: 8 devices, one NIC each, and what such hosts usually hold
_PLAIN = {
    "devices": 8,
    "host_memory_gb": 1024.0,
    "nvme_gb": 7600.0,
    "power_factor": 1.8,
}
DEFAULT_STORAGE = "superpod-better"


def build_cluster(spec: Mapping) -> tuple[Cluster, tuple[Assumed, ...]]:
    """The Cluster that a design file's `cluster` mapping describes, and what had to be assumed.

    Parameters
    ----------
    spec : fields of CLUSTER_FIELDS; `accelerator` and `devices` are needed, the rest is looked up.
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
    Raises DesignError naming the field, the value and the nearest valid choice.
    """
    if not isinstance(spec, Mapping):
        raise DesignError("cluster", spec, "a mapping with accelerator and devices")
    spec = _given(spec, CLUSTER_FIELDS, "cluster")
    assumed: list[Assumed] = []

    def note(
        field,
        value,
        why,
    ):
        assumed.append(Assumed(f"cluster.{field}", value, why))
        return value

    for field in ("accelerator", "devices"):
        if field not in spec:
            raise DesignError(
                f"cluster.{field}",
                problem="is missing",
                allowed="a catalogue id"
                if field == "accelerator"
                else "how many devices the job has",
            )
    chip = resolve_accelerator(spec["accelerator"])
    changed = isinstance(spec["accelerator"], Mapping)
    devices = _number("cluster.devices", spec["devices"], whole=True)

    network = resolve_fabric(spec["scale_out"]) if "scale_out" in spec else None
    if network is not None and network.kind not in ("scale-out", "wan"):
        raise DesignError(
            "cluster.scale_out",
            network.id,
            list(catalogue.fabrics("scale-out")),
            problem=f"is a {network.kind} fabric, it does not join nodes",
        )
    node = _node(spec, chip, network)
    if network is None:
        network = catalogue.fabric(node.scale_out if node else "rocev2-400")
        note(
            "scale_out",
            network.id,
            f"that of node {node.id}" if node else "no node of this accelerator in the catalogue",
        )

    if "devices_per_node" in spec:
        per_node = _number("cluster.devices_per_node", spec["devices_per_node"], whole=True)
    else:
        per_node = note(
            "devices_per_node",
            node.devices if node else _PLAIN["devices"],
            f"node {node.id}" if node else "no node of this accelerator in the catalogue",
        )
    share = per_node / node.devices if node else 1.0

    domain = _domain(
        spec,
        chip,
        node,
        per_node,
        devices,
        note,
    )
    up = catalogue.fabric(chip.scale_up)
    own_link = changed and "link_gbytes_per_s" in spec["accelerator"]
    up_rate = (
        chip.link_bytes_per_s if own_link else min(chip.link_bytes_per_s, up.device_bytes_per_s)
    )

    nics, rate = _scale_out(
        spec,
        node,
        network,
        per_node,
        note,
    )
    memory = _scaled(
        spec,
        "host_memory_gb",
        share,
        node,
        note,
    )
    disks = _scaled(
        spec,
        "nvme_gb",
        share,
        node,
        note,
    )
    sites = _or(
        spec,
        "sites",
        1,
        "one site",
        note,
        whole=True,
    )
    wave = "a 100 Gbit/s wave between one site and the others"
    between = _or(
        spec,
        "site_gbytes_per_s",
        SITE_BYTES_PER_S / GB,
        wave,
        note if sites > 1 else lambda field, value, why: value,
    )

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
        scale_out_bytes_per_s=rate,
        scale_out_latency_s=network.latency_s,
        scale_out_efficiency=network.efficiency,
        in_network_reduction=_reduces(spec, network, note),
        nics_per_node=nics,
        oversubscription=_or(
            spec,
            "oversubscription",
            1.0,
            "non-blocking",
            note,
            at_least=1.0,
        ),
        pod_devices=_or(
            spec,
            "pod_devices",
            devices,
            "one pod holds the whole job",
            note,
            whole=True,
        ),
        sites=sites,
        site_bytes_per_s=between * GB,
        host_memory_bytes=memory * GB,
        nvme_bytes=disks * GB,
        storage=_storage(spec, note),
        node_power_w=_power(
            chip,
            node,
            per_node,
            share,
            note,
        ),
        node=node.id if node else "",
    ), tuple(assumed)


def _storage(spec, note) -> str:
    if "storage" not in spec:
        return note(
            "storage",
            DEFAULT_STORAGE,
            "the middle tier of the DGX SuperPOD storage guidance, per node",
        )
    catalogue.storage(spec["storage"], "cluster.storage")
    return spec["storage"].strip().lower()


def _reduces(
    spec,
    network: Fabric,
    note,
) -> bool:
    """Whether the switches reduce: only where the design says so, of a fabric that can or of one of
    its own."""
    own = isinstance(spec.get("scale_out"), Mapping) and bool(
        spec["scale_out"].get("in_network_reduction")
    )
    if own or network.in_network_reduction and spec.get("in_network_reduction") is True:
        return note(
            "in_network_reduction",
            True,
            "the launch kit turns it on; the step still counts rings, which is right "
            "for sharded states: "
            "what a plain all-reduce gains stands in `scantling blueprint --part "
            "evolution` of the design without this field",
        )
    if spec.get("in_network_reduction") is True:
        note("in_network_reduction", False, f"switches of {network.id} do not reduce")
    return False


def _node(
    spec,
    chip: Accelerator,
    network: Fabric | None,
) -> Node | None:
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


def _domain(
    spec,
    chip,
    node,
    per_node,
    devices,
    note,
) -> int:
    if "scale_up_domain" in spec:
        return _number("cluster.scale_up_domain", spec["scale_up_domain"], whole=True)
    if node and node.scale_up_domain == node.devices and chip.scale_up_domain == node.devices:
        domain, why = (
            min(per_node, chip.scale_up_domain_max),
            f"{chip.scale_up} joins the devices of one node",
        )
    else:
        domain, why = (
            chip.scale_up_domain,
            f"{chip.scale_up} joins {chip.scale_up_domain} {chip.id}",
        )
    if chip.scale_up.startswith("pcie"):
        domain, why = per_node, f"no NVLink: the cards of one node talk over {chip.scale_up}"
    if domain > devices:
        domain, why = devices, why + ", cut to the devices there are"
    return note("scale_up_domain", domain, why)


def _nics(
    node,
    network: Fabric,
    per_node: int,
    own: bool,
) -> tuple[float, str]:
    """Ports per node, and why: those of the node's own network, else the fabric's, else as many as
    the node has."""
    ports = f"{node.nics} for {node.devices} devices" if node else ""
    if own:
        return node.nics * per_node / node.devices, f"node {node.id}: {ports}"
    if not math.isnan(network.nics_per_node):
        return network.nics_per_node, f"{network.id} is a host network"
    a_device = network.nics_per_device
    if not math.isnan(a_device):
        return a_device * per_node, f"{network.id} has {a_device:g} a device"
    if node is None:
        return per_node, "one a device"
    return node.nics * per_node / node.devices, f"as many as node {node.id} has ports: {ports}"


def _scale_out(
    spec,
    node,
    network: Fabric,
    per_node: int,
    note,
) -> tuple[int, float]:
    """Ports per node and bytes/s per device, one way."""
    own = (
        node is not None
        and node.scale_out == network.id
        and not isinstance(spec.get("scale_out"), Mapping)
    )
    port = node.nic_bytes_per_s if own else network.port_bytes_per_s
    if "nics_per_node" in spec:
        nics = _number("cluster.nics_per_node", spec["nics_per_node"], whole=True)
    else:
        count, why = _nics(
            node,
            network,
            per_node,
            own,
        )
        nics = note("nics_per_node", max(1, math.ceil(count)), why)
    if "scale_out_gbytes_per_s_per_device" in spec:
        return nics, _number(
            "cluster.scale_out_gbytes_per_s_per_device", spec["scale_out_gbytes_per_s_per_device"]
        ) * GB
    if isinstance(spec.get("scale_out"), Mapping) and "device_gbytes_per_s" in spec["scale_out"]:
        return nics, network.device_bytes_per_s
    rate = nics * port / per_node
    note(
        "scale_out_gbytes_per_s_per_device",
        rate / GB,
        f"{nics} ports of {port / GB:g} GB/s for {per_node} devices",
    )
    return nics, rate


def _scaled(
    spec,
    field,
    share,
    node,
    note,
) -> float:
    of_node = getattr(node, field.removesuffix("_gb") + "_bytes") / GB if node else math.nan
    if field in spec:
        return _number(
            f"cluster.{field}",
            spec[field],
            low=-1.0 if spec[field] == 0 else 0.0,
            what="a number of GB, zero or more",
        )
    if math.isnan(of_node):
        return note(
            field,
            _PLAIN[field] * max(1.0, share),
            "not in the catalogue for this node: a common size",
        )
    return note(
        field,
        of_node * share,
        f"node {node.id}" + ("" if share == 1 else ", by its share of the devices"),
    )


def _or(
    spec,
    field,
    default,
    why,
    note,
    whole=False,
    at_least=None,
):
    if field not in spec:
        return note(field, default, why)
    value = _number(f"cluster.{field}", spec[field], whole=whole)
    if at_least is not None and value < at_least:
        raise DesignError(f"cluster.{field}", spec[field], f"a number of at least {at_least:g}")
    return value


def _power(
    chip: Accelerator,
    node: Node | None,
    per_node: int,
    share: float,
    note,
) -> float:
    """Watts of a full node at the wall; nan where neither the node nor the device has a published
    figure."""
    if node is not None and not math.isnan(node.power_w):
        watts, why = node.power_w * share, f"maximum of node {node.id}"
        if node.accelerator != chip.id:
            watts += per_node * (chip.tdp_w - catalogue.accelerator(node.accelerator).tdp_w)
            why += ", moved by the difference in device power"
    else:
        watts, why = (
            per_node * chip.tdp_w * _PLAIN["power_factor"],
            "1.8 x device power, as on DGX H100 and DGX B200",
        )
    if math.isnan(watts):
        why = "no power figure is published for this device"
    return note("node_power_w", None if math.isnan(watts) else watts, why) or math.nan
