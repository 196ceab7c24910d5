"""The search from a terminal: one design's plans or those of many variants of it, here or on a
cluster, with progress that can be stopped."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from rich.console import Console

from ..advise.sweeps import variant_designs, variants
from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..base.files import write_text
from ..base.quantities.quantity import show
from ..catalogue.published import beyond
from ..design.design import Design
from ..design.file_or_stdin import read
from ..plans.axes import counted, described
from ..plans.leaderboard import plan_columns
from ..plans.plan_names import of_modules
from ..plans.prepare import prepare
from ..plans.space import SPACES
from ..verdict.verdicts import EXIT
from .bar import Bar
from .common import assessment_of, check_new, named, on_scheduler, possible, posttrained
from .decide import axes_of
from .options import FILE, JSON, PATH
from .tables import print_table
from .texts import searched


@click.command()
@FILE
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Plans to print."
)
@click.option(
    "--csv",
    "csv_file",
    type=PATH,
    help="Write all fitting plans here (of a wide search the 50,000 fastest).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the top plans as JSON.")
@click.option(
    "--wide",
    is_flag=True,
    help=(
        "The wide space: offload, uneven stages, expert tensor parallelism, zero-bubble "
        "schedules, precision where it is left open."
    ),
)
@click.option(
    "--space",
    type=click.Choice(["coarse", "default", "wide"]),
    help="Another space; `scantling spaces` lists their axes.",
)
@click.option(
    "--over",
    multiple=True,
    metavar="FIELD=V1,V2,…",
    help="Search every plan of every variant: may be given more than once.",
)
@click.option(
    "--scheduler", help="Address of a Dask scheduler (tcp://…); without it everything runs here."
)
@click.option(
    "--progress/--no-progress",
    default=None,
    help="A bar on stderr; on where the search is wide, has variants or runs on a cluster.",
)
def search(
    file: str,
    top: int,
    csv_file: str | None,
    as_json: bool,
    wide: bool,
    space: str | None,
    over: Sequence[str],
    scheduler: str | None,
    progress: bool | None,
) -> int:
    """List the plans that fit the design in FILE, best first, and count those that each rule
    rejected.

    Ctrl-C ends a search early with what it has looked at. Exit as `design`.
    """

    if wide and space not in (None, "wide"):
        raise DesignError("--wide", space, "--wide or --space", problem="contradicts --space")
    space = "wide" if wide else space or "default"
    if not over:
        tuned = posttrained(file, as_json)
        if tuned is not None:
            return tuned
    if csv_file:
        check_new(csv_file, True, [file])
    a = assessment_of(file) if over else possible(file, as_json)
    if progress is None:
        progress = space == "wide" or bool(over) or bool(scheduler)
    bar = Bar(progress)
    with on_scheduler(scheduler), bar.watching():
        plans = _plans(a.design, space, over, scheduler, bar, top)
    if csv_file:
        write_text(csv_file, plans.csv(), force=True)
    best = plans.rows(top)
    if as_json:
        print_json({**named(a), "space": space, **plans.counts, "plans": best})
    else:
        out = console()
        leaderboard(a.resolved.name, best, plans.counts, out)
        for line in _untried(best):
            out.print(line)
        if plans.counts.get("unseen"):
            out.print("stopped: the order above is of the plans that were looked at")
    verdict = a.verdict
    if over:  # the verdict is of the file's own machine
        verdict = {"impossible": "feasible"}.get(verdict, verdict) if len(plans) else "impossible"
    return EXIT[verdict]


class Plans(NamedTuple):
    """Plans that fit, best first, as columns, and the counts of the search."""

    columns: Mapping[str, Sequence[Any]]
    counts: Mapping[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def rows(self, top: int) -> list[dict[str, Any]]:
        """The first so many plans, each a mapping."""
        cells = (column[:top] for column in self.columns.values())
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*cells, strict=True)]

    def csv(self) -> str:
        """All plans as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()


def _plans(
    design: Design, space: str, over: Sequence[str], scheduler: str | None, bar: Bar, top: int
) -> Plans:
    """The plans of a design, or of its variants."""
    if not over:
        columns = plan_columns(design, space, bar, scheduler)
        return Plans({name: column.tolist() for name, column in columns.items()}, columns.attrs)
    axes = axes_of(over)
    designs = variant_designs(design, axes)
    if not designs:
        design.change({field: values[0] for field, values in axes.items()})  # says what is wrong
    rows, counts = variants(
        [d for _, d in designs], space=space, progress=bar, scheduler=scheduler, top=top
    )
    rows = [dict(zip(axes, designs[row["design"]][0])) | row for row in rows]
    names = [n for n in dict.fromkeys(n for row in rows for n in row) if n not in OF_A_VARIANT]
    return Plans(
        {name: [row.get(name) for row in rows] for name in names}, counts | {"over": list(axes)}
    )


