"""The command learn: what logs of training jobs say, and the calibration that follows."""

from collections.abc import Sequence

import click
from scantling.base.console import console, print_json, tell
from scantling.cli.options import PATH
from scantling.cli.tables import print_table
from scantling.design.design import Design

from . import texts
from .diagnosis import diagnosed
from .learning import read_logs
from .point import Point, is_table, of_design, of_log, of_table
from .reading import Reading
from .site import write


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="(LOG | RUNS.csv | FOLDER)...")
@click.option(
    "--design", type=PATH, metavar="FILE", help="Design file that says what the logs do not."
)
@click.option("-o", "--output", metavar="SITE.yaml", help="Calibration of the site to write.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, one object a log.")
def learn(logs: Sequence[str], design: str | None, output: str | None, as_json: bool) -> None:
    """What training logs say: steady step time, memory, plan, restarts; with -o a calibration of
    the site for designs and predict."""
    readings: list[Reading] = []
    points: list[Point] = []
    for path in filter(is_table, logs):
        rows, measured = of_table(path)
        readings += map(diagnosed, rows, measured) if as_json else rows
        points += measured
    others = [path for path in logs if not is_table(path)]
    for reading in read_logs(others, tell) if others else ():
        point = of_design(reading, Design.read(design)) if design else of_log(reading)
        readings.append(diagnosed(reading, point) if point else reading)
        if point:
            points.append(point)
    if as_json:
        print_json([reading.as_dict() for reading in readings])
    else:
        show(readings)
    if output:
        calibration = write(points, output, readings)
        console(stderr=True).print(texts.written(output, calibration))


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
