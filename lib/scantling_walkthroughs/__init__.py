"""Walkthroughs: questions as data, checks that know the usual slips, a rubric and a scorecard.

session = begin("01")               # or the name, "full_round"
session.check("params", 405e9)      # a Card: text, HTML, .right
check("01.params", 405e9)           # the verdict alone
"""

from functools import cache, partial
from importlib import import_module
from pathlib import Path

from .books.base import facts_of
from .comparison_table import Comparison, Row, compare
from .grade import Verdict, grade, right_answer
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
    read,
)
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
    "right_answer",
    "rubric",
    "walkthrough",
    "walkthroughs",
]

# a file of questions, and beside it the module of its formulas
_BOOKS = {
    path: import_module(f".books.{path.stem}", __package__)
    for path in sorted(Path(__file__).parent.glob("books/w*.yaml"))
}


@cache
def walkthroughs() -> dict[str, Walkthrough]:
    """All walkthroughs by number, in order."""
    return {path.stem[1:3]: read(path, partial(facts_of, book)) for path, book in _BOOKS.items()}


def walkthrough(which: str) -> Walkthrough:
    """A walkthrough by number ("1", "01") or name ("full_round"). Raises KeyError naming what there
    is."""
    there = walkthroughs()
    key = str(which).strip()
    for number, w in there.items():
        if key.lstrip("0") == number.lstrip("0") or key in (w.name, f"{number}_{w.name}"):
            return w
    raise KeyError(
        f"no walkthrough {which!r}; there are: "
        f"{', '.join(f'{n} {w.name}' for n, w in there.items())}"
    )


def begin(which: str, mode: str = "student") -> Session:
    """A session with a walkthrough; `mode` is student, instructor or blank."""
    return Session(walkthrough(which), mode)


@cache
def _facts(number: str):
    return walkthrough(number).facts()


def check(question, answer, mine=None) -> Verdict:
    """The verdict on one answer: right, a usual slip with what to say to it, close, or wrong.

    question : "01.params", or a `Question` of a walkthrough together with its facts as a pair;
    answer : a number (or text with a
    number in the unit asked for), the key of an option or several, a plan, or sentences; mine : see
    `grade`.
    Raises KeyError for a question that there is not.
    """
    if not isinstance(question, tuple):
        which, _, ident = str(question).partition(".")
        w = walkthrough(which)
        question = w.question(ident), _facts(w.number)
    asked, facts = question
    return grade(asked, answer, facts, mine)
