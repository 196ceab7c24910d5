"""Commands on tables of runs: predict, validate."""

import click

from ..base.console import console
from ..base.errors import DesignError, plain
from ..base.files import write_text
from ..base.json import text
from ..runs.compare import validate_frame
from ..runs.predict import predict_frame
from ..runs.read import read_named
from ..runs.run_columns import template
from .options import PATH
from .tables import TABLES, print_rows, say


@click.command()
@click.argument("runs_csv", required=False)
@click.option("-o", "--output", required=True, help="CSV to write.")
@click.option(
    "--template",
    "as_template",
    is_flag=True,
    help="Write an empty table instead: every column explained, one worked row.",
)
@click.option(
    "--calibration",
    type=PATH,
    metavar="SITE.yaml",
    help="Constants that scantling learn or measure wrote.",
)
def predict(runs_csv, output, as_template, calibration):
    """Predict the pinned plan of every row of RUNS_CSV; none of its measured columns is read."""
    if as_template:
        write_text(output, template(), force=True)
        return
    if runs_csv is None:
        raise DesignError("RUNS_CSV", problem="is missing", allowed="a table, or --template")
    got = predict_frame(read_named(runs_csv), calibration)
    write_text(output, got.to_csv(index=False), force=True)
    console(stderr=True).print(
        f"{int((got.error == '').sum())} of {len(got)} rows predicted, to {plain(output, 200)}"
    )


@click.command()
@click.argument("runs_csv")
@click.option("--json", "as_json", metavar="FILE", help="Also write all figures as JSON to FILE.")
def validate(runs_csv, as_json):
    """Predict RUNS_CSV and compare with what was measured, by source, accelerator and stack."""

    from pandas import to_numeric

    table = read_named(runs_csv)
    if not any(to_numeric(table.get("measured_tokens_per_s_per_device", []), errors="coerce") > 0):
        raise DesignError(
            plain(runs_csv, 200),
            problem="no row has measured_tokens_per_s_per_device",
            allowed="one measured run or more",
        )
    got = validate_frame(table)
    out = console()
    for name in ("stack", "accelerator", "source"):
        by = sorted(got["by"].get(name, {}).items(), key=lambda kv: kv[1]["median"])
        print_rows(
            out,
            {name: "{key}"} | TABLES["validate"],
            (f | {"key": plain(key, 90)} for key, f in by),
        )
        out.print()
    f = got["overall"]
    s = got["scatter"]
    out.print(say("validated", **{"over_sources": float("nan")} | f))
    out.print(say("baseline", **f))
    out.print(say("floor", **s))
    if as_json:
        write_text(as_json, text(got) + "\n", force=True)
