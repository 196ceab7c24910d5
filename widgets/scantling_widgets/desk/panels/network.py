"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.base.show import several, size
from scantling_site import part

from ...charts.network import AXES, VIEWS, drawn, facts, matrix, nodes, site, traffic
from ...charts.parts import Drop, Part
from ...words import show
from .. import tables, theme
from ..legend import Facts
from .base import Panel

_EDGES = {
    "domains": "between scale-up domains",
    "units": "between leaf units",
    "pods": "between pods",
    "sites": "between sites",
}


class Network(Panel):
    title = "Network"

    charts = (*nodes.values(), site, matrix, traffic)

    def build(self) -> Sequence[Part]:
        self.placement: Mapping[str, Any] = {}
        self.note, self.tiers, self.why = theme.text(), theme.text(), theme.text()
        self.table = self.list_of(tables.COMMUNICATION)
        self.others = self.list_of(tables.TOPOLOGIES)
        self.edges = self.list_of(tables.CROSSINGS)
        self.settings = self.list_of(tables.FABRIC_SETTINGS)
        self.cluster = nodes["pp"].live(legend=True)
        self.site, self.matrix = site.live(legend=True), matrix.live()
        self.chart = traffic.live(legend=True)
        self.by = Drop("Show", [(text, by) for by, text in VIEWS.items()])
        self.by.on("index", lambda _: self._show_nodes())
        return [
            theme.card(
                "The cluster, drawn",
                theme.row(self.by, self.note),
                self.cluster,
                see="Devices of one colour talk to each other along this axis: the closer they "
                "stand, the cheaper it is.",
            ),
            theme.few_columns(
                theme.card(
                    matrix.title,
                    theme.box("sd-wide-chart", self.matrix),
                    see="The darkest cell costs most time; the step waits for its last line.",
                ),
                theme.card(
                    site.title,
                    self.site,
                    see="Which replicas share a building and a power feed, and so fail together.",
                ),
            ),
            theme.card(
                self.table.label,
                self.table,
                see="Exposed is what the step waits for; a volume that is hidden costs nothing.",
            ),
            theme.card(
                self.edges.label,
                self.edges,
                see="An edge that is busy for more than half of the step becomes the limit when "
                "the cluster grows.",
            ),
            theme.few_columns(
                theme.stack(
                    theme.card(
                        "On the wire: exposed, and hidden",
                        self.chart,
                        see="Only the solid part lengthens the step.",
                    ),
                    theme.card(
                        "The network",
                        self.tiers,
                        see="What has to be bought and cabled for this plan.",
                    ),
                ),
                theme.card(
                    "Why this plan",
                    self.why,
                    see="Each axis with what it costs to move it by one step.",
                ),
            ),
            theme.card(
                self.others.label,
                self.others,
                see="Whether a cheaper fabric would lengthen the step, and by how much.",
            ),
            theme.card(
                self.settings.label,
                self.settings,
                see="What to hand to whoever configures the switches.",
            ),
        ]

    def draw(self) -> None:
        figures, result = self.figures, self.now.result
        self.placement, network = (part(result, n).as_dict() for n in ("placement", "network"))
        self._show_nodes()
        matrix.show(self.matrix, figures, network=network)
        site.show(self.site, figures, placement=self.placement)
        self.table.show(figures["communication"])
        traffic.show(self.chart, figures)
        self.tiers.value = theme.lines([*facts(network), *self.placement["notes"]])
        self.why.value = theme.lines(row["text"] for row in figures["why"])
        self.edges.show([edge | edge["by_axis"] for edge in network["crossings"]])
        others = [o["topology"] | o for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.show(others)
        self.settings.rows = [[s[key] for key in self.settings.names] for s in network["settings"]]

    def _show_nodes(self) -> None:
        by, p = self.by.value, self.placement
        self.cluster.spec = nodes[by].spec(True)
        nodes[by].show(self.cluster, self.figures, placement=p, by=by)
        self.note.value = theme.dim(
            f"{several(p['devices'], 'device')}: {several(p['node_count'], 'node')} of "
            f"{p['per_node']}, {several(p['unit_count'], 'leaf unit')}, "
            f"{several(p['pod_count'], 'pod')}; ranks in order {'-'.join(p['order'])}. "
            f"{drawn(p, by)}"
        )

    def cell_text(self, key: str, row: Facts) -> str:
        name = key.rpartition(".")[2]
        value = row.get(name)
        if key == "communication.axis" and len(row["axis"]) == 2:
            return str(row["axis"]).upper()
        if name == "edge":
            return _EDGES.get(row["edge"], str(row["edge"]))
        if name in AXES:
            return size(value) if value else "—"
        if name != "step_change":
            return super().cell_text(key, row)
        if row["chosen"]:
            return "as designed"
        if value is None or abs(value) < 1e-4:
            return "the same"
        return ("+" if value > 0 else "−") + show(key, abs(value))
