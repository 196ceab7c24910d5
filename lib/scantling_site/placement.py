"""Which device, node, rack and pod every rank of tp, cp, ep, dp and pp stands on.

Order of the kit, innermost first: tp, cp, dp, pp (Megatron's tp-cp-ep-dp-pp): rank = tp + TP (cp +
CP (dp + DP pp)). Experts fold into the ranks of one stage: etp innermost, then ep, then the
experts' own data parallelism. Llama 3 puts pp inside dp instead (arXiv 2407.21783, section 3.3.2),
as the kit does on several sites, each of which holds whole replicas; `orders` compares what both
send over each tier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import ceil, prod
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scantling.base import show
from scantling.base.columns import Array
from scantling.base.records import Lines, Record, record
from scantling.design.cluster import Cluster
from scantling.endure.failures import rack_devices
from scantling.physics.cases import Cases
from scantling.physics.traffic import expert_copies

from .fabric.build import built
from .fabric.topology import Topology
from .job_site import Site

AXES = KIT = ("tp", "cp", "dp", "pp")
LLAMA3 = ("tp", "cp", "pp", "dp")
EXPERT_AXES = ("etp", "ep", "edp")
TIERS = ("device", "scale-up domain", "node", "leaf unit", "pod", "site", "sites")
Block = Literal["domain", "node", "rack", "unit", "pod", "site"]  # of devices, see Layout
BLOCKS: tuple[Block, ...] = ("domain", "node", "rack", "unit", "pod", "site")
# the tier that a group needs which fits into a block
TIER_OF: dict[Block, str] = {
    "domain": "scale-up domain",
    "node": "node",
    "unit": "leaf unit",
    "pod": "pod",
    "site": "site",
}


@record
class Group(Record):
    """The groups of one axis: how many, of how many ranks, how far apart these stand and what they
    span (the worst group)."""

    axis: str
    size: int
    groups: int
    stride: int  # ranks between neighbours
    per_domain: int  # members that share a scale-up domain
    domains: int
    nodes: int
    racks: int
    units: int  # sets of nodes one switch apart
    pods: int
    widest: str  # of TIERS
    first: tuple[int, ...]  # ranks of the first group, at most 64


@record
class Layout:
    """Sizes of the axes and of the blocks of devices that they stand on."""

    sizes: Mapping[str, int]
    order: Lines = KIT
    per_node: int
    per_domain: int
    per_rack: int
    per_unit: int
    per_pod: int
    per_site: int

    @property
    def devices(self) -> int:
        return prod(self.sizes[a] for a in self.order)

    def per(self, block: Block) -> int:
        """Devices of a block."""
        devices = {
            "domain": self.per_domain,
            "node": self.per_node,
            "rack": self.per_rack,
            "unit": self.per_unit,
            "pod": self.per_pod,
            "site": self.per_site,
        }
        return devices[block]

    def strides(self) -> dict[str, int]:
        """Ranks between neighbours of each axis."""
        out = {}
        step = 1
        for axis in self.order:
            out[axis] = step
            step = step * self.sizes[axis]
        return out

    def coordinates(self, rank: ArrayLike) -> dict[str, Array]:
        """Position of a rank on every axis. [ranks or an array of them]"""
        return {
            axis: np.asarray(rank) // step % self.sizes[axis]
            for axis, step in self.strides().items()
        }

    def rank(self, **position: ArrayLike) -> Array:
        """Rank at a position; axes left out are 0. The inverse of `coordinates`."""
        strides = self.strides().items()
        return sum(
            (np.asarray(position.get(axis, 0)) * n for axis, n in strides), np.zeros((), int)
        )

    def groups(self, axis: str) -> Array:
        """All groups of an axis, one a row. [shape (devices / size, size)]"""
        sizes = [self.sizes[a] for a in reversed(self.order)]
        grid = np.arange(self.devices, dtype=np.int32).reshape(sizes)
        last = np.moveaxis(grid, len(sizes) - 1 - self.order.index(axis), -1)
        return last.reshape(-1, self.sizes[axis])

    def crossings(self, axis: str, per: int) -> Array:
        """Of every group's ring of neighbours, how many pairs do not share a block of `per`
        devices. [shape (groups,)]"""
        pairs, ends = self.edges(axis, per)
        return pairs + ends if self.sizes[axis] > 2 else pairs

    def edges(self, axis: str, per: int) -> tuple[Array, Array]:
        """(pairs of neighbours of every group in different blocks, whether first and last are)."""
        block = self.groups(axis) // per
        pairs: Array = np.count_nonzero(block[:, 1:] != block[:, :-1], axis=1)
        return pairs, block[:, 0] != block[:, -1]


class Order(TypedDict):
    """One order of the axes: bytes a step that all devices send over the edges of scale-up domains,
    leaf units and pods, by axis and in all."""

    order: str
    over_domain: dict[str, float]
    bytes_over_domain: float
    over_unit: dict[str, float]
    bytes_over_unit: float
    over_pod: dict[str, float]
    bytes_over_pod: float


@record
class Placement(Record):
    """Where the ranks stand; `nodes` holds one column per fact, a row per node, for charts."""

    order: Lines
    sizes: dict[str, int]
    devices: int
    idle_devices: int
    per_node: int
    per_domain: int
    per_rack: int
    per_unit: int
    per_pod: int
    node_count: int
    rack_count: int
    unit_count: int
    pod_count: int
    groups: tuple[Group, ...]
    nodes: dict[str, Array]  # node, rack, unit, pod, first and last coordinate of its ranks by axis
    first_replica: dict[str, Array]  # ranks of dp 0: rank, node, rack, tp, cp, pp
    # the kit's and Llama 3's: bytes a step over the edges of domains, units and pods, by axis
    orders: tuple[Order, ...]
    notes: Lines
    layout: Layout = field(repr=False)


def describe(layout: Layout, axis: str) -> Group:
    """The groups of one axis and what the widest of them spans."""
    return _spanned(layout, axis, layout.groups(axis))


def _spanned(layout: Layout, axis: str, members: Array, times: int = 1) -> Group:
    """What the widest of an axis's groups spans, of which there are so many times those given, one
    a row."""
    size = members.shape[1]
    few = _few(members)
    spans = {
        block: max(len(set(row)) for row in (few // layout.per(block)).tolist()) for block in BLOCKS
    }
    widest = next((tier for block, tier in TIER_OF.items() if spans[block] == 1), "sites")
    first = members[0] // layout.per_domain
    return Group(
        axis=axis,
        size=size,
        groups=len(members) * times,
        stride=int(members[0][1] - members[0][0]) if size > 1 else layout.strides().get(axis, 1),
        per_domain=int(np.bincount(first - first[0]).max()),
        domains=spans["domain"],
        nodes=spans["node"],
        racks=spans["rack"],
        units=spans["unit"],
        pods=spans["pod"],
        widest="device" if size == 1 else widest,
        first=tuple(members[0][:64].tolist()),
    )


def _few(rows: Array) -> Array:
    """At most 256 rows, evenly chosen: groups of an axis repeat with the blocks they stand
    on."""
    return rows if len(rows) <= 256 else rows[np.linspace(0, len(rows) - 1, 256).astype(int)]


def placement(s: Site) -> Placement:
    """Placement of the main phase's plan on its cluster, with the leaf units and pods of the
    network blueprint; a rack whose nodes are joined counts with those that work."""
    cluster = s.cluster
    unit, pod, rack = blocks(cluster)
    sizes = {axis: s.plan[axis] for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
    dense = Layout(
        sizes={axis: sizes[axis] for axis in AXES},
        order=LLAMA3 if s.sites > 1 else KIT,
        per_node=s.per_node,
        per_domain=s.domain_devices,
        per_rack=rack * s.domain_devices // cluster.scale_up_domain if s.racks_join else rack,
        per_unit=unit,
        per_pod=pod,
        per_site=s.used // s.sites,
    )
    n = dense.devices
    groups = [describe(dense, axis) for axis in AXES]
    if s.sites > 1 and float(s.case.job.local_steps) != 1 and not sizes["dp"] % s.sites:
        # a step sums inside a site; what sites exchange after local steps is no part of it
        inside = dense.groups("dp").reshape(-1, sizes["dp"] // s.sites)
        groups[AXES.index("dp")] = _spanned(dense, "dp", inside)
    groups[2:2] = _expert_axes(dense, sizes["ep"], sizes["etp"])
    orders = _orders(s, dense)
    return Placement(
        order=dense.order,
        sizes=sizes,
        devices=n,
        idle_devices=cluster.devices - n,
        per_node=dense.per_node,
        per_domain=dense.per_domain,
        per_rack=dense.per_rack,
        per_unit=dense.per_unit,
        per_pod=dense.per_pod,
        node_count=ceil(n / dense.per_node),
        rack_count=ceil(n / dense.per_rack),
        unit_count=ceil(n / dense.per_unit),
        pod_count=ceil(n / dense.per_pod),
        groups=tuple(groups),
        nodes=_nodes(dense),
        first_replica=_first_replica(dense),
        orders=orders,
        notes=_notes(groups, orders, dense, cluster),
        layout=dense,
    )


def _expert_axes(layout: Layout, ep: int, etp: int) -> list[Group]:
    """The axes of the experts that a plan has: of their tensors, of them, of their own data."""
    if ep * etp == 1:
        return []
    of = {axis: expert_groups(layout, ep, etp, axis) for axis in EXPERT_AXES}
    stages = layout.sizes["pp"]
    return [_spanned(layout, a, of[a], stages) for a in EXPERT_AXES if of[a].shape[1] > 1]


def _nodes(layout: Layout) -> dict[str, Array]:
    """Columns of the nodes: where each stands, first and last coordinate of its ranks by axis."""
    first = np.arange(0, layout.devices, layout.per_node)
    low = layout.coordinates(first)
    high = layout.coordinates(np.minimum(first + layout.per_node, layout.devices) - 1)
    nodes: dict[str, Array] = {block: first // layout.per(block) for block in BLOCKS[1:5]}
    for axis in AXES:
        nodes[f"{axis}_first"] = np.minimum(low[axis], high[axis])
        nodes[f"{axis}_last"] = np.maximum(low[axis], high[axis])
    return nodes


def _first_replica(layout: Layout) -> dict[str, Array]:
    """Ranks of the first data-parallel replica, with their nodes, racks and coordinates."""
    every = np.arange(layout.devices)
    ranks = every[layout.coordinates(every)["dp"] == 0]
    coordinates = layout.coordinates(ranks)
    del coordinates["dp"]
    return {
        "rank": ranks,
        "node": ranks // layout.per_node,
        "rack": ranks // layout.per_rack,
        **coordinates,
    }


class Blocks(NamedTuple):
    """Devices of the blocks that the design's network makes."""

    unit: int  # one switch apart
    pod: int  # under full bisection
    rack: int


