"""The right answer of a question, and answers as people read them."""

from collections.abc import Mapping

from scantling import assess
from scantling.base.show import number, shown

from .question import Choice, Number, Plan, Question, value_of
from .texts import fill_text
from .typed import read_number


def right_answer(question: Question, facts):
    """An answer that is right, in the form in which it is typed: a number in the unit asked for, a
    key, a plan, a text."""
    if isinstance(question, Number):
        return float(value_of(question.expected, facts)) / question.scale
    if isinstance(question, Choice):
        return question.right(facts)
    if isinstance(question, Plan):
        best = assess(value_of(question.design, facts)).plan
        fields = dict.fromkeys(
            (*question.names, "tp", "pp", "dp", "cp", "ep", "sharding", "micro_batch")
        )
        return {
            name: best[name]
            for name in fields
            if best[name] not in (None, "none") and (name in question.names or best[name] != 1)
        }
    return fill_text(question.model, facts)


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
            f"{k}: {fill_text(o.text, facts)}" if (o := question.option(k)) else str(k)
            for k in keys
        )
    if isinstance(question, Plan) and isinstance(answer, Mapping):
        return " · ".join(f"{k} {v}" for k, v in answer.items())
    return str(answer)
