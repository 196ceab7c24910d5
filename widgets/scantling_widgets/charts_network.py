"""The cluster drawn: one replica on its nodes, whom a device talks to, the site by pods and leaf
units, and traffic by axis and tier."""

from __future__ import annotations

from collections.abc import Mapping

from .figures import Figure, named
from .grammar import alt
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
_MEMBERS = 24  # of one group, where several are drawn
VIEWS = {
    "pp": "one replica, by pipeline stage",
    "tp": "one replica, by TP rank",
    "cp": "one replica, by CP rank",
    "peers": "whom device 0 talks to, by axis",
}


def _rate(value) -> str:
    return quantities.shown(value, "bytes_per_s")


# ---------------------------------------------------------------- nodes
def _nodes_data(given, placement: Mapping | None = None, by: str = "pp") -> dict:
    """`placement`: `blueprint.placement(assessment).as_dict()`; `by`: a key of VIEWS."""
    if not placement:
        return {"devices": {}}
    per = placement["per_node"]
    if by == "peers":
        of = {}
        for group in placement["groups"]:
            for rank in group["first"][:_MEMBERS]:
                of.setdefault(rank, group["axis"])
        of[0] = "self"
        ranks = [(rank, axis, {}) for rank, axis in sorted(of.items())]
    else:
        replica = placement["first_replica"]
        ranks = [
            (rank, replica[by][i], {a: replica[a][i] for a in ("tp", "cp", "pp")})
            for i, rank in enumerate(replica["rank"])
        ]
    nodes = sorted({rank // per for rank, *_ in ranks})[:_NODES]
    kept = [r for r in ranks if r[0] // per in set(nodes)]
    wide = len(nodes) <= 34
    most = max((v for _, v, _ in kept if v not in ("self",) and not isinstance(v, str)), default=0)
    out = {"node": [], "device": [], "value": [], "group": [], "text": [], "ink": [], "says": []}
    for rank, value, at in kept:
        where = f"node {rank // per}, device {rank % per}, rank {rank:,}"
        is_peer = by == "peers"
        text = ("0" if value == "self" else value.upper()) if is_peer else str(value)
        said = (
            (
                where
                + (
                    ": device 0 itself"
                    if value == "self"
                    else f": in device 0's {value.upper()} group"
                )
            )
            if is_peer
            else where
            + ": "
            + ", ".join(
                f"{a.upper()} rank {v}" if a != "pp" else f"stage {v}" for a, v in at.items()
            )
        )
        for column, item in zip(
            out,
            (
                f"{rank // per}",
                rank % per,
                0 if is_peer else value,
                value.upper() if is_peer and value != "self" else "device 0" if is_peer else "",
                text if wide else "",
                _ink(0 if is_peer else value, most),
                said,
            ),
        ):
            out[column].append(item)
    ground = {
        "node": [f"{n}" for n in nodes for _ in range(per)],
        "device": [d for _ in nodes for d in range(per)],
        "says": [
            f"node {n}, device {d}: {'of other groups' if by == 'peers' else 'of other replicas'}"
            for n in nodes
            for d in range(per)
        ],
    }
    return {"devices": out, "ground": ground}


def _nodes_words(given, placement=None, by="pp") -> str:
    if not placement:
        return "No cluster to draw."
    data = _nodes_data(given, placement, by)
    return (
        (
            f"{VIEWS[by]}: {len(data['devices']['says'])} devices on "
            f"{len(set(data['ground']['node']))} nodes. "
        )
        + "; ".join(data["devices"]["says"][:16])
        + "."
    )


def _ink(value, most) -> str:
    """Of a number on the scale of stages: white on its dark end."""
    return "#ffffff" if value <= 0.2 * most and most else "#111111"


def drawn(placement: Mapping, by: str) -> str:
    """What of it a picture shows, where it is not all."""
    per = placement["per_node"]
    ranks = (
        {r for g in placement["groups"] for r in g["first"][:_MEMBERS]} | {0}
        if by == "peers"
        else set(placement["first_replica"]["rank"])
    )
    nodes = len({r // per for r in ranks})
    cut = [g["axis"].upper() for g in placement["groups"] if by == "peers" and g["size"] > _MEMBERS]
    parts = [f"the first {_NODES} of {nodes:,} nodes"] if nodes > _NODES else []
    parts += (
        [
            (
                f"the first {_MEMBERS} devices of the {' and '.join(cut)} "
                f"group{'s' if len(cut) > 1 else ''}"
            )
        ]
        if cut
        else []
    )
    return f"Drawn: {' and '.join(parts)}." if parts else ""


def _nodes_chart(by: str):
    def build(legend: bool = True) -> alt.Chart:
        x = alt.X(
            "node:N",
            title="node",
            sort=None,
            axis=alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=7, ticks=False),
            scale=alt.Scale(paddingInner=0.12, paddingOuter=0.05),
        )
        y = alt.Y(
            "device:O",
            title="device in the node",
            axis=alt.Axis(ticks=False, domain=False, labelOverlap=True),
            scale=alt.Scale(paddingInner=0.08),
        )
        tip = alt.Tooltip("says:N", title=" ")
        ground = (
            alt.Chart(named("ground"))
            .mark_rect(fillOpacity=0.14, style="soft", stroke=None)
            .encode(x=x, y=y, tooltip=tip)
        )
        base = alt.Chart(named("devices")).encode(x=x, y=y, tooltip=tip)
        if by == "peers":
            names = [a.upper() if a != "self" else "device 0" for a in PEERS]
            colour = alt.Color(
                "group:N",
                title=None,
                scale=alt.Scale(domain=names, range=list(PEERS.values())),
                sort=None,
                legend=alt.Legend(orient="top"),
            )
            ink = alt.Color(
                "group:N",
                scale=alt.Scale(domain=names, range=[ink_on(c) for c in PEERS.values()]),
                legend=None,
            )
        else:
            title = {"pp": "pipeline stage", "tp": "TP rank", "cp": "CP rank"}[by]
            colour = alt.Color(
                "value:Q",
                title=title,
                scale=alt.Scale(
                    range=["#084c7d", "#2f8fc7", "#8fd0e8", "#f3e79b", "#e8a33d"], interpolate="lab"
                ),
                legend=alt.Legend(orient="top", gradientLength=150, tickMinStep=1, format="d"),
            )
            ink = alt.Color("ink:N", scale=None)
        cells = base.mark_rect(stroke=None).encode(color=colour)
        texts = base.mark_text(fontSize=10, fontWeight="bold").encode(text="text:N", color=ink)
        return alt.layer(ground, cells, texts).resolve_scale(color="independent")

    return build


nodes = {
    by: Figure(
        f"cluster-{by}",
        f"The cluster: {VIEWS[by]}",
        _nodes_chart(by),
        _nodes_data,
        _nodes_words,
        height=190,
        empty="No cluster to draw.",
    )
    for by in VIEWS
}


# ---------------------------------------------------------------- the site
def _site_data(given, placement: Mapping | None = None) -> dict:
    if not placement:
        return {"blocks": {}}
    table = placement["nodes"]
    many = placement["unit_count"] >= 4
    of = table["unit"] if many else table["node"]
    rows: dict = {}
    for i, block in enumerate(of):
        row = rows.setdefault(
            block,
            {
                "pod": table["pod"][i],
                "unit": table["unit"][i],
                "nodes": 0,
                "pp": [table["pp_first"][i], table["pp_last"][i]],
                "dp": [table["dp_first"][i], table["dp_last"][i]],
            },
        )
        row["nodes"] += 1
        for axis in ("pp", "dp"):
            row[axis] = [
                min(row[axis][0], table[f"{axis}_first"][i]),
                max(row[axis][1], table[f"{axis}_last"][i]),
            ]
    most = max(row["pp"][0] for row in rows.values())
    out = {"pod": [], "place": [], "stage": [], "text": [], "ink": [], "says": []}
    seen: dict = {}
    for block, row in list(rows.items())[:2048]:
        line = row["pod"] if many else row["unit"]
        seen[line] = seen.get(line, -1) + 1
        stages = span(row["pp"])
        says = (
            f"{'leaf unit' if many else 'node'} {block} of pod {row['pod']}"
            + (f", {row['nodes']} nodes" if many else "")
            + f": stage {stages}, replicas {span(row['dp'])}"
        )
        for column, item in zip(
            out,
            (
                f"{'pod' if many else 'leaf unit'} {line}",
                seen[line],
                row["pp"][0],
                stages,
                _ink(row["pp"][0], most),
                says,
            ),
        ):
            out[column].append(item)
    if max(out["place"], default=0) > 18 or len(seen) > 12:
        out["text"] = [""] * len(out["text"])
    return {"blocks": out}


def span(ends) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def _site_words(given, placement=None) -> str:
    return (
        "The site by pods and leaf units, with the pipeline stages that each holds. "
        + "; ".join(_site_data(given, placement)["blocks"].get("says", [])[:24])
        + "."
    )


def _site_chart(legend: bool = True) -> alt.Chart:
    x = alt.X(
        "place:O",
        title="leaf units of a pod, or nodes of a leaf unit, side by side",
        axis=alt.Axis(labels=False, ticks=False),
        scale=alt.Scale(paddingInner=0.1),
    )
    y = alt.Y(
        "pod:N",
        title=None,
        sort=None,
        axis=alt.Axis(ticks=False, domain=False, labelOverlap=True),
        scale=alt.Scale(paddingInner=0.18),
    )
    base = alt.Chart(named("blocks")).encode(x=x, y=y, tooltip=alt.Tooltip("says:N", title=" "))
    colour = alt.Color(
        "stage:Q",
        title="first pipeline stage",
        scale=alt.Scale(
            range=["#084c7d", "#2f8fc7", "#8fd0e8", "#f3e79b", "#e8a33d"], interpolate="lab"
        ),
        legend=alt.Legend(orient="top", gradientLength=150, tickMinStep=1, format="d"),
    )
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(fontSize=10, fontWeight="bold").encode(
            text="text:N", color=alt.Color("ink:N", scale=None)
        ),
    ).resolve_scale(color="independent")


site = Figure(
    "site",
    "The site: pipeline stages by pod and leaf unit",
    _site_chart,
    _site_data,
    _site_words,
    height=190,
    empty="No cluster to draw.",
)


# ---------------------------------------------------------------- axis by tier
def _matrix_data(given, network: Mapping | None = None) -> dict:
    """`network`: `blueprint.network(assessment).as_dict()`."""
    if not network or not network["axes"]:
        return {"cells": {}}
    tiers = network["tiers"]
    names = [t["tier"] for t in tiers]
    heads = {
        t["tier"]: f"{t['tier']}|{t['devices']:,} devices|{_rate(t['device_bytes_per_s'])}"
        + (f", {t['oversubscription']:g} : 1" if t["oversubscription"] > 1 else "")
        for t in tiers
    }
    cells = {"axis": [], "tier": [], "share": [], "bytes": [], "time": [], "open": [], "says": []}
    through = {"axis": [], "tier": [], "says": []}
    rows = []
    for a in network["axes"]:
        widest = names.index(a["widest"]) if a["widest"] in names else len(names) - 1
        row = f"{a['axis'].upper()} {a['ranks']:,}"
        rows.append(row)
        says = (
            f"{a['axis'].upper()} over {a['ranks']:,} ranks, widest across a "
            f"{a['widest']}: {a['what']}; {show('communication.bytes', a['bytes'])} a "
            f"device and step in {a['calls']:,} calls, "
            f"{show('step_s', a['time_s'])} on the wire, "
            f"{show('step_s', a['exposed_s'])} exposed, {share(a['share'])} of the step"
        )
        for column, item in zip(
            cells,
            (
                row,
                heads[names[widest]],
                a["share"],
                show("communication.bytes", a["bytes"]),
                show("step_s", a["time_s"]),
                f"{show('step_s', a['exposed_s'])} exposed",
                says,
            ),
        ):
            cells[column].append(item)
        for i in range(widest):
            if a["per_domain"] > 1 or i > 0:
                for column, item in zip(
                    through,
                    (
                        row,
                        heads[names[i]],
                        f"{a['axis'].upper()}: some of its hops stay inside a {names[i]}",
                    ),
                ):
                    through[column].append(item)
    return {
        "cells": cells,
        "through": through,
        "frame": {
            "axis": [r for r in rows for _ in names],
            "tier": [heads[n] for _ in rows for n in names],
        },
    }


def _matrix_words(given, network=None) -> str:
    return (
        "Communication of one step, axis by tier. "
        + "; ".join(_matrix_data(given, network)["cells"].get("says", []))
        + "."
    )


def _matrix_chart(legend: bool = False) -> alt.Chart:
    x = alt.X(
        "tier:N",
        title=None,
        sort=None,
        axis=alt.Axis(
            labelAngle=0,
            orient="top",
            ticks=False,
            domain=False,
            labelExpr="split(datum.label, '|')",
            labelLimit=200,
            labelPadding=32,
            labelLineHeight=12,
        ),
        scale=alt.Scale(paddingInner=0.04),
    )
    y = alt.Y(
        "axis:N",
        title=None,
        sort=None,
        axis=alt.Axis(ticks=False, domain=False, labelFontWeight="bold"),
        scale=alt.Scale(paddingInner=0.1),
    )
    frame = (
        alt.Chart(named("frame"))
        .mark_rect(fillOpacity=0.07, style="soft", stroke=None)
        .encode(x=x, y=y)
    )
    through = (
        alt.Chart(named("through"))
        .mark_rect(fillOpacity=0.2, style="soft", stroke=None)
        .encode(x=x, y=y, tooltip=alt.Tooltip("says:N", title=" "))
    )
    base = alt.Chart(named("cells")).encode(x=x, y=y, tooltip=alt.Tooltip("says:N", title=" "))
    colour = alt.Color(
        "share:Q",
        scale=alt.Scale(type="sqrt", domain=[0, 0.3], range=["#fdf0d5", "#f19a3e"], clamp=True),
        legend=None,
    )
    return alt.layer(
        frame,
        through,
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(dy=-13, fontSize=12, fontWeight="bold", color="#111111").encode(
            text="bytes:N"
        ),
        base.mark_text(dy=1, fontSize=10.5, color="#111111").encode(text="time:N"),
        base.mark_text(dy=14, fontSize=10.5, color="#111111").encode(text="open:N"),
    )


matrix = Figure(
    "axis-by-tier",
    "Axis by tier: sent a device and step, on the wire",
    _matrix_chart,
    _matrix_data,
    _matrix_words,
    height=230,
    empty="One device: nothing is sent.",
)


def facts(network: Mapping) -> list[str]:
    """The network in lines: what it is made of and what it costs."""
    up, t = network["scale_up"], network["topology"]
    lines = [
        (
            f"scale-up: {up['name']}, {up['devices']:,} devices to a domain, "
            f"{_rate(up['link_bytes_per_s'])} per device, one direction; "
            f"{up['ratio_one_way']:.3g} times a device's share of the network"
        )
    ]
    parts = [f"{t[name]:,} {name}" for name in ("leaf", "spine", "core") if t.get(name)]
    lines.append(
        f"scale-out: {network['fabric_name']}, {network['rails']} cards a node at "
        f"{_rate(network['card_bytes_per_s'])}; "
        f"{label_or('cluster.topology', t['kind'])}, {t['tiers']} tiers: "
        f"{', '.join(parts)} switches, "
        f"{t['all_cables']:,} cables; bisection {_rate(t['bisection_bytes_per_s'])}"
    )
    if network.get("usd"):
        lines.append(
            f"network alone about {quantities.shown(network['usd'], 'usd')}, "
            f"{quantities.shown(network['usd_per_device'], 'usd')} a device "
            f"({network['prices']['date']} prices)"
        )
    return lines + [network["rule"], *network.get("notes", [])]
