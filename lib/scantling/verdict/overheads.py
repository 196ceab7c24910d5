"""What a step takes beside the model's own computation: one rule for verdict, report and desk."""

from collections.abc import Mapping

from ..catalogue.words import StepPart

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
