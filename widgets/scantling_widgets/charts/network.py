"""The cluster drawn: one replica on its nodes, whom a device talks to, the site by pods and leaf
units, and traffic by axis and tier."""

from collections import Counter
from collections.abc import Mapping

from ..words import label_or
from .chart import figure, records, text, worded
from .palette import AXES, ink_on

_NODES = 96  # that a picture of this width shows
_LETTERED = 34  # nodes up to which every device has room for its letters
_MEMBERS = 24  # of one group, where several are drawn
_BLOCKS = 2048  # leaf units or nodes of a site
VIEWS = {
    "pp": "one replica, by pipeline stage",
    "tp": "one replica, by TP rank",
    "cp": "one replica, by CP rank",
    "peers": "whom device 0 talks to, by axis",
}
_SCALES = {"pp": "pipeline stage", "tp": "TP rank", "cp": "CP rank"}
_ENDS = [(axis, *end) for axis in ("pp", "dp") for end in (("first", min), ("last", max))]


def _ink(value, most) -> str:
    """Of a number on the scale of stages: white on its dark end."""
    return "#ffffff" if value <= 0.2 * most and most else "#111111"


# ---------------------------------------------------------------- nodes
def _devices(placement: Mapping, by: str) -> list[dict]:
    """The devices of the first replica, by stage or by a rank of theirs; or device 0 and the
    devices that it exchanges data with, by the first axis that joins them."""
    if by != "peers":
        names, first = ("rank", "tp", "cp", "pp"), placement["first_replica"]
        places = (dict(zip(names, at)) for at in zip(*map(first.get, names)))
        return worded("nodes", "replica", [at | {"value": at[by]} for at in places], group="")
    of = {0: "device 0"}
    for group in placement["groups"]:
        for rank in group["first"][:_MEMBERS]:
            of.setdefault(rank, group["axis"].upper())
    peers = [
        {
            "rank": rank,
            "group": name,
            "text": name if rank else "0",
            "says": f"in device 0's {name} group" if rank else "device 0 itself",
        }
        for rank, name in sorted(of.items())
    ]
    return worded("nodes", "peers", peers, value=0)


