"""The page "How right is it?" from the tables of `python -m scantling.evidence.validate.page`: one
offline HTML file. `python -m scantling_widgets.validation_page [FOLDER]`"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from . import validation_charts as charts
from .report.page import document
from .report.run import write
from .report.text import environment

FOLDER = "gallery/validation"
KINDS = {
    "in sample": "runs that were fitted",
    "folds": "configurations not fitted, from sources that were",
    "source left out": "sources left out of the fit",
    "stack left out": "software stacks left out of the fit",
    "one line": "one line: FLOPs / half of peak × bubble",
}


def page(rows: pd.DataFrame, figures: dict, memory: pd.DataFrame | None = None) -> str:
    """The page as HTML: nothing in it but what the tables hold."""
    pictures = {
        "scatter": charts.scatter(rows),
        "spread": charts.spread(rows),
        "source": charts.by_source(rows),
        "parts": charts.parts(figures["residual"]),
    }
    if memory is not None:
        pictures["memory"] = charts.memory(memory)
    body = (
        environment()
        .get_template("validation.j2")
        .render(
            f=figures,
            kinds=KINDS,
            pictures=pictures,
            pct=percent,
            signed=signed,
            short=charts.short,
            bands={b["key"]: b for b in figures["bands"]},
            floors={row["key"]: percent(row["median"]) for row in figures["repeats"]["by_source"]},
            beaten=_beaten(figures),
        )
    )
    return document(
        Markup(body),
        title="How right is it?",
        date=figures["made"],
        kind="wide",
        footer="scantling",
    )


def percent(x, digits: int = 1) -> str:
    """A share in per cent; a dash where there is none."""
    return "–" if x is None or x != x else f"{100 * x:.{digits}f} %"


def signed(x, digits: int = 1) -> str:
    """A share in per cent with its sign."""
    return "–" if x is None or x != x else f"{100 * x:+.{digits}f} %".replace("-", "−")


def _beaten(figures) -> list[dict]:
    """The groups where the one line is nearer than the model with the source left out."""
    return [
        {"by": name, **row}
        for name, table in figures["by"].items()
        for row in table
        if row["baseline_wins"]
    ]


def main(argv=None) -> int:
    """Draw the page into the folder that holds the tables."""
    folder = (
        Path((sys.argv[1:] if argv is None else list(argv))[0])
        if (sys.argv[1:] if argv is None else argv)
        else Path(FOLDER)
    )
    rows = pd.read_csv(folder / "validation.csv", keep_default_na=True)
    figures = json.loads((folder / "validation.json").read_text(encoding="utf-8"))
    write(
        folder / "index.html",
        page(
            rows,
            figures,
            pd.read_csv(folder / "memory.csv") if (folder / "memory.csv").is_file() else None,
        ),
    )
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
