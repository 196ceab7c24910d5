"""The command learn: what logs of training jobs say, and the calibration that follows."""

from collections.abc import Sequence
from dataclasses import replace

import click
from scantling.base.console import console, print_json, tell
from scantling.cli.options import PATH
from scantling.cli.tables import print_table
from scantling.design.design import Design
from scantling.physics import calibration_file

from . import texts
from .diagnosis import diagnosed
from .learning import read_logs
from .point import Point, Unused, is_table, of_design, of_log, of_table, why_unused
from .reading import Reading
from .site import site_fit, write

NO_CASE = "its run cannot be computed"


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="(LOG | RUNS.csv | FOLDER)...")
@click.option(
    "--design", type=PATH, metavar="FILE", help="Design file that says what the logs do not."
)
@click.option(
    "--devices", type=click.IntRange(1, 10**7), metavar="N", help="Of logs that do not say theirs."
)
@click.option("-o", "--output", metavar="SITE.yaml", help="Calibration of the site to write.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, one object a log.")
def learn(
    logs: Sequence[str], design: str | None, devices: int | None, output: str | None, as_json: bool
) -> None:
    """What training logs say: steady step time, memory, plan, restarts; with -o a calibration of
    the site for designs and predict, learnt from all of them together."""
    readings: list[Reading] = []
    points: list[Point] = []
    unused: list[Unused] = []
    for path in filter(is_table, logs):
        table = of_table(path)
        readings += map(diagnosed, *table[:2]) if as_json else table.readings
        points += table.points
        unused += table.unused
    others = [path for path in logs if not is_table(path)]
    run = Design.read(design) if design else None
    for reading in read_logs(others, tell) if others else ():
        if reading.devices is None and devices is not None:
            reading = replace(reading, devices=devices)
        point = of_design(reading, run) if run else of_log(reading)
        readings.append(diagnosed(reading, point) if point else reading)
        if point:
            points.append(point)
        elif not reading.collectives:
            unused.append(Unused(reading.file, why_unused(reading, run is not None) or NO_CASE))
    if as_json:
        print_json([reading.as_dict() for reading in readings])
    else:
        show(readings)
    out = console(stderr=True)
    if design or output:
        for line in texts.left_out_runs(unused):
            out.print(line)
    if output:
        fit = site_fit(points, readings)
        write(fit, output)
        for line in texts.left_out_runs(fit.unused):
            out.print(line)
        for row in fit.odd:
            out.print(texts.odd(row))
        out.print(texts.used(fit.used))
        out.print(texts.written(output, fit.calibration, calibration_file.read(fit.calibration)))


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
