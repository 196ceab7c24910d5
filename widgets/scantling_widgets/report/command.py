"""`scantling report FILE… -o DIR`."""

import sys
from pathlib import Path

import click
from scantling.cli.options import FOLDER
from scantling.verdict.result import figure_texts
from scantling.verdict.verdicts import VERDICTS

from .compare import write_comparison
from .report_batch import Record, read_no_iris, run


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "-o",
    "--out",
    type=FOLDER,
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
    "--scheduler", metavar="ADDRESS", help="run on a Dask cluster instead, such as tcp://host:8786"
)
@click.option("--pdf", is_flag=True, help="a PDF as well, printed by Chromium")
@click.option("--compare", is_flag=True, help="one more page with the designs side by side")
@click.option("--force", is_flag=True, help="make finished reports again")
@click.option("--full", is_flag=True, help="with every formula, assumption and table to look up")
@click.option(
    "--wide", is_flag=True, help="search the wide space of plans, minutes for a mixture of experts"
)
def report(
    files: tuple[str, ...],
    out: str,
    *,
    workers: int | None,
    scheduler: str | None,
    pdf: bool,
    compare: bool,
    force: bool,
    full: bool,
    wide: bool,
) -> int:
    """Render designs as offline HTML reports: the decision on page one, then what it rests on.

    One page and one executed notebook per design file. Finished ones are kept; a batch that was
    stopped goes on where it was.
    Ends with the worst of the designs: 2 a wrong file, 1 a report that could not be made, 4
    impossible, 3 a constraint missed, 0.
    """
    read_no_iris()
    # a bar on a terminal; where the output is a file, one line a design at the end
    with click.progressbar(
        length=len(files),
        label="reports",
        show_pos=True,
        item_show_func=lambda record: record and record.name[:40],
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        records = run(
            files,
            out,
            workers=workers,
            scheduler=scheduler,
            pdf=pdf,
            force=force,
            space="wide" if wide else "default",
            full=full,
            progress=lambda record, done, total: bar.update(1, record),
        )
    for record in records:
        click.echo(_line(record, Path(out)), err=record.status != "done")
    if compare:
        if made := write_comparison([r for r in records if r.status == "done"], out):
            click.echo(f"comparison: {made}")
    return max((r.exit for r in records), key=(0, 3, 4, 1, 2).index)


def _line(record: Record, out: Path) -> str:
    if record.status != "done":
        return f"{record.name}: {record.status}: {record.error}"
    figures = figure_texts(
        record.headline, {"mfu_shown": "MFU ", "likely.days": "", "likely.cost_usd": ""}
    )
    called = VERDICTS[record.headline["verdict"]].name
    parts = ", ".join((called, *figures, str(out / f"{record.name}.html")))
    return f"{record.name}: {parts}" + (" (kept)" if record.reused else "")
