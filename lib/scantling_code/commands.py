"""Designs as code, from a terminal: diff, lock, check, trace, assess-many."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from os import cpu_count
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from threading import current_thread, main_thread
from typing import Any

import click
from rich.text import Text
from scantling.base.console import console, print_json, tell
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_text
from scantling.base.show import percent, seconds, several
from scantling.cli.bar import Bar
from scantling.cli.common import check_new, on_scheduler, possible
from scantling.cli.decide import axes_of
from scantling.cli.options import FILE, JSON, PATH
from scantling.cli.tables import named_line, print_table
from scantling.design.file_or_stdin import read
from scantling.design.methods import is_posttraining
from scantling.plans.space import SPACES
from scantling.verdict.verdicts import EXIT, VERDICTS

from . import reports
from .answers import Answer, answered
from .causes import Cause, of_inputs
from .check import Checked, Rules, changed_designs, check as check_paths, designs_under
from .diff import Difference, between
from .lock import ENDING, lock as lock_design, lock_path, read_lock, write_lock
from .many import FAILED, REFUSED, assess_many as assess_jobs, can_write, write_table
from .provenance import inputs, moved
from .snapshot import state
from .sources import GIT, design_of, named
from .trace import trace as trace_step, trace_assessed

STDIN = "-"  # a design that is read once, and trains from the start
VIOLATED = EXIT["constraint-missed"]


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@JSON
@click.option("--markdown", is_flag=True, help="Print for a pull request.")
def diff(before: str, after: str | None, as_json: bool, markdown: bool) -> None:
    """Say what B asks differently from A, and what that does to plan, verdict, memory, days,
    dollars and goodput, by cause.

    A and B are design files, git:REV:FILE (a file as a revision has it) or locks; without B, A is
    set against its lock. Each change is applied alone to A; what they do beyond their sum is the
    interaction. Exit 0; 2 a file is wrong.
    """
    if as_json and markdown:
        raise DesignError(
            "--markdown", problem="is another form than --json", allowed="one of them"
        )
    if after is None:
        before, after = str(lock_path(before)), before
    difference = _difference(before, after)
    if as_json:
        print_json(difference.as_dict())
    elif markdown:
        click.echo(difference.markdown(), nl=False)
    else:
        _print_difference(difference)


def _difference(before: str, after: str) -> Difference:
    """What lies between two names."""
    one_lock = read_lock(before) if before.endswith(ENDING) else None
    other_lock = read_lock(after) if after.endswith(ENDING) else None
    one = design_of(before) if one_lock is None else one_lock.state.design
    other = design_of(after) if other_lock is None else other_lock.state.design
    with _led_by(before):
        base = answered(one)
    with _led_by(after):
        now = state(answered(other, like=base))
    causes: list[Cause] = []
    if one_lock is not None:
        what = moved(one_lock.inputs, inputs(base), base.resolved.model)
        causes = of_inputs(one_lock.state, base, what)
    return between(
        state(base) if one_lock is None else one_lock.state,
        base,
        now if other_lock is None else other_lock.state,
        other,
        now,
        causes,
    )


@contextmanager
def _led_by(name: str) -> Iterator[None]:
    """Inside, an error has the name in front."""
    try:
        yield
    except DesignError as error:
        raise named(error, name) from None


def _print_difference(difference: Difference) -> None:
    out = console()
    for name, text in difference.lines():
        out.print(named_line(name, plain(text, 2000)))
    print_table(out, ("", "before", "after", "change"), difference.figure_rows(), words=("",))
    for cause, text in difference.cause_lines():
        line = Text(cause, style="bold").append(f"  {plain(text, 2000)}", style="default")
        out.print(line)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def lock(files: Sequence[str]) -> int:
    """Write FILE.lock: verdict, figures with their bands, and the rows of the catalogue, the
    constants and the program that they rest on.

    Exit as of the worst verdict; 2 a wrong file, and no lock is written.
    """
    made = {}
    for file in files:
        if file == "-" or file.startswith(GIT):
            raise DesignError(
                plain(file, 200), problem="has no place for a lock beside it", allowed="a file"
            )
        design = design_of(file)
        with _led_by(file):
            made[file] = lock_design(design)
    for file, one in made.items():
        path = write_lock(file, one)
        click.echo(f"{plain(path, 200)}: {VERDICTS[one.state.verdict].name}")
    return max(EXIT[one.state.verdict] for one in made.values())


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share by which a figure may differ from its lock: 0.02 for 2 %.",
)
@click.option("--locked", is_flag=True, help="A design without a lock fails.")
@click.option(
    "--changed",
    is_flag=True,
    help="The PATHs are files that changed: a lock stands for its design, others are left out.",
)
@click.option("--junit", type=PATH, help="Write JUnit XML here.")
@click.option("--sarif", type=PATH, help="Write SARIF 2.1.0 here.")
@click.option("--jobs", type=click.IntRange(1, 512), help="Processes; as many as cores.")
@JSON
def check(
    paths: Sequence[str],
    tolerance: float,
    locked: bool,
    changed: bool,
    junit: str | None,
    sarif: str | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Hold every design under each PATH to its constraints and to its lock: what moved, and by
    which row of the catalogue or which constant.

    Exit 0 all hold; 3 one does not, or is wrong; 2 there is no design.
    """
    rules = Rules(tolerance=tolerance, locked=locked)
    files = changed_designs(paths) if changed else designs_under(paths)
    read = [*files, *map(lock_path, files)]
    for report in (junit, sarif):
        if report:
            check_new(report, True, read)
            read.append(Path(report))
    bar = Bar(not as_json)
    with bar.shown():
        results = check_paths(files, rules, jobs, bar)
    if junit:
        write_text(junit, reports.junit(results), force=True)
    if sarif:
        write_text(sarif, reports.sarif(results), force=True)
    if as_json:
        print_json([one.as_dict() for one in results])
    else:
        _print_checked(results)
    return 0 if all(one.passed for one in results) else VIOLATED


