"""`scantling report FILE… -o DIR`."""

from __future__ import annotations

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
def report(
    files,
    out,
    workers,
    scheduler,
    pdf,
    compare,
    force,
):
    """Render designs as offline HTML reports.

    One page and one executed notebook per design file. Finished ones are kept; a batch that was
    stopped goes on where it was.
    Ends with the worst of the designs: 2 a wrong file, 1 a report that could not be made, 4
    impossible, 3 a constraint missed, 0.
    """
    if Path(out).exists() and not Path(out).is_dir():
        raise DesignError(
            "-o",
            out,
            "a folder",
            problem="is a file",
        )
    screen = console(stderr=True)
    with _progress(screen, len(files)) as told:
        records = run(
            files,
            out,
            workers=workers,
            scheduler=scheduler,
            pdf=pdf,
            force=force,
            told=told,
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
    shown = [
        quantities.show(key, record.headline[key])
        for key in ("mfu", "days", "cost_usd")
        if record.headline.get(key) is not None
    ]
    parts = [
        record.headline["verdict"],
        *(["MFU " + shown[0], *shown[1:]] if shown else []),
        str(out / f"{record.name}.html"),
    ]
    return f"{record.name}: {', '.join(parts)}" + (" (kept)" if record.reused else "")


class _progress:
    """A bar on a terminal; nothing where the output is a file, which gets one line a design at the
    end."""

    def __init__(
        self,
        screen,
        total: int,
    ):
        self.screen, self.total, self.bar = screen, total, None

    def __enter__(self):
        if self.screen.is_terminal:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=self.screen,
            )
            self.bar.start()
            self.task = self.bar.add_task("reports", total=self.total)
        return self.told

    def told(
        self,
        record,
        done: int,
        total: int,
    ):
        if self.bar:
            self.bar.update(
                self.task,
                completed=done,
                description=record.name[:40],
            )

    def __exit__(self, *error):
        if self.bar:
            self.bar.stop()
