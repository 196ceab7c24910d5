"""What the commands share: exit codes, the design that is asked about, refusals, tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext

import click
from rich.measure import Measurement

from ..advise.active_count import largest_active
from ..base.console import print_json
from ..base.errors import DesignError, plain
from ..base.files import read_stream
from ..base.words import table
from ..cluster.promise import said
from ..design.design import Design
from ..plans.axes import SPACES
from ..plans.prepare import prepare
from ..verdict.assess import assess
from ..verdict.record import Assessment
from ..verdict.verdicts import EXIT as EXIT
from .bar import Bar
from .summary import bare, fix_line

WRONG = 2
FILE = click.argument("file")
JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print as JSON.",
)
TYPES = {
    "count": click.IntRange(1),
    "number": float,
    "device": click.Choice(["cuda", "cpu"]),
    "file": click.Path(dir_okay=False),
    "folder": click.Path(),
    "space": click.Choice(["coarse", "default", "wide"]),
}


def options(command: str):
    """The options of one command, as options.yaml states them."""

    def decorate(function):
        for row in reversed(table(__file__, "options")[command]):
            option = click.option(
                *row["flags"],
                type=TYPES.get(row.get("type")),
                **{k: v for k, v in row.items() if k not in ("flags", "type")},
            )
            function = option(function)
        return function

    return decorate


def read(file: str):
    """The design in `file`, - for stdin; the file's name leads the message of a wrong one."""
    return Design.from_yaml(read_stream(sys.stdin, "-")) if file == "-" else Design.read(file)


def assessment_of(
    file: str,
    space: str = "default",
    kit: Mapping | None = None,
) -> Assessment:
    """The assessment of FILE over one of SPACES, the wide one with progress on stderr, or over what
    `kit` has words for of it; a DesignError about a field gets the file's name in front."""
    try:
        design = read(file)
        prepare(design)  # whatever is wrong with the file, before anything is searched
        # the others take a second or two: an interrupt ends the program, not the search alone
        with Bar(True).watching() if space == "wide" else nullcontext() as bar:
            return assess(
                design,
                space=SPACES[space],
                progress=bar,
                kit=kit,
            )
    except DesignError as e:
        name = plain(file, 200)
        if e.field.startswith(name):
            raise
        raise click.ClickException(f"{name}: {e}") from None


def assessed(
    file: str,
    headline: bool = False,
    space: str = "default",
):
    """(design, result as plain data). headline: name and verdict alone, unless impossible."""
    a = assessment_of(file, space)
    if headline and a.phases:
        return a.design, {
            "name": a.resolved.name,
            "verdict": a.verdict,
        }
    return a.design, said(a) | ({"largest_active": largest_active(a)} if a.phases else {})


def refuse(result: dict, as_json: bool) -> int:
    """Print the refusal: on stdout the one line (or the JSON), the arithmetic on stderr."""
    if as_json:
        print_json(
            {k: result.get(k) for k in ("name", "verdict", "error", "limits", "nearest_fixes")}
        )
    else:
        print(json.dumps({"error": result["error"]}))
        for line in result.get("limits") or []:
            print(plain(line, 1000), file=sys.stderr)
        for fix in result.get("nearest_fixes") or []:
            print("nearest: " + plain(fix_line(fix), 1000), file=sys.stderr)
    return EXIT["impossible"]


def print_table(
    out,
    heads,
    rows,
    words: tuple = (),
) -> None:
    """A bare table; the columns named in `words` are set left and wrap, the others right and
    whole. It takes the console's width, or the least width that holds its numbers where that is
    more."""
    grid = bare()
    for head in heads:
        word = head in words
        grid.add_column(
            head,
            justify="left" if word else "right",
            no_wrap=not word,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*row)
    out.print(
        grid,
        width=max(
            out.width, Measurement.get(out, out.options.update(max_width=1000), grid).minimum
        ),
        crop=False,
    )


def count_on_stderr(done: int, of: int) -> None:
    """Progress as one line that is written over."""
    click.echo(
        f"\r{done} of {of}",
        nl=done == of,
        err=True,
    )


@contextmanager
def on_scheduler(address: str | None):
    """Inside, what goes wrong with a Dask scheduler is said as the fault of its option."""
    try:
        yield
    except ImportError:
        raise DesignError(
            "--scheduler",
            address,
            "pip install 'scantling[dask]'",
            problem="needs Dask",
        ) from None
    except OSError as e:
        raise DesignError(
            "--scheduler",
            address,
            "the address of a running Dask scheduler, such as tcp://127.0.0.1:8786",
            problem=f"cannot be reached: {e}",
        ) from None
