"""The pipeline in time: the plan's schedule, another one below it under the same settings, and what
each holds."""

from collections.abc import Sequence

from scantling.physics import pipeline, schedule
from scantling.physics.schedule import Layout
from scantling_code.trace import passes_of

from ...charts.livechart import LiveChart
from ...charts.page_parts import Drop, Part
from ...charts.schedule import gantt, gantt_of, in_flight, laid, split, words_of
from .. import boxes, panel_tables
from .base import Panel

_STAGES, _BATCHES = 16, 32  # what a picture of this size can show


_WINDOWS = {
    "the whole step": (0.0, 1.0),
    "the first eighth": (0.0, 0.125),
    "the middle eighth": (0.4375, 0.5625),
    "the last eighth": (0.875, 1.0),
}
_ONE_STAGE = (
    "<p>One pipeline stage: the plan has no schedule to draw. Pin PP to more than one to see "
    "it.</p>"
)
_OF_THE_STEP = (
    "The plan's passes are drawn as long as they take in its step (scantling trace writes them for "
    "Perfetto), those of the comparison all equally long. Transfers are left out. Idle is a share "
    "of the passes: the bubble, and the wait for the longest stage."
)
_SIMPLE = "All passes are drawn equally long, and transfers are left out."


class Schedule(Panel):
    title = "Schedule"

    charts = (gantt, split, laid, in_flight)

    def build(self) -> Sequence[Part]:
        self.chosen, self.drawing = False, False
        self.none = boxes.text(_ONE_STAGE)
        self.note, self.planned_note, self.other_note = boxes.text(), boxes.text(), boxes.text()
        self.kinds = self.list_of(panel_tables.BLOCK_KINDS)
        self.other = Drop("Compare with", [row.name for row in pipeline.SCHEDULES.values()])
        self.window = Drop("Draw", _WINDOWS.items())
        self.planned, self.another = gantt.live(), gantt.live()
        self.laid, self.in_flight = laid.live(), in_flight.live()
        self.other.on("index", self._compare)
        self.window.on("index", lambda _: self.draw())
        self.pictures = [
            boxes.row(self.other, self.window, self.note),
            boxes.card(
                "The plan's schedule",
                self.planned_note,
                self.planned,
                see="Each row is a stage and each block a micro-batch: the gaps are the bubble.",
            ),
            boxes.card(
                "For comparison, same settings",
                self.other_note,
                self.another,
                see="Whether another order of the same passes leaves smaller gaps.",
            ),
            boxes.card(
                in_flight.title,
                self.in_flight,
                see="The stage that keeps most micro-batches at once decides the memory of "
                "activations.",
            ),
        ]
        self.strip = boxes.card(
            "Layers on the stages",
            self.laid,
            self.kinds,
            see="Stages of unequal length make all others wait: the longest sets the step.",
        )
        return [self.none, *self.pictures, self.strip]

    def _compare(self, _: int) -> None:
        if not self.drawing:
            self.chosen = True
            self.draw()

    def _propose(self, planned: str) -> None:
        """Until somebody chooses: beside the plan's own schedule, the plain one."""
        self.drawing = True
        self.other.value = "gpipe" if planned == "1f1b" else "1f1b"
        self.drawing = False

    def draw(self) -> None:
        plan = self.figures["plan"]
        if not self.chosen:
            self._propose(plan["schedule"])
        stages, batches = plan["pp"], plan["grad_accum"]
        for box in self.pictures:
            box.hidden = stages == 1
        self.none.hidden = stages > 1
        self.strip.hidden = stages == 1 and len(self.figures["stages"][0]["blocks"]) == 1
        laid.show(self.laid, self.figures)
        self.kinds.show(self.figures["blocks"])
        if stages == 1:
            return
        pp, m = min(stages, _STAGES), min(batches, _BATCHES)
        cut = f" Drawn: {pp} of {stages} stages, {m} of {batches} micro-batches."
        whole = (pp, m) == (stages, batches)
        self.note.value = boxes.dim(_OF_THE_STEP if whole else _SIMPLE + cut)
        vpp = plan["vpp"] or 1
        if whole:
            layout = passes_of(self.now.assessment.chosen)
            planned: tuple[Layout | None, str] = layout, words_of(layout)
        else:
            planned = lay_out(plan["schedule"], pp, vpp, m)
        other = lay_out(self.other.value, pp, vpp, m)
        self._show_layout(self.planned, self.planned_note, *planned)
        self._show_layout(self.another, self.other_note, *other)
        layouts = [layout for layout, _ in (planned, other) if layout]
        in_flight.show(self.in_flight, self.figures, layouts=layouts)

    def _show_layout(self, chart: LiveChart, note: Part, layout: Layout | None, text: str) -> None:
        figure = gantt_of(layout)
        chart.spec = figure.spec()
        figure.show(chart, self.figures, layout, self.window.value)
        note.value = f"<p>{boxes.escape(text)}</p>"


def lay_out(name: str, pp: int, vpp: int, m: int) -> tuple[Layout | None, str]:
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
