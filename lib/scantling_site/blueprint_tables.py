"""The blueprint in a terminal: each part as tables, shown as blueprint_tables.yaml says. Units come
from the names of the keys."""

from collections.abc import Iterator
from numbers import Number

from rich.console import Console
from rich.text import Text
from scantling.base.errors import plain
from scantling.base.records import at
from scantling.base.show import shown
from scantling.base.words import table
from scantling.cli.tables import Look, bare, say

ROWS = 24
COLUMNS = 9


# what is shown of each part, the kind of number of each key, and the units of rows
LAYOUT = table(__file__, "blueprint_tables")
KINDS = {key: kind for kind, keys in LAYOUT["kinds"].items() for key in keys.split()}


def show_parts(name: str, parts: dict, out: Console, full: bool = False) -> None:
    """Print the named parts of a blueprint's plain data, one after the other; `full`: all of those
    that have a brief form."""
    out.print(Text(plain(name, 120), style="bold"))
    for part, data in parts.items():
        out.print()
        out.print(Text(part, style="bold underline"))
        layout = LAYOUT["parts"].get(part)
        if data is None:
            out.print(Text("none: the design is impossible"))
            continue
        laid_out = layout and not (full and layout.get("brief"))
        for piece in _laid_out(layout, data) if laid_out else _any(data):
            out.print(piece)


def _laid_out(part: dict, data: dict) -> Iterator:
    for path in part.get("lines", ()):
        yield from _lines(at(data, path) or ())
    for words, key in part.get("said", {}).items():
        said = data[key] if isinstance(data[key], str) else "; ".join(data[key])
        yield from _lines([words + said] if said else ())
    for of in part["tables"]:
        yield from _table(of["title"], at(data, of["rows"]) or [], of["columns"])
    for book in data.get(part.get("playbooks"), ()):
        yield Text(say("playbook", **book), style="bold")
        steps = (f"{i}. {step}" for i, step in enumerate(book["steps"], 1))
        yield from _lines((*book["signals"], *steps), "  ")
    for title, paths in part.get("pairs", {}).items():
        yield from _pairs(title, {k: v for path in paths for k, v in at(data, path).items()})


def _lines(lines, mark: str = "· ") -> Iterator:
    return (Text(f"{mark}{plain(line, 600)}") for line in lines)


def _titled(title: str, rows, *columns: dict) -> Iterator:
    grid = bare(rows, *(Look(**column) for column in columns))
    grid.title = title
    grid.title_justify = "left"
    grid.title_style = "bold"
    yield from ("", grid)


def _table(title: str, rows, columns: dict) -> Iterator:
    if not rows:
        return
    heads = (
        {
            "header": heading,
            "overflow": "fold",
            "justify": "right"
            if all(
                isinstance(v := row.get(key), Number | None) and not isinstance(v, bool)
                for row in rows
            )
            else "left",
        }
        for key, heading in columns.items()
    )
    shown_rows = (
        [cell(key, row.get(key), row.get("unit")) for key in columns] for row in rows[:ROWS]
    )
    yield from _titled(title, shown_rows, *heads)
    if len(rows) > ROWS:
        yield Text(f"and {len(rows) - ROWS} more: --json has them", style="dim")


def _pairs(title: str, data: dict) -> Iterator:
    rows = []
    for key, value in data.items():
        first = _first(value)
        name = key.replace("_", " ")
        if isinstance(first, str):
            rows += zip([name] + [""] * (len(value) - 1), (plain(line, 300) for line in value))
        elif value not in (None, "") and not isinstance(first, dict):
            rows.append((name, cell(key, value)))
    return _titled(title, rows, {}, {"overflow": "fold"})


def _any(data: dict) -> Iterator:
    """A part with no tables of its own: lists of mappings as tables, lists of texts as lines, the
    rest as pairs."""
    pairs = {}
    for key, value in data.items():
        first = _first(value)
        name = key.replace("_", " ")
        if isinstance(first, dict):
            columns = {k: k.replace("_", " ") for k in [*_flat(first)][:COLUMNS]}
            yield from _table(name, value, columns)
        elif isinstance(first, str):
            yield from _lines(value)
        elif not isinstance(value, dict):
            pairs[key] = value
        elif flat := _flat(value):
            yield from _pairs(name, flat)
    if pairs:
        yield from _pairs("", pairs)


def _first(value):
    return value[0] if isinstance(value, list) and value else None


def _flat(value: dict) -> dict:
    return {k: v for k, v in value.items() if not isinstance(v, dict | list)}


def cell(key: str, value, unit: str | None = None) -> str:
    """One value as people read it: the unit of the row where it has one, else the one that the
    key's ending names."""
    if value is None or isinstance(value, bool):
        return shown(value, "")
    if isinstance(value, dict):
        if {"now", "then"} <= value.keys():
            now, then = (cell("", value[k], value["unit"]) for k in ("now", "then"))
            return f"{value['name']} {now} → {then}"
        return ", ".join(f"{k} {cell(k, v)}" for k, v in value.items())
    if isinstance(value, list):
        if "short_by" in (_first(value) or ""):
            return ", ".join(say("short", **m) for m in value)
        return plain("; ".join(str(v) for v in value[:2]), 240)
    if isinstance(value, Number):
        kind = _kind(key, unit)
        whole = kind == "plain" and value == value and abs(value) < 1e6 and value == int(value)
        return f"{int(value):,}" if whole else shown(value, kind)
    return plain(value, 400)


def _kind(key: str, unit: str | None) -> str:
    if unit in LAYOUT["units"] and key in ("", *LAYOUT["unit_of"].split()):
        return LAYOUT["units"][unit]
    by_ending = (kind for ending, kind in LAYOUT["endings"].items() if key.endswith(ending))
    return KINDS.get(key) or next(by_ending, "plain")
