"""Commands on designs as they are: design, goodput, compare."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import click

from ..advise.comparison import compare as side_by_side
from ..advise.extremes import largest_active
from ..advise.recovery import Living
from ..base.console import console, print_json
from ..base.files import write_text
from ..base.plugins import function
from ..verdict.result import Result
from ..verdict.verdicts import EXIT
from .common import assessment_of, check_new, named, possible, posttrained
from .options import FILE, JSON, PATH
from .summary import endurance, full, summary
from .tables import print_table


@click.command()
@FILE
@click.option("--json", "as_json", is_flag=True, help="Print the whole assessment as JSON.")
@click.option(
    "--full", "everything", is_flag=True, help="Print everything, not the forty lines that decide."
)
@click.option(
    "--wide",
    is_flag=True,
    help=(
        "Search the wide space, minutes for a mixture of experts: Ctrl-C ends it with what it has."
    ),
)
def design(file: str, as_json: bool, everything: bool, wide: bool) -> int:
    """Assess the design in FILE (- for stdin).

    Exit 0 feasible, at risk or not; 3 a stated constraint is violated or cannot be checked, or the
    run makes no sense; 4 impossible; 2 the file is wrong.
    """
    tuned = posttrained(file, as_json)
    if tuned is not None:
        return tuned
    a = possible(file, as_json, "wide" if wide else "default")
    result: Result = function("assessment_json")(a)
    if as_json or everything:
        result["largest_active"] = largest_active(a)
    if as_json:
        print_json(result)
    else:
        (full if everything else summary)(result, console())
    return EXIT[a.verdict]


@click.command()
@FILE
@JSON
def goodput(file: str, as_json: bool) -> int:
    """Work out failures, checkpoint interval, goodput and spares of the design in FILE.

    Exit as `design`.
    """
    a = possible(file, as_json)
    result: Living = named(a) | function("goodput")(a)
    if as_json:
        print_json(result)
    else:
        endurance(result, console())
    return EXIT[a.verdict]


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Designs side by side</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:15px system-ui;margin:2em}}div{{overflow:auto}}table{{border-collapse:collapse}}
td,th{{padding:4px 12px;text-align:right;border-bottom:1px solid #8884}}
td:first-child{{text-align:left;position:sticky;left:0;background:Canvas}}</style></head>
<body><h1>Designs side by side</h1><p>What differs stands first: {names}.</p><div>{table}</div>
</body></html>
"""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--json", "as_json", is_flag=True, help="Print as JSON: names, and rows with values and texts."
)
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option("-o", "--output", type=PATH, metavar="PAGE.html", help="Write one HTML page instead.")
def compare(files: Sequence[str], as_json: bool, markdown: bool, output: str | None) -> int:
    """Set designs side by side: what was asked where it differs, the plans, the figures.

    Ends with the worst of the designs: 4 impossible, 3 a constraint violated, 0; 2 a wrong file.
    """
    if output:
        check_new(output, True, files)
    names = side_by_side(assessment_of(file) for file in files)
    if output:
        write_text(
            Path(output),
            PAGE.format(names=", ".join(map(escape, names.names)), table=names._repr_html_()),
            True,
        )
    elif as_json:
        print_json(names.as_dict())
    elif markdown:
        click.echo(names.markdown(), nl=False)
    else:
        print_table(console(), ("", *names.names), names.cells()[1:], words=("", *names.names))
    (verdicts,) = (row.values for row in names.rows if row.key == "verdict")
    return max(EXIT[verdict] for verdict in verdicts)
