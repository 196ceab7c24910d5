"""The launch command: the plan of a design as a framework's own configuration."""

from __future__ import annotations

import json
import sys

import click

from ..advise.design_json import as_dict
from ..base.errors import DesignError, plain
from ..kits import FRAMEWORKS, ON, Inexpressible, kits, write
from ..kits.framework import offers
from ..verdict.limits import limits
from ..verdict.verdicts import VERDICTS
from .common import EXIT, FILE, assessment_of, options, refuse


@click.command()
@FILE
@options("launch")
@click.pass_context
def launch(
    ctx,
    file,
    to,
    on,
    output,
    wide,
):
    """Write a launch kit for the design in FILE (- for stdin): the best plan of those that the
    framework can run.

    Exit 0 written, with a warning where the design is feasible at risk or not checked; 3 a stated
    constraint is missed or the run makes no sense, 4 impossible: nothing is written; 2 the file or
    the call is wrong.
    """

    for option, value, allowed in (("--to", to, FRAMEWORKS), ("--on", on, ON)):
        if value not in allowed:
            raise DesignError(option, value, allowed)
    assessment = assessment_of(file, "wide" if wide else "default", offers(FRAMEWORKS[to]))
    verdict = VERDICTS[assessment.verdict]
    if not verdict.launch:
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
    for reason in assessment.reasons[:1]:
        print(f"scantling: {verdict.name.lower()}: {plain(reason.text, 1000)}", file=sys.stderr)
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
