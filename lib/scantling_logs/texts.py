"""What the commands learn and measure print."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from scantling.base import show
from scantling.base.errors import plain
from scantling.base.show import NONE, count, days, largest, number, percent, several, usd
from scantling.physics.calibration_file import Override
from scantling.physics.cases import devices
from scantling.verdict.assessment import Assessment

from .log_reading import Nearby, Reading
from .measure.network_price import FabricPrice, FlapPrice
from .measure.points import ConstantEntry, LeftOut, Skipped
from .measure.worth import Worth
from .point import Point, Unused
from .site_calibration import Odd
from .step_parts import one

MOST_NAMED = 3  # logs and rows of one reason that are named
MOST_ODD = 5  # rows that contradict the others
MOST_MOVED = 8  # constants that are told
LEAST = 0.005  # a constant that moved by less, or a share of the wall clock, is not told

# Logs

READING_HEADS = (
    "file",
    "format",
    "steps",
    "step",
    "tokens/s/device",
    "memory",
    "devices",
    "plan",
    "note",
)


def reading_row(reading: Reading) -> list[str]:
    """A reading as a row of the table."""
    r = reading
    return [
        plain(r.file, 60),
        r.format,
        count(r.steps, ""),
        f"{number(r.step_s, 4)} s" if r.step_s else NONE,
        count(r.tokens_per_s_per_device, ""),
        f"{r.peak_memory_gb:.1f} GiB" if r.peak_memory_gb else NONE,
        count(r.devices, ""),
        plan_words(r) or NONE,
        ", ".join(notes(r)),
    ]


def plan_words(reading: Reading) -> str:
    """The plan that a log states: tp8 pp4 zero1 full recompute."""
    degrees = {
        "tp": reading.tp,
        "pp": reading.pp,
        "cp": reading.cp,
        "ep": reading.ep,
        "dp": reading.dp,
    }
    words = [f"{axis}{ranks}" for axis, ranks in degrees.items() if ranks is not None]
    if reading.sharding not in (None, "none"):
        words.append(reading.sharding)
    if reading.recompute not in (None, "none"):
        words.append(f"{reading.recompute} recompute")
    return " ".join(words)


def notes(reading: Reading) -> list[str]:
    """What else happened in a log."""
    texts = []
    if reading.oom:
        texts.append("out of memory")
    if reading.restarts:
        texts.append(f"{reading.restarts} restarts")
    if reading.collectives:
        texts.append(f"{len(reading.collectives)} rows of collectives")
    return texts


def believed(reading: Reading) -> str:
    """The measured step beside the one that published runs make possible."""
    step = reading.believed
    measured_s = reading.step_s or step["step_s"] + step["unexplained_s"]
    parts = [f"{name} {number(s, 3)} s" for name, s in largest(step["parts_s"])[:4]]
    return (
        f"{plain(reading.file, 60)}: {number(measured_s, 4)} s measured, "
        f"{number(step['step_s'], 4)} s believed possible ({number(step['low_s'], 4)} to "
        f"{number(step['high_s'], 4)} s): {', '.join(parts)}"
    )


def published(run: Nearby) -> str:
    """A published run near to a log's, and what the difference comes from."""
    factors = [f"{name} {factor:.2f}" for name, factor in run["factors"].items()]
    return (
        f"  {run['ratio']:.2f} times the MFU of {plain(run['id'], 60)} "
        f"({run['ratio_foretold']:.2f} foretold): {run['differs']}\n    {' x '.join(factors)}"
    )


def goodput(reading: Reading) -> str:
    """Where the wall clock of a log went, beside what its design plans."""
    planned = reading.planned.get("badput", {})
    losses = [
        f"{cause} {share:.1%} ({planned.get(cause, 0.0):.1%})"
        for cause, share in reading.badput.items()
        if share + planned.get(cause, 0.0) > LEAST
    ]
    log = f"{plain(reading.file, 60)}: goodput {reading.goodput:.1%} of the wall clock"
    if reading.planned.get("goodput"):
        plan = reading.planned["goodput"]
        return f"{log}, {plan:.1%} planned; lost here (planned): {', '.join(losses)}"
    return f"{log}; lost, with what the design of --design plans: {', '.join(losses)}"


def missing(name: str, silent: int, logs: int, how: str) -> str:
    """What some logs do not say, and how to give it."""
    return f"{name} is missing in {silent} of {logs}: {how}"


def used(steps: Sequence[Point], peaks: Sequence[Point]) -> str:
    """What a calibration was learnt from."""
    points = [*steps, *peaks]
    if not points:
        return "Used  tables of collectives and benchmarks alone"
    models = len({round(point.active) for point in points})
    sizes = sorted({int(one(devices(point.case.plan))) for point in points})
    span = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return (
        f"Used  {several(len(steps), 'step')} and {several(len(peaks), 'peak')} of memory, "
        f"{several(models, 'model')}, {span} {points[0].accelerator}"
    )


def odd_rows(rows: Sequence[Odd]) -> list[str]:
    """The rows that contradict the others, those that do so most by name."""
    far = sorted(rows, key=lambda row: -row.deviations)
    lines = [odd(row) for row in far[:MOST_ODD]]
    if len(far) > MOST_ODD:
        lines.append(f"Contradicts the others  {len(far) - MOST_ODD:,} rows more")
    return lines


