"""The cluster that a design file describes: its record, and the fields that change a row of the
catalogue."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import nan
from statistics import median

import numpy as np

from .. import catalogue
from ..base.errors import DesignError, closest, plain
from ..base.records import record
from ..catalogue.hardware import SITE_RTT_S, Accelerator, Fabric
from ..catalogue.load import field_of
from ..catalogue.words import OUTERS
from .checks import as_number


@record
class Sync:
    """How several sites keep in step."""

    kind: str = "local-steps"
    local_steps: int = 0  # between two averages; 1: every step; 0: searched with the plan
    exchange_bytes: float = 4.0  # of a value on its way; 0: as wide as the gradients
    outer_optimizer: str = "nesterov"
    overlap: bool = False

    @property
    def apart(self) -> bool:
        """Whether each site trains alone between two averages, and restarts alone."""
        return self.local_steps != 1

    @property
    def outer_bytes(self) -> float:
        """State of the outer optimizer. [bytes a parameter]"""
        return OUTERS[self.outer_optimizer] if self.apart else 0.0


@record
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
    site_rtt_s: float = SITE_RTT_S
    topology: str = ""  # empty: by the rule of cluster.network.build
    rails: int = 0  # 0: one a card of a node
    leaf_devices: int = 0  # below one leaf of each rail; 0: as many as its ports allow
    ratios: tuple[float, ...] = ()  # card to leaf, leaf to spine, spine to core, where listed
    delivery: tuple[dict, ...] = ()  # {day, devices} of the parts, in order
    uneven: tuple[int, ...] = ()  # devices of each site, where the design lists them
    sync: Sync = Sync()

    @property
    def by_site(self) -> tuple:
        """Devices of each site."""
        return self.uneven or (-(-self.devices // self.sites),) * self.sites

    @property
    def shares(self) -> int:
        """What replicas and the batch are a multiple of: sites of one size take equal shares."""
        return self.sites if len({*self.by_site}) == 1 else 1

    def replicas(self, ranks):
        """Replicas of so many ranks that stand inside one site each."""
        return sum(n // ranks for n in self.uneven or (self.devices // self.sites,) * self.sites)

    def beside(self, replicas):
        """Of so many replicas, those that stand in the smallest site, at least one: what is
        sharded is shared out among them."""
        return np.maximum(replicas * min(self.by_site) // self.devices, 1)

    @property
    def nodes(self) -> int:
        """Hosts that the devices need; the last may be partly filled."""
        return -(-self.devices // self.devices_per_node)

    @property
    def unit(self) -> int:
        """Devices that are bought or rented together: a rack where one scale-up link joins its
        nodes and the cluster fills one, else a node."""
        racked = self.devices_per_node < self.scale_up_domain <= min(LARGEST_RACK, self.devices)
        return max(self.scale_up_domain if racked else self.devices_per_node, 1)

    def whole(self, devices: float) -> int:
        """About so many devices, in whole units of them, at least one."""
        return max(round(devices / self.unit), 1) * self.unit


LARGEST_RACK = 144  # devices; a larger scale-up domain (a TPU pod) is rented in parts

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
# a changed figure -> the one that moves by the same ratio, unless it is given too
CARRIED = {
    "hbm_bytes": "hbm_usable_bytes",
    "link_bytes_per_s": "p2p_bytes_per_s",
    "port_bytes_per_s": "device_bytes_per_s",
}


REPLACES = 1e6  # a figure may be so many times its row's, or so small a part of it


def _replaced(path: str, value, usual: float, whole: bool):
    """A figure in the place of a row's: within a million times of it, up and down."""
    low = usual / REPLACES
    high = usual * REPLACES
    allowed = f"from {low:.4g} to {high:.4g}: the catalogue has {usual:.4g}"
    try:
        value = as_number(value, allowed)
    except DesignError as e:
        raise e.at(path) from None
    if not low <= value <= high or whole and value % 1:
        raise DesignError(path, value, allowed)
    return int(value) if whole else float(value)


@cache
def _median(kind: type, field: str) -> float:
    """What the rows of the catalogue have that have this figure."""
    rows = catalogue.accelerators() if kind is Accelerator else catalogue.fabrics()
    values = [getattr(row, field) for row in rows.values()]
    return float(median(v for v in values if v > 0))


def _figures(spec: str | Mapping, find, overrides: dict, where: str, *more: str):
    """(catalogue row, changed fields) of an id or a `{like: id, …}`; fields of `more` as they
    are."""
    if isinstance(spec, str):
        return find(spec, where), {}
    known = ("like", "name", *more, *overrides)
    for key in spec:
        if key not in known:
            near = closest(key, known)
            raise DesignError(
                f"{where}.{key}", problem="is not a field", allowed=known, nearest=near
            )
    base = find(spec["like"], f"{where}.like")
    changes = {"name": plain(spec.get("name", f"{base.name}, changed"))}
    changes |= {key: bool(spec[key]) for key in more if key in spec}
    for key in overrides.keys() & spec.keys():
        field, factor = overrides[key]
        own = getattr(base, field)
        changes[field] = (
            _replaced(
                f"{where}.{key}",
                spec[key],
                (own if own > 0 else _median(type(base), field)) / factor,
                key == "scale_up_domain",
            )
            * factor
        )
    for by, field in CARRIED.items():
        ratio = changes.get(by, nan) / getattr(base, by, nan)
        if ratio > 0:
            changes.setdefault(field, ratio * getattr(base, field))
    return base, changes


def resolve_accelerator(what: str | Mapping) -> Accelerator:
    """An Accelerator from a catalogue id, an alias, or `{like: id, hbm_gb: 96, …}`.

    Overrides are those of ACCELERATOR_OVERRIDES (decimal GB, GB/s one way, dense TFLOP/s). A
    changed `hbm_gb` moves the usable capacity by the same ratio unless `hbm_usable_gb` is given
    too, a changed link that of a pair: faster links make no mesh of what is none. Raises
    DesignError for an unknown id, name or value.
    """
    base, changes = _figures(
        what, catalogue.accelerator, ACCELERATOR_OVERRIDES, "cluster.accelerator"
    )
    if "scale_up_domain" in changes:
        changes["scale_up_domain_max"] = max(base.scale_up_domain_max, changes["scale_up_domain"])
    return replace(base, **changes)


def resolve_fabric(what: str | Mapping) -> Fabric:
    """A Fabric from a catalogue id, an alias, or `{like: id, latency_us: 3, …}` (names:
    FABRIC_OVERRIDES and in_network_reduction); a changed port moves the rate of a device by the
    same ratio."""
    where = "cluster.scale_out"
    base, changes = _figures(
        what, catalogue.fabric, FABRIC_OVERRIDES, where, "in_network_reduction"
    )
    if changes.get("efficiency", 0) > 1:
        raise DesignError(
            f"{where}.efficiency", what["efficiency"], "a share of the rate, above 0 and at most 1"
        )
    return replace(base, **changes)
