"""The blueprint in a terminal: each part as tables, shown as blueprint_tables.yaml says. Units come
from the names of the keys."""

from __future__ import annotations

from functools import cache
from numbers import Number
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.errors import plain
from ..base.show import shown

ROWS = 24
COLUMNS = 9


@cache
def layout() -> dict:
    """What is shown of each part, and the kind of number of each key."""
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@cache
def kinds() -> dict[str, str]:
    """{key: kind of number}."""
    return {key: kind for kind, keys in layout()["kinds"].items() for key in keys.split()}


def show_parts(
    name: str,
    parts: dict,
    out: Console,
) -> None:
    """Print the named parts of a blueprint's plain data, one after the other."""
    out.print(Text(plain(name, 120), style="bold"))
    for part, data in parts.items():
        out.print()
        out.print(Text(part, style="bold underline"))
        if data is None:
            out.print(Text("none: the design is impossible"))
        elif part in layout()["parts"]:
            _laid_out(layout()["parts"][part], data, out)
        else:
            _any(data, out)


def _laid_out(
    part: dict,
    data: dict,
    out: Console,
) -> None:
    for path in part.get("lines", ()):
        _lines(_at(data, path) or (), out)
    for words, key in part.get("said", {}).items():
        said = data[key] if isinstance(data[key], str) else "; ".join(data[key])
        if said:
            out.print(Text(f"· {words}{plain(said, 600)}"))
    for table in part["tables"]:
        _table(
            table["title"],
            _at(data, table["rows"]) or [],
            table["columns"],
            out,
        )
    for book in _at(data, part.get("playbooks", "")) or ():
        each = shown(book["seconds"], "seconds"), shown(book["usd"], "usd")
        out.print(Text(f"\n{book['id']}: {each[0]}, {each[1]} each", style="bold"))
        steps = (f"{i}. {step}" for i, step in enumerate(book["steps"], 1))
        _lines((*book["signals"], *steps), out, "  ")
    for title, paths in part.get("pairs", {}).items():
        _pairs(title, {k: v for path in paths for k, v in _at(data, path).items()}, out)


def _at(data, path: str):
    for key in path.split("."):
        data = (data or {}).get(key)
    return data


def _lines(
    lines,
    out: Console,
    mark: str = "· ",
) -> None:
    for line in lines:
        out.print(Text(f"{mark}{plain(str(line), 400)}"))


def _grid(title: str, **style) -> Table:
    own = dict(
        title=title,
        title_justify="left",
        title_style="bold",
    )
    return Table(
        box=None,
        pad_edge=False,
        **own,
        **style,
    )


def _table(
    title: str,
    rows,
    columns: dict,
    out: Console,
) -> None:
    if not rows:
        return
    grid = _grid(title, header_style="dim")
    for key, heading in columns.items():
        values = [row.get(key) for row in rows]
        numbers = all(isinstance(v, Number | None) and not isinstance(v, bool) for v in values)
        grid.add_column(
            heading,
            overflow="fold",
            justify="right" if numbers else "left",
        )
    for row in rows[:ROWS]:
        grid.add_row(*(cell(key, row.get(key), row.get("unit")) for key in columns))
    out.print()
    out.print(grid)
    if len(rows) > ROWS:
        out.print(Text(f"and {len(rows) - ROWS} more: --json has them", style="dim"))


def _pairs(
    title: str,
    data: dict,
    out: Console,
) -> None:
    grid = _grid(title, show_header=False)
    grid.add_column()
    grid.add_column(overflow="fold")
    for key, value in data.items():
        first = value[0] if isinstance(value, list) and value else None
        name = key.replace("_", " ")
        if isinstance(first, str):
            for line in value:
                grid.add_row(name, plain(line, 300))
                name = ""
        elif value is not None and value != "" and not isinstance(first, dict):
            grid.add_row(name, cell(key, value))
    out.print()
    out.print(grid)


def _any(data: dict, out: Console) -> None:
    """A part with no tables of its own: lists of mappings as tables, lists of texts as lines, the
    rest as pairs."""
    pairs = {}
    for key, value in data.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict):
            columns = [k for k, v in first.items() if not isinstance(v, dict | list)][:COLUMNS]
            headed = {k: k.replace("_", " ") for k in columns}
            _table(
                key.replace("_", " "),
                value,
                headed,
                out,
            )
        elif isinstance(first, str):
            _lines(value, out)
        elif isinstance(value, dict):
            flat = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
            if flat:
                _pairs(key.replace("_", " "), flat, out)
        else:
            pairs[key] = value
    if pairs:
        _pairs("", pairs, out)


def cell(
    key: str,
    value,
    unit: str | None = None,
) -> str:
    """One value as people read it: the unit of the row where it has one, else the one that the
    key's ending names."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if {"now", "then"} <= value.keys():
            now, then = (cell("", value[k], value["unit"]) for k in ("now", "then"))
            return f"{value['name']} {now} → {then}"
        return ", ".join(f"{k} {cell(k, v)}" for k, v in value.items())
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "short_by" in value[0]:
            return ", ".join(f"{m['what']} by {shown(m['short_by'], 'ratio')} times" for m in value)
        return plain("; ".join(str(v) for v in value[:2]), 240)
    if isinstance(value, Number):
        kind = _kind(key, unit)
        whole = kind == "plain" and value == value and abs(value) < 1e6 and value == int(value)
        return f"{int(value):,}" if whole else shown(value, kind)
    return plain(str(value), 400)


def _kind(key: str, unit: str | None) -> str:
    units = layout()["units"]
    endings = layout()["endings"]
    if unit in units and key in ("", *layout()["unit_of"].split()):
        return units[unit]
    by_ending = (kind for ending, kind in endings.items() if key.endswith(ending))
    return kinds().get(key) or next(by_ending, "plain")
