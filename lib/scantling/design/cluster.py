"""The cluster that a design file describes."""

import math

import numpy as np

from ..base.columns import Column
from ..base.records import record
from ..catalogue.hardware import SITE_RTT_S, Accelerator
from ..catalogue.words import OUTERS

LARGEST_RACK = 144  # devices; a larger scale-up domain (a TPU pod) is rented in parts


def in_smallest_site(replicas: Column, smallest_site: Column, devices: Column) -> Column:
    """Of so many replicas on `devices`, those on the devices of the smallest site, at least one."""
    return np.maximum(replicas * smallest_site // devices, 1)


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
class Delivery:
    """One part of the machine."""

    day: float  # on which it is handed over
    devices: int


@record
class NetworkMeasured:
    """Bus bandwidth of collectives measured on the devices of a cluster, as nccl-tests print it
    [bytes/s]; nan: not measured."""

    all_reduce: Column = math.nan  # over all devices
    all_reduce_in_node: Column = math.nan
    all_to_all: Column = math.nan  # over all devices


@record
class Cluster:
    """The machine of one design; bandwidths per device (per site between sites), one direction
    [bytes/s]; memory, disks and power per node."""

    accelerator: Accelerator
    devices: int
    devices_per_node: int
    scale_up_domain: int  # devices
    scale_up_bytes_per_s: float
    scale_up_latency_s: float
    scale_up: str  # fabric
    scale_out: str  # fabric
    scale_out_bytes_per_s: float
    scale_out_latency_s: float
    scale_out_efficiency: float  # share of the rate that large messages reach
    in_network_reduction: bool
    nics_per_node: int
    oversubscription: float  # edge to core bandwidth, over all tiers
    pod_devices: int  # below one spine at full bandwidth
    sites: int
    site_bytes_per_s: float
    host_memory_bytes: float
    nvme_bytes: float
    storage: str  # shared file system
    node_power_w: float  # at the wall; nan where nobody has published one
    scale_up_efficiency: float = 0.75
    node: str = ""
    site_rtt_s: float = SITE_RTT_S
    topology: str = ""  # empty: by the rule of scantling_site.fabric.build
    rails: int = 0  # 0: one a card of a node
    leaf_devices: int = 0  # below one leaf of each rail; 0: as many as its ports allow
    ratios: tuple[float, ...] = ()  # card to leaf, leaf to spine, spine to core, where listed
    delivery: tuple[Delivery, ...] = ()  # the parts, in the order of their days
    uneven: tuple[int, ...] = ()  # devices of each site, where the design lists them
    sync: Sync = Sync()
    measured: NetworkMeasured = NetworkMeasured()
    storage_client_bytes_per_s: float = math.inf  # of one node, where the design states it

    @property
    def by_site(self) -> tuple[int, ...]:
        """Devices of each site."""
        return self.uneven or (-(-self.devices // self.sites),) * self.sites

    @property
    def shares(self) -> int:
        """What replicas and the batch are a multiple of: sites of one size take equal shares."""
        return self.sites if len(set(self.by_site)) == 1 else 1

    def replicas(self, ranks: Column) -> Column:
        """Replicas of so many ranks that stand inside one site each."""
        if self.uneven:
            return sum(devices // ranks for devices in self.uneven)
        return self.sites * (self.devices // self.sites // ranks)

    def in_smallest_site(self, replicas: Column) -> Column:
        """Of so many replicas, those that stand in the smallest site, at least one: what is
        sharded is shared out among them."""
        return in_smallest_site(replicas, min(self.by_site), self.devices)

    @property
    def nodes(self) -> int:
        """Hosts that the devices need; the last may be partly filled."""
        return -(-self.devices // self.devices_per_node)

    @property
    def unit(self) -> int:
        """Devices that are bought or rented together: a rack where one scale-up link joins its
        nodes and the cluster fills one, else a node."""
        largest = min(LARGEST_RACK, self.devices)
        if self.devices_per_node < self.scale_up_domain <= largest:
            return self.scale_up_domain
        return max(self.devices_per_node, 1)

    @property
    def at_work(self) -> int:
        """Devices of a unit that work: all, or the 64 of a rack's 72 where the design counts in
        64s, and the trays beside them stand by."""
        power = 1 << (self.unit.bit_length() - 1)
        return power if self.devices % self.unit and not self.devices % power else self.unit

    @property
    def handed_over_in_days(self) -> float:
        """Days from the first part of the machine to the last; 0 where all comes at once."""
        days = [part.day for part in self.delivery]
        return max(days, default=0.0) - min(days, default=0.0)

    def whole(self, devices: float) -> int:
        """About so many devices, in whole units of them, at least one."""
        return max(round(devices / self.unit), 1) * self.unit

    def counted(self, devices: float) -> int:
        """About so many devices, in whole units as the design counts them, at least one."""
        return max(round(devices / self.at_work), 1) * self.at_work
