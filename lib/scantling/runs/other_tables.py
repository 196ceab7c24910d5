"""Tables of another kind than the published runs', which packages beside the core know by their
columns and answer themselves.

A package names a function under `scantling.tables`: it takes the rows of a table, a mapping a row,
and returns columns, or None where the table is none of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..base.columns import Array
from ..base.errors import DesignError, plain
from ..base.files import read_table_text
from ..base.plugins import entries, load
from .run_columns import LEADING
from .run_table import records

GROUP = "scantling.tables"
MOST_BYTES = 10_000_000
Answer = Callable[[Sequence[Mapping[str, str]]], Mapping[str, Array] | None]


def rows_of(path: str | Path) -> list[dict[str, str]]:
    """The rows of a CSV as text, by its columns. Raises DesignError where it is none."""
    source = read_table_text(path, "a table as CSV", MOST_BYTES).removeprefix("\ufeff")
    lines = [line for line in source.splitlines(keepends=True) if not line.startswith(LEADING)]
    try:
        head, *body = records(lines, 1) or [[]]
    except ValueError as error:
        problem = f"cannot be read as a table: {plain(error, 200)}"
        raise DesignError(plain(path, 200), problem=problem) from None
    return [dict(zip(head, [*row, *[""] * (len(head) - len(row))], strict=True)) for row in body]


def answered(path: str | Path) -> Mapping[str, Array] | None:
    """What a package answers for a table that it knows; None where none does."""
    if not entries(GROUP):
        return None
    rows = rows_of(path)
    for entry in entries(GROUP).values():
        answer: Answer = load(entry)
        columns = answer(rows)
        if columns is not None:
            return columns
    return None
