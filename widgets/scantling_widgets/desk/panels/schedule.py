"""The pipeline in time: the plan's schedule, another one below it under the same settings, and what
each holds."""

from scantling.physics import pipeline, schedule

from ...charts.schedule import gantt, gantt_of, held, laid, words_of
from .. import theme
from .base import Panel

_STAGES, _BATCHES = 16, 32  # what a picture of this size can show


_WINDOWS = {
    "the whole step": (0.0, 1.0),
    "the first eighth": (0.0, 0.125),
    "the middle eighth": (0.4375, 0.5625),
    "the last eighth": (0.875, 1.0),
}
_SIMPLE = "Forward, input gradients and weight gradients drawn equally long; transfers left out."


class Schedule(Panel):
    title = "Schedule"

    figures = {"own": gantt, "another": gantt, "laid": laid, "held": held}

    options = {
        "other": [row.name for row in pipeline.SCHEDULES.values()],
        "window": _WINDOWS.items(),
    }

    def begin(self):
        self.chosen, self.drawing = False, False
        self.other.on("index", self._compare)
        self.window.on("index", lambda _: self.draw())

    def build(self):
        none, *self.pictures, self.strip = super().build()
        return [none, *self.pictures, self.strip]

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
        plan = self.given["plan"]
        if not self.chosen:
            self._propose(plan["schedule"])
        stages, batches = plan["pp"], plan["grad_accum"]
        for box in self.pictures:
            box.hidden = stages == 1
        self.none.hidden = stages > 1
        self.strip.hidden = len(self.given["stages"][0]["blocks"]) == stages == 1
        self.picture("laid")
        self.kinds.show(self.given["blocks"])
        if stages == 1:
            return
        pp, m = min(stages, _STAGES), min(batches, _BATCHES)
        cut = f" Drawn: {pp} of {stages} stages, {m} of {batches} micro-batches."
        self.note.value = theme.dim(_SIMPLE + ("" if (pp, m) == (stages, batches) else cut))
        layouts = []
        for name, chart, note in (
            (plan["schedule"], self.own, self.own_note),
            (self.other.value, self.another, self.other_note),
        ):
            layout, text = lay_out(name, pp, plan["vpp"] or 1, m)
            figure = gantt_of(layout)
            chart.spec = figure.spec()
            figure.show(chart, self.given, layout=layout, window=self.window.value)
            note.value = f"<p>{theme.escape(text)}</p>"
            layouts += [layout] if layout else []
        self.picture("held", layouts=layouts)


def lay_out(name, pp, vpp, m):
    """(layout, words) of a schedule, in units of one forward pass; None and the rule it breaks
    where the settings do not allow it.

    The comparison takes one chunk where its schedule knows no others, and two where it needs them.
    """
    problem = ""
    for chunks in dict.fromkeys((vpp, 1, 2)):
        try:
            layout = schedule.lay_out(name, pp, chunks, m, 1.0, 1.0, 1.0)
            return layout, words_of(layout)
        except ValueError as error:
            problem = problem or str(error)
    return None, problem
