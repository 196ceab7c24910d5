"""What a step takes beside the model's own computation, and which parts of it moved from one step
to another: one rule for verdict, report and desk."""

from collections.abc import Mapping, Sequence

from ..base.quantities.quantity import quantity
from ..base.records import record
from ..catalogue.words import StepPart

OTHERS = "others"  # parts that are too small to name
MOVED = 0.01  # share of the longest step from which the move of a part is said

# the forward and backward pass of the model's layers and of its output head, each once
OWN_COMPUTATION = (StepPart.GEMM, StepPart.ATTENTION, StepPart.ELEMENTWISE, StepPart.LOGITS)


def overheads(step_parts: Mapping[str, float]) -> list[tuple[StepPart, float]]:
    """The parts of `step_breakdown_s` that are not the model's own computation [s], the longest
    first: exposed communication, bubble, recomputation, optimizer, host, waiting."""
    rest = [(part, step_parts.get(part) or 0.0) for part in StepPart if part not in OWN_COMPUTATION]
    return sorted(rest, key=lambda one: -one[1])


def own_computation(step_parts: Mapping[str, float]) -> list[tuple[StepPart, float]]:
    """The other parts, those of the model's own computation [s], the longest first."""
    own = [(part, step_parts.get(part) or 0.0) for part in OWN_COMPUTATION]
    return sorted(own, key=lambda one: -one[1])


@record
class PartOfSteps:
    """A part of several steps in words, with the seconds that it takes of each."""

    part: str  # as in `step_breakdown_s`, or OTHERS
    label: str
    seconds: tuple[float, ...]

    @property
    def moved_s(self) -> float:
        """The widest difference between two of the steps. [s]"""
        return max(self.seconds) - min(self.seconds)


def parts_that_moved(steps: Sequence[Mapping[str, float]]) -> list[PartOfSteps]:
    """The parts of some steps (`step_breakdown_s`) that differ by more than MOVED of the longest of
    them, the widest difference first, and all others together last, so that the parts add up to
    each step; none where no part has moved so far, or one of the steps is not known.

    moved_s = max - min over the steps, of a part
    """
    if not all(steps):
        return []
    least = MOVED * max(sum(step.values()) for step in steps)
    every = [
        PartOfSteps(
            part=part,
            label=quantity(f"step_breakdown_s.{part}").label,
            seconds=tuple(step.get(part, 0.0) for step in steps),
        )
        for part in dict.fromkeys(part for step in steps for part in step)
    ]
    named = sorted((one for one in every if one.moved_s > least), key=lambda one: -one.moved_s)
    if not named:
        return []
    rest = [one.seconds for one in every if one.moved_s <= least]
    others = tuple(sum((seconds[i] for seconds in rest), 0.0) for i in range(len(steps)))
    return [*named, PartOfSteps(part=OTHERS, label="Other parts", seconds=others)]
