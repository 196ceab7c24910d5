"""Rows of named values, as tables, event files and JSON lines hold them, as step lines."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from json import loads
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from scantling.base.files import too_deep

from .contents import Column, Contents, clock_of, number
from .line_format import MILLI
from .text import lines

# units as headers have them: "Step time (ms)", step_time_s; without one a step time is in seconds
UNITS = {"": 1.0, "_s": 1.0, "_in_s": 1.0, "_sec": 1.0, "_seconds": 1.0, "_ms": MILLI}
STEP_TIMES = (
    "train_step_timing",
    "train_step_time",
    "step_time",
    "time_per_step",
    "perf_time_per_step",
    "perf_step_time",
    "iteration_time",
    "elapsed_time_per_iteration",
)
WITH_UNIT = ("iter_time", "dt", "step")  # which are no seconds unless they say so
# what tables, event files and JSON lines call the columns of a step, best name first, each with
# its factor; as `plain_name` has them
NAMES: dict[Column, dict[str, float]] = {
    Column.STEP: dict.fromkeys(
        (
            "iter",
            "iteration",
            "trainer_global_step",
            "global_step",
            "train_global_step",
            "step",
            "_step",
        ),
        1.0,
    ),
    Column.SECONDS: {
        **{name + unit: factor for name in STEP_TIMES for unit, factor in UNITS.items()},
        **{name + unit: UNITS[unit] for name in WITH_UNIT for unit in UNITS if unit},
        "timing_s_step": 1.0,
    },
    Column.CLOCK_S: dict.fromkeys(
        (
            "_runtime",
            "_timestamp",
            "relative_time_process",
            "time",
            "timestamp",
            "wall_time",
            "elapsed_s",
        ),
        1.0,
    ),
    Column.TOKENS_PER_S_PER_DEVICE: {
        **{
            f"tokens{per}_{second}{per}_{device}": 1.0
            for per in ("_per", "")
            for second in ("second", "sec", "s")
            for device in ("gpu", "device", "chip")
        },
        "throughput_device_tokens_per_sec": 1.0,
        "throughput_tps": 1.0,
        "perf_per_device_tokens_per_sec": 1.0,
        "perf_throughput": 1.0,
    },
    Column.TFLOPS_PER_DEVICE: dict.fromkeys(
        ("perf_per_device_tflops_per_sec", "tflops", "throughput", "tflops_per_gpu"), 1.0
    ),
    Column.GLOBAL_BATCH: dict.fromkeys(("batch_size",), 1.0),
    Column.SAMPLES_TOTAL: {"consumed_samples": 1.0},
}
PEAKS_GIB = ("memory/max_active(GiB)", "perf/max_memory_allocated_gb")


class Cell(NamedTuple):
    """Where a row has a column, and the factor to the column's unit."""

    column: Column
    name: str
    factor: float


def plain_name(name: str) -> str:
    """A name of a column without capitals and signs: "Step time [ms]" is step_time_ms."""
    return re.sub(r"[^a-z\d]+", "_", name.lower()).rstrip("_")


@lru_cache(64)
def cells(names: tuple[str, ...]) -> tuple[Cell, ...]:
    """The cells of a row with these names that fill columns, by the best name of each."""
    by_name = {plain_name(name): name for name in reversed(names)}
    chosen = []
    for column, factors in NAMES.items():
        name = next((name for name in factors if name in by_name), None)
        if name is not None:
            chosen.append(Cell(column, by_name[name], factors[name]))
    return tuple(chosen)


def figure_of(cell: Cell, text: Any) -> float:
    """The figure that a cell holds, in the unit of its column; of a clock a date too."""
    value = number(text)
    if cell.column is Column.CLOCK_S and value != value:
        return clock_of(str(text))
    return value * cell.factor


def add_row(log: Contents, row: Mapping[str, Any]) -> None:
    """One step line from a row of named values; a row without a step is none."""
    values = {cell.column: figure_of(cell, row[cell.name]) for cell in cells(tuple(row))}
    if 0 <= values.get(Column.STEP, nan) < 1e15:
        peak = next((name for name in PEAKS_GIB if name in row), None)
        if peak is not None:
            log.add_peak(number(row[peak]))
        log.add_moment(values.get(Column.CLOCK_S, nan))
        log.add_step(values)


def events(path: Path, prefix: str) -> Iterator[tuple[dict[str, Any], str]]:
    """(the JSON object behind a prefix, "") of a line that has one, else ({}, line)."""
    for line in lines(path):
        _, separator, text = line.partition(prefix)
        if not separator:
            yield {}, line
            continue
        try:
            event = None if too_deep(text) else loads(text)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event, ""