def _nodes_rows(given, placement: Mapping | None = None, by: str = "pp") -> dict:
    """`placement`: that of the blueprint as data; `by`: a key of VIEWS."""
    if not placement:
        return {"devices": []}
    per, devices = placement["per_node"], _devices(placement, by)
    nodes = sorted({device["rank"] // per for device in devices})[:_NODES]
    lettered = len(nodes) <= _LETTERED
    devices = [device for device in devices if device["rank"] // per in nodes]
    most = max(device["value"] for device in devices)
    placed = [
        device
        | {
            "text": device["text"] if lettered else "",
            "ink": _ink(device["value"], most),
            "node": device["rank"] // per,
            "device": device["rank"] % per,
        }
        for device in devices
    ]
    ground = [{"node": node, "device": device} for node in nodes for device in range(per)]
    return {
        "devices": worded("nodes", "devices", placed),
        "ground": worded(
            "nodes", "ground", ground, others="groups" if by == "peers" else "replicas"
        ),
    }


def _nodes_words(given, placement=None, by="pp") -> str:
    if not placement:
        return "No cluster to draw."
    devices, ground = _nodes_rows(given, placement, by).values()
    return text(
        "nodes",
        "words",
        view=VIEWS[by],
        count=len(devices),
        nodes=len({row["node"] for row in ground}),
        said="; ".join(row["says"] for row in devices[:16]),
    )


def drawn(placement: Mapping, by: str) -> str:
    """What of it a picture shows, where it is not all."""
    nodes = len({device["rank"] // placement["per_node"] for device in _devices(placement, by)})
    groups = placement["groups"] if by == "peers" else ()
    cut = [group["axis"].upper() for group in groups if group["size"] > _MEMBERS]
    parts = [f"the first {_NODES} of {nodes:,} nodes"] if nodes > _NODES else []
    if cut:
        plural = "s" if len(cut) > 1 else ""
        parts.append(f"the first {_MEMBERS} devices of the {' and '.join(cut)} group{plural}")
    return f"Drawn: {' and '.join(parts)}." if parts else ""


nodes = {
    by: figure(
        "peers" if by == "peers" else "nodes",
        _nodes_rows,
        _nodes_words,
        name=f"cluster-{by}",
        title=f"The cluster: {view}",
        given={
            "title": _SCALES.get(by),
            "groups": ["device 0" if axis == "self" else axis.upper() for axis in AXES],
            "hues": list(AXES.values()),
            "inks": [ink_on(hue) for hue in AXES.values()],
        },
    )
    for by, view in VIEWS.items()
}


# ---------------------------------------------------------------- the site
def _site_rows(given, placement: Mapping | None = None) -> dict:
    """Leaf units (where there are many) or nodes with the stages and replicas that each holds."""
    if not placement:
        return {"blocks": []}
    many = placement["unit_count"] >= 4
    kind, block, line_of, line = (
        ("leaf unit", "unit", "pod", "pod") if many else ("node", "node", "leaf unit", "unit")
    )
    groups = {}
    for node in records(placement["nodes"]):
        groups.setdefault(node[block], []).append(node)
    blocks, filled = [], Counter()
    for group in list(groups.values())[:_BLOCKS]:
        row = {name: group[0][name] for name in ("node", "pod", "unit")}
        row |= {f"{a}_{end}": how(n[f"{a}_{end}"] for n in group) for a, end, how in _ENDS}
        row |= {"block": row[block], "line": row[line], "nodes": len(group)}
        blocks.append(row | {"place": filled[row["line"]]})
        filled[row["line"]] += 1
    most = max(row["pp_first"] for row in blocks)
    lettered = max(filled.values()) < 20 and len(filled) <= 12  # room for letters
    rows = []
    for row in blocks:
        stages = span(row["pp_first"], row["pp_last"])
        more = {
            "stages": stages,
            "replicas": span(row["dp_first"], row["dp_last"]),
            "ink": _ink(row["pp_first"], most),
            "size": f", {row['nodes']} nodes" if many else "",
            "text": stages if lettered else "",
        }
        rows.append(row | more)
    return {"blocks": worded("site", "blocks", rows, kind=kind, line_of=line_of)}


def span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


site = figure("site", _site_rows)


# ---------------------------------------------------------------- axis by tier
def _matrix_rows(given, network: Mapping | None = None) -> dict:
    """`network`: that of the blueprint as data."""
    if not network or not network["axes"]:
        return {"cells": []}
    heads = {}
    for tier in network["tiers"]:
        over = tier["oversubscription"]
        heads[tier["tier"]] = text(
            "matrix", "head", over=f", {over:g} : 1" if over > 1 else "", **tier
        )
    names, rows, through = list(heads), [], []
    for axis in network["axes"]:
        name, widest = axis["axis"].upper(), axis["widest"]
        ways = (given.get("plan") or {}).get(axis["axis"]) or axis["ranks"]
        over = f" (of {axis['ranks']:,} ranks)" if ways != axis["ranks"] else ""
        reach = names.index(widest) if widest in names else len(names) - 1
        row = axis | {"name": name, "row": f"{name} {ways:,}{over}", "head": heads[names[reach]]}
        rows.append(row)
        near = 0 if axis["per_domain"] > 1 else 1
        through += [row | {"tier": heads[tier], "inside": tier} for tier in names[near:reach]]
    return {
        "cells": worded("matrix", "cells", rows),
        "through": worded("matrix", "through", through),
        "frame": [{"axis": row["row"], "tier": head} for row in rows for head in heads.values()],
    }


matrix = figure("matrix", _matrix_rows)


def facts(network: Mapping) -> list[str]:
    """The network in lines: what it is made of and what it costs."""
    t = network["topology"]
    switches = (f"{t[name]:,} {name}" for name in ("leaf", "spine", "core") if t.get(name))
    more = {"t": t, "parts": ", ".join(switches), "kind": label_or("cluster.topology", t["kind"])}
    lines = [
        text("matrix", "scale_up", **network["scale_up"]),
        text("matrix", "scale_out", **more, **network),
    ]
    if network.get("usd"):
        lines.append(text("matrix", "price", **network))
    return [*lines, network["rule"], *network.get("notes", [])]
