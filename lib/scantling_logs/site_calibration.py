"""What measured steps, peaks of memory, tables of collectives and traces tell of a site, as a
calibration.

Steps: `physics.learned`, of all runs on one accelerator together, whatever their model, plan, size
and stack. Tables and traces: constants of their own. Peaks: ln(measured / estimated) = site + run,
site ~ N(0, between), run ~ N(0, within); with n runs the site's part has weight
w = between^2 / (between^2 + within^2 / n) on the mean and variance w within^2 / n.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.files import write_text
from scantling.base.records import Known
from scantling.base.units import GB
from scantling.catalogue.hardware import Accelerator
from scantling.endure.cost import Z80
from scantling.endure.reliability import LOGGED
from scantling.physics.calibration_file import MOST_RUNS, OTHER_MODEL, Override, headed, times
from scantling.physics.cases import devices
from scantling.physics.collectives import COLLECTIVES, volume
from scantling.physics.constants import gather
from scantling.physics.learned import Learned, Marks, Weighed, fewer, fitted, priors
from scantling.physics.memory.chance import spread
from scantling.physics.step import causal_share, rates, step_time

from .collective_points import NAMES
from .constant import Moved, moved
from .log_reading import Reading, figure
from .measure.constants_fit import constants_of
from .measure.points import CollectivePoint, Curves
from .peaks import WITHIN as PEAKS_WITHIN, moved_by_peaks, peak_bytes
from .point import Point, Unused, chip_of
from .step_parts import one
from .text import head

TABLE_SD = 0.02  # sd of the ln of a rate that a table of collectives shows; judgement
MOST_POINTS = 100  # measured steps that a calibration tells one by one
MOST_KEPT = 128  # runs that it keeps, each standing for those that are nearest to it
ODD = 0.5  # chance from which a row is said to contradict the others


class Posterior(NamedTuple):
    """What is believed of a site after some peaks: ln of its factor, the weight of what was
    measured, and half the 80 % band of ln of a further run."""

    ln_factor: float
    weight: float
    ln_band: float


class Odd(NamedTuple):
    """A row that contradicts the others: measured over what they say, and how many standard
    deviations that is."""

    file: str
    ratio: float
    deviations: float


class SiteFit(NamedTuple):
    """A calibration of a site, its constants before and after, the steps and peaks of memory that
    it was learnt from, what was left out, and the odd rows."""

    calibration: dict[str, Any]
    constants: dict[str, Moved]
    steps: list[Point]
    peaks: list[Point]
    unused: list[Unused]
    odd: list[Odd]


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
                name: moved(entry["value"], one(usual[name]), TABLE_SD)
                for name, entry in constants.items()
            }
    return chip, {}


def is_measured(path: str | Path) -> bool:
    """Whether a file is one that `scantling measure` wrote."""
    path = Path(path)
    return path.is_file() and b"scantling_calibration:" in head(path, 1 << 12)


def of_measurements(
    files: Sequence[Override], chip: Accelerator | None
) -> tuple[Accelerator | None, dict[str, Moved]]:
    """(accelerator, constants) of files of `scantling measure`: of a constant that several of them
    have the geometric mean. Raises DesignError where they are of several accelerators."""
    values: dict[str, list[float]] = {}
    for file in files:
        chip = chip or catalogue.accelerator(file.accelerator)
        file.check(chip, file.path)
        for name, value in file.constants.items():
            values.setdefault(name, []).append(value)
    if chip is None:
        return None, {}
    usual = vars(gather(chip.family, chip.id, ""))
    return chip, {
        name: moved(exp(float(np.mean(np.log(of_name)))), one(usual[name]), TABLE_SD)
        for name, of_name in values.items()
        if name in usual
    }


def calibration(points: Sequence[Point], readings: Sequence[Reading] = ()) -> dict[str, Any]:
    """The calibration file of a site, of `site_fit`."""
    return site_fit(points, readings).calibration


def site_fit(
    points: Sequence[Point], readings: Sequence[Reading] = (), files: Sequence[Override] = ()
) -> SiteFit:
    """What measured runs of one accelerator, the one with the most of them, tables of collectives
    among `readings`, traces and files of `scantling measure` tell of a site. No name, path or text
    of a log enters its calibration. Raises DesignError where nothing says enough."""
    here, unused = of_one_accelerator(points)
    chip = catalogue.accelerator(here[0].accelerator) if here else None
    chip, constants = of_tables(readings, chip)
    chip, benchmarks = of_measurements(files, chip)
    constants |= benchmarks
    for point in here:
        constants |= point.traced
    data: dict[str, Any] = {}
    odd: list[Odd] = []
    told: dict[str, Moved] = {}
    steps = [point for point in here if point.measured_s and not point.traced]
    if len(steps) > MOST_RUNS:
        chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_RUNS).astype(int)).tolist()
        why = f"one of {len(steps)} steps, of which {MOST_RUNS} are learnt from"
        unused += [Unused(p.file, why) for i, p in enumerate(steps) if i not in chosen]
        steps = [steps[i] for i in chosen]
    if steps and chip is not None:
        site, weight = of_steps(steps, chip, constants)
        data["steps"], data["site"] = summary(steps, site), kept(fewer(site, MOST_KEPT))
        told = by_steps(site, chip, constants)
        odd = odd_rows(steps, weight)
    with_peak = [point for point in here if point.peak_bytes > 0]
    peaks = largest_set(with_peak)
    why = "its peak of memory: those of one model, precision and stack tell, the ones with the most"
    unused += [Unused(point.file, why) for point in with_peak if point not in peaks]
    if peaks:
        data["peaks"], by_peaks = of_peaks(peaks)
        constants |= by_peaks
    goodput = of_clocks([reading for reading in readings if reading.badput])
    if goodput:
        data["goodput"] = goodput
    if chip is None or not (constants or steps):
        raise DesignError(
            "-o",
            problem="no log says enough for a calibration",
            allowed=(
                "logs with step time or peak memory, model, accelerator, devices, sequence length, "
                "batch, plan; --design FILE says what they lack, --devices N their devices; or a "
                "table of collectives"
            ),
        )
    entries = {name: constant.as_entry() for name, constant in constants.items()}
    data = headed(chip, name=chip.name) | {"constants": entries} | data
    return SiteFit(data, constants | told, steps, peaks, unused, odd)


def of_one_accelerator(points: Sequence[Point]) -> tuple[list[Point], list[Unused]]:
    """The points of the accelerator with the most of them, and the others."""
    most = Counter(point.accelerator for point in points).most_common(1)
    chip = most[0][0] if most else ""
    here = [point for point in points if point.accelerator == chip]
    why = f"a calibration is of one accelerator, and {len(here)} runs are of {chip}"
    others = [point for point in points if point.accelerator != chip]
    return here, [Unused(p.file, f"{p.accelerator}: {why}") for p in others]


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
) -> tuple[Learned, Weighed]:
    """What measured steps tell of a site, and how far they bear one another out; `known`: what
    tables and traces say, which is open by their own spread."""
    usual = vars(gather(chip.family, chip.id, ""))
    first = {name: constant.value / one(usual[name]) for name, constant in known.items()}
    open_by = {n: known[n].sd_ln if n in known else sd for n, sd in priors().constants.items()}

    def ln_step(factors: Mapping[str, float]) -> Array:
        both = {n: first.get(n, 1.0) * factors.get(n, 1.0) for n in {*first, *factors}}
        return np.log([one(step_time(times(p.case, both)).total) for p in points])

    runs = Marks(*(np.concatenate(column) for column in zip(*(p.marks for p in points))))
    measured = np.log([p.measured_s or nan for p in points])
    return fitted(tuple(open_by), np.array([*open_by.values()]), runs, measured, ln_step)


def by_steps(site: Learned, chip: Accelerator, known: Mapping[str, Moved]) -> dict[str, Moved]:
    """The constants of a site before its steps and after; `known`: those that tables and traces
    say, which the steps move further."""
    usual = vars(gather(chip.family, chip.id, ""))
    out = {}
    for name, factor in site.factors.items():
        was = one(usual[name])
        before = known[name].value if name in known else was
        out[name] = moved(before * factor, was, site.left_open[name])
    return out


def summary(points: Sequence[Point], site: Learned) -> dict[str, Any]:
    """What charts and sentences say of measured steps: how many, their factor on what published
    runs say, and the 80 % band of a further run like them."""
    told = site.ln_ratio - site.scatter * site.pull  # what the posterior says of each
    _, after = site.variances(site.marks)
    half = Z80 * site.spread * sqrt(float(np.median(after)))
    about: dict[str, Any] = {
        "runs": len(points),
        "factor": round(exp(float(np.median(told))), 4),
        "band": [round(exp(-half), 4), round(exp(half), 4)],
        "active_parameters": round(points[0].active),
        "precision": points[0].precision,
        "points": [charted(point) for point in points[:MOST_POINTS]],
        "stack": points[0].stack,
    }
    if points[0].release:
        about["release"] = points[0].release
    return about


def kept(site: Learned) -> dict[str, Any]:
    """What a calibration file keeps of a site."""
    runs = zip(
        site.ln_ratio,
        site.scatter,
        site.marks.slopes,
        site.marks.sizes,
        site.marks.codes,
        site.marks.shares,
        site.marks.stacks,
    )
    return {
        "spread": round(site.spread, 4),
        "constants": [*site.names],
        "open": site.sd.tolist(),
        "runs": [
            {
                "ln_ratio": round(float(ln_ratio), 6),
                "scatter": float(f"{scatter:.5g}"),
                "slopes": np.round(slopes, 5).tolist(),
                "sizes": np.round(sizes, 4).tolist(),
                "codes": np.round(codes, 4).tolist(),
                "shares": np.round(shares, 5).tolist(),
                "stack": str(stack),
            }
            for ln_ratio, scatter, slopes, sizes, codes, shares, stack in runs
        ],
    }


def odd_rows(points: Sequence[Point], weight: Weighed) -> list[Odd]:
    """The rows that contradict the others by more than the noise of a sound one."""
    if len(points) < 3:
        return []
    return [
        Odd(point.file, exp(ratio), abs(away))
        for point, chance, away, ratio in zip(points, weight.odd, weight.apart, weight.ln_ratio)
        if chance > ODD
    ]


def charted(point: Point) -> dict[str, Any]:
    """A measured step as charts show it, its MFU by both counts of attention."""
    mfu = one(rates(point.case, point.measured_s or nan).mfu)
    return {
        "devices": int(one(devices(point.case.plan))),
        "step_s": figure(point.measured_s),
        "mfu": figure(mfu),
        "mfu_causal": figure(mfu * one(causal_share(point.case))),
    }


def of_peaks(points: Sequence[Point]) -> tuple[dict[str, Any], dict[str, Moved]]:
    """The same of measured peaks of memory."""
    ratios = [point.peak_bytes / peak_bytes(point.case) for point in points]
    site = posterior(ratios, spread(), PEAKS_WITHIN)
    return domain_of(points, site), moved_by_peaks(points[0].case, site.ln_factor, site.weight)


def write(fit: SiteFit, path: str) -> None:
    """Write the calibration of a site."""
    text = yaml.safe_dump(fit.calibration, sort_keys=False, default_flow_style=None, width=1000)
    write_text(path, text, force=True)


def _mean(values: Sequence[Known]) -> Known:
    known = [value for value in values if value is not None]
    return figure(float(np.mean(known)))
