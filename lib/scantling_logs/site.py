"""What measured steps tell of a site: a factor on its speeds with a certainty, as a calibration.

The ratio of a measured to a foretold step is the site's own factor plus the scatter of single runs:
ln ratio = site + run, site ~ N(0, between), run ~ N(0, within). With n runs the posterior of the
site has weight w = between^2 / (between^2 + within^2 / n) on the mean of their ln ratios and
variance w within^2 / n; a further run scatters about it by within. It holds for runs of the same
model, chip and precision, and half of it for those of another stack: a step says nothing of other
models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import yaml
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.files import write_text
from scantling.base.records import Known
from scantling.base.units import GB
from scantling.catalogue.hardware import Accelerator
from scantling.endure.cost import Z80
from scantling.endure.reliability import LOGGED
from scantling.physics.calibration_file import RELATIVE, RELATIVE_MOST, headed, times
from scantling.physics.cases import Cases, devices
from scantling.physics.collectives import COLLECTIVES, volume
from scantling.physics.constants import gather
from scantling.physics.memory.chance import spread
from scantling.physics.step import rates, step_time

from .collective_points import NAMES
from .constant import Moved, moved, moved_everywhere
from .measure.constants_fit import constants_of
from .measure.points import CollectivePoint, Curves
from .peaks import WITHIN as PEAKS_WITHIN, moved_by_peaks, peak_bytes
from .point import Point, chip_of
from .reading import Reading, figure
from .step_parts import one, seconds_of

# How far a site lies from what published runs foretell, and runs of one site from each other.
# sd of ln(measured / foretold step) of a source that the constants have not seen; judgement:
# strangers' median error is about 13 %, not a fitted sd
BETWEEN = 0.13
# sd of one run about its site's mean, same model, chip and precision: 1,111 published rows in 104
# groups of source, model, chip and precision, 10th to 90th percentile of pairs -0.11 to +0.14
WITHIN = 0.07
OTHER_MODEL = 0.05  # models whose active parameters differ by more are other models; judgement
TABLE_SD = 0.02  # sd of the ln of a rate that a table of collectives shows; judgement
# what the factor of a site's steps moves
SPEEDS = (
    "gemm",
    "gemm_fp8",
    "hbm_share",
    "attention",
    "scale_up_share",
    "scale_out_share",
    "ep_up_share",
)
LEAST_SHARE = 1e-3  # shares of a step that a calibration tells
MOST_POINTS = 100  # measured steps that it tells one by one


class Posterior(NamedTuple):
    """What is believed of a site after some runs: ln of its factor, the weight of what was
    measured, and half the 80 % band of ln of a further run."""

    ln_factor: float
    weight: float
    ln_band: float


def posterior(ratios: Sequence[float], between: float, within: float) -> Posterior:
    """What measured / foretold of some runs tells of their site."""
    noise = within**2 / len(ratios)
    weight = between**2 / (between**2 + noise)
    ln_factor = float(weight * np.mean(np.log(ratios)))
    return Posterior(ln_factor, weight, Z80 * sqrt(weight * noise + within**2))


def domain_of(points: Sequence[Point], site: Posterior) -> dict[str, Any]:
    """What a calibration file says of a posterior: runs, factor, 80 % band of a further run, and
    the model and precision that it holds for."""
    return {
        "runs": len(points),
        "factor": round(exp(site.ln_factor), 4),
        "band": [round(exp(-site.ln_band), 4), round(exp(site.ln_band), 4)],
        "active_parameters": round(points[0].active),
        "precision": points[0].precision,
    }


def speeds(now: Mapping[str, float], case: Cases, target_s: float) -> dict[str, float]:
    """{constant: value} with all speeds `now` of a chip moved by one factor, so that the step of a
    case takes `target_s`. A speed stays below its peak; what then is left over stays."""
    values = dict(now)
    factor = 1.0
    for _ in range(40):  # seconds fall a little slower than 1 / factor
        values = {name: _faster(name, value, factor) for name, value in now.items()}
        case_then = times(case, {name: values[name] / value for name, value in now.items()})
        seconds = one(step_time(case_then).total)
        factor = min(3.0, max(1 / 3, factor * seconds / target_s))
    return values


def timed(reading: Reading, chip: Accelerator) -> list[CollectivePoint]:
    """Rows of a table of collectives as timed messages: bus bandwidth is what passes each link over
    the time (`collectives.volume`; nccl-tests, PERFORMANCE.md)."""
    ranks = reading.devices or 0
    if ranks <= 1:
        return []
    if reading.nodes:
        per_node = ranks // reading.nodes
    else:
        per_node = catalogue.devices_per_node(chip.id)
    points = []
    for row in reading.collectives:
        op = NAMES.get(row.test, row.test)
        rate = row.busbw_gbytes_per_s * GB
        size = row.bytes or 0
        if op in COLLECTIVES and rate > 0 and size > 0:
            point = CollectivePoint(
                op=op,
                ranks=ranks,
                ranks_per_node=min(per_node, ranks),
                bytes=size,
                seconds=float(volume(op, ranks)) * size / rate,
            )
            points.append(point)
    return points


def of_tables(
    readings: Sequence[Reading], chip: Accelerator | None = None
) -> tuple[Accelerator | None, dict[str, Moved]]:
    """(accelerator, constants) of the first table of collectives that shows links of an accelerator
    of the catalogue (of `chip`)."""
    for reading in readings:
        printed = chip_of(reading.accelerator) if reading.collectives else None
        if printed is None or (chip is not None and printed != chip):
            continue
        constants, _ = constants_of(Curves(collectives=timed(reading, printed)), printed)
        if constants:
            usual = vars(gather(printed.family, printed.id, ""))
            return printed, {
                name: moved_everywhere(entry["value"], one(usual[name]), TABLE_SD)
                for name, entry in constants.items()
            }
    return chip, {}


def calibration(points: Sequence[Point], readings: Sequence[Reading] = ()) -> dict[str, Any]:
    """The calibration file of a site: constants that tables of collectives among `readings` and
    traces show, then those that measured steps and peaks of memory of one model, chip, precision
    and stack move (of the set with the most points). No name, path or text of a log enters it.
    Raises DesignError where nothing says enough."""
    alike = largest_set(points)
    chip = catalogue.accelerator(alike[0].accelerator) if alike else None
    chip, constants = of_tables(readings, chip)
    for point in alike:
        constants |= point.traced
    data: dict[str, Any] = {}
    steps = [point for point in alike if point.measured_s and not point.traced]
    if steps and chip is not None:
        data["steps"], by_steps = of_steps(steps, chip, constants)
        for name, constant in by_steps.items():
            known = constants.get(name)
            elsewhere = known.elsewhere if known else None
            constants[name] = replace(constant, elsewhere=elsewhere)
    peaks = [point for point in alike if point.peak_bytes > 0]
    if peaks:
        data["peaks"], by_peaks = of_peaks(peaks)
        constants |= by_peaks
    goodput = of_clocks([reading for reading in readings if reading.badput])
    if goodput:
        data["goodput"] = goodput
    if not constants or chip is None:
        raise DesignError(
            "-o",
            problem="no log says enough for a calibration",
            allowed=(
                "logs with step time or peak memory, model, accelerator, devices, sequence length, "
                "batch, plan; --design FILE says what they lack; or a table of collectives"
            ),
        )
    entries = {name: constant.as_entry() for name, constant in constants.items()}
    return headed(chip, name=chip.name) | {"constants": entries} | data


def largest_set(points: Sequence[Point]) -> list[Point]:
    """The points of the model, chip, precision and stack with the most of them."""
    sets: dict[tuple[str, str, int, str], list[Point]] = {}
    for point in points:
        size = round(log(point.active) / OTHER_MODEL)
        alike = (point.accelerator, point.precision, size, point.stack)
        sets.setdefault(alike, []).append(point)
    return max(sets.values(), key=len, default=[])


def of_clocks(readings: Sequence[Reading]) -> dict[str, Any]:
    """Mean goodput of the logs with a clock, and what was lost by cause; nothing without one."""
    if not readings:
        return {}
    return {
        "logs": len(readings),
        "goodput": _mean([reading.goodput for reading in readings]),
        "badput": {cause: _mean([r.badput[cause] for r in readings]) for cause in LOGGED},
    }


def of_steps(
    points: Sequence[Point], chip: Accelerator, known: Mapping[str, Moved]
) -> tuple[dict[str, Any], dict[str, Moved]]:
    """What measured steps hold for, and the constants that they move; `known`: what tables and
    traces say, which holds for every model."""
    usual = vars(gather(chip.family, chip.id, ""))
    factors = {name: constant.value / one(usual[name]) for name, constant in known.items()}
    now = {name: one(usual[name]) * factors.get(name, 1.0) for name in SPEEDS}
    cases = [times(point.case, factors) for point in points]
    steps = [step_time(case) for case in cases]
    ratios = [(p.measured_s or 0.0) / one(step.total) for p, step in zip(points, steps)]
    site = posterior(ratios, BETWEEN, WITHIN)
    foretold_s = one(steps[0].total)
    after = speeds(now, cases[0], foretold_s * exp(site.ln_factor))
    shares = {part: seconds / foretold_s for part, seconds in seconds_of(steps[0]).items()}
    holds = domain_of(points, site) | {
        "shares": {part: round(share, 4) for part, share in shares.items() if share > LEAST_SHARE},
        "points": [charted(point) for point in points[:MOST_POINTS]],
        "stack": points[0].stack,
    }
    if points[0].release:
        holds["release"] = points[0].release
    sd_ln = BETWEEN * sqrt(1 - site.weight)
    return holds, {name: moved(value, now[name], sd_ln) for name, value in after.items()}


def charted(point: Point) -> dict[str, Any]:
    """A measured step as charts show it."""
    mfu = one(rates(point.case, point.measured_s or nan)[2])
    count = int(one(devices(point.case.plan)))
    return {"devices": count, "step_s": figure(point.measured_s), "mfu": figure(mfu)}


def of_peaks(points: Sequence[Point]) -> tuple[dict[str, Any], dict[str, Moved]]:
    """The same of measured peaks of memory."""
    ratios = [point.peak_bytes / peak_bytes(point.case) for point in points]
    site = posterior(ratios, spread(), PEAKS_WITHIN)
    return domain_of(points, site), moved_by_peaks(points[0].case, site.ln_factor, site.weight)


def write(points: Sequence[Point], path: str, readings: Sequence[Reading] = ()) -> dict[str, Any]:
    """Write the calibration of a site; returns it."""
    data = calibration(points, readings)
    write_text(path, yaml.safe_dump(data, sort_keys=False), force=True)
    return data


def _faster(name: str, speed: float, factor: float) -> float:
    """A speed times a factor, up to the peak that a file may give."""
    peak = RELATIVE_MOST if name in RELATIVE else 1.0
    return min(speed * factor, max(speed, peak))


def _mean(values: Sequence[Known]) -> Known:
    known = [value for value in values if value is not None]
    return figure(float(np.mean(known)))
