"""MLPerf training result logs: `:::MLLOG {json}` lines.

Step times are the submitter's own where it logs them, else differences of the events that come
with a count of samples or tokens; those include evaluation.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from math import nan
from pathlib import Path
from typing import NamedTuple

from ..contents import Column, Contents, number
from ..file_format import FileFormat
from ..line_format import begins
from ..step_rows import events

MARKS = ((":::MLLOG {",),)
OPENS = re.compile(r'^.{0,200}:::MLLOG \{"\w', re.M)
MODELS = {
    "llama31_405b": "llama-3.1-405b",
    "llama31_8b": "llama-3.1-8b",
    "gpt3": "gpt-3-175b",
    "gpt_oss_20b": "gpt-oss-20b",
}  # by benchmark
# the rules of the benchmark fix the sequence length
SEQ_LEN = {
    "llama2_70b_lora": 8192,
    "llama31_405b": 8192,
    "llama31_8b": 8192,
    "gpt3": 2048,
    "gpt_oss_20b": 8192,
}
EVENTS = ("train_loss", "eval_accuracy", "block_start")  # those that carry counts, best first
COUNTS = ("samples_count", "epoch_num", "first_epoch_num", "step_num")
STEP_TIMES = ("train_step_time", "train_step_timing in s")
SETTINGS = frozenset(
    {
        "global_batch_size",
        "max_sequence_length",
        "gradient_accumulation_steps",
        "micro_batch_size",
        "tensor_parallelism",
        "pipeline_parallelism",
        "context_parallelism",
        "expert_parallelism",
        "submission_benchmark",
        "submission_platform",
        "lowest_numerical_precision_linear",
        "number_of_ranks",
        "number_of_nodes",
        "accelerators_per_node",
        "world_size",
        "num_gpus",
        "data_parallel_size",
    }
)
# settings in other lines than those of events
ASIDE = {
    "num_nodes": re.compile(r'"number_of_nodes": ?"?(\d+)'),
    "num_gpus_per_node": re.compile(r'"accelerators_per_node": ?"?(\d+)'),
    "world_size": re.compile(r"\bworld_size[=:] ?(\d+)|nproc_per_node[= ](\d+)|rank-\d+/(\d+)"),
}
# devices that the name of a platform tells, "64xNVIDIA DGX H100": nodes times so many
NODES_OF_4 = re.compile(r"^(\d+)xNVIDIA (?:DGX |HGX )?GB[23]00")
NODES_TIMES_DEVICES = re.compile(r"^(\d+)x.*?x(\d+)x?[A-Z]+\d")  # 1xXE9680Lx8B200
NODES_OF_8 = re.compile(r"^(\d+)xNVIDIA (?:DGX|HGX)")
DEVICES = re.compile(r"^gaudi[\w]*-(\d+)$")  # gaudi-1024


class Count(NamedTuple):
    """An event that carries a count: of what, and when [s since 1970]."""

    amount: float
    clock_s: float
    unit: str


class StepTime(NamedTuple):
    """A step time that the submitter logged."""

    step: float
    seconds: float


def devices_of(platform: str) -> int:
    """The devices that the name of a platform tells, 0 where it tells none."""
    if match := NODES_OF_4.search(platform):
        return int(match[1]) * 4
    if match := NODES_TIMES_DEVICES.search(platform):
        return int(match[1]) * int(match[2])
    if match := NODES_OF_8.search(platform):
        return int(match[1]) * 8
    match = DEVICES.search(platform)
    return int(match[1]) if match else 0


def read(path: Path, log: Contents) -> None:
    """What the log holds."""
    times: list[StepTime] = []
    counts: dict[str, list[Count]] = {name: [] for name in EVENTS}
    for event, line in events(path, ":::MLLOG "):
        if line:
            _add_aside(log, line[:20_000])
        key = str(event.get("key"))
        value = event.get("value")
        metadata = event.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        clock_s = number(event.get("time_ms")) / 1e3
        log.add_moment(clock_s)
        if key in SETTINGS:
            log.add_setting(key, f"{value:g}" if isinstance(value, float) else value)
        if key == "tracked_stats" and isinstance(value, dict):
            for name in STEP_TIMES:
                seconds = number(value.get(name))
                if seconds > 0:
                    times.append(StepTime(float(metadata.get("step") or len(times)), seconds))
        unit = next((c for c in COUNTS if number(metadata.get(c)) == metadata.get(c)), "")
        if key in counts and unit:
            counts[key].append(Count(float(metadata[unit]), clock_s, unit))
    _add_platform(log)
    add_steps(log, times, counts.values())


def _add_aside(log: Contents, line: str) -> None:
    """Settings in a line that is no event."""
    for name, pattern in ASIDE.items():
        match = None if name in log.settings else pattern.search(line)
        if match:
            log.add_setting(name, match[match.lastindex or 0])


def _add_platform(log: Contents) -> None:
    """Devices and sequence length, from the platform and the benchmark."""
    settings = log.settings
    devices = devices_of(settings.get("submission_platform", ""))
    if devices and "num_gpus_per_node" not in settings:
        settings["devices_total"] = str(devices)
    benchmark = settings.get("submission_benchmark", "")
    log.add_setting("model_name", MODELS.get(benchmark))
    if benchmark in SEQ_LEN and "max_sequence_length" not in settings:
        log.add_setting("max_sequence_length", SEQ_LEN[benchmark])
        log.notes.append(f"seq_len: the rules of the benchmark {benchmark} fix it")


def add_steps(log: Contents, times: Iterable[StepTime], counts: Iterable[list[Count]]) -> None:
    """Step lines: times as logged, else the clock of the events with the richest counts."""
    for time in times:
        log.add_step({Column.STEP: time.step, Column.SECONDS: time.seconds})
    rows = next((rows for rows in counts if len(rows) > 2), [])
    if log.step_lines or not rows:
        return
    per_step = count_per_step(log.settings, rows[-1])
    for row in rows:
        log.add_step({Column.STEP: row.amount / per_step, Column.CLOCK_S: row.clock_s})
    log.notes.append("step_s: from the clock of events, evaluation included")


def count_per_step(settings: Mapping[str, str], last: Count) -> float:
    """By how much the count of events grows in a step: one, sequences or tokens."""
    batch = float(settings.get("global_batch_size", nan))
    sequence = float(settings.get("max_sequence_length", nan))
    if last.unit in ("epoch_num", "first_epoch_num") and last.amount % (batch * sequence) == 0:
        return batch * sequence
    return 1.0 if last.unit == "step_num" else batch


MLPERF_MLLOG = FileFormat(
    name="mlperf_mllog",
    framework="MLPerf training",
    knows=partial(begins, marks=MARKS, opens=OPENS),
    read=read,
)
