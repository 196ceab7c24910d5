"""Days and dollars: this design's bill, and the same design on more and fewer devices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scantling.base.quantities.quantity import show

from ...charts.page_parts import Part
from ...charts.plans import frontier
from ...quantity_texts import label
from .. import boxes, headline, panel_tables, studies
from ..background import Job
from ..page_table import Row, cell
from ..session import Moment
from .base import Panel, table_card
from .reliability import numbers

_CARBON = "cost.carbon_kg"
_PRICE = "prices.usd_per_device_hour"
_RESTS = "Price rests on"
_LIKELY = ("days", "cost_usd")
_READ_AT = ("price_source", "carbon_source")
_WHERE = {"tokens": "Tokens under Design", "a price": "Price under Failures, prices, measured"}


class Cost(Panel):
    title = "Cost"
    of_a_run = True

    charts = (frontier,)

    def build(self) -> Sequence[Part]:
        self.points: list[studies.Point] = []
        self.of: Moment | None = None
        self.why = boxes.text()
        self.bill = self.list_of(panel_tables.COST)
        self.sweep = self.choice_of(panel_tables.DEVICE_COUNTS, self._pick)
        self.job = Job("Sweep device counts", self._start, self._step, self.ended)
        self.chart = frontier.live()
        self.chart.on_pick(self._pick)
        return [
            self.why,
            self.job,
            boxes.few_columns(
                boxes.card(
                    frontier.title,
                    self.chart,
                    see="Along the lower left edge more devices buy days with dollars; a point "
                    "above it is dearer than it need be.",
                ),
                table_card(
                    self.bill, see="What the dollars are made of; each number opens to its formula."
                ),
            ),
            table_card(
                self.sweep,
                see="Where MFU falls from one row to the next the batch no longer divides, or the "
                "network takes over.",
            ),
        ]

    def opened(self) -> None:
        self.job.run()

    def draw(self) -> None:
        lacks = headline.lacking(self.figures)
        self.why.hidden = not lacks
        self.why.value = f"<p>Dollars need {lacks}: set {_WHERE[lacks]}.</p>" if lacks else ""
        cost = self.figures.get("cost")
        carbon = _carbon(cost["carbon_kg"] if cost else {})
        of_carbon: list[Row] = [
            [f"{label(_CARBON)}, {place}", cell(show(_CARBON, kg), kg, key=_CARBON)]
            for place, kg in carbon.items()
        ]
        facts: Mapping[str, Any] = cost or {}
        likely: Mapping[str, Any] = self.figures.get("likely") or {}
        money: list[Row] = [
            *numbers("likely", {name: likely.get(name) for name in _LIKELY}),
            *numbers("cost", {name: facts[name] for name in facts if name not in _READ_AT}),
        ]
        assumed = facts.get("assumed", ())
        rests: list[Row] = [[_RESTS, cell(a["why"])] for a in assumed if a["field"] == _PRICE]
        sources: list[Row] = [
            *rests,
            *numbers("cost", {name: facts.get(name) for name in _READ_AT}),
        ]
        self.bill.fill(
            [*money, *of_carbon, *sources],
            [*({} for _ in money), *({"carbon_kg": kg} for kg in carbon.values())],
        )
        self._show_sweep()

    def _start(self) -> tuple[int, Iterator[studies.Point | None]]:
        self.of, self.points = self.now, []
        return studies.device_counts(self.session.judge, self.of.design, self.of.resolved.cluster)

    def _step(self, point: studies.Point | None) -> None:
        if point is not None:
            self.points.append(point)
            self._show_sweep()

    def _stale(self) -> bool:
        """Whether the sweep is of a design that differs in more than its device count."""
        if not self.points or self.of is None:
            return False
        one = {"cluster.devices": 1}
        return self.of.design.change(one) != self.now.design.change(one)

    def _show_sweep(self) -> None:
        frontier.show(self.chart, self.figures, points=self.points)
        self.sweep.note = "Swept for an earlier design; sweep again." if self._stale() else ""
        names = self.sweep.names[1:]
        rows: list[Row] = [
            [cell(f"{p['devices']:,}", p["devices"]), *self.sweep.cells(p["figures"], names)]
            for p in self.points
        ]
        self.sweep.fill(rows, [p["figures"] for p in self.points])

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self.points):
            self.choose({"cluster.devices": self.points[index]["devices"]})


def _carbon(kg: Mapping[str, float]) -> dict[str, float]:
    """Carbon of the world's mean grid, and of the cleanest and the dirtiest."""
    if not kg:
        return {}
    by_mass = sorted(kg, key=lambda place: kg[place])
    places = ("world", by_mass[0], max(kg, key=lambda place: kg[place]))
    return {place.replace("-", " ").capitalize(): kg[place] for place in places}
