"""The design desk: inputs at the left, headline numbers, the two main pictures, one sentence, tabs
below. It is made of parts and knows no Jupyter; `view` puts it into a notebook."""

from collections.abc import Iterator
from functools import partial
from os import PathLike, environ
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.base.quantities.table import band_in
from scantling.design.design import Design
from scantling.plans.prepare import prepare

from .. import resources
from ..charts import memory_step as charts
from ..charts.livechart import vega_bundle
from ..charts.parts import Button, Link, Page, Part, Tabs
from ..resources import served
from ..words import show
from . import headline, inputs, legend, link, story, theme
from .background import in_background
from .form import Form
from .panels import panels
from .panels.report import names_no_file
from .state import Session, assess
from .theme import box
from .view import View

_REFER, _LETS_GO = "Set reference", "Clear reference"
_FIRST = "Move an input or take a suggestion: what it does, and what then takes most, is said here."
_FIGURES = (charts.memory, charts.step)
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

    def __init__(self, design=None, *, judge=assess, autosave=None):
        self._autosave = Path(autosave) if autosave else None
        self.session = Session(_read(design), judge)
        self.form = Form(self._moved, self._asked)
        # {field: {value: why the design cannot take it}}, for the design in _reasons_of
        self._reasons, self._reasons_of = {}, None
        self._explain = partial(headline.explanation, self.session)
        self.strip = legend.Strip(self._explain)
        self._line = theme.text(cls="sd-line-host")
        self._error = theme.text(cls="sd-fault-host")
        self._dismiss = self._button("Dismiss", self._forget)
        self._fix = self._button("Apply fix", self._apply_fix, cls="sd-fix")
        self._tabs()
        self._story = theme.text(cls="sd-story")
        self._moves, self._timer = box("sd-line-of sd-moves"), None
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

    def _greeted(self, message) -> None:
        """Somebody looks at the page from now on: `vega` says whether charts can be drawn there,
        `link` which design the address asks for."""
        if not message.get("vega"):
            self.page.tell({"runtime": vega_bundle()})
        asked = str(message.get("link") or "")
        if link.holds(asked) and asked != self._link.value:
            self._do(partial(self.open_link, asked))
        self._suggest()

    def open_link(self, text: str) -> bool:
        """Put the design of a link on the desk; of one that cannot be, what is left is offered."""

        def check(design):
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
    def design(self):
        """The design on the desk; assigning one puts it there."""
        return self.session.now.design

    @design.setter
    def design(self, design) -> None:
        self.session.put(_read(design))

    @property
    def result(self):
        """The assessment of the design on the desk."""
        return self.session.now.result

    # ------------------------------------------------------------ parts
    def _button(self, name: str, act, tip: str = "", cls: str = "") -> Button:
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
        self._pictures = self.memory, self.step = [figure.live() for figure in _FIGURES]
        self._keys = [legend.Key(self._explain) for _ in _FIGURES]
        self._cards = [
            theme.card(figure.title, *parts)
            for figure, *parts in zip(_FIGURES, self._pictures, self._keys)
        ]
        return box("sd-pair", *self._cards)

    def _tabs(self) -> None:
        self.panels = panels(self.session, self.choose)
        self.tabs = Tabs(
            cls="sd-tabs",
            children=[panel.box for panel in self.panels],
            titles=[panel.title for panel in self.panels],
        )
        self.tabs.on("selected_index", lambda _: self._do(self._show_tab))

    # ------------------------------------------------------------ what happens
    def _do(self, action) -> None:
        """Run a callback; whatever goes wrong is shown on the desk."""
        try:
            with self.session.lock:
                action()
        except DesignError as error:
            self.session.refuse(error)
        except Exception as error:
            self.session.report(error)
            self._show_fault()

    def _moved(self, field, value, final) -> None:
        def move():
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

    def _asked(self, field) -> None:
        """Somebody is about to open a list of the plan: say which of its values the design cannot
        take, and why."""

        def look():
            if self._reasons_of is not self.session.now.design:
                self._reasons, self._reasons_of = {}, self.session.now.design
            if field not in self._reasons:
                self._reasons[field] = inputs.refusals(self.session.now, field)
                self.form.show(inputs.groups(self.session, self._reasons))

        self._do(look)

    def choose(self, fields) -> bool:
        """Change fields of the design on the desk, as a click in a tab does."""
        return self.session.change(fields)

    def _apply_fix(self) -> None:
        if self._offered is not None:
            self.session.change(self._offered[2])

    def _forget(self) -> None:
        self.session.dismiss()
        self._show_fault()

    # ------------------------------------------------------------ what is shown
    def _draw(self, session) -> None:
        now, reference = session.now, session.reference and session.reference.given
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

    def _show_pictures(self, reference) -> None:
        given = self.session.now.given
        worst, (memory, step) = charts.fullest(given), self._cards
        for figure, picture in zip(_FIGURES, self._pictures):
            figure.show(picture, given, reference=reference)
        self._keys[0].show(legend.memory(worst), worst)
        self._keys[1].show(legend.step(given))
        memory.note = f"legend shows stage {worst['stage']} (peak)"
        spread = band_in(given, "step_s")
        step.note = f"bar: {spread}, 80 % prediction interval" if spread else ""

    def _show_reasons(self) -> None:
        """In place of the pictures: why there is no plan, and what would help."""
        given = self.session.now.given
        fixes = [headline.fix_text(fix) for fix in given["nearest_fixes"]]
        help_ = charts.step.empty + (" What would help:" if fixes else "")
        texts = [charts.memory.empty, *map(str, given["limits"])], [help_, *fixes]
        for picture, key, card, lines in zip(self._pictures, self._keys, self._cards, texts):
            picture.empty = "\n• ".join(lines)
            picture.update({name: {} for name in picture.data}, picture.empty)
            key.show([])
            card.note = ""

    def _show_title(self) -> None:
        session, now = self.session, self.session.now
        cluster, used = now.resolved.cluster, now.given.get("devices_used")
        machine = f"{cluster.devices:,} × {cluster.accelerator.name}"
        named = now.design == session.named or now.design.name != session.named.name
        title = now.design.title if named else f"{now.resolved.model.name} on {machine}"
        parts = {
            machine: named,
            f"changed from {session.named.title}": not named,
            f"{show('devices_used', used)} used": used not in (None, cluster.devices),
            "compared with the reference": session.reference,
            "quick search while dragging": now.quick,
        }
        below = theme.escape(" · ".join(part for part, said in parts.items() if said))
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
            self._fix.description, self._fix.tooltip, _ = self._offered

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

    def _try_moves(self, moment) -> Iterator:
        found = []
        try:
            for one in story.tried(self.session.judge, moment):
                if self.session.now is not moment or self.session.moving:
                    return
                yield found.append(one)
            moves = story.suggested(moment, found)
        except Exception as error:  # shown on the desk, which goes on
            self.session.report(error)
            self._show_fault()
        else:
            self.offer_moves(moves)

    def offer_moves(self, moves) -> None:
        """Put suggested moves (name, what comes of it, fields) below the sentence."""
        self._moves.children = [
            self._button(f"{name}: {said}", partial(self.choose, fields), said)
            for name, said, fields in moves
        ]

    def _show_tab(self) -> None:
        if self.tabs.selected_index is not None:
            self.panels[self.tabs.selected_index].show()
            self.form.shown += 1

    def _show_fault(self) -> None:
        fault = self.session.fault
        self._dismiss.hidden = not fault
        what, trace = map(theme.escape, fault or ("", ""))
        said = (
            '<div class="sd-error" role="alert"><b>Something went wrong in the kit; the desk goes '
            f"on.</b> {what}<details><summary>Details</summary><pre>{trace}</pre></details></div>"
        )
        self._error.value = said if fault else ""

    def _keep(self) -> None:
        try:
            if self._autosave is not None:
                self._autosave.parent.mkdir(parents=True, exist_ok=True)
                self.session.now.design.write(self._autosave, force=True)
        except OSError:
            self._autosave = None  # a folder that cannot be written: go on without


def open_desk(design=None, **more) -> Desk:
    """A desk on `design`; without one, on what the `lab` command was started with, or where the
    last desk in this folder stopped.

    `lab` says so through the environment: SCANTLING_DESIGN is the file to open, SCANTLING_AUTOSAVE
    where the desk keeps its state.
    """
    more["autosave"] = autosave = environ.get("SCANTLING_AUTOSAVE")
    if design is None and autosave and Path(autosave).is_file():
        try:
            return Desk(autosave, **more)
        except DesignError:
            pass  # kept by another version of the kit: start from the file again
    return Desk(design or environ.get("SCANTLING_DESIGN"), **more)


def _read(design):
    """A design, the path of its file, its link, or nothing for the example."""
    if isinstance(design, str) and link.holds(design):
        return link.read(design)
    if design and not isinstance(design, (str, PathLike)):
        return design
    return Design.read(design or resources.example())
