"""A question in people's own words, answered: the design that the line says, and the command that
the question means, run on it."""

from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from json import loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.text import Text
from scantling.base.console import console
from scantling.base.files import write_text
from scantling.base.records import record
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.design.draft import draft
from scantling.design.unsettled import SETTLED
from scantling.plans.prepare import prepare

from .brief import read_brief
from .facts_money import OWNED
from .line import Reading
from .question_commands import answers, arguments, line

FILE = "design.yaml"  # what the design is called where nobody keeps it
UNSETTLED = 3
# commands that print no JSON; the assessment has what they say
_WITHOUT_JSON = {"launch", "report"}


@record
class Answer:
    """What a line asks and its answer: the design, the words that were not read, the command, its
    exit code and its JSON (None where words have to be settled first)."""

    text: str
    question: str
    design: Design
    command: str
    exit: int
    answer: Any

    def as_dict(self) -> dict[str, Any]:
        """The keys of `ask --json`."""
        return {
            "text": self.text,
            "question": self.question,
            "command": self.command,
            "unread": [words.stated() for words in self.design.unread or ()],
            "design": self.design.data(),
            "exit": self.exit,
            "answer": self.answer,
        }


def _drafted(text: str) -> tuple[Reading, Design]:
    reading = read_brief(text)
    design, _, _ = draft(reading, None, prepare)
    return reading, design


def answer_of(text: str) -> Answer:
    """The answer to a question in words: the JSON of the command that it means. Raises DesignError
    for a line that contradicts itself or holds nothing of a design."""
    reading, design = _drafted(text)
    shown = arguments(reading, design, FILE)
    topic = reading.question.topic.value if reading.question else ""
    answer = None
    code = UNSETTLED
    if not design.unread:
        with TemporaryDirectory() as folder:
            path = Path(folder) / FILE
            write_text(path, design.to_yaml())
            run = arguments(reading, design, str(path))
            if run[0] in _WITHOUT_JSON:
                run = ["design", str(path)]
            out = StringIO()
            with redirect_stdout(out), redirect_stderr(StringIO()):
                code = main([*run, "--json"])
        answer = loads(out.getvalue()) if out.getvalue().strip() else None
    return Answer(
        text=text, question=topic, design=design, command=line(shown), exit=code, answer=answer
    )


def answered(text: str, output: str | None, force: bool) -> int:
    """Print the answer to a question in words, the command first; the exit code."""
    reading, design = _drafted(text)
    out = console()
    if design.unread:
        if output:
            write_text(output, design.to_yaml(), force)
        for words in design.unread:
            out.print(Text("Not read: ", style="bold yellow").append(words.line(), "default"))
        out.print(Text(f"Nothing is worked out from the rest: {SETTLED}"))
        return UNSETTLED
    if output:
        write_text(output, design.to_yaml(), force)
        return _run(reading, answers(reading, design, output), answers(reading, design, output)[0])
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        write_text(path, design.to_yaml())
        return _run(reading, answers(reading, design, FILE), arguments(reading, design, str(path)))


def _run(reading: Reading, shown: Sequence[Sequence[str]], run: list[str]) -> int:
    """Run a command; it is printed first, with what its dollars are of an owned machine, and last
    those that answer what the line asks besides."""
    out = console()
    first, *others = shown
    out.print(Text(line(first), style="bold"))
    for one in reading.assumed:
        if one.why == OWNED:
            out.print(Text("Dollars: ", style="bold yellow").append(OWNED, "default"))
    code = main(run)
    for words in others:
        out.print(Text("Asked besides: ").append(line(words), "bold"))
    return code


def ask(text: str) -> dict[str, Any]:
    """What `ask --json` prints: the question, the command, the design, its answer."""
    return answer_of(text).as_dict()
