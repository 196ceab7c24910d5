"""`scantling recipe`: the plan of a post-training design as a script of a framework."""

import sys

import click
from scantling.base.errors import DesignError
from scantling.base.files import write_text
from scantling.cli.options import FILE
from scantling.design.file_or_stdin import read

from .recipes import FRAMEWORKS, script


@click.command()
@FILE
@click.option(
    "--to",
    required=True,
    help="The framework: verl, nemo-rl (policies), torchtune, trl (fine-tuning).",
)
@click.option("-o", "--output", default="-", help="Script to write (- for stdout).")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def recipe(file: str, to: str, output: str, force: bool) -> int:
    """Write the script that starts the post-training run of the design in FILE."""
    if to not in FRAMEWORKS:
        raise DesignError("--to", to, list(FRAMEWORKS))
    text = script(FRAMEWORKS[to](read(file)), to)
    if output == "-":
        sys.stdout.write(text)
    else:
        write_text(output, text, force)
    return 0
