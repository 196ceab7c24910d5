"""What every tab has in common."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from scantling.advise.explanation import inputs
from scantling.base.files import table

from ... import words
from ...charts.figure import Figure
from ...charts.parts import Button, Drop, Field, Part
from .. import headline, theme
from ..table import TABLES, Table, said

_BOXES = {
    "row": "sd-line-of",
    "stack": "sd-stack",
    "beside": "sd-columns",
    "few": "sd-columns sd-few",
}
_NO_PLAN = (
    "<p>No plan can hold this model on this machine; the line above gives the arithmetic.</p>"
)
_OVER = "<p>The plan does not fit into memory: there is no run, and nothing to count of it.</p>"


class Panel:
    """A tab, made as panels.yaml says under its title. `begin` adds once what else it needs; `draw`
    puts the session's current design into the widgets."""

    title = ""
    always = False  # whether there is something to show for a design that no plan can hold
    of_a_run = False  # whether it speaks of a run, which a plan that does not fit has not
    figures: Mapping[str, Figure] = {}  # the charts, by name
    options: Mapping[str, Iterable] = {}  # what each list offers at first

    def __init__(self, session, choose: Callable):
        self.session, self.choose = session, choose
        # what a number of a table of this tab opens to
        self.explain = partial(headline.explanation, session)
        self.box = theme.box("sd-stack")
        self.made = self._drawn = None

    @property
    def now(self):
        """The design on the desk, assessed."""
        return self.session.now

    @property
    def given(self) -> Mapping:
        """Its assessment as data."""
        return self.now.given

    def explain_row(self, own: Mapping[str, str], key: str, row: Mapping) -> dict:
        """What a number of a record of the blueprint opens to; `own`: {term: field of the record}
        said below it."""
        out = words.opened(key, self.given, inputs(self.now, self.given), row)
        out["value"] = self.cell_text(key, row)
        out["lines"] += [
            (term, words.named(field, row[field]))
            for term, field in own.items()
            if row.get(field) not in (None, "")
        ]
        return out

    def cell_text(self, key: str, row: Mapping) -> str:
        """The text of a number of a record in one of its columns."""
        return said(key, row)

    def ended(self, error) -> None:
        """What a job of this tab does at its end."""
        if error is not None:
            self.session.report(error)
            self.session.notify()

    def build(self) -> list[Part]:
        """Make the parts, and lay them out."""
        about = table(__file__, "panels")[self.title]
        for name, first in about.get("texts", {}).items():
            setattr(self, name, theme.text(first))
        for name, kind in about.get("tables", {}).items():
            setattr(self, name, self._table(kind))
        for name, label in about.get("drops", {}).items():
            setattr(self, name, Drop(label, self.options[name]))
        for name, own in about.get("fields", {}).items():
            setattr(self, name, Field(**own))
        for name, (label, tip) in about.get("buttons", {}).items():
            setattr(
                self, name, Button(label, partial(self.pressed, getattr(self, f"_{name}")), tip)
            )
        for name, figure in self.figures.items():
            setattr(self, name, figure.live(legend=name in about.get("legends", ())))
        self.begin()
        return [self._laid(part) for part in about["layout"]]

    def _table(self, name: str) -> Table:
        """A table; one whose rows can be chosen lists other designs, one with fields of its own
        records of the blueprint."""
        about = TABLES[name]
        picks = "action" in about
        explain = partial(self.explain, alone=True) if picks else self.explain
        if "own" in about:
            explain = partial(self.explain_row, about["own"])
        return Table(name, self._pick if picks else None, explain=explain, text=self.cell_text)

    def _laid(self, part: str | Mapping) -> Part:
        if isinstance(part, str):
            return getattr(self, part)
        kind, names = next(iter(part.items()))
        inner = [self._laid(name) for name in names]
        if kind != "card":
            return theme.box(_BOXES[kind], *inner)
        return theme.card(part.get("title") or self._title(names[0]), *inner)

    def _title(self, name: str) -> str:
        """What a chart or a table is called."""
        return self.figures[name].title if name in self.figures else getattr(self, name).label

    def pressed(self, act: Callable) -> None:
        """What a button of this tab does: the method of its name."""
        act()

    def begin(self) -> None:
        """Make what the table of tabs does not hold."""

    def picture(self, name: str, **more) -> None:
        """Put the design on the desk under one of the charts."""
        self.figures[name].show(getattr(self, name), self.given, **more)

    def draw(self) -> None:
        raise NotImplementedError

    def opened(self) -> None:
        """What starts when the tab is shown for the first time."""

    def show(self) -> None:
        """Bring the tab up to date; does nothing when it already shows this design and this
        comparison."""
        plan, over = self.given.get("plan"), self.of_a_run and not headline.fits(self.given)
        if not self.always and (over or not plan):
            self.box.children, self._drawn = (theme.text(_OVER if plan else _NO_PLAN),), None
            return
        first = self.made is None
        if first:
            self.made = tuple(self.build())
        self.box.children = self.made
        shows = (self.now, self.session.reference)
        if self._drawn is None or any(a is not b for a, b in zip(self._drawn, shows)):
            self.draw()
            self._drawn = shows
        if first:
            self.opened()
