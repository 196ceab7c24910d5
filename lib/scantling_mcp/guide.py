"""The page for coding agents: how to plan with the kit."""

from pathlib import Path

import click
from scantling.base.files import write_text
from scantling.cli.common import check_new
from scantling.cli.options import PATH

PAGE = Path(__file__).with_name("AGENTS.md")


@click.command()
@click.option("-o", "--output", type=PATH, help="Write it here: AGENTS.md of a repository.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def agents(output: str | None, force: bool) -> None:
    """Print a page for coding agents: how to plan with these commands, and with the server."""
    text = PAGE.read_text(encoding="utf-8")
    if output is None:
        click.echo(text, nl=False)
        return
    check_new(output, force)
    write_text(output, text, force)
