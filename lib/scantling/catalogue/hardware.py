"""What a job runs on: accelerator, fabric, node, and rates that stand in where none is known."""

from math import isnan, nan as NAN

from ..base.errors import DesignError
from ..base.records import Lines, record
from .rows import Sourced

USUAL_ACCELERATOR = "h100-sxm"  # where only a model is named
# whose peak trainers take for a chip that they do not know (torchtitan 0.3.0, tools/utils.py)
UNKNOWN_TO_TRAINERS = "a100-80-sxm"
USUAL_FABRIC = "rocev2-400"  # between nodes of a chip that no node of the catalogue holds
HOST_LINK = 31.5e9  # of a chip whose host link nobody has published: PCIe 4, sixteen lanes
# round trip between sites about 1,000 km apart (NVIDIA, NeMo over two data centres, 2025-03)
SITE_RTT_S = 0.021
SITE_BYTES_PER_S = 12.5e9  # between one site and the others, one direction: a 100 Gbit/s wave


@record
class Accelerator(Sourced):
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
    int8_flops: float
    fp4_flops: float
    fp32_flops: float
    tf32_flops: float
    tdp_w: float
    link: str
    link_bytes_per_s: float
    scale_up_domain: int
    host_link_bytes_per_s: float
    p2p_bytes_per_s: float = NAN
    scale_up: str = ""
    scale_up_domain_max: int = 1
    l2_bytes: float = NAN
    sms: float = NAN  # units among which the tiles of a matrix product are dealt out
    node: str = ""
    status: str = "shipping"
    aliases: Lines = ()
    die: str = ""  # matrix units that several products share
    slice_label: str = ""  # cloud.google.com/gke-tpu-accelerator, where it is sold in slices
    slice_axes: int = 0  # of the torus that a slice is cut from

    @property
    def mesh(self) -> bool:
        """True where no switch joins the domain: the links to its other members add up to the rate
        (xGMI, Gaudi, Ascend)."""
        return (
            abs(self.p2p_bytes_per_s * (self.scale_up_domain - 1) / self.link_bytes_per_s - 1)
            < 0.01
            and self.scale_up_domain > 2
        )

    @property
    def half_flops(self) -> float:
        """Dense peak of what stays in 16 bit [FLOP/s], in 32 bit where there is no such unit."""
        peaks = (self.bf16_flops, self.fp16_flops, self.fp32_flops)
        return next(peak for peak in peaks if not isnan(peak))

    @property
    def unpublished(self) -> Lines:
        """Figures that no answer can do without and that nobody has published, as a design names
        them."""
        figures = {
            "bf16_tflops": (self.bf16_flops, self.fp16_flops, self.fp32_flops),
            "link_gbytes_per_s": (self.link_bytes_per_s,),
        }
        return tuple(name for name, values in figures.items() if all(map(isnan, values)))

    def refusal(self, field: str = "cluster.accelerator") -> DesignError | None:
        """Why no design of it can be worked out as the row stands; None where it can."""
        if not self.unpublished:
            return None
        own = ", ".join(f"{name}: …" for name in self.unpublished)
        missing = " and no ".join(self.unpublished)
        return DesignError(
            field,
            self.id,
            f"figures of your own for it, {{like: {self.id}, {own}}}",
            problem=f"is {self.status}, and no {missing} of it is published",
        )

    def peak_flops(self, precision: str) -> float:
        """Dense peak [FLOP/s] that a job of this precision is counted against.

        The fp8 recipes (fp8, fp8-row, fp8-current, fp8-block, mxfp8) share the fp8 peak, nvfp4 and
        mxfp4 the fp4 peak; int8 counts operations, of products that are quantised and scaled back
        (AQT).
        Raises DesignError where the name is unknown or the device has no such unit; the message
        lists what it has.
        """
        peaks = self._peaks()
        peak = peaks.get(precision, NAN)
        if isnan(peak):
            why = f"is not a unit that {self.name} has" if precision in peaks else "is unknown"
            raise DesignError("job.precision", precision, self.precisions(), problem=why)
        return peak

    def _peaks(self) -> dict[str, float]:
        """Precision of the job -> the peak that it is counted against [FLOP/s]."""
        return {
            "bf16": self.bf16_flops,
            "fp16": self.fp16_flops,
            "fp32": self.fp32_flops,
            "tf32": self.tf32_flops,
            "fp8": self.fp8_flops,
            "fp8-row": self.fp8_flops,
            "fp8-current": self.fp8_flops,
            "fp8-block": self.fp8_flops,
            "int8": self.int8_flops,
            "mxfp8": self.fp8_flops,
            "nvfp4": self.fp4_flops,
            "mxfp4": self.fp4_flops,
            "fp4": self.fp4_flops,
        }

    def precisions(self) -> Lines:
        """Names that `peak_flops` takes for this device."""
        return tuple(name for name, peak in self._peaks().items() if not isnan(peak))


@record
class Fabric(Sourced):
    """A network that joins devices: rate per device one way, time of one step, and the share of the
    rate that large messages reach.

    `efficiency` is the bus bandwidth of a ring all-reduce (nccl-tests: algbw 2(n-1)/n) over the
    rate of the device, or over that of the node's NICs between nodes. `latency_s` is one step of a
    collective, software included, not the wire.
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
    year: int = 0
    port_bytes_per_s: float = NAN
    p2p_bytes_per_s: float = NAN
    domain_devices: int = 0  # 0: not bounded by the product
    nics_per_device: float = NAN  # set where the product fixes it
    nics_per_node: float = NAN
    in_network_gain: float = NAN
    aliases: Lines = ()
    technology: str = ""  # nvlink, infiniband, ethernet, efa …
    generation: int = 0  # of NVLink
    transport: str = ""  # between hosts: verbs (RDMA), srd, tcp, tcpx, tcpxo, cxi, psm2
    provider: str = ""  # cloud that alone has it
    topology_open: bool = True  # False: a tenant cannot choose how its switches are joined
    judged_on: str = ""  # fabric of the published curves by which estimates of it are judged
    judged_on_racks: str = ""  # the same where it joins racks of several nodes, if another
    fitted_curves: bool = False  # collectives over it were measured and fitted
    usual_topology: str = ""  # word of words.TOPOLOGIES; "": a tree
    pod_resource: str = ""  # of its Kubernetes device plugin

    @property
    def ethernet(self) -> bool:
        """Whether its links speak Ethernet, RoCE and cloud variants included."""
        return self.technology == "ethernet"


@record
class Node(Sourced):
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
    cpu: str = ""


def known_link(rate: float) -> float:
    """A host link's rate, HOST_LINK where the catalogue has none. [bytes/s]"""
    return HOST_LINK if isnan(rate) else rate
