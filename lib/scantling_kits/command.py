"""The launch command: the plan of a design as a framework's own configuration."""

import sys
from json import loads

import click
from scantling.base.console import tell
from scantling.base.errors import plain
from scantling.cli.common import EXIT, possible
from scantling.cli.options import FILE, FOLDER
from scantling.verdict.limits import limits
from scantling.verdict.verdicts import VERDICTS, beside_name

from . import Inexpressible, framework, kits, write


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
@click.option("-o", "--output", type=FOLDER, required=True, help="Folder for the kit.")
@click.option(
    "--wide",
    is_flag=True,
    help=(
        "Search the wide space, minutes for a mixture of experts: Ctrl-C ends it with what it has."
    ),
)
def launch(file: str, to: str, on: str, output: str, wide: bool) -> int | None:
    """Write a launch kit for the design in FILE (- for stdin): the best plan of those that the
    framework can run.

    Exit 0 written, with a warning where the design is feasible at risk or not checked; 3 a stated
    constraint is missed or the run makes no sense, 4 impossible: nothing is written; 2 the file or
    the call is wrong.
    """
    assessment = possible(file, space="wide" if wide else "default", kit=framework(to, on).offers)
    verdict = VERDICTS[assessment.verdict]
    if not verdict.launch:
        tell(f"nothing is written: {limits(assessment, advice=False)[0]}")
        return EXIT[assessment.verdict]
    try:
        files = kits(assessment, to, on)
    except Inexpressible as e:
        tell(f"nothing is written: {e}")
        return EXIT["constraint-missed"]
    for reason in assessment.reasons[:1]:
        tell(f"{verdict.name.lower()}: {beside_name(reason.text)}")
    write(files, output)
    print(f"Wrote {len(files)} files to {plain(output, 200)}")

    for gap in loads(files["plan.json"])["not_expressed"]:
        lacks = f"cannot express {gap['field']} {gap['value']} ({gap['why']}): {gap['instead']}"
        cost = f"; {gap['cost']}" if gap["cost"] else ""
        print(plain(f"{to} {lacks}{cost}", 400), file=sys.stderr)
    return None
