"""The key of a picture: colour, name, amount. It is also how the picture reads without eyes, and
each amount opens to its formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anywidget
import traitlets

from .livechart import module
from .palette import MEMORY, STEP
from .words import share, show


class Key(anywidget.AnyWidget):
    """Entries [{colour, name, text, nil, key}]; `explain(key, facts)` is what an amount with a key
    opens to."""

    _esm = module("sheet.js", "parts.js")
    entries = traitlets.List().tag(sync=True)
    asked = traitlets.Dict(
        {
            "key": "",
            "index": -1,
            "serial": 0,
        }
    ).tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)

    def __init__(self, explain: Callable, **traits):
        super().__init__(**traits)
        self._explain, self._facts = explain, {}
        self.observe(self._asked, "asked")

    def show(
        self,
        entries: list[dict],
        facts: Mapping = {},
    ) -> None:
        """Put these entries on the page, with the facts that the amounts are explained by."""
        self._facts = facts
        self.entries = entries

    def ask(self, index: int) -> None:
        """What the browser does when the user opens an amount; for scripts and tests."""
        self.asked = {
            "key": self.entries[index]["key"],
            "index": index,
            "serial": self.asked["serial"] + 1,
        }

    def _asked(self, change) -> None:
        self.detail = {
            **self._explain(change["new"]["key"], self._facts),
            "serial": change["new"]["serial"],
        }


def entry(
    colour: str,
    name: str,
    text: str,
    key: str = "",
    nil: bool = False,
) -> dict:
    return {
        "colour": colour,
        "name": name,
        "text": text,
        "key": key,
        "nil": nil,
    }


def memory(row: Mapping) -> list[dict]:
    """The parts of one stage's memory."""
    return [
        entry(
            colour,
            name,
            show(f"memory_bytes.{part}", row[part]),
            f"memory_by_stage.{part}",
            not row[part],
        )
        for part, (name, colour) in MEMORY.items()
    ]


def step(given: Mapping) -> list[dict]:
    """The exposed parts of the step with their shares."""
    total = given["step_s"]
    parts = (
        (part, name, colour, given["step_breakdown_s"].get(part) or 0.0)
        for part, (name, colour) in STEP.items()
    )
    return [
        entry(
            colour,
            name,
            share(value / total) if value else "none",
            f"step_breakdown_s.{part}",
            not value,
        )
        for part, name, colour, value in parts
    ]
