"""`check(question, answer)`: right, a usual slip, close, or wrong; and what to say to each."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from math import inf, log10
from typing import Any

from scantling import Assessment, assess
from scantling.base import show as base_show
from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import quantity
from scantling.base.show import number

from . import question_pages
from .question import (
    BAD,
    NEAR,
    NEARLY,
    OPEN,
    RIGHT,
    SLIP,
    WRONG,
    Choice,
    Explain,
    Number,
    Plan,
    Question,
)
from .right_answers import answer_as_text
from .texts import small_size
from .typed import confusions, likely_factors, read_keys, read_number, read_plan


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

    @property
    def right(self) -> bool:
        return self.status == RIGHT

    def __str__(self) -> str:
        return question_pages.verdict_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return question_pages.block(question_pages.verdict_part(self))


_PARTS = ("weights", "gradients", "optimizer", "activations", "other")
OTHER_SIGN = "The answer has the other sign."
NOT_ZERO = "The answer is not zero."


def unanswered(answer: Any) -> bool:
    """True for `...`, None, blank text and an empty list."""
    if answer is ... or answer is None:
        return True
    if isinstance(answer, str):
        return not answer.strip()
    return isinstance(answer, list | tuple) and not answer


def grade(question: Question, answer: Any, mine: Collection[int] | None = None) -> Verdict:
    """The verdict on an answer. `mine`: for an explanation, the positions (from 1) of the points
    that the reader finds made, instead of those that its words point to. Raises TypeError for a
    question of no known kind."""
    if unanswered(answer):
        blank = answer is ... or answer is None
        says = "" if blank else f"Type an answer: {question_pages.wanted(question)}."
        return Verdict(question=question, answer=None, status=OPEN, says=says)
    match question:
        case Number():
            return _number(question, answer)
        case Choice(several=True):
            return _several(question, answer)
        case Choice():
            return _choice(question, answer)
        case Plan():
            return _plan(question, answer)
        case Explain():
            return _explain(question, answer, mine)
    raise TypeError(f"a question of no known kind: {question.id}")


# ---------------------------------------------------------------- numbers
def _apart(a: float, b: float) -> float:
    """Ratio between two values, at least 1; inf where the signs differ or one is zero."""
    if a == b:
        return 1.0
    return max(a / b, b / a) if a * b > 0 else inf


def _number(q: Number, answer: Any) -> Verdict:
    def verdict(status: str, says: str, credit: float = 0.0, slip: int | None = None) -> Verdict:
        return Verdict(
            question=q, answer=answer, status=status, says=says, credit=credit, slip=slip
        )

    try:
        value = read_number(answer, q.unit) * q.scale
    except (ValueError, TypeError) as e:
        return verdict(BAD, f"{e}.")
    right = float(q.expected)
    if _apart(value, right) <= q.within * (1 + 1e-9):
        return verdict(RIGHT, f"{answer_as_text(q, right / q.scale)}.", 1.0)
    position = _slip_of(q, value)
    if position is not None:
        return verdict(SLIP, q.slips[position].says, slip=position)
    for factor, within, says in confusions(q.unit):
        if _apart(value * factor, right) <= within:
            return verdict(SLIP, says)
    if value * right <= 0:
        if _apart(-value, right) <= q.within:
            return verdict(WRONG, "The size is right, the sign is not.")
        return verdict(WRONG, OTHER_SIGN if value else NOT_ZERO)
    apart = _apart(value, right)
    way = "high" if abs(value) > abs(right) else "low"
    if apart <= q.near:
        close = f"Close, but too {way} {_tolerance(q)}: look for a part left out or rounded away."
        return verdict(NEAR, close, 0.5)
    return verdict(WRONG, _off(q, apart, way))


def _slip_of(q: Number, value: float) -> int | None:
    """Position of the usual slip that a value is nearest to, among those that it may be."""
    near = []
    for position, slip in enumerate(q.slips):
        apart = _apart(value, float(slip.value))
        if apart <= slip.within:
            near.append((apart, position))
    return min(near)[1] if near else None


def _off(q: Number, apart: float, way: str) -> str:
    """How far an answer is off, and what that factor usually is of this number."""
    if apart > 1e5:
        return f"Too {way} by {log10(apart):.0f} powers of ten."
    usual = ""
    for factor, too_high, too_low in likely_factors(q):
        says = too_low if way == "low" else too_high
        if says and _apart(apart, factor) < 1.02:
            usual = f": {says}"
            break
    return f"Too {way} by a factor of {number(apart, 2)}{usual}."


def _tolerance(q: Number) -> str:
    if q.within == 1.0:
        return "for an answer that comes out exactly"
    percent = number((q.within - 1) * 100, 2)
    factor = number(q.within, 2)
    within = f"{percent} %" if q.within < 1.3 else f"a factor of {factor}"
    return f"for an answer that should be right within {within}"


# ---------------------------------------------------------------- choices
def _listed(q: Choice) -> str:
    return ", ".join(o.key for o in q.options)


def _choice(q: Choice, answer: Any) -> Verdict:
    """One option of several."""
    keys = set(read_keys(answer, q.options) or ())
    option = q.option(min(keys)) if len(keys) == 1 else None
    if option is None:
        says = f"One of {_listed(q)} is wanted."
        return Verdict(question=q, answer=answer, status=BAD, says=says)
    if option.key in q.right:
        return Verdict(question=q, answer=answer, status=RIGHT, says=option.says, credit=1.0)
    position = q.options.index(option)
    return Verdict(question=q, answer=answer, status=SLIP, says=option.says, slip=position)


def _several(q: Choice, answer: Any) -> Verdict:
    """All options that are right."""
    right = set(q.right)
    keys = set(read_keys(answer, q.options) or ())
    if not keys:
        says = f"Any of {_listed(q)} are wanted."
        return Verdict(question=q, answer=answer, status=BAD, says=says)
    if keys == right:
        says = "All of them, and no other."
        return Verdict(question=q, answer=answer, status=RIGHT, says=says, credit=1.0)
    extra = [o for o in q.options if o.key in keys - right]
    lines = [f"**{o.key}** does not belong: {o.says}" for o in extra]
    hits = len(keys & right)
    missing = len(right - keys)
    if missing:
        lines.append(f"{missing} more {'belongs' if missing == 1 else 'belong'} to the list.")
    status = NEAR
    if extra:
        status = SLIP
    elif 2 * hits < len(right):  # one of five is no near miss
        status = WRONG
    return Verdict(
        question=q,
        answer=answer,
        status=status,
        says="  \n".join(lines),
        credit=min(max(0.0, (hits - len(extra)) / len(right)), 0.75),
        slip=q.options.index(extra[0]) if extra else None,
    )


# ---------------------------------------------------------------- plans
def _plan(q: Plan, answer: Any) -> Verdict:
    def verdict(status: str, says: str, credit: float = 0.0, slip: int | None = None) -> Verdict:
        return Verdict(
            question=q, answer=answer, status=status, says=says, credit=credit, slip=slip
        )

    plan = read_plan(answer, q.names)
    if plan is None:
        return verdict(BAD, f"A plan is wanted: a mapping such as {{'{q.names[0]}': 1, …}}.")
    missing = [n for n in q.names if plan.get(n) is None]
    if missing:
        return verdict(BAD, f"The plan has to say {', '.join(missing)} too.")
    try:
        trial = assess(q.design.change(plan=plan))
    except DesignError as e:
        return verdict(WRONG, f"No such plan can run here: {e}.")
    best = assess(q.design)
    for position, slip in enumerate(q.slips):
        if slip.matches(plan):
            return verdict(SLIP, slip.says(trial, best), slip=position)
    if not trial.chosen.fits:
        return verdict(WRONG, _over(trial))
    behind = trial.step_s / best.step_s - 1
    if behind <= q.slower - 1:
        return verdict(RIGHT, _fits(trial, behind), 1.0)
    near = behind <= NEARLY - 1
    return verdict(NEAR if near else WRONG, _slow(trial, best, behind), 0.5 if near else 0.25)


def _over(trial: Assessment) -> str:
    """What is said of a plan that does not fit."""
    memory = trial.memory_bytes
    part = max(_PARTS, key=lambda name: memory[name])
    return (
        f"It does not fit: {small_size(memory['total'])} on the fullest device of "
        f"{small_size(memory['capacity'])}; the largest part: "
        f"{quantity(f'memory_bytes.{part}').label}, {small_size(memory[part])}."
    )


def _measures(trial: Assessment) -> str:
    return f"{base_show.seconds(trial.step_s)} a step, MFU {base_show.share(trial.mfu)}"


def _fits(trial: Assessment, behind: float) -> str:
    """What is said of a plan that is right."""
    rest = "as fast as the plan that the search takes"
    if abs(behind) > 0.001:
        way = "slower" if behind > 0 else "faster"
        rest = f"{base_show.share(abs(behind))} {way} than the plan that the search takes"
    return (
        f"It fits and holds: {_measures(trial)}, {small_size(trial.memory_bytes['total'])} on the "
        f"fullest device; {rest}."
    )


def _slow(trial: Assessment, best: Assessment, behind: float) -> str:
    """What is said of a plan that fits, and takes too long."""
    parts = trial.step_breakdown_s
    least = best.step_breakdown_s
    lost = max(parts, key=lambda name: parts[name] - least[name])
    return (
        f"It fits: {_measures(trial)}, {small_size(trial.memory_bytes['total'])} on the fullest "
        f"device. But it is {base_show.share(behind)} slower than the best. The largest "
        f"difference: {quantity(f'step_breakdown_s.{lost}').label}, "
        f"{base_show.seconds(parts[lost])} against {base_show.seconds(least[lost])}."
    )


# ---------------------------------------------------------------- explanations
def _explain(q: Explain, answer: Any, mine: Collection[int] | None) -> Verdict:
    if mine is None:
        how = "words that point to"
        text = str(answer)
        hits = tuple(re.search("|".join(p.words), text, re.I) is not None for p in q.points)
    else:
        how = "by your own count"
        hits = tuple(position in mine for position, _ in enumerate(q.points, 1))
    share = sum(hits) / len(hits)
    status = WRONG
    if share == 1:
        status = RIGHT
    elif share >= 0.5:
        status = NEAR
    says = f"Compare it yourself with the points below; {how} {sum(hits)} of {len(hits)}."
    return Verdict(question=q, answer=answer, status=status, says=says, credit=share, hits=hits)
