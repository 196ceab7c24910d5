"""Questions as data: what is asked, what is right, which wrong answers people give and what to say
to each.

The questions of a walkthrough stand in a YAML file beside its formulas, with what is given. No
answer is typed there: `expected` and every slip name a fact of the walkthrough, worked out by the
models when it is asked for. Texts hold {placeholders}, filled from the same facts (`fill_text`).
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter
from scantling.base.files import yaml_of
from scantling.base.records import Lines, record

RIGHT, SLIP, NEAR, WRONG, OPEN, BAD = "right", "slip", "near", "wrong", "open", "unreadable"
STRICT = {"extra": "forbid"}  # a file may name no other field
Value = str | float  # a fact by name (dots reach inside), or a number as it stands


def value_of(value: Value, facts):
    """The value that a question or a slip names. Raises AttributeError for an unknown fact."""
    return attrgetter(value)(facts) if isinstance(value, str) else value


def _product(values, facts):
    several = values if isinstance(values, tuple) else (values,)
    return prod(value_of(v, facts) for v in several)


@record
class Slip:
    """A usual wrong answer of a Number: `value` x `times` / `over` in the base unit, each a fact or
    several, and what to say. `within`: ratio up to which an answer counts as this slip."""

    __pydantic_config__ = STRICT

    value: Value
    says: str
    within: float = 1.04
    times: Value | tuple[Value, ...] = ()
    over: Value | tuple[Value, ...] = ()

    def amount(self, facts) -> float:
        """The wrong answer. [base unit of the question]"""
        value, times, over = (_product(v, facts) for v in (self.value, self.times, self.over))
        return float(value * times / over)


@record
class Option:
    """One answer of a Choice; `says` is why it is wrong (or, of the right one, why it is right)."""

    __pydantic_config__ = STRICT

    key: str
    text: str
    says: str = ""


@record
class PlanSlip:
    """A usual wrong plan: `example` is one such plan; others are recognised by fields of at least,
    at most or among these values (an axis that a plan does not name is 1, null stands for any field
    that it does not name). `says` may use {a…}, the plan's assessment."""

    __pydantic_config__ = STRICT

    example: Mapping
    says: str
    at_least: Mapping = field(default_factory=dict)
    at_most: Mapping = field(default_factory=dict)
    among: Mapping = field(default_factory=dict)

    def made(self, plan: Mapping) -> bool:
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

    __pydantic_config__ = STRICT

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

    __pydantic_config__ = STRICT

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


@record
class Choice(Question):
    """One of several options (`several`: all that are right, a list of keys)."""

    expected: str | tuple[str, ...] = ""  # a key, keys, or the fact that gives them
    options: tuple[Option, ...] = ()
    several: bool = False
    kind: ClassVar[str] = "choice"

    def right(self, facts) -> str | tuple[str, ...]:
        """The key that is right, or all keys that are."""
        if isinstance(self.expected, tuple) or self.option(self.expected):
            return self.expected
        return value_of(self.expected, facts)

    def option(self, key: str) -> Option | None:
        return next((o for o in self.options if o.key == str(key).strip()), None)


@record
class Plan(Question):
    """A plan (a mapping, as in a design file); any that fits and takes at most `slower` times the
    best step is right.

    design : the open design; names : fields that the answer has to set.
    """

    design: Value = ""
    names: Lines = ("tp", "pp", "dp")
    slower: float = 1.10
    slips: tuple[PlanSlip, ...] = ()
    kind: ClassVar[str] = "plan"


@record
class Explain(Question):
    """A few sentences in the reader's own words, set beside the points that a strong answer makes;
    `model` is such an answer."""

    points: tuple[Point, ...] = ()
    model: str = ""
    kind: ClassVar[str] = "explain"


@record
class Walkthrough:
    """One walkthrough: its number, the name of its notebook, title, minutes, the class of its facts
    (made without arguments) and its questions."""

    number: str
    name: str
    title: str
    minutes: int
    facts: Callable[[], Any]
    questions: tuple[Question, ...] = ()

    def question(self, ident: str) -> Question:
        """The question of that id. Raises KeyError naming what there is."""
        for q in self.questions:
            if q.id == ident:
                return q
        raise KeyError(
            f"no question {ident!r} in walkthrough {self.number}; there are: "
            f"{', '.join(q.id for q in self.questions)}"
        )


_KINDS = {kind.kind: kind for kind in (Number, Choice, Plan, Explain)}


def _question(given: dict) -> Question:
    """A question of a file: its first key is its kind, with its id."""
    (kind, ident), *rest = given.items()
    return TypeAdapter(_KINDS[kind]).validate_python({"id": ident, **dict(rest)})


def read(path: Path, facts: Callable[[dict], Callable[[], Any]]) -> Walkthrough:
    """The walkthrough of a YAML file; `facts` makes the class whose attributes the file names, of
    what the file says about them."""
    data = yaml_of(path)
    known = facts(data.pop("facts"))
    questions = tuple(map(_question, data.pop("questions")))
    return Walkthrough(**data, facts=known, questions=questions)
