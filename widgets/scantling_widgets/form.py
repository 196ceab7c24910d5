"""The column of inputs as one widget: its fields travel as data, a change comes back as one
message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from .resources import STATIC


class Form(anywidget.AnyWidget):
    """Groups of sliders, lists and number boxes.

    groups    [{title, folded, shape, fields: [{field, kind, label, options, help, …}]}]: what there
    is to set
    values    {field: {value, fault}}: where it stands; travels alone while the groups stay the same
    proposal  the last change that the user made: {field, value, final, serial}; `final` is false
    while dragging
    answered  the serial of the last proposal that has been worked on
    drawn     number of the last redraw of the whole desk, set when all of it is on its way
    shown     how often a tab has been brought up to date; set when all of it is on its way
    asked     a list that is about to be opened, {field, serial}: the kernel then marks the values
    that cannot be
    """

    _esm = STATIC / "form.js"
    groups = traitlets.List().tag(sync=True)
    values = traitlets.Dict().tag(sync=True)
    proposal = traitlets.Dict(
        {
            "field": "",
            "value": None,
            "final": True,
            "serial": 0,
        }
    ).tag(sync=True)
    answered = traitlets.Int(0).tag(sync=True)

    drawn = traitlets.Int(0).tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)
    asked = traitlets.Dict(
        {
            "field": "",
            "serial": 0,
        }
    ).tag(sync=True)

    def __init__(
        self, on_change: Callable[[str, Any, bool], None], on_ask: Callable[[str], None], **traits
    ):
        super().__init__(**traits)
        self._on_change = on_change
        self.observe(lambda change: on_ask(change["new"]["field"]), "asked")
        self.observe(self._proposed, "proposal")

    def _proposed(self, change) -> None:
        proposal = change["new"]
        try:
            self._on_change(proposal["field"], proposal["value"], bool(proposal["final"]))
        finally:
            self.answered = int(proposal["serial"])

    def show(self, groups: list[dict]) -> None:
        """Put the inputs on the page; `value` and `fault` of a field are sent apart from the rest,
        which seldom changes."""
        values, still = {}, []
        for group in groups:
            fields = []
            for field in group["fields"]:
                rest = dict(field)
                values[field["field"]] = {
                    "value": rest.pop("value"),
                    "fault": rest.pop("fault", ""),
                }
                fields.append(rest)
            still.append(
                {
                    **group,
                    "fields": fields,
                }
            )
        with self.hold_sync():
            self.groups = still
            self.values = values

    def send_change(
        self,
        field: str,
        value,
        final: bool = True,
    ) -> None:
        """What the browser does when the user moves a control; for scripts and tests."""
        self.proposal = {
            "field": field,
            "value": value,
            "final": final,
            "serial": self.proposal["serial"] + 1,
        }

    def ask(self, field: str) -> None:
        """What the browser does when the pointer or the focus comes to a list; for scripts and
        tests."""
        self.asked = {
            "field": field,
            "serial": self.asked["serial"] + 1,
        }

    def field(self, name: str) -> dict:
        """The description of one field as it stands on the page."""
        found = next(f for group in self.groups for f in group["fields"] if f["field"] == name)
        return {
            **found,
            **self.values[name],
        }
