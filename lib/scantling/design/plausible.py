"""Inputs that lie outside what anybody has published: each gets a question, and the design is not
judged before it is answered or the field stands under `confirm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..base import show
from ..base.files import table_rows
from ..base.records import record
from ..catalogue.families import family
from ..catalogue.load import filled
from ..catalogue.published import families_of_runs
from ..catalogue.stacks import stack
from .resolved import Resolved

LONGER = 256  # times the published context from which a sequence is asked about
MOST_PASSES = 16  # over a corpus: half of what a repeat is worth is gone (arXiv 2305.16264)
BLOCK_SCALED = ("mxfp8", "mxfp4", "nvfp4")


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
    result += _relations(resolved)
    return tuple(question for question in result if question.field not in confirmed)


def _relations(resolved: Resolved) -> Iterator[Question]:
    """Questions about values that are each in their range and do not go together."""
    yield from _more_spares_than_nodes(resolved)
    yield from _beyond_positions(resolved)
    yield from _data_worn_out(resolved)
    yield from _without_block_scales(resolved)
    yield from _stack_of_other_chips(resolved)


def _to_confirm(field: str, value: float, text: str) -> Question:
    """A question that ends in how to answer it."""
    return Question(
        field=field, value=value, text=f"{field}: {text} If it is meant, write confirm: [{field}]"
    )


def _more_spares_than_nodes(resolved: Resolved) -> Iterator[Question]:
    spares = resolved.reliability.spares or 0
    nodes = resolved.cluster.nodes
    if spares > nodes:
        text = f"{spares:,} spare nodes for {nodes:,} nodes: is that meant?"
        yield _to_confirm("reliability.spares", spares, text)


def _beyond_positions(resolved: Resolved) -> Iterator[Question]:
    """Sequences longer than the learned table of positions, or many times the length that the
    model's publisher trained it at."""
    model = resolved.model
    rows = model.position_rows
    most = rows or LONGER * (model.seq_len or 0)
    for i, phase in enumerate(resolved.phases):
        if not most or phase.seq_len <= most:
            continue
        path = f"job.phases.{i}" if resolved.design.job.phases else "job"
        longer = show.number(phase.seq_len / (model.seq_len or most))
        text = (
            f"{phase.seq_len:,} tokens, {longer} times the {model.seq_len or most:,} that "
            f"{model.name} is published with: is that meant?"
        )
        if rows:
            text = (
                f"{phase.seq_len:,} tokens, and {model.name} has {rows:,} learned positions: is a "
                "longer table meant?"
            )
        yield _to_confirm(f"{path}.seq_len", phase.seq_len, text)


def _data_worn_out(resolved: Resolved) -> Iterator[Question]:
    """A corpus that is read more often than its repeats are worth anything."""
    corpus = resolved.corpus
    tokens = sum(phase.tokens or 0.0 for phase in resolved.phases)
    if not corpus.raw_bytes or not tokens:
        return
    fresh = corpus.raw_bytes * corpus.tokens_per_raw_byte
    passes = tokens / fresh
    if passes > MOST_PASSES:
        left = _short(float(f"{fresh:.3g}"))
        text = (
            f"{show.size(corpus.raw_bytes)} of raw corpus leave {left} tokens, which "
            f"{_short(tokens)} tokens see {passes:,.0f} times; repeats beyond {MOST_PASSES} teach "
            "next to nothing (Muennighoff et al. 2023): is that meant?"
        )
        yield _to_confirm("job.corpus.raw_bytes", corpus.raw_bytes, text)


def _without_block_scales(resolved: Resolved) -> Iterator[Question]:
    """Formats with block scales on a chip whose matrix units have none."""
    chip = resolved.cluster.accelerator
    if family(chip.family).block_scales:
        return
    for i, phase in enumerate(resolved.phases):
        if phase.precision in BLOCK_SCALED:
            path = f"job.phases.{i}" if resolved.design.job.phases else "job"
            text = (
                f"{phase.precision} on {chip.name}: its matrix units take no block scales, and its "
                "makers' libraries have no such recipe (fp8-block is the nearest): is that meant?"
            )
            yield _to_confirm(f"{path}.precision", 0.0, text)


def _stack_of_other_chips(resolved: Resolved) -> Iterator[Question]:
    """A stack on a chip that its public code does not run on, and of whose family no run of it is
    published."""
    chip = resolved.cluster.accelerator
    vendors = stack(resolved.stack).chips.split() if resolved.stack else []
    if not vendors or family(chip.family).vendor_stack in vendors:
        return
    if chip.family not in families_of_runs(str(resolved.stack)):
        text = (
            f"{resolved.stack} runs on chips of {' and '.join(vendors)}, {chip.name} is none of "
            "these, and no run of it there is published: is a build of your own meant?"
        )
        yield _to_confirm("stack", 0.0, text)


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
