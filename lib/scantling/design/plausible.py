"""Inputs that lie outside what anybody has published: each gets a question, and the design is not
judged before it is answered or the field stands under `confirm`."""

from __future__ import annotations

from functools import cache

from ..base.records import record
from ..base.words import table_rows
from ..catalogue.load import filled


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
def usual() -> tuple:
    """The rows of plausible.csv."""
    return tuple(filled(Usual, table_rows(__file__, "plausible")))


def questions(resolved) -> tuple:
    """A question for each given value outside its range that the design does not confirm."""
    data = resolved.design.data()
    found = []
    job = data.get("job", {})
    stretches = {f"job.phases.{i}": one for i, one in enumerate(job.get("phases", ()))}
    contexts = [phase.seq_len for phase in resolved.phases]
    for row in usual():
        section, _, name = row.field.rpartition(".")
        given = {section: data.get(section, {})} if section else stretches or {"job": job}
        for (at, fields), seq_len in zip(given.items(), contexts):
            if name in fields:
                found += _question(
                    row,
                    f"{at}.{name}",
                    fields[name],
                    fields[name] * (seq_len if name == "global_batch" else 1),
                )
    return tuple(q for q in found if q.field not in (resolved.design.confirm or ()))


def _question(row: Usual, field: str, value: float, size: float) -> list:
    """What is asked of a value whose `size`, in the unit of the row, is out of range; nothing of
    one inside it, nor of a zero."""
    if row.low <= size <= row.high or value == 0:
        return []
    guess = "is that meant?"
    if row.other and row.low <= value <= row.high:
        guess = f"did you mean {row.other}: {_short(value)}?"
    meant = [value * times for times in row.guesses if row.low <= value * times <= row.high / 10]
    if meant:
        guess = f"did you mean {_short(meant[0])}?"
    text = f"{field}: {_short(size)} {row.unit}: {guess} If it is meant, write confirm: [{field}]; "
    return [Question(field=field, value=value, text=text + row.why)]


def _short(value: float) -> str:
    """15, 0.08, 15e12: as people write it into a file."""
    if abs(value) < 1e5:
        return f"{value:g}"
    exponent = int(f"{value:e}".partition("e")[2]) // 3 * 3
    return f"{value / 10.0**exponent:g}e{exponent}"
