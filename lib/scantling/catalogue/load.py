"""Reading the data files: rows checked against the rules of the catalogue, and turned into records.

A column that names a unit of the trade becomes the field in the unit inside: hbm_gb fills
hbm_bytes, latency_us latency_s.
"""

from dataclasses import MISSING, fields
from functools import cache
from json import loads
from math import nan
from pathlib import Path

from ..base.errors import DesignError, closest
from ..base.files import csv_rows
from ..base.records import Rows
from ..base.units import GB, GBIT, MB, TERA

HERE = Path(__file__).parent
VERIFIED = ("text", "secondary", "memory", "derived")
# ending of a column -> ending of the field, factor
UNITS = {
    "_gb": ("_bytes", GB),
    "_mb": ("_bytes", MB),
    "_gbytes_per_s": ("_bytes_per_s", GB),
    "_gbits_per_s": ("_bytes_per_s", GBIT),
    "_tflops": ("_flops", TERA),
    "_ns": ("_s", 1e-9),
    "_us": ("_s", 1e-6),
    "_ms": ("_s", 1e-3),
    "_kw": ("_w", 1e3),
}
BLANK = {"float": nan, "int": 0, "bool": False, "str": "", "Lines": ()}


@cache
def field_of(column: str) -> tuple[str, float]:
    """(field of the record, factor) that a column named after a unit of the trade fills."""
    for ending, (inside, factor) in UNITS.items():
        if column.endswith(ending):
            return column.removesuffix(ending) + inside, factor
    return column, 1.0


@cache
def fitted(name: str) -> dict:
    """The constants fitted on published runs that ship in NAME.json."""
    return loads((HERE / f"{name}.json").read_text())


class CatalogueError(ValueError):
    """A data file that breaks the rules of the catalogue."""


def read(path, key: str | None = "id") -> list[dict]:
    """Rows of one data file, checked: source, date and a known `verified` in each, `key` unique."""
    path = Path(path)
    rows = list(csv_rows(path))
    seen = set()
    for line, row in enumerate(rows, 2):
        where = f"{path.name} line {line}" + (f" ({row[key]})" if key and row.get(key) else "")
        if None in row or None in row.values():
            raise CatalogueError(f"{where}: not as many cells as the header has")
        for column in ("source", "date", "verified"):
            if not row.get(column, "").strip():
                raise CatalogueError(f"{where}: no {column}")
        if row["verified"] not in VERIFIED:
            raise CatalogueError(
                f"{where}: verified is {row['verified']!r}, not one of {', '.join(VERIFIED)}"
            )
        if key:
            if not row.get(key) or row[key] in seen:
                raise CatalogueError(f"{where}: {key} is empty or not unique")
            seen.add(row[key])
    return rows


@cache
def rows(name: str, key: str | None = "id") -> Rows:
    """Rows of a data file of the catalogue, by name."""
    return tuple(read(HERE / f"{name}.csv", key))


def filled(kind: type, of) -> list:
    """A record of `kind` for each row: every field from the column of its name, or of its name in
    a unit of the trade; a blank cell is the field's default, else BLANK."""
    of = list(of)
    sources = {}
    for column in of[0] if of else ():
        field, factor = field_of(column)
        sources |= {field: (column, factor), column: (column, 1.0)}
    return [
        kind(**{f.name: _value(f, row, *sources.get(f.name, ("", 1.0))) for f in fields(kind)})
        for row in of
    ]


def _value(field, row: dict, column: str, factor: float):
    text = row.get(column, "")
    if not text:
        return BLANK[field.type] if field.default is MISSING else field.default
    if field.type.startswith("float"):
        return float(text) * factor
    if field.type.startswith("int"):
        return int(float(text))
    if field.type == "tuple[float, ...]":
        return tuple(float(x) * factor for x in text.split())
    if field.type == "bool":
        return text not in ("0", "none")
    return tuple(text.split()) if field.type == "Lines" else text


def indexed(of: list) -> dict:
    """Records by id and by alias."""
    table = {r.id: r for r in of}
    for r in of:
        for alias in getattr(r, "aliases", ()):
            if alias in table:
                raise CatalogueError(f"alias {alias} of {r.id} is taken by {table[alias].id}")
            table[alias] = r
    return table


def by_id(table: dict) -> dict:
    """The records of `indexed` by id alone."""
    return {word: r for word, r in table.items() if word == r.id}


def find(table: dict, word, field: str, kind: str):
    """The record of an id or alias, case ignored. Raises DesignError with the nearest id."""
    if not isinstance(word, str):
        raise DesignError(field, word, f"the id of {kind}")
    found = table.get(word) or table.get(word.strip().lower())
    if found is None:
        near = closest(word, table)
        raise DesignError(
            field,
            word,
            by_id(table),
            near and table[near].id,
            problem=f"is not {kind} of the catalogue",
        )
    return found
