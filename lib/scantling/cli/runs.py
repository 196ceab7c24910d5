"""Commands on tables of runs: predict, validate."""

from collections.abc import Mapping
from math import isnan
from typing import Any

import click

from ..base.console import console
from ..base.errors import DesignError, plain
from ..base.files import write_text
from ..base.json import text
from ..base.show import NONE, percent, several
from ..runs.accuracy import validate_frame
from ..runs.frames import frame_of, need_pandas
from ..runs.other_tables import answered
from ..runs.plan_rows import plan_rows
from ..runs.predict import COUNTS, predicted_columns
from ..runs.read import named_table, unread_columns
from ..runs.run_columns import template
from ..runs.run_table import to_csv
from .common import check_new, possible
from .options import PATH
from .tables import print_rows


@click.command()
@click.argument("runs_csv", required=False)
@click.option("-o", "--output", required=True, help="CSV to write.")
@click.option(
    "--template",
    "as_template",
    is_flag=True,
    help="Write a table instead, every column explained: one worked row, or the plan of the design "
    "file that stands in the place of RUNS_CSV.",
)
@click.option(
    "--calibration",
    type=PATH,
    metavar="SITE.yaml",
    help="Constants that scantling learn or measure wrote.",
)
def predict(runs_csv: str | None, output: str, as_template: bool, calibration: str | None) -> None:
    """Predict the pinned plan of every row of RUNS_CSV; none of its measured columns is read.

    A table of fine-tuning or policy training is known by its columns. A row that cannot be
    predicted says why in its column error, and how many of them there are stands on stderr.
    """
    check_new(output, True, [path for path in (runs_csv, calibration) if path])
    if as_template:
        rows = plan_rows(possible(runs_csv)) if runs_csv else []
        write_text(output, template(rows), force=True)
        return
    if runs_csv is None:
        raise DesignError("RUNS_CSV", problem="is missing", allowed="a table, or --template")
    columns = answered(runs_csv)
    whole: tuple[str, ...] = ()
    unread: list[str] = []
    if columns is None:
        table = named_table(runs_csv)
        columns, whole = predicted_columns(table, calibration), COUNTS
        unread = unread_columns(table)
    write_text(output, to_csv(columns, whole=whole), force=True)
    out = console(stderr=True)
    total = len(columns["error"])
    errors = [error for error in columns["error"] if error]
    out.print(f"{total - len(errors)} of {total} rows predicted, to {plain(output, 200)}")
    if errors:
        out.print(
            f"{several(len(errors), 'row')} without a figure; the first: {plain(errors[0], 300)}"
        )
    if unread:
        names = ", ".join(plain(name, 40) for name in unread[:8])
        out.print(f"not read, no column of the format: {names}{', …' if unread[8:] else ''}")


@click.command()
@click.argument("runs_csv")
@click.option("--json", "as_json", metavar="FILE", help="Also write all figures as JSON to FILE.")
def validate(runs_csv: str, as_json: str | None) -> None:
    """Predict RUNS_CSV and compare with what was measured, by source, accelerator and stack."""
    need_pandas("validate")
    if as_json:
        check_new(as_json, True, [runs_csv])
    table = named_table(runs_csv)
    if not any(table.numbers("measured_tokens_per_s_per_device") > 0):
        raise DesignError(
            plain(runs_csv, 200),
            problem="no row has measured_tokens_per_s_per_device",
            allowed="one measured run or more",
        )
    got = validate_frame(frame_of(table))
    if not got["overall"]["answered"]:
        first = next(filter(None, predicted_columns(table)["error"]), "none is measured")
        problem = f"no measured row can be predicted: {plain(first, 300)}"
        raise DesignError(plain(runs_csv, 200), problem=problem)
    out = console()
    for name in ("stack", "accelerator", "source"):
        by = sorted(got["by"].get(name, {}).items(), key=lambda kv: kv[1]["median"])
        print_rows(out, [{name: plain(key, 90)} | _accuracy(f) for key, f in by], (name, *ACCURACY))
        out.print()
    f = got["overall"]
    s = got["scatter"]
    out.print(
        f"{f['rows']} rows, {percent(f['answered'])} answered: median error "
        f"{percent(f['median'])}, 90th percentile {percent(f['p90'])}, median over sources "
        f"{percent(f.get('over_sources'))}; band covers {percent(f['coverage'])} at width "
        f"{NONE if isnan(f['width']) else format(f['width'], '.2f')}"
    )
    out.print(
        f"baseline, half of peak with the bubble: median error {percent(f['baseline_median'])}"
    )
    out.print(
        f"floor: {s['rows']} repeated measurements of {s['configurations']} configurations lie "
        f"{percent(s['median'])} (p90 {percent(s['p90'])}) from their median"
    )
    if as_json:
        write_text(as_json, text(got) + "\n", force=True)


ACCURACY = ("rows", "median", "p90", "bias", "in band", "one line")


def _accuracy(f: Mapping[str, Any]) -> dict[str, str]:
    """How far predictions lie from measurements, as cells of a row."""
    shares = ("median", "p90", "bias", "coverage", "baseline_median")
    return dict(zip(ACCURACY, (str(f["rows"]), *(percent(f[key]) for key in shares)), strict=True))
