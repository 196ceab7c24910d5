"""What every tab has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as W

from .. import headline, words
from ..theme import text


class Panel:
    """A tab. `build` makes its widgets once; `draw` puts the session's current design into them."""

    title = ""
    always = False  # whether there is something to show for a design that no plan can hold

    def __init__(self, session, choose: Callable[[Mapping[str, Any]], bool]):
        self.session, self.choose = session, choose
        self.box = W.VBox(layout=W.Layout(grid_gap="8px"))
        self.built = False
        self._drawn: Any = None

    def explain(self, key: str, facts: Mapping[str, Any]) -> dict:
        """What a number of a table of this tab opens to."""
        return headline.explanation(key, self.session, facts or None)

    def explain_alone(self, key: str, facts: Mapping[str, Any]) -> dict:
        """The same, where the row is of another plan or design."""
        return headline.explanation(key, self.session, facts, alone=True)

    def explain_row(
        self, section: str, say: Callable[[str, Mapping], str], own: Mapping[str, str]
    ) -> Callable[[str, Mapping], dict]:
        """The same for the records of one section of the blueprint; `say(field, row)` is the text
        of a cell."""
        return lambda key, row: words.explain_row(
            f"blueprint.{section}.{key}",
            say(key, row),
            self.session.now.given,
            headline.inputs(self.session),
            row,
            own,
        )

    def build(self) -> list[W.Widget]:
        raise NotImplementedError

    def draw(self) -> None:
        raise NotImplementedError

    def opened(self) -> None:
        """What starts when the tab is shown for the first time."""

    def show(self) -> None:
        """Bring the tab up to date; does nothing when it already shows this design and this
        comparison."""
        if not self.always and not self.session.now.given.get("plan"):
            self.box.children = (
                text(
                    "<p>No plan can hold this model on this machine; the line above "
                    "gives the arithmetic.</p>"
                ),
            )
            self._drawn = None
            return
        first = not self.built
        if first:
            self.made = tuple(self.build())
            self.built = True
        if self.box.children != self.made:
            self.box.children = self.made
        state = (self.session.now, self.session.pinned)
        if self._drawn is None or self._drawn[0] is not state[0] or self._drawn[1] is not state[1]:
            self.draw()
            self._drawn = state
        if first:
            self.opened()
