"""What a job runs on: accelerator, fabrics, node, and the cluster that a design file describes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..base.errors import DesignError
from ..base.records import Assumed

GB = 1e9
NAN = math.nan

# precision of the job -> the peak that it is counted against
_PEAK_OF = {
    "bf16": "bf16_flops",
    "fp16": "fp16_flops",
    "fp32": "fp32_flops",
    "tf32": "tf32_flops",
    "fp8": "fp8_flops",
    "fp8-row": "fp8_flops",
    "fp8-current": "fp8_flops",
    "fp8-block": "fp8_flops",
    "mxfp8": "fp8_flops",
    "nvfp4": "fp4_flops",
    "mxfp4": "fp4_flops",
    "fp4": "fp4_flops",
}


@dataclass(frozen=True)
class Accelerator:
    """One device as a framework counts it, with dense peaks [FLOP/s] (nan where it has none) and
    one-way rates [bytes/s].

    `hbm_usable_bytes` is what a program finds (device total less what the driver keeps), not the
    name on the box.
    `link_bytes_per_s` counts all scale-up links of the device in one direction; `p2p_bytes_per_s`
    what one pair can use of it.
    Data sheets often print twice these figures: sparse peaks, and both directions of a link.
    """

    id: str
    name: str
    vendor: str
    year: int
    family: str
    hbm_bytes: float
    hbm_usable_bytes: float
    hbm_bytes_per_s: float
    bf16_flops: float
    fp16_flops: float
    fp8_flops: float
    fp4_flops: float
    fp32_flops: float
    tf32_flops: float
    tdp_w: float
    link: str
    link_bytes_per_s: float
    scale_up_domain: int
    host_link_bytes_per_s: float
    source: str
    verified: str
    p2p_bytes_per_s: float = NAN
    scale_up: str = ""
    scale_up_domain_max: int = 1
    l2_bytes: float = NAN
    sms: float = NAN  # units among which the tiles of a matrix product are dealt out
    node: str = ""
    status: str = "shipping"
    notes: str = ""
    date: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def mesh(self) -> bool:
        """True where no switch joins the domain: the links to its other members add up to the rate
        (xGMI, Gaudi, Ascend)."""
        return (
            abs(self.p2p_bytes_per_s * (self.scale_up_domain - 1) / self.link_bytes_per_s - 1)
            < 0.01
            and self.scale_up_domain > 2
        )

    def peak_flops(self, precision: str) -> float:
        """Dense peak [FLOP/s] that a job of this precision is counted against.

        The fp8 recipes (fp8, fp8-row, fp8-current, fp8-block, mxfp8) share the fp8 peak, nvfp4 and
        mxfp4 the fp4 peak.
        Raises DesignError where the name is unknown or the device has no such unit; the message
        lists what it has.
        """
        column = _PEAK_OF.get(precision)
        peak = getattr(self, column) if column else NAN
        if math.isnan(peak):
            why = "is unknown" if column is None else f"is not a unit that {self.name} has"
            raise DesignError("job.precision", precision, self.precisions(), problem=why)
        return peak

    def precisions(self) -> tuple[str, ...]:
        """Names that `peak_flops` takes for this device."""
        return tuple(p for p, column in _PEAK_OF.items() if not math.isnan(getattr(self, column)))


@dataclass(frozen=True)
class Fabric:
    """A network that joins devices: rate per device one way, time of one step, and the share of the
    rate that large messages reach.

    `efficiency` is the bus bandwidth of a ring all-reduce (nccl-tests: algbw 2(n-1)/n) over the
    rate of the device, or over
    that of the node's NICs between nodes. `latency_s` is one step of a collective, software
    included, not the wire.
    `in_network_gain` multiplies large all-reduces when the switches reduce; nan where nobody has
    published one.
    """

    id: str
    name: str
    kind: str  # scale-up | scale-out | host | wan
    device_bytes_per_s: float
    node_bytes_per_s: float
    latency_s: float
    efficiency: float
    in_network_reduction: bool
    source: str
    verified: str
    year: int = 0
    port_bytes_per_s: float = NAN
    p2p_bytes_per_s: float = NAN
    domain_devices: int = 0  # 0: not bounded by the product
    nics_per_device: float = NAN  # set where the product fixes it
    nics_per_node: float = NAN
    allgather_efficiency: float = NAN
    alltoall_efficiency: float = NAN
    p2p_efficiency: float = NAN
    allreduce_half_size_bytes: float = NAN
    in_network_gain: float = NAN
    notes: str = ""
    date: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """A host as it is sold: devices, scale-out ports, memory, disks, power at the wall [W,
    maximum]."""

    id: str
    name: str
    provider: str
    accelerator: str
    devices: int
    scale_up_domain: int
    scale_out: str
    nics: int
    nic_bytes_per_s: float
    node_bytes_per_s: float
    host_memory_bytes: float
    nvme_bytes: float
    power_w: float
    nodes_per_rack: float
    source: str
    verified: str
    cpu: str = ""
    notes: str = ""
    date: str = ""


@dataclass(frozen=True)
class Cluster:
    """The machine of one design; bandwidths per device (per site between sites), one direction
    [bytes/s]; memory, disks and power per node."""

    accelerator: Accelerator
    devices: int
    devices_per_node: int
    scale_up_domain: int
    scale_up_bytes_per_s: float
    scale_up_latency_s: float
    scale_up: str
    scale_out: str
    scale_out_bytes_per_s: float
    scale_out_latency_s: float
    scale_out_efficiency: float
    in_network_reduction: bool
    nics_per_node: int
    oversubscription: float
    pod_devices: int
    sites: int
    site_bytes_per_s: float
    host_memory_bytes: float
    nvme_bytes: float
    storage: str
    node_power_w: float
    scale_up_efficiency: float = 0.75
    node: str = ""

    @property
    def nodes(self) -> int:
        """Hosts that the devices need; the last may be partly filled."""
        return -(-self.devices // self.devices_per_node)


CLUSTER_FIELDS = (
    "accelerator",
    "devices",
    "devices_per_node",
    "scale_up_domain",
    "scale_out",
    "scale_out_gbytes_per_s_per_device",
    "oversubscription",
    "sites",
    "site_gbytes_per_s",
    "nics_per_node",
    "pod_devices",
    "host_memory_gb",
    "nvme_gb",
    "storage",
    "node",
    "in_network_reduction",
)

# override name -> (record field, factor)
ACCELERATOR_OVERRIDES = {
    "hbm_gb": ("hbm_bytes", GB),
    "hbm_usable_gb": ("hbm_usable_bytes", GB),
    "hbm_gbytes_per_s": ("hbm_bytes_per_s", GB),
    "bf16_tflops": ("bf16_flops", 1e12),
    "fp16_tflops": ("fp16_flops", 1e12),
    "fp8_tflops": ("fp8_flops", 1e12),
    "fp4_tflops": ("fp4_flops", 1e12),
    "tf32_tflops": ("tf32_flops", 1e12),
    "fp32_tflops": ("fp32_flops", 1e12),
    "tdp_w": ("tdp_w", 1),
    "link_gbytes_per_s": ("link_bytes_per_s", GB),
    "p2p_gbytes_per_s": ("p2p_bytes_per_s", GB),
    "host_link_gbytes_per_s": ("host_link_bytes_per_s", GB),
    "scale_up_domain": ("scale_up_domain", 1),
}
FABRIC_OVERRIDES = {
    "device_gbytes_per_s": ("device_bytes_per_s", GB),
    "port_gbits_per_s": ("port_bytes_per_s", GB / 8),
    "latency_us": ("latency_s", 1e-6),
    "efficiency": ("efficiency", 1),
    "in_network_gain": ("in_network_gain", 1),
}


def _number(field, value, low=0.0, whole=False, what=None):
    ok = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value > low
    )
    if not ok or whole and value != int(value):
        raise DesignError(
            field, value, what or f"a {'whole ' if whole else ''}number above {low:g}"
        )
    return int(value) if whole else float(value)


def _given(spec: Mapping, allowed, where: str) -> dict:
    """The entries that say something; an unknown name is an error."""
    for key in spec:
        if key not in allowed:
            raise DesignError(
                f"{where}.{key}",
                problem="is not a field",
                allowed=allowed,
                nearest=_near(key, allowed),
            )
    return {k: v for k, v in spec.items() if v is not None}


def _near(word, choices):
    from ..base.errors import closest

    return closest(str(word), choices)


def resolve_accelerator(what, where: str = "cluster.accelerator") -> Accelerator:
    """An Accelerator from a catalogue id, an alias, or `{like: id, hbm_gb: 96, …}`.

    Overrides are those of ACCELERATOR_OVERRIDES (decimal GB, GB/s one way, dense TFLOP/s). A
    changed `hbm_gb` moves the usable
    capacity by the same ratio unless `hbm_usable_gb` is given too. Raises DesignError for an
    unknown id, name or value.
    """
    from .. import catalogue

    if isinstance(what, Accelerator):
        return what
    if not isinstance(what, Mapping):
        return catalogue.accelerator(what, where)
    spec = _given(what, ("like", "name", *ACCELERATOR_OVERRIDES), where)
    if "like" not in spec:
        raise DesignError(
            f"{where}.like",
            allowed="the catalogue id that the rest is taken from",
            problem="is missing",
        )
    base = catalogue.accelerator(spec.pop("like"), f"{where}.like")
    changes = {"name": str(spec.pop("name", f"{base.name}, changed"))}
    for key, value in spec.items():
        field, factor = ACCELERATOR_OVERRIDES[key]
        changes[field] = _number(f"{where}.{key}", value, whole=key == "scale_up_domain") * factor
    if "hbm_bytes" in changes and "hbm_usable_bytes" not in changes:
        changes["hbm_usable_bytes"] = base.hbm_usable_bytes * changes["hbm_bytes"] / base.hbm_bytes
    if "scale_up_domain" in changes:
        changes["scale_up_domain_max"] = max(base.scale_up_domain_max, changes["scale_up_domain"])
    return replace(base, **changes)


def resolve_fabric(what, where: str = "cluster.scale_out") -> Fabric:
    """A Fabric from a catalogue id, an alias, or `{like: id, latency_us: 3, …}` (names:
    FABRIC_OVERRIDES and in_network_reduction)."""
    from .. import catalogue

    if isinstance(what, Fabric):
        return what
    if not isinstance(what, Mapping):
        return catalogue.fabric(what, where)
    spec = _given(what, ("like", "name", "in_network_reduction", *FABRIC_OVERRIDES), where)
    if "like" not in spec:
        raise DesignError(
            f"{where}.like",
            allowed="the catalogue id that the rest is taken from",
            problem="is missing",
        )
    base = catalogue.fabric(spec.pop("like"), f"{where}.like")
    changes = {"name": str(spec.pop("name", f"{base.name}, changed"))}
    if "in_network_reduction" in spec:
        changes["in_network_reduction"] = bool(spec.pop("in_network_reduction"))
    for key, value in spec.items():
        field, factor = FABRIC_OVERRIDES[key]
        changes[field] = _number(f"{where}.{key}", value) * factor
    if changes.get("efficiency", 0) > 1:
        raise DesignError(
            f"{where}.efficiency", spec["efficiency"], "a share of the rate, above 0 and at most 1"
        )
    if (
        "port_bytes_per_s" in changes
        and "device_bytes_per_s" not in changes
        and base.port_bytes_per_s == base.port_bytes_per_s
    ):
        changes["device_bytes_per_s"] = (
            base.device_bytes_per_s * changes["port_bytes_per_s"] / base.port_bytes_per_s
        )
    return replace(base, **changes)


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
    from .cluster_rules import build

    return build(spec)
