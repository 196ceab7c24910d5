"""What is said of a design that tunes a trained model beside its numbers: why, what to avoid, what
has to be settled, and what the lengths do to a step."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from scantling.base.show import value_text
from scantling_posttrain.answer_lines import (
    fix_text,
    goodput_text,
    memory_text,
    phases_text,
    rollout_text,
    run_text,
    step_text,
)
from scantling_posttrain.answering import moves
from scantling_posttrain.first import to_find_out
from scantling_posttrain.fixes import MET
from scantling_posttrain.posttrained import Fix, Posttrained

from ...charts.page_parts import Part
from ...charts.sides import lengths
from .. import boxes
from ..background import Job
from .base import Methods, Panel

_MOST = 12  # assumptions that are listed


class Tuning(Panel):
    """Rollout and trainer in words."""

    title = "Rollout and trainer"
    methods = Methods.TUNING
    charts = (lengths,)

    def build(self) -> Sequence[Part]:
        self.chart = lengths.live()
        self.plan, self.why, self.avoid, self.asked, self.assumed = (boxes.text() for _ in range(5))
        self.first, self.changes = boxes.text(), boxes.text()
        self.looking = Job("Look for changes", self._look, self._looked, self._ended)
        return [
            boxes.columns(
                boxes.stack(
                    boxes.card("The plan and its step", self.plan),
                    boxes.card("Why", self.why),
                    boxes.card("To be avoided", self.avoid),
                    boxes.card(
                        "What to change",
                        self.looking,
                        self.changes,
                        see="Of a design that does: what saves a tenth of its days or dollars, "
                        "each assessed. Of another: what would do.",
                    ),
                ),
                boxes.stack(
                    boxes.card(
                        lengths.title,
                        self.chart,
                        see="How far a step moves if responses come out shorter or longer.",
                    ),
                    boxes.card("To be settled first", self.asked),
                    boxes.card(
                        "Find out first",
                        self.first,
                        see="What nobody has measured yet, by how far it moves a step.",
                    ),
                    boxes.card("Assumed", self.assumed),
                ),
            )
        ]

    def draw(self) -> None:
        tuned = self.now.tuned
        if tuned is None or tuned.plan is None:
            return
        lengths.show(self.chart, self.figures, tuned)
        self.plan.value = boxes.lines(plan_lines(tuned))
        self.why.value = boxes.lines(tuned.why)
        self.avoid.value = listed(f"{o.what}: {o.why} ({o.cost})" for o in tuned.others)
        self.asked.value = listed(tuned.asks)
        self.first.value = listed(one.text for one in to_find_out(tuned))
        self._found: list[Fix] = list(tuned.fixes)
        self.looking.hidden = tuned.verdict not in MET
        self._tell(tuned.verdict in MET)
        rest = len(tuned.assumed) - _MOST
        shown = (f"{a.field} {value_text(a.value)}: {a.why}" for a in tuned.assumed[:_MOST])
        more = (f"{rest} more in the report",) if rest > 0 else ()
        self.assumed.value = listed(chain(shown, more))

    # ------------------------------------------------------------ changes that are tried
    def _look(self) -> tuple[int, Iterator[Fix | None]]:
        tuned = self.now.tuned
        assert tuned is not None
        self._found = []
        return moves(tuned)

    def _looked(self, fix: Fix | None) -> None:
        if fix is not None:
            self._found.append(fix)
            self._tell(False)

    def _ended(self, error: Exception | None) -> None:
        self._tell(False)
        self.ended(error)

    def _tell(self, waiting: bool) -> None:
        """The changes found, or that none has been looked for."""
        if waiting and not self._found:
            self.changes.value = boxes.dim("not looked for yet")
            return
        self.changes.value = listed(fix_text(fix) for fix in self._found)


def listed(items: Iterable[str]) -> str:
    """A list as markup, or that there is nothing in it."""
    found = list(items)
    return boxes.lines(found) if found else boxes.dim("nothing")


def plan_lines(tuned: Posttrained) -> list[str]:
    """Plans of both sides, the step, memory, the run."""
    lines = [f"Trainer: {tuned.plan_words}"]
    if tuned.rollout is not None:
        lines += [f"Rollout: {rollout_text(tuned.rollout)}", f"Phases: {phases_text(tuned)}"]
    lines += [f"Step: {step_text(tuned)}", f"Memory: {memory_text(tuned)}"]
    for name, text in (("Run", run_text(tuned)), ("Goodput", goodput_text(tuned))):
        lines += [f"{name}: {text}"] if text else []
    return lines
