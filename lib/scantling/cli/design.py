"""Commands on one design: design, goodput."""

from __future__ import annotations

import click

from ..advise.recovery import finishing_day, recovery
from ..base.console import console, print_json
from ..verdict.assess import assess
from .common import EXIT, assessed, refuse
from .summary import endurance, summary


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
        endurance(result, keys[2:], console())
    ctx.exit(EXIT[result["verdict"]])
