"""The right answer of a question, and answers as people read them."""

from collections.abc import Mapping
from typing import Any

from scantling import assess
from scantling.base.show import number, shown

from .question import Choice, Explain, Number, Plan, Question
from .typed import read_number


def right_answer(question: Question) -> Any:
    """An answer that is right, in the form in which it is typed: a number in the unit asked for, a
    key or several, a plan, a text. Raises TypeError for a question of no known kind."""
    match question:
        case Number():
            return float(question.expected) / question.scale
        case Choice():
            return question.expected
        case Plan():
            return right_plan(question)
        case Explain():
            return question.model
    raise TypeError(f"a question of no known kind: {question.id}")


def right_plan(question: Plan) -> dict[str, Any]:
    """The fields of the best plan that the question names, and those that are not left out."""
    best: Mapping[str, Any] = {**assess(question.design).plan}
    usual = ("tp", "pp", "dp", "cp", "ep", "sharding", "micro_batch")
    plan = {}
    for name in dict.fromkeys((*question.names, *usual)):
        value = best[name]
        if value not in (None, "none") and (name in question.names or value != 1):
            plan[name] = value
    return plan


def number_as_text(question: Number, answer: Any) -> str:
    """A number as it was asked for."""
    value = read_number(answer, question.unit)
    if question.manner:
        return shown(value * question.scale, question.manner)
    whole = value.is_integer() and abs(value) < 1e6
    text = f"{value:,.0f}" if whole else number(value)
    return f"{text} {question.unit}".strip()


def answer_as_text(question: Question, answer: Any) -> str:
    """An answer as people read it."""
    if isinstance(question, Number):
        return number_as_text(question, answer)
    if isinstance(question, Choice):
        keys = [answer] if isinstance(answer, str) else list(answer)
        options = [(key, question.option(key)) for key in keys]
        return "; ".join(f"{key}: {o.text}" if o else str(key) for key, o in options)
    if isinstance(question, Plan) and isinstance(answer, Mapping):
        return " · ".join(f"{name} {value}" for name, value in answer.items())
    return str(answer)
