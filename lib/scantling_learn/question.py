"""Questions as data: what is asked, what is right, which wrong answers people give and what to say
to each.

No answer is typed: `expected` and every slip name a fact of the walkthrough, or are a function of
its facts, worked out by the models when
they are asked for. Texts hold {placeholders}, filled from the same facts (see `tell`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

Value = str | Callable[[Any], Any]  # a fact by name, or a function of the facts


def value_of(value: Value, facts):
    """The value that a question or a slip names."""
    return value(facts) if callable(value) else getattr(facts, value)


@dataclass(frozen=True)
class Slip:
    """A usual wrong answer of a Number: its value in the base unit, and what to say. `within`:
    ratio up to which an answer counts as this slip."""

    value: Value
    says: str
    within: float = 1.04


@dataclass(frozen=True)
class Option:
    """One answer of a Choice; `says` is why it is wrong (or, of the right one, why it is right)."""

    key: str
    text: str
    says: str = ""


@dataclass(frozen=True)
class PlanSlip:
    """A usual wrong plan: `example` is one such plan, `when(plan, assessment, facts)` recognises
    them, `says` may use {a…}, its assessment."""

    example: Mapping
    when: Callable[[dict, Any, Any], bool]
    says: str


@dataclass(frozen=True)
class Point:
    """One point that a strong explanation makes; `words` are regular expressions, one of which
    shows that it was made."""

    says: str
    words: tuple[str, ...]


@dataclass(frozen=True)
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

    def texts(self):
        """Every text of the question, for tests of their numbers."""
        return [self.ask, *self.hints, self.worked, self.takeaway]


@dataclass(frozen=True)
class Number(Question):
    """A number in `unit`; `scale` base units make one. Right within the ratio `within` (1.05: five
    per cent; 1: exactly)."""

    expected: Value = ""
    unit: str = ""
    scale: float = 1.0
    within: float = 1.05
    slips: tuple[Slip, ...] = ()
    # manner of `quantities` in which the right value is printed (usd, params, hours); else it
    # stands in the unit
    shown: str = ""
    kind: ClassVar[str] = "number"

    def texts(self):
        return super().texts() + [s.says for s in self.slips]


@dataclass(frozen=True)
class Choice(Question):
    """One of several options (`several`: all that are right, a list of keys)."""

    expected: Value = ""
    options: tuple[Option, ...] = ()
    several: bool = False
    kind: ClassVar[str] = "choice"

    def option(self, key: str) -> Option | None:
        return next((o for o in self.options if o.key == str(key).strip()), None)

    def texts(self):
        return super().texts() + [t for o in self.options for t in (o.text, o.says)]


@dataclass(frozen=True)
class Plan(Question):
    """A plan (a mapping, as in a design file); any that fits and takes at most `slower` times the
    best step is right.

    design : the open design; names : fields that the answer has to set; `must`, a function of
    (plan, assessment, facts) that returns
    a text where the plan misses something else that was asked for, else "".
    """

    design: Value = ""
    names: tuple[str, ...] = ("tp", "pp", "dp")
    slower: float = 1.10
    must: Callable[[dict, Any, Any], str] | None = None
    slips: tuple[PlanSlip, ...] = ()
    kind: ClassVar[str] = "plan"

    def texts(self):
        return super().texts() + [s.says for s in self.slips]


@dataclass(frozen=True)
class Explain(Question):
    """A few sentences in the reader's own words, set beside the points that a strong answer makes;
    `model` is such an answer."""

    points: tuple[Point, ...] = ()
    model: str = ""
    kind: ClassVar[str] = "explain"

    def texts(self):
        return super().texts() + [self.model] + [p.says for p in self.points]


@dataclass(frozen=True)
class Walkthrough:
    """One walkthrough: its number, the name of its notebook, title, minutes, the class of its facts
    (made without arguments) and its questions."""

    number: str
    name: str
    title: str
    minutes: int
    facts: Callable[[], Any]
    questions: tuple[Question, ...] = field(default=())

    def question(self, ident: str) -> Question:
        """The question of that id. Raises KeyError naming what there is."""
        for q in self.questions:
            if q.id == ident:
                return q
        raise KeyError(
            f"no question {ident!r} in walkthrough {self.number}; there are: "
            f"{', '.join(q.id for q in self.questions)}"
        )
