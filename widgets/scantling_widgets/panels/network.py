"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from __future__ import annotations

import ipywidgets as W
from scantling.cluster import part

from .. import theme
from ..charts_network import VIEWS, drawn, facts, matrix, nodes, site
from ..report.charts import traffic
from ..table import Table, cell
from ..words import label, quantities, show
from .base import Panel

_COLUMNS = ("axis", "what", "group", "tier", "bytes", "calls", "time_s", "exposed_s")
_LEFT = ("axis", "what", "tier")
_OTHERS = (
    "what",
    "switches",
    "all_cables",
    "bisection_bytes_per_s",
    "usd",
    "usd_per_device",
    "step_change",
    "run_usd",
)
_EDGES = {
    "domains": "between scale-up domains",
    "units": "between leaf units",
    "pods": "between pods",
    "sites": "between sites",
}
_AXES = ("tp", "cp", "ep", "dp", "pp")
_LOADS = ("bytes", "capacity_bytes_per_s", "busy_s", "busy_share")


class Network(Panel):
    title = "Network"

    def build(self):
        self.by = W.Dropdown(
            options=[(text, by) for by, text in VIEWS.items()],
            description="Show",
            style={"description_width": "42px"},
            layout=W.Layout(width="360px"),
        )
        self.by.observe(lambda _: self._show_nodes(), "value")
        self.note = theme.text()
        self.cluster, self.site, self.matrix = (
            nodes["pp"].live(legend=True),
            site.live(legend=True),
            matrix.live(),
        )
        self.chart = traffic.live(legend=True)
        self.table = Table(
            "Communication of one step",
            file_name="communication",
            empty="No communication: one device.",
            explain=self.explain,
            columns=[
                {
                    "key": c,
                    "label": label(f"communication.{c}"),
                    "align": "left" if c in _LEFT else "",
                    "wrap": c == "what",
                }
                for c in _COLUMNS
            ],
        )
        self.others = Table(
            "Other topologies for the same devices",
            file_name="topologies",
            columns=[
                {
                    "key": k,
                    "label": label(f"blueprint.topologies.{k}"),
                    "align": "left" if k == "what" else "",
                    "wrap": k == "what",
                }
                for k in _OTHERS
            ],
            explain=self.explain_row(
                "topologies",
                _said,
                {
                    "Of": "what",
                    "Kind": "kind",
                    "Tiers": "tiers",
                    "Ports of a switch": "radix",
                    "Mean hops": "mean_hops",
                    "Transceivers": "transceivers",
                    "Source": "source",
                },
            ),
        )
        name = lambda k: k.upper() if k in _AXES else label(f"blueprint.crossings.{k}")
        self.edges = Table(
            "What crosses each edge of the fabric in one step",
            file_name="crossings",
            sortable=False,
            empty="Nothing leaves a scale-up domain.",
            columns=[
                {"key": k, "label": name(k), "align": "left" if k == "edge" else ""}
                for k in ("edge", "blocks", *_AXES, *_LOADS)
            ],
            explain=self.explain_row(
                "crossings", lambda k, row: show(f"blueprint.crossings.{k}", row[k]), {"Of": "edge"}
            ),
        )
        self.settings = Table(
            "Settings of the fabric",
            file_name="fabric-settings",
            sortable=False,
            columns=[
                {"key": k, "label": text, "align": "left", "wrap": k != "what"}
                for k, text in (("what", "What"), ("choice", "Choice"), ("why", "Why"))
            ],
        )
        self.tiers, self.why = theme.text(), theme.text()
        return [
            theme.card(
                "The cluster, drawn",
                W.HBox(
                    [self.by, self.note], layout=W.Layout(grid_gap="12px", align_items="center")
                ),
                self.cluster,
            ),
            theme.side_by_side(
                theme.card(matrix.title, self.matrix), theme.card(site.title, self.site), few=True
            ),
            theme.card("Communication of one step", self.table),
            theme.card("What crosses each edge of the fabric in one step", self.edges),
            theme.side_by_side(
                theme.stack(
                    theme.card("On the wire: exposed, and hidden", self.chart),
                    theme.card("The network", self.tiers),
                ),
                theme.card("Why this plan", self.why),
                few=True,
            ),
            theme.card("Other topologies for the same devices", self.others),
            theme.card("Settings of the fabric", self.settings),
        ]

    def draw(self):
        given, result = self.session.now.given, self.session.now.result
        self.placement, network = (part(result, x).as_dict() for x in ("placement", "network"))
        self._show_nodes()
        matrix.show(self.matrix, given, network=network)
        site.show(self.site, given, placement=self.placement)
        rows = given.get("communication") or []
        self.table.fill([[_cell(c, row.get(c)) for c in _COLUMNS] for row in rows], rows)
        if given.get("step_breakdown_s"):
            traffic.show(self.chart, given)
        self.tiers.value = theme.lines([*facts(network), *self.placement["notes"]])
        self.why.value = (
            theme.lines(w["text"] for w in given.get("why") or [])
            or "<p class='sd-dim'>No remarks.</p>"
        )
        edges = network.get("crossings") or []
        self.edges.fill(
            [
                [
                    cell(_EDGES.get(e["edge"], e["edge"])),
                    cell(f"{e['blocks']:,}", e["blocks"]),
                    *(_bytes(e["by_axis"].get(a)) for a in _AXES),
                    *(cell(show(f"blueprint.crossings.{k}", e[k]), e[k], key=k) for k in _LOADS),
                ]
                for e in edges
            ],
            edges,
        )
        others = [{**o["topology"], **o} for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.fill(
            [
                [
                    cell(o["what"]),
                    *(
                        cell(_said(k, o), o[k], key=k if o[k] is not None else "")
                        for k in _OTHERS[1:]
                    ),
                ]
                for o in others
            ],
            others,
        )
        self.settings.rows = [[s["what"], s["choice"], s["why"]] for s in network["settings"]]

    def _show_nodes(self) -> None:
        by = self.by.value
        self.cluster.spec = nodes[by].spec(True)
        nodes[by].show(self.cluster, self.session.now.given, placement=self.placement, by=by)
        p = self.placement
        self.note.value = (
            f"<span class='sd-dim'>{_count(p['devices'], 'device')}: "
            f"{_count(p['node_count'], 'node')} of {p['per_node']}, "
            f"{_count(p['unit_count'], 'leaf unit')}, {_count(p['pod_count'], 'pod')}; "
            f"ranks in order "
            f"{'-'.join(p['order'])}. {drawn(p, by)}</span>"
        )


def _count(n, what) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _bytes(value):
    return cell(quantities.shown(value, "bytes") if value else "—", value)


def _said(key, row) -> str:
    value = row[key]
    if key == "step_change":
        return (
            "as designed"
            if row["chosen"]
            else "the same"
            if abs(value or 0) < 1e-4
            else ("+" if value > 0 else "−") + show("blueprint.topologies.step_change", abs(value))
        )
    return show(f"blueprint.topologies.{key}", value)


def _cell(column, value):
    text = (
        str(value).upper()
        if column == "axis" and len(str(value)) == 2
        else show(f"communication.{column}", value)
    )
    return cell(text, value, key="" if column in _LEFT else f"communication.{column}")
