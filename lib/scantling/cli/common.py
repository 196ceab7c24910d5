"""What the commands share: exit codes, the design that is asked about, refusals, tables."""

from __future__ import annotations

import json
import sys

import click

from ..advise.active_count import largest_active
from ..advise.whole import as_dict
from ..base.console import print_json
from ..base.errors import DesignError, plain
from ..design.design import Design
from ..plans.prepare import prepare
from ..verdict.assess import assess
from ..verdict.record import Assessment
from .summary import fix_line

EXIT = {
    "feasible": 0,
    "constraint-missed": 3,
    "impossible": 4,
}
WRONG = 2
FILE = click.argument("file")
JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print as JSON.",
)


def read(file: str):
    """The design in `file`, - for stdin; the file's name leads the message of a wrong one."""

    if file == "-":
        return Design.from_text(sys.stdin.read())
    return Design.read(file)


def assessment_of(file: str) -> Assessment:
    """The assessment of FILE; a DesignError about a field gets the file's name in front."""
    try:
        design = read(file)
        prepare(design)  # whatever is wrong with the file, before anything is searched
        return assess(design)
    except DesignError as e:
        name = plain(file, 200)
        if e.field.startswith(name):
            raise
        raise click.ClickException(f"{name}: {e}") from None


def assessed(file: str, headline: bool = False):
    """(design, result as plain data). headline: name and verdict alone, unless impossible."""
    a = assessment_of(file)
    if headline and a.phases:
        return a.design, {
            "name": a.resolved.name,
            "verdict": a.verdict,
        }
    return a.design, as_dict(a) | ({"largest_active": largest_active(a)} if a.phases else {})


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


def grid(*heads: str, words: tuple = ()):
    """A bare table; the columns named in `words` are set left and wrap, the others right and
    whole."""
    from rich.table import Table

    out = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for head in heads:
        out.add_column(
            head,
            justify="left" if head in words else "right",
            no_wrap=head not in words,
            overflow="fold",
        )
    return out


def put(out, table) -> None:
    """Print a table at the console's width, or at the least width that holds its numbers where that
    is more."""
    from rich.measure import Measurement

    least = Measurement.get(out, out.options.update(max_width=1000), table).minimum
    out.print(
        table,
        width=max(out.width, least),
        crop=False,
    )
