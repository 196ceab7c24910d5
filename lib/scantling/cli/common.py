"""What the commands share: exit codes, the design that is asked about, refusals."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from json import dumps
from os.path import realpath
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.text import Text

from ..advise.design_json import as_dict
from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..base.plugins import FUNCTIONS, entries, function
from ..design.file_or_stdin import read
from ..design.methods import PLANNER, is_posttraining
from ..design.unsettled import SETTLED, VERDICT, Unsettled
from ..verdict.assess import assess
from ..verdict.assessment import Assessment
from ..verdict.verdicts import EXIT, VERDICTS
from . import texts
from .bar import Bar


def check_new(output: str, force: bool, read: Iterable[str | Path] = ()) -> None:
    """Refuse, before any work is done, to replace a file unless `force`, one that is read or
    written beside it at all, and to write where there is no folder, or to a file called -."""
    wrong = partial(DesignError, plain(output, 200))
    if output == "-":
        raise wrong(problem="names no file", allowed="a file, or /dev/stdout to print it")
    if Path(output).exists() and not force:
        raise wrong(problem="exists already", allowed="a new file name, or --force to replace it")
    path = realpath(output)
    if path in map(realpath, read):
        raise wrong(problem="is a file of this call already", allowed="another file name")
    if not Path(path).parent.is_dir():
        raise wrong(
            problem="is in a folder that does not exist", allowed="a file in an existing folder"
        )


def assessment_of(
    file: str, space: str = "default", kit: Mapping[str, Any] | None = None
) -> Assessment:
    """The assessment of FILE over one of SPACES, the wide one with progress on stderr, or over what
    `kit` has words for of it; a DesignError about a field gets the file's name in front."""
    try:
        design = read(file)
        # the others take a second or two: an interrupt ends the program, not the search alone
        with Bar(True).watching() if space == "wide" else nullcontext() as bar:
            return assess(design, space=space, progress=bar, kit=kit)
    except DesignError as e:
        name = plain(file, 200)
        if isinstance(e, Unsettled) or e.field.startswith(name):
            raise
        raise click.ClickException(f"{name}: {e.one_line()}") from None


def possible(
    file: str, as_json: bool = False, space: str = "default", kit: Mapping[str, Any] | None = None
) -> Assessment:
    """`assessment_of`; where no plan can hold the model, the refusal is printed and the command
    ends; of words that nobody has settled, these are."""
    try:
        a = assessment_of(file, space, kit)
    except Unsettled as unsettled:
        ask_first(unsettled, as_json)
    if not a.phases:
        refuse(a, as_json)
    return a


def posttrained(file: str, as_json: bool) -> int | None:
    """The exit code of a design that tunes a trained model, which another package answers and
    prints; None for one that trains from the start. `-` is read by whoever comes first."""
    if file == "-":
        return None
    try:
        design = read(file)
    except DesignError:  # said by whoever reads it for an answer
        return None
    if not is_posttraining(design) or PLANNER not in entries(FUNCTIONS):
        return None
    try:
        code: int = function(f"{PLANNER}_command")(design, as_json)
    except Unsettled as unsettled:
        ask_first(unsettled, as_json)
    except DesignError as e:
        raise click.ClickException(f"{plain(file, 200)}: {e}") from None
    return code


def ask_first(unsettled: Unsettled, as_json: bool) -> NoReturn:
    """End with the words that nobody has settled, in the place of an answer."""
    verdict = VERDICTS[VERDICT]
    if as_json:
        print_json(unsettled.as_dict())
    else:
        out = console()
        out.print(Text(plain(unsettled.title, 120), style="bold"))
        for line in unsettled.lines():
            out.print(Text(f"{verdict.name}: ", style="bold yellow").append(line, "default"))
        out.print(Text(f"Nothing is worked out from the rest: {SETTLED}"))
    raise click.exceptions.Exit(verdict.exit)


def named(assessment: Assessment) -> dict[str, Any]:
    """Name and verdict, which every answer in JSON starts with."""
    return {"name": assessment.resolved.name, "verdict": assessment.verdict}


def refuse(assessment: Assessment, as_json: bool) -> None:
    """End with the refusal: on stdout the one line (or the JSON), the arithmetic on stderr."""
    result = as_dict(assessment)
    if as_json:
        print_json(result)
    else:
        print(dumps({"error": result["error"]}))
        for line in result["limits"]:
            print(plain(line, 1000), file=sys.stderr)
        for fix in result["nearest_fixes"]:
            print("nearest: " + plain(texts.change(fix), 1000), file=sys.stderr)
    raise click.exceptions.Exit(EXIT["impossible"])


def count_on_stderr(done: int, of: int) -> None:
    """Progress as one line that is written over; none where no terminal shows it."""
    if not sys.stderr.isatty():
        return
    click.echo(f"\r{done} of {of}", nl=done == of, err=True)


@contextmanager
def on_scheduler(address: str | None) -> Iterator[None]:
    """Inside, what goes wrong with a Dask scheduler is said as the fault of its option."""
    try:
        yield
    except ImportError:
        raise DesignError(
            "--scheduler", address, "pip install 'scantling[dask]'", problem="needs Dask"
        ) from None
    except OSError as e:
        raise DesignError(
            "--scheduler",
            address,
            "the address of a running Dask scheduler, such as tcp://127.0.0.1:8786",
            problem=f"cannot be reached: {e}",
        ) from None
