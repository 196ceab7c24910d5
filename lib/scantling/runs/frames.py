"""Tables of runs as pandas data frames, and data frames as tables; pandas is loaded when a frame is
made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..base.columns import Array
from ..base.errors import DesignError
from .normalise import TEXT, WORDS
from .run_table import Table, column_of, table_of_columns

if TYPE_CHECKING:
    from pandas import DataFrame

# columns of text that are read word by word: a blank of theirs is "", not missing
READ = frozenset((*TEXT, *WORDS, "unreadable"))


def has_pandas() -> bool:
    """Whether pandas is installed."""
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        return False
    return True


def need_pandas(command: str) -> None:
    """Raises DesignError with the line that installs pandas, where it is not installed."""
    if not has_pandas():
        raise DesignError(
            command,
            problem="needs pandas, which is not installed",
            allowed="pip install 'scantling[learn]'",
        )


def frame_of(table: Table) -> DataFrame:
    """A table as a data frame; blank text outside READ is missing."""
    import pandas as pd

    columns = {name: table[name] if name in READ else _missing(table[name]) for name in table}
    return pd.DataFrame(columns, index=range(len(table)))


def frame_of_answers(columns: Mapping[str, Array]) -> DataFrame:
    """Columns that a package answers a table of its own with, as a data frame."""
    import pandas as pd

    return pd.DataFrame({name: _missing(column) for name, column in columns.items()})


def _missing(column: Array) -> Array:
    """A column with nan in the place of blank text."""
    return np.where(column == "", np.nan, column) if column.dtype.kind == "O" else column


def table_of(frame: DataFrame) -> Table:
    """The rows of a data frame as a table."""
    blank = frame.isna()
    columns: dict[str, Array] = {}
    for name in frame:
        column = frame[name]
        if column.dtype.kind in "fiu" and isinstance(column.to_numpy(), np.ndarray):
            columns[str(name)] = column.to_numpy(float) if blank[name].any() else column.to_numpy()
        else:
            cells = np.where(blank[name], None, column.astype(object))
            columns[str(name)] = column_of(cells)
    return table_of_columns(columns) if columns else Table(columns={}, rows=len(frame))
