"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from __future__ import annotations

from scantling.base.show import several
from scantling.cluster import part

from .. import theme
from ..charts_network import VIEWS, drawn, facts, matrix, nodes, site
from ..report.charts import AXES, traffic
from ..table import cell
from ..words import quantities, show
from .base import Panel

_EDGES = {
    "domains": "between scale-up domains",
    "units": "between leaf units",
    "pods": "between pods",
    "sites": "between sites",
}


class Network(Panel):
    title = "Network"

    figures = {
        "cluster": nodes["pp"],
        "site": site,
        "matrix": matrix,
        "chart": traffic,
    }

    options = {"by": [(text, by) for by, text in VIEWS.items()]}

    def begin(self):
        self.by.on("index", lambda _: self._show_nodes())

    def draw(self):
        given, result = self.given, self.session.now.result
        self.placement, network = (part(result, n).as_dict() for n in ("placement", "network"))
        self._show_nodes()
        self.picture("matrix", network=network)
        self.picture("site", placement=self.placement)
        rows = given.get("communication") or []
        self.table.fill([self._communication(row) for row in rows], rows)
        if given.get("step_breakdown_s"):
            self.picture("chart")
        self.tiers.value = theme.lines([*facts(network), *self.placement["notes"]])
        why = [row["text"] for row in given.get("why") or []]
        self.why.value = theme.lines(why) if why else "<p class='sd-dim'>No remarks.</p>"
        edges = network.get("crossings") or []
        self.edges.fill([self._edge(edge) for edge in edges], edges)
        others = [o["topology"] | o for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.fill([self._topology(o) for o in others], others)
        self.settings.rows = [[s[key] for key in self.settings.names] for s in network["settings"]]

    def _communication(self, row) -> list[dict]:
        axis, *rest = self.table.cells(row)
        name = str(row["axis"])
        return [cell(name.upper() if len(name) == 2 else axis["text"], row["axis"]), *rest]

    def _edge(self, edge) -> list[dict]:
        names, sent = self.edges.names, [edge["by_axis"].get(axis) for axis in AXES]
        loads = ((key, self.edges.prefix + key) for key in names[2 + len(AXES) :])
        return [
            cell(_EDGES.get(edge["edge"], edge["edge"])),
            cell(f"{edge['blocks']:,}", edge["blocks"]),
            *(cell(quantities.shown(n, "bytes") if n else "—", n) for n in sent),
            *(
                cell(
                    show(name, edge[key]),
                    edge[key],
                    key=key,
                )
                for key, name in loads
            ),
        ]

    def _topology(self, o) -> list[dict]:
        figures = (
            (key, o[key], self.cell_text(self.others.prefix + key, o)) for key in self.others.names
        )
        first, *rest = (
            cell(
                said,
                v,
                key="" if v is None else k,
            )
            for k, v, said in figures
        )
        return [cell(o["what"]), *rest]

    def _show_nodes(self) -> None:
        by, p = self.by.value, self.placement
        self.cluster.spec = nodes[by].spec(True)
        nodes[by].show(
            self.cluster,
            self.given,
            placement=p,
            by=by,
        )
        self.note.value = theme.dim(
            f"{several(p['devices'], 'device')}: {several(p['node_count'], 'node')} of "
            f"{p['per_node']}, {several(p['unit_count'], 'leaf unit')}, "
            f"{several(p['pod_count'], 'pod')}; ranks in order {'-'.join(p['order'])}. "
            f"{drawn(p, by)}"
        )

    def cell_text(
        self,
        key: str,
        row,
    ) -> str:
        if not key.endswith(".step_change"):
            return super().cell_text(key, row)
        value = row["step_change"] or 0
        if row["chosen"]:
            return "as designed"
        if abs(value) < 1e-4:
            return "the same"
        return ("+" if value > 0 else "−") + show(key, abs(value))
