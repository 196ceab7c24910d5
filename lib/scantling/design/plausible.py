"""Inputs that lie outside what anybody has published: each gets a question, and the design is not
judged before it is answered or the field stands under `confirm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..base.files import table_rows
from ..base.records import record
from ..catalogue.load import filled
from .resolved import Resolved


@record
class Usual:
    """One row of plausible.csv: the range of a field and what a value outside may have meant."""

    field: str
    low: float
    high: float
    unit: str
    guesses: tuple[float, ...] = ()  # factors on the value, the likeliest first
    other: str  # field that the value may have been meant for
    why: str


@record
class Question:
    """A value that asks for a confirmation."""

    field: str
    value: float
    text: str


@cache
def usual() -> tuple[Usual, ...]:
    """The rows of plausible.csv."""
    return tuple(filled(Usual, table_rows(__file__, "plausible")))


def questions(resolved: Resolved) -> tuple[Question, ...]:
    """A question for each given value outside its range that the design does not confirm."""
    data = resolved.design.data()
    confirmed = resolved.design.confirm or ()
    result: list[Question] = []
    for row in usual():
        section, _, name = row.field.rpartition(".")
        if section:
            result += _question(row, f"{section}.{name}", data.get(section, {}).get(name), 1)
            continue
        for path, stretch, seq_len in _stretches(resolved):
            sequences = seq_len if name == "global_batch" else 1
            result += _question(row, f"{path}.{name}", stretch.get(name), sequences)
    return tuple(question for question in result if question.field not in confirmed)


def _stretches(resolved: Resolved) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """The job or each of its phases: path, fields as the file has them, context [tokens]."""
    job = resolved.design.data().get("job", {})
    if "phases" not in job:
        yield "job", job, resolved.phases[0].seq_len
    for i, stretch in enumerate(job.get("phases", ())):
        yield f"job.phases.{i}", stretch, resolved.phases[i].seq_len


def _question(row: Usual, field: str, value: float | None, times: float) -> list[Question]:
    """What is asked of a value whose size, `times` as much in the unit of the row, is out of range;
    nothing of one inside it, nor of a zero."""
    if not value or row.low <= value * times <= row.high:
        return []
    guess = "is that meant?"
    if row.other and row.low <= value <= row.high:
        guess = f"did you mean {row.other}: {_short(value)}?"
    meant = [value * factor for factor in row.guesses]
    likely = [each for each in meant if row.low <= each <= row.high / 10]
    if likely:
        guess = f"did you mean {_short(likely[0])}?"
    text = (
        f"{field}: {_short(value * times)} {row.unit}: {guess} If it is meant, "
        f"write confirm: [{field}]; {row.why}"
    )
    return [Question(field=field, value=value, text=text)]


def _short(value: float) -> str:
    """15, 0.08, 15e12: as people write it into a file."""
    if abs(value) < 1e5:
        return f"{value:g}"
    exponent = int(f"{value:e}".partition("e")[2]) // 3 * 3
    return f"{value / 10.0**exponent:g}e{exponent}"
