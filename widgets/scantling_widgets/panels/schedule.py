"""The pipeline in time: the plan's schedule, another one below it under the same settings, and what
each holds."""

from __future__ import annotations

import ipywidgets as W
from scantling.physics import pipeline, schedule

from .. import theme
from ..charts_schedule import gantt, gantt_of, held, words_of
from .base import Panel

_STAGES, _BATCHES = 16, 32  # what a picture of this size can show


class Schedule(Panel):
    title = "Schedule"

    def build(self):
        self.other = W.Dropdown(
            options=[row.name for row in pipeline.SCHEDULES.values()],
            description="Compare with",
            style={"description_width": "96px"},
            layout=W.Layout(width="260px"),
        )
        self.other.observe(self._compare, "value")
        self.window = W.Dropdown(
            options=[
                ("the whole step", (0.0, 1.0)),
                ("the first eighth", (0.0, 0.125)),
                ("the middle eighth", (0.4375, 0.5625)),
                ("the last eighth", (0.875, 1.0)),
            ],
            description="Draw",
            style={"description_width": "40px"},
            layout=W.Layout(width="200px"),
        )
        self.window.observe(lambda _: self.draw(), "value")
        self._chosen = False
        self.note = theme.text()
        self.first, self.second, self.held = gantt.live(), gantt.live(), held.live()
        self.first_note, self.second_note = theme.text(), theme.text()
        row = W.HBox(
            [self.other, self.window, self.note],
            layout=W.Layout(grid_gap="12px", align_items="center"),
        )
        self.pictures = [
            row,
            theme.card("The plan's schedule", self.first_note, self.first),
            theme.card("The other, same settings", self.second_note, self.second),
            theme.card(held.title, self.held),
        ]
        self.none = theme.text(
            "<p>One pipeline stage: the plan has no schedule to draw. Pin PP to more "
            "than one to see it.</p>"
        )
        return [self.none, *self.pictures]

    def _compare(self, _) -> None:
        if self._drawing:
            return
        self._chosen = True
        self.draw()

    _drawing = False

    def draw(self):
        given = self.session.now.given
        plan = given.get("plan") or {}
        if not self._chosen:  # until somebody chooses: beside the plan's own, the plain one
            self._drawing = True
            self.other.value = "1f1b" if plan.get("schedule") != "1f1b" else "gpipe"
            self._drawing = False
        stages, batches = plan.get("pp") or 1, plan.get("grad_accum") or 1
        for box in self.pictures:
            box.layout.display = "" if stages > 1 else "none"
        self.none.layout.display = "none" if stages > 1 else ""
        pp, m = min(stages, _STAGES), min(batches, _BATCHES)
        cut = (
            f" Drawn: {pp} of {stages} stages, {m} of {batches} micro-batches."
            if (pp, m) != (stages, batches)
            else ""
        )
        self.note.value = (
            (
                (
                    "<span class='sd-dim'>Forward, input gradients and weight gradients "
                    "drawn equally long; transfers left out."
                )
                + cut
                + "</span>"
            )
            if pp > 1
            else ""
        )
        layouts = []
        for name, chart, note, vpp in (
            (plan.get("schedule"), self.first, self.first_note, plan.get("vpp") or 1),
            (self.other.value, self.second, self.second_note, None),
        ):
            layout, text = (
                lay_out(name, pp, vpp if vpp is not None else (plan.get("vpp") or 1), m)
                if pp > 1
                else (None, "")
            )
            figure = gantt_of(layout)
            chart.spec = figure.spec()
            figure.show(chart, given, layout=layout, window=self.window.value)
            note.value = f"<p>{theme.escape(text)}</p>"
            if layout is not None:
                layouts.append(layout)
        held.show(self.held, given, layouts=layouts)


def lay_out(name, pp, vpp, m):
    """(layout, words) of a schedule, in units of one forward pass; None and the rule it breaks
    where the settings do not allow it.

    The comparison takes one chunk where its schedule knows no others, and two where it needs them.
    """
    problem = ""
    for chunks in dict.fromkeys((vpp, 1, 2)):
        try:
            layout = schedule.lay_out(name, pp, chunks, m, 1.0, 1.0, 1.0)
        except ValueError as error:
            problem = problem or str(error)
            continue
        return layout, words_of(layout)
    return None, problem
