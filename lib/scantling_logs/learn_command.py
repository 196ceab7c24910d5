"""The command learn: what logs of training jobs say, and the calibration that follows."""

import click
from scantling.base.console import console, print_json, tell
from scantling.base.errors import plain
from scantling.base.show import number
from scantling.cli.options import PATH
from scantling.cli.summary import largest
from scantling.cli.tables import TABLES, print_rows, say
from scantling.design.design import Design

from .diagnosis import diagnosed
from .learning import read_logs
from .site import is_table, of_design, of_log, of_table, write

LEAST = 0.005  # a constant that moved by less is not told


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="(LOG | RUNS.csv | FOLDER)...")
@click.option(
    "--design", type=PATH, metavar="FILE", help="Design file that says what the logs do not."
)
@click.option("-o", "--output", metavar="SITE.yaml", help="Calibration of the site to write.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, one object a log.")
def learn(logs, design, output, as_json):
    """What training logs say: steady step time, memory, plan, restarts; with -o a calibration of
    the site for designs and predict."""
    readings = []
    points = []
    for path in filter(is_table, logs):
        rows, measured = of_table(path)
        readings += map(diagnosed, rows, measured) if as_json else rows
        points += measured
    others = [path for path in logs if not is_table(path)]
    for r in read_logs(others, tell) if others else ():
        point = of_design(r, Design.read(design)) if design else of_log(r)
        readings.append(diagnosed(r, point) if point else r)
        points.append(point)
    if as_json:
        print_json([r.as_dict() for r in readings])
    else:
        show(readings)
    if output:
        made = write([p for p in points if p], output, readings)
        told = ", ".join(
            say("moved", name=n, **c)
            for n, c in made["constants"].items()
            if abs(c["value"] / c["was"] - 1) > LEAST
        )
        for kind in ("steps", "peaks"):
            if kind in made:
                told += say("site", kind=kind, **made[kind])
        console(stderr=True).print(f"{plain(output, 200)}: {told}")


def row_of(r) -> dict:
    """A reading as a row of the table."""
    plan = ((name, getattr(r, name)) for name in ("tp", "pp", "cp", "ep", "dp"))
    notes = (
        "out of memory" if r.oom else "",
        f"{r.restarts} restarts" if r.restarts else "",
        f"{len(r.collectives)} rows of collectives" if r.collectives else "",
    )
    return {
        "r": r,
        "step": f"{number(r.step_s, 4)} s" if r.step_s else "—",
        "memory": f"{r.peak_memory_gb:.1f} GiB" if r.peak_memory_gb else "—",
        "plan": " ".join(f"{k}{v}" for k, v in plan if v is not None) or None,
        "note": ", ".join(filter(None, notes)),
    }


def show(readings) -> None:
    """The table of readings, and once what no log says."""
    print_rows(console(), TABLES["learn"], map(row_of, readings))
    for r in (r for r in readings if r.believed):
        parts = largest(r.believed["parts_s"])[:4]
        said = ", ".join(say("part", name=name, s=seconds) for name, seconds in parts)
        print(say("believed", r=r, parts=said))
        for run in r.published:
            told = (say("factor", name=n, factor=f) for n, f in run["factors"].items())
            print(say("published", told=" x ".join(told), **run))
    for r in (r for r in readings if r.badput):
        lost = ((n, s, r.planned.get("badput", {}).get(n, 0.0)) for n, s in r.badput.items())
        causes = ", ".join(say("lost", name=n, here=s, plan=p) for n, s, p in lost if s + p > LEAST)
        plan = r.planned.get("goodput", 0)
        print(say("goodput-planned" if plan else "goodput", r=r, plan=plan, causes=causes))
    asked = [r for r in readings if not r.believed]
    lacking = {name: how for r in asked for name, how in r.how.items()}
    for name, how in lacking.items():
        some = sum(name in r.missing for r in asked)
        print(f"{name} is missing in {some} of {len(readings)}: {how}")
