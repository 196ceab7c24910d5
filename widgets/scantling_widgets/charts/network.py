"""The cluster drawn: one replica on its nodes, whom a device talks to, the site by pods and leaf
units, and traffic by axis and tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scantling.advise.explanation import label_or
from scantling.base.show import bytes_per_s, seconds, share, size, usd
from scantling.physics.step import AXES
from scantling.plans.plan_names import degrees_of

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, laid, records, saying
from .palette import AXES as PEERS, SECOND, Swatch, ink_on
from .theme import layered, over, tip

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
_STAGE_HUES = ["#084c7d", "#2f8fc7", "#8fd0e8", "#f3e79b", "#e8a33d"]


def _ink(value: float, most: float) -> str:
    """Of a number on the scale of stages: white on its dark end."""
    return "#ffffff" if value <= 0.2 * most and most else "#111111"


def _stage_colour(field: str, title: str | None) -> alt.Color:
    return alt.Color(
        f"{field}:Q",
        title=title,
        legend=alt.Legend(format="d", gradientLength=150, orient="top", tickMinStep=1),
        scale=alt.Scale(interpolate="lab", range=_STAGE_HUES),
    )


# ---------------------------------------------------------------- nodes
def _devices(placement: Mapping[str, Any], by: str) -> list[Row]:
    """The devices that a view draws, with what each says."""
    return _peers(placement) if by == "peers" else _replica(placement["first_replica"], by)


def _replica(ranks: Mapping[str, Sequence[int]], by: str) -> list[Row]:
    """The devices of the first replica, by stage or by a rank of theirs."""
    rows = []
    for rank, tp, cp, pp in zip(ranks["rank"], ranks["tp"], ranks["cp"], ranks["pp"]):
        value = {"tp": tp, "cp": cp, "pp": pp}[by]
        rows.append(
            {
                "rank": rank,
                "value": value,
                "group": "",
                "text": str(value),
                "says": f"TP rank {tp}, CP rank {cp}, stage {pp}",
            }
        )
    return rows


def _peers(placement: Mapping[str, Any]) -> list[Row]:
    """Device 0 and the devices that it exchanges data with, by the first axis that joins them."""
    group_of = {0: "device 0"}
    for group in placement["groups"]:
        for rank in group["first"][:_MEMBERS]:
            group_of.setdefault(rank, group["axis"].upper())
    return [
        {
            "rank": rank,
            "value": 0,
            "group": name,
            "text": name if rank else "0",
            "says": f"in device 0's {name} group" if rank else "device 0 itself",
        }
        for rank, name in sorted(group_of.items())
    ]


def _nodes_rows(figures: Facts, placement: Mapping[str, Any] | None = None, by: str = "pp") -> Data:
    """`placement`: that of the blueprint as data; `by`: a key of VIEWS."""
    if not placement:
        return {"devices": []}
    devices, ground = _placed(placement, by)
    return {"devices": devices, "ground": ground}


def _placed(placement: Mapping[str, Any], by: str) -> tuple[list[Row], list[Row]]:
    """The devices of a view on their nodes, and every place of these nodes."""
    per, devices = placement["per_node"], _devices(placement, by)
    nodes = sorted({device["rank"] // per for device in devices})[:_NODES]
    lettered = len(nodes) <= _LETTERED
    devices = [device for device in devices if device["rank"] // per in nodes]
    most = max(device["value"] for device in devices)
    placed = []
    for device in devices:
        node, place = divmod(device["rank"], per)
        placed.append(
            {
                "value": device["value"],
                "group": device["group"],
                "text": device["text"] if lettered else "",
                "ink": _ink(device["value"], most),
                "node": str(node),
                "device": place,
                "says": f"node {node}, device {place}, rank {device['rank']:,}: {device['says']}",
            }
        )
    others = "groups" if by == "peers" else "replicas"
    ground = [
        {
            "node": str(node),
            "device": place,
            "says": f"node {node}, device {place}: of other {others}",
        }
        for node in nodes
        for place in range(per)
    ]
    return placed, ground


def _nodes_words(figures: Facts, placement: Mapping[str, Any] | None = None, by: str = "pp") -> str:
    if not placement:
        return "No cluster to draw."
    devices, ground = _placed(placement, by)
    nodes = len({row["node"] for row in ground})
    texts = "; ".join(row["says"] for row in devices[:16])
    return f"{VIEWS[by]}: {len(devices)} devices on {nodes} nodes. {texts}."


def drawn(placement: Mapping[str, Any], by: str) -> str:
    """What of it a picture shows, where it is not all."""
    nodes = len({device["rank"] // placement["per_node"] for device in _devices(placement, by)})
    groups = placement["groups"] if by == "peers" else ()
    cut = [group["axis"].upper() for group in groups if group["size"] > _MEMBERS]
    parts = [f"the first {_NODES} of {nodes:,} nodes"] if nodes > _NODES else []
    if cut:
        plural = "s" if len(cut) > 1 else ""
        parts.append(f"the first {_MEMBERS} devices of the {' and '.join(cut)} group{plural}")
    return f"Drawn: {' and '.join(parts)}." if parts else ""


def _draw_nodes(by: str, legend: bool) -> alt.LayerChart:
    x = alt.X(
        "node:N",
        title="node",
        axis=alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=7, ticks=False),
        scale=alt.Scale(paddingInner=0.12, paddingOuter=0.05),
        sort=None,
    )
    y = alt.Y(
        "device:O",
        title="device in the node",
        axis=alt.Axis(domain=False, labelOverlap=True, ticks=False),
        scale=alt.Scale(paddingInner=0.08),
    )
    if by == "peers":
        groups = ["device 0" if axis == "self" else axis.upper() for axis in PEERS]
        hues = list(PEERS.values())
        colour = alt.Color(
            "group:N",
            title=None,
            legend=alt.Legend(orient="top"),
            scale=alt.Scale(domain=groups, range=hues),
            sort=None,
        )
        inks = alt.Scale(domain=groups, range=[ink_on(hue) for hue in hues])
        ink = alt.Color("group:N", legend=None, scale=inks)
    else:
        colour, ink = _stage_colour("value", _SCALES[by]), alt.Color("ink:N", scale=None)
    ground = over("ground").mark_rect(fillOpacity=0.14, stroke=None, style="soft")
    # none where they would touch, on a telephone
    room = alt.ExprRef("bandwidth('x') < 15 ? 0 : 1")
    letters = over("devices").mark_text(fontSize=10, fontWeight="bold", opacity=room)
    chart: alt.LayerChart = layered(
        ground.encode(x, y, tip()),
        over("devices").mark_rect(stroke=None).encode(x, y, colour, tip()),
        letters.encode(x, y, ink, alt.Text("text:N"), tip()),
    ).resolve_scale(color="independent")
    return chart


nodes = {
    by: Figure(
        name=f"cluster-{by}",
        title=f"The cluster: {view}",
        draw=partial(_draw_nodes, by),
        rows=_nodes_rows,
        words=_nodes_words,
        height=190,
        empty="No cluster to draw.",
    )
    for by, view in VIEWS.items()
}


# ---------------------------------------------------------------- the site
def _site_rows(figures: Facts, placement: Mapping[str, Any] | None = None) -> Data:
    """Leaf units (where there are many) or nodes with the stages and replicas that each holds."""
    if not placement:
        return {"blocks": []}
    many = placement["unit_count"] >= 4
    kind, block, line_name, line = (
        ("leaf unit", "unit", "pod", "pod") if many else ("node", "node", "leaf unit", "unit")
    )
    groups: dict[int, list[Row]] = {}
    for node in records(placement["nodes"]):
        groups.setdefault(node[block], []).append(node)
    drawn_groups = list(groups.values())[:_BLOCKS]
    most = max(min(node["pp_first"] for node in group) for group in drawn_groups)
    lines = Counter(group[0][line] for group in drawn_groups)
    lettered = max(lines.values()) < 20 and len(lines) <= 12  # room for letters
    filled: Counter[int] = Counter()
    rows = []
    for group in drawn_groups:
        first = group[0]
        stage = min(node["pp_first"] for node in group)
        stages = span(stage, max(node["pp_last"] for node in group))
        replicas = span(
            min(node["dp_first"] for node in group), max(node["dp_last"] for node in group)
        )
        row_name = f"{line_name} {first[line]}"
        nodes_text = f", {len(group)} nodes" if many else ""
        rows.append(
            {
                "pod": row_name,
                "place": filled[first[line]],
                "stage": stage,
                "text": stages if lettered else "",
                "ink": _ink(stage, most),
                "says": f"{kind} {first[block]} of pod {first['pod']}{nodes_text}: stage {stages}, "
                f"replicas {replicas}",
            }
        )
        filled[first[line]] += 1
    return {"blocks": rows}


def span(low: int, high: int) -> str:
    """Numbers from low to high as text."""
    return str(low) if low == high else f"{low}–{high}"


def _draw_site(legend: bool) -> alt.LayerChart:
    x = alt.X(
        "place:O",
        title="leaf units or nodes, side by side",
        axis=alt.Axis(labels=False, ticks=False),
        scale=alt.Scale(paddingInner=0.1),
    )
    y = alt.Y(
        "pod:N",
        title=None,
        axis=alt.Axis(domain=False, labelOverlap=True, ticks=False),
        scale=alt.Scale(paddingInner=0.18),
        sort=None,
    )
    blocks = over("blocks")
    letters = blocks.mark_text(fontSize=10, fontWeight="bold")
    chart: alt.LayerChart = layered(
        blocks.mark_rect(stroke=None).encode(
            x, y, _stage_colour("stage", "first pipeline stage"), tip()
        ),
        letters.encode(x, y, alt.Color("ink:N", scale=None), alt.Text("text:N"), tip()),
    ).resolve_scale(color="independent")
    return chart


site = Figure(
    name="site",
    title="The site: pipeline stages by pod and leaf unit",
    draw=_draw_site,
    rows=_site_rows,
    words=saying(
        _site_rows,
        "The site by pods and leaf units, with the pipeline stages that each holds.",
        ["blocks"],
        24,
    ),
    height=190,
    empty="No cluster to draw.",
)


# ---------------------------------------------------------------- axis by tier
def _matrix_rows(figures: Facts, network: Mapping[str, Any] | None = None) -> Data:
    """`network`: that of the blueprint as data."""
    if not network or not network["axes"]:
        return {"cells": []}
    heads = {tier["tier"]: _tier_head(tier) for tier in network["tiers"]}
    tiers = list(heads)
    cells, through, rows = [], [], []
    plan = figures.get("plan")
    degrees = degrees_of(plan) if plan else {}
    for axis in network["axes"]:
        row = _axis_head(axis, degrees.get(axis["axis"]) or axis["ranks"])
        widest = axis["widest"]
        reach = tiers.index(widest) if widest in tiers else len(tiers) - 1
        near = 0 if axis["per_domain"] > 1 else 1
        cells.append(_cell(axis, row, heads[tiers[reach]]))
        through += [
            {
                "axis": row,
                "tier": heads[tier],
                "says": f"{axis['axis'].upper()}: some of its hops stay inside a {tier}",
            }
            for tier in tiers[near:reach]
        ]
        rows.append(row)
    return {
        "cells": cells,
        "through": through,
        "frame": [{"axis": row, "tier": head} for row in rows for head in heads.values()],
    }


def _tier_head(tier: Mapping[str, Any]) -> str:
    """The head of a column, its lines parted by bars."""
    over_ = tier["oversubscription"]
    shared = f", {over_:g} : 1" if (over_ or 1) > 1 else ""  # none is stated between sites
    rate = bytes_per_s(tier["device_bytes_per_s"])
    return f"{tier['tier']}|{tier['devices']:,} devices|{rate}{shared}"


def _axis_head(axis: Mapping[str, Any], ways: int) -> str:
    """The head of a row, its lines parted by bars."""
    ranks = f"|of {axis['ranks']:,} ranks" if ways != axis["ranks"] else ""
    return f"{axis['axis'].upper()} {ways:,}{ranks}"


def _cell(axis: Mapping[str, Any], row: str, head: str) -> Row:
    sent, time, exposed = size(axis["bytes"]), seconds(axis["time_s"]), seconds(axis["exposed_s"])
    return {
        "axis": row,
        "tier": head,
        "share": axis["share"],
        "bytes": sent,
        "time": time,
        "open": f"waits {exposed}",
        "says": f"{axis['axis'].upper()} over {axis['ranks']:,} ranks, widest across a "
        f"{axis['widest']}: {axis['what']}; {sent} a device and step in {axis['calls']:,} calls, "
        f"{time} on the wire, {exposed} exposed, {share(axis['share'])} of the step",
    }


def _draw_matrix(legend: bool) -> alt.LayerChart:
    x = alt.X(
        "tier:N",
        title=None,
        axis=alt.Axis(
            domain=False,
            labelAngle=0,
            labelExpr="split(datum.label, '|')",
            labelLimit=200,
            labelLineHeight=12,
            labelPadding=32,
            orient="top",
            ticks=False,
        ),
        scale=alt.Scale(paddingInner=0.04),
        sort=None,
    )
    y = alt.Y(
        "axis:N",
        title=None,
        axis=alt.Axis(
            domain=False, labelExpr="split(datum.label, '|')", labelFontWeight="bold", ticks=False
        ),
        scale=alt.Scale(paddingInner=0.1),
        sort=None,
    )
    colour = alt.Color(
        "share:Q",
        legend=None,
        scale=alt.Scale(type="sqrt", clamp=True, domain=[0, 0.3], range=["#fdf0d5", "#f19a3e"]),
    )

    def line(field: str, dy: int, **font: Any) -> alt.Chart:
        mark: alt.Chart = over("cells").mark_text(color="#111111", dy=dy, **font)
        return mark.encode(x, y, alt.Text(f"{field}:N"), tip())

    frame = over("frame").mark_rect(fillOpacity=0.07, stroke=None, style="soft")
    through = over("through").mark_rect(fillOpacity=0.2, stroke=None, style="soft")
    return layered(
        frame.encode(x, y),
        through.encode(x, y, tip()),
        over("cells").mark_rect(stroke=None).encode(x, y, colour, tip()),
        line("bytes", -13, fontSize=12, fontWeight="bold"),
        line("time", 1, fontSize=10.5),
        line("open", 14, fontSize=10.5),
    )


matrix = Figure(
    name="axis-by-tier",
    title="What a device sends in a step, by axis and tier",
    draw=_draw_matrix,
    rows=_matrix_rows,
    words=saying(_matrix_rows, "Communication of one step, axis by tier.", ["cells"]),
    height=230,
    empty="One device: nothing is sent.",
)


def facts(network: Mapping[str, Any]) -> list[str]:
    """The network in lines: what it is made of and what it costs."""
    lines = [_scale_up(network["scale_up"]), _scale_out(network)]
    if network.get("usd"):
        total, each = usd(network["usd"]), usd(network["usd_per_device"])
        lines.append(
            f"network alone about {total}, {each} a device ({network['prices']['date']} prices)"
        )
    return [*lines, network["rule"], *network.get("notes", [])]


def _scale_up(domain: Mapping[str, Any]) -> str:
    return (
        f"scale-up: {domain['name']}, {domain['devices']:,} devices to a domain, "
        f"{bytes_per_s(domain['link_bytes_per_s'])} per device, one direction; "
        f"{domain['ratio_one_way']:.3g} times a device's share of the network"
    )


def _scale_out(network: Mapping[str, Any]) -> str:
    topology = network["topology"]
    switches = ", ".join(
        f"{topology[name]:,} {name}" for name in ("leaf", "spine", "core") if topology.get(name)
    )
    kind = label_or("cluster.topology", topology["kind"])
    return (
        f"scale-out: {network['fabric_name']}, {network['rails']} cards a node at "
        f"{bytes_per_s(network['card_bytes_per_s'])}; {kind}, {topology['tiers']} tiers: "
        f"{switches} switches, {topology['all_cables']:,} cables; bisection "
        f"{bytes_per_s(topology['bisection_bytes_per_s'])}"
    )


# ---------------------------------------------------------------- exposed and hidden
_TIMES = {"exposed_s": Swatch("exposed", SECOND), "hidden_s": Swatch("hidden", "#e6c9ad")}


def by_axis(figures: Facts) -> list[Row]:
    """Exposed and hidden seconds of each axis that communicates."""
    exposed, hidden = figures["step_breakdown_s"], figures.get("hidden_s") or {}
    rows = (
        {"axis": axis, "exposed_s": exposed.get(axis) or 0, "hidden_s": hidden.get(axis) or 0}
        for axis in AXES
    )
    return [row for row in rows if row["exposed_s"] or row["hidden_s"]]


def _traffic_rows(figures: Facts) -> Data:
    return {
        "traffic": [
            {
                "axis": row["axis"].upper(),
                "kind": part.part,
                "start": part.start,
                "end": part.end,
                "says": f"{row['axis'].upper()} {part.part} {seconds(part.size)}",
            }
            for row in by_axis(figures)
            for part in laid(_TIMES, row)
            if part.size > 0
        ]
    }


def _draw_traffic(legend: bool) -> alt.Chart:
    chart: alt.Chart = (
        over("traffic")
        .mark_bar(stroke=None)
        .encode(
            alt.X(
                "start:Q",
                title="seconds of one step on the wire",
                axis=alt.Axis(tickCount=6),
                scale=alt.Scale(domainMin=0, nice=False),
            ),
            alt.X2("end"),
            alt.Y("axis:N", title=None, axis=alt.Axis(domain=False, ticks=False), sort=None),
            alt.Color(
                "kind:N",
                legend=alt.Legend(title=None, orient="bottom") if legend else None,
                scale=alt.Scale(
                    domain=[swatch.name for swatch in _TIMES.values()],
                    range=[swatch.colour for swatch in _TIMES.values()],
                ),
                sort=None,
            ),
        )
    )
    return chart


traffic = Figure(
    name="communication",
    title="Communication by axis: exposed, and hidden under compute",
    draw=_draw_traffic,
    rows=_traffic_rows,
    words=saying(_traffic_rows, "Communication of one step by axis:", ["traffic"]),
    height=110,
)
