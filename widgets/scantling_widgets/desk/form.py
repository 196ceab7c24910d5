"""The column of inputs: every control a part of its own, so that only what changed travels; a
change comes back as one message."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..charts.page_parts import Part
from .control import ControlState
from .inputs import GroupState


class ControlPart(Part):
    """One input of the form, its entries those of a `ControlState`."""

    KIND = "control"
    STATE = vars(ControlState(field="", label="", help="", input_kind="number", value=None))

    current: ControlState | None = None

    def fill(self, state: ControlState) -> None:
        """Show an input as it stands."""
        if state == self.current:
            return
        self.current = state
        for name, value in vars(state).items():
            self.put(name, value)


class Form(Part):
    """Groups of controls.

    children  the controls
    groups    [{title, folded, shape, fields}]: which fields stand together
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
        "children": (),
        "groups": (),
        "proposal": {"serial": 0},
        "answered": 0,
        "drawn": 0,
        "shown": 0,
        "asked": {},
    }

    children: Sequence[ControlPart]
    groups: Sequence[Mapping[str, Any]]
    proposal: Mapping[str, Any]
    answered: int
    drawn: int
    shown: int
    asked: Mapping[str, Any]

    def __init__(
        self, on_change: Callable[[str, Any, bool], None], on_ask: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._on_change = on_change
        self._controls: dict[str, ControlPart] = {}
        self.on("asked", lambda asked: on_ask(asked["field"]))
        self.on("proposal", self._proposed)

    def _proposed(self, proposal: Mapping[str, Any]) -> None:
        try:
            self._on_change(proposal["field"], proposal["value"], bool(proposal["final"]))
        finally:
            self.answered = int(proposal["serial"])

    def show(self, groups: Sequence[GroupState]) -> None:
        """Put the inputs on the page, group by group."""
        states = [state for group in groups for state in group.controls]
        for state in states:
            self._controls.setdefault(state.field, ControlPart()).fill(state)
        self.children = tuple(self._controls[state.field] for state in states)
        self.groups = [
            {
                "title": group.title,
                "folded": group.folded,
                "shape": group.shape,
                "fields": [state.field for state in group.controls],
            }
            for group in groups
        ]

    def send_change(self, field: str, value: Any, final: bool = True) -> None:
        """What the browser does when the user moves a control; for scripts and tests."""
        self.nudge("proposal", field=field, value=value, final=final)

    def ask(self, field: str) -> None:
        """What the browser does when the pointer or the focus comes to a list; for scripts and
        tests."""
        self.nudge("asked", field=field)

    def field(self, name: str) -> dict[str, Any]:
        """A control as it stands on the page."""
        return self._controls[name].state
