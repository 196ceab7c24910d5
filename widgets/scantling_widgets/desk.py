"""The design desk: inputs at the left, headline numbers, the two main pictures, one sentence, tabs
below."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import ipywidgets as W
from scantling.base.errors import DesignError
from scantling.design.design import Design

from . import charts, headline, inputs, legend, resources, theme
from .form import Form
from .panels import panels
from .state import Session, assess
from .strip import Strip
from .theme import box
from .words import band, show

_LEFT = "338px"


class Desk(W.VBox):
    """A desk on one design. Display it in a notebook; `desk.design` and `desk.result` follow what
    is on it.

    Parameters
    ----------
    design : a `scantling.Design`, or the path of a design file; without one the example design.
    judge : function of a design that gives its assessment; the library's own unless a test says
    otherwise.
    autosave : path where the design on the desk is kept, so that a restarted kernel comes back to
    it; None keeps nothing.
    """

    def __init__(
        self,
        design=None,
        *,
        judge=assess,
        autosave=None,
    ):
        self._autosave = Path(autosave) if autosave else None
        self.session = Session(_read(design), judge)
        self.form = Form(self._moved, self._asked)
        # {field: {value: why the design cannot take it}}, for the design in _reasons_of
        self._reasons, self._reasons_of = {}, None
        self.strip = Strip(self._explain)
        self._head()
        self._pictures()
        self._line = theme.text(cls="sd-line-host")
        self._error = W.HTML()
        self._dismiss = self._button(
            "Dismiss",
            self._forget,
            display="none",
            width="90px",
        )
        room = {
            "width": "auto",
            "min_width": "96px",
            "flex": "0 0 auto",
        }
        self._fix = self._button(
            "Apply fix",
            self._apply_fix,
            display="none",
            **room,
        )
        self._fix.add_class("sd-fix")
        self.strip.add_class("sd-stick")
        self._tabs()
        row = {
            "flex": "0 0 auto",
            "overflow": "visible",
        }
        fault = box(
            W.HBox,
            "sd-fault-row",
            self._error,
            self._dismiss,
            grid_gap="8px",
            **row,
        )
        line = box(
            W.HBox,
            "",
            self._line,
            self._fix,
            align_items="center",
        )
        parts, room = (fault, self.strip, line, self._main, self.tabs), {"flex": "1 1 0"}
        right = box(
            W.VBox,
            "sd-right",
            *parts,
            min_width="0",
            grid_gap="6px",
            **room,
        )
        left = box(
            W.VBox,
            "sd-left",
            self.form,
            flex=f"0 0 {_LEFT}",
            width=_LEFT,
        )
        body = box(
            W.HBox,
            "",
            left,
            right,
            grid_gap="12px",
            width="100%",
            overflow="visible",
        )
        super().__init__([theme.sheet(), self._headbox, body])
        self.add_class("sd-desk")
        self.session.watch(self._draw)
        self._draw(self.session)

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
    def _head(self) -> None:
        self._title = theme.text(cls="sd-title-host")
        self._title.layout.flex = "1 1 0"
        self._title.layout.min_width = "0"
        session = self.session
        self._buttons = {
            name: self._button(name, act, tip=tip)
            for name, act, tip in (
                ("Undo", session.undo, "Take the last change back"),
                ("Redo", session.redo, "Do the change again"),
                ("Reset", session.reset, "Back to the design the desk opened with"),
                ("Pin", session.pin, "Keep this design to compare the next ones with"),
            )
        }
        self._headbox = box(
            W.HBox,
            "sd-head",
            self._title,
            *self._buttons.values(),
        )

    def _button(self, name: str, act, **more) -> W.Button:
        """A button whose faults are shown on the desk."""
        return theme.button(name, partial(self._do, act), **more)

    def _pictures(self) -> None:
        self.memory, self.step = charts.memory.live(), charts.step.live()
        self._memory_note, self._step_note = theme.text(cls="sd-note"), theme.text(cls="sd-note")
        self._memory_key, self._step_key = legend.Key(self._explain), legend.Key(self._explain)
        cards = [
            theme.card(
                charts.memory.title,
                self.memory,
                self._memory_key,
                note=self._memory_note,
            ),
            theme.card(
                charts.step.title,
                self.step,
                self._step_key,
                note=self._step_note,
            ),
        ]
        halves = "minmax(0, 1fr) minmax(0, 1fr)"
        place = {
            "grid_template_columns": halves,
            "grid_gap": "8px",
            "width": "100%",
        }
        self._main = box(
            W.GridBox,
            "",
            *cards,
            **place,
        )

    def _tabs(self) -> None:
        self.panels = panels(self.session, self.choose)
        boxes, titles = zip(*((panel.box, panel.title) for panel in self.panels))
        self.tabs = W.Tab(
            boxes,
            titles=titles,
            selected_index=0,
        )
        self.tabs.observe(lambda _: self._do(self._show_tab), "selected_index")

    # ------------------------------------------------------------ what happens
    def _do(self, action) -> None:
        """Run a callback; whatever goes wrong is shown on the desk."""
        try:
            with self.session.lock:
                action()
        except DesignError as error:
            self.session.refuse(error.field, str(error))
        except Exception as error:
            self.session.report(error)
            self._show_fault()

    def _moved(
        self,
        field,
        value,
        final,
    ) -> None:
        def move():
            if field == "example":
                if value:
                    self.session.put(Design.read(value))
                return
            try:
                fields = inputs.changes(self.session, field, value)
            except DesignError as error:
                self.session.refuse(error.field, str(error), field)
                return
            if fields:
                self.session.change(fields, field, quick=not final)

        self._do(move)

    def _asked(self, field) -> None:
        """Somebody is about to open a list of the plan: say which of its values the design cannot
        take, and why."""

        def look():
            if self._reasons_of is not self.session.now.design:
                self._reasons, self._reasons_of = {}, self.session.now.design
            if field not in self._reasons:
                self._reasons[field] = inputs.refusals(self.session, field)
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

    def _explain(
        self,
        key,
        facts=None,
    ):
        return headline.explanation(key, self.session, facts or None)

    # ------------------------------------------------------------ what is shown
    def _draw(self, session) -> None:
        now, pinned = session.now, session.pinned and session.pinned.given
        given = now.given
        self.strip.show(headline.cards(given, pinned))  # what the eye is on goes out first
        pinned = pinned if pinned and pinned.get("plan") else None
        if not given.get("plan"):
            fixes = [headline.fix_text(fix) for fix in given.get("nearest_fixes") or []]
            help_ = charts.step.empty + (" What would help:" if fixes else "")
            limits = [charts.memory.empty, *map(str, given.get("limits") or [])]
            for picture, key, text in (
                (self.memory, self._memory_key, limits),
                (self.step, self._step_key, [help_, *fixes]),
            ):
                picture.empty = "\n• ".join(text)
                picture.update({name: {} for name in picture.data}, picture.empty)
                key.show([])
            self._memory_note.value = self._step_note.value = ""
        else:
            charts.memory.show(self.memory, given, pinned=pinned)
            charts.step.show(self.step, given, pinned=pinned)
            self._step_key.show(legend.step(given))
            ends = band("step_s", given["step_s_low"], given["step_s_high"])
            self._step_note.value = theme.note(f"line: {ends}, the 80 % band")
            worst = charts.fullest(given)
            self._memory_key.show(legend.memory(worst), worst)
            self._memory_note.value = theme.note(f"key: stage {worst['stage']}, the fullest")
        self._show_line()
        reasons = self._reasons if self._reasons_of is now.design else {}
        self.form.show(inputs.groups(session, reasons))
        self._show_title()
        if not session.moving:
            self._show_tab()
        self._show_fault()
        self._keep()
        self.form.drawn = self.strip.revision

    def _show_title(self) -> None:
        session, now = self.session, self.session.now
        cluster, used = now.resolved.cluster, now.given.get("devices_used")
        changed = now.design != session.first.design
        parts = {
            f"{cluster.devices:,} × {cluster.accelerator.name}": True,
            f", {show('devices_used', used)} used": used not in (None, cluster.devices),
            " · changed": changed,
            " · compared with the pinned design": session.pinned,
            " · quick search while dragging": now.quick,
        }
        below = theme.escape("".join(part for part, said in parts.items() if said))
        self._title.value = (
            f'<div class="sd-title" role="heading" aria-level="2">'
            f"{theme.escape(now.design.title)}<small>{below}</small></div>"
        )
        undo, redo, reset, pin = self._buttons.values()
        undo.disabled, redo.disabled = not session.can_undo, not session.can_redo
        reset.disabled = not changed and session.refusal is None
        pin.description, pin.button_style = ("Unpin", "primary") if session.pinned else ("Pin", "")

    def _show_line(self) -> None:
        state, start, sentence = headline.message(self.session.now.given, self.session.refusal)
        self._line.value = (
            f'<div class="sd-line" role="status" data-state="{state}"><span '
            f'title="{theme.escape(sentence)}"><b>{theme.escape(start)}</b> '
            f"{theme.escape(sentence)}</span></div>"
        )
        self._offered = headline.offer(self.session)
        self._fix.layout.display = "none" if self._offered is None else ""
        if self._offered is not None:
            self._fix.description, self._fix.tooltip, _ = self._offered

    def _show_tab(self) -> None:
        if self.tabs.selected_index is not None:
            self.panels[self.tabs.selected_index].show()
            self.form.shown += 1

    def _show_fault(self) -> None:
        fault = self.session.fault
        self._dismiss.layout.display = "" if fault else "none"
        what, trace = map(theme.escape, fault or ("", ""))
        said = (
            '<div class="sd-error" role="alert"><b>Something went wrong in the kit; the desk goes '
            f"on.</b> {what}<details><summary>Details</summary><pre>{trace}</pre></details></div>"
        )
        self._error.value = said if fault else ""

    def _keep(self) -> None:
        if self._autosave is None:
            return
        try:
            self._autosave.parent.mkdir(
                parents=True,
                exist_ok=True,
            )
            self.session.now.design.write(self._autosave, force=True)
        except OSError:
            self._autosave = None  # a folder that cannot be written: go on without


def open_desk(design=None, **more) -> Desk:
    """A desk on `design`; without one, on what the `lab` command was started with, or where the
    last desk in this folder stopped.

    `lab` says so through the environment: SCANTLING_DESIGN is the file to open, SCANTLING_AUTOSAVE
    where the desk keeps its state.
    """
    autosave = os.environ.get("SCANTLING_AUTOSAVE")
    if design is None and autosave and Path(autosave).is_file():
        try:
            return Desk(
                autosave,
                autosave=autosave,
                **more,
            )
        except DesignError:
            pass  # kept by another version of the kit: start from the file again
    return Desk(
        design or os.environ.get("SCANTLING_DESIGN") or None,
        autosave=autosave,
        **more,
    )


def _read(design):
    if design is None:
        return Design.read(resources.example())
    return Design.read(design) if isinstance(design, (str, os.PathLike)) else design
