"""How right the kit is: predicted beside published, with and without each run's source in the fit.
`python -m scantling.evidence.validate.page [RUNS.csv] [-o FOLDER]`

Writes validation.csv and memory.csv (a line per run), validation.json (every figure), and
summary.md, which the read-me quotes between its
validation marks. scantling_widgets.validation_page draws the page from those files.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from ... import catalogue
from ...base.show import percent
from ...physics.constants import calibration
from ..calibrate import memory as calibrate_memory
from . import tables
from .rows import build

RUNS, MEMORY, PEERS = (
    catalogue.HERE / f"{name}.csv"
    for name in ("published_runs", "published_memory", "peer_accuracy")
)
CSV = [
    "id",
    "source",
    "locator",
    "stack",
    "accelerator",
    "precision",
    "n_devices",
    "measured",
    "predicted",
    "fold_out",
    "source_out",
    "stack_out",
    "without_single",
    "baseline",
    "source_low",
    "source_high",
    "sees",
    "assumed",
    "unanswered",
]
BEGIN, END = "<!-- validation: begin -->", "<!-- validation: end -->"


def compute(runs=RUNS, memory=MEMORY, told=lambda text: None):
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
    number = lambda text: float(text) if text else None  # noqa: E731
    return [
        {**row, **{k: number(row[k]) for k in ("rows", "mean", "median", "max")}}
        for row in catalogue.read(PEERS, None)
    ]


def memory_figures(path=MEMORY):
    """(figures, rows): errors on measured peaks and right calls by what the fit had seen, the one
    large sweep of layouts and the rest apart; a line per run."""
    rows = calibrate_memory.read(path)
    sweep = _largest(rows.sources[~rows.ran])
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
    figures = {
        "sweep": sweep,
        "figures": {
            kind: {
                name: calibrate_memory.score(rows.take(at), total[at], capacity[at])["all"]
                for name, at in parts.items()
                if at.any()
            }
            for kind, (total, capacity) in kinds.items()
        },
    }
    columns = {
        f"{column}_bytes": (kinds[kind][0]).round()
        for column, kind in (
            ("predicted", "in sample"),
            ("fold_out", "folds"),
            ("stack_out", "stack left out"),
        )
    }
    lines = pd.DataFrame(
        {
            "id": rows.ids,
            "source": rows.sources,
            "stack": rows.stacks,
            "ran": rows.ran,
            "measured_bytes": rows.measured,
            "capacity_bytes": kinds["folds"][1].round(),
            **columns,
        }
    )
    return figures, lines


def _largest(names) -> str:
    found, count = np.unique(names, return_counts=True)
    return str(found[np.argmax(count)]) if len(found) else ""


def summary(figures: dict) -> str:
    """The figures in one screen of markdown."""
    head = figures["headline"]
    words = {
        "in sample": "runs that were fitted",
        "folds": "configurations not fitted, from sources that were",
        "source left out": "**sources left out of the fit**",
        "stack left out": "software stacks left out of the fit",
        "one line": "one line: FLOPs / half of peak × bubble",
    }
    lines = [
        f"{head['folds']['rows']:,} published runs from {figures['sources']} sources, on "
        f"{figures['accelerators']} accelerators and {figures['stacks']} software "
        f"stacks. "
        "Error is predicted / measured − 1 of tokens/s per device.",
        "",
        "| predicted | median error | 90th percentile | median over sources |",
        "| --- | ---: | ---: | ---: |",
    ]
    for kind, said in words.items():
        f = head[kind]
        lines.append(
            f"| {said} | {percent(f['median'])} | {percent(f['p90'])} | "
            f"{percent(f['over_sources'])} |"
        )
    unseen = {b["key"]: b for b in figures["bands"]}["sources not seen"]
    again, single = figures["repeats"], figures["single_source"][0]
    lines += [
        "",
        f"Where one configuration was measured more than once ({again['rows']} runs), "
        f"the measurements lie {percent(again['median'])} (90th percentile "
        f"{percent(again['p90'])}) from their median. "
        f"The 80 % bands cover {percent(unseen['coverage'], 0)} of the runs whose source "
        f"was left out, at a median full width of {unseen['width']:.2f}. "
        f"Without the constants that one source alone supports, the median error of "
        f"fitted runs is {percent(single['without_median'])} instead of "
        f"{percent(single['with_median'])}.",
    ]
    if "memory" in figures:
        m = figures["memory"]["figures"]
        f, s = m["folds"]["all"], m["stack left out"]["all"]
        lines += [
            "",
            f"Memory, over the folds: {percent(f['median'])} median error on "
            f"{f['peaks']} measured peaks; {percent(f['ran_called_fitting'], 0)} of "
            f"{f['ran']} configurations that ran are called "
            f"fitting, {percent(f['out_of_memory_called'], 0)} of {f['out_of_memory']} "
            f"that ran out of memory are called too large "
            f"({percent(s['out_of_memory_called'], 0)} with their stack left out).",
        ]
    lines += [
        "",
        "<details><summary>By source, with the source left out of the fit</summary>",
        "",
        "| source | runs | median error | bias | one line |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in figures["by"]["source"]:
        lines.append(
            f"| {_cell(row['key'])} | {row['rows']} | "
            f"{percent(row['medians']['source left out'])} | {_signed(row['bias'])} | "
            f"{percent(row['baseline'])} |"
        )
    lines += ["", "</details>", "", _residual_words(figures["residual"])]
    return "\n".join(lines) + "\n"


def _residual_words(residual: dict) -> str:
    parts = residual["parts"]
    return (
        f"Of the squared error with the source left out, "
        f"{percent(parts['a whole source alike'], 0)} is common to all runs of a source "
        f"(release, clocks, network, what its figures count), "
        f"{percent(parts['one chip and precision of a source alike'], 0)} to one chip "
        f"and precision of it, {percent(parts['repeated runs of one configuration'], 0)} "
        f"is as large as the scatter between "
        f"measurements of one configuration, and {percent(parts['single rows'], 0)} is "
        f"left to single runs. One measured step of one's own, as `measured: {{step_s: "
        f"…}}`, removes the first part: "
        f"scaled by the other runs of their source, runs lie "
        f"{percent(residual['one_factor']['median'])} off (90th percentile "
        f"{percent(residual['one_factor']['p90'])})."
    )


def _signed(x) -> str:
    return "–" if x is None or x != x else f"{100 * x:+.1f} %".replace("-", "−")


def _cell(text) -> str:
    return str(text).replace("|", "\\|")


def write(rows, figures, folder, readme=None, peaks=None) -> None:
    """validation.csv, memory.csv, validation.json and summary.md into `folder`; the summary between
    the marks of `readme` where it has them."""
    from ...base.json import clean

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows[CSV].round({c: 4 for c in CSV if rows[c].dtype.kind == "f"}).to_csv(
        folder / "validation.csv", index=False, lineterminator="\n"
    )
    if peaks is not None:
        peaks.to_csv(folder / "memory.csv", index=False, lineterminator="\n", float_format="%.0f")
    (folder / "validation.json").write_text(
        json.dumps(clean(figures), indent=1, allow_nan=False, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
    text = summary(figures)
    (folder / "summary.md").write_text(text, encoding="utf-8")
    if readme is not None and Path(readme).is_file():
        old = Path(readme).read_text(encoding="utf-8")
        new = re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{text}{END}", old, flags=re.S)
        if new != old:
            Path(readme).write_text(new, encoding="utf-8")


def main(argv=None) -> int:
    """Compute all figures, write them, print the summary."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m scantling.evidence.validate.page", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "runs", nargs="?", default=RUNS, help="table of runs; the kit's own by default"
    )
    parser.add_argument("--memory", default=MEMORY, help="table of measured peaks and failures")
    parser.add_argument(
        "-o",
        "--output",
        default="gallery/validation",
        help="folder for the tables (default gallery/validation)",
    )
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    rows, figures, peaks = compute(
        args.runs, args.memory, told=lambda text: print(text, file=sys.stderr, flush=True)
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
    write(rows, figures, args.output, "README.md" if own else None, peaks)
    print(summary(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
