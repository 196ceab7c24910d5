"""The mcp command."""

import click

from .server import serve


@click.command()
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    show_default=True,
    help="Folder below which files are read; a kit is written there alone.",
)
def mcp(root: str) -> None:
    """Serve coding agents over the Model Context Protocol on standard input and output.

    Its tools read a brief, assess, search, compare, answer, propose fixes, diagnose, work out
    goodput, explain a figure and write a kit. It reads files below the folder alone, runs no
    program, and writes only a kit, where told.
    """
    serve(root)
