"""Commands on one design: design, goodput."""

from __future__ import annotations

import click

from ..advise.recovery import GOODPUT
from ..advise.recovery import goodput as lived_through
from ..advise.whole import as_dict
from ..base.console import console, print_json
from .common import EXIT, FILE, JSON, assessed, assessment_of, refuse
from .summary import endurance, summary


@click.command()
@FILE
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the whole assessment as JSON.",
)
@click.pass_context
def design(
    ctx,
    file,
    as_json,
):
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


@click.command()
@FILE
@JSON
@click.pass_context
def goodput(
    ctx,
    file,
    as_json,
):
    """Failures, checkpoint interval, goodput and spares of the design in FILE."""
    assessment = assessment_of(file)
    if assessment.verdict == "impossible":
        ctx.exit(refuse(as_dict(assessment), as_json))
    said = {
        "name": assessment.resolved.name,
        "verdict": assessment.verdict,
    }
    said |= lived_through(assessment)
    if as_json:
        print_json(said)
    else:
        endurance(said, GOODPUT, console())
    ctx.exit(EXIT[assessment.verdict])
