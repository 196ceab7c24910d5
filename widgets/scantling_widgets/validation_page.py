"""The page "How right is it?" from the tables of `python -m scantling.evidence.validate.page`: one
offline HTML file. `python -m scantling_widgets.validation_page [FOLDER]`"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pandas as pd
from markupsafe import Markup
from scantling.base.show import percent

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


def page(
    rows: pd.DataFrame,
    figures: dict,
    memory: pd.DataFrame | None = None,
) -> str:
    """The page as HTML: nothing in it but what the tables hold."""
    pictures = {
        "scatter": charts.scatter(rows),
        "spread": charts.spread(rows),
        "source": charts.by_source(rows),
        "parts": charts.parts(figures["residual"]),
    }
    if memory is not None:
        pictures["memory"] = charts.memory(memory)
    again = figures["repeats"]["by_source"]
    template = environment().get_template("validation.j2")
    body = template.render(
        f=figures,
        kinds=KINDS,
        pictures=pictures,
        pct=percent,
        signed=partial(percent, sign="+"),
        short=charts.short,
        bands={band["key"]: band for band in figures["bands"]},
        floors={row["key"]: percent(row["median"]) for row in again},
        beaten=_beaten(figures),
    )
    about = {
        "date": figures["made"],
        "kind": "wide",
        "footer": "scantling",
    }
    return document(
        Markup(body),
        title="How right is it?",
        **about,
    )


def _beaten(figures) -> list[dict]:
    """The groups where the one line is nearer than the model with the source left out."""
    return [
        {
            "by": name,
            **row,
        }
        for name, table in figures["by"].items()
        for row in table
        if row["baseline_wins"]
    ]


def main(argv=None) -> int:
    """Draw the page into the folder that holds the tables."""
    folder = Path(next(iter(sys.argv[1:] if argv is None else argv), FOLDER))
    rows = pd.read_csv(folder / "validation.csv", keep_default_na=True)
    figures = json.loads((folder / "validation.json").read_text(encoding="utf-8"))
    memory = folder / "memory.csv"
    memory = pd.read_csv(memory) if memory.is_file() else None
    write(folder / "index.html", page(rows, figures, memory))
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