def left_out_runs(rows: Sequence[Unused]) -> list[str]:
    """What no constant was learnt from, and why: the first of each reason by name."""
    by_why: dict[str, list[str]] = {}
    for row in rows:
        by_why.setdefault(row.why, []).append(row.file)
    lines = []
    for why, files in by_why.items():
        names = ", ".join(plain(file, 60) for file in files[:MOST_NAMED])
        more = f" and {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
        lines.append(f"Left out  {names}{more}: {plain(why, 300)}")
    return lines


def odd(row: Odd) -> str:
    """A row that contradicts the others."""
    return (
        f"Contradicts the others  {plain(row.file, 60)}: its step takes {row.ratio:.2f} times what "
        f"they say, {row.deviations:.1f} standard deviations; it counts little"
    )


def written(path: str, calibration: Mapping[str, Any], override: Override) -> str:
    """What a calibration of a site moves."""
    constants = calibration["constants"]
    moved = [
        f"{name} {number(c['was'], 3)} to {number(c['value'], 3)} ± {c['sd_ln']:.0%}"
        for name, c in constants.items()
        if abs(c["value"] / c["was"] - 1) > LEAST
    ]
    if override.learned is not None:
        left, factors = override.learned.left_open, override.learned.factors
        far = sorted(factors, key=lambda name: -abs(log(factors[name])))
        moved += [
            f"{name} x {factors[name]:.2f} ± {left[name]:.0%}"
            for name in far
            if abs(log(factors[name])) > LEAST
        ]
    text = f"{plain(path, 200)}: {', '.join(moved[:MOST_MOVED]) or 'no constant moved'}"
    for kind in ("steps", "peaks"):
        if kind in calibration:
            text += _site(kind, calibration[kind])
    return text


def _site(kind: str, site: Mapping[str, Any]) -> str:
    low, high = site["band"]
    runs = several(site["runs"], kind.removesuffix("s"))
    return (
        f"; {runs}, {site['factor']:.3f} times what published runs say; "
        f"80 % band of a further run {low:.2f} to {high:.2f}"
    )


# Measurements

CONSTANT_HEADS = ("constant", "measured", "prior", "unit", "from")


def constant_row(name: str, constant: ConstantEntry) -> Sequence[str]:
    """A measured constant as a row of the table."""
    return (
        name,
        f"{constant['value']:.4g}",
        f"{constant['prior']:.4g}",
        constant["unit"],
        constant["from"],
    )


def left_out(row: LeftOut) -> str:
    """A constant that no device can have."""
    return f"{row['constant']} {row['value']:.4g} left out: {row['why']}"


def skipped(row: Skipped) -> str:
    """A measurement that failed."""
    return f"skipped {row['step']}: {row['why']}"


def unknown_device(name: str) -> str:
    """A device that the catalogue does not have."""
    return (
        f"{plain(name, 80)} is not in the catalogue: curves only, no constant. --accelerator ID "
        f"says what it is."
    )


# What to measure

WORTH_HEADS = ("measurement", "device-hours", "removes days", "removes $", "interval left")


def worth_row(worth: Worth) -> list[str]:
    """A measurement as a row of the order."""
    return [
        f"{worth.experiment.name}: {worth.experiment.says}",
        number(worth.experiment.device_hours, 2),
        days(worth.days),
        NONE if worth.usd is None else usd(worth.usd),
        percent(worth.left, 1),
    ]


def fabric_line(price: FabricPrice) -> str:
    """What a slow network would cost, before day 1."""
    money = "" if price.usd is None else f" and {usd(price.usd)}"
    rate = show.bytes_per_s(price.all_reduce_bytes_per_s)
    return (
        f"Before day 1: all-reduce over all devices should reach {rate} of bus bandwidth; at half "
        f"of that the run takes {days(price.days)}{money} more"
    )


def flaps_line(price: FlapPrice) -> str:
    """What flapping links cost."""
    money = "" if price.usd is None else f", {usd(price.usd)}"
    return (
        f"Links that flap take {days(price.days)}{money} at the rate that is planned with; "
        f"at ten times that {days(price.days_at_ten)}"
    )


def kit_page(assessment: Assessment, worths: Sequence[Worth]) -> str:
    """The page of a kit of measurements."""
    lines = [
        f"# What to measure for {plain(assessment.resolved.name, 200)}",
        "",
        "In the order of what a device-hour removes of the interval of the run's days; each row "
        "counts on those above it.",
        "",
        "| " + " | ".join(WORTH_HEADS) + " |",
        "| --- | ---: | ---: | ---: | ---: |",
        *("| " + " | ".join(worth_row(worth)) + " |" for worth in worths),
        "",
        "`sh smoke.sh` tries every measurement on a machine without accelerators, small; "
        "`sh run.sh` measures. FRAMEWORK names the launch kit of the steps, HEAD_NODE the first of "
        "two nodes, STORE the folder of a save. The steps' kits are written, not started: start "
        "each as its README says and leave its log in the folder of its design. `sh learn.sh` then "
        "writes site.yaml: name it in the design as `calibration: site.yaml`.",
        "",
    ]
    return "\n".join(lines)


def done(path: str, stopped: bool) -> str:
    """Where the measurements are."""
    begin = "Stopped; what was measured so far is in" if stopped else "Wrote"
    return f"{begin} {plain(path, 200)}"
