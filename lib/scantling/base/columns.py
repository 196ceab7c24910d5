"""The types of numbers in formulas: one number, or a column with a row a plan."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

# shape (n,) unless said otherwise; numbers, codes or truth values
Array = np.ndarray[Any, np.dtype[Any]]
Column = float | Array  # scalars broadcast
Truth = bool | Array


def some(column: Column) -> bool:
    """Whether a number, or any of a column, is not zero."""
    return bool(column.any() if isinstance(column, np.ndarray) else column)


def rows_of(value: Column, rows: Array) -> Column:
    """Those rows of a column; a number is the same for all."""
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value


def among(column: Column, values: Collection[Any]) -> Array:
    """Where a column has one of a few values; of many `np.isin` is faster."""
    found: Array = (np.asarray(column)[..., None] == np.array([*values])).any(axis=-1)
    return found


def each(formula: Callable[..., float], *columns: Column) -> Column:
    """A formula of plain numbers at every row of columns; broadcasts."""
    values = np.frompyfunc(formula, len(columns), 1)(*columns)
    worked_out: Column = np.asarray(values, float)[()]
    return worked_out
