"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.base.quantities.quantity import show
from scantling.base.show import several, size
from scantling.physics.step import AXES
from scantling_site import part

from ...charts.network import VIEWS, drawn, facts, matrix, nodes, site, traffic
from ...charts.page_parts import Drop, Part
from .. import boxes, panel_tables
from ..legend import Facts
from .base import Panel, table_card

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
        self.note, self.tiers, self.why = boxes.text(), boxes.text(), boxes.text()
        self.table = self.list_of(panel_tables.COMMUNICATION)
        self.others = self.list_of(panel_tables.TOPOLOGIES)
        self.edges = self.list_of(panel_tables.CROSSINGS)
        self.settings = self.list_of(panel_tables.FABRIC_SETTINGS)
        self.cluster = nodes["pp"].live(legend=True)
        self.site, self.matrix = site.live(legend=True), matrix.live()
        self.chart = traffic.live(legend=True)
        self.by = Drop("Show", [(text, by) for by, text in VIEWS.items()])
        self.by.on("index", lambda _: self._show_nodes())
        return [
            boxes.card(
                "The cluster, drawn",
                boxes.row(self.by, self.note),
                self.cluster,
                see="Devices of one colour talk to each other along this axis: the closer they "
                "stand, the cheaper it is.",
            ),
            boxes.few_columns(
                boxes.card(
                    matrix.title,
                    boxes.box("sd-wide-chart", self.matrix),
                    see="The stronger the colour, the longer it takes; the step waits for the time "
                    "on the last line.",
                ),
                boxes.card(
                    site.title,
                    self.site,
                    see="Which replicas share a building and a power feed, and so fail together.",
                ),
            ),
            table_card(
                self.table,
                see="Exposed is what the step waits for; a volume that is hidden costs nothing.",
            ),
            table_card(
                self.edges,
                see="An edge that is busy for more than half of the step becomes the limit when "
                "the cluster grows.",
            ),
            boxes.few_columns(
                boxes.stack(
                    boxes.card(
                        "On the wire: exposed, and hidden",
                        self.chart,
                        see="Only the solid part lengthens the step.",
                    ),
                    boxes.card(
                        "The network",
                        self.tiers,
                        see="What has to be bought and cabled for this plan.",
                    ),
                ),
                boxes.card(
                    "Why this plan",
                    self.why,
                    see="Each axis with what it costs to move it by one step.",
                ),
            ),
            table_card(
                self.others,
                see="Whether a cheaper fabric would lengthen the step, and by how much.",
            ),
            table_card(self.settings, see="What to hand to whoever configures the switches."),
        ]

    def draw(self) -> None:
        figures, result = self.figures, self.now.assessment
        self.placement, network = (part(result, n).as_dict() for n in ("placement", "network"))
        self._show_nodes()
        matrix.show(self.matrix, figures, network=network)
        site.show(self.site, figures, placement=self.placement)
        self.table.show(figures["communication"])
        traffic.show(self.chart, figures)
        self.tiers.value = boxes.lines([*facts(network), *self.placement["notes"]])
        self.why.value = boxes.lines(row["text"] for row in figures["why"])
        self.edges.show([edge | edge["by_axis"] for edge in network["crossings"]])
        others = [o["topology"] | o for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.show(others)
        self.settings.rows = [[s[key] for key in self.settings.names] for s in network["settings"]]

    def _show_nodes(self) -> None:
        by, p = self.by.value, self.placement
        self.cluster.spec = nodes[by].spec(True)
        nodes[by].show(self.cluster, self.figures, placement=p, by=by)
        self.note.value = boxes.dim(
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
