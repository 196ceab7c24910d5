"""Rows of named values, as tables, event files and JSON lines hold them, as step lines."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from json import loads
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from scantling.base.files import too_deep

from .contents import Column, Contents, number
from .text import lines

# what tables, event files and JSON lines call the columns of a step, best name first, each with
# its factor
NAMES: dict[Column, dict[str, float]] = {
    Column.STEP: {
        "iter": 1.0,
        "iteration": 1.0,
        "trainer/global_step": 1.0,
        "global_step": 1.0,
        "train/global_step": 1.0,
        "step": 1.0,
        "_step": 1.0,
    },
    Column.SECONDS: {
        "train_step_timing in s": 1.0,
        "train_step_time": 1.0,
        "step_time": 1.0,
        "train/step_time": 1.0,
        "time_per_step": 1.0,
        "perf/time_per_step": 1.0,
        "iter_time_s": 1.0,
        "iter_time_ms": 0.001,
        "step_time_ms": 0.001,
        "dt_ms": 0.001,
        "perf/step_time_seconds": 1.0,
        "iteration-time": 1.0,
        "timing_s/step": 1.0,
    },
    Column.CLOCK_S: {
        "_runtime": 1.0,
        "_timestamp": 1.0,
        "time": 1.0,
        "timestamp": 1.0,
        "wall_time": 1.0,
        "elapsed_s": 1.0,
    },
    Column.TOKENS_PER_S_PER_DEVICE: {
        "tokens_per_second_per_gpu": 1.0,
        "tokens_per_sec_per_gpu": 1.0,
        "throughput/device/tokens_per_sec": 1.0,
        "throughput(tps)": 1.0,
        "perf/per_device_tokens_per_sec": 1.0,
        "perf/throughput": 1.0,
    },
    Column.TFLOPS_PER_DEVICE: {
        "perf/per_device_tflops_per_sec": 1.0,
        "tflops": 1.0,
        "throughput": 1.0,
        "TFLOPS_per_GPU": 1.0,
    },
    Column.GLOBAL_BATCH: {"batch-size": 1.0, "batch_size": 1.0},
    Column.SAMPLES_TOTAL: {"consumed_samples": 1.0},
}
PEAKS_GIB = ("memory/max_active(GiB)", "perf/max_memory_allocated_gb")


class Cell(NamedTuple):
    """Where a row has a column, and the factor to the column's unit."""

    column: Column
    name: str
    factor: float


@lru_cache(64)
def cells(names: tuple[str, ...]) -> tuple[Cell, ...]:
    """The cells of a row with these names that fill columns, by the best name of each."""
    chosen = []
    for column, factors in NAMES.items():
        name = next((name for name in factors if name in names), None)
        if name is not None:
            chosen.append(Cell(column, name, factors[name]))
    return tuple(chosen)


def add_row(log: Contents, row: Mapping[str, Any]) -> None:
    """One step line from a row of named values; a row without a step is none."""
    values = {c.column: number(row[c.name]) * c.factor for c in cells(tuple(row))}
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
