"""Designs side by side: those that were kept, and the one on the desk beside the reference, field
by field and number by number."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.advise.comparison import changed
from scantling.base.quantities.table import band_in, quantity
from scantling.design.design import Design
from scantling.verdict.result import Result, in_one_convention

from ...charts.parts import Button, Field, Part
from ...words import at, plain, show, withheld
from .. import headline, tables, theme
from ..session import Alternative
from ..table import Cell, Row, cell
from .base import Panel

_MARKS = {"": "", "better": "good", "worse": "bad"}
# the figures by which two designs are compared
_DECIDING = (
    "verdict",
    "days",
    "cost_usd",
    "mfu_shown",
    "step_s",
    "goodput",
    "memory_bytes.total",
    "bubble_fraction",
    "devices_used",
    "energy_kwh",
)


class Compare(Panel):
    title = "Compare"
    always = True

    def build(self) -> Sequence[Part]:
        self.hint = theme.text()
        self.shortlist = self.choice_of(tables.KEPT_DESIGNS, self._pick)
        self.fields = self.list_of(tables.DESIGN_DIFFERENCES)
        self.numbers = self.list_of(tables.COMPARISON)
        self.notes = Field(description="Notes to the decision", lines=3, cls="sd-wide-field")
        self.notes.on("value", self._noted)
        self.keep = Button("Keep this design", self._keep, "Put it beside others in the table")
        self.forget = Button("Forget all", self._forget)
        return [
            self.hint,
            theme.card(self.numbers.label, self.numbers),
            theme.card("Fields that differ", self.fields),
            theme.card(
                "Side by side", theme.row(self.keep, self.forget), self.shortlist, self.notes
            ),
        ]

    def _noted(self, text: str) -> None:
        if text != (self.now.design.notes or ""):
            self.choose({"notes": text or None})

    def _keep(self) -> None:
        self.session.keep()
        self._show_shortlist()

    def _forget(self) -> None:
        self.session.alternatives.clear()
        self._show_shortlist()

    def _show_shortlist(self) -> None:
        moments = self.session.alternatives
        alike = in_one_convention([moment.figures for moment in moments])
        rows = [
            [
                cell(f"{i + 1}", i),
                cell(_differs(moments[0].design, moment.design)),
                *self._figures(moment, figures),
            ]
            for i, (moment, figures) in enumerate(zip(moments, alike))
        ]
        self.shortlist.fill(rows, [moment.figures for moment in moments])

    def _figures(self, moment: Alternative, figures: Result) -> list[Cell]:
        """Figures with their bands; of a plan that does not fit, those that it has."""
        cells = [
            cell(_banded(figures, key), None if withheld(figures, key) else at(figures, key))
            for key in self.shortlist.names[2:-1]
        ]
        return [*cells, cell(moment.design.notes or "")]

    def _pick(self, index: int) -> None:
        self.session.put(self.session.alternatives[index].design)

    def draw(self) -> None:
        session = self.session
        self.notes.value = session.now.design.notes or ""
        self._show_shortlist()
        if session.reference is None:
            self.hint.value = (
                "<p>Press <b>Set reference</b> at the top, then change the design: what differs "
                "is listed here and marked in every picture.</p>"
            )
            self.fields.rows = []
            self.numbers.rows = []
            return
        title = theme.escape(session.reference.design.title)
        self.hint.value = f"<p>Reference: <b>{title}</b></p>"
        moved = changed(session.reference.design, session.now.design)
        self.fields.rows = [[field, *map(say, ends)] for field, ends in moved.items()]
        alike = in_one_convention([session.reference.figures, session.now.figures])
        self.numbers.rows = compared(*alike)


def _differs(first: Design, own: Design) -> str:
    """The fields in which a design differs from the first that was kept."""
    texts = [
        f"{path.rpartition('.')[2]} {say(now)}"
        for path, (_, now) in changed(first, own).items()
        if path not in ("name", "notes")
    ]
    return ", ".join(texts) or "the first kept"


def say(value: Any) -> str:
    """A value of a field, which may have none."""
    return "—" if value is None else plain(value)


def compared(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Row]:
    """A row for each figure that decides, the same or not, with its band in the cell."""
    better: dict[str, bool | None] = {c.key: c.more_is_better for c in headline.CARDS}
    rows: list[Row] = []
    for key in _DECIDING:
        a, b = (None if withheld(of, key) else at(of, key) for of in (before, now))
        text, sense = headline.difference(key, b, a, better.get(key, False))
        rows.append(
            [
                cell(quantity(key).label, hint=key),
                _banded(before, key),
                cell(_banded(now, key), b, key=key),
                cell("the same" if text == "= reference" else text, mark=_MARKS[sense]),
            ]
        )
    return rows


def _banded(figures: Mapping[str, Any], key: str) -> str:
    """A figure with its band; none of a run that cannot be."""
    if withheld(figures, key):
        return "—"
    spread = band_in(figures, key)
    return show(key, at(figures, key)) + (f" ({spread})" if spread else "")
