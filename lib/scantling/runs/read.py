"""Tables of runs, read: rows in the format of the published runs, as tables of their own or as data
frames where pandas is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.columns import Array
from ..base.errors import DesignError, plain
from ..base.files import read_table_text
from ..catalogue.models.entries import PADDED, build_model, models
from .frames import frame_of, has_pandas, table_of
from .normalise import TEXT, normalise, settled
from .predict import COLUMNS as PREDICTIONS
from .run_columns import ABOUT, LEADING, Bounds, bounds, columns, misspelt, switch_bounds
from .run_shapes import DETAIL, columns_of
from .run_table import Table, column_of, read_csv, table_of_cells, text

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_BYTES = 10_000_000
_MOST_COLUMNS = 1000
WINDOWS = (f"{DETAIL}window", f"{DETAIL}windowed_layers")
SAME = ("layers", "hidden", "heads", "kv_heads", "moe_experts")  # of a row and a model that are one
TableLike = str | Path | Mapping[str, Sequence[Any] | Array]  # what a user gives beside a frame


def read_table(path: str | Path) -> Table:
    """The CSV as numbers and text; columns that are missing are blank. Cells that are no number, or
    one outside the bounds of run_columns.csv, are named in the column `unreadable`. Leading lines
    that begin with # explain and are not read. Raises ValueError without an id column."""
    return table_of_text(read_table_text(path, "a table of runs as CSV", _MOST_BYTES), Path(path))


def named_table(path: str | Path) -> Table:
    """`read_table` of a table that a user names; raises DesignError where it is none."""
    try:
        return read_table(path)
    except (OSError, ValueError) as e:
        why = str(e).removeprefix(f"{path}: ")  # which leads the line already
        problem = f"cannot be read as a table of runs: {plain(why, 200)}"
        raise DesignError(plain(path, 200), problem=problem) from None


def table_of_text(source: str, path: Path) -> Table:
    """The text of a table as `read_table` gives it; `path` leads its messages, and the files that
    it names lie beside it."""
    lines = io.StringIO(source.removeprefix("\ufeff"), newline="").readlines()
    explained = len(list(takewhile(lambda line: line.startswith(LEADING), lines)))
    rows = lines[explained:]
    if rows and rows[0].count(",") >= _MOST_COLUMNS:
        raise ValueError(f"more than {_MOST_COLUMNS:,} columns")
    table = read_csv(rows, text_only=("id",), first=explained + 1)
    if "id" not in table:
        raise ValueError(f"{path}: no column `id`; scantling predict --template writes a table")
    return checked(table, path.parent)


def table_of_user(runs: TableLike | DataFrame) -> Table:
    """The rows of a table of runs that a user gives as its path, as a data frame or as columns;
    raises DesignError for anything else."""
    if isinstance(runs, (str, Path)):
        return named_table(runs)
    table = unread_table(runs)
    if table is None or "id" not in table:
        allowed = (
            "a pandas DataFrame or a mapping of columns of one length, with a column `id`, "
            "or the path of a table of runs"
        )
        raise DesignError("runs", type(runs).__name__, allowed)
    return table if "unreadable" in table else checked(table, Path())


def unread_table(runs: object) -> Table | None:
    """Columns by name, or a data frame, as a table; None for anything else."""
    if isinstance(runs, Mapping):
        return table_of_cells(runs) if are_columns(runs) else None
    if not has_pandas():
        return None
    import pandas as pd

    return table_of(runs) if isinstance(runs, pd.DataFrame) else None


def are_columns(values: Mapping[Any, Any]) -> bool:
    """Whether the values of a mapping are columns of one length."""
    if not all(isinstance(column, (list, tuple, np.ndarray)) for column in values.values()):
        return False
    return len({len(column) for column in values.values()}) == 1


def read_runs(path: str | Path) -> DataFrame:
    """`read_table` as a data frame."""
    return frame_of(read_table(path))


