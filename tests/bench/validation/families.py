"""Families of sources in time: which are the newest third, and of what kind each run is."""

from __future__ import annotations

import numpy as np
import pandas as pd

NEWEST = 1 / 3  # of the families: they choose nothing, and are scored once
UNDATED = ""  # a family whose rows print no date is not called new


def sites(frame: pd.DataFrame) -> np.ndarray:
    """What is left out together: the family of sources where the table names one, else the
    source."""
    return frame.get("family", frame.source).fillna(frame.source).to_numpy(str)


def first_published(frame: pd.DataFrame) -> pd.Series:
    """The month of the first run of every family, oldest first."""
    dates = frame.published.fillna("").astype(str).replace("", np.nan)
    first = dates.groupby(sites(frame)).min().fillna(UNDATED)
    return first.sort_values(kind="stable")


def newest(frame: pd.DataFrame) -> np.ndarray:
    """Whether a run is of the newest third of the families (bool, a row each)."""
    first = first_published(frame)
    if len(first) < 3:
        return np.zeros(len(frame), bool)
    return np.isin(sites(frame), first.index[-round(NEWEST * len(first)) :])


def family_weights(site: np.ndarray) -> np.ndarray:
    """Weights that make every family count once, whatever its number of rows."""
    _, row, counts = np.unique(site, return_inverse=True, return_counts=True)
    return 1 / counts[row]


def weighted_quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The value below which `share` of the weight lies."""
    order = np.argsort(values)
    total = np.cumsum(weight[order])
    at = min(int(np.searchsorted(total, share * total[-1])), len(values) - 1)
    return float(values[order][at])
