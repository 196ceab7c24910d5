"""The strip of headline numbers; each opens to its formula, its inputs and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anywidget
import traitlets

from .livechart import module


class Strip(anywidget.AnyWidget):
    """Cards in a row.

    items   [{key, label, value, unit, note, delta, sense, state, hint}]
    opened  key of the number whose explanation is open, or ""
    detail  {title, value, lines: [(term, text)]} of that number
    """

    _esm = module("sheet.js", "strip.js")
    items = traitlets.List().tag(sync=True)
    revision = traitlets.Int(0).tag(sync=True)
    opened = traitlets.Unicode("").tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)

    def __init__(self, explain: Callable[[str], Mapping], **traits):
        super().__init__(**traits)
        self._explain = explain
        self.observe(self._open, "opened")

    def _open(self, change) -> None:
        self.detail = dict(self._explain(change["new"])) if change["new"] else {}

    def show(self, items: list[dict]) -> None:
        """Put these numbers on the cards: one message."""
        with self.hold_sync():
            self.items = items
            self.revision += 1
        if self.opened:
            self.detail = dict(self._explain(self.opened))