def blocks(cluster: Cluster) -> Blocks:
    """The blocks of the design's network."""
    return blocks_of(cluster, built(cluster).topology)


def blocks_of(cluster: Cluster, fabric: Topology) -> Blocks:
    """The blocks of a network as it is built."""
    rack = rack_devices(cluster)
    if fabric.kind == "torus":
        slice_ = min(cluster.scale_up_domain, cluster.devices)
        return Blocks(unit=slice_, pod=slice_, rack=rack)
    per_card = cluster.devices / fabric.endpoints
    return Blocks(
        unit=max(cluster.devices_per_node, round(fabric.unit_endpoints * per_card)),
        pod=min(cluster.pod_devices or cluster.devices, cluster.devices),
        rack=rack,
    )


def leaf_nodes(cluster: Cluster) -> int:
    """Nodes under one leaf switch (of each rail) of the design's network."""
    return max(1, blocks(cluster).unit // cluster.devices_per_node)


def expert_groups(layout: Layout, ep: int, etp: int, axis: str = "ep") -> Array:
    """Groups of an axis of the experts in stage 0, under any order of the others: experts fold into
    (tp, cp, dp) of the stage, etp innermost. [one group a row]"""
    tp, cp, dp = (layout.sizes[a] for a in ("tp", "cp", "dp"))
    stage = np.arange(tp * cp * dp)
    ranks = layout.rank(tp=stage % tp, cp=stage // tp % cp, dp=stage // (tp * cp))
    along = np.moveaxis(ranks.reshape(-1, ep, etp), 2 - EXPERT_AXES.index(axis), -1)
    return along.reshape(-1, along.shape[-1])


def bytes_over(
    layout: Layout, per: int, sent: Mapping[str, float], ep: int = 1, etp: int = 1, vpp: int = 1
) -> dict[str, float]:
    """Bytes of one step that leave blocks of `per` devices, one direction, all devices together, by
    axis.

    sent: bytes of a device by axis; `ep` those that leave its scale-up domain. Rings (tp, cp, dp):
    every pair of neighbours in different blocks passes a device's bytes. Pipelines: half of them
    forward, half back; from last to first all but one of vpp times. Experts: evenly to all ranks
    outside the sender's domain.
    """
    out: dict[str, float] = {}
    if per >= layout.devices:
        return out
    for axis in AXES:
        if layout.sizes[axis] < 2 or not sent.get(axis):
            continue
        if axis == "pp":
            pairs, ends = (int(x.sum()) for x in layout.edges(axis, per))
            out[axis] = (pairs + ends * (1 - 1 / vpp)) * sent[axis] / 2
        else:
            out[axis] = int(layout.crossings(axis, per).sum()) * sent[axis]
    if ep > 1 and sent.get("ep"):
        groups = _few(expert_groups(layout, ep, etp))
        leaving, beyond = (
            int((groups[:, :, None] // size != groups[:, None, :] // size).sum())
            for size in (per, layout.per_domain)
        )
        out["ep"] = layout.devices * sent["ep"] * (leaving / beyond) if beyond else 0.0
    return out


def _orders(s: Site, kit: Layout) -> tuple[Order, ...]:
    """Both orders (`bytes_over`)."""
    sent = {row.axis: row.bytes for row in s.traffic}
    ep, etp, vpp = s.plan["ep"], s.plan["etp"], s.plan["vpp"]
    if "ep" in sent:
        sent["ep"] *= expert_share_out(s.case)
    orders = []
    for names in (KIT, LLAMA3):
        layout = replace(kit, order=names)
        domain, unit, pod = (
            bytes_over(layout, per, sent, ep, etp, vpp)
            for per in (layout.per_domain, layout.per_unit, layout.per_pod)
        )
        orders.append(
            Order(
                order="-".join(names),
                over_domain=domain,
                bytes_over_domain=sum(domain.values()),
                over_unit=unit,
                bytes_over_unit=sum(unit.values()),
                over_pod=pod,
                bytes_over_pod=sum(pod.values()),
            )
        )
    return tuple(orders)


def expert_share_out(case: Cases) -> float:
    """Share of the bytes of the experts' exchange that leave the scale-up domain: copies over the
    card over those over link and card (`physics.traffic.expert_copies`)."""
    copies = expert_copies(case)
    return float(copies.card / np.maximum(copies.link + copies.card, 1e-30))


def _notes(
    groups: Sequence[Group], orders: Sequence[Order], layout: Layout, cluster: Cluster
) -> Lines:
    out = []
    idle = cluster.devices - layout.devices
    for g in groups:
        if g.axis == "tp" and g.size > 1 and g.domains > 1:
            out.append(f"tp {g.size} spans {g.domains} scale-up domains of {layout.per_domain}")
        if g.axis in ("ep", "dp") and g.size > 1 and g.pods > 1:
            out.append(f"{g.axis} {g.size} spans {g.pods} pods")
    less, more = sorted(orders, key=lambda o: o["bytes_over_pod"])
    if more["bytes_over_pod"] > 0:
        out.append(
            f"order {less['order']} sends least over pods: "
            f"{show.size(less['bytes_over_pod'])} a step against "
            f"{show.size(more['bytes_over_pod'])}"
        )
    if layout.devices % cluster.devices_per_node:
        out.append("the last node is partly used")
    if idle > 0:
        out.append(f"{idle:,} devices stand by or are free")
    return tuple(out)
