"""What measured steps tell of a site: a factor on its speeds with a certainty, as a calibration.

The ratio of a measured to a foretold step is the site's own factor plus the scatter of single runs:
ln ratio = site + run, site ~ N(0, between), run ~ N(0, within). With n runs the posterior of the
site has weight w = between^2 / (between^2 + within^2 / n) on the mean of their ln ratios and
variance w within^2 / n; a further run scatters about it by within. It holds for runs of the same
model, chip and precision: a step says nothing of other models.
"""

import math
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import yaml

from .. import catalogue
from ..base.errors import DesignError, plain
from ..base.files import write_text
from ..base.records import record
from ..base.units import GB
from ..catalogue.models.shape import parameters
from ..design.design import Design
from ..evidence.calibrate.collectives import NAMES
from ..evidence.measure.fit import constants_of, match
from ..evidence.runs import checked, read_named, to_runs
from ..physics.calibration_file import RELATIVE, RELATIVE_MOST, SPEAKS, VERSION
from ..physics.cases import PRECISIONS, Cases, devices
from ..physics.collectives import COLLECTIVES, volume
from ..physics.constants import gather
from ..physics.step import PARTS, step_time
from ..verdict.assess import assess
from .reading import Reading
from .rows import spoken
from .text import head

SPEEDS = tuple(name for name in SPEAKS if not name.endswith("_s"))
DEGREES = ("tp", "pp", "vpp", "cp", "ep", "dp", "micro_batch")
LEAST = 1e-3  # shares of a step that a calibration tells
NEEDED = ("model", "accelerator", "seq_len", "global_batch", "tp", "micro_batch", "devices")


@record
class Point:
    """One measured step beside what the models foretell for it. Seconds, parameters."""

    case: Cases
    accelerator: str
    active: float
    precision: str
    measured_s: float
    foretold_s: float


def one(value) -> float:
    """The number in a column of one row."""
    return float(np.ravel(value)[0])


def point_of(
    case: Cases,
    accelerator: str,
    measured_s: float,
) -> Point:
    """A measured step beside the foretold one."""
    return Point(
        case=case,
        accelerator=accelerator,
        active=one(parameters(case.shape).active),
        precision=PRECISIONS[int(one(case.job.precision))],
        measured_s=measured_s,
        foretold_s=one(step_time(case).total),
    )


def of_design(reading: Reading, design: Design) -> Point | None:
    """The step of a log beside that of a design whose run it was; the log's plan is pinned."""
    if not reading.step_s:
        return None
    data = yaml.safe_load(design.to_yaml())
    said = {n: getattr(reading, n) for n in ("tp", "pp", "cp", "ep", "micro_batch")}
    data["plan"] = {n: v for n, v in said.items() if v} | (data.get("plan") or {})
    if reading.devices:
        data["cluster"]["devices"] = reading.devices
    data.pop("measured", None)
    data.pop("calibration", None)
    found = assess(Design.from_data(data))
    if not found.phases:
        raise DesignError(
            "--design",
            problem="has no plan that fits",
            allowed="the run of the log",
        )
    chosen = found.phases[found.resolved.main]
    return point_of(
        chosen.case,
        found.resolved.cluster.accelerator.id,
        reading.step_s,
    )


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

    if not reading.step_s or any(getattr(reading, name) is None for name in NEEDED):
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
        **{n: getattr(reading, n) for n in ("tp", "pp", "vpp", "cp", "ep", "micro_batch")},
    }
    runs = to_runs(checked(pd.DataFrame([row]), Path()))
    return (
        None
        if runs.cases is None
        else point_of(
            runs.cases,
            chip.id,
            reading.step_s,
        )
    )


def is_table(path) -> bool:
    """Whether a file is a table of runs with measured rates."""
    return Path(path).is_file() and b"measured_tokens_per_s_per_device" in head(path, 1 << 16)


def of_table(path) -> tuple[list[Reading], list[Point]]:
    """The measured rows of a table of runs, alone and beside what is foretold.

    Raises DesignError."""
    frame = read_named(path)
    readings = []
    points = []
    runs = to_runs(frame)
    for i, row in enumerate(frame[runs.ready].to_dict("records")):
        rate = row["measured_tokens_per_s_per_device"]
        if not rate > 0:
            continue
        c = runs.cases.take(slice(i, i + 1))
        point = point_of(
            c,
            str(runs.chips[i]),
            (one(c.job.global_batch) * one(c.job.seq_len) / one(devices(c.plan))) / rate,
        )
        points.append(point)
        readings.append(
            Reading(
                file=f"{Path(path).name}: {plain(str(row['id']), 80)}",
                format="runs",
                framework=plain(str(row["stack"]), 80),
                step_s=point.measured_s,
                tokens_per_s_per_device=float(rate),
                accelerator=point.accelerator,
                model=plain(str(row["model"]), 80),
                seq_len=int(one(c.job.seq_len)),
                global_batch=int(one(c.job.global_batch)),
                precision=point.precision,
                **{n: int(one(getattr(c.plan, n))) for n in DEGREES},
            )
        )
    return readings, points


