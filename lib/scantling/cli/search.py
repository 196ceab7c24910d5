"""The search from a terminal: one design's plans or those of many variants of it, here or on a
cluster, with progress that can be stopped."""

import click

from ..advise.sweeps import variant_designs, variants
from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..base.files import write_text
from ..base.quantities.table import show
from ..catalogue.published import beyond
from ..plans.axes import counted, described
from ..plans.leaderboard import search as plan_table
from ..plans.prepare import prepare
from ..plans.space import SPACES
from .bar import Bar
from .common import EXIT, assessment_of, named, on_scheduler, possible, read
from .decide import axes_of
from .options import FILE, JSON, PATH
from .tables import print_table, say


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
def search(file, top, csv_file, as_json, wide, space, over, scheduler, progress):
    """The plans that fit the design in FILE, best first, and how many were rejected for which
    reason.

    Ctrl-C ends a search early with what it has looked at.
    """

    if wide and space not in (None, "wide"):
        raise DesignError("--wide", space, "--wide or --space", problem="contradicts --space")
    space = "wide" if wide else space or "default"
    a = assessment_of(file) if over else possible(file, as_json)
    if progress is None:
        progress = space == "wide" or bool(over) or bool(scheduler)
    bar = Bar(progress)
    with on_scheduler(scheduler), bar.watching():
        plans = _plans(a.design, space, over, scheduler, bar, top)
    if csv_file:
        write_text(csv_file, plans.to_csv(index=False), force=True)
    best = plans.head(top)
    if as_json:
        print_json({**named(a), "space": space, **plans.attrs, "plans": best.to_dict("records")})
    else:
        out = console()
        leaderboard(a.resolved.name, plans, top, out)
        for line in _untried(best):
            out.print(line)
        if plans.attrs.get("unseen"):
            out.print("stopped: the order above is of the plans that were looked at")
    verdict = a.verdict
    if over:  # the verdict is of the file's own machine
        verdict = {"impossible": "feasible"}.get(verdict, verdict) if len(plans) else "impossible"
    return EXIT[verdict]


def _plans(design, space, over, scheduler, bar, top):
    if not over:
        return plan_table(design, space, bar, scheduler)
    from pandas import DataFrame

    axes = axes_of(over)
    designs = variant_designs(design, axes)
    if not designs:
        design.change({field: values[0] for field, values in axes.items()})  # says what is wrong
    rows, counts = variants(
        [d for _, d in designs], space=space, progress=bar, scheduler=scheduler, top=top
    )
    table = DataFrame([dict(zip(axes, designs[row["design"]][0])) | row for row in rows])
    table = table.drop(columns=["design", "rank", "legal"], errors="ignore")
    table.attrs = counts | {"over": list(axes)}
    return table


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
    "mfu": "mfu",
    "memory_bytes": "memory_bytes.total",
    "oom_probability": "oom_probability",
}
HEADS = {
    "step_s": "step",
    "mfu": "MFU",
    "memory_bytes": "memory",
    "oom_probability": "runs\nout",
    "micro_batch": "micro\nbatch",
    "grad_accum": "grad\naccum",
}


def leaderboard(name: str, plans, top: int, out) -> None:
    """The best plans as a table, what they share in a line above it, then counts of what was looked
    at and why plans were dropped."""

    best = plans.head(top)
    swept = plans.attrs.get("over") or []
    out.print(plain(name, 120), style="bold")
    if len(best):
        best = best.assign(recompute=_recompute(best))
        quiet = {"1", "none"}  # values that say nothing; of schedules, what vpp says already
        quiet_in = {"schedule": {"1f1b", "interleaved"}}
        fields = [c for c in PLAN if c in best and set(map(str, best[c])) - quiet_in.get(c, quiet)]
        shared = [c for c in fields if len(best) > 1 and best[c].nunique() == 1]
        columns = [
            *swept,
            *(c for c in fields if c not in shared),
            *(c for c in FIGURES if c in best),
        ]
        if shared:
            said = (f"{c.replace('_', '-')} {best[c].iloc[0]}" for c in shared)
            out.print("all: " + " · ".join(said))
        rows = (
            [show(FIGURES[c], v) if c in FIGURES else str(v) for c, v in row.items()]
            for row in best[columns].to_dict("records")
        )
        print_table(out, [HEADS.get(c, c.rpartition(".")[2]) for c in columns], rows)
    counts = plans.attrs
    out.print(say("searched", **counts))
    for reason, n in counts["rejected"].items():
        out.print(f"· {n:,} rejected: {plain(reason, 200)}")


def _recompute(plans) -> list:
    """The recompute column in words, with the share of a stage's layers where that is not all."""
    if "recompute_share" not in plans:
        return list(plans["recompute"])
    return [
        f"{kind} {share:.0%}" if kind == "full" and share < 1 else kind
        for kind, share in zip(plans["recompute"], plans["recompute_share"])
    ]


def _untried(plans) -> list:
    """What among the plans shown nobody has published, each once."""

    out = []
    for row in plans.to_dict("records"):
        out += beyond(row, int(row.get("devices_used") or row["devices"]))
        if row.get("practised") is False:
            out.append(f"tp {row['tp']} crosses the scale-up domain")
    return [f"untried: {line}" for line in dict.fromkeys(out)]


@click.command()
@click.argument("file", required=False)
@JSON
def spaces(file, as_json):
    """The axes and values that a search tries: coarse (while dragging), default, wide; with FILE,
    how many legal plans each has for it."""

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
        out.print(say("axis", **rows[0]))
        for i, row in enumerate(rows):
            if i == 0 or row["values"] != rows[i - 1]["values"]:
                same = [n for n, r in list(zip(listed, rows))[i:] if r["values"] == row["values"]]
                out.print(f"    {', '.join(same)}: {row['values']}")
    for c in counts:
        out.print(say("counted", **c))
