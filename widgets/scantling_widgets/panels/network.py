"""Who talks to whom: every axis of the plan with its group, tier, volume, time and the part that is not hidden."""
from __future__ import annotations

from .. import theme
from ..table import Table, cell
from ..words import label, quantities, show
from .base import Panel

_COLUMNS = ("axis", "what", "group", "tier", "bytes", "calls", "time_s", "exposed_s")
_LEFT = ("axis", "what", "tier")


class Network(Panel):
    title = "Network"

    def build(self):
        from ..report.charts import traffic

        self.traffic = traffic
        self.table = Table("Communication of one step", file_name="communication", empty="No communication: one device.", explain=self.explain,
                           columns=[{"key": c, "label": label(f"communication.{c}"), "align": "left" if c in _LEFT else "", "wrap": c == "what"} for c in _COLUMNS])
        self.chart = traffic.live(legend=True)
        self.tiers = theme.text()
        self.why = theme.text()
        return [self.table, theme.side_by_side(theme.card(traffic.title, self.chart), theme.card("The cluster", self.tiers), theme.card("Why this plan", self.why))]

    def draw(self):
        given = self.session.now.given
        rows = given.get("communication") or []
        self.table.fill([[_cell(c, row.get(c)) for c in _COLUMNS] for row in rows], rows)
        if given.get("step_breakdown_s"):
            self.traffic.show(self.chart, given)
        self.tiers.value = tiers(self.session.now.resolved.cluster)
        self.why.value = theme.lines(w["text"] for w in given.get("why") or []) or "<p class='sd-dim'>No remarks.</p>"


def _cell(column, value):
    text = str(value).upper() if column == "axis" and len(str(value)) == 2 else show(f"communication.{column}", value)
    return cell(text, value, key="" if column in _LEFT else f"communication.{column}")


def tiers(cluster) -> str:
    """The cluster from the device outwards, as a list."""
    rate = lambda v: quantities.shown(v, "bytes_per_s")
    items = [
        f"{cluster.devices:,} × {cluster.accelerator.name} in {cluster.nodes:,} nodes of {cluster.devices_per_node}",
        f"scale-up: {cluster.scale_up}, {cluster.scale_up_domain} devices to a domain, {rate(cluster.scale_up_bytes_per_s)} per device, one direction",
        f"scale-out: {cluster.scale_out}, {rate(cluster.scale_out_bytes_per_s)} per device, one direction, {cluster.nics_per_node} NICs to a node",
        f"oversubscription {cluster.oversubscription:g} : 1" + (f"; pods of {cluster.pod_devices:,} devices" if cluster.pod_devices and cluster.pod_devices < cluster.devices else ""),
    ]
    if cluster.sites > 1:
        items.append(f"{cluster.sites} sites")
    return theme.lines(items)