def posterior(ratios: np.ndarray) -> tuple[float, float, float]:
    """(ln factor of the site, its sd, half width of the 80 % band of a further run's ln step)."""
    s = spoken("site")
    noise = s["within"] ** 2 / ratios.size
    weight = s["between"] ** 2 / (s["between"] ** 2 + noise)
    variance = weight * noise
    return (
        float(weight * np.mean(np.log(ratios))),
        math.sqrt(variance),
        s["z80"] * math.sqrt(variance + s["within"] ** 2),
    )


def speeds(
    chip,
    case: Cases,
    target_s: float,
) -> dict:
    """{constant: value} of a chip with all its speeds moved by one factor, so that the step of a
    case takes `target_s`. A speed stays below its peak; what then is left over stays."""
    now = {
        n: float(
            getattr(
                gather(
                    chip.family,
                    chip.id,
                    "",
                ),
                n,
            )
        )
        for n in SPEEDS
    }
    most = {n: RELATIVE_MOST if n in RELATIVE else 1.0 for n in SPEEDS}  # that a file may give

    def at(factor: float) -> tuple[dict, float]:
        value = {n: min(v * factor, max(v, most[n])) for n, v in now.items()}
        own = {n: getattr(case.constants, n) * value[n] / v for n, v in now.items()}
        return value, one(step_time(replace(case, constants=replace(case.constants, **own))).total)

    low = 1 / 3
    high = 3.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if at(middle)[1] > target_s else (low, middle)
    return at(math.sqrt(low * high))[0]


def timed(reading: Reading, chip) -> list[dict]:
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


def network(readings: list[Reading]) -> dict:
    """The calibration file of the links that tables of collectives show; empty without one that
    names an accelerator of the catalogue."""
    for reading in (r for r in readings if r.collectives):
        chip = chip_of(reading.accelerator)
        points = timed(reading, chip) if chip else []
        found, _ = constants_of({"collectives": points}, chip) if points else ({}, [])
        if found:
            return headed(chip) | {"constants": found}
    return {}


def headed(chip) -> dict:
    """What every calibration file begins with."""
    return {
        "scantling_calibration": VERSION,
        "made": date.today().isoformat(),
        "device": {
            "accelerator": chip.id,
            "name": chip.name,
        },
    }


def calibration(points: list[Point], readings: list[Reading] = ()) -> dict:
    """The calibration file of a site from measured steps of one model, chip and precision (of the
    set with the most points), without any from the tables of collectives among `readings`. No
    name, path or text of a log enters it. Raises DesignError without either."""
    if not points:
        links = network(readings)
        if links:
            return links
        raise DesignError(
            "-o",
            problem="no log says enough for a calibration",
            allowed=(
                "logs with step time, model, accelerator, devices, sequence length, batch, plan; "
                "--design FILE says what they lack; or a table of collectives"
            ),
        )
    sets = {}
    for p in points:
        sets.setdefault((p.accelerator, p.precision, round(math.log(p.active) * 20)), []).append(p)
    chosen = max(sets.values(), key=len)
    first = chosen[0]
    chip = catalogue.accelerator(chosen[0].accelerator)
    factor, sd, half = posterior(np.array([p.measured_s / p.foretold_s for p in chosen]))
    moved = speeds(
        chip,
        first.case,
        first.foretold_s * math.exp(factor),
    )
    usual = gather(
        chip.family,
        chip.id,
        "",
    )
    step = step_time(first.case)
    shares = {name: seconds / one(step.total) for name, seconds in seconds_of(step).items()}
    return headed(chip) | {
        "constants": {
            name: {
                "value": round(value, 6),
                "was": round(float(getattr(usual, name)), 6),
                "sd_ln": round(sd, 4),
            }
            for name, value in moved.items()
        },
        "steps": {
            "runs": len(chosen),
            "factor": round(math.exp(factor), 4),
            "band": [round(math.exp(-half), 4), round(math.exp(half), 4)],
            "active_parameters": round(first.active),
            "precision": first.precision,
            "shares": {name: round(s, 4) for name, s in shares.items() if s > LEAST},
        },
    }


def seconds_of(step) -> dict:
    """{part of a step: its seconds}."""
    return {name: one(getattr(step, name)) for name in PARTS}


def write(
    points: list[Point],
    path: str,
    readings: list[Reading] = (),
) -> dict:
    """Write the calibration of a site; returns it."""
    data = calibration(points, readings)
    write_text(
        path,
        yaml.safe_dump(data, sort_keys=False),
        force=True,
    )
    return data
