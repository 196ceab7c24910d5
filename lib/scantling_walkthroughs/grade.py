"""`check(question, answer)`: right, a usual slip, close, or wrong; and what to say to each."""

import re
from dataclasses import dataclass, field
from functools import partial
from math import inf, log10
from typing import Any

from scantling import assess
from scantling.base.errors import DesignError
from scantling.base.files import table
from scantling.base.show import number

from . import show
from .answers import right_answer as right_answer, shown_answer
from .question import (
    BAD,
    NEAR,
    OPEN,
    RIGHT,
    SLIP,
    WRONG,
    Choice,
    Explain,
    Number,
    Plan,
    Question,
    value_of,
)
from .texts import fill_text
from .typed import FACTORS, confusions, read_keys, read_number, read_plan


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict:
    """What became of one answer.

    status : right, slip, near, wrong, open (no answer yet) or unreadable; credit : 0 to 1 for this
    answer alone
    says : feedback, markdown; slip : position of the slip that was recognised; hits : points of an
    explanation that were found
    """

    question: Question
    answer: Any
    status: str
    says: str
    credit: float = 0.0
    slip: int | None = None
    hits: tuple[bool, ...] = ()
    facts: Any = field(default=None, compare=False)

    @property
    def right(self) -> bool:
        return self.status == RIGHT

    def __str__(self) -> str:
        return show.verdict_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return show.block(show.verdict_part(self))


_PLANS = table(__file__, "grade")
_PARTS = ("weights", "gradients", "optimizer", "activations", "other")
OTHER_SIGN = "The answer has the other sign."
NOT_ZERO = "The answer is not zero."


def unanswered(answer) -> bool:
    """True for `...`, None, blank text and an empty list."""
    answer = answer.strip() if isinstance(answer, str) else answer
    return answer is ... or answer is None or isinstance(answer, str | list | tuple) and not answer


def grade(question: Question, answer, facts, mine=None) -> Verdict:
    """The verdict on an answer. `mine`: for an explanation, the positions (from 1) of the points
    that the reader finds made, instead of the found ones."""
    if unanswered(answer):
        return Verdict(
            question=question,
            answer=None,
            status=OPEN,
            says="" if answer in (..., None) else f"Type an answer: {show.wanted(question)}.",
            facts=facts,
        )
    judge = {
        "number": _number,
        "choice": _choice,
        "plan": _plan,
        "explain": partial(_explain, mine=mine),
    }
    return Verdict(
        question=question,
        answer=answer,
        facts=facts,
        **judge[question.kind](question, answer, facts),
    )


def _said(status: str, says: str, credit: float = 0.0, **more) -> dict:
    """What a judge says of an answer: fields of its Verdict."""
    return {"status": status, "says": says, "credit": credit, **more}


# ---------------------------------------------------------------- numbers
def _apart(a: float, b: float) -> float:
    """Ratio between two values, at least 1; inf where the signs differ or one is zero."""
    if a == b:
        return 1.0
    return max(a / b, b / a) if a * b > 0 else inf


def _number(q: Number, answer, facts):
    try:
        given = read_number(answer, q.unit) * q.scale
    except (ValueError, TypeError) as e:
        return _said(BAD, f"{e}.")
    right = float(value_of(q.expected, facts))
    if _apart(given, right) <= q.within * (1 + 1e-9):
        return _said(RIGHT, f"{shown_answer(q, right / q.scale, facts)}.", 1.0)
    aparts = [(_apart(given, slip.amount(facts)), i) for i, slip in enumerate(q.slips)]
    near = [(apart, i) for apart, i in aparts if apart <= q.slips[i].within]
    if near:
        i = min(near)[1]
        return _said(SLIP, fill_text(q.slips[i].says, facts), slip=i)
    for factor, within, says in confusions(q.unit):
        if _apart(given * factor, right) <= within:
            return _said(SLIP, says)
    if given * right <= 0:
        if _apart(-given, right) <= q.within:
            return _said(WRONG, "The size is right, the sign is not.")
        return _said(WRONG, OTHER_SIGN if given else NOT_ZERO)
    apart = _apart(given, right)
    way = "high" if abs(given) > abs(right) else "low"
    if apart <= max(q.within**2, 1.10):
        return _said(
            NEAR,
            f"Close, but too {way} {_tolerance(q)}: look for a part left out or rounded away.",
            0.5,
        )
    return _said(WRONG, _off(apart, way))


