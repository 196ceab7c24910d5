"""The types of numbers in formulas: one number, or a column with a row a plan."""

from typing import Any

import numpy as np

# shape (n,) unless said otherwise; numbers, codes or truth values
Array = np.ndarray[Any, np.dtype[Any]]
Column = float | Array  # scalars broadcast
Truth = bool | Array
