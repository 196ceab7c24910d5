"""The column of inputs: every control a part of its own, so that only what changed travels; a
change comes back as one message."""

from collections.abc import Callable
from typing import Any

from ..charts.parts import Part


class Control(Part):
    """One input of the form.

    field     path of the field in the design
    made      what it is: slider, list, number or text
    options   what a slider or a list offers: {value, text, long, group, reason}
    value     where it stands; `fault` why what the user set is not taken
    """

    KIND = "control"
    STATE = {
        "field": "",
        "made": "number",
        "label": "",
        "help": "",
        "options": (),
        "value": None,
        "fault": "",
        "unit": "",
        "placeholder": "",
        "pinned": False,
        "asks": False,
        "wide": False,
        "disabled": False,
    }
    spec: dict = {}

    def fill(self, spec: dict) -> None:
        """Show what `inputs` says of the field; what it leaves out is as in a new one."""
        if spec != self.spec:
            self.spec = spec
            for name, empty in self.STATE.items():
                setattr(self, name, spec.get(name, empty))


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

    def __init__(self, on_change: Callable[[str, Any, bool], None], on_ask: Callable[[str], None]):
        super().__init__()
        self._on_change = on_change
        self._controls = {}
        self.on("asked", lambda asked: on_ask(asked["field"]))
        self.on("proposal", self._proposed)

    def _proposed(self, proposal) -> None:
        try:
            self._on_change(proposal["field"], proposal["value"], bool(proposal["final"]))
        finally:
            self.answered = int(proposal["serial"])

    def show(self, groups: list[dict]) -> None:
        """Put the inputs on the page, group by group."""
        specs = {spec["field"]: spec for group in groups for spec in group["fields"]}
        for field, spec in specs.items():
            self._controls.setdefault(field, Control()).fill(spec)
        self.children = tuple(map(self._controls.get, specs))
        self.groups = [
            group | {"fields": [spec["field"] for spec in group["fields"]]} for group in groups
        ]

    def send_change(self, field: str, value, final: bool = True) -> None:
        """What the browser does when the user moves a control; for scripts and tests."""
        self.nudge("proposal", field=field, value=value, final=final)

    def ask(self, field: str) -> None:
        """What the browser does when the pointer or the focus comes to a list; for scripts and
        tests."""
        self.nudge("asked", field=field)

    def field(self, name: str) -> dict:
        """A control as it stands on the page."""
        return self._controls[name].state
