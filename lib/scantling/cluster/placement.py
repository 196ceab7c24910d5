"""Which device, node, rack and pod every rank of tp, cp, ep, dp and pp stands on.

Order of the kit, innermost first: tp, cp, dp, pp (Megatron's tp-cp-ep-dp-pp): rank = tp + TP (cp +
CP (dp + DP pp)). Experts fold into
the ranks of one stage: etp innermost, then ep, then the experts' own data parallelism. Llama 3 puts
pp inside dp instead
(arXiv 2407.21783, section 3.3.2); `orders` compares what both send over each tier.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np

from ..base.records import Record
from ..physics.communication import communication

AXES = ("tp", "cp", "dp", "pp")
EXPERT_AXES = ("etp", "ep", "edp", "pp")
KIT, LLAMA3 = ("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp")
TIERS = ("device", "scale-up domain", "node", "leaf unit", "pod", "site", "sites")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Layout:
    """Sizes of the axes and of what they stand on."""

    sizes: dict
    order: tuple[str, ...]
    per_node: int
    per_domain: int
    per_rack: int  # devices
    per_unit: int
    per_pod: int
    per_site: int

    @property
    def devices(self) -> int:
        return int(np.prod([self.sizes[a] for a in self.order]))

    def strides(self) -> dict[str, int]:
        """Ranks between neighbours of each axis."""
        out, step = {}, 1
        for axis in self.order:
            out[axis], step = step, step * self.sizes[axis]
        return out

    def coordinates(self, rank) -> dict:
        """Position of a rank on every axis. [ranks or an array of them]"""
        return {
            axis: np.asarray(rank) // step % self.sizes[axis]
            for axis, step in self.strides().items()
        }

    def rank(self, **at) -> np.ndarray:
        """Rank at a position; axes left out are 0. The inverse of `coordinates`."""
        return sum(np.asarray(at.get(axis, 0)) * step for axis, step in self.strides().items())

    def groups(self, axis: str) -> np.ndarray:
        """All groups of an axis, one a row. [shape (devices / size, size)]"""
        kept = self.__dict__.setdefault("_groups", {})
        if axis not in kept:
            sizes = [self.sizes[a] for a in reversed(self.order)]
            grid = np.arange(self.devices, dtype=np.int32).reshape(sizes)
            kept[axis] = np.ascontiguousarray(
                np.moveaxis(grid, len(sizes) - 1 - self.order.index(axis), -1).reshape(
                    -1, self.sizes[axis]
                )
            )
        return kept[axis]

    def crossings(self, axis: str, per: int) -> np.ndarray:
        """Of every group's ring of neighbours, how many pairs do not share a block of `per`
        devices. [shape (groups,)]"""
        block = self.groups(axis) // per
        pairs = np.count_nonzero(block[:, 1:] != block[:, :-1], axis=1)
        return pairs + (block[:, 0] != block[:, -1]) if self.sizes[axis] > 2 else pairs


@dataclass(frozen=True)
class Placement(Record):
    """Where the ranks stand; `nodes` holds one column per fact, a row per node, for charts."""

    order: tuple[str, ...]
    sizes: dict
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
    nodes: dict  # node, rack, unit, pod, first and last coordinate of its ranks by axis
    first_replica: dict  # ranks of dp 0: rank, node, rack, tp, cp, pp
    orders: tuple[
        dict, ...
    ]  # the kit's and Llama 3's: bytes a step over the edges of domains, units and pods, by axis
    notes: tuple[str, ...]
    layout: Layout = field(repr=False)
    experts: Layout | None = field(default=None, repr=False)

    def as_dict(self) -> dict:
        out = super().as_dict()
        del out["layout"], out["experts"]
        return out


def layouts(
    plan: dict,
    *,
    per_node: int,
    per_domain: int,
    per_rack: int,
    per_unit: int,
    per_pod: int,
    per_site: int,
    order=KIT,
) -> tuple[Layout, Layout | None]:
    """(layout of the dense axes, of the experts or None) of a plan on blocks of those sizes
    [devices]."""
    tp, cp, dp, pp = (int(plan[a]) for a in ("tp", "cp", "dp", "pp"))
    blocks = dict(
        per_node=per_node,
        per_domain=per_domain,
        per_rack=per_rack,
        per_unit=per_unit,
        per_pod=per_pod,
        per_site=per_site,
    )
    dense = Layout(dict(tp=tp, cp=cp, dp=dp, pp=pp), order, **blocks)
    ep, etp = int(plan.get("ep") or 1), int(plan.get("etp") or 1)
    if ep * etp == 1 or (tp * cp * dp) % (ep * etp):
        return dense, None
    return dense, Layout(
        dict(etp=etp, ep=ep, edp=tp * cp * dp // (ep * etp), pp=pp), EXPERT_AXES, **blocks
    )


def describe(layout: Layout, axis: str) -> Group:
    """The groups of one axis and what the widest of them spans."""
    members = layout.groups(axis)
    few = _few(members)  # ranks of a group ascend, so each change of block is a new one
    span = lambda per: 1 + int(np.count_nonzero(np.diff(few // per, axis=1), axis=1).max())  # noqa: E731
    domains, nodes, racks, units, pods, sites = (
        span(p)
        for p in (
            layout.per_domain,
            layout.per_node,
            layout.per_rack,
            layout.per_unit,
            layout.per_pod,
            layout.per_site,
        )
    )
    size = layout.sizes[axis]
    if size == 1:
        widest = "device"
    elif domains == 1:
        widest = "scale-up domain"
    elif nodes == 1:
        widest = "node"
    elif units == 1:
        widest = "leaf unit"
    elif pods == 1:
        widest = "pod"
    else:
        widest = "site" if sites == 1 else "sites"
    inside = int(
        np.bincount(members[0] // layout.per_domain - members[0][0] // layout.per_domain).max()
    )
    return Group(
        axis,
        size,
        len(members),
        layout.strides()[axis],
        inside,
        domains,
        nodes,
        racks,
        units,
        pods,
        widest,
        tuple(int(r) for r in members[0][:64]),
    )


def _few(rows: np.ndarray, most: int = 256) -> np.ndarray:
    """At most so many rows, evenly chosen: groups of an axis repeat with the blocks they stand
    on."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def placement(assessment) -> Placement:
    """Placement of the main phase's plan on its cluster, with the leaf units and pods of the
    network blueprint."""
    assessment = getattr(assessment, "a", assessment)
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    unit, pod, rack = blocks(cluster)
    site = max(cluster.devices // max(cluster.sites, 1), 1)
    plan = chosen.plan
    shape = dict(
        per_node=cluster.devices_per_node,
        per_domain=cluster.scale_up_domain,
        per_rack=rack,
        per_unit=unit,
        per_pod=pod,
        per_site=site,
    )
    dense, experts = layouts(plan, **shape)
    n = dense.devices
    found = [describe(dense, a) for a in AXES]
    if experts is not None:
        found[2:2] = [describe(experts, a) for a in ("etp", "ep", "edp") if experts.sizes[a] > 1]
    per = cluster.devices_per_node
    first = np.arange(0, n, per)
    low, high = dense.coordinates(first), dense.coordinates(np.minimum(first + per, n) - 1)
    nodes = {
        "node": first // per,
        "rack": first // rack,
        "unit": first // unit,
        "pod": first // pod,
    }
    for axis in AXES:
        nodes[f"{axis}_first"], nodes[f"{axis}_last"] = (
            np.minimum(low[axis], high[axis]),
            np.maximum(low[axis], high[axis]),
        )
    one = np.sort(
        np.concatenate(
            [
                dense.rank(tp=np.arange(plan["tp"]), cp=c, pp=s)
                for s in range(plan["pp"])
                for c in range(plan["cp"])
            ]
        )
    )
    at = dense.coordinates(one)
    replica = {
        "rank": one,
        "node": one // per,
        "rack": one // rack,
        "tp": at["tp"],
        "cp": at["cp"],
        "pp": at["pp"],
    }
    orders = _orders(assessment, plan, shape)
    return Placement(
        KIT,
        {a: int(plan[a]) for a in ("tp", "cp", "dp", "pp", "ep", "etp")},
        n,
        cluster.devices - n,
        per,
        cluster.scale_up_domain,
        rack,
        unit,
        pod,
        ceil(n / per),
        ceil(n / rack),
        ceil(n / unit),
        ceil(n / pod),
        tuple(found),
        nodes,
        replica,
        orders,
        _notes(found, orders, dense, cluster, n),
        dense,
        experts,
    )


def blocks(cluster) -> tuple[int, int, int]:
    """(devices one switch apart, devices under full bisection, devices of a rack) of the design's
    network."""
    from .. import catalogue
    from .network.build import built

    fabric = built(cluster)[0]
    per_card = cluster.devices / max(fabric.endpoints, 1)
    unit = max(cluster.devices_per_node, round(fabric.unit_endpoints * per_card))
    pod = min(cluster.pod_devices or cluster.devices, cluster.devices)
    if fabric.kind == "torus":
        unit = pod = min(cluster.scale_up_domain, cluster.devices)
    node = catalogue.nodes().get(cluster.node) or catalogue.node_for(cluster.accelerator.id)
    many = (
        node.nodes_per_rack
        if node is not None and node.nodes_per_rack == node.nodes_per_rack
        else 4
    )
    return unit, pod, max(int(many), 1) * cluster.devices_per_node


def leaf_nodes(cluster) -> int:
    """Nodes under one leaf switch (of each rail) of the design's network."""
    return max(1, blocks(cluster)[0] // cluster.devices_per_node)


def expert_groups(layout: Layout, ep: int, etp: int) -> np.ndarray:
    """Expert-parallel groups of stage 0 under any order: experts fold into (tp, cp, dp) of the
    stage, etp innermost. [shape (groups, ep)]"""
    sizes = layout.sizes
    stage = np.arange(sizes["tp"] * sizes["cp"] * sizes["dp"])
    ranks = layout.rank(
        tp=stage % sizes["tp"],
        cp=stage // sizes["tp"] % sizes["cp"],
        dp=stage // (sizes["tp"] * sizes["cp"]),
    )
    return np.moveaxis(ranks.reshape(-1, ep, etp), 1, 2).reshape(-1, ep)


def bytes_over(
    layout: Layout, per: int, sent: dict, ep: int = 1, etp: int = 1, vpp: int = 1
) -> dict:
    """Bytes of one step that leave blocks of `per` devices, one direction, all devices together, by
    axis.

    sent: bytes of a device by axis; `ep` those that leave its scale-up domain. Rings (tp, cp, dp):
    every pair of neighbours in different
    blocks passes a device's bytes. Pipelines: half of them forward, half back; from last to first
    all but one of vpp times. Experts: evenly to all
    ranks outside the sender's domain.
    """
    out = {}
    for axis in AXES:
        if layout.sizes[axis] > 1 and sent.get(axis):
            if axis == "pp":
                block = layout.groups("pp") // per
                pairs = int(np.count_nonzero(block[:, 1:] != block[:, :-1])) + int(
                    np.count_nonzero(block[:, 0] != block[:, -1])
                ) * (1 - 1 / vpp)
            else:
                pairs = int(layout.crossings(axis, per).sum())
            out[axis] = pairs * sent[axis] / (2.0 if axis == "pp" else 1.0)
    if ep > 1 and sent.get("ep"):
        groups = _few(expert_groups(layout, ep, etp))
        outside = lambda size: (groups[:, :, None] // size != groups[:, None, :] // size).sum()  # noqa: E731
        beyond = outside(layout.per_domain)
        out["ep"] = layout.devices * sent["ep"] * float(outside(per) / beyond) if beyond else 0.0
    return out


def _orders(assessment, plan, shape) -> tuple[dict, ...]:
    """Both orders: bytes a step over the edges of scale-up domains, leaf units and pods, by axis
    and in all (`bytes_over`)."""
    from .network.traffic import expert_share_out

    sent = {
        row["axis"]: row["bytes"]
        for row in communication(assessment.chosen.case, assessment.chosen.step)
    }
    ep, etp = int(plan["ep"]), int(plan["etp"])
    if "ep" in sent:
        sent["ep"] *= expert_share_out(assessment.chosen)
    rows = []
    for order in (KIT, LLAMA3):
        layout, _ = layouts(plan, **shape, order=order)
        row = {"order": "-".join(order)}
        for name, per in (
            ("domain", layout.per_domain),
            ("unit", layout.per_unit),
            ("pod", layout.per_pod),
        ):
            by = (
                bytes_over(layout, per, sent, ep, etp, int(plan["vpp"]))
                if per < layout.devices
                else {}
            )
            row[f"over_{name}"] = by
            row[f"bytes_over_{name}"] = sum(by.values())
        rows.append(row)
    return tuple(rows)


def _notes(groups, orders, layout, cluster, n) -> tuple[str, ...]:
    out = []
    for g in groups:
        if g.axis == "tp" and g.size > 1 and g.domains > 1:
            out.append(f"tp {g.size} spans {g.domains} scale-up domains of {layout.per_domain}")
        if g.axis in ("ep", "dp") and g.size > 1 and g.pods > 1:
            out.append(f"{g.axis} {g.size} spans {g.pods} pods")
    kit, other = orders
    if kit["bytes_over_pod"] > 0 or other["bytes_over_pod"] > 0:
        better = min(orders, key=lambda o: o["bytes_over_pod"])
        out.append(
            f"order {better['order']} sends least over pods: "
            f"{better['bytes_over_pod'] / 1e9:,.0f} GB a step against "
            f"{max(o['bytes_over_pod'] for o in orders) / 1e9:,.0f}"
        )
    if n % cluster.devices_per_node:
        out.append("the last node is partly used")
    if cluster.devices > n:
        out.append(f"{cluster.devices - n:,} devices stand by or are free")
    return tuple(out)
