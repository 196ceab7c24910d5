"""A measured step or peak of memory beside what the models foretell for it."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.errors import DesignError, plain
from scantling.base.records import record
from scantling.base.units import GB
from scantling.catalogue.hardware import Accelerator
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import attention_kind, parameters
from scantling.catalogue.words import PRECISIONS
from scantling.design.design import Design
from scantling.design.resolve import resolve
from scantling.endure.reliability import as_logged
from scantling.physics.cases import Cases, devices
from scantling.physics.gather import stack_of
from scantling.physics.learned import Marks, marks, priors
from scantling.physics.step import step_time
from scantling.runs.frames import frame_of
from scantling.runs.read import checked, named_table
from scantling.runs.run_table import table_of_cells
from scantling.runs.to_cases import to_runs
from scantling.verdict.assess import assess

from .constant import Moved
from .contents import number
from .log_reading import Planned, Reading, figure
from .measure.constants_fit import match
from .step_parts import one
from .text import head
from .trace_constants import of_trace

# whose constants a format's runs have
STACKS = {
    "megatron_lm": "megatron-core",
    "megatron_bridge": "megatron-core",
    "megatron_golden_json": "megatron-core",
    "nemo": "megatron-core",
    "dllogger": "megatron-core",
    "primus_megatron": "primus-rocm",
    "megatron_deepspeed": "megatron-deepspeed",
    "gpt_neox": "gpt-neox",
    "deepspeed": "deepspeed",
    "torchtitan": "torchtitan",
    "internevo": "internevo",
    "maxtext": "maxtext",
}
# what a table of runs calls its measured figures
RATE, PEAK = "measured_tokens_per_s_per_device", "measured_peak_memory_gb"
# dimensions of a log that a table of runs calls otherwise
RUN_COLUMNS = {"experts": "moe_experts", "top_k": "moe_topk", "expert_ffn_hidden": "moe_ffn_hidden"}


@record
class Point:
    """One measured step beside what the models foretell for it."""

    file: str
    case: Cases
    marks: Marks  # what decides how much it tells of other runs
    accelerator: str
    active: float  # parameters of a token
    precision: str
    measured_s: float | None  # of a step
    foretold_s: float  # of a step
    peak_bytes: float  # measured
    stack: str
    release: str  # of the software, where the log says it
    traced: dict[str, Moved]  # constants that a trace of it moves
    planned: Planned = field(default_factory=Planned)  # goodput of its design, losses by cause


class Unused(NamedTuple):
    """A log or a row of a table that no constant is learnt from, and why."""

    file: str
    why: str


class TableRuns(NamedTuple):
    """What a table of runs says: its measured rows, alone and beside what is foretold, and those
    that say too little."""

    readings: list[Reading]
    points: list[Point]
    unused: list[Unused]


def marks_of(case: Cases, stacks: Array) -> Marks:
    """What decides how much some runs tell of others."""
    return marks(case, stacks, tuple(priors().constants))


def point_of(
    reading: Reading, case: Cases, accelerator: str, stack: str, of_run: Marks | None = None
) -> Point:
    """The figures of a log beside what is foretold of a case, on an accelerator, with a stack;
    `of_run`: its marks, where they were worked out with those of others."""
    tokens = one(case.job.global_batch) * one(case.job.seq_len) / one(devices(case.plan))
    rate = reading.tokens_per_s_per_device
    return Point(
        file=reading.file,
        case=case,
        marks=of_run or marks_of(case, np.array([stack], object)),
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
    batch and plan are those that the log says; None where it does not say its devices, or says
    another model or chip."""
    if why_unused(reading, design):
        return None
    free = ["measured", "calibration"]
    if reading.devices != design.cluster.devices:
        free.append("plan.dp")
    assessment = assess(design.change({**dict.fromkeys(free), **stated_fields(reading, design)}))
    if not assessment.phases:
        raise DesignError("--design", problem="has no plan that fits", allowed="the run of the log")
    point = point_of(
        reading,
        assessment.phases[assessment.resolved.main].case,
        assessment.resolved.cluster.accelerator.id,
        stack_of(assessment.resolved) or "",
    )
    endurance = assessment.endurance
    if endurance is None:
        return point
    planned = Planned(goodput=one(endurance.goodput), badput=as_logged(endurance.badput))
    return replace(point, planned=planned)


