"""Who talks to whom: the cluster drawn, axis by tier, every axis of the plan with volume, time and
the part that is not hidden."""

from scantling.base.show import several, size
from scantling_site import part

from ...charts.network import AXES, VIEWS, drawn, facts, matrix, nodes, site, traffic
from ...words import show
from .. import theme
from .base import Panel

_EDGES = {
    "domains": "between scale-up domains",
    "units": "between leaf units",
    "pods": "between pods",
    "sites": "between sites",
}


class Network(Panel):
    title = "Network"

    figures = {"cluster": nodes["pp"], "site": site, "matrix": matrix, "chart": traffic}

    options = {"by": [(text, by) for by, text in VIEWS.items()]}

    def begin(self):
        self.by.on("index", lambda _: self._show_nodes())

    def draw(self):
        given, result = self.given, self.now.result
        self.placement, network = (part(result, n).as_dict() for n in ("placement", "network"))
        self._show_nodes()
        self.picture("matrix", network=network)
        self.picture("site", placement=self.placement)
        self.table.show(given["communication"])
        self.picture("chart")
        self.tiers.value = theme.lines([*facts(network), *self.placement["notes"]])
        self.why.value = theme.lines(row["text"] for row in given["why"])
        self.edges.show([edge | edge["by_axis"] for edge in network["crossings"]])
        others = [o["topology"] | o for o in network["alternatives"]]
        self.others.chosen = next((i for i, o in enumerate(others) if o["chosen"]), -1)
        self.others.show(others)
        self.settings.rows = [[s[key] for key in self.settings.names] for s in network["settings"]]

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

    def cell_text(self, key: str, row) -> str:
        name = key.rpartition(".")[2]
        value = row.get(name)
        if key == "communication.axis" and len(value) == 2:
            return value.upper()
        if name == "edge":
            return _EDGES.get(value, value)
        if name in AXES:
            return size(value) if value else "—"
        if name != "step_change":
            return super().cell_text(key, row)
        if row["chosen"]:
            return "as designed"
        if abs(value or 0) < 1e-4:
            return "the same"
        return ("+" if value > 0 else "−") + show(key, abs(value))
