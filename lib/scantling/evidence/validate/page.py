"""How right the kit is: predicted beside published, with and without each run's source in the fit.
`python -m scantling.evidence.validate.page [RUNS.csv] [-o FOLDER]`

Writes validation.csv and memory.csv (a line per run), validation.json (every figure), and
summary.md, which the read-me quotes between its
validation marks. scantling_widgets.validation_page draws the page from those files.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import Template

from ... import catalogue
from ...base.json import clean
from ...base.show import percent
from ...physics.constants import calibration
from ..calibrate import memory as calibrate_memory
from . import tables
from .rows import build

RUNS, MEMORY, PEERS = (
    catalogue.HERE / f"{name}.csv"
    for name in ("published_runs", "published_memory", "peer_accuracy")
)
CSV = (
    "id source locator stack accelerator precision n_devices measured predicted fold_out "
    "source_out stack_out without_single baseline source_low source_high sees assumed unanswered"
).split()
BEGIN, END = "<!-- validation: begin -->", "<!-- validation: end -->"


def compute(
    runs=RUNS,
    memory=MEMORY,
    told=lambda text: None,
):
    """(rows, figures, memory rows): one line per counted run, all tables as plain data, one line
    per run of the memory table. Takes minutes; `told` is called with progress."""
    rows = build(runs, told)
    again = tables.repeats(rows)
    known, peaks = calibration(), None
    figures = {
        "made": date.today().isoformat(),
        "calibrated": known.get("made"),
        "sources": int(rows.source.nunique()),
        "stacks": int(rows["stack"].nunique()),
        "accelerators": int(rows.accelerator.nunique()),
        "headline": tables.headline(rows),
        "by": tables.by_group(rows),
        "bands": tables.bands_table(rows),
        "single_source": tables.single_source(rows),
        "repeats": again,
        "residual": tables.residual(rows, again["variance"]),
        "worst": tables.worst(rows),
        "peers": tables.peers(rows, rivals()),
    }
    if memory is not None:
        told("memory: folds and stacks left out")
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
    rows = calibrate_memory.read(path)
    names, count = np.unique(rows.sources[~rows.ran], return_counts=True)
    sweep = str(names[np.argmax(count)]) if len(names) else ""
    parts = {
        "all": np.ones(len(rows.ran), bool),
        "sweep": rows.sources == sweep,
        "rest": rows.sources != sweep,
    }
    kinds = {
        "in sample": calibrate_memory.predict(rows, None),
        "folds": calibrate_memory.held_out(rows, rows.folds),
        "stack left out": calibrate_memory.held_out(rows, rows.stacks),
    }
    scores = {
        kind: {
            name: calibrate_memory.score(rows.take(at), total[at], capacity[at])["all"]
            for name, at in parts.items()
            if at.any()
        }
        for kind, (total, capacity) in kinds.items()
    }
    predicted, fold_out, stack_out = (total.round() for total, _ in kinds.values())
    lines = dict(
        id=rows.ids,
        source=rows.sources,
        stack=rows.stacks,
        ran=rows.ran,
        measured_bytes=rows.measured,
        capacity_bytes=kinds["folds"][1].round(),
        predicted_bytes=predicted,
        fold_out_bytes=fold_out,
        stack_out_bytes=stack_out,
    )
    return {
        "sweep": sweep,
        "figures": scores,
    }, pd.DataFrame(lines)


def summary(figures: dict) -> str:
    """The figures in one screen of markdown."""
    template = Path(__file__).with_name("summary.md.j2").read_text(encoding="utf-8")
    return Template(
        template,
        trim_blocks=True,
        keep_trailing_newline=True,
    ).render(
        figures=figures,
        percent=percent,
        signed=_signed,
        sources_not_seen=next(b for b in figures["bands"] if b["key"] == "sources not seen"),
    )


def _signed(x) -> str:
    return "–" if x is None or x != x else f"{100 * x:+.1f} %".replace("-", "−")


def write(
    rows,
    figures,
    folder,
    readme=None,
    peaks=None,
) -> None:
    """validation.csv, memory.csv, validation.json and summary.md into `folder`; the summary between
    the marks of `readme` where it has them."""
    folder = Path(folder)
    folder.mkdir(
        parents=True,
        exist_ok=True,
    )
    rows[CSV].round({c: 4 for c in CSV if rows[c].dtype.kind == "f"}).to_csv(
        folder / "validation.csv",
        index=False,
        lineterminator="\n",
    )
    if peaks is not None:
        peaks.to_csv(
            folder / "memory.csv",
            index=False,
            lineterminator="\n",
            float_format="%.0f",
        )
    (folder / "validation.json").write_text(
        json.dumps(
            clean(figures),
            indent=1,
            allow_nan=False,
            ensure_ascii=False,
        )
        + "\n",
        encoding="utf-8",
    )
    text = summary(figures)
    (folder / "summary.md").write_text(text, encoding="utf-8")
    if readme is not None and Path(readme).is_file():
        old = Path(readme).read_text(encoding="utf-8")
        new = re.sub(
            f"{BEGIN}.*?{END}",
            lambda _: f"{BEGIN}\n{text}{END}",
            old,
            flags=re.S,
        )
        if new != old:
            Path(readme).write_text(new, encoding="utf-8")


def main(argv=None) -> int:
    """Compute all figures, write them, print the summary."""
    parser = argparse.ArgumentParser(
        prog="python -m scantling.evidence.validate.page",
        description=__doc__.split("\n")[0],
    )
    parser.add_argument(
        "runs",
        nargs="?",
        default=RUNS,
        help="table of runs; the kit's own by default",
    )
    parser.add_argument(
        "--memory",
        default=MEMORY,
        help="table of measured peaks and failures",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="gallery/validation",
        help="folder for the tables (default gallery/validation)",
    )
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    rows, figures, peaks = compute(
        args.runs,
        args.memory,
        told=lambda text: print(
            text,
            file=sys.stderr,
            flush=True,
        ),
    )
    own = Path(args.output) == Path("gallery/validation") and Path(args.runs) == RUNS
    head = figures["headline"]
    if head["in sample"]["median"] > head["folds"]["median"] * 1.02:
        print(
            (
                "the shipped constants fit worse than constants fitted without the run: "
                "catalogue/calibration.json is older than the model; make calibrate"
            ),
            file=sys.stderr,
        )
    write(
        rows,
        figures,
        args.output,
        "README.md" if own else None,
        peaks,
    )
    print(summary(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