def stated_fields(reading: Reading, design: Design) -> dict[str, int | str]:
    """Fields of a design that a log states: devices, batch and plan. A design of several phases
    keeps the batch of each."""
    fields: dict[str, int | str | None] = {"cluster.devices": reading.devices}
    if not design.job.phases:
        fields |= {"job.seq_len": reading.seq_len, "job.global_batch": reading.global_batch}
    fields |= {
        "plan.tp": reading.tp,
        "plan.pp": reading.pp,
        "plan.vpp": reading.vpp,
        "plan.cp": reading.cp,
        "plan.ep": reading.ep,
        "plan.micro_batch": reading.micro_batch,
        "plan.sp": reading.sp,
        "plan.recompute": reading.recompute,
        "plan.recompute_layers": reading.recompute_layers,
        "plan.sharding": reading.sharding,
    }
    return {name: value for name, value in fields.items() if value is not None}


def moves_constants(reading: Reading) -> bool:
    """Whether a log has a figure that moves a constant: a step, a rate of tokens or a peak of
    memory."""
    figures = (reading.step_s, reading.tokens_per_s_per_device, reading.peak_memory_gb)
    return any(figures)


def chip_of(name: str | None) -> Accelerator | None:
    """The accelerator that a log names, by id, by alias, or as drivers do ("NVIDIA H100 80GB
    HBM3"); None where the catalogue has none."""
    if name is None:
        return None
    size = re.search(r"(\d+) ?GB", name)
    by_memory = match(name, float(size[1]) * GB) if size else None
    for word in (by_memory, name, *name.split()):
        try:
            if word is not None:
                return catalogue.accelerator(word)
        except DesignError:
            continue
    return None


def of_log(reading: Reading) -> Point | None:
    """The step of a log beside the foretold one; None where the log does not say enough, or names
    no model or accelerator of the catalogue."""
    chip = chip_of(reading.accelerator)
    if chip is None or why_unused(reading, None):
        return None
    row = table_of_cells({name: [cell] for name, cell in row_of(reading, chip).items()})
    runs = to_runs(checked(row, Path()))
    if runs.cases is None:
        return None
    return point_of(reading, runs.cases, chip.id, str(runs.stacks[0]))


def unsaid(reading: Reading, with_design: bool) -> list[str]:
    """What a log does not say of what it takes to foretell its step; beside a design its devices
    alone, which are its own word: a pilot has fewer than the run that it is a pilot of."""
    needed = {"devices": reading.devices}
    if not with_design:
        needed |= {
            "seq_len": reading.seq_len,
            "global_batch": reading.global_batch,
            "tp": reading.tp,
            "micro_batch": reading.micro_batch,
        }
    names = [name for name, value in needed.items() if value is None]
    if not with_design and reading.model is None:
        names.insert(0, "model")
    if not with_design and chip_of(reading.accelerator) is None:
        names.insert(0, "accelerator")
    return names


def other_run(reading: Reading, design: Design) -> str:
    """What says that a log is of no run of a design: its model, by shape or else by a name of the
    catalogue, or the family of its chip; "" where nothing does."""
    planned = resolve(design)
    named = models().get(reading.model or "")
    layers = reading.shape.get("layers", planned.model.layers)
    hidden = reading.shape.get("hidden", named.hidden if named else planned.model.hidden)
    if (layers, hidden) != (planned.model.layers, planned.model.hidden):
        return (
            f"its model is {reading.model}, hidden {hidden:,} in {layers:,} layers, the design's "
            f"{planned.model.name}, hidden {planned.model.hidden:,} in {planned.model.layers:,}"
        )
    chip = chip_of(reading.accelerator)
    wanted = planned.cluster.accelerator
    if chip is not None and chip.family != wanted.family:
        return f"it ran on {chip.id}, the design is of {wanted.id}"
    return ""


