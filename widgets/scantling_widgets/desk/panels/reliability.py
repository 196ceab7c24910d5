"""Failures, saves and spares: goodput against the interval, where the rest of the time goes, what
each loss takes out, and the risks."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.advise.explanation import label_or, show_or
from scantling.base.quantities.quantity import quantity, show
from scantling.endure.reliability import waiting
from scantling_site import part

from ...charts.endurance import badput, goodput, ladder, spares
from ...charts.page_parts import Part
from .. import boxes, panel_tables
from ..legend import Facts
from ..page_table import Cell, cell
from .base import Panel, table_card

_PARTS = ("domains", "risks", "recovery")


class Reliability(Panel):
    title = "Reliability"
    of_a_run = True

    charts = (goodput, badput, spares, ladder)

    def build(self) -> Sequence[Part]:
        self.advice, self.harmless, self.half = boxes.text(), boxes.text(), boxes.text()
        self.table = self.list_of(panel_tables.RELIABILITY)
        self.domains = self.list_of(panel_tables.DOMAINS)
        self.risks = self.list_of(panel_tables.RISKS)
        self.rungs = self.list_of(panel_tables.LADDER)
        self.starts = self.list_of(panel_tables.FIRST_STEP)
        self.elastic = self.list_of(panel_tables.REPLICAS_LOST)
        self.curve, self.lost, self.spares = goodput.live(), badput.live(), spares.live()
        self.steps = ladder.live(legend=True)
        return [
            boxes.columns(
                boxes.card(
                    goodput.title,
                    self.curve,
                    see="The top is flat: twice or half the interval costs little, ten times much.",
                ),
                boxes.card(
                    badput.title,
                    self.lost,
                    see="The longest bar is what an engineer should work on first.",
                ),
                boxes.card(
                    spares.title,
                    self.spares,
                    see="How many spares it takes until waiting for a node is rare.",
                ),
            ),
            table_card(
                self.domains,
                self.advice,
                see="Events times loss is what a domain costs over the run: the first rows decide.",
            ),
            boxes.card(
                ladder.title,
                self.steps,
                see="How far each remedy carries as the cluster grows; each rung needs those "
                "below it.",
            ),
            table_card(
                self.rungs,
                self.half,
                see="The goodput that is left with each remedy, at this size and at larger ones.",
            ),
            table_card(
                self.starts,
                see="Every restart pays this: the largest column is where minutes are won.",
            ),
            table_card(
                self.elastic,
                see="How long a repair must take before going on with fewer replicas is better "
                "than waiting.",
            ),
            boxes.card(
                "Risk register, the most expensive first",
                self.risks,
                self.harmless,
                see="The three first rows are worth an owner before the run starts.",
            ),
            table_card(self.table, see="The rates and times that all of the above follows from."),
        ]

    def draw(self) -> None:
        result = self.now.assessment
        goodput.show(self.curve, self.figures)
        badput.show(self.lost, self.figures)
        spares.show(self.spares, self.figures, waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", self.figures["endurance"])
        domains, risks, lived = (part(result, name).as_dict() for name in _PARTS)
        counted = f"No tokens are named: counted over {show('days', domains['run']['days'])}."
        self.domains.note = self.risks.note = "" if domains["run"]["of_the_run"] else counted
        self.domains.show(domains["rows"])
        self.risks.show(risks["rows"])
        self.advice.value = boxes.lines(domains["advice"]) if domains["advice"] else ""
        ladder.show(self.steps, self.figures, rungs=lived["ladder"])
        self.rungs.show(lived["ladder"])
        self.starts.show(lived["starts"])
        self.elastic.show(lived["elastic"])
        self.half.value = boxes.lines(lived["lines"])
        harmless = boxes.escape("; ".join(risks["harmless"]))
        tried = f"<p class='sd-dim'>Tried and found harmless here: {harmless}.</p>"
        self.harmless.value = tried if harmless else ""

    def cell_text(self, key: str, row: Facts) -> str:
        most = row.get("at_most_per_run")
        if key.endswith("events_per_run") and row["events_per_run"] is None and most is not None:
            return f"≤ {show(key, most)}"  # nothing is published
        return super().cell_text(key, row)


def numbers(section: str, values: Mapping[str, Any]) -> list[list[Cell]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of
    quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key, number = f"{section}.{name}", isinstance(value, (int, float))
        about = formula(key)
        what = cell(label_or(key, name.replace("_", " ")), hint=about)
        opens = key if about and number else ""
        rows.append([what, cell(show_or(key, value), value if number else None, key=opens)])
    return rows


def formula(key: str) -> str:
    """The formula of a quantity; nothing where the table has none of it."""
    try:
        return quantity(key).formula
    except KeyError:
        return ""
