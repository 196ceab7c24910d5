"""What the commands learn and measure print."""

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.base.errors import plain
from scantling.base.show import NONE, count, number
from scantling.cli.summary import largest

from .measure.points import ConstantEntry, LeftOut, Skipped
from .reading import Nearby, Reading

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
    """The parallel degrees that a log states: tp8 pp4."""
    degrees = {
        "tp": reading.tp,
        "pp": reading.pp,
        "cp": reading.cp,
        "ep": reading.ep,
        "dp": reading.dp,
    }
    return " ".join(f"{axis}{ranks}" for axis, ranks in degrees.items() if ranks is not None)


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


def written(path: str, calibration: Mapping[str, Any]) -> str:
    """What a calibration of a site moves."""
    moved = [
        f"{name} {number(c['was'], 3)} to {number(c['value'], 3)} ± {c['sd_ln']:.0%}"
        for name, c in calibration["constants"].items()
        if abs(c["value"] / c["was"] - 1) > LEAST
    ]
    text = f"{plain(path, 200)}: {', '.join(moved)}"
    for kind in ("steps", "peaks"):
        if kind in calibration:
            text += _site(kind, calibration[kind])
    return text


def _site(kind: str, site: Mapping[str, Any]) -> str:
    low, high = site["band"]
    return (
        f"; {site['runs']} {kind}, {site['factor']:.3f} times what published runs say; "
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


def done(path: str, stopped: bool) -> str:
    """Where the measurements are."""
    begin = "Stopped; what was measured so far is in" if stopped else "Wrote"
    return f"{begin} {plain(path, 200)}"
