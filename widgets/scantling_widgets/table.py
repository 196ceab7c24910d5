"""A table on the page: sorts in the browser, downloads as CSV, may offer an action per row."""
from __future__ import annotations

from collections.abc import Callable

import anywidget
import traitlets

from .livechart import STATIC


def cell(text: str, sort=None, mark: str = "", hint: str = "") -> dict:
    """One cell: what it says, what it sorts and downloads by, a mark (good, warn, bad) and a hint."""
    return {"text": text, "sort": text if sort is None else sort, "mark": mark, "hint": hint}


class Table(anywidget.AnyWidget):
    """Columns [{key, label, align, hint}] and rows of cells; `action` names what the first cell of a row does."""

    _esm = STATIC / "table.js"
    label = traitlets.Unicode("table").tag(sync=True)
    columns = traitlets.List().tag(sync=True)
    rows = traitlets.List().tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    empty = traitlets.Unicode("Nothing to list for this design.").tag(sync=True)
    action = traitlets.Unicode("").tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    sortable = traitlets.Bool(True).tag(sync=True)
    file_name = traitlets.Unicode("table").tag(sync=True)
    picked = traitlets.Dict({"index": -1, "serial": 0}).tag(sync=True)

    def __init__(self, label: str, on_pick: Callable[[int], None] | None = None, **traits):
        super().__init__(label=label, **traits)
        if on_pick is not None:
            self.observe(lambda change: on_pick(int(change["new"]["index"])), "picked")

    def pick(self, index: int) -> None:
        """What the browser does when the user chooses a row; for scripts and tests."""
        self.picked = {"index": index, "serial": self.picked["serial"] + 1}
