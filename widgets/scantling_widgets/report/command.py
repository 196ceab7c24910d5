"""`scantling report FILE… -o DIR`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import click
from scantling.base.console import console
from scantling.base.errors import DesignError
from scantling.base.quantities import table as quantities

from .compare import write_comparison
from .run import run


@click.command("report")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="DIR",
    help="folder for the reports; made where it is missing",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 512),
    metavar="N",
    help="local processes; as many as cores when left out",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="run on a Dask cluster instead, such as tcp://host:8786",
)
@click.option(
    "--pdf",
    is_flag=True,
    help="a PDF as well, printed by Chromium",
)
@click.option(
    "--compare",
    is_flag=True,
    help="one more page with the designs side by side",
)
@click.option(
    "--force",
    is_flag=True,
    help="make finished reports again",
)
@click.option(
    "--wide",
    is_flag=True,
    help="search the wide space of plans, minutes for a mixture of experts",
)
def report(
    files,
    out,
    compare,
    wide,
    **options,
):
    """Render designs as offline HTML reports.

    One page and one executed notebook per design file. Finished ones are kept; a batch that was
    stopped goes on where it was.
    Ends with the worst of the designs: 2 a wrong file, 1 a report that could not be made, 4
    impossible, 3 a constraint missed, 0.
    """
    if Path(out).is_file():
        raise DesignError(
            "-o",
            out,
            "a folder",
            problem="is a file",
        )
    screen = console(stderr=True)
    with _progress(screen, len(files)) as told:
        space = "wide" if wide else "default"
        records = run(
            files,
            out,
            space=space,
            told=told,
            **options,
        )
    for record in records:
        click.echo(_line(record, Path(out)), err=record.status != "done")
    if compare:
        if made := write_comparison([r for r in records if r.status == "done"], out):
            click.echo(f"comparison: {made}")
    return max((r.exit for r in records), key=(0, 3, 4, 1, 2).index)


def _line(record, out: Path) -> str:
    if record.status != "done":
        return f"{record.name}: {record.status}: {record.error}"
    figures, parts = record.headline, [record.headline["verdict"]]
    for key, name in (("mfu_shown", "MFU "), ("days", ""), ("cost_usd", "")):
        if figures.get(key) is not None:
            parts.append(name + quantities.show(key, figures[key]))
    parts.append(str(out / f"{record.name}.html"))
    return f"{record.name}: {', '.join(parts)}" + (" (kept)" if record.reused else "")


@contextmanager
def _progress(screen, total: int):
    """A bar on a terminal; nothing where the output is a file, which gets one line a design at the
    end."""
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen) as bar:
        task = bar.add_task("reports", total=total)

        def told(
            record,
            done: int,
            total: int,
        ):
            bar.update(
                task,
                completed=done,
                description=record.name[:40],
            )

        yield told
