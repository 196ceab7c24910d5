"""The blueprint in a terminal: each part as tables, shown as blueprint_tables.yaml says. Units come
from the names of the keys."""

from __future__ import annotations

from numbers import Number

from rich.console import Console
from rich.text import Text

from ..advise.explanation import at
from ..base.errors import plain
from ..base.show import shown
from ..base.words import table
from .tables import bare

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
        layout = LAYOUT["parts"].get(part)
        if data is None:
            out.print(Text("none: the design is impossible"))
        elif layout and not (full and layout.get("brief")):
            _laid_out(
                layout,
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
        _lines(at(data, path) or (), out)
    for words, key in part.get("said", {}).items():
        said = data[key] if isinstance(data[key], str) else "; ".join(data[key])
        _lines([words + said] if said else (), out)
    for of in part["tables"]:
        _table(
            of["title"],
            at(data, of["rows"]) or [],
            of["columns"],
            out,
        )
    for book in data.get(part.get("playbooks"), ()):
        each = cell("seconds", book["seconds"]), cell("usd", book["usd"])
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
            {k: v for path in paths for k, v in at(data, path).items()},
            out,
        )


def _lines(
    lines,
    out: Console,
    mark: str = "· ",
) -> None:
    for line in lines:
        out.print(Text(f"{mark}{plain(str(line), 600)}"))


def _titled(
    title: str,
    rows,
    out: Console,
    *columns: dict,
) -> None:
    grid = bare(rows, *columns)
    grid.title, grid.title_justify, grid.title_style = title, "left", "bold"
    out.print()
    out.print(grid)


def _table(
    title: str,
    rows,
    columns: dict,
    out: Console,
) -> None:
    if not rows:
        return
    heads = (
        {
            "header": heading,
            "overflow": "fold",
            "justify": "right" if all(_is_number(row.get(key)) for row in rows) else "left",
        }
        for key, heading in columns.items()
    )
    shown_rows = (
        [
            cell(
                key,
                row.get(key),
                row.get("unit"),
            )
            for key in columns
        ]
        for row in rows[:ROWS]
    )
    _titled(
        title,
        shown_rows,
        out,
        *heads,
    )
    if len(rows) > ROWS:
        out.print(Text(f"and {len(rows) - ROWS} more: --json has them", style="dim"))


def _is_number(value) -> bool:
    return isinstance(value, Number | None) and not isinstance(value, bool)


def _pairs(
    title: str,
    data: dict,
    out: Console,
) -> None:
    rows = []
    for key, value in data.items():
        first, name = _first(value), key.replace("_", " ")
        if isinstance(first, str):
            names = [name] + [""] * (len(value) - 1)
            rows += zip(names, (plain(line, 300) for line in value))
        elif value not in (None, "") and not isinstance(first, dict):
            rows.append((name, cell(key, value)))
    _titled(
        title,
        rows,
        out,
        {},
        {"overflow": "fold"},
    )


def _any(data: dict, out: Console) -> None:
    """A part with no tables of its own: lists of mappings as tables, lists of texts as lines, the
    rest as pairs."""
    pairs = {}
    for key, value in data.items():
        first, name = _first(value), key.replace("_", " ")
        if isinstance(first, dict):
            columns = {k: k.replace("_", " ") for k in [*_flat(first)][:COLUMNS]}
            _table(
                name,
                value,
                columns,
                out,
            )
        elif isinstance(first, str):
            _lines(value, out)
        elif not isinstance(value, dict):
            pairs[key] = value
        elif flat := _flat(value):
            _pairs(
                name,
                flat,
                out,
            )
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