def checked(table: Table, folder: Path) -> Table:
    """The rows with every column of the format, their numbers read, their words settled; `folder`
    holds the files that they name."""
    problems = misspelt_cells(table)
    table, shapeless = with_shapes(table, folder)
    limits = bounds()
    limits |= {name: limit for name, limit in switch_bounds().items() if name in table}
    numbers: dict[str, Array] = {}
    unreadable = [""] * len(table)
    for name, limit in limits.items():
        numbers[name] = table.numbers(name)
        for i in np.flatnonzero(~table.blank(name) & ~within(numbers[name], limit)):
            cell = str(text(table[name][i : i + 1])[0])[:40]
            unreadable[i] += f"{name} {cell!r} is not {limit.words}; "
    problems = ["".join(texts) for texts in zip(problems, unreadable, shapeless)]
    return normalise(table.replace(numbers | {"unreadable": column_of(problems)}))


def misspelt_cells(table: Table) -> list[str]:
    """What each row states in a column whose name is a misspelt one."""
    texts = [""] * len(table)
    others = {*TEXT, *settled(), *PREDICTIONS, *ABOUT}
    names = [name for name in table if not name.startswith(DETAIL)]
    for name, nearest in misspelt(names, others).items():
        for i in np.flatnonzero(~table.blank(name)).tolist():
            texts[i] += f"column {plain(name)} is not known; nearest: {nearest}; "
    return texts


def unread_columns(table: Table) -> list[str]:
    """Columns of a table that are none of the format."""
    others = {*TEXT, *settled(), *PREDICTIONS, *ABOUT, *columns(), *switch_bounds(), "unreadable"}
    return [name for name in table if name not in others and not name.startswith(DETAIL)]


def within(column: Array, limit: Bounds) -> Array:
    """Which numbers of a column lie within bounds."""
    fine = (column >= limit.low) & (column <= limit.high)
    if limit.whole:
        fine &= column == np.floor(column)
    return fine


def with_shapes(table: Table, folder: Path) -> tuple[Table, list[str]]:
    """Rows without layers take the shape of their `hf_config`, else that of the catalogue's model
    of that id; rows that print the dimensions of a catalogue's model with windows, which no column
    of theirs can say, take those. With what stops a config, a text a row."""
    shapeless = [""] * len(table)
    blank = table.blank("layers") if "layers" in table else ~table.blank("id")
    configs = table.text("hf_config")
    names = table.text("model")
    shapes: dict[int, dict[str, Any]] = {}
    for i in np.flatnonzero(blank).tolist():
        try:
            model, _ = build_model({"hf_config": configs[i]} if configs[i] else names[i], folder)
            shapes[i] = columns_of(model)
        except DesignError as e:
            shapeless[i] = f"{plain(e, 200)}; " if configs[i] else ""
    shapes |= windows_of(table, blank)
    shaped = dict.fromkeys(name for shape in shapes.values() for name in shape)
    return table.replace({name: completed(table, name, shapes) for name in shaped}), shapeless


def completed(table: Table, name: str, shapes: Mapping[int, Mapping[str, Any]]) -> Array:
    """A column with its blanks as the shapes of rows have it."""
    blank = table.blank(name)
    values = {i: shape[name] for i, shape in shapes.items() if name in shape and blank[i]}
    words = any(isinstance(value, str) for value in values.values())
    if words or (name in table and table[name].dtype.kind == "O"):
        column = table.text(name).copy()
        values = {i: str(value) for i, value in values.items() if value == value}
    else:
        column = table.numbers(name)
    for i, value in values.items():
        column[i] = value
    return column


def windows_of(table: Table, blank: Array) -> dict[int, dict[str, Any]]:
    """{row: windows of attention} of the rows whose dimensions are those of a catalogue's model
    with windows."""
    dimensions = np.nan_to_num(np.column_stack([table.numbers(name) for name in SAME]))
    vocab = table.numbers("vocab")
    windows: dict[int, dict[str, Any]] = {}
    for model in models().values():
        if not model.windowed_layers:
            continue
        row = columns_of(model)
        same = (dimensions == [row[name] for name in SAME]).all(axis=1)
        padded = np.abs(vocab / model.vocab - 1) < PADDED
        for i in np.flatnonzero(same & padded & ~blank).tolist():
            windows[i] = {name: row[name] for name in WINDOWS}
    return windows
