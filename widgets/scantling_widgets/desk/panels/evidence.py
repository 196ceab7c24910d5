"""What the numbers rest on: the nearest published runs, the band, and everything that was
assumed."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.base.quantities.quantity import show
from scantling.base.show import value_text
from scantling.verdict.result import band_of

from ...charts.evidence import evidence
from ...charts.page_parts import Part
from ...quantity_texts import named
from .. import boxes, panel_tables
from ..page_table import Cell
from .base import Panel, table_card


class Evidence(Panel):
    title = "Evidence"

    charts = (evidence,)

    def build(self) -> Sequence[Part]:
        self.text = boxes.text()
        self.chart = evidence.live()
        self.runs = self.list_of(panel_tables.NEAREST_RUNS)
        self.avoid = self.list_of(panel_tables.AVOID)
        self.assumed = self.list_of(panel_tables.ASSUMED)
        return [
            self.text,
            boxes.card(
                evidence.title,
                self.chart,
                see="Whether published runs like this one lie inside the band.",
            ),
            table_card(
                self.runs, see="What others measured, and what this kit says of the same run."
            ),
            table_card(self.avoid, see="Choices near this design that look harmless and are not."),
            table_card(
                self.assumed,
                see="State the ones that you know: each takes a guess out of the result.",
            ),
        ]

    def draw(self) -> None:
        figures = self.figures
        self.text.value = (
            f"<p>MFU <b>{show('mfu_shown', figures['mfu_shown'])}</b>, "
            f"{figures['mfu_basis']} attention, band {band_of(figures, 'mfu_shown')} "
            f"({figures['band_tier']}): four of five such runs lie inside.</p>"
        )
        evidence.show(self.chart, figures)
        runs = figures["nearest_runs"]
        self.runs.fill([self._run(run) for run in runs], runs)
        self.assumed.rows = [
            [str(row["field"]), _value(row), str(row["why"])] for row in figures["assumed"]
        ]
        self.avoid.show(figures["avoid"])

    def _run(self, run: Mapping[str, Any]) -> list[Cell]:
        cells = dict(zip(self.runs.names, self.runs.cells(run)))
        cells["model"]["hint"] = run["id"]
        if run.get("locator"):
            cells["source"]["hint"] = run["locator"]
        return [*cells.values()]


def _value(row: Mapping[str, Any]) -> str:
    value = row["value"]
    if value is None:
        return "—"
    if isinstance(value, (Mapping, list)):
        return value_text(value)
    return named(row["field"].rsplit(".", 1)[-1], value)
