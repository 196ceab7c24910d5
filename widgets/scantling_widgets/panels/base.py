"""What every tab has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from scantling.advise.explanation import inputs
from scantling.base.words import table

from .. import headline, theme, words
from ..assessment_charts import Figure
from ..parts import Drop, Part
from ..table import TABLES, Table
from ..words import show

_BOXES = {
    **{
        "row": theme.row,
        "buttons": theme.row,
        "stack": theme.stack,
    },
    **{
        "beside": theme.side_by_side,
        "few": theme.few,
    },
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

    def __init__(
        self,
        session,
        choose: Callable,
    ):
        self.session, self.choose = session, choose
        self.box = theme.stack()
        self.built = False
        self._drawn = ()

    @property
    def given(self) -> Mapping:
        """The assessment of the design on the desk, as data."""
        return self.session.now.given

    def explain(
        self,
        key: str,
        facts: Mapping,
    ) -> dict:
        """What a number of a table of this tab opens to."""
        return headline.explanation(
            key,
            self.session,
            facts or None,
        )

    def explain_alone(
        self,
        key: str,
        facts: Mapping,
    ) -> dict:
        """The same, where the row is of another plan or design."""
        return headline.explanation(
            key,
            self.session,
            facts,
            alone=True,
        )

    def explain_row(
        self,
        name: str,
        column: str,
        row: Mapping,
    ) -> dict:
        """The same for the records of the blueprint in the table `name`."""
        about, resolved = TABLES[name], inputs(self.session.now, self.given)
        key = about["prefix"] + column
        return words.explain_row(
            key,
            self.cell_text(key, row),
            self.given,
            resolved,
            row,
            about["own"],
        )

    def cell_text(
        self,
        key: str,
        row: Mapping,
    ) -> str:
        """The text of a number of a record in one of its columns."""
        return show(key, row.get(key.rpartition(".")[2]))

    def ended(self, error) -> None:
        """What a job of this tab does at its end."""
        if error is not None:
            self.session.report(error)
            self.session.notify()

    def build(self) -> list[Part]:
        """Make the parts, and lay them out."""
        about = table(__file__, "panels")[self.title]
        drops = about.get("drops", {}).items()
        made = {
            **{name: theme.text(said) for name, said in about.get("texts", {}).items()},
            **{name: self._table(kind) for name, kind in about.get("tables", {}).items()},
            **{name: Drop(said, self.options[name]) for name, said in drops},
        }
        for name, figure in self.figures.items():
            made[name] = figure.live(legend=name in about.get("legends", ()))
        vars(self).update(made)
        self.begin()
        return [self._laid(part) for part in about["layout"]]

    def _table(self, name: str) -> Table:
        """A table; one whose rows can be chosen lists other designs, one with fields of its own
        records of the blueprint."""
        about = TABLES[name]
        if "action" in about:
            return Table(
                name,
                self._pick,
                explain=self.explain_alone,
            )
        row = partial(self.explain_row, name)
        return Table(name, explain=row if "own" in about else self.explain)

    def _laid(self, part: str | Mapping) -> Part:
        if isinstance(part, str):
            return getattr(self, part)
        kind, names = next(iter(part.items()))
        inner = [self._laid(name) for name in names]
        if kind != "card":
            return _BOXES[kind](*inner)
        title = part["title"] if "title" in part else self._title(names[0])
        return theme.card(title, *inner)

    def _title(self, name: str) -> str:
        """What a chart or a table is called."""
        return self.figures[name].title if name in self.figures else getattr(self, name).label

    def begin(self) -> None:
        """Make what the table of tabs does not hold."""

    def picture(self, name: str, **more) -> None:
        """Put the design on the desk under one of the charts."""
        self.figures[name].show(
            getattr(self, name),
            self.given,
            **more,
        )

    def draw(self) -> None:
        raise NotImplementedError

    def opened(self) -> None:
        """What starts when the tab is shown for the first time."""

    def show(self) -> None:
        """Bring the tab up to date; does nothing when it already shows this design and this
        comparison."""
        over = self.of_a_run and not headline.fits(self.given)
        if not self.always and (over or not self.given.get("plan")):
            said = _OVER if self.given.get("plan") else _NO_PLAN
            self.box.children, self._drawn = (theme.text(said),), ()
            return
        first = not self.built
        if first:
            self.made = tuple(self.build())
            self.built = True
        if self.box.children != self.made:
            self.box.children = self.made
        now, reference = self._drawn or (None, None)
        if now is not self.session.now or reference is not self.session.reference:
            self.draw()
            self._drawn = (self.session.now, self.session.reference)
        if first:
            self.opened()
