"""How a line was read, against its right reading: right, asked about, or wrong."""

from __future__ import annotations

from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from scantling.base.errors import DesignError
from scantling.design.draft import draft
from scantling.plans.prepare import prepare
from scantling_brief.brief import read_brief
from scantling_brief.question_commands import arguments

FILE = "FILE"
# what follows from other words, or is the name to show
BESIDE = {"model.name", "model.moe", "cluster.devices_per_node", "cluster.node"}


class Score(NamedTuple):
    """right, asked or wrong, and why."""

    kind: str
    why: str


def score(row: dict[str, Any]) -> Score:
    """Right: every field as it should be and none besides, the words to be asked about asked about
    and no others, the command that the question means. Asked: what is not right is asked about.
    Wrong: anything else."""
    try:
        reading = read_brief(row["said"])
    except DesignError as error:
        return Score("right" if row.get("refused") else "asked", f"refused: {error}")
    if row.get("refused"):
        return Score("wrong", f"should be refused: {dict(reading.fields)}")
    try:
        design, _, _ = draft(reading, None, prepare)
    except DesignError as error:
        return Score("asked", f"refused: {error}")
    unread = [words.text for words in design.unread or ()]
    said = arguments(reading, design, FILE)
    swept = {part.partition("=")[0] for part in said[2:]} if said[0] == "sweep" else set()
    faults = []
    for path in (row["reads"].keys() | reading.fields.keys()) - BESIDE - swept:
        wanted, got = row["reads"].get(path), reading.fields.get(path)
        if path == "cluster.accelerator" and path in reading.open and wanted is None:
            continue
        if path == "model" and path in reading.open and wanted is None:
            continue
        same = wanted == got
        if isinstance(wanted, (int, float)) and isinstance(got, (int, float)):
            same = isclose(wanted, got, rel_tol=1e-6)
        if not same:
            faults.append((path, f"{path} {got}, not {wanted}", got is not None))
    missing = [
        words
        for words in row.get("asks", [])
        if not any(words.lower() in text.lower() for text in unread)
    ]
    wrong = [text for _, text, is_set in faults if is_set]
    if missing:
        wrong.append(f"not asked: {missing}")
    if "command" in row and not " ".join(said).startswith(row["command"].replace("FILE", FILE)):
        verb = row["command"].split()[0]
        if " " in row["command"] or said[0] != verb:
            wrong.append(f"command {' '.join(said)}, not {row['command']}")
    if wrong:
        return Score("wrong", "; ".join(wrong))
    if faults:
        why = "; ".join(text for _, text, _ in faults)
        return Score("asked" if unread else "wrong", f"{why}; asks {unread}")
    if unread and not row.get("asks"):
        return Score("asked", f"asks {unread}")
    return Score("right", f"asks {unread}" if unread else "")


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table of lines."""
    path = Path(__file__).with_name(name)
    loaded: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded
