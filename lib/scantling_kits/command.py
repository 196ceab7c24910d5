"""The launch command: the plan of a design as a framework's own configuration."""

import sys
from json import loads

import click
from scantling.base.console import tell
from scantling.base.errors import plain
from scantling.cli.common import possible
from scantling.cli.options import FILE, FOLDER
from scantling.verdict.verdicts import EXIT

from . import Inexpressible, framework, kits, smoke_kit, write
from .writable import ANYWAY, refusal, warning


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
@click.option("-o", "--output", type=FOLDER, help="Folder for the kit.")
@click.option(
    "--smoke",
    type=FOLDER,
    help="Folder for a smoke test: the same kit for a few layers on one machine or CPU.",
)
@click.option(
    "--wide",
    is_flag=True,
    help=(
        "Search the wide space, minutes for a mixture of experts: Ctrl-C ends it with what it has."
    ),
)
@click.option(
    ANYWAY,
    "anyway",
    is_flag=True,
    help="Write the kit of a run that makes no sense in practice, such as a model made tiny.",
)
def launch(
    file: str, to: str, on: str, output: str | None, smoke: str | None, wide: bool, anyway: bool
) -> int | None:
    """Write a launch kit for the design in FILE (- for stdin): the best plan of those that the
    framework can run.

    Exit 0 written, with one line of warning where a stated limit is missed, at risk or not checked;
    3 the pinned plan does not fit, the framework has none that does, words are unread, or the run
    makes no sense (--anyway writes it); 4 impossible: nothing is written; 2 the file or the call is
    wrong.
    """
    if output is None and smoke is None:
        raise click.UsageError("-o, the folder for the kit, or --smoke, that for a smoke test")
    assessment = possible(file, space="wide" if wide else "default", kit=framework(to, on).offers)
    if why := refusal(assessment, anyway):
        tell(f"nothing is written: {why}")
        return EXIT["constraint-missed"]
    try:
        if smoke is not None:
            trial = smoke_kit(assessment, to)
            write(trial, smoke)
            print(f"Wrote a smoke test of {len(trial)} files to {plain(smoke, 200)}")
        if output is None:
            return None
        files = kits(assessment, to, on)
    except Inexpressible as e:
        tell(f"nothing is written: {e}")
        return EXIT["constraint-missed"]
    if said := warning(assessment):
        tell(said)
    write(files, output)
    print(f"Wrote {len(files)} files to {plain(output, 200)}")

    for gap in loads(files["plan.json"])["not_expressed"]:
        lacks = f"cannot express {gap['field']} {gap['value']} ({gap['why']}): {gap['instead']}"
        cost = f"; {gap['cost']}" if gap["cost"] else ""
        print(plain(f"{to} {lacks}{cost}", 400), file=sys.stderr)
    return None
