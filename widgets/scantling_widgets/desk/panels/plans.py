"""The leaderboard: the best plans that fit, why others were refused, and one click to take one."""

from collections.abc import Sequence

from scantling.base.quantities.quantity import show
from scantling.design.schema import PlanSpec

from ...charts.page_parts import Part
from ...charts.plans import candidates
from ...quantity_texts import in_text
from .. import boxes, panel_tables
from ..page_table import cell
from .base import Panel, table_card

_LISTED = 50  # the picture beside the table shows them all
# left out where all plans have the same
_SELDOM = ("cp", "vpp", "ep", "etp", "recompute_modules", "devices_used")
# these follow from the rest of a plan, or are no pin of it
_FREE = {"dp", "grad_accum", "shard_group", "precision", "sp"}
_PINS = set(PlanSpec.model_fields) - _FREE


class Plans(Panel):
    title = "Plans"

    charts = (candidates,)

    def build(self) -> Sequence[Part]:
        self.table = self.choice_of(panel_tables.PLANS, self._pick)
        self.rejected = self.list_of(panel_tables.PLANS_REFUSED)
        self.chart = candidates.live()
        self.chart.on_pick(self._pick)
        return [
            table_card(
                self.table,
                see="How little the next plans are slower, and what they free: a plan that is 1 % "
                "slower with 20 % more memory left is the one to start with.",
            ),
            boxes.columns(
                boxes.card(
                    candidates.title,
                    self.chart,
                    see="Low is faster, left is leaner: the plans along the lower left edge are "
                    "the ones to choose among.",
                ),
                boxes.card(
                    "Refused",
                    self.rejected,
                    see="The rule that takes out most plans is the one to relax first.",
                ),
            ),
        ]

    def draw(self) -> None:
        figures = self.figures
        self._plans, plan = figures["candidates"], figures["plan"]
        listed = self._plans[:_LISTED]
        table = self.table
        shown = [
            c for c in table.names if c not in _SELDOM or len({str(p.get(c)) for p in listed}) > 1
        ]
        pins = [c for c in table.names if not table.spec.open_to_formula(c)]
        table.columns = table.headed(["rank", *shown])
        rows = [[cell(f"{i + 1}", i + 1), *table.cells(p, shown)] for i, p in enumerate(listed)]
        table.fill(rows, listed)
        own = (i for i, p in enumerate(listed) if all(p.get(c) == plan.get(c) for c in pins))
        table.chosen = next(own, -1)
        timed, legal = (in_text(figures, key) for key in ("evaluated", "legal"))
        table.note = f"The best of {timed} timed, {legal} legal."
        rejected = sorted(figures["rejected"].items(), key=lambda item: -item[1])
        self.rejected.rows = [[reason, cell(show("rejected", n), n)] for reason, n in rejected]
        candidates.show(self.chart, figures)

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self._plans):
            pins = {k: v for k, v in self._plans[index].items() if k in _PINS and v is not None}
            self.choose({f"plan.{name}": value for name, value in pins.items()})