def _print_checked(results: Sequence[Checked]) -> None:
    out = console()
    for one in results:
        for finding in one.findings:
            text = Text(plain(one.path, 200), style="bold").append(f": {finding.kind}: ", "red")
            out.print(text.append(plain(finding.text, 2000), "default"))
    failed = sum(not one.passed for one in results)
    locks = sum(one.locked for one in results)
    of = several(len(results), "design")
    out.print(f"{of}, {locks} with a lock: " + (f"{failed} fail" if failed else "all hold"))


@click.command()
@FILE
@click.option("-o", "--output", required=True, type=PATH, help="File to write: step.json.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--wide", is_flag=True, help="Search the wide space: all schedules, minutes for experts."
)
def trace(file: str, output: str, force: bool, wide: bool) -> int:
    """Write the modelled step of the design in FILE as a trace for Perfetto and chrome://tracing.

    It holds the ranks of one pipeline with their streams of compute and communication, each slice
    with its formula. The slices of the rank that sets the pace sum to the step's parts. Of a design
    that tunes a trained model it holds the phases of trainer and engine, or the parts of the step.
    Exit as `design`.
    """
    check_new(output, force, [file])
    design = read(file) if file != STDIN else None
    if design is not None and is_posttraining(design):
        return _trace_tuned(file, answered(design), output, force)
    a = possible(file, space="wide" if wide else "default")
    traced = trace_assessed(a)
    write_text(output, traced.to_json(), force)
    others = percent(traced.others, 1)
    click.echo(
        f"Wrote {len(traced.slices):,} slices to {plain(output, 200)}: {traced.schedule}, "
        f"{several(traced.layout.pp, 'rank')}, step {seconds(traced.total_s)}; rank {traced.pace} "
        f"sets the pace, a pass of the others is {others} of a mean stage's"
    )
    return EXIT[a.verdict]


