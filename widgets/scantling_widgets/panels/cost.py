"""Days and dollars: this design's bill, and the same design on more and fewer devices."""

from __future__ import annotations

from .. import headline, studies, theme
from ..background import Job
from ..charts_plans import frontier
from ..table import Table, cell
from ..words import label, show
from .base import Panel
from .reliability import numbers

_COLUMNS = ("devices_used", "mfu", "days", "cost_usd", "goodput", "verdict")


class Cost(Panel):
    title = "Cost"

    def build(self):
        self.points: list[dict] = []
        self.of = None
        self.job = Job("Sweep device counts", self._start, self._step, self._end)
        self.chart = frontier.live()
        self.why = theme.text()
        self.bill = Table(
            "The bill",
            file_name="cost",
            sortable=False,
            explain=self.explain,
            columns=[
                {"key": "what", "label": "Quantity", "align": "left"},
                {"key": "value", "label": "Value", "wrap": True},
            ],
        )
        self.sweep = Table(
            "Device counts",
            self._pick,
            action="Use this many devices",
            file_name="device-counts",
            empty="Not swept yet.",
            explain=self.explain_alone,
            columns=[
                {"key": "devices", "label": "Devices", "align": "left"},
                *({"key": c, "label": label(c)} for c in _COLUMNS),
            ],
        )
        self.chart.on_pick(self._pick)
        self.bill.add_class("sd-keys")
        return [
            self.why,
            self.job,
            theme.side_by_side(
                theme.card(frontier.title, self.chart), theme.card("The bill", self.bill), few=True
            ),
            theme.card("Device counts", self.sweep),
        ]

    def opened(self):
        self.job.run()

    def draw(self):
        given = self.session.now.given
        lacks = headline.lacking(given)
        self.why.layout.display = "" if lacks else "none"
        self.why.value = (
            (
                f"<p>Dollars need {lacks}: set "
                f"{'Tokens under Job' if lacks == 'tokens' else 'Price under Failures, prices, measured'}.</p>"
            )
            if lacks
            else ""
        )
        rows = numbers("cost", given.get("cost") or {})
        carbon = (given.get("cost") or {}).get("carbon_kg") or {}
        places = (
            list(dict.fromkeys(("world", min(carbon, key=carbon.get), max(carbon, key=carbon.get))))
            if carbon
            else []
        )
        self.bill.fill(
            [
                *rows,
                *(
                    [
                        f"{label('cost.carbon_kg')}, {place.replace('-', ' ')}",
                        cell(
                            show("cost.carbon_kg", carbon[place]),
                            carbon[place],
                            key="cost.carbon_kg",
                        ),
                    ]
                    for place in places
                ),
            ],
            [*({} for _ in rows), *({"carbon_kg": carbon[place]} for place in places)],
        )
        self._show_sweep()

    def _start(self):
        self.of = self.session.now
        self.points = []
        return studies.device_counts(self.session.judge, self.of.design, self.of.resolved.cluster)

    def _step(self, point) -> None:
        if point is not None:
            self.points.append(point)
            self._show_sweep()

    def _end(self, error) -> None:
        if error is not None:
            self.session.report(error)
            self.session.tell()

    def _show_sweep(self) -> None:
        given = self.session.now.given
        frontier.show(self.chart, given, points=self.points)
        stale = (
            self.of is not None
            and self.of.design.change({"cluster.devices": 1})
            != self.session.now.design.change({"cluster.devices": 1})
            if self.points
            else False
        )
        self.sweep.note = "Swept for an earlier design; sweep again." if stale else ""
        self.sweep.fill(
            [
                [
                    cell(f"{p['devices']:,}", p["devices"]),
                    *(cell(show(c, p["given"].get(c)), p["given"].get(c), key=c) for c in _COLUMNS),
                ]
                for p in self.points
            ],
            [p["given"] for p in self.points],
        )

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self.points):
            self.choose({"cluster.devices": self.points[index]["devices"]})