def why_unused(reading: Reading, design: Design | None) -> str:
    """Why no constant is learnt from a log, alone or beside the design of its run; "" where one
    may be."""
    if not moves_constants(reading):
        return "no step time, rate of tokens or peak of memory"
    if design is not None and (why := other_run(reading, design)):
        return why
    names = unsaid(reading, design is not None)
    if names == ["devices"]:
        return "how many devices? --devices N says it"
    if names:
        return f"does not say {', '.join(names)}: --design FILE says them, --devices N its devices"
    return ""


def row_of(reading: Reading, chip: Accelerator) -> dict[str, Any]:
    """A log as a row of a table of runs."""
    row = {
        "id": "log",
        "model": reading.model,
        "accelerator": chip.id,
        "n_devices": reading.devices,
        "seq_len": reading.seq_len,
        "global_batch_seqs": reading.global_batch,
        "precision": reading.precision or "bf16",
        "stack": STACKS.get(reading.format, ""),
        "tp": reading.tp,
        "pp": reading.pp,
        "vpp": reading.vpp,
        "cp": reading.cp,
        "ep": reading.ep,
        "micro_batch": reading.micro_batch,
        "sp": None if reading.sp is None else int(reading.sp),
        "recompute": reading.recompute or "",
        "recompute_layers": reading.recompute_layers,
        "sharding": reading.sharding or "",
    }
    if reading.model not in models():
        shape = reading.shape
        heads = int(shape.get("heads", 0))
        groups = int(shape.get("kv_heads", 0))
        row |= {RUN_COLUMNS.get(name, name): size for name, size in shape.items()}
        row["attention"] = attention_kind(heads, groups or heads)
    return row


def is_table(path: str | Path) -> bool:
    """Whether a file is a table of runs with measured rates or peaks of memory."""
    path = Path(path)
    top = head(path, 1 << 16) if path.is_file() else b""
    return RATE.encode() in top or PEAK.encode() in top


def of_table(path: str | Path) -> TableRuns:
    """The measured rows of a table of runs. Raises DesignError."""
    frame = frame_of(named_table(path))
    runs = to_runs(frame)
    table = TableRuns([], [], [])
    name = Path(path).name
    every = frame.to_dict("records")
    for row, error in zip(every, runs.errors):
        if error and (number(row.get(RATE)) > 0 or number(row.get(PEAK)) > 0):
            table.unused.append(Unused(f"{name}: {plain(row['id'], 80)}", error))
    if runs.cases is None:
        return table
    of_runs = marks_of(runs.cases, np.asarray(runs.stacks, object))
    for i, row in enumerate(row for row, ready in zip(every, runs.ready) if ready):
        rate = number(row.get(RATE))
        rate = rate if rate > 0 else nan
        peak_bytes = max(0.0, number(row.get(PEAK))) * GB
        if not (rate > 0 or peak_bytes):
            continue
        case = runs.cases.take(slice(i, i + 1))
        reading = reading_of_row(row, name, case, str(runs.chips[i]), rate, peak_bytes)
        own = of_runs.take(np.array([i]))
        table.readings.append(reading)
        table.points.append(point_of(reading, case, str(runs.chips[i]), str(runs.stacks[i]), own))
    return table


def reading_of_row(
    row: Mapping[Any, Any], table: str, case: Cases, chip: str, rate: float, peak_bytes: float
) -> Reading:
    """A measured row of a table as a log would tell it; rate: tokens/s of one device."""
    tokens = one(case.job.global_batch) * one(case.job.seq_len)
    plan = case.plan
    return Reading(
        file=f"{table}: {plain(row['id'], 80)}",
        format="runs",
        framework=plain(row["stack"], 80),
        step_s=figure(tokens / one(devices(plan)) / rate),
        tokens_per_s_per_device=figure(rate),
        peak_memory_gb=figure(peak_bytes / 2.0**30) if peak_bytes else None,
        accelerator=chip,
        devices=int(one(devices(plan))),
        model=plain(row["model"], 80),
        seq_len=int(one(case.job.seq_len)),
        global_batch=int(one(case.job.global_batch)),
        precision=precision_of(case),
        tp=int(one(plan.tp)),
        pp=int(one(plan.pp)),
        vpp=int(one(plan.vpp)),
        cp=int(one(plan.cp)),
        ep=int(one(plan.ep)),
        dp=int(one(plan.dp)),
        micro_batch=int(one(plan.micro_batch)),
    )
