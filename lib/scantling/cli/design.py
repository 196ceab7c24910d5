"""Commands on one design: design, goodput."""

from __future__ import annotations

import json
import sys

import click

from ..advise.active_count import largest_active
from ..advise.recovery import finishing_day, recovery
from ..advise.whole import as_dict
from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..plans.prepare import prepare
from ..verdict.assess import assess
from .app import EXIT


def read(file: str):
    """The design in `file`, - for stdin; the file's name leads the message of a wrong one."""
    from ..design.design import Design

    if file == "-":
        return Design.from_text(sys.stdin.read())
    return Design.read(file)


def assessed(file: str, headline: bool = False):
    """(design, result as plain data); a DesignError about a field gets the file's name in front.
    headline: name and verdict alone, unless impossible."""
    try:
        design = read(file)
        prepare(design)  # whatever is wrong with the file, before the models are imported
        a = assess(design)
        return design, {
            "name": a.resolved.name,
            "verdict": a.verdict,
        } if headline and a.phases else as_dict(a) | (
            {"largest_active": largest_active(a)} if a.phases else {}
        )
    except DesignError as e:
        name = plain(file, 200)
        if e.field.startswith(name):
            raise
        raise click.ClickException(f"{name}: {e}") from None


def refuse(result: dict, as_json: bool) -> int:
    """Print the refusal: on stdout the one line (or the JSON), the arithmetic on stderr."""
    if as_json:
        print_json(
            {k: result.get(k) for k in ("name", "verdict", "error", "limits", "nearest_fixes")}
        )
    else:
        from .summary import fix_line

        print(json.dumps({"error": result["error"]}))
        for line in result.get("limits") or []:
            print(plain(line, 1000), file=sys.stderr)
        for fix in result.get("nearest_fixes") or []:
            print("nearest: " + plain(fix_line(fix), 1000), file=sys.stderr)
    return EXIT["impossible"]


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print the whole assessment as JSON.")
@click.pass_context
def design(ctx, file, as_json):
    """Assess the design in FILE (- for stdin).

    Exit 0 feasible, 3 a stated constraint is missed, 4 impossible, 2 the file is wrong.
    """
    _, result = assessed(file)
    if result["verdict"] == "impossible":
        ctx.exit(refuse(result, as_json))
    if as_json:
        print_json(result)
    else:
        from .summary import summary

        summary(result, console())
    ctx.exit(EXIT[result["verdict"]])


def _more(design) -> dict:
    """Recovery and the finishing day, which take longer than the headline."""
    assessment = assess(design)
    return {"recovery": recovery(assessment), "finishing_day": finishing_day(assessment)}


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_context
def goodput(ctx, file, as_json):
    """Failures, checkpoint interval, goodput and spares of the design in FILE."""
    found, result = assessed(file)
    if result["verdict"] == "impossible":
        ctx.exit(refuse(result, as_json))
    keys = (
        "name",
        "verdict",
        "goodput",
        "mtbf_s",
        "checkpoint_interval_s",
        "checkpoint_bytes",
        "checkpoint_overhead",
        "spares",
        "spares_recommended",
    )
    if as_json:
        print_json(
            {**{k: result[k] for k in keys}, "endurance": result.get("endurance"), **_more(found)}
        )
    else:
        from .summary import endurance

        endurance(result, keys[2:], console())
    ctx.exit(EXIT[result["verdict"]])
