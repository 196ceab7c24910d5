"""The cluster that a design file describes: its record, and the fields that change a row of the
catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .. import catalogue
from ..base.errors import DesignError, closest
from ..catalogue.hardware import Accelerator, Fabric
from ..catalogue.load import field_of


@dataclass(
    frozen=True,
    kw_only=True,
)
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

# override -> (record field, factor)
ACCELERATOR_OVERRIDES = {
    name: field_of(name)
    for name in (
        *("hbm_gb", "hbm_usable_gb", "hbm_gbytes_per_s", "link_gbytes_per_s", "p2p_gbytes_per_s"),
        *("host_link_gbytes_per_s", "bf16_tflops", "fp16_tflops", "fp8_tflops", "fp4_tflops"),
        *("tf32_tflops", "fp32_tflops", "tdp_w", "scale_up_domain"),
    )
}
FABRIC_OVERRIDES = {
    name: field_of(name)
    for name in (
        *("device_gbytes_per_s", "port_gbits_per_s", "latency_us", "efficiency"),
        "in_network_gain",
    )
}


def _number(
    field,
    value,
    low=0.0,
    whole=False,
    what=None,
):
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


def _given(
    spec: Mapping,
    allowed,
    where: str,
) -> dict:
    """The entries that say something; an unknown name is an error."""
    for key in spec:
        if key not in allowed:
            raise DesignError(
                f"{where}.{key}",
                problem="is not a field",
                allowed=allowed,
                nearest=closest(str(key), allowed),
            )
    return {k: v for k, v in spec.items() if v is not None}


def _figures(what: Mapping, find, overrides: dict, where: str, *more: str):
    """(catalogue row, changed fields, entries of `more`) of a `{like: id, …}`."""
    spec = _given(what, ("like", "name", *more, *overrides), where)
    if "like" not in spec:
        raise DesignError(
            f"{where}.like",
            allowed="the catalogue id that the rest is taken from",
            problem="is missing",
        )
    base = find(spec.pop("like"), f"{where}.like")
    changes = {"name": str(spec.pop("name", f"{base.name}, changed"))}
    rest = {key: spec.pop(key) for key in more if key in spec}
    for key, value in spec.items():
        field, factor = overrides[key]
        changes[field] = _number(f"{where}.{key}", value, whole=key == "scale_up_domain") * factor
    return base, changes, rest


def resolve_accelerator(what, where: str = "cluster.accelerator") -> Accelerator:
    """An Accelerator from a catalogue id, an alias, or `{like: id, hbm_gb: 96, …}`.

    Overrides are those of ACCELERATOR_OVERRIDES (decimal GB, GB/s one way, dense TFLOP/s). A
    changed `hbm_gb` moves the usable capacity by the same ratio unless `hbm_usable_gb` is given
    too. Raises DesignError for an unknown id, name or value.
    """
    if isinstance(what, Accelerator):
        return what
    if not isinstance(what, Mapping):
        return catalogue.accelerator(what, where)
    base, changes, _ = _figures(
        what,
        catalogue.accelerator,
        ACCELERATOR_OVERRIDES,
        where,
    )
    if "hbm_bytes" in changes:
        usable = base.hbm_usable_bytes * changes["hbm_bytes"] / base.hbm_bytes
        changes.setdefault("hbm_usable_bytes", usable)
    if "scale_up_domain" in changes:
        changes["scale_up_domain_max"] = max(base.scale_up_domain_max, changes["scale_up_domain"])
    return replace(base, **changes)


def resolve_fabric(what, where: str = "cluster.scale_out") -> Fabric:
    """A Fabric from a catalogue id, an alias, or `{like: id, latency_us: 3, …}` (names:
    FABRIC_OVERRIDES and in_network_reduction); a changed port moves the rate of a device by the
    same ratio."""
    if isinstance(what, Fabric):
        return what
    if not isinstance(what, Mapping):
        return catalogue.fabric(what, where)
    reduces = "in_network_reduction"
    base, changes, rest = _figures(
        what,
        catalogue.fabric,
        FABRIC_OVERRIDES,
        where,
        reduces,
    )
    changes |= {key: bool(value) for key, value in rest.items()}
    if changes.get("efficiency", 0) > 1:
        raise DesignError(
            f"{where}.efficiency", what["efficiency"], "a share of the rate, above 0 and at most 1"
        )
    if "port_bytes_per_s" in changes and not math.isnan(base.port_bytes_per_s):
        ratio = changes["port_bytes_per_s"] / base.port_bytes_per_s
        changes.setdefault("device_bytes_per_s", base.device_bytes_per_s * ratio)
    return replace(base, **changes)
