"""The launch command: the plan of a design as a framework's own configuration."""

from __future__ import annotations

import json
import sys

import click

from ..advise.whole import as_dict
from ..base.errors import DesignError, plain
from ..kits import FRAMEWORKS, ON, Inexpressible, kits, write
from ..verdict.limits import limits
from .common import EXIT, FILE, assessment_of, refuse


@click.command()
@FILE
@click.option(
    "--to",
    required=True,
    metavar="FRAMEWORK",
    help="megatron, megatron-bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext or ddp.",
)
@click.option(
    "--on",
    default="torchrun",
    show_default=True,
    metavar="SCHEDULER",
    help="torchrun, slurm or kubernetes.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Folder for the kit.",
)
@click.pass_context
def launch(
    ctx,
    file,
    to,
    on,
    output,
):
    """Write a launch kit for the design in FILE (- for stdin).

    Exit 0 written; 3 a stated constraint is missed, 4 impossible: nothing is written; 2 the file or
    the call is wrong.
    """

    for option, value, allowed in (("--to", to, FRAMEWORKS), ("--on", on, ON)):
        if value not in allowed:
            raise DesignError(option, value, allowed)
    assessment = assessment_of(file)
    if assessment.verdict != "feasible":
        if assessment.verdict == "impossible":
            ctx.exit(refuse(as_dict(assessment), False))
        for m in limits(assessment)[:1]:
            print(f"scantling: nothing is written: {plain(m, 1000)}", file=sys.stderr)
        ctx.exit(EXIT[assessment.verdict])
    try:
        files = kits(assessment, to, on)
    except Inexpressible as e:
        print(f"scantling: nothing is written: {plain(str(e), 1500)}", file=sys.stderr)
        ctx.exit(EXIT["constraint-missed"])
    write(files, output)
    print(f"Wrote {len(files)} files to {plain(str(output), 200)}")

    for gap in json.loads(files["plan.json"])["not_expressed"]:
        print(
            plain(
                (
                    f"{to} cannot express {gap['field']} {gap['value']} ({gap['why']}): "
                    f"{gap['instead']}; {gap['cost']}"
                ),
                400,
            ),
            file=sys.stderr,
        )
    ctx.exit(0)
