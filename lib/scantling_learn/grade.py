"""`check(question, answer)`: right, a usual slip, close, or wrong; and what to say to each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scantling.base.errors import DesignError
from scantling.base.show import number, shown

from .question import Choice, Explain, Number, Plan, Question, value_of
from .tell import tell
from .typed import confusions, read_keys, read_number, read_plan

RIGHT, SLIP, NEAR, WRONG, OPEN, BAD = "right", "slip", "near", "wrong", "open", "unreadable"


@dataclass(frozen=True)
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
    facts: Any = field(default=None, repr=False, compare=False)

    @property
    def right(self) -> bool:
        return self.status == RIGHT

    def __str__(self) -> str:
        from .show import verdict_text

        return verdict_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .show import verdict_html

        return verdict_html(self)


def unanswered(answer) -> bool:
    """True for `...`, None, blank text and an empty list."""
    return (
        answer is ...
        or answer is None
        or (isinstance(answer, str) and not answer.strip())
        or (isinstance(answer, list | tuple) and not answer)
    )


def grade(question: Question, answer, facts, mine=None) -> Verdict:
    """The verdict on an answer. `mine`: for an explanation, the positions (from 1) of the points
    that the reader finds made, instead of the found ones."""
    if unanswered(answer):
        return Verdict(question, None, OPEN, "", facts=facts)
    by_kind = {"number": _number, "choice": _choice, "plan": _plan, "explain": _explain}[
        question.kind
    ]
    status, says, credit, slip, hits = by_kind(question, answer, facts, mine)
    return Verdict(question, answer, status, says, credit, slip, hits, facts)


def right_answer(question: Question, facts):
    """An answer that is right, in the form in which it is typed: a number in the unit asked for, a
    key, a plan, a text."""
    if isinstance(question, Number):
        return float(value_of(question.expected, facts)) / question.scale
    if isinstance(question, Choice):
        return value_of(question.expected, facts)
    if isinstance(question, Plan):
        best = _assess(value_of(question.design, facts)).plan
        fields = dict.fromkeys(
            (*question.names, "tp", "pp", "dp", "cp", "ep", "sharding", "micro_batch")
        )
        return {
            name: best[name]
            for name in fields
            if best[name] not in (None, "none") and (name in question.names or best[name] != 1)
        }
    return tell(question.model, facts)


def shown_answer(question: Question, answer, facts) -> str:
    """An answer as people read it."""
    if isinstance(question, Number):
        given = read_number(answer, question.unit)
        if question.shown:
            return shown(given * question.scale, question.shown)
        return (
            f"{f'{given:,.0f}' if given.is_integer() and abs(given) < 1e6 else number(given)} "
            f"{question.unit}"
        ).strip()
    if isinstance(question, Choice):
        keys = [answer] if isinstance(answer, str) else list(answer)
        return "; ".join(
            f"{k}: {tell(o.text, facts)}" if (o := question.option(k)) else str(k) for k in keys
        )
    if isinstance(question, Plan) and isinstance(answer, Mapping):
        return " · ".join(f"{k} {v}" for k, v in answer.items())
    return str(answer)


# ---------------------------------------------------------------- numbers
def _apart(a: float, b: float) -> float:
    """Ratio between two values, at least 1; inf where the signs differ or one is zero."""
    if a == b:
        return 1.0
    return max(a / b, b / a) if a * b > 0 else math.inf


def _number(q: Number, answer, facts, mine):
    try:
        given = read_number(answer, q.unit) * q.scale
    except (ValueError, TypeError) as e:
        return BAD, f"{e}.", 0.0, None, ()
    right = float(value_of(q.expected, facts))
    if _apart(given, right) <= q.within * (1 + 1e-9):
        return RIGHT, f"Right: {_shown(q, right)}.", 1.0, None, ()
    near = []
    for i, slip in enumerate(q.slips):
        value = float(value_of(slip.value, facts))
        if (apart := _apart(given, value)) <= slip.within:
            near.append((apart, i))
    if near:
        i = min(near)[1]
        return SLIP, tell(q.slips[i].says, facts), 0.0, i, ()
    for factor, within, says in confusions(q.unit):
        if _apart(given * factor, right) <= within:
            return SLIP, says, 0.0, None, ()
    if given * right <= 0:
        return (
            WRONG,
            "The size is right, the sign is not."
            if _apart(-given, right) <= q.within
            else "The answer has the other sign."
            if given
            else "It is not nothing.",
            0.0,
            None,
            (),
        )
    apart, way = _apart(given, right), "high" if abs(given) > abs(right) else "low"
    if apart <= q.within**2 or apart <= 1.10:
        return (
            NEAR,
            f"Close, but too {way} {_tolerance(q)}: look for a part left out or rounded away.",
            0.5,
            None,
            (),
        )
    return (
        WRONG,
        (
            f"Too {way} by a factor of "
            f"{number(apart, 2)}{' (one way for both, or a pair counted once?)' if _apart(apart, 2.0) < 1.01 else ''}."
        ),
        0.0,
        None,
        (),
    )


def _tolerance(q: Number) -> str:
    if q.within == 1.0:
        return "for an answer that comes out exactly"
    return (
        f"for an answer that should be right within {number((q.within - 1) * 100, 2)} %"
        if q.within < 1.3
        else f"for an answer that should be right within a factor of {number(q.within, 2)}"
    )


def _shown(q: Number, value: float) -> str:
    return shown_answer(q, value / q.scale, None)


# ---------------------------------------------------------------- choices
def _choice(q: Choice, answer, facts, mine):
    right = value_of(q.expected, facts)
    if not q.several:
        keys = read_keys(answer, q.options) or ()
        option = q.option(keys[0]) if len(keys) == 1 else None
        if option is None:
            return BAD, f"One of {', '.join(o.key for o in q.options)} is wanted.", 0.0, None, ()
        position = q.options.index(option)
        if option.key == right:
            return (
                RIGHT,
                " ".join(filter(None, ("Right.", tell(option.says, facts)))),
                1.0,
                None,
                (),
            )
        return SLIP, tell(option.says, facts), 0.0, position, ()
    keys = set(read_keys(answer, q.options) or ())
    if not keys:
        return BAD, f"Any of {', '.join(o.key for o in q.options)} are wanted.", 0.0, None, ()
    right = set(right)
    if keys == right:
        return RIGHT, "Right: all of them, and no other.", 1.0, None, ()
    lines = [
        f"**{o.key}** does not belong: {tell(o.says, facts)}"
        for o in q.options
        if o.key in keys - right
    ]
    missing = len(right - keys)
    if missing:
        lines.append(f"{missing} more {'belongs' if missing == 1 else 'belong'} to the list.")
    wrong = next((i for i, o in enumerate(q.options) if o.key in keys - right), None)
    credit = max(0.0, (len(keys & right) - len(keys - right)) / len(right))
    return (SLIP if wrong is not None else NEAR), "  \n".join(lines), min(credit, 0.75), wrong, ()


# ---------------------------------------------------------------- plans
def _assess(design):
    from scantling.verdict.assess import assess

    return assess(design)


def _plan(q: Plan, answer, facts, mine):
    answer = read_plan(answer, q.names)
    if answer is None:
        return BAD, f"A plan is wanted: a mapping such as {{'{q.names[0]}': 1, …}}.", 0.0, None, ()
    missing = [n for n in q.names if answer.get(n) is None]
    if missing:
        return BAD, f"The plan has to say {', '.join(missing)} too.", 0.0, None, ()
    design = value_of(q.design, facts)
    try:
        tried = _assess(design.change(plan=answer))
    except DesignError as e:
        return WRONG, f"No such plan can run here: {e}.", 0.0, None, ()
    best = _assess(design)
    for i, slip in enumerate(q.slips):
        if slip.when(answer, tried, facts):
            return SLIP, tell(slip.says, facts, a=tried, best=best), 0.0, i, ()
    m = tried.memory_bytes
    if not tried.chosen.fits:
        part = max(
            ("weights", "gradients", "optimizer", "activations", "other"), key=lambda k: m[k]
        )
        return (
            WRONG,
            (
                f"It does not fit: {shown(m['total'], 'bytes')} on the fullest device of "
                f"{shown(m['capacity'], 'bytes')}; "
                f"the largest part is {part}, {shown(m[part], 'bytes')}."
            ),
            0.0,
            None,
            (),
        )
    if q.must is not None and (text := q.must(answer, tried, facts)):
        return WRONG, text, 0.25, None, ()
    slower = tried.step_s / best.step_s
    said = (
        f"{shown(tried.step_s, 'seconds')} a step, MFU {shown(tried.mfu, 'share')}, "
        f"{shown(m['total'], 'bytes')} on the fullest device"
    )
    if slower <= q.slower:
        where = (
            "the best there is"
            if slower <= 1.001
            else f"{shown(slower - 1, 'share')} behind the best that the search finds"
        )
        return RIGHT, f"It fits and holds: {said}; {where}.", 1.0, None, ()
    lost = max(
        tried.step_breakdown_s, key=lambda k: tried.step_breakdown_s[k] - best.step_breakdown_s[k]
    )
    return (
        NEAR,
        (
            f"It fits: {said}. But it is {shown(slower - 1, 'share')} slower than the "
            f"best; most of that is {lost}: "
            f"{shown(tried.step_breakdown_s[lost], 'seconds')} against "
            f"{shown(best.step_breakdown_s[lost], 'seconds')}."
        ),
        0.5,
        None,
        (),
    )


# ---------------------------------------------------------------- explanations
def _explain(q: Explain, answer, facts, mine):
    text = str(answer)
    found = tuple(any(re.search(w, text, re.I) for w in p.words) for p in q.points)
    hits = found if mine is None else tuple(i in set(mine) for i in range(1, len(q.points) + 1))
    share = sum(hits) / len(hits)
    how = "words that point to" if mine is None else "by your own count"
    says = f"Compare it yourself with the points below; {how} {sum(hits)} of {len(hits)}."
    return (RIGHT if share == 1 else NEAR if share > 0 else WRONG), says, share, None, hits
