"""JSON documents of a run: golden values of Megatron's tests (series by step), trainer_state.json
of the Hugging Face Trainer (losses by step, no time)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scantling.base.files import json_object

from ..contents import Column, Contents, number
from ..file_format import FileFormat
from ..text import head as first_bytes, wrong_for

LIMIT = 64 << 20


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    golden = '"lm loss": {' in head and '"step_interval"' in head
    state = '"log_history"' in head and '"global_step"' in head
    return head.lstrip()[:1] == "{" and (golden or state)


def read(path: Path, log: Contents) -> None:
    """What the file holds. Raises DesignError."""
    data = json_object(first_bytes(path, LIMIT).decode("utf-8-sig", "replace"), wrong_for(path))
    if isinstance(data.get("log_history"), list):
        add_history(log, data["log_history"])
        return
    for step, seconds in _series(data.get("iteration-time")):
        if number(seconds) == number(seconds):
            log.add_step({Column.STEP: number(step), Column.SECONDS: number(seconds)})
    for _, value in _series(data.get("mem-max-allocated-bytes")):
        log.add_peak(number(value) / 2**30)


def _series(series: Any) -> Iterable[tuple[Any, Any]]:
    """(step, value) of a series; before 2025 they are lists."""
    values = series.get("values") if isinstance(series, dict) else None
    if isinstance(values, list):
        return enumerate(values)
    return values.items() if values else ()


def add_history(log: Contents, rows: Iterable[Any]) -> None:
    """The history of a Trainer: a line a loss. The runtime at its end is no step time: a resumed
    job has all steps and the time of the last part."""
    log.format = "hf_trainer"
    log.framework = "Hugging Face Trainer"
    for row in rows:
        if isinstance(row, dict) and "loss" in row:
            log.add_step({Column.STEP: number(row.get("step"))})


JSON_SERIES = FileFormat(
    name="megatron_golden_json", framework="Megatron-LM (tests)", knows=knows, read=read
)
