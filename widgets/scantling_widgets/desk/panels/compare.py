"""Designs that were kept beside the one on the desk: the figures that decide, and the fields in
which they differ, a column each. Differences are counted from one of them, the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.advise.comparison import changed
from scantling.advise.explanation import plain
from scantling.base.quantities.quantity import band_in, quantity, show
from scantling.base.records import at
from scantling.design.design import Design
from scantling.verdict.result import Result, in_one_convention

from ...charts.page_parts import Button, Drop, Field, Part
from ...quantity_texts import withheld
from .. import boxes, headline, panel_tables
from ..page_table import Heading, Row, Table, cell
from ..session import Kept
from .base import Panel, table_card

_MARKS = {"": "", "better": "good", "worse": "bad"}
# the figures by which designs are compared
_DECIDING = (
    "verdict",
    "likely.days",
    "likely.cost_usd",
    "mfu_shown",
    "step_s",
    "goodput",
    "memory_bytes.total",
    "bubble_fraction",
    "devices_used",
    "energy_kwh",
)
_HINT = (
    "<p>Press <b>Set reference</b> at the top, or <b>Keep this design</b>, then change the design: "
    "what differs is listed here and marked in every picture.</p>"
)
_NONE = "nothing"


class Compare(Panel):
    title = "Compare"
    always = True

    def build(self) -> Sequence[Part]:
        self.hint = boxes.text(_HINT)
        self.fields = self.list_of(panel_tables.DESIGN_DIFFERENCES)
        self.numbers = self.list_of(panel_tables.COMPARISON)
        self.reference = Drop("Compare with", [(_NONE, None)])
        self.reference.on("index", lambda _: self._chosen())
        self.notes = Field(description="Notes to the decision", lines=3, cls="sd-wide-field")
        self.notes.on("value", self._noted)
        self.keep = Button(
            "Keep this design", self.session.keep, "Give it a column, to compare others with"
        )
        self.take = Button("Put the reference on the desk", self._take)
        self.forget = Button("Forget all", self.session.forget)
        return [
            boxes.row(self.keep, self.reference, self.take, self.forget),
            self.hint,
            table_card(
                self.numbers, see="A difference inside the bands of both is no reason to choose."
            ),
            table_card(self.fields, see="What was changed to come from one to the other."),
            self.notes,
        ]

    def _noted(self, text: str) -> None:
        if text != (self.now.design.notes or ""):
            self.choose({"notes": text or None})

    def _chosen(self) -> None:
        if self.reference.value is not self.session.reference:
            self.session.compare_with(self.reference.value)

    def _take(self) -> None:
        if self.session.reference is not None:
            self.session.put(self.session.reference.design)

    def draw(self) -> None:
        session = self.session
        self.notes.value = session.now.design.notes or ""
        kept, reference = session.kept, session.reference
        names = [(_name(kept, one), one) for one in kept]
        if self.reference.options != ((_NONE, None), *names):
            self.reference.options = [(_NONE, None), *names]
        self.reference.value = reference
        self.hint.hidden = bool(kept)
        for part in (self.reference, self.forget):
            part.hidden = not kept
        self.take.hidden = reference is None
        heads = {f"kept{i}": _head(kept, one, reference) for i, one in enumerate(kept)}
        self.fields.columns = _headed(self.fields, heads)
        self.numbers.columns = _headed(self.numbers, heads)
        self.fields.rows = differing([one.design for one in kept], session.now.design)
        *kept_figures, own = in_one_convention(
            [*(one.figures for one in kept), session.now.figures]
        )
        of = {id(one): figures for one, figures in zip(kept, kept_figures)}
        before = None if reference is None else of.get(id(reference), reference.figures)
        rows, facts = rows_of(kept_figures, before, own) if kept else ([], [])
        self.numbers.fill(rows, facts)


def _headed(table: Table, heads: Mapping[str, str]) -> list[Heading]:
    """The columns of a table with one for each design that was kept at the end: what is on the desk
    and how it differs stands in front on a narrow screen."""
    columns = [Heading(key=key, label=text, align="", wrap=True) for key, text in heads.items()]
    return [*table.headed(table.names), *columns]


def _name(kept: Sequence[Kept], own: Kept) -> str:
    """A design that was kept, by its number and what it differs in from the first."""
    number = next(i for i, one in enumerate(kept, 1) if one is own)
    return f"{number}: {_differs(kept[0].design, own.design)}"


def _head(kept: Sequence[Kept], own: Kept, reference: Kept | None) -> str:
    name = _name(kept, own)
    return f"{name} (reference)" if own is reference else name


def _differs(first: Design, own: Design) -> str:
    """The fields in which a design differs from the first that was kept."""
    texts = [
        f"{path.rpartition('.')[2]} {say(now)}"
        for path, (_, now) in changed(first, own).items()
        if path not in ("name", "notes")
    ]
    if not texts:
        return "first kept"
    return ", ".join(texts[:3]) + (" …" if len(texts) > 3 else "")


def say(value: Any) -> str:
    """A value of a field, which may have none."""
    return "—" if value is None else plain(value)


def differing(kept: Sequence[Design], now: Design) -> list[Row]:
    """A row for each field in which the designs are not all the same: its values on the desk, and
    in each that was kept."""
    moved: dict[str, dict[int, Any]] = {}
    for place, design in enumerate(kept):
        for path, (before, after) in changed(design, now).items():
            moved.setdefault(path, {-1: after})[place] = before
    return [
        [path, say(values[-1]), *(say(values.get(place, values[-1])) for place in range(len(kept)))]
        for path, values in moved.items()
    ]


def rows_of(
    kept: Sequence[Result], reference: Result | None, now: Result
) -> tuple[list[Row], list[Result]]:
    """A row for each figure that decides, the same or not: on the desk, its band in the cell, the
    difference from the reference, and in each design that was kept; and the facts of each row."""
    better: dict[str, bool | None] = {c.key: c.more_is_better for c in headline.CARDS}
    rows: list[Row] = []
    for key in _DECIDING:
        here = None if withheld(now, key) else at(now, key)
        difference = headline.Difference()
        if reference is not None:
            before = None if withheld(reference, key) else at(reference, key)
            difference = headline.difference(key, here, before, better.get(key, False))
        same = difference.text == "= reference"
        rows.append(
            [
                cell(quantity(key).label, hint=key),
                cell(banded(now, key), here, key=key),
                cell("the same" if same else difference.text, mark=_MARKS[difference.sense]),
                *(banded(one, key) for one in kept),
            ]
        )
    return rows, [now] * len(rows)


def banded(figures: Result, key: str) -> str:
    """A figure with its band; none of a run that cannot be."""
    if key == "verdict":
        return headline.verdict_words(figures)[0]
    if withheld(figures, key):
        return "—"
    spread = band_in(figures, key)
    return show(key, at(figures, key)) + (f" ({spread})" if spread else "")
