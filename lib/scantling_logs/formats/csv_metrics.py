"""Metrics as CSV: exports of a W&B history, Lightning's CSVLogger and any table with a column of
steps; and the readings of nvidia-smi."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ..contents import Column, Contents, number
from ..file_format import FileFormat
from ..step_rows import NAMES, add_row, plain_name
from ..text import lines

USED = "memory.used"  # of nvidia-smi, its unit behind it


def names_of(line: str) -> list[str]:
    """The names of the columns in the first line of a table."""
    return [name.strip() for name in next(csv.reader([line.strip()]), [])]


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    line = head.split("\n", 1)[0]
    names = names_of(line) if len(line) < 20_000 else []
    if any(name.startswith(USED) for name in names):
        return True
    steps = NAMES[Column.STEP].keys()
    return len(names) > 1 and "{" not in names[0] and not steps.isdisjoint(map(plain_name, names))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    reader = csv.reader(line for line in lines(path) if line.strip())
    names = names_of(",".join(next(reader, [])))
    while True:
        try:
            row = next(reader, None)
        except csv.Error:
            continue
        if row is None:
            return
        yield dict(zip(names, row))


def read(path: Path, log: Contents) -> None:
    """What the table holds."""
    devices = set()
    row: dict[str, str] = {}
    for row in _rows(path):
        used = next((name for name in row if name.startswith(USED)), "")
        if not used:
            add_row(log, row)
            continue
        log.add_setting("num_nodes", 1)  # it sees one machine
        log.add_setting("accelerator_name", row.get("name"))
        log.add_peak(number(row[used].replace("MiB", "")) / 1024)
        devices.add(str(row.get("gpu") or row.get("uuid") or row.get("index")).strip())
    if len(devices) > 1:
        log.add_setting("world_size", len(devices))
    if devices:
        log.format, log.framework = "nvidia_smi", "nvidia-smi"
    if "_step" in row or "_runtime" in row:
        log.format, log.framework = "wandb_history", "Weights & Biases history"
    elif "epoch" in row:
        log.format, log.framework = "lightning_csv", "Lightning CSVLogger"


CSV_METRICS = FileFormat(name="csv", framework="a table of metrics", knows=knows, read=read)
