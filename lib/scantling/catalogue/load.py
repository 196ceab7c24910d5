"""Reading the data files: rows checked against the rules of the catalogue, and turned into records.

A column that names a unit of the trade becomes the field in the unit inside: hbm_gb fills
hbm_bytes, latency_us latency_s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import cache
from json import loads
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_type_hints

from ..base.errors import CatalogueError, DesignError, closest
from ..base.files import csv_rows
from ..base.records import Lines, Rows
from ..base.typed import DATES, is_date
from ..base.units import GB, GBIT, MB, TERA

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
Kind = TypeVar("Kind", bound="DataclassInstance")


class Identified(Protocol):
    """A record with an id."""

    @property
    def id(self) -> str: ...


Named = TypeVar("Named", bound=Identified)


class Cache(Protocol):
    """What functools.cache makes of a function."""

    def cache_clear(self) -> None: ...


Cached = TypeVar("Cached", bound=Cache)
_CACHES: list[Cache] = []


def of_rows(cached: Cached) -> Cached:
    """Names a cache of what is made from rows of the catalogue, where the arguments do not say from
    which: forgotten where rows are replaced (`replaced.replaced`)."""
    _CACHES.append(cached)
    return cached


def forget() -> None:
    """Forget all that is kept of rows."""
    for cached in _CACHES:
        cached.cache_clear()


@cache
def field_of(column: str) -> tuple[str, float]:
    """(field of the record, factor) that a column named after a unit of the trade fills."""
    for ending, (inside, factor) in UNITS.items():
        if column.endswith(ending):
            return column.removesuffix(ending) + inside, factor
    return column, 1.0


@cache
def fitted(name: str) -> dict[str, Any]:
    """The constants fitted on published runs that ship in NAME.json."""
    values: dict[str, Any] = loads((HERE / f"{name}.json").read_text())
    return values


def read(path: str | Path, key: str | None = "id") -> list[dict[str, Any]]:
    """Rows of one data file, checked: source, date and a known `verified` in each, `key` unique."""
    path = Path(path)
    rows = list(csv_rows(path))
    seen: set[str] = set()
    for line, row in enumerate(rows, 2):
        where = f"{path.name} line {line}" + (f" ({row[key]})" if key and row.get(key) else "")
        if None in row or None in row.values():
            raise CatalogueError(f"{where}: not as many cells as the header has")
        for column in ("source", "date", "verified"):
            if not row.get(column, "").strip():
                raise CatalogueError(f"{where}: no {column}")
        if not is_date(row["date"]):
            raise CatalogueError(f"{where}: date is {row['date']!r}, not {DATES}")
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


def filled(
    kind: type[Kind], rows: Iterable[Mapping[str, str]], besides: Iterable[str] = ()
) -> list[Kind]:
    """A record of `kind` for each row: every field from the column of its name, or of its name in
    a unit of the trade; a blank cell is the field's default, else that of its type.

    Raises CatalogueError for a column that is no field of the record and not among `besides`, which
    are for readers, and for a field without a default that has no column.
    """
    rows = list(rows)
    if not rows:
        return []
    columns = _columns(kind, rows[0], besides)
    hints = get_type_hints(kind)
    made = []
    for row in rows:
        values = {}
        for name, (column, factor) in columns.items():
            if row.get(column):
                values[name] = _value(hints[name], row[column], factor)
            elif name not in _defaults(kind):
                values[name] = _blank(hints[name])
        made.append(kind(**values))
    return made


def _columns(
    kind: type[Kind], row: Mapping[str, str], besides: Iterable[str]
) -> dict[str, tuple[str, float]]:
    """{field: (its column, factor)}."""
    names = {f.name for f in fields(kind)}
    columns = {}
    for column in row:
        field, factor = field_of(column)
        if column in names:
            columns[column] = (column, 1.0)
        elif field in names:
            columns[field] = (column, factor)
        elif column not in besides:
            raise CatalogueError(f"{kind.__name__} has no field for the column {column}")
    missing = names - columns.keys() - _defaults(kind)
    if missing:
        raise CatalogueError(f"{kind.__name__}: no column for {', '.join(sorted(missing))}")
    return columns


@cache
def _defaults(kind: type[Kind]) -> frozenset[str]:
    """The fields of a record that have a default."""
    return frozenset(
        f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING
    )


def _value(hint: Any, text: str, factor: float) -> Any:
    """What a cell says, by the type of its field."""
    if hint in (float, float | None):
        return float(text) * factor
    if hint in (int, int | None):
        return int(float(text))
    if hint is bool:
        return text not in ("0", "none")
    if hint == Lines:
        return tuple(text.split())
    if hint == tuple[float, ...]:
        return tuple(float(x) * factor for x in text.split())
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if text not in list(hint):
            raise CatalogueError(f"{text!r} is none of {', '.join(hint)}")
        return hint(text)
    return text


def _blank(hint: Any) -> Any:
    """What a blank cell says."""
    if hint in (str, bool, int):
        return hint()
    if hint is float:
        return nan
    return None if hint in (float | None, int | None) else ()


def indexed(records: Iterable[Named]) -> dict[str, Named]:
    """Records by id and by alias."""
    records = list(records)
    table = {r.id: r for r in records}
    for r in records:
        for alias in vars(r).get("aliases", ()):
            if alias in table:
                raise CatalogueError(f"alias {alias} of {r.id} is taken by {table[alias].id}")
            table[alias] = r
    return table


def by_id(table: Mapping[str, Named]) -> dict[str, Named]:
    """The records of `indexed` by id alone."""
    return {word: r for word, r in table.items() if word == r.id}


def find(table: Mapping[str, Named], word: Any, field: str, kind: str) -> Named:
    """The record of an id or alias, case ignored. Raises DesignError with the nearest id."""
    if not isinstance(word, str):
        raise DesignError(field, word, f"the id of {kind}")
    record = table.get(word) or table.get(word.strip().lower())
    if record is None:
        near = closest(word, table)
        nearest = table[near].id if near else None
        problem = f"is not {kind} of the catalogue"
        raise DesignError(field, word, by_id(table), nearest, problem=problem)
    return record
