"""The design desk: inputs at the left, headline numbers, the two main pictures, one sentence, tabs
below. It is built of panes and knows no Jupyter; `widgets` puts it into a notebook."""

from functools import partial
from os import PathLike
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import show
from scantling.design.design import Design
from scantling.design.methods import untuned
from scantling.plans.prepare import prepare
from scantling.verdict.result import figure

from ..charts.page_parts import Button, Link, Message, Tabs
from ..shipped_files import served
from . import boxes, link
from .boxes import box
from .pane import Act, Pane
from .panels import panels
from .panels.report import names_no_file
from .panes import ControlsPane, HeadlinePane, MemoryPane, StepPane, StoryPane
from .session import Answer, Judge, Openable, Session, assess

_REFER, _CLEAR = "Set reference", "Clear reference"


class TitlePane(Pane):
    """The name of the design, the way back, the reference, and the link."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.title = boxes.text(cls="sd-title-host")
        self.undo = self._button("Undo", session.undo, "Take the last change back")
        self.redo = self._button("Redo", session.redo, "Do the change again")
        self.reset = self._button("Reset", session.reset, "Back to the design the desk opened with")
        self.refer = self._button(_REFER, session.refer, "Compare the next designs with this one")
        self.link = Link()
        buttons = (self.undo, self.redo, self.reset, self.refer)
        self.root = box("sd-head", self.title, *buttons, self.link)

    def _button(self, name: str, act: Act, tip: str) -> Button:
        return Button(name, partial(self.act, act), tip)

    def show(self) -> None:
        session = self.session
        self._show_title()
        self.undo.disabled, self.redo.disabled = not session.can_undo, not session.can_redo
        back = session.now.design == session.first.design
        self.reset.disabled = back and session.refusal is None
        self.refer.active = session.reference is not None
        self.refer.description = _CLEAR if self.refer.active else _REFER

    def _show_title(self) -> None:
        session, now = self.session, self.session.now
        cluster, used = now.resolved.cluster, figure(now.figures, "devices_used")
        machine = f"{cluster.devices:,} × {cluster.accelerator.name}"
        named = now.design == session.named or now.design.name != session.named.name
        title = now.design.title if named else f"{now.resolved.model.name} on {machine}"
        remarks = [machine if named else f"changed from {session.named.title}"]
        if used not in (None, cluster.devices):
            remarks.append(f"{show('devices_used', used)} used")
        if session.reference is not None:
            remarks.append("compared with the reference")
        if now.quick:
            remarks.append("quick search while dragging")
        below = boxes.escape(" · ".join(remarks))
        self.title.value = (
            f'<div class="sd-title" role="heading" aria-level="2">'
            f"{boxes.escape(title)}<small>{below}</small></div>"
        )


class DeskPane(Pane):
    """A desk on one design, as a page of its own.

    Parameters
    ----------
    design : a session, or what one opens: a `scantling.Design`, the path of a design file, a link;
    without one the example.
    judge : of a session that is opened here.
    autosave : path where the design on the desk is kept, so that a restarted kernel comes back to
    it; None keeps nothing.
    """

    def __init__(
        self,
        design: Session | Openable | None = None,
        *,
        judge: Judge = assess,
        autosave: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(design if isinstance(design, Session) else Session(design, judge))
        self._autosave = Path(autosave) if autosave else None
        session = self.session
        self.head, self.controls = TitlePane(session), ControlsPane(session)
        self.headline, self.story = HeadlinePane(session), StoryPane(session)
        self.memory_card, self.step_card = MemoryPane(session), StepPane(session)
        self.panels = panels(session)
        self.tabs = Tabs(
            cls="sd-tabs",
            children=[panel.root for panel in self.panels],
            titles=[panel.title for panel in self.panels],
        )
        self._offer_tabs()
        self.tabs.on("selected_index", lambda _: self.act(self._show_tab))
        right = box(
            "sd-right",
            self.headline.root,
            self.story.root,
            box("sd-pair", self.memory_card.root, self.step_card.root),
            self.tabs,
        )
        body = box("sd-body", box("sd-left", self.controls.root), right)
        self.root = box("sd-desk", self.head.root, body)
        self.open()

    # ------------------------------------------------------------ for people who type
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

    # ------------------------------------------------------------ the address of the page
    def greeted(self, message: Message) -> None:
        """`link` of the message says which design the address of the page asks for."""
        address = str(message.get("link") or "")
        if link.holds(address) and address != self.head.link.value:
            self.act(partial(self.open_link, address))
        self.story.greeted(message)

    def open_link(self, text: str) -> bool:
        """Put the design of a link on the desk; of one that cannot be, what is left is offered."""
        try:
            self._check(design := link.read(text))
        except DesignError as error:
            self.session.refuse(error, link.NAME, link.rest(text, self._check))
            return False
        return self.session.put(design)

    def _check(self, design: Design) -> None:
        if served():
            names_no_file(design, self.design)
        prepare(untuned(design))

    # ------------------------------------------------------------ what is shown
    def show(self) -> None:
        session, form = self.session, self.controls.form
        self._offer_tabs()
        self.headline.show()
        self.memory_card.show()
        self.step_card.show()
        if not session.moving:
            self.story.show()
            self.head.link.value = link.write(session.now.design)
        self.controls.show()
        self.head.show()
        form.drawn = self.headline.strip.revision
        if not session.moving:
            if self.page is not None:
                self.page.flush()  # what the eye is on goes out first
            self._show_tab()
        self.headline.show_fault()  # of a tab, too
        self._save()

    def _offer_tabs(self) -> None:
        """Offer the tabs that have something to say of the method on the desk."""
        tuned = self.session.now.tuned is not None
        offered = [place for place, panel in enumerate(self.panels) if panel.answers(tuned)]
        self.tabs.offered = offered
        if self.tabs.selected_index not in offered:
            self.tabs.selected_index = offered[0]

    def _show_tab(self) -> None:
        if self.tabs.selected_index is not None:
            self.panels[self.tabs.selected_index].show()
            self.controls.form.shown += 1

    def _save(self) -> None:
        try:
            if self._autosave is not None:
                self._autosave.parent.mkdir(parents=True, exist_ok=True)
                self.session.now.design.write(self._autosave, force=True)
        except OSError:
            self._autosave = None  # a folder that cannot be written: go on without