OF_A_VARIANT = ("design", "rank", "legal")  # of the search of one, not of a plan
PLAN = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sharding",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "offload",
    "precision",
)
FIGURES = {
    "step_s": "step_s",
    "mfu_shown": "mfu_shown",
    "memory_bytes": "memory_bytes.total",
    "oom_probability": "oom_probability",
}
HEADS = {
    "step_s": "step",
    "mfu_shown": "MFU",
    "memory_bytes": "memory",
    "oom_probability": "runs\nout",
    "micro_batch": "micro\nbatch",
    "grad_accum": "grad\naccum",
    "devices_used": "devices\nused",
}


def leaderboard(
    name: str, best: Sequence[dict[str, Any]], counts: Mapping[str, Any], out: Console
) -> None:
    """The best plans as a table, what they share in a line above it, then counts of what was looked
    at and why plans were dropped."""
    out.print(plain(name, 120), style="bold")
    if best:
        rows = [row | {"recompute": _recompute(row)} for row in best]
        fields = [c for c in PLAN if c in rows[0] and _says_something(c, rows)]
        alike = [c for c in fields if len(rows) > 1 and len({str(row[c]) for row in rows}) == 1]
        used = {row.get("devices_used") for row in rows}
        columns = [
            *(counts.get("over") or ()),
            *(c for c in fields if c not in alike),
            *(["devices_used"] if len(used) > 1 else []),
            *(c for c in FIGURES if c in rows[0]),
        ]
        if alike:
            shared = (f"{c.replace('_', '-')} {rows[0][c]}" for c in alike)
            out.print("all: " + " · ".join(shared))
        cells = [
            [show(FIGURES[c], row[c]) if c in FIGURES else str(row[c]) for c in columns]
            for row in rows
        ]
        print_table(out, [HEADS.get(c, c.rpartition(".")[2]) for c in columns], cells)
    out.print(searched(counts["legal"], counts["evaluated"], counts["seconds"]))
    for reason, n in counts["rejected"].items():
        out.print(f"· {n:,} rejected: {plain(reason, 200)}")


def _says_something(field: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a field of some plan is not what it is by default; of a schedule vpp says the usual
    ones already."""
    quiet = {"1f1b", "interleaved"} if field == "schedule" else {"1", "none"}
    return any(str(row[field]) not in quiet for row in rows)


def _recompute(plan: Mapping[str, Any]) -> str:
    """What is recomputed, with the share of a stage's layers where that is not all, or its
    modules."""
    share = plan.get("recompute_share", 1)
    if plan["recompute"] == "full" and share < 1:
        return f"full {share:.0%}"
    return f"{plan['recompute']}{of_modules(plan)}"


def _untried(plans: Sequence[Mapping[str, Any]]) -> list[str]:
    """What among the plans shown nobody has published, each once."""
    lines = []
    for row in plans:
        lines += beyond(row, int(row.get("devices_used") or row["devices"]))
        if row.get("practised") is False:
            lines.append(f"tp {row['tp']} crosses the scale-up domain")
    return [f"untried: {line}" for line in dict.fromkeys(lines)]


@click.command()
@click.argument("file", required=False)
@JSON
def spaces(file: str | None, as_json: bool) -> None:
    """List the axes and values that a coarse, a default and a wide search try; with FILE, how many
    legal plans each has for it."""

    listed = {name: described(name) for name in SPACES}
    counts = []
    if file:
        r = prepare(read(file))
        counts = counted(r, r.main_phase)
    if as_json:
        print_json({"spaces": listed} | ({"design": counts} if counts else {}))
        return
    out = console()
    for rows in zip(*listed.values(), strict=True):
        out.print(f"{rows[0]['field']}: {rows[0]['what']}")
        for i, row in enumerate(rows):
            if i == 0 or row["values"] != rows[i - 1]["values"]:
                same = [n for n, r in list(zip(listed, rows))[i:] if r["values"] == row["values"]]
                out.print(f"    {', '.join(same)}: {row['values']}")
    for c in counts:
        out.print(f"{c['space']}: {c['legal']:,} legal plans for this design")
