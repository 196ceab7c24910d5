"""Direct answers about a design, by the name of the question."""

from collections.abc import Callable
from typing import Any

from ..base.errors import DesignError, blamed_on
from ..design.design import Design
from ..verdict.assess import assess
from .extremes import (
    biggest_micro_batch,
    earliest_finish,
    fewest_devices,
    largest_model,
    longest_sequence,
    within_budget_of_compute,
)
from .fixes import cheaper

QUESTIONS: dict[str, Callable[..., Any]] = {
    "longest-sequence": longest_sequence,
    "biggest-micro-batch": biggest_micro_batch,
    "fewest-devices": fewest_devices,
    "earliest-finish": earliest_finish,
    "largest-model": largest_model,
    "compute-budget": within_budget_of_compute,
    "cheaper": cheaper,
}


def answer(design: Design, question: str, **limits: Any) -> list[dict[str, Any]]:
    """The rows that answer a question of QUESTIONS; limits: `most_devices` of earliest-finish,
    `any_chip` of cheaper. Raises DesignError for another question, a limit of another one, and
    where the design lacks what the question needs."""
    if question not in QUESTIONS:
        raise DesignError("question", question, QUESTIONS)
    for limit, of in (("most_devices", "earliest-finish"), ("any_chip", "cheaper")):
        if limits.get(limit) and question != of:
            raise DesignError(limit, limits[limit], f"the question {of}")
    stated = {limit: value for limit, value in limits.items() if value}
    with blamed_on(question):
        if question == "cheaper":
            return [dict(row) for row in cheaper(assess(design), **stated)]
        reply = QUESTIONS[question](design, **stated)
    return [reply] if reply else []
