"""The command on what stands around a job: network, placement, planes, scheduler, stores, domains,
risks, roll-out, evolution."""

from __future__ import annotations

import click

from ..advise.design_json import as_dict
from ..base.console import console, print_json
from ..base.errors import DesignError, closest
from ..cluster import PARTS
from ..cluster import blueprint as site_around
from .blueprint_tables import show_parts
from .common import EXIT, FILE, JSON, assessment_of, refuse


class Parts(click.ParamType):
    """One part of the blueprint by name; the nearest name is offered for a misspelt one."""

    name = "part"

    def convert(
        self,
        value,
        param,
        ctx,
    ):
        if value not in PARTS:
            raise DesignError(
                "--part",
                value,
                PARTS,
                nearest=closest(value, PARTS),
            )
        return value


@click.command()
@FILE
@JSON
@click.option(
    "--part",
    "parts",
    type=Parts(),
    multiple=True,
    help=(
        "Only this part; may be given more than once: network, placement, planes, "
        "scheduler, stores, domains, risks, rollout, evolution, calendar."
    ),
)
@click.option(
    "--full",
    is_flag=True,
    help="All lines of the network, not its totals alone.",
)
@click.pass_context
def blueprint(
    ctx,
    file,
    as_json,
    parts,
    full,
):
    """The site around the design in FILE (- for stdin): network, scheduler, storage, failure
    domains, risks, roll-out, what breaks next.

    Exit codes as of design: 0 feasible, 3 a stated constraint is violated, 4 impossible, 2 the file
    is wrong.
    """
    assessment = assessment_of(file)
    if not assessment.phases:
        ctx.exit(refuse(as_dict(assessment), as_json))
    found = site_around(assessment, parts or PARTS).as_dict(parts or PARTS)
    if as_json:
        print_json(
            {
                "name": assessment.resolved.name,
                "verdict": assessment.verdict,
                **found,
            }
        )
    else:
        show_parts(
            assessment.resolved.name,
            found,
            console(),
            full,
        )
    ctx.exit(EXIT[assessment.verdict])
