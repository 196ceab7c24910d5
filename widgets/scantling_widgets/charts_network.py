"""The cluster drawn: one replica on its nodes, whom a device talks to, the site by pods and leaf
units, and traffic by axis and tier."""

from __future__ import annotations

from collections.abc import Mapping

from .figures import Figure, figure
from .palette import ink_on
from .words import label_or, quantities, share, show

PEERS = {
    "tp": "#0072b2",
    "cp": "#56b4e9",
    "ep": "#d55e00",
    "etp": "#cc79a7",
    "dp": "#e69f00",
    "edp": "#9b72aa",
    "pp": "#009e73",
    "self": "#f0e442",
}
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


def _rate(value) -> str:
    return quantities.shown(value, "bytes_per_s")


def _ink(value, most) -> str:
    """Of a number on the scale of stages: white on its dark end."""
    return "#ffffff" if value <= 0.2 * most and most else "#111111"


# ---------------------------------------------------------------- nodes
def _peers(placement: Mapping) -> dict[int, str]:
    """Ranks that device 0 exchanges data with, by the first axis that joins them."""
    of = {}
    for group in placement["groups"]:
        for rank in group["first"][:_MEMBERS]:
            of.setdefault(rank, group["axis"])
    return dict(
        sorted(
            {
                **of,
                0: "self",
            }.items()
        )
    )


def _peer_devices(placement: Mapping) -> list[dict]:
    out = []
    for rank, axis in _peers(placement).items():
        own, name = axis == "self", axis.upper()
        out.append(
            {
                "rank": rank,
                "value": 0,
                "group": "device 0" if own else name,
                "text": "0" if own else name,
                "says": "device 0 itself" if own else f"in device 0's {name} group",
            }
        )
    return out


def _replica_devices(placement: Mapping, by: str) -> list[dict]:
    replica = placement["first_replica"]
    return [
        {
            "rank": rank,
            "value": at[by],
            "group": "",
            "text": str(at[by]),
            "says": f"TP rank {at['tp']}, CP rank {at['cp']}, stage {at['pp']}",
        }
        for rank, *ranks in zip(*(replica[name] for name in ("rank", "tp", "cp", "pp")))
        for at in (dict(zip(("tp", "cp", "pp"), ranks)),)
    ]


