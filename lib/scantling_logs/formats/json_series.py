"""JSON documents of a run: golden values of Megatron's tests (series by step), trainer_state.json
of the Hugging Face Trainer (losses by step, no time)."""

from scantling.base.files import json_object

from ..found import Found, number
from ..text import head as first_bytes, wrong_for

LIMIT = 64 << 20


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    golden = '"lm loss": {' in head and '"step_interval"' in head
    state = '"log_history"' in head and '"global_step"' in head
    return head.lstrip()[:1] == "{" and (golden or state)


def read(path, found: Found) -> None:
    """What the file holds. Raises DesignError."""
    data = json_object(first_bytes(path, LIMIT).decode("utf-8-sig", "replace"), wrong_for(path))
    if isinstance(data.get("log_history"), list):
        history(found, data["log_history"])
        return
    series = {name: one.get("values") for name, one in data.items() if isinstance(one, dict)}
    # before 2025 they are lists
    series |= {name: dict(enumerate(v)) for name, v in series.items() if isinstance(v, list)}
    for step, seconds in (series.get("iteration-time") or {}).items():
        if number(seconds) == number(seconds):
            found.add(step=number(step), s=number(seconds))
    for value in (series.get("mem-max-allocated-bytes") or {}).values():
        found.memory(number(value) / 2**30)


def history(found: Found, rows: list) -> None:
    """The history of a Trainer: a line a loss. The runtime at its end is no step time: a resumed
    job has all steps and the time of the last part."""
    found.format = "hf_trainer"
    found.framework = "Hugging Face Trainer"
    for row in rows:
        if isinstance(row, dict) and "loss" in row:
            found.add(step=number(row.get("step")))
