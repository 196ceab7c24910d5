"""What measured steps tell of a site: a factor on its speeds with a certainty, as a calibration.

The ratio of a measured to a foretold step is the site's own factor plus the scatter of single runs:
ln ratio = site + run, site ~ N(0, between), run ~ N(0, within). With n runs the posterior of the
site has weight w = between^2 / (between^2 + within^2 / n) on the mean of their ln ratios and
variance w within^2 / n; a further run scatters about it by within. It holds for runs of the same
model, chip and precision, and half of it for those of another stack: a step says nothing of other
models.
"""

import re
from dataclasses import field, replace
from math import exp, hypot, log, sqrt
from pathlib import Path

import numpy as np
import yaml
from scantling import catalogue
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_text
from scantling.base.records import fields_of, record
from scantling.base.units import GB
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import attention_kind, parameters
from scantling.design.design import Design
from scantling.endure.reliability import LOGGED, as_logged
from scantling.physics.calibration_file import RELATIVE, RELATIVE_MOST, headed, implausible, times
from scantling.physics.cases import PRECISIONS, Cases, devices
from scantling.physics.collectives import COLLECTIVES, volume
from scantling.physics.constants import PRIORS, gather
from scantling.physics.gather import stack_of
from scantling.physics.memory.chance import spread
from scantling.physics.step import COMPUTE, PARTS, rates, step_time
from scantling.runs.read import checked, read_named, to_runs
from scantling.verdict.assess import assess

from .collective_points import NAMES
from .found import number
from .measure.fit import constants_of, match
from .peaks import entry, moved, peak_bytes
from .reading import Reading, figure
from .rows import spoken
from .text import head

DEGREES = ("tp", "pp", "vpp", "cp", "ep", "dp", "micro_batch")
MEASURED = 0.02  # sd of the ln of a rate that a table of collectives shows; judgement
LEAST = 1e-3  # shares of a step that a calibration tells
MOST_POINTS = 100  # measured steps that it tells one by one


@record
class Point:
    """One measured step beside what the models foretell for it. Seconds, parameters."""

    case: Cases
    accelerator: str
    active: float
    precision: str
    measured_s: float | None
    foretold_s: float
    peak_bytes: float  # measured
    stack: str
    release: str  # of the software, where the log says it
    traced: dict  # what a trace of it says, see `of_trace`
    planned: dict = field(default_factory=dict)  # goodput of its design, and losses by cause


def one(value) -> float:
    """The number in a column of one row."""
    return float(np.ravel(value)[0])


def point_of(reading: Reading, case: Cases, accelerator: str, stack: str) -> Point:
    """The figures of a log beside what is foretold of a case, on an accelerator, with a stack."""
    tokens = one(case.job.global_batch) * one(case.job.seq_len) / one(devices(case.plan))
    rate = reading.tokens_per_s_per_device
    return Point(
        case=case,
        accelerator=accelerator,
        active=one(parameters(case.shape).active),
        precision=precision_of(case),
        measured_s=reading.step_s or (rate and tokens / rate),
        foretold_s=one(step_time(case).total),
        peak_bytes=(reading.peak_memory_gb or 0.0) * 2.0**30,
        stack=stack,
        release=reading.release or "",
        traced=of_trace(reading, case, catalogue.accelerator(accelerator)),
    )


def precision_of(case: Cases) -> str:
    """The word for the precision of a case."""
    return PRECISIONS[int(one(case.job.precision))]


def of_design(reading: Reading, design: Design) -> Point | None:
    """The step of a log beside that of a design whose run it was, or a smaller run of: devices,
    batch and plan are those that the log says."""
    if not told_by(reading):
        return None
    said = {
        f"{section}.{name}": value
        for section, names in spoken("site")["of_a_run"].items()
        for name, value in fields_of(reading, names).items()
        if value and not (section == "job" and design.job.phases)
    }
    other = said.get("cluster.devices", design.cluster.devices) != design.cluster.devices
    free = dict.fromkeys(("measured", "calibration", *["plan.dp"] * other))
    found = assess(design.change(free | said))
    if not found.phases:
        raise DesignError("--design", problem="has no plan that fits", allowed="the run of the log")
    point = point_of(
        reading,
        found.phases[found.resolved.main].case,
        found.resolved.cluster.accelerator.id,
        stack_of(found.resolved) or "",
    )
    plan = found.endurance
    return replace(point, planned={"goodput": plan.goodput, "badput": as_logged(plan.badput)})


