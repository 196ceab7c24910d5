"""Metrics as CSV: exports of a W&B history, Lightning's CSVLogger and any table with a column of
steps; and the readings of nvidia-smi."""

import csv

from ..found import Found, number
from ..rows import spoken, take
from ..text import lines

SMI = "memory.used"


def names_of(line: str) -> list:
    """The names of the columns in the first line of a table."""
    return [name.strip() for name in next(csv.reader([line.strip()]), [])]


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    line = head.split("\n", 1)[0]
    names = names_of(line) if len(line) < 20_000 else []
    steps = names[1:] and {*names} & spoken()["columns"]["step"].keys() and "{" not in names[0]
    return bool(steps) or any(name.startswith(SMI) for name in names)


def _rows(path):
    csv.field_size_limit(1 << 20)
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


def read(path, found: Found) -> None:
    """What the table holds."""
    devices = set()
    row = {}
    for row in _rows(path):
        used = next((name for name in row if name.startswith(SMI)), "")
        if not used:
            take(found, row)
        else:
            found.setting("num_nodes", 1)  # it sees one machine
            found.setting("accelerator_name", row.get("name"))
            found.memory(number(row[used].replace("MiB", "")) / 1024)
            devices.add(str(row.get("gpu") or row.get("uuid") or row.get("index")).strip())
    if len(devices) > 1:
        found.setting("world_size", len(devices))
    if devices:
        found.format, found.framework = "nvidia_smi", "nvidia-smi"
    for name, kind in spoken()["tables"].items():
        if name in row:
            found.format, found.framework = kind
