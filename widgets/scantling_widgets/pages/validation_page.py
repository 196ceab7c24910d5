"""The page "How right is it?" from the tables of `make validation`: one offline HTML file."""

from functools import partial
from json import loads
from pathlib import Path

from pandas import DataFrame, read_csv
from scantling.base.show import percent

from .. import resources
from ..charts import validation as charts
from ..report.page import templated
from ..report.run import write

KINDS = {
    "family left out": "families of sources left out of the fit",
    "source left out": "sources left out of the fit, siblings kept",
    "folds": "configurations not fitted, from sources that were",
    "in sample": "fitted: runs that were in the fit",
    "one line": "baseline: half of peak, with the bubble",
}


def page(
    rows: DataFrame, figures: dict, memory: DataFrame | None = None, board: DataFrame | None = None
) -> str:
    """The page as HTML: nothing in it but what the tables hold."""
    pictures = {
        "scatter": charts.scatter(rows),
        "spread": charts.spread(rows),
        "source": charts.by_source(rows),
        "parts": charts.parts(figures["residual"]),
        "memory": memory is not None and charts.memory(memory),
    }
    again = figures["repeats"]["by_source"]
    return templated(
        "validation",
        title="How right is it?",
        date=figures["made"],
        footer="scantling",
        f=figures,
        kinds=KINDS,
        board=[] if board is None else board.fillna({"version": ""}).to_dict("records"),
        pictures=pictures,
        pct=percent,
        signed=partial(percent, sign="+"),
        short=charts.short,
        bands={band["key"]: band for band in figures["bands"]},
        floors={row["key"]: percent(row["median"]) for row in again},
        # the groups where the one line is nearer than the model with the source left out
        beaten=[
            row | {"by": name}
            for name, table in figures["by"].items()
            for row in table
            if row["baseline_wins"]
        ],
    )


def build(out: Path, folder: Path | None = None) -> None:
    """Draw the page of the tables in `folder`, of those that ship without one, into `out`."""
    folder = folder or resources.published("validation/validation.json").parent
    out.mkdir(parents=True, exist_ok=True)
    tables = (folder / f"{name}.csv" for name in ("validation", "memory", "leaderboard"))
    rows, memory, board = (read_csv(path) if path.is_file() else None for path in tables)
    figures = loads((folder / "validation.json").read_text(encoding="utf-8"))
    write(out / "index.html", page(rows, figures, memory, board))
