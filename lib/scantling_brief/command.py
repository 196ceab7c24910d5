"""`scantling init` and `scantling ask`: a line in people's own words, as a design file and as an
answer."""

import sys
from collections.abc import Sequence
from textwrap import wrap

import click
from rich.text import Text
from scantling.base.console import console, print_json
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_text
from scantling.base.records import Assumed
from scantling.base.show import value_text
from scantling.cli.common import check_new
from scantling.cli.options import JSON
from scantling.design.design import Design
from scantling.design.draft import commented, draft
from scantling.design.line_reading import Read
from scantling.design.methods import is_posttraining, untuned
from scantling.plans.prepare import prepare

from .answering import answer_of, answered
from .brief import read_brief
from .line import Reading
from .question_commands import answers, command, line
from .weights import SHOWN, Weighed, moves, weightiest

LINES = 20  # of what init prints
_NAME = 9  # width of the names at the left
_EXAMPLE = '--like MODEL, or --text "175B MoE, 96 layers, 1024x A100 80GB, 1T tokens in 30 days"'


@click.command()
@click.option("--like", help="Catalogue model to start from.")
@click.option(
    "--text",
    help=(
        'What is planned, in words: "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T '
        'tokens in 30 days".'
    ),
)
@click.option("-o", "--output", required=True, help="Design file to write (- for stdout).")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def init(like: str | None, text: str | None, output: str, force: bool) -> int:
    """Write a commented design file; say what was read, what was not, what days and dollars hang
    on, and the command that comes next.

    Exit 0 where all that decides was read; 3 where words have to be settled first: they stand in
    the file under `unread`; 2 where the line contradicts itself or holds nothing of a design.
    """
    if like is None and text is None:
        raise DesignError(problem="nothing to start from", allowed=_EXAMPLE)
    if output != "-":
        check_new(output, force)
    reading = read_brief(text) if text is not None else None
    design, assumed, ignored = draft(reading, like, prepare)
    settled = design.change({"unread": None})
    resolved = None if reading and reading.open else prepare(untuned(settled))
    tuned = is_posttraining(settled)
    more = resolved.assumed if resolved else ()
    if is_posttraining(settled):  # what its trainer does is assumed by whoever plans it
        more = tuple(row for row in more if not row.field.startswith("job."))
    assumed = [*assumed, *more]
    content = commented(design, text, assumed, ignored)
    code = 3 if design.unread else 0
    if output == "-":
        sys.stdout.write(content)
        return code
    write_text(output, content, force)
    weighed = weightiest(settled, assumed) if code == 0 and not tuned else []
    following, *more_asked = (
        answers(reading, design, output) if reading else [command(None, output, None)]
    )
    rows = [
        *_read(reading, like),
        *_unread(design),
        *_ignored(ignored),
        *_assumed(weighed, assumed, output),
    ]
    last = [_row("Next", line(following))]
    if code:
        last = [
            _row(
                "Next", f"settle what was not read in {plain(output, 200)}, then {line(following)}"
            )
        ]
    last += [_row("", line(words)) for words in more_asked]
    out = console()
    for row in [*rows[: LINES - len(last)], *last]:
        row.truncate(out.width, overflow="ellipsis")
        out.print(row)
    return code


def _row(name: str, text: str) -> Text:
    """A line under a name."""
    return Text(f"{name:<{_NAME}}", style="dim").append(text, style="default")


def _rows(name: str, text: str, most: int) -> list[Text]:
    """A text under a name on so many lines at most."""
    parts = wrap(text, 120 - _NAME, break_long_words=True, max_lines=most, placeholder=" …")
    return [_row(name if i == 0 else "", part) for i, part in enumerate(parts)]


def _read(reading: Reading | None, like: str | None) -> list[Text]:
    """What was read: the words, and the fields that they set."""
    by_words: dict[str, list[str]] = {}
    if like:
        by_words[f"--like {like}"] = [f"model {like}"]
    for read in reading.read if reading else ():
        fields = by_words.setdefault(read.words, [])
        if read.field:
            fields.append(f"{read.field} {value_text(read.value)}")
    parts = [
        f"“{plain(words, 60)}” {', '.join(fields)}" for words, fields in by_words.items() if fields
    ]
    if reading and reading.question:
        parts.append(f"a question: {reading.question.topic}")
    return _rows("Read", "; ".join(parts), 6)


def _unread(design: Design) -> list[Text]:
    """What was not read and has to be answered, two lines each."""
    rows = []
    for words in (design.unread or ())[:5]:
        rows += _rows("Not read", words.line(), 2)
    return rows


def _ignored(ignored: Sequence[Read]) -> list[Text]:
    """Words that decide nothing."""
    words = ", ".join(f"“{plain(read.words, 60)}”" for read in ignored)
    return _rows("Ignored", words, 1) if words else []


def _assumed(weighed: Sequence[Weighed], assumed: Sequence[Assumed], output: str) -> list[Text]:
    """What days and dollars hang on most, and where the rest stands."""
    rows = []
    for i, one in enumerate(weighed[:SHOWN]):
        value = plain(value_text(one.assumed.value), 40)
        text = f"{one.assumed.field} {value}{moves(one)}: {one.assumed.why}"
        rows += _rows("Assumed" if i == 0 else "", plain(text, 400), 1)
    more = len(assumed) - len(weighed)
    if more > 0:
        rows.append(_row("", f"{more} more assumptions stand in {plain(output, 200)}"))
    return rows


@click.command()
@click.argument("text")
@click.option("-o", "--output", help="Keep the design in this file.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@JSON
def ask(text: str, output: str | None, force: bool, as_json: bool) -> int:
    """Answer the question in TEXT: the design that it says, and the command that the question
    means, in one. The command is printed.

    Exit as the command does; 3 where words of the line have to be settled first.
    """
    if output:
        check_new(output, force)
    if as_json:
        answer = answer_of(text)
        if output:
            write_text(output, answer.design.to_yaml(), force)
        print_json(answer.as_dict())
        return answer.exit
    return answered(text, output, force)
