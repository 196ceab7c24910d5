"""How right the kit is: predicted beside published, with and without each run's source in the fit.
`python -m tests.bench.validation.page [RUNS.csv] [-o FOLDER]`

Writes validation.csv and memory.csv (a line per run), validation.json (every figure), and
summary.md, which the read-me quotes between its validation marks. scantling_widgets.validation_page
draws the page from those files.
"""

import re
import sys
from datetime import date
from functools import partial
from pathlib import Path

import click
import numpy as np
import pandas as pd
from jinja2 import Template
from scantling import catalogue
from scantling.base import json
from scantling.base.show import percent
from scantling.physics.constants import calibration

from . import memory_fit, strangers, tables, throughput_fit as calibrate
from .plans import DESIGNS, distances
from .rows import build

RUNS, MEMORY, PEERS = (
    catalogue.HERE / f"{name}.csv"
    for name in ("published_runs", "published_memory", "peer_accuracy")
)
FOLDER = "gallery/validation"
CSV = (
    "id source locator stack accelerator precision n_devices measured predicted fold_out "
    "source_out family family_out unsaid_out baseline source_low source_high sees assumed "
    "unanswered"
).split()
BEGIN = "<!-- validation: begin -->"
END = "<!-- validation: end -->"


def compute(runs=RUNS, memory=MEMORY, told=lambda text: None):
    """(rows, figures, memory rows): one line per counted run, all tables as plain data, one line
    per run of the memory table. Takes minutes; `told` is called with progress."""
    rows = build(runs, told)
    again = tables.repeats(rows)
    table = calibrate.load(runs)
    said = rows.set_index("id")[["family_out", "unsaid_out"]].reindex(table.frame.id)
    said = np.log(said.to_numpy(float)).T
    known = calibration()
    peaks = None
    figures = {
        "made": date.today().isoformat(),
        "calibrated": known.get("made"),
        **{f"{name}s": rows[name].nunique() for name in ("source", "stack", "accelerator")},
        "strangers": strangers.figures(table, *said),
        "grid": strangers.grid(),
        "headline": tables.headline(rows),
        "by": tables.by_group(rows),
        "bands": tables.bands_table(rows),
        "repeats": again,
        "residual": tables.residual(rows, again["variance"]),
        "worst": tables.worst(rows),
        "peers": tables.peers(rows, rivals()),
    }
    if DESIGNS.is_dir():
        told("plans of published runs beside the search's own")
        figures["plans"] = list(distances())
    if memory is not None:
        told("memory: families left out")
        figures["memory"], peaks = memory_figures(memory)
    return rows, figures, peaks


def rivals() -> list[dict]:
    """What other planners reach on published runs, from their documentation or from running them:
    rows of catalogue/peer_accuracy.csv."""
    numbers = ("rows", "mean", "median", "max")
    return [
        row | {k: float(row[k]) if row[k] else None for k in numbers}
        for row in catalogue.read(PEERS, None)
    ]


def memory_figures(path=MEMORY):
    """(figures, rows): errors on measured peaks and right calls by what the fit had seen, the one
    large sweep of layouts and the rest apart; a line per run."""
    rows = memory_fit.read(path, memory_fit.grid())
    names, count = np.unique(rows.sources[~rows.ran], return_counts=True)
    sweep = str(names[np.argmax(count)]) if len(names) else ""
    parts = {
        "all": np.ones(len(rows.ran), bool),
        "sweep": rows.sources == sweep,
        "rest": rows.sources != sweep,
    }
    kinds = {
        "in sample": memory_fit.predict(rows, None),
        "family left out": memory_fit.held_out(
            memory_fit.solve(memory_fit.fitted_rows(path)), rows
        ),
    }
    scores = {
        kind: {
            name: memory_fit.score(rows.take(at), total[at], capacity[at])
            for name, at in parts.items()
            if at.any()
        }
        for kind, (total, capacity) in kinds.items()
    }
    predicted, family_out = (total.round() for total, _ in kinds.values())
    lines = {
        "id": rows.ids,
        "source": rows.sources,
        "family": rows.families,
        "stack": rows.stacks,
        "ran": rows.ran,
        "measured_bytes": rows.measured,
        "capacity_bytes": kinds["family left out"][1].round(),
        "predicted_bytes": predicted,
        "family_out_bytes": family_out,
    }
    ran_chance, known = memory_fit.ran(RUNS)
    chance = memory_fit.chances(*kinds["family left out"])
    asked = {
        "memory table and grid, families left out": (chance, ~rows.ran),
        "published runs, all of which ran": (ran_chance, False),
        "of them with recompute and micro-batch printed": (ran_chance[known], False),
    }
    return {
        "sweep": sweep,
        "figures": scores,
        "chances": [{"key": k} | tables.reliability(*of) for k, of in asked.items()],
    }, pd.DataFrame(lines)


def summary(figures: dict) -> str:
    """The figures in one screen of markdown."""
    return Template(
        Path(__file__).with_name("summary.md.j2").read_text(encoding="utf-8"),
        trim_blocks=True,
        keep_trailing_newline=True,
    ).render(figures=figures, percent=percent, signed=partial(percent, sign="+"))


def write(rows, figures, folder, readme=None, peaks=None) -> None:
    """validation.csv, memory.csv, validation.json and summary.md into `folder`; the first table of
    the summary between the marks of `readme` where it has them."""
    folder = Path(folder)
    readme = Path(readme or "")
    folder.mkdir(parents=True, exist_ok=True)
    rows[CSV].round({c: 4 for c in CSV if rows[c].dtype.kind == "f"}).to_csv(
        folder / "validation.csv", index=False, lineterminator="\n"
    )
    if peaks is not None:
        peaks.to_csv(folder / "memory.csv", index=False, lineterminator="\n", float_format="%.0f")
    (folder / "validation.json").write_text(json.text(figures) + "\n", encoding="utf-8")
    text = summary(figures)
    (folder / "summary.md").write_text(text, encoding="utf-8")
    if readme.is_file():
        new = re.sub(
            f"{BEGIN}.*?{END}",
            lambda _: f"{BEGIN}\n{short(text)}{END}",
            readme.read_text(encoding="utf-8"),
            flags=re.S,
        )
        readme.write_text(new, encoding="utf-8")


def short(text: str) -> str:
    """The summary up to the end of its second table: what the read-me shows."""
    return re.match(r"(?:.*?\n\n(?:\|[^\n]*\n)+){2}", text, re.S)[0]


@click.command()
@click.argument("runs", default=RUNS)
@click.option("--memory", default=MEMORY, help="Table of measured peaks and failures.")
@click.option("-o", "--output", default=FOLDER, show_default=True, help="Folder for the tables.")
def main(runs, memory, output):
    """How right the kit is, on RUNS (its own table by default): compute all figures, write them,
    print the summary."""
    told = partial(print, file=sys.stderr, flush=True)
    rows, figures, peaks = compute(runs, memory, told)
    head = figures["headline"]
    if head["in sample"]["median"] > head["folds"]["median"] * 1.02:
        told(
            "the shipped constants fit worse than constants fitted without the run: "
            "catalogue/calibration.json is older than the model; make calibrate"
        )
    write(
        rows,
        figures,
        output,
        "README.md" if Path(output) == Path(FOLDER) and Path(runs) == RUNS else None,
        peaks,
    )
    print(summary(figures))


if __name__ == "__main__":
    main()
