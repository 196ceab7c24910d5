"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from __future__ import annotations

from scantling.base.show import several
from scantling.cluster import part

from .. import theme
from ..charts_network import VIEWS, drawn, facts, matrix, nodes, site
from ..report.charts import AXES, traffic
from ..table import Table, cell, cells, columns
from ..words import quantities, show
from .base import Panel

_LEFT = ("axis", "what", "tier")
_COLUMNS = ("axis", "what", "group", "tier", "bytes", "calls", "time_s", "exposed_s")
_NUMBERS = [name for name in _COLUMNS if name not in _LEFT]
_OTHERS = (
    *("what", "switches", "all_cables", "bisection_bytes_per_s"),
    *("usd", "usd_per_device", "step_change", "run_usd"),
)
_EDGES = {
    "domains": "between scale-up domains",
    "units": "between leaf units",
    "pods": "between pods",
    "sites": "between sites",
}
_CROSSINGS = "blueprint.crossings."
_LOADS = ("bytes", "capacity_bytes_per_s", "busy_s", "busy_share")
_SETTINGS = {"what": "What", "choice": "Choice", "why": "Why"}
# what a topology opens to, beside its formula
_OWN = {
    "Of": "what",
    "Kind": "kind",
    "Tiers": "tiers",
    "Ports of a switch": "radix",
    "Mean hops": "mean_hops",
    "Transceivers": "transceivers",
    "Source": "source",
}


class Network(Panel):
    title = "Network"

    def build(self):
        self.by = theme.drop("Show", ((text, by) for by, text in VIEWS.items()), "360px", "42px")
        self.by.observe(lambda _: self._show_nodes(), "value")
        self.note, self.tiers, self.why = theme.text(), theme.text(), theme.text()
        self.cluster, self.site = nodes["pp"].live(legend=True), site.live(legend=True)
        self.matrix, self.chart = matrix.live(), traffic.live(legend=True)
        self.table = Table(
            "Communication of one step",
            file_name="communication",
            empty="No communication: one device.",
            explain=self.explain,
            columns=columns(_COLUMNS, "communication.", left=_LEFT, wrap=("what",)),
        )
        self.others = Table(
            "Other topologies for the same devices",
            file_name="topologies",
            columns=columns(_OTHERS, "blueprint.topologies.", left=("what",), wrap=("what",)),
            explain=self.explain_row("topologies", _said, _OWN),
        )
        self.edges = Table(
            "What crosses each edge of the fabric in one step",
            file_name="crossings",
            sortable=False,
            empty="Nothing leaves a scale-up domain.",
            columns=columns(
                ("edge", "blocks", *AXES, *_LOADS),
                _CROSSINGS,
                left=("edge",),
                labels={axis: axis.upper() for axis in AXES},
            ),
            explain=self.explain_row(
                "crossings", lambda key, row: show(_CROSSINGS + key, row[key]), {"Of": "edge"}
            ),
        )
        self.settings = Table(
            "Settings of the fabric",
            file_name="fabric-settings",
            sortable=False,
            columns=columns(_SETTINGS, left=_SETTINGS, wrap=("choice", "why"), labels=_SETTINGS),
        )
        card, beside = theme.card, theme.side_by_side
        return [
            card("The cluster, drawn", theme.row(self.by, self.note), self.cluster),
            beside(card(matrix.title, self.matrix), card(site.title, self.site), few=True),
            card(self.table.label, self.table),
            card(self.edges.label, self.edges),
            beside(
                theme.stack(
                    card("On the wire: exposed, and hidden", self.chart),
                    card("The network", self.tiers),
                ),
                card("Why this plan", self.why),
                few=True,
            ),
            card(self.others.label, self.others),
            card(self.settings.label, self.settings),
        ]

    def draw(self):
        given, result = self.given, self.session.now.result
        self.placement, network = (part(result, n).as_dict() for n in ("placement", "network"))
        self._show_nodes()
        matrix.show(self.matrix, given, network=network)
        site.show(self.site, given, placement=self.placement)
        rows = given.get("communication") or []
        self.table.fill([_communication(row) for row in rows], rows)
        if given.get("step_breakdown_s"):
            traffic.show(self.chart, given)
        self.tiers.value = theme.lines([*facts(network), *self.placement["notes"]])
        why = [row["text"] for row in given.get("why") or []]
        self.why.value = theme.lines(why) if why else "<p class='sd-dim'>No remarks.</p>"
        edges = network.get("crossings") or []
        self.edges.fill([_edge(edge) for edge in edges], edges)
        others = [{**o["topology"], **o} for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.fill([_topology(o) for o in others], others)
        self.settings.rows = [[s[key] for key in _SETTINGS] for s in network["settings"]]

    def _show_nodes(self) -> None:
        by, p = self.by.value, self.placement
        self.cluster.spec = nodes[by].spec(True)
        nodes[by].show(self.cluster, self.given, placement=p, by=by)
        self.note.value = theme.dim(
            f"{several(p['devices'], 'device')}: {several(p['node_count'], 'node')} of "
            f"{p['per_node']}, {several(p['unit_count'], 'leaf unit')}, "
            f"{several(p['pod_count'], 'pod')}; ranks in order {'-'.join(p['order'])}. "
            f"{drawn(p, by)}"
        )


def _communication(row) -> list[dict]:
    axis, *rest = cells(row, _COLUMNS, "communication.", opens=_NUMBERS)
    name = str(row["axis"])
    return [cell(name.upper() if len(name) == 2 else axis["text"], row["axis"]), *rest]


def _edge(edge) -> list[dict]:
    sent = [edge["by_axis"].get(axis) for axis in AXES]
    return [
        cell(_EDGES.get(edge["edge"], edge["edge"])),
        cell(f"{edge['blocks']:,}", edge["blocks"]),
        *(cell(quantities.shown(n, "bytes") if n else "—", n) for n in sent),
        *(cell(show(_CROSSINGS + key, edge[key]), edge[key], key=key) for key in _LOADS),
    ]


def _topology(o) -> list[dict]:
    figures = ((key, o[key]) for key in _OTHERS[1:])
    return [
        cell(o["what"]),
        *(cell(_said(k, o), v, key="" if v is None else k) for k, v in figures),
    ]


def _said(key, row) -> str:
    value, name = row[key], f"blueprint.topologies.{key}"
    if key != "step_change":
        return show(name, value)
    if row["chosen"]:
        return "as designed"
    if abs(value or 0) < 1e-4:
        return "the same"
    return ("+" if value > 0 else "−") + show(name, abs(value))
