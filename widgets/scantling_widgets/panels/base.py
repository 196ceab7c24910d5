"""What every tab has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ipywidgets as W

from .. import headline, words
from ..table import tables
from ..theme import text

_NO_PLAN = (
    "<p>No plan can hold this model on this machine; the line above gives the arithmetic.</p>"
)


class Panel:
    """A tab. `build` makes its widgets once; `draw` puts the session's current design into them."""

    title = ""
    always = False  # whether there is something to show for a design that no plan can hold

    def __init__(
        self,
        session,
        choose: Callable,
    ):
        self.session, self.choose = session, choose
        self.box = W.VBox(layout=W.Layout(grid_gap="8px"))
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
        return headline.explanation(key, self.session, facts or None)

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
        say: Callable[[str, Mapping], str],
    ) -> Callable:
        """The same for the records of the blueprint in the table `name`; `say(key, row)` is the
        text of a cell."""
        about = tables()[name]

        def explain(column: str, row: Mapping) -> dict:
            key, resolved = about["prefix"] + column, headline.inputs(self.session)
            return words.explain_row(
                key,
                say(key, row),
                self.given,
                resolved,
                row,
                about["own"],
            )

        return explain

    def ended(self, error) -> None:
        """What a job of this tab does at its end."""
        if error is not None:
            self.session.report(error)
            self.session.tell()

    def build(self) -> list[W.Widget]:
        raise NotImplementedError

    def draw(self) -> None:
        raise NotImplementedError

    def opened(self) -> None:
        """What starts when the tab is shown for the first time."""

    def show(self) -> None:
        """Bring the tab up to date; does nothing when it already shows this design and this
        comparison."""
        if not self.always and not self.given.get("plan"):
            self.box.children, self._drawn = (text(_NO_PLAN),), ()
            return
        first = not self.built
        if first:
            self.made = tuple(self.build())
            self.built = True
        if self.box.children != self.made:
            self.box.children = self.made
        now, pinned = self._drawn or (None, None)
        if now is not self.session.now or pinned is not self.session.pinned:
            self.draw()
            self._drawn = (self.session.now, self.session.pinned)
        if first:
            self.opened()
