"""The design desk: inputs at the left, headline numbers, the two main pictures, one sentence, tabs
below. It is made of parts and knows no Jupyter; `view` puts it into a notebook."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from os import PathLike, environ
from pathlib import Path
from typing import Any

from scantling.api import Assessment
from scantling.base.errors import DesignError
from scantling.design.design import Design
from scantling.plans.prepare import prepare
from scantling.verdict.result import Result, band_of

from .. import resources
from ..charts import memory_step as charts
from ..charts.livechart import LiveChart, vega_bundle
from ..charts.parts import Button, Link, Message, Page, Part, Tabs
from ..resources import served
from ..words import show
from . import headline, inputs, legend, link, story, theme
from .background import Waiting, in_background
from .form import Form
from .panels import panels
from .panels.report import names_no_file
from .state import Fields, Judge, Moment, Session, assess
from .theme import box
from .view import View

_REFER, _LETS_GO = "Set reference", "Clear reference"
_FIRST = "Move an input or take a suggestion: what it does, and what then takes most, is said here."
Openable = Design | str | Path  # a design, the path of its file, or its link
Act = Callable[[], Any]
_IDLE_S = 1.5  # without a change, until moves are tried


class Desk:
    """A desk on one design. Display it in a notebook; `desk.design` and `desk.result` follow what
    is on it.

    Parameters
    ----------
    design : a `scantling.Design`, the path of a design file, or a link; without one the example.
    judge : function of a design that gives its assessment; the library's own unless a test says
    otherwise.
    autosave : path where the design on the desk is kept, so that a restarted kernel comes back to
    it; None keeps nothing.
    """

    def __init__(
        self,
        design: Openable | None = None,
        *,
        judge: Judge = assess,
        autosave: str | PathLike[str] | None = None,
    ) -> None:
        self._autosave = Path(autosave) if autosave else None
        self.session = Session(_read(design), judge)
        self.form = Form(self._moved, self._asked)
        # {field: {value: why the design cannot take it}}, for the design in _reasons_of
        self._reasons: dict[str, dict[Any, str]] = {}
        self._reasons_of: Design | None = None
        self._offered: headline.Offer | None = None
        self._timer: Waiting | None = None
        self._explain = partial(headline.explanation, self.session)
        self.strip = legend.Strip(self._explain)
        self._line = theme.text(cls="sd-line-host")
        self._error = theme.text(cls="sd-fault-host")
        self._dismiss = self._button("Dismiss", self._forget)
        self._fix = self._button("Apply fix", self._apply_fix, cls="sd-fix")
        self._tabs()
        self._story = theme.text(cls="sd-story")
        self._moves = box("sd-line-of sd-moves")
        right = box(
            "sd-right",
            box("sd-line-of", self._error, self._dismiss),
            self.strip,
            box("sd-line-of sd-said", self._line, self._fix),
            box("sd-line-of sd-tale", self._story, self._moves),
            self._pair(),
            self.tabs,
        )
        body = box("sd-body", box("sd-left", self.form), right)
        self.page = Page(box("sd-desk", self._head(), body), self._greeted)
        self.view = View(self.page)
        self.session.watch(self._draw)
        self._draw(self.session)

    def _ipython_display_(self) -> None:
        self.view.display()

    def _greeted(self, message: Message) -> None:
        """Somebody looks at the page from now on: `vega` says whether charts can be drawn there,
        `link` which design the address asks for."""
        if not message.get("vega") and self.page.tell is not None:
            self.page.tell({"runtime": vega_bundle()})
        asked = str(message.get("link") or "")
        if link.holds(asked) and asked != self._link.value:
            self._do(partial(self.open_link, asked))
        self._suggest()

    def open_link(self, text: str) -> bool:
        """Put the design of a link on the desk; of one that cannot be, what is left is offered."""

        def check(design: Design) -> None:
            if served():
                names_no_file(design, self.design)
            prepare(design)

        try:
            check(design := link.read(text))
        except DesignError as error:
            self.session.refuse(error, link.NAME, link.rest(text, check))
            return False
        return self.session.put(design)

    # ------------------------------------------------------------ for people who type
    @property
    def design(self) -> Design:
        """The design on the desk; assigning one puts it there."""
        return self.session.now.design

    @design.setter
    def design(self, design: Openable | None) -> None:
        self.session.put(_read(design))

    @property
    def result(self) -> Assessment:
        """The assessment of the design on the desk."""
        return self.session.now.result

    # ------------------------------------------------------------ parts
    def _button(self, name: str, act: Act, tip: str = "", cls: str = "") -> Button:
        return Button(name, partial(self._do, act), tip, cls)

    def _head(self) -> Part:
        self._title = theme.text(cls="sd-title-host")
        session = self.session
        self._buttons = [
            self._button("Undo", session.undo, "Take the last change back"),
            self._button("Redo", session.redo, "Do the change again"),
            self._button("Reset", session.reset, "Back to the design the desk opened with"),
            self._button(_REFER, session.refer, "Compare the next designs with this one"),
        ]
        self._link = Link()
        return box("sd-head", self._title, *self._buttons, self._link)

    def _pair(self) -> Part:
        self.memory, self.step = charts.memory.live(), charts.step.live()
        self._memory_key, self._step_key = legend.Key(self._explain), legend.Key(self._explain)
        self._memory_card = theme.card(charts.memory.title, self.memory, self._memory_key)
        self._step_card = theme.card(charts.step.title, self.step, self._step_key)
        return box("sd-pair", self._memory_card, self._step_card)

    def _tabs(self) -> None:
        self.panels = panels(self.session, self.choose)
        self.tabs = Tabs(
            cls="sd-tabs",
            children=[panel.box for panel in self.panels],
            titles=[panel.title for panel in self.panels],
        )
        self.tabs.on("selected_index", lambda _: self._do(self._show_tab))

    # ------------------------------------------------------------ what happens
    def _do(self, action: Act) -> None:
        """Run a callback; whatever goes wrong is shown on the desk."""
        try:
            with self.session.lock:
                action()
        except DesignError as error:
            self.session.refuse(error)
        except Exception as error:
            self.session.report(error)
            self._show_fault()

    def _moved(self, field: str, value: Any, final: bool) -> None:
        def move() -> None:
            if field == "example":
                if value:
                    self.session.put(Design.read(value))
                return
            try:
                fields = inputs.changes(self.session.now, field, value)
            except DesignError as error:
                self.session.refuse(error, field, tried=value)
                return
            if fields:
                self.session.change(fields, field, quick=not final, tried=value)

        self._do(move)

    def _asked(self, field: str) -> None:
        """Somebody is about to open a list of the plan: say which of its values the design cannot
        take, and why."""

        def look() -> None:
            if self._reasons_of is not self.session.now.design:
                self._reasons, self._reasons_of = {}, self.session.now.design
            if field not in self._reasons:
                self._reasons[field] = inputs.refusals(self.session.now, field)
                self.form.show(inputs.groups(self.session, self._reasons))

        self._do(look)

    def choose(self, fields: Fields) -> bool:
        """Change fields of the design on the desk, as a click in a tab does."""
        return self.session.change(fields)

    def _apply_fix(self) -> None:
        if self._offered is not None:
            self.session.change(self._offered.fields)

    def _forget(self) -> None:
        self.session.dismiss()
        self._show_fault()

    # ------------------------------------------------------------ what is shown
    def _draw(self, session: Session) -> None:
        now = session.now
        reference = session.reference.given if session.reference else None
        self.strip.show(headline.cards(now.given, reference))
        if now.given.get("plan"):
            self._show_pictures(reference if reference and reference.get("plan") else None)
        else:
            self._show_reasons()
        self._show_line()
        if not session.moving:
            self._tell()
            self._link.value = link.write(now.design)
        reasons = self._reasons if self._reasons_of is now.design else {}
        self.form.show(inputs.groups(session, reasons))
        self._show_title()
        self.form.drawn = self.strip.revision
        if not session.moving:
            self.page.flush()  # what the eye is on goes out first
            self._show_tab()
        self._show_fault()
        self._keep()

    def _show_pictures(self, reference: Result | None) -> None:
        given = self.session.now.given
        worst = charts.fullest(given)
        charts.memory.show(self.memory, given, reference=reference)
        charts.step.show(self.step, given, reference=reference)
        self._memory_key.show(legend.memory(worst), worst)
        self._step_key.show(legend.step(given))
        self._memory_card.note = f"legend shows stage {worst['stage']} (peak)"
        spread = band_of(given, "step_s")
        self._step_card.note = f"bar: {spread}, 80 % prediction interval" if spread else ""

    def _show_reasons(self) -> None:
        """In place of the pictures: why there is no plan, and what would help."""
        given = self.session.now.given
        fixes = [headline.fix_text(fix) for fix in given["nearest_fixes"]]
        help_ = f"{charts.step.empty} What would help:" if fixes else charts.step.empty
        _show_lines(self.memory, [charts.memory.empty, *map(str, given["limits"])])
        _show_lines(self.step, [help_, *fixes])
        self._memory_key.show([])
        self._step_key.show([])
        self._memory_card.note = ""
        self._step_card.note = ""

    def _show_title(self) -> None:
        session, now = self.session, self.session.now
        cluster, used = now.resolved.cluster, now.given.get("devices_used")
        machine = f"{cluster.devices:,} × {cluster.accelerator.name}"
        named = now.design == session.named or now.design.name != session.named.name
        title = now.design.title if named else f"{now.resolved.model.name} on {machine}"
        parts = [machine if named else f"changed from {session.named.title}"]
        if used not in (None, cluster.devices):
            parts.append(f"{show('devices_used', used)} used")
        if session.reference is not None:
            parts.append("compared with the reference")
        if now.quick:
            parts.append("quick search while dragging")
        below = theme.escape(" · ".join(parts))
        self._title.value = (
            f'<div class="sd-title" role="heading" aria-level="2">'
            f"{theme.escape(title)}<small>{below}</small></div>"
        )
        undo, redo, reset, refer = self._buttons
        undo.disabled, redo.disabled = not session.can_undo, not session.can_redo
        reset.disabled = now.design == session.first.design and session.refusal is None
        refer.active = session.reference is not None
        refer.description = _LETS_GO if refer.active else _REFER

    def _show_line(self) -> None:
        state, start, sentence = headline.message(self.session.now.given, self.session.refusal)
        self._line.value = (
            f'<div class="sd-line" role="status" tabindex="0" data-state="{state}"><span '
            f'title="{theme.escape(sentence)}"><b>{theme.escape(start)}</b> '
            f"{theme.escape(sentence)}</span></div>"
        )
        self._offered = headline.offer(self.session)
        self._fix.hidden = self._offered is None
        if self._offered is not None:
            self._fix.description, self._fix.tooltip = self._offered.name, self._offered.effect

    def _tell(self) -> None:
        """What the last change did, and what to try next."""
        session = self.session
        moved = session.now.design not in (session.before.design, session.named)
        self._story.value = theme.escape(
            story.changed(session.before, session.now) if moved else _FIRST
        )
        self._moves.children = ()
        self._suggest()

    def _suggest(self) -> None:
        """Try moves once nothing has changed for a while, where somebody looks."""
        if self._timer is not None:
            self._timer.cancel()
        if self.page.tell is not None:
            self._timer = in_background(self._try_moves(self.session.now), _IDLE_S)

    def _try_moves(self, moment: Moment) -> Iterator[None]:
        trials = []
        try:
            for trial in story.trials(self.session.judge, moment):
                if self.session.now is not moment or self.session.moving:
                    return
                trials.append(trial)
                yield
            moves = story.suggested(moment, trials)
        except Exception as error:  # shown on the desk, which goes on
            self.session.report(error)
            self._show_fault()
        else:
            self.offer_moves(moves)

    def offer_moves(self, moves: Iterable[tuple[str, str, Fields]]) -> None:
        """Put suggested moves (name, what comes of it, fields) below the sentence."""
        self._moves.children = [
            self._button(f"{name}: {effect}", partial(self.choose, fields), effect)
            for name, effect, fields in moves
        ]

    def _show_tab(self) -> None:
        if self.tabs.selected_index is not None:
            self.panels[self.tabs.selected_index].show()
            self.form.shown += 1

    def _show_fault(self) -> None:
        fault = self.session.fault
        self._dismiss.hidden = not fault
        if fault is None:
            self._error.value = ""
            return
        what, trace = map(theme.escape, fault)
        self._error.value = (
            '<div class="sd-error" role="alert"><b>Something went wrong in the kit; the desk goes '
            f"on.</b> {what}<details><summary>Details</summary><pre>{trace}</pre></details></div>"
        )

    def _keep(self) -> None:
        try:
            if self._autosave is not None:
                self._autosave.parent.mkdir(parents=True, exist_ok=True)
                self.session.now.design.write(self._autosave, force=True)
        except OSError:
            self._autosave = None  # a folder that cannot be written: go on without


def _show_lines(chart: LiveChart, lines: list[str]) -> None:
    """Put a list into the place of a picture."""
    chart.empty = "\n• ".join(lines)
    chart.update({name: {} for name in chart.data}, chart.empty)


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
    opened = design or environ.get("SCANTLING_DESIGN")
    return Desk(opened, judge=judge, autosave=autosave)


def _read(design: Openable | None) -> Design:
    """A design, the path of its file, its link, or nothing for the example."""
    if isinstance(design, str) and link.holds(design):
        return link.read(design)
    if isinstance(design, Design):
        return design
    return Design.read(design or resources.example())