def _off(apart: float, way: str) -> str:
    """How far an answer is off, and what that factor usually is."""
    if apart > 1e5:
        return f"Too {way} by {log10(apart):.0f} powers of ten."
    usual = (f": {said[way == 'low']}" for f, *said in FACTORS if _apart(apart, f) < 1.02)
    return f"Too {way} by a factor of {number(apart, 2)}{next(usual, '')}."


def _tolerance(q: Number) -> str:
    if q.within == 1.0:
        return "for an answer that comes out exactly"
    percent = number((q.within - 1) * 100, 2)
    factor = number(q.within, 2)
    within = f"{percent} %" if q.within < 1.3 else f"a factor of {factor}"
    return f"for an answer that should be right within {within}"


# ---------------------------------------------------------------- choices
def _choice(q: Choice, answer, facts):
    right = {*q.right(facts)} if q.several else {q.right(facts)}
    keys = {*(read_keys(answer, q.options) or ())}
    if not keys or len(keys) > 1 and not q.several:
        how, verb = ("Any", "are") if q.several else ("One", "is")
        return _said(BAD, f"{how} of {', '.join(o.key for o in q.options)} {verb} wanted.")
    extra = [o for o in q.options if o.key in keys - right]
    slip = q.options.index(extra[0]) if extra else None
    if not q.several:
        return _said(
            SLIP if extra else RIGHT,
            fill_text(q.option(*keys).says, facts),
            0.0 if extra else 1.0,
            slip=slip,
        )
    if keys == right:
        return _said(RIGHT, "All of them, and no other.", 1.0)
    lines = [f"**{o.key}** does not belong: {fill_text(o.says, facts)}" for o in extra]
    found = len(keys & right)
    missing = len(right - keys)
    if missing:
        lines.append(f"{missing} more {'belongs' if missing == 1 else 'belong'} to the list.")
    few = 2 * found < len(right)  # one of five is no near miss
    return _said(
        SLIP if extra else WRONG if few else NEAR,
        "  \n".join(lines),
        min(max(0.0, (found - len(extra)) / len(right)), 0.75),
        slip=slip,
    )


# ---------------------------------------------------------------- plans
def _plan(q: Plan, answer, facts):
    answer = read_plan(answer, q.names)
    if answer is None:
        return _said(BAD, f"A plan is wanted: a mapping such as {{'{q.names[0]}': 1, …}}.")
    missing = [n for n in q.names if answer.get(n) is None]
    if missing:
        return _said(BAD, f"The plan has to say {', '.join(missing)} too.")
    design = value_of(q.design, facts)
    try:
        tried = assess(design.change(plan=answer))
    except DesignError as e:
        return _said(WRONG, f"No such plan can run here: {e}.")
    best = assess(design)
    say = partial(fill_text, facts=facts, a=tried, best=best)
    for i, slip in enumerate(q.slips):
        if slip.made(answer):
            return _said(SLIP, say(slip.says), slip=i)
    if not tried.chosen.fits:
        sizes = {part: tried.memory_bytes[part] for part in _PARTS}
        part = max(sizes, key=sizes.get)
        return _said(WRONG, say(_PLANS["over"], part=part, size=sizes[part]))
    behind = tried.step_s / best.step_s - 1
    if behind <= q.slower - 1:
        return _said(RIGHT, say(_PLANS["best" if behind <= 0.001 else "right"], behind=behind), 1.0)
    parts = tried.step_breakdown_s
    least = best.step_breakdown_s
    lost = max(parts, key=lambda k: parts[k] - least[k])
    slow = say(_PLANS["slow"], behind=behind, lost=lost, its=parts[lost], least=least[lost])
    return _said(NEAR, slow, 0.5)


# ---------------------------------------------------------------- explanations
def _explain(q: Explain, answer, facts, mine):
    if mine is None:
        how = "words that point to"
        hits = tuple(re.search("|".join(p.words), str(answer), re.I) is not None for p in q.points)
    else:
        how = "by your own count"
        hits = tuple(i in mine for i, _ in enumerate(q.points, 1))
    share = sum(hits) / len(hits)
    return _said(
        RIGHT if share == 1 else NEAR if share >= 0.5 else WRONG,
        f"Compare it yourself with the points below; {how} {sum(hits)} of {len(hits)}.",
        share,
        hits=hits,
    )