def told_by(reading: Reading) -> float | None:
    """A figure that a constant can be told by: a step, a rate of tokens or a peak of memory."""
    return reading.step_s or reading.tokens_per_s_per_device or reading.peak_memory_gb


def chip_of(name: str | None):
    """The accelerator that a log names, by id, by alias, or as drivers do ("NVIDIA H100 80GB
    HBM3"); None where the catalogue has none."""
    size = re.search(r"(\d+) ?GB", name or "")
    told = match(name, float(size[1]) * GB) if size else None
    for word in (told, name, *(name or "").split()):
        try:
            return catalogue.accelerator(word)
        except DesignError:
            continue
    return None


def of_log(reading: Reading) -> Point | None:
    """The step of a log beside the foretold one; None where the log does not say enough, or names
    no model or accelerator of the catalogue."""
    import pandas as pd

    if not told_by(reading) or any(
        getattr(reading, name) is None for name in spoken("site")["needed"]
    ):
        return None
    chip = chip_of(reading.accelerator)
    if chip is None:
        return None
    row = {
        "id": "log",
        "model": reading.model,
        "accelerator": chip.id,
        "n_devices": reading.devices,
        "seq_len": reading.seq_len,
        "global_batch_seqs": reading.global_batch,
        "precision": reading.precision or "bf16",
        "stack": spoken("site")["stacks"].get(reading.format, ""),
        **fields_of(reading, ("tp", "pp", "vpp", "cp", "ep", "micro_batch")),
    }
    if reading.model not in models():
        heads, groups = (reading.shape.get(n, 0) for n in ("heads", "kv_heads"))
        shape = {spoken("site")["columns"].get(n, n): v for n, v in reading.shape.items()}
        row |= shape | {"attention": attention_kind(heads, groups or heads)}
    runs = to_runs(checked(pd.DataFrame([row]), Path()))
    return runs.cases and point_of(reading, runs.cases, chip.id, str(runs.stacks[0]))


def is_table(path) -> bool:
    """Whether a file is a table of runs with measured rates or peaks of memory."""
    top = head(path, 1 << 16) if Path(path).is_file() else b""
    return b"measured_tokens_per_s_per_device" in top or b"measured_peak_memory_gb" in top


def of_table(path) -> tuple:
    """The measured rows of a table of runs, alone and beside what is foretold.

    Raises DesignError."""
    frame = read_named(path)
    readings = []
    points = []
    runs = to_runs(frame)
    for i, row in enumerate(frame[runs.ready].to_dict("records")):
        rate = number(row.get("measured_tokens_per_s_per_device"))
        peak = max(0.0, number(row.get("measured_peak_memory_gb"))) * GB
        if not rate > 0 and not peak:
            continue
        c = runs.cases.take(slice(i, i + 1))
        chip = str(runs.chips[i])
        tokens = one(c.job.global_batch) * one(c.job.seq_len)
        reading = Reading(
            file=f"{Path(path).name}: {plain(row['id'], 80)}",
            format="runs",
            framework=plain(row["stack"], 80),
            step_s=figure(tokens / one(devices(c.plan)) / rate),
            tokens_per_s_per_device=figure(rate),
            peak_memory_gb=figure(peak / 2.0**30) if peak else None,
            accelerator=chip,
            model=plain(row["model"], 80),
            seq_len=int(one(c.job.seq_len)),
            global_batch=int(one(c.job.global_batch)),
            precision=precision_of(c),
            **{n: int(one(getattr(c.plan, n))) for n in DEGREES},
        )
        readings.append(reading)
        points.append(point_of(reading, c, chip, str(runs.stacks[i])))
    return readings, points


