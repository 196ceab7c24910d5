"""Rows of named values, as tables, event files and JSON lines hold them, as step lines."""

from collections.abc import Iterator
from functools import lru_cache
from json import loads

from scantling.base.words import table

from .found import COLUMNS, NAN, Found, number
from .text import lines


def spoken(file: str = "rows") -> dict:
    """The names that a data file of this room holds."""
    return table(__file__, file)


@lru_cache(64)
def chosen(names: tuple) -> list:
    """(column, name in the row, factor) of each column that a row with these names holds."""
    known = spoken()["columns"].items()
    best = ((c, next((n for n in those if n in names), None), those) for c, those in known)
    return [(column, name, those[name]) for column, name, those in best if name]


def take(found: Found, row: dict) -> None:
    """One step line from a row of named values; a row without a step is none."""
    got = {c: number(row[name]) * factor for c, name, factor in chosen(tuple(row))}
    if 0 <= got.get("step", NAN) < 1e15:
        found.memory(got.get("memory_gib", 0.0))
        found.seen(got.get("clock_s", NAN))
        found.add(**{name: value for name, value in got.items() if name in COLUMNS})


def events(path, prefix: str) -> Iterator:
    """(the JSON object behind a prefix, "") of a line that has one, else ({}, line)."""
    for line in lines(path):
        _, at, text = line.partition(prefix)
        try:
            event = loads(text) if at else {}
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event, "" if at else line
