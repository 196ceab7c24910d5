"""The blueprint in a terminal: each part as tables, shown as blueprint_tables.yaml says. Units come
from the names of the keys."""

from __future__ import annotations

from numbers import Number

from rich.console import Console
from rich.text import Text

from ..base.errors import plain
from ..base.show import shown
from ..base.words import table
from .summary import bare

ROWS = 24
COLUMNS = 9


# what is shown of each part, the kind of number of each key, and the units of rows
LAYOUT = table(__file__, "blueprint_tables")
KINDS = {key: kind for kind, keys in LAYOUT["kinds"].items() for key in keys.split()}


def show_parts(
    name: str,
    parts: dict,
    out: Console,
    full: bool = False,
) -> None:
    """Print the named parts of a blueprint's plain data, one after the other; `full`: all of those
    that have a brief form."""
    out.print(Text(plain(name, 120), style="bold"))
    for part, data in parts.items():
        out.print()
        out.print(Text(part, style="bold underline"))
        if data is None:
            out.print(Text("none: the design is impossible"))
        elif part in LAYOUT["parts"] and not (full and LAYOUT["parts"][part].get("brief")):
            _laid_out(
                LAYOUT["parts"][part],
                data,
                out,
            )
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
    for part_table in part["tables"]:
        _table(
            part_table["title"],
            _at(data, part_table["rows"]) or [],
            part_table["columns"],
            out,
        )
    for book in _at(data, part.get("playbooks", "")) or ():
        each = shown(book["seconds"], "seconds"), shown(book["usd"], "usd")
        out.print(Text(f"\n{book['id']}: {each[0]}, {each[1]} each", style="bold"))
        steps = (f"{i}. {step}" for i, step in enumerate(book["steps"], 1))
        _lines(
            (*book["signals"], *steps),
            out,
            "  ",
        )
    for title, paths in part.get("pairs", {}).items():
        _pairs(
            title,
            {k: v for path in paths for k, v in _at(data, path).items()},
            out,
        )


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


def _titled(
    title: str,
    *columns: dict,
    headed: bool = True,
):
    grid = bare(*columns, headed=headed)
    grid.title, grid.title_justify, grid.title_style = title, "left", "bold"
    return grid


def _table(
    title: str,
    rows,
    columns: dict,
    out: Console,
) -> None:
    if not rows:
        return
    grid = _titled(title)
    for key, heading in columns.items():
        values = [row.get(key) for row in rows]
        numbers = all(isinstance(v, Number | None) and not isinstance(v, bool) for v in values)
        grid.add_column(
            heading,
            overflow="fold",
            justify="right" if numbers else "left",
        )
    for row in rows[:ROWS]:
        grid.add_row(
            *(
                cell(
                    key,
                    row.get(key),
                    row.get("unit"),
                )
                for key in columns
            )
        )
    out.print()
    out.print(grid)
    if len(rows) > ROWS:
        out.print(Text(f"and {len(rows) - ROWS} more: --json has them", style="dim"))


def _pairs(
    title: str,
    data: dict,
    out: Console,
) -> None:
    grid = _titled(
        title,
        {},
        {"overflow": "fold"},
        headed=False,
    )
    for key, value in data.items():
        first, name = _first(value), key.replace("_", " ")
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
        first, name = _first(value), key.replace("_", " ")
        if isinstance(first, dict):
            columns = [*_flat(first)][:COLUMNS]
            _table(
                name,
                value,
                {k: k.replace("_", " ") for k in columns},
                out,
            )
        elif isinstance(first, str):
            _lines(value, out)
        elif isinstance(value, dict):
            if flat := _flat(value):
                _pairs(
                    name,
                    flat,
                    out,
                )
        else:
            pairs[key] = value
    if pairs:
        _pairs(
            "",
            pairs,
            out,
        )


def _first(value):
    return value[0] if isinstance(value, list) and value else None


def _flat(value: dict) -> dict:
    return {k: v for k, v in value.items() if not isinstance(v, dict | list)}


def cell(
    key: str,
    value,
    unit: str | None = None,
) -> str:
    """One value as people read it: the unit of the row where it has one, else the one that the
    key's ending names."""
    if value is None or isinstance(value, bool):
        return shown(value, "")
    if isinstance(value, dict):
        if {"now", "then"} <= value.keys():
            now, then = (
                cell(
                    "",
                    value[k],
                    value["unit"],
                )
                for k in ("now", "then")
            )
            return f"{value['name']} {now} → {then}"
        return ", ".join(f"{k} {cell(k, v)}" for k, v in value.items())
    if isinstance(value, list):
        if "short_by" in (_first(value) or ""):
            return ", ".join(f"{m['what']} by {shown(m['short_by'], 'ratio')} times" for m in value)
        return plain("; ".join(str(v) for v in value[:2]), 240)
    if isinstance(value, Number):
        kind = _kind(key, unit)
        whole = kind == "plain" and value == value and abs(value) < 1e6 and value == int(value)
        return f"{int(value):,}" if whole else shown(value, kind)
    return plain(str(value), 400)


def _kind(key: str, unit: str | None) -> str:
    if unit in LAYOUT["units"] and key in ("", *LAYOUT["unit_of"].split()):
        return LAYOUT["units"][unit]
    by_ending = (kind for ending, kind in LAYOUT["endings"].items() if key.endswith(ending))
    return KINDS.get(key) or next(by_ending, "plain")
