"""Days and dollars: this design's bill, and the same design on more and fewer devices."""

from ...charts.plans import frontier
from ...words import label, show
from .. import headline, studies
from ..background import Job
from ..table import cell
from .base import Panel
from .reliability import numbers

_CARBON = "cost.carbon_kg"
_WHERE = {"tokens": "Tokens under Job", "a price": "Price under Failures, prices, measured"}


class Cost(Panel):
    title = "Cost"
    of_a_run = True

    figures = {"chart": frontier}

    def begin(self):
        self.points, self.of = [], None
        self.job = Job("Sweep device counts", self._start, self._step, self.ended)
        self.chart.on_pick(self._pick)

    def opened(self):
        self.job.run()

    def draw(self):
        lacks = headline.lacking(self.given)
        self.why.hidden = not lacks
        self.why.value = f"<p>Dollars need {lacks}: set {_WHERE[lacks]}.</p>" if lacks else ""
        cost = self.given.get("cost") or {}
        rows, carbon = numbers("cost", cost), _carbon(cost.get("carbon_kg") or {})
        facts = [*({} for _ in rows), *({"carbon_kg": kg} for kg in carbon.values())]
        rows += [
            [f"{label(_CARBON)}, {place}", cell(show(_CARBON, kg), kg, key=_CARBON)]
            for place, kg in carbon.items()
        ]
        self.bill.fill(rows, facts)
        self._show_sweep()

    def _start(self):
        self.of, self.points = self.now, []
        return studies.device_counts(self.session.judge, self.of.design, self.of.resolved.cluster)

    def _step(self, point) -> None:
        if point is not None:
            self.points.append(point)
            self._show_sweep()

    def _stale(self) -> bool:
        """Whether the sweep is of a design that differs in more than its device count."""
        if not self.points:
            return False
        of, now = (m.design.change({"cluster.devices": 1}) for m in (self.of, self.now))
        return of != now

    def _show_sweep(self) -> None:
        self.picture("chart", points=self.points)
        self.sweep.note = "Swept for an earlier design; sweep again." if self._stale() else ""
        names = self.sweep.names[1:]
        rows = [
            [cell(f"{p['devices']:,}", p["devices"]), *self.sweep.cells(p["given"], names)]
            for p in self.points
        ]
        self.sweep.fill(rows, [p["given"] for p in self.points])

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self.points):
            self.choose({"cluster.devices": self.points[index]["devices"]})


def _carbon(kg: dict) -> dict[str, float]:
    """Carbon of the world's mean grid, and of the cleanest and the dirtiest."""
    places = ("world", min(kg, key=kg.get), max(kg, key=kg.get)) if kg else ()
    return {place.replace("-", " "): kg[place] for place in places}
