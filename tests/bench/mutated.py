"""Real files with their structure changed: a second generator of hostile cases.

A design, a model config, a table of runs, a price list or a calibration as it ships, in which types
are swapped, lists emptied, keys doubled or renamed, anchors and aliases put in, rows cut, commas
added; then, in some, other bytes: a byte order mark, UTF-16, NUL, CR. `make hostile` runs them
beside the cases of `hostile`.
"""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.random import Generator
from scantling import catalogue

GALLERY = Path(__file__).parents[2] / "gallery" / "designs"
CATALOGUE = catalogue.HERE
OTHER_TYPES = (None, True, 0, -1, 7, 2.5, "", "x", "7", [], {}, [[]], {"a": []}, ["x"], [None])
TABLE_ROWS = 12  # of a table that is mutated
PRICES = "item,value,kind,date,provider,source\nh100-sxm,2.5,quote,2026-10-01,own,own\n"
CALIBRATION = {
    "scantling_calibration": 2,
    "made": "2026-01-01",
    "device": {"accelerator": "h100-sxm", "name": "x"},
    "constants": {"gemm": 0.7, "attention": 0.6},
}


class Case(NamedTuple):
    """A mutated file and the call that reads it."""

    name: str
    content: bytes
    argv: list[str]  # {f}: the file, {o}: a folder to write to


def case(seed: int, number: int) -> Case:
    """Case `number` of a seed: the same on every machine."""
    rng = np.random.default_rng([seed, number, 2])
    kinds = (design, config, table, prices, calibration)
    kind = kinds[int(rng.choice(len(kinds), p=[0.4, 0.25, 0.2, 0.05, 0.1]))]
    content, argv = kind(rng)
    return Case(f"mutated {number} {kind.__name__}", encoded(content, rng), argv)


def design(rng: Generator) -> tuple[str, list[str]]:
    """A gallery design."""
    path = picked(sorted(GALLERY.glob("*.yaml")), rng)
    text = yaml.safe_dump(restructured(yaml.safe_load(path.read_text()), rng), sort_keys=False)
    command = picked(
        (["design", "{f}", "--json"], ["goodput", "{f}", "--json"], ["search", "{f}"]), rng
    )
    return with_anchors(text, rng), command


def config(rng: Generator) -> tuple[str, list[str]]:
    """A model config of the transformers library."""
    path = picked(sorted((CATALOGUE / "hf").glob("*.json")), rng)
    data = restructured(json.loads(path.read_text()), rng)
    return json.dumps(data, indent=1), ["params", "{f}", "--json"]


def table(rng: Generator) -> tuple[str, list[str]]:
    """Rows of the published runs."""
    with (CATALOGUE / "published_runs.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)]
    first = int(rng.integers(1, len(rows) - TABLE_ROWS))
    calls = (["predict", "{f}", "-o", "{o}/out.csv"], ["validate", "{f}"])
    text = rows_of(rng, [rows[0], *rows[first : first + TABLE_ROWS]])
    return text, calls[int(rng.random() < 0.25)]


def prices(rng: Generator) -> tuple[str, list[str]]:
    """A list of prices."""
    return rows_of(rng, [*csv.reader(io.StringIO(PRICES))]), ["prices", "{f}"]


def calibration(rng: Generator) -> tuple[str, list[str]]:
    """A calibration, named by a design that stands in the same text's place."""
    text = yaml.safe_dump(restructured(copy.deepcopy(CALIBRATION), rng), sort_keys=False)
    return with_anchors(text, rng), ["predict", "{t}", "--calibration", "{f}", "-o", "{o}/out.csv"]


def restructured(data: Any, rng: Generator) -> Any:
    """A tree with one to four of its places changed in kind."""
    for _ in range(int(rng.integers(1, 5))):
        places = [*every_place(data)]
        if not places:
            break
        parent, key = places[int(rng.integers(len(places)))]
        change(parent, key, rng)
    return data


def every_place(data: Any) -> list[tuple[Any, Any]]:
    """(container, key or position) of every value of a tree."""
    below = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    places = []
    for key, value in below:
        places.append((data, key))
        places += every_place(value)
    return places


def change(parent: Any, key: Any, rng: Generator) -> None:
    """Put something of another structure in one place."""
    value = parent[key]
    how = int(rng.integers(7))
    if how == 0:
        parent[key] = copy.deepcopy(picked(OTHER_TYPES, rng))
    elif how == 1:
        parent[key] = [value]
    elif how == 2:
        parent[key] = {"value": value}
    elif how == 3 and isinstance(value, (list, dict)):
        parent[key] = type(value)()
    elif how == 4 and isinstance(value, list) and value:
        value[int(rng.integers(len(value)))] = copy.deepcopy(picked(OTHER_TYPES, rng))
    elif how == 5:
        parent[key] = str(value)
    elif isinstance(parent, dict):
        parent[f"{key}s" if how == 6 else str(key).upper()] = parent.pop(key)


def with_anchors(text: str, rng: Generator) -> str:
    """YAML in which a line becomes an alias, an anchor, a tag, or stands twice."""
    if rng.random() < 0.6:
        return text
    lines = text.splitlines()
    at = int(rng.integers(len(lines) or 1))
    pieces = (
        "&a",
        "*a",
        "*missing",
        "!!python/object:os.system x",
        "!!set",
        "<<: *a",
        "? [a]",
        "|",
        "%",
    )
    if lines and rng.random() < 0.5:
        lines[at] = f"{lines[at]} {picked(pieces, rng)}"
    elif lines:
        lines.insert(at, lines[at])
    return "\n".join(lines) + "\n"


def rows_of(rng: Generator, rows: list[list[str]]) -> str:
    """A CSV with cells, rows or heads changed."""
    for _ in range(int(rng.integers(1, 5))):
        row = rows[int(rng.integers(len(rows)))]
        if not row:
            continue
        at = int(rng.integers(len(row)))
        how = int(rng.integers(7))
        if how == 0:
            row.append("")
        elif how == 1:
            del row[at]
        elif how == 2:
            row[at] = picked(
                ("", "nan", "1e999", "-1", "7,5", "a\rb", "[]", "=1+1", "\x00", "9" * 40), rng
            )
        elif how == 3:
            rows[0][int(rng.integers(len(rows[0])))] = picked(
                ("", "id", "tpp", " tp ", "layers", '"'), rng
            )
        elif how == 4:
            rows.append([])
        elif how == 5:
            rows.append([*row])
        else:
            row[at] = f'"{row[at]}'
    out = io.StringIO()
    csv.writer(
        out, lineterminator=picked(("\n", "\r\n", "\r"), rng), quoting=csv.QUOTE_MINIMAL
    ).writerows(rows)
    return out.getvalue()


def encoded(text: str, rng: Generator) -> bytes:
    """A text as bytes: mostly UTF-8, else with a mark, in UTF-16 or Latin, with NUL or CR."""
    how = rng.random()
    if how < 0.75:
        return text.encode("utf-8", "surrogatepass")
    if how < 0.81:
        return b"\xef\xbb\xbf" + text.encode("utf-8", "surrogatepass")
    if how < 0.86:
        return text.encode("utf-16", "surrogatepass")
    if how < 0.9:
        return text.encode("latin-1", "replace") + b"\xff\xfe"
    if how < 0.95:
        return text.replace("\n", "\r").encode("utf-8", "surrogatepass")
    at = int(rng.integers(len(text) + 1))
    return (text[:at] + "\0" + text[at:]).encode("utf-8", "surrogatepass")


def picked(choices: Any, rng: Generator) -> Any:
    """One of some choices."""
    return choices[int(rng.integers(len(choices)))]