def posterior(points: list, ratios: list, between: float, within: float) -> tuple:
    """(ln factor of the site, weight of what was measured, what it holds for: runs, factor, 80 %
    band of a further run, model and precision) from measured / foretold of each point."""
    noise = within**2 / len(ratios)
    weight = between**2 / (between**2 + noise)
    factor = float(weight * np.mean(np.log(ratios)))
    half = spoken("site")["z80"] * sqrt(weight * noise + within**2)
    return (
        factor,
        weight,
        {
            "runs": len(ratios),
            "factor": round(exp(factor), 4),
            "band": [round(exp(-half), 4), round(exp(half), 4)],
            "active_parameters": round(points[0].active),
            "precision": points[0].precision,
        },
    )


def speeds(now: dict, case: Cases, target_s: float) -> dict:
    """{constant: value} with all speeds `now` of a chip moved by one factor, so that the step of a
    case takes `target_s`. A speed stays below its peak; what then is left over stays."""
    most = {n: RELATIVE_MOST if n in RELATIVE else 1.0 for n in now}  # that a file may give

    def at(factor):
        value = {n: min(v * factor, max(v, most[n])) for n, v in now.items()}
        return value, one(step_time(times(case, {n: value[n] / v for n, v in now.items()})).total)

    factor = 1.0
    for _ in range(40):  # seconds fall a little slower than 1 / factor
        value, seconds = at(factor)
        factor = min(3.0, max(1 / 3, factor * seconds / target_s))
    return value


def timed(reading: Reading, chip) -> list:
    """Rows of a table of collectives as timed messages: bus bandwidth is what passes each link over
    the time (`collectives.volume`; nccl-tests, PERFORMANCE.md)."""
    ranks = reading.devices or 0
    out = []
    each = ranks // reading.nodes if reading.nodes else catalogue.devices_per_node(chip.id)
    for row in reading.collectives if ranks > 1 else ():
        op = NAMES.get(row["test"], row["test"])
        rate = row["busbw_gbytes_per_s"] * GB
        size = row["bytes"] or 0
        if op in COLLECTIVES and rate > 0 and size > 0:
            point = {
                "op": op,
                "bytes": size,
                "seconds": float(volume(op, ranks)) * size / rate,
                "ranks": ranks,
                "ranks_per_node": min(each, ranks),
            }
            out.append(point)
    return out


def of_tables(readings: list, chip=None) -> tuple:
    """(accelerator, {constant: entry}) of the first table of collectives that shows links of an
    accelerator of the catalogue (of `chip`)."""
    for reading in (r for r in readings if r.collectives):
        own = chip_of(reading.accelerator)
        if own and chip in (None, own):
            found, _ = constants_of({"collectives": timed(reading, own)}, own)
            if found:
                usual = gather(own.family, own.id, "")
                return own, {
                    n: everywhere(c["value"], getattr(usual, n), MEASURED) for n, c in found.items()
                }
    return chip, {}


def of_trace(reading: Reading, case: Cases, chip) -> dict:
    """{constant: {value, was, sd_ln, elsewhere}} of the kernels of a trace beside the parts of the
    step that is foretold: a rate by foretold / measured, a share that is exposed by the inverse,
    both as far as the prior leaves them open against the scatter of a few steps."""
    told = spoken("site")["trace"]
    step = step_time(case)
    again = 1 + one(step.recompute) / sum(one(getattr(step, name)) for name in COMPUTE)
    out = {}
    for name, part in told["constants"].items() if reading.kernels else ():
        there = one(getattr(step, part)) * (again if part in COMPUTE else 1)
        there += one(step.logits) if part == "gemm" else 0
        here = reading.kernels.get(part, 0.0)
        ratio = there / here if here > 0 and there > 0 else 1.0
        open_ = hypot(PRIORS[name].sd, *PRIORS[name].by.values())
        weight = open_**2 / (open_**2 + told["within"] ** 2)
        usual = one(getattr(case.constants, name))
        value = usual * (ratio if part in COMPUTE else 1 / ratio) ** weight
        if ratio != 1.0 and not implausible(name, value, chip):
            out[name] = everywhere(value, usual, open_ * sqrt(1 - weight))
    return out


def everywhere(value: float, *rest) -> dict:
    """An entry that holds for every model, whatever measured steps of one make of it."""
    return entry(value, *rest) | {"elsewhere": round(value, 6)}


