"""Walkthroughs: questions with their numbers, checks that know the usual slips, a rubric and a
scorecard.

session = begin("01")               # or the name, "full_round"
session.check("params", 405e9)      # a Card: text, HTML, .right
check("01.params", 405e9)           # the verdict alone
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from . import texts
from .books import (
    w01_full_round,
    w02_memory_wall,
    w03_place_the_axes,
    w04_moe,
    w05_failure_model,
    w06_mfu_fell,
    w07_review,
    w08_negotiate,
    w09_first_log,
    w10_hybrid,
    w11_policy_step,
)
from .comparison_table import Comparison, Row, compare
from .grade import Verdict, grade
from .measured import published
from .question import (
    Choice,
    Explain,
    Number,
    Option,
    Plan,
    PlanSlip,
    Point,
    Question,
    Slip,
    Walkthrough,
)
from .right_answers import right_answer
from .rubric import rubric
from .session import Session

__all__ = [
    "Comparison",
    "Choice",
    "Explain",
    "Number",
    "Option",
    "Plan",
    "PlanSlip",
    "Point",
    "Question",
    "Row",
    "Session",
    "Slip",
    "Verdict",
    "Walkthrough",
    "begin",
    "compare",
    "check",
    "published",
    "right_answer",
    "rubric",
    "texts",
    "walkthrough",
    "walkthroughs",
]

_BOOKS: tuple[Walkthrough[Any], ...] = (
    w01_full_round.BOOK,
    w02_memory_wall.BOOK,
    w03_place_the_axes.BOOK,
    w04_moe.BOOK,
    w05_failure_model.BOOK,
    w06_mfu_fell.BOOK,
    w07_review.BOOK,
    w08_negotiate.BOOK,
    w09_first_log.BOOK,
    w10_hybrid.BOOK,
    w11_policy_step.BOOK,
)


@cache
def walkthroughs() -> dict[str, Walkthrough[Any]]:
    """All walkthroughs by number, in order."""
    return {book.number: book for book in _BOOKS}


def walkthrough(which: str) -> Walkthrough[Any]:
    """A walkthrough by number ("1", "01") or name ("full_round"). Raises KeyError naming what there
    is."""
    key = str(which).strip()
    for number, book in walkthroughs().items():
        if key.lstrip("0") == number.lstrip("0") or key in (book.name, f"{number}_{book.name}"):
            return book
    names = ", ".join(f"{number} {book.name}" for number, book in walkthroughs().items())
    raise KeyError(f"no walkthrough {which!r}; there are: {names}")


def begin(which: str, mode: str = "student") -> Session:
    """A session with a walkthrough; `mode` is student, instructor or blank."""
    return Session(walkthrough(which), mode)


def check(question: str | Question, answer: Any, mine: Collection[int] | None = None) -> Verdict:
    """The verdict on one answer: right, a usual slip with what to say to it, close, or wrong.

    question : "01.params", or a `Question` of a walkthrough;
    answer : a number (or text with a number in the unit asked for), the key of an option or
    several, a plan, or sentences; mine : see `grade`.
    Raises KeyError for a question that there is not.
    """
    if isinstance(question, Question):
        return grade(question, answer, mine)
    which, _, ident = question.partition(".")
    return grade(walkthrough(which).question(ident), answer, mine)
