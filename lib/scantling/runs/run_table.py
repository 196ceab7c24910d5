"""A table of runs: columns of numbers and of text, all of one length, read from CSV and written to
it.

A column of text whose cells are all numbers is one of numbers, else it stays text: so a cell is
named in a message as its table prints it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.cells import spreadsheet_cell
from ..base.columns import Array
from ..base.records import record

# cells that say nothing, as tables that other programs write have them
BLANKS = frozenset(
    (
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    )
)
TRUTHS = {"true": "True", "True": "True", "TRUE": "True"}
TRUTHS |= {"false": "False", "False": "False", "FALSE": "False"}
WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
NUMBER = re.compile(
    r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)
_END = "the end"  # a row of our own behind the last one


@record
class Table:
    """Columns by name, each of as many rows: floats (nan where blank), whole numbers, or text as
    arrays of str ("" where blank)."""

    columns: Mapping[str, Array]
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def numbers(self, name: str) -> Array:
        """A column as floats, nan where it is blank or no number; all blank where it is missing."""
        return numbers(self[name]) if name in self else np.full(self.rows, np.nan)

    def text(self, name: str) -> Array:
        """A column as text, "" where it is blank; all blank where it is missing."""
        return text(self[name]) if name in self else np.full(self.rows, "", object)

    def blank(self, name: str) -> Array:
        """Which cells of a column are blank; all where it is missing."""
        return is_blank(self[name]) if name in self else np.full(self.rows, True)

    def take(self, rows: Array) -> Table:
        """Some rows: their positions, or a truth value a row."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return table_of_columns(columns)

    def replace(self, columns: Mapping[str, Array]) -> Table:
        """The table with some columns in the place of those of their names, or added."""
        return Table(columns={**self.columns, **columns}, rows=self.rows)


def table_of_columns(columns: Mapping[str, Array]) -> Table:
    """Columns of one length as a table."""
    return Table(columns=columns, rows=len(next(iter(columns.values()))) if columns else 0)


def table_of_cells(columns: Mapping[str, Iterable[Any]]) -> Table:
    """Columns of values of any kind as a table: None, nan and "" are blank."""
    return table_of_columns({name: column_of(cells) for name, cells in columns.items()})


def column_of(cells: Iterable[Any]) -> Array:
    """Values of any kind as a column: as they are where they are numbers, else text."""
    column = cells if isinstance(cells, np.ndarray) else np.array([*cells], dtype=object)
    if column.dtype.kind in "fiu":
        return column
    if all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in column):
        return column.astype(float)
    return _text("" if cell is None or cell != cell else str(cell) for cell in column)


def _text(cells: Iterable[str]) -> Array:
    return np.array([*cells], dtype=object)


def words(cells: Iterable[str]) -> Array:
    """The cells of a column as text."""
    return _text("" if cell in BLANKS else cell for cell in cells)


def typed(cells: Sequence[str]) -> Array:
    """The cells of a column as whole numbers, floats, or text; "True" and "False" where they are
    all truth values."""
    stated = {*cells} - BLANKS
    if not stated:
        return np.full(len(cells), np.nan)
    if all(cell in TRUTHS for cell in stated):
        return _text(TRUTHS.get(cell, "") for cell in cells)
    if not all(NUMBER.fullmatch(cell) for cell in stated):
        return words(cells)
    if all(WHOLE.fullmatch(cell) for cell in stated):
        kind = whole_kind([int(cell) for cell in stated])
        if kind is None:
            return words(cells)
        if BLANKS.isdisjoint(cells):
            return np.array([int(cell) for cell in cells], kind)
    return np.array([np.nan if cell in BLANKS else float(cell) for cell in cells])


def whole_kind(values: Sequence[int]) -> type[np.integer[Any]] | None:
    """The type that holds some whole numbers; None where one is larger than arrays hold."""
    for kind in (np.int64, np.uint64):
        limits = np.iinfo(kind)
        if limits.min <= min(values) and max(values) <= limits.max:
            return kind
    return None