def _devices(placement: Mapping, by: str) -> list[dict]:
    return _peer_devices(placement) if by == "peers" else _replica_devices(placement, by)


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
    devices = [device for device in devices if device["rank"] // per in set(nodes)]
    most = max((device["value"] for device in devices), default=0)
    out = []
    for device in devices:
        node, place = divmod(device.pop("rank"), per)
        where = f"node {node}, device {place}, rank {node * per + place:,}"
        text = device["text"] if len(nodes) <= _LETTERED else ""
        more = {
            "text": text,
            "ink": _ink(device["value"], most),
        }
        says = f"{where}: {device['says']}"
        out.append(
            {
                **device,
                **more,
                "says": says,
                "node": str(node),
                "device": place,
            }
        )
    others = "of other groups" if by == "peers" else "of other replicas"
    ground = [
        {
            "node": str(n),
            "device": d,
            "says": f"node {n}, device {d}: {others}",
        }
        for n in nodes
        for d in range(per)
    ]
    return {
        "devices": out,
        "ground": ground,
    }


def _nodes_words(
    given,
    placement=None,
    by="pp",
) -> str:
    if not placement:
        return "No cluster to draw."
    data = _nodes_rows(given, placement, by)
    return (
        f"{VIEWS[by]}: {len(data['devices'])} devices on "
        f"{len({row['node'] for row in data['ground']})} nodes. "
        f"{'; '.join(row['says'] for row in data['devices'][:16])}."
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
            "groups": ["device 0" if axis == "self" else axis.upper() for axis in PEERS],
            "hues": list(PEERS.values()),
            "inks": [ink_on(hue) for hue in PEERS.values()],
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
    rows = _blocks(placement, many)
    most = max(min(row["pp"]) for row in rows.values())
    out = []
    seen = {}
    for block, row in list(rows.items())[:_BLOCKS]:
        line = row["pod"] if many else row["unit"]
        seen[line] = seen.get(line, -1) + 1
        stages, first = span(row["pp"]), min(row["pp"])
        name = f"leaf unit {block}" if many else f"node {block}"
        size = f", {row['nodes']} nodes" if many else ""
        out.append(
            {
                "pod": f"{'pod' if many else 'leaf unit'} {line}",
                "place": seen[line],
                "stage": first,
                "text": stages,
                "ink": _ink(first, most),
                "says": (
                    f"{name} of pod {row['pod']}{size}: stage {stages}, replicas {span(row['dp'])}"
                ),
            }
        )
    if max(seen.values()) > 18 or len(seen) > 12:  # too many for letters
        out = [
            {
                **row,
                "text": "",
            }
            for row in out
        ]
    return {"blocks": out}


def span(values) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


site = figure("site", _site_rows)


# ---------------------------------------------------------------- axis by tier
def _tier_head(tier: Mapping) -> str:
    over = tier["oversubscription"]
    return (
        f"{tier['tier']}|{tier['devices']:,} devices|{_rate(tier['device_bytes_per_s'])}"
        f"{f', {over:g} : 1' if over > 1 else ''}"
    )


def _matrix_rows(given, network: Mapping | None = None) -> dict:
    """`network`: that of the blueprint as data."""
    if not network or not network["axes"]:
        return {"cells": []}
    names = [tier["tier"] for tier in network["tiers"]]
    heads = [_tier_head(tier) for tier in network["tiers"]]
    cells, through, frame = [], [], []
    for a in network["axes"]:
        widest = names.index(a["widest"]) if a["widest"] in names else len(names) - 1
        axis = a["axis"].upper()
        row = f"{axis} {a['ranks']:,}"
        sent = show("communication.bytes", a["bytes"])
        time, exposed = show("step_s", a["time_s"]), f"{show('step_s', a['exposed_s'])} exposed"
        says = (
            f"{axis} over {a['ranks']:,} ranks, widest across a {a['widest']}: {a['what']}; "
            f"{sent} a device and step in {a['calls']:,} calls, {time} on the wire, {exposed}, "
            f"{share(a['share'])} of the step"
        )
        cells.append(
            {
                "axis": row,
                "tier": heads[widest],
                "share": a["share"],
                "bytes": sent,
                "time": time,
                "open": exposed,
                "says": says,
            }
        )
        frame += [
            {
                "axis": row,
                "tier": head,
            }
            for head in heads
        ]
        through += [
            {
                "axis": row,
                "tier": heads[i],
                "says": f"{axis}: some of its hops stay inside a {names[i]}",
            }
            for i in range(widest)
            if a["per_domain"] > 1 or i > 0
        ]
    return {
        "cells": cells,
        "through": through,
        "frame": frame,
    }


matrix = figure("matrix", _matrix_rows)


def facts(network: Mapping) -> list[str]:
    """The network in lines: what it is made of and what it costs."""
    up, t = network["scale_up"], network["topology"]
    parts = ", ".join(f"{t[name]:,} {name}" for name in ("leaf", "spine", "core") if t.get(name))
    lines = [
        f"scale-up: {up['name']}, {up['devices']:,} devices to a domain, "
        f"{_rate(up['link_bytes_per_s'])} per device, one direction; "
        f"{up['ratio_one_way']:.3g} times a device's share of the network",
        f"scale-out: {network['fabric_name']}, {network['rails']} cards a node at "
        f"{_rate(network['card_bytes_per_s'])}; {label_or('cluster.topology', t['kind'])}, "
        f"{t['tiers']} tiers: {parts} switches, {t['all_cables']:,} cables; bisection "
        f"{_rate(t['bisection_bytes_per_s'])}",
    ]
    if network.get("usd"):
        lines.append(
            f"network alone about {quantities.shown(network['usd'], 'usd')}, "
            f"{quantities.shown(network['usd_per_device'], 'usd')} a device "
            f"({network['prices']['date']} prices)"
        )
    return [*lines, network["rule"], *network.get("notes", [])]