def calibration(points: list, readings: list = ()) -> dict:
    """The calibration file of a site: constants that tables of collectives among `readings` and
    traces show, then those that measured steps and peaks of memory of one model, chip, precision
    and stack move (of the set with the most points). No name, path or text of a log enters it.
    Raises DesignError where nothing says enough."""
    sets = {}
    for p in points:
        key = p.accelerator, p.precision, round(log(p.active) * 20), p.stack
        sets.setdefault(key, []).append(p)
    chosen = max(sets.values(), key=len, default=[])
    own = catalogue.accelerator(chosen[0].accelerator) if chosen else None
    chip, constants = of_tables(readings, own)
    for p in chosen:
        constants |= p.traced
    data = {}
    steps = [p for p in chosen if p.measured_s and not p.traced]
    if steps:
        data["steps"], moved_ = of_steps(steps, chip, constants)
        constants |= {n: constants.get(n, {}) | each for n, each in moved_.items()}
    peaks = [p for p in chosen if p.peak_bytes > 0]
    if peaks:
        data["peaks"], moved_ = of_peaks(peaks)
        constants |= moved_
    clocked = [r for r in readings if r.badput]
    if clocked:
        data["goodput"] = {
            "logs": len(clocked),
            "goodput": figure(np.mean([r.goodput for r in clocked])),
            "badput": {n: figure(np.mean([r.badput[n] for r in clocked])) for n in LOGGED},
        }
    if not constants:
        raise DesignError(
            "-o",
            problem="no log says enough for a calibration",
            allowed=(
                "logs with step time or peak memory, model, accelerator, devices, sequence length, "
                "batch, plan; --design FILE says what they lack; or a table of collectives"
            ),
        )
    return headed(chip, name=chip.name) | {"constants": constants} | data


def of_steps(points: list, chip, known: dict) -> tuple:
    """What measured steps hold for, and {constant: value, was, sd_ln}; `known`: what tables and
    traces say, which holds for every model."""
    usual = gather(chip.family, chip.id, "")
    own = {n: c["value"] / float(getattr(usual, n)) for n, c in known.items()}
    told = spoken("site")
    now = {n: float(getattr(usual, n)) * own.get(n, 1.0) for n in told["speeds"]}
    cases = [times(p.case, own) for p in points]
    steps = [step_time(case) for case in cases]
    factor, weight, held = posterior(
        points,
        [p.measured_s / one(step.total) for p, step in zip(points, steps)],
        told["between"],
        told["within"],
    )
    foretold = one(steps[0].total)
    moved_ = speeds(now, cases[0], foretold * exp(factor))
    shares = {name: seconds / foretold for name, seconds in seconds_of(steps[0]).items()}
    held |= {
        "shares": {name: round(s, 4) for name, s in shares.items() if s > LEAST},
        "points": [seen(p) for p in points[:MOST_POINTS]],
        "stack": points[0].stack,
        **({"release": points[0].release} if points[0].release else {}),
    }
    return held, {
        name: entry(value, now[name], told["between"] * sqrt(1 - weight))
        for name, value in moved_.items()
    }


def seen(point: Point) -> dict:
    """A measured step as charts show it."""
    mfu = one(rates(point.case, point.measured_s)[2])
    count = int(one(devices(point.case.plan)))
    return {"devices": count, "step_s": figure(point.measured_s), "mfu": figure(mfu)}


def of_peaks(points: list) -> tuple:
    """The same of measured peaks of memory."""
    factor, weight, held = posterior(
        points,
        [p.peak_bytes / peak_bytes(p.case) for p in points],
        spread(points[0].stack),
        spoken("site")["peaks"]["within"],
    )
    return held, moved(points[0].case, factor, weight)


def seconds_of(step) -> dict:
    """{part of a step: its seconds}."""
    return {name: one(getattr(step, name)) for name in PARTS}


def write(points: list, path: str, readings: list = ()) -> dict:
    """Write the calibration of a site; returns it."""
    data = calibration(points, readings)
    write_text(path, yaml.safe_dump(data, sort_keys=False), force=True)
    return data
