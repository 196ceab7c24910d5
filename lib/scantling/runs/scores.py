"""Errors of many predictions in a few figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import Series


def spread(off: Series) -> dict[str, float]:
    """Rows, median, mean and 90th percentile of |error|, bias (median error); a missing error
    counts as 100 %."""
    size = off.abs().fillna(1.0)
    return typical(size) | {"mean": size.mean(), "bias": off.median()}


def typical(size: Series) -> dict[str, float]:
    """Rows, median and 90th percentile; 0 where there are no rows."""
    if not len(size):
        return {"rows": 0, "median": 0.0, "p90": 0.0}
    return {"rows": len(size), "median": size.quantile(0.5), "p90": size.quantile(0.9)}


def over_sources(off: Series, source: Series) -> float:
    """Median over sources of each source's median |error|."""
    return float(off.abs().fillna(1.0).groupby(source).median().median())