def each(column: Array, kind: type, function: Callable[[str], Any]) -> Array:
    """A function of every cell of a column of text; of equal cells once."""
    values = {cell: function(cell) for cell in {*column}}
    return np.array([values[cell] for cell in column], kind)


def numbers(column: Array) -> Array:
    """A column as floats: nan where it is blank or no number; truth values as 1 and 0."""
    if column.dtype.kind in "fiu":
        return column.astype(float)
    stated = {*column} - {""}
    if stated and stated <= {*TRUTHS.values()}:
        return each(column, float, lambda cell: float(cell == "True") if cell else np.nan)
    return each(column, float, lambda cell: float(cell) if NUMBER.fullmatch(cell) else np.nan)


def text(column: Array) -> Array:
    """A column as text: "" where it is blank."""
    if column.dtype.kind == "f":
        return _text("" if number != number else str(number) for number in column.tolist())
    return column if column.dtype.kind == "O" else _text(str(n) for n in column.tolist())


def is_blank(column: Array) -> Array:
    """Which cells of a column are blank."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    return column == "" if column.dtype.kind == "O" else np.full(len(column), False)


def filled(column: Array, value: float | Array) -> Array:
    """Numbers with another in the place of blanks."""
    return np.where(np.isnan(column), value, column)


def among(column: Array, words: Iterable[str]) -> Array:
    """Which cells of a column of text are one of some words."""
    allowed = {*words}
    return each(column, bool, lambda cell: cell in allowed)


def read_csv(lines: Sequence[str], text_only: Sequence[str] = (), first: int = 1) -> Table:
    """The lines of a CSV as a table, its head first; columns of `text_only` stay text. Short rows
    are filled with blanks. `first` is the number of the first line.

    Raises ValueError for a row with more fields than the head, a quotation mark that is not closed,
    and where there is no head.
    """
    rows = records(lines, first)
    if not rows:
        raise ValueError("No columns to parse from file")
    head, *body = rows
    names = distinct([name.strip() or f"Unnamed: {i}" for i, name in enumerate(head)])
    columns: dict[str, Array] = {}
    for i, name in enumerate(names):
        cells = [row[i] if i < len(row) else "" for row in body]
        columns[name] = words(cells) if name in text_only else typed(cells)
    return Table(columns=columns, rows=len(body))


def records(lines: Sequence[str], first: int) -> list[list[str]]:
    """The rows of a CSV but for blank lines, none longer than the first."""
    closed = [line if line.endswith(("\r", "\n")) else f"{line}\n" for line in lines]
    reader = csv.reader([*closed, _END])
    rows: list[list[str]] = []
    try:
        for row in reader:
            line = reader.line_num + first - 1
            if rows and len(row) > len(rows[0]):
                raise ValueError(f"Expected {len(rows[0])} fields in line {line}, saw {len(row)}")
            if len(row) > 1 or (row and row[0].strip(" \t")):
                rows.append(row)
    except csv.Error as e:
        raise ValueError(f"line {reader.line_num + first - 1}: {e}") from None
    if rows.pop() != [_END]:  # a mark that is not closed takes it into its cell
        raise ValueError(f"EOF inside string starting at row {len(rows)}")
    return rows


def distinct(names: Sequence[str]) -> list[str]:
    """Names with numbers behind those that stood before: a, a.1."""
    used: set[str] = set()
    unique = []
    for name in names:
        number = 0
        candidate = name
        while candidate in used or (number and candidate in names):
            number += 1
            candidate = f"{name}.{number}"
        used.add(candidate)
        unique.append(candidate)
    return unique


def to_csv(columns: Mapping[str, Array], whole: Iterable[str] = ()) -> str:
    """Columns as CSV, those of `whole` as whole numbers; what is unknown (nan) is blank, and a text
    is none that a spreadsheet runs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    cells = {name: column.tolist() for name, column in columns.items()}
    for name in whole:
        cells[name] = [value if value != value else int(value) for value in cells[name]]
    for row in zip(*cells.values()):
        writer.writerow(_cell(value) for value in row)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A value as a cell: blank where it is unknown."""
    if value != value:
        return ""
    return spreadsheet_cell(value) if isinstance(value, str) else value