def _trace_tuned(file: str, answer: Answer, output: str, force: bool) -> int:
    """Write the step of a design that tunes a trained model."""
    with _led_by(file):
        traced = trace_step(answer)
    write_text(output, traced.to_json(), force)
    count, name = len(traced.slices), plain(output, 200)
    click.echo(f"Wrote {several(count, 'slice')} to {name}: step {seconds(traced.total_s)}")
    return EXIT[answer.verdict]


@click.command("assess-many")
@click.argument("source", metavar="DIR|TABLE|FILE")
@click.option("-o", "--output", required=True, type=PATH, help="Table to write: .parquet or .csv.")
@click.option("--base", type=PATH, help="Design that the rows of a table change.")
@click.option(
    "--over",
    multiple=True,
    metavar="FIELD=V1,V2,…",
    help="Every combination of these values of each design: may be given more than once.",
)
@click.option(
    "--space",
    type=click.Choice(list(SPACES)),
    default="default",
    show_default=True,
    help="Plans that are searched.",
)
@click.option("--scheduler", help="Address of a Dask scheduler (tcp://…).")
@click.option("--jobs", type=click.IntRange(1, 512), help="Processes here; as many as cores.")
@click.option("--force", is_flag=True, help="Replace the table if it exists.")
def assess_many(
    source: str,
    output: str,
    base: str | None,
    over: Sequence[str],
    space: str,
    scheduler: str | None,
    jobs: int | None,
    force: bool,
) -> int:
    """Assess the designs of a folder, of the rows of a table or of a grid of fields, and write a
    row for each.

    Columns of the table are fields such as cluster.devices. The designs are spread over Dask. A
    row has the plan, the figures and the verdict, or the error. A run that is stopped (Ctrl-C)
    goes on where it was when the same command is given again.
    Exit 0; 3 stopped, or no row was assessed; 2 the call is wrong.
    """
    if Path(output).suffix not in (".parquet", ".csv"):
        raise DesignError("-o", output, "a name that ends in .parquet or .csv")
    check_new(output, force, [source, *([base] if base else [])])
    can_write(output)
    axes = axes_of(over)
    partial = Path(f"{output}.partial")
    bar = Bar(True)
    where = on_scheduler(scheduler) if scheduler else nullcontext()
    with where, bar.watching(), _workers(scheduler, jobs) as workers:
        rows = assess_jobs(
            source,
            base=base,
            over=axes,
            space=space,
            scheduler=workers,
            progress=bar,
            partial=partial,
        )
    if bar.stopped:
        done = several(len(rows), "row")
        tell(f"stopped: {done} in {plain(partial, 200)}; the same command goes on")
        return VIOLATED
    write_table(output, rows)
    partial.unlink(missing_ok=True)
    verdicts = [str(row["verdict"]) for row in rows]
    counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    click.echo(f"Wrote {several(len(rows), 'design')} to {plain(output, 200)}: {counted}")
    return 0 if set(verdicts) - {REFUSED, FAILED} else VIOLATED


@contextmanager
def _workers(scheduler: str | None, jobs: int | None) -> Iterator[Any]:
    """A Dask scheduler: the one that is named, or processes of this machine for as long as the work
    takes; None for one process, which is what there is without Dask where no number is asked
    for."""
    count = jobs or cpu_count() or 1
    if scheduler or count == 1:
        yield scheduler
        return
    if not find_spec("distributed"):
        if jobs:
            raise DesignError(
                "--jobs",
                jobs,
                "--jobs 1, or pip install 'scantling[dask]'",
                problem="needs Dask, which is not installed",
            )
        tell("one process; pip install 'scantling[dask]' takes every core")
        yield None
        return
    import distributed

    with _no_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # any port: another one's cluster has its own
            scheduler_kwargs={"dashboard": False},
            silence_logs=50,
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Inside, processes that are started never notice Ctrl-C, which a terminal sends to all that it
    runs: it is for the command alone."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal(SIGINT, SIG_IGN)
    try:
        yield
    finally:
        signal(SIGINT, before)
