"""The parts of a desk as widgets, each for a cell of its own or for any box of ipywidgets:

>>> session = Session("design.yaml")
>>> controls = Controls(session, ["cluster.devices", "model.size"])
>>> HBox([controls, VBox([Headline(session), MemoryChart(session)])])
"""

from collections.abc import Sequence
from os import PathLike, environ
from pathlib import Path
from typing import Any

import anywidget
from ipywidgets import Layout
from scantling.base.errors import DesignError
from scantling.design.design import Design

from ..charts.livechart import LiveChart, vega_bundle
from ..charts.page_parts import Message
from ..shipped_files import STATIC
from . import boxes, front_end
from .desk import DeskPane
from .pane import Pane
from .panels.plans import Plans as PlansPanel
from .panes import ControlsPane, HeadlinePane, MemoryPane, StepPane
from .session import Answer, Judge, Openable, Session, assess


class PaneWidget(anywidget.AnyWidget):
    """A pane wherever a Jupyter kernel is behind it; its page's messages go through this widget."""

    _esm = front_end.script()
    _css = (STATIC / "desk.css").read_text(encoding="utf-8")
    pane: Pane | None = None  # of one that was opened

    def __init__(self, pane: Pane, **layout: str) -> None:
        super().__init__(layout=Layout(**{"width": "100%", "min_width": "0", **layout}))
        self.pane, self.session = pane, pane.session
        self._page = pane.open()
        self._page.tell = self.send
        self.on_msg(self._hear)

    def _hear(self, _: Any, message: Message, buffers: Any) -> None:
        charts = any(isinstance(part, LiveChart) for part in self._page.parts.values())
        if "hello" in message and charts and not message.get("vega"):
            self.send({"runtime": vega_bundle()})
        self._page.hear(message)

    def close(self) -> None:
        """Take the part from the page; it follows the session no longer."""
        if self.pane is not None:
            self.pane.close()
        super().close()


class Alone(Pane):
    """A pane of the desk with the colours and the type of the desk around it."""

    def __init__(self, pane: Pane) -> None:
        super().__init__(pane.session)
        self.pane = pane
        self.root = boxes.box("sd-desk sd-part", pane.root)

    def show(self) -> None:
        self.pane.show()

    def greeted(self, message: Message) -> None:
        self.pane.greeted(message)


class Controls(PaneWidget):
    """Inputs of some fields of the design, or of all.

    session : what they move. fields : paths of the design file, such as ["cluster.devices",
    "model.size"]; left out, every control of the desk. Raises DesignError for a field that has no
    control, with the nearest that has.
    """

    def __init__(self, session: Session, fields: Sequence[str] | None = None) -> None:
        pane = ControlsPane(session, fields)
        self.form = pane.form
        super().__init__(Alone(pane), width="340px", min_width="300px")


class Headline(PaneWidget):
    """The headline numbers with their bands, and the sentence most worth knowing."""

    def __init__(self, session: Session) -> None:
        super().__init__(Alone(HeadlinePane(session)))


class MemoryChart(PaneWidget):
    """Memory of each pipeline stage against what a device has."""

    def __init__(self, session: Session) -> None:
        super().__init__(Alone(MemoryPane(session)))


class StepChart(PaneWidget):
    """One step in time, part by part."""

    def __init__(self, session: Session) -> None:
        super().__init__(Alone(StepPane(session)))


class Plans(PaneWidget):
    """The best plans that fit, why others were refused; one click takes a plan."""

    def __init__(self, session: Session) -> None:
        super().__init__(Alone(PlansPanel(session)))


class Desk(PaneWidget):
    """The whole desk, built of these parts and of its tabs.

    design : a session, or what one opens: a `scantling.Design`, the path of a design file, a link;
    without one the example. `desk.design` and `desk.result` follow what is on it.
    """

    def __init__(
        self,
        design: Session | Openable | None = None,
        *,
        judge: Judge = assess,
        autosave: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(DeskPane(design, judge=judge, autosave=autosave))

    @property
    def design(self) -> Design:
        """The design on the desk; assigning one puts it there."""
        return self.session.design

    @design.setter
    def design(self, design: Design) -> None:
        self.session.design = design

    @property
    def result(self) -> Answer:
        """What is said of the design on the desk."""
        return self.session.now.result


def open_desk(design: Openable | None = None, *, judge: Judge = assess) -> Desk:
    """A desk on `design`; without one, on what the `lab` command was started with, or where the
    last desk in this folder stopped.

    `lab` says so through the environment: SCANTLING_DESIGN is the file to open, SCANTLING_AUTOSAVE
    where the desk keeps its state.
    """
    autosave = environ.get("SCANTLING_AUTOSAVE")
    if design is None and autosave and Path(autosave).is_file():
        try:
            return Desk(autosave, judge=judge, autosave=autosave)
        except DesignError:
            pass  # kept by another version of the kit: start from the file again
    file = design or environ.get("SCANTLING_DESIGN")
    return Desk(file, judge=judge, autosave=autosave)
