"""The pipeline in time: the plan's schedule, another one below it under the same settings, and what
each holds."""

from __future__ import annotations

from scantling.physics import pipeline, schedule

from .. import theme
from ..charts_schedule import gantt, gantt_of, held, words_of
from .base import Panel

_STAGES, _BATCHES = 16, 32  # what a picture of this size can show


_WINDOWS = {
    "the whole step": (0.0, 1.0),
    "the first eighth": (0.0, 0.125),
    "the middle eighth": (0.4375, 0.5625),
    "the last eighth": (0.875, 1.0),
}
_SIMPLE = "Forward, input gradients and weight gradients drawn equally long; transfers left out."
_NO_PIPELINE = (
    "<p>One pipeline stage: the plan has no schedule to draw. Pin PP to more than one to see "
    "it.</p>"
)


class Schedule(Panel):
    title = "Schedule"

    def build(self):
        names = [row.name for row in pipeline.SCHEDULES.values()]
        self.other = theme.drop(
            "Compare with",
            names,
            "260px",
            "96px",
        )
        self.window = theme.drop(
            "Draw",
            _WINDOWS.items(),
            "200px",
            "40px",
        )
        self.chosen, self.drawing = False, False
        self.other.observe(self._compare, "value")
        self.window.observe(lambda _: self.draw(), "value")
        self.note, self.none = theme.text(), theme.text(_NO_PIPELINE)
        self.charts = gantt.live(), gantt.live()
        self.notes = theme.text(), theme.text()
        self.held = held.live()
        titles = ("The plan's schedule", "The other, same settings")
        self.pictures = [
            theme.row(self.other, self.window, self.note),
            *(theme.card(*part) for part in zip(titles, self.notes, self.charts)),
            theme.card(held.title, self.held),
        ]
        return [self.none, *self.pictures]

    def _compare(self, _) -> None:
        if not self.drawing:
            self.chosen = True
            self.draw()

    def _propose(self, own) -> None:
        """Until somebody chooses: beside the plan's own schedule, the plain one."""
        self.drawing = True
        self.other.value = "gpipe" if own == "1f1b" else "1f1b"
        self.drawing = False

    def draw(self):
        plan = self.given.get("plan") or {}
        if not self.chosen:
            self._propose(plan.get("schedule"))
        stages, batches = plan.get("pp") or 1, plan.get("grad_accum") or 1
        pp, m = min(stages, _STAGES), min(batches, _BATCHES)
        for box in self.pictures:
            box.layout.display = "" if stages > 1 else "none"
        self.none.layout.display = "none" if stages > 1 else ""
        cut = f" Drawn: {pp} of {stages} stages, {m} of {batches} micro-batches."
        whole = (pp, m) == (stages, batches)
        self.note.value = theme.dim(_SIMPLE + ("" if whole else cut)) if pp > 1 else ""
        layouts = []
        names = (plan.get("schedule"), self.other.value)
        for name, chart, note in zip(names, self.charts, self.notes):
            layout, text = (
                lay_out(
                    name,
                    pp,
                    plan.get("vpp") or 1,
                    m,
                )
                if pp > 1
                else (None, "")
            )
            figure = gantt_of(layout)
            chart.spec = figure.spec()
            figure.show(
                chart,
                self.given,
                layout=layout,
                window=self.window.value,
            )
            note.value = f"<p>{theme.escape(text)}</p>"
            layouts += [layout] if layout is not None else []
        held.show(self.held, self.given, layouts=layouts)


def lay_out(
    name,
    pp,
    vpp,
    m,
):
    """(layout, words) of a schedule, in units of one forward pass; None and the rule it breaks
    where the settings do not allow it.

    The comparison takes one chunk where its schedule knows no others, and two where it needs them.
    """
    problem = ""
    for chunks in dict.fromkeys((vpp, 1, 2)):
        try:
            layout = schedule.lay_out(
                name,
                pp,
                chunks,
                m,
                1.0,
                1.0,
                1.0,
            )
        except ValueError as error:
            problem = problem or str(error)
            continue
        return layout, words_of(layout)
    return None, problem
