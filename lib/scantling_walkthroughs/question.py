"""Questions: what is asked, what is right, which wrong answers people give and what to say to
each.

The questions of a walkthrough are functions in its book, beside the facts: each writes one question
with the numbers of the facts in its texts, as what is right and as what is usually wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from scantling import Assessment
from scantling.base.records import Lines, record
from scantling.design.design import Design

RIGHT, SLIP, NEAR, WRONG, OPEN, BAD = "right", "slip", "near", "wrong", "open", "unreadable"

# what a number is worked out from: FLOP of training, devices at work together, bytes of values that
# are kept, bytes that pass a link
WORK, FLEET, KEPT, SENT = "work", "fleet", "kept", "sent"
NEARLY = 1.25  # ratio to the best step up to which a plan that fits is near it

Facts = TypeVar("Facts")


@record
class Slip:
    """A usual wrong answer of a Number: its `value` in the base unit, and what to say. `within`:
    ratio up to which an answer counts as this slip."""

    value: float
    says: str
    within: float = 1.04


@record
class Option:
    """One answer of a Choice; `says` is why it is wrong (or, of the right one, why it is right)."""

    key: str
    text: str
    says: str = ""


@record
class PlanSlip:
    """A usual wrong plan: `example` is one such plan; others are recognised by fields of at least,
    at most or among these values (an axis that a plan does not name is 1, None stands for any field
    that it does not name). `says` is what to say, of the assessments of the plan that was tried and
    of the best one."""

    example: Mapping[str, int | str]
    says: Callable[[Assessment, Assessment], str]
    at_least: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    among: Mapping[str, list[int | str | None]] = field(default_factory=dict)

    def matches(self, plan: Mapping[str, Any]) -> bool:
        """Whether a plan makes this slip."""
        return (
            all(plan.get(k, 1) >= v for k, v in self.at_least.items())
            and all(plan.get(k, 1) <= v for k, v in self.at_most.items())
            and all(plan.get(k) in v for k, v in self.among.items())
        )


@record
class Point:
    """One point that a strong explanation makes; `words` are regular expressions, one of which
    shows that it was made."""

    says: str
    words: Lines


@record
class Question:
    """What all questions share.

    id : name within the walkthrough; ask : the question, markdown; axis : a key of the rubric;
    level : "mid", "senior" or "staff"
    hints : three, from where to look, over the formula, to the numbers; worked : the worked answer,
    markdown
    takeaway : one sentence to keep, with its limit; minutes : time to spend on it
    """

    id: str
    ask: str
    axis: str
    level: str
    hints: tuple[str, str, str]
    worked: str
    takeaway: str = ""
    minutes: float = 3
    kind: ClassVar[str] = ""


@record
class Number(Question):
    """A number, `expected` in the base unit and asked for in `unit`; `scale` base units make one.
    Right within the ratio `within` (1.05: five per cent; 1: exactly). `made_of`: what it is worked
    out from (WORK, FLEET, KEPT, SENT), whose usual slips a wrong factor then points to."""

    expected: float
    unit: str = ""
    scale: float = 1.0
    within: float = 1.05
    made_of: Lines = ()
    slips: tuple[Slip, ...] = ()
    # manner of `quantities` in which the right value is printed (usd, params, hours); else it
    # stands in the unit
    manner: str = ""
    kind: ClassVar[str] = "number"

    @property
    def near(self) -> float:
        """Ratio up to which a wrong answer is close: half as far again as a right one may lie, at
        least 1.1."""
        return float(max(self.within**1.5, 1.1))


@record
class Choice(Question):
    """One of several options, `expected` its key (`several`: all that are right, their keys)."""

    expected: str | tuple[str, ...]
    options: tuple[Option, ...]
    several: bool = False
    kind: ClassVar[str] = "choice"

    @property
    def right(self) -> tuple[str, ...]:
        """The keys that are right: one, or several."""
        return (self.expected,) if isinstance(self.expected, str) else self.expected

    def option(self, key: str) -> Option | None:
        return next((o for o in self.options if o.key == str(key).strip()), None)


@record
class Plan(Question):
    """A plan (a mapping, as in a design file); any that fits and takes at most `slower` times the
    best step is right.

    design : the open design; names : fields that the answer has to set.
    """

    design: Design
    names: Lines = ("tp", "pp", "dp")
    slower: float = 1.10
    slips: tuple[PlanSlip, ...] = ()
    kind: ClassVar[str] = "plan"


@record
class Explain(Question):
    """A few sentences in the reader's own words, set beside the points that a strong answer makes;
    `model` is such an answer."""

    points: tuple[Point, ...]
    model: str
    kind: ClassVar[str] = "explain"


@record
class Walkthrough(Generic[Facts]):
    """One walkthrough: its number, the name of its notebook, title, minutes, its book (the class of
    its facts) and the functions that write its questions, in order."""

    number: str
    name: str
    title: str
    minutes: int
    book: Callable[[], Facts]
    asks: tuple[Callable[[Facts], Question], ...]

    @cached_property
    def facts(self) -> Facts:
        """The numbers of the book."""
        return self.book()

    @cached_property
    def _written(self) -> dict[Callable[[Facts], Question], Question]:
        """The questions that were written so far."""
        return {}

    def _question(self, ask: Callable[[Facts], Question]) -> Question:
        if ask not in self._written:
            self._written[ask] = ask(self.facts)
        return self._written[ask]

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions with their numbers: this works every fact out that they name."""
        return tuple(self._question(ask) for ask in self.asks)

    def question(self, ident: str) -> Question:
        """The question of that id; no later one is worked out. Raises KeyError naming what there
        is."""
        for ask in self.asks:
            question = self._question(ask)
            if question.id == ident:
                return question
        raise KeyError(
            f"no question {ident!r} in walkthrough {self.number}; there are: "
            f"{', '.join(q.id for q in self.questions)}"
        )
