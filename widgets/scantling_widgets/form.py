"""The column of inputs as one part: its fields travel as data, a change comes back as one
message."""

from collections.abc import Callable
from typing import Any

from .parts import Part


class Form(Part):
    """Groups of sliders, lists and number boxes.

    groups    [{title, folded, shape, fields: [{field, kind, label, options, help, …}]}]: what there
    is to set
    values    {field: {value, fault}}: where it stands; travels alone while the groups stay the same
    proposal  the last change that the user made: {field, value, final, serial}; `final` is false
    while dragging
    answered  the serial of the last proposal that has been worked on
    drawn     number of the last redraw of the whole desk, set when all of it is on its way
    shown     how often a tab has been brought up to date; set when all of it is on its way
    asked     a list that is about to be opened, {field, serial}: its values that cannot be are then
    marked
    """

    KIND, HEARS = "form", ("proposal", "asked")
    STATE = {
        "cls": "sd-form",
        "groups": (),
        "values": {},
        "proposal": {"serial": 0},
        "answered": 0,
        "drawn": 0,
        "shown": 0,
        "asked": {},
    }

    def __init__(
        self,
        on_change: Callable[[str, Any, bool], None],
        on_ask: Callable[[str], None],
    ):
        super().__init__()
        self._on_change = on_change
        self.on("asked", lambda asked: on_ask(asked["field"]))
        self.on("proposal", self._proposed)

    def _proposed(self, proposal) -> None:
        try:
            self._on_change(
                proposal["field"],
                proposal["value"],
                bool(proposal["final"]),
            )
        finally:
            self.answered = int(proposal["serial"])

    def show(self, groups: list[dict]) -> None:
        """Put the inputs on the page; `value` and `fault` of a field are sent apart from the rest,
        which seldom changes."""
        values, still = {}, []
        for group in groups:
            rests = [dict(field) for field in group["fields"]]
            for rest in rests:
                own = {
                    "value": rest.pop("value"),
                    "fault": rest.pop("fault", ""),
                }
                values[rest["field"]] = own
            still.append(
                {
                    **group,
                    "fields": rests,
                }
            )
        self.groups, self.values = still, values

    def send_change(
        self,
        field: str,
        value,
        final: bool = True,
    ) -> None:
        """What the browser does when the user moves a control; for scripts and tests."""
        self.nudge(
            "proposal",
            field=field,
            value=value,
            final=final,
        )

    def ask(self, field: str) -> None:
        """What the browser does when the pointer or the focus comes to a list; for scripts and
        tests."""
        self.nudge("asked", field=field)

    def field(self, name: str) -> dict:
        """The description of one field as it stands on the page."""
        found = next(f for group in self.groups for f in group["fields"] if f["field"] == name)
        return {
            **found,
            **self.values[name],
        }
