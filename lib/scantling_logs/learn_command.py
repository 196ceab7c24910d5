"""The command learn: what logs of training jobs say, and the calibration that follows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from scantling.base.console import console, print_json, tell
from scantling.base.errors import DesignError
from scantling.cli.common import check_new
from scantling.cli.options import PATH
from scantling.cli.tables import print_table
from scantling.design.design import Design
from scantling.physics import calibration_file

from . import texts
from .diagnosis import diagnosed
from .learning import read_logs
from .log_reading import Reading
from .point import Point, Unused, is_table, of_design, of_log, of_table, why_unused
from .site_calibration import SiteFit, is_measured, site_fit, write

NO_CASE = "its run cannot be computed"
LOG_ALONE = ("step_s", "devices")  # what a design does not say for its log


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="(LOG | RUNS.csv | FOLDER)...")
@click.option(
    "--design", type=PATH, metavar="FILE", help="Design file that says what the logs do not."
)
@click.option(
    "--devices", type=click.IntRange(1, 10**7), metavar="N", help="Of logs that do not say theirs."
)
@click.option("-o", "--output", metavar="SITE.yaml", help="Calibration of the site to write.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print as JSON, one object a log, and of several what they say together.",
)
def learn(
    logs: Sequence[str], design: str | None, devices: int | None, output: str | None, as_json: bool
) -> None:
    """Read training logs for step time, memory, plan and restarts; with -o, write a calibration of
    the site.

    The calibration serves designs and predict. It is learnt from all logs together, and from
    tables of runs, nccl-tests and files of `scantling measure` among them. A design.yaml in a
    folder of logs is the design of their runs.
    """
    if output:
        check_new(output, True, [*logs, *([design] if design else [])])
    read = Read([], [], [])
    for path in filter(is_table, logs):
        add_table(read, path, as_json)
    for path in logs:
        if not is_table(path) and not is_measured(path):
            add_logs(read, path, design, devices)
    if as_json:
        rows: list[Any] = [reading.as_dict() for reading in read.readings]
        if len(read.readings) > 1 or any(map(is_table, logs)):
            rows.append({"summary": together(read, logs)})
        print_json(rows)
    else:
        show(read.readings)
    if design or output:
        tell_unused(read.unused)
    if output:
        files = [calibration_file.read(path, path) for path in filter(is_measured, logs)]
        fit = site_fit(read.points, read.readings, files)
        write(fit, output)
        tell_fit(fit, output)


def together(read: "Read", logs: Sequence[str]) -> dict[str, Any]:
    """What all logs and tables say together: how many runs are learnt from, which are left out and
    why, and each constant before and after with what stays open of its logarithm."""
    files = [calibration_file.read(path, path) for path in filter(is_measured, logs)]
    try:
        fit = site_fit(read.points, read.readings, files)
    except DesignError:  # nothing says enough for a constant
        fit = SiteFit({}, {}, [], [], [], [])
    return {
        "used": len({point.file for point in (*fit.steps, *fit.peaks)}),
        "left_out": [{"row": one.file, "why": one.why} for one in (*read.unused, *fit.unused)],
        "constants": {
            name: {"prior": each.was, "posterior": each.value, "spread": each.sd_ln}
            for name, each in fit.constants.items()
        },
    }


class Read(NamedTuple):
    """What logs and tables say, alone and beside what is foretold, and those that say too
    little."""

    readings: list[Reading]
    points: list[Point]
    unused: list[Unused]


def add_table(read: Read, path: str, diagnose: bool) -> None:
    """The measured rows of a table of runs."""
    table = of_table(path)
    rows = zip(table.readings, table.points)
    read.readings.extend(diagnosed(*row) if diagnose else row[0] for row in rows)
    read.points.extend(table.points)
    read.unused.extend(table.unused)


def add_logs(read: Read, path: str, design: str | None, devices: int | None) -> None:
    """A log, or those of a folder: beside the design that was named, or that of the folder."""
    beside = Path(path) / "design.yaml"
    name = design or (beside if beside.is_file() else None)
    run = Design.read(name) if name else None
    for reading in read_logs([path], tell):
        if reading.devices is None and devices is not None:
            reading = replace(reading, devices=devices)
        if run:
            asked = {name: how for name, how in reading.how.items() if name in LOG_ALONE}
            reading = replace(reading, how=asked)
        point = of_design(reading, run) if run else of_log(reading)
        read.readings.append(diagnosed(reading, point) if point else reading)
        if point:
            read.points.append(point)
        elif not reading.collectives:
            why = why_unused(reading, run) or NO_CASE
            read.unused.append(Unused(reading.file, why))


def tell_unused(rows: Sequence[Unused]) -> None:
    """What nothing was learnt from, and why."""
    for line in texts.left_out_runs(rows):
        console(stderr=True).print(line)


def tell_fit(fit: SiteFit, path: str) -> None:
    """What a calibration was learnt from, which rows are odd, and what it moves."""
    tell_unused(fit.unused)
    out = console(stderr=True)
    for line in texts.odd_rows(fit.odd):
        out.print(line)
    out.print(texts.used(fit.steps, fit.peaks))
    out.print(texts.written(path, fit.calibration, calibration_file.read(fit.calibration)))


def show(readings: Sequence[Reading]) -> None:
    """The table of readings, and once what no log says."""
    print_table(console(), texts.READING_HEADS, map(texts.reading_row, readings))
    for reading in readings:
        if reading.believed:
            print(texts.believed(reading))
            for run in reading.published:
                print(texts.published(run))
    for reading in readings:
        if reading.badput:
            print(texts.goodput(reading))
    alone = [reading for reading in readings if not reading.believed]
    lacking = {name: how for reading in alone for name, how in reading.how.items()}
    for name, how in lacking.items():
        silent = sum(name in reading.missing for reading in alone)
        print(texts.missing(name, silent, len(readings), how))
