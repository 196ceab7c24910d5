"""The cluster drawn: one replica on its nodes, whom a device talks to, the site by pods and leaf
units, and traffic by axis and tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .assessment_charts import Figure, figure, text, worded
from .palette import AXES, ink_on
from .words import label_or

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
_SCALES = {
    "pp": "pipeline stage",
    "tp": "TP rank",
    "cp": "CP rank",
}


def _ink(value, most) -> str:
    """Of a number on the scale of stages: white on its dark end."""
    return "#ffffff" if value <= 0.2 * most and most else "#111111"


# ---------------------------------------------------------------- nodes
def _peers(placement: Mapping) -> list[dict]:
    """The devices that device 0 exchanges data with, by the first axis that joins them, and device
    0 itself."""
    of = {0: "self"}
    for group in placement["groups"]:
        for rank in group["first"][:_MEMBERS]:
            of.setdefault(rank, group["axis"])
    out = []
    for rank, axis in sorted(of.items()):
        name = axis.upper()
        told = (name, name, f"in device 0's {name} group")
        if axis == "self":
            told = ("device 0", "0", "device 0 itself")
        out.append(dict(zip(("rank", "value", "group", "text", "says"), (rank, 0, *told))))
    return out


def _replica(placement: Mapping, by: str) -> list[dict]:
    """The devices of the first replica, by stage or by a rank of theirs."""
    names = ("rank", "tp", "cp", "pp")
    places = [dict(zip(names, at)) for at in zip(*map(placement["first_replica"].get, names))]
    return [
        {
            "rank": at["rank"],
            "value": at[by],
            "group": "",
            "text": str(at[by]),
            "says": text(
                "nodes",
                "replica",
                **at,
            ),
        }
        for at in places
    ]


def _devices(placement: Mapping, by: str) -> list[dict]:
    return _peers(placement) if by == "peers" else _replica(placement, by)


def _nodes_rows(
    given,
    placement: Mapping | None = None,
    by: str = "pp",
) -> dict:
    """`placement`: that of the blueprint as data; `by`: a key of VIEWS."""
    if not placement:
        return {"devices": []}
    per, devices = placement["per_node"], _devices(placement, by)
    nodes = sorted({device["rank"] // per for device in devices})[:_NODES]
    last, lettered = nodes[-1], len(nodes) <= _LETTERED
    devices = [device for device in devices if device["rank"] // per <= last]
    most = max(device["value"] for device in devices)
    for device in devices:
        node, place = divmod(device["rank"], per)
        device |= {
            "text": device["text"] if lettered else "",
            "ink": _ink(device["value"], most),
            "says": text(
                "nodes",
                "device",
                node=node,
                device=place,
                **device,
            ),
            "node": str(node),
            "device": place,
        }
        del device["rank"]
    others = "groups" if by == "peers" else "replicas"
    return {
        "devices": devices,
        "ground": [
            {
                "node": str(node),
                "device": place,
                "says": text(
                    "nodes",
                    "ground",
                    node=node,
                    device=place,
                    others=others,
                ),
            }
            for node in nodes
            for place in range(per)
        ],
    }


def _nodes_words(
    given,
    placement=None,
    by="pp",
) -> str:
    if not placement:
        return "No cluster to draw."
    devices, ground = _nodes_rows(
        given,
        placement,
        by,
    ).values()
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


def _nodes(by: str) -> Figure:
    return figure(
        "peers" if by == "peers" else "nodes",
        _nodes_rows,
        _nodes_words,
        name=f"cluster-{by}",
        title=f"The cluster: {VIEWS[by]}",
        given={
            "title": _SCALES.get(by),
            "groups": ["device 0" if axis == "self" else axis.upper() for axis in AXES],
            "hues": list(AXES.values()),
            "inks": [ink_on(hue) for hue in AXES.values()],
        },
    )


nodes = {by: _nodes(by) for by in VIEWS}


# ---------------------------------------------------------------- the site
def _blocks(placement: Mapping, many: bool) -> dict[int, dict]:
    """Leaf units (where there are `many`) or nodes with the stages and replicas that each holds."""
    table, out = placement["nodes"], {}
    for i, block in enumerate(table["unit" if many else "node"]):
        ends = [table[f"{axis}_{end}"][i] for axis in ("pp", "dp") for end in ("first", "last")]
        row = out.setdefault(
            block,
            {
                "pod": table["pod"][i],
                "unit": table["unit"][i],
                "nodes": 0,
                "pp": [],
                "dp": [],
            },
        )
        row["nodes"] += 1
        row["pp"] += ends[:2]
        row["dp"] += ends[2:]
    return out


def _site_rows(given, placement: Mapping | None = None) -> dict:
    if not placement:
        return {"blocks": []}
    many = placement["unit_count"] >= 4
    of = _blocks(placement, many)
    firsts = {block: min(row["pp"]) for block, row in of.items()}
    most, seen, rows = max(firsts.values()), Counter(), []
    for block, first in list(firsts.items())[:_BLOCKS]:
        row = of[block]
        line, stages = row["pod" if many else "unit"], span(row["pp"])
        rows.append(
            {
                **row,
                "block": block,
                "line": line,
                "place": seen[line],
                "stage": first,
                "stages": stages,
                "replicas": span(row["dp"]),
                "ink": _ink(first, most),
                "size": f", {row['nodes']} nodes" if many else "",
            }
        )
        seen[line] += 1
    kind, line_of = ("leaf unit", "pod") if many else ("node", "leaf unit")
    lettered = max(seen.values()) <= 19 and len(seen) <= 12  # else too many for letters
    for row in rows:
        row["text"] = row["stages"] if lettered else ""
    return {
        "blocks": worded(
            "site",
            "blocks",
            rows,
            kind=kind,
            line_of=line_of,
        )
    }


def span(values) -> str:
    low, high = min(values), max(values)
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
        more = f", {over:g} : 1" if over > 1 else ""
        heads[tier["tier"]] = text(
            "matrix",
            "head",
            over=more,
            **tier,
        )
    names, rows, through = list(heads), [], []
    for axis in network["axes"]:
        name, widest = axis["axis"].upper(), axis["widest"]
        ways = (given.get("plan") or {}).get(axis["axis"]) or axis["ranks"]
        over = f" (of {axis['ranks']:,} ranks)" if ways != axis["ranks"] else ""
        row = {
            "name": name,
            "row": f"{name} {ways:,}{over}",
            "head": heads.get(widest, heads[names[-1]]),
        }
        rows.append(axis | row)
        for i, tier in enumerate(names[: names.index(widest) if widest in names else -1]):
            if axis["per_domain"] > 1 or i > 0:
                through.append(
                    row
                    | {
                        "tier": heads[tier],
                        "inside": tier,
                    }
                )
    return {
        "cells": worded(
            "matrix",
            "cells",
            rows,
        ),
        "through": worded(
            "matrix",
            "through",
            through,
        ),
        "frame": [
            {
                "axis": row["row"],
                "tier": head,
            }
            for row in rows
            for head in heads.values()
        ],
    }


matrix = figure("matrix", _matrix_rows)


def facts(network: Mapping) -> list[str]:
    """The network in lines: what it is made of and what it costs."""
    t = network["topology"]
    lines = [
        text(
            "matrix",
            "scale_up",
            **network["scale_up"],
        ),
        text(
            "matrix",
            "scale_out",
            t=t,
            parts=", ".join(
                f"{t[name]:,} {name}" for name in ("leaf", "spine", "core") if t.get(name)
            ),
            kind=label_or("cluster.topology", t["kind"]),
            **network,
        ),
    ]
    if network.get("usd"):
        lines.append(
            text(
                "matrix",
                "price",
                **network,
            )
        )
    return [*lines, network["rule"], *network.get("notes", [])]
