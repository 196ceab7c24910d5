"""The predictive distribution of a run on a site that no fit has seen: how far measured and
predicted throughput lie apart, by what is known of the run beforehand.

ln(measured / predicted) is a Student t of TAILS degrees of freedom in two pieces, a scale of its
own on the slow and on the fast side, both times a factor for each of `bands.WIDER` that holds. The
scales and factors are those of the greatest likelihood over runs whose family of sources was left
out of the fit, every family with weight one; a factor is never below one (what is not known does
not make surer) and is drawn to one by RIDGE. Chosen among its rivals by the interval score
(Gneiting and Raftery 2007) of families left out, lib/NOTES.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scantling.physics.bands import TAILS, Bands, ends

from .families import family_weights, weighted_quantile

# A lot of families that was collected after a fit lies further off than families left out of it: of
# three such lots 61, 57 and 61 % lay inside intervals that were to hold 80 %, 1.6 times too narrow
# for a Student t of 4 degrees. Half of those families are in the sample by now: half of it, in logs
LATER = 1.3
LEAST = 1.02  # factor of what is not known
RIDGE = 1.0  # penalty on a squared log factor, in log-likelihoods of one family
MISS = 10.0  # 2 / 0.2: what an 80 % interval pays per unit by which a run lies outside it
START = (-1.9, -2.1)  # logs of the two scales from which the search starts


def distribution(off: np.ndarray, holds: Mapping[str, np.ndarray], site: np.ndarray) -> dict:
    """The distribution that the residuals `off`, ln(measured / predicted), follow; `holds`: what of
    `bands.WIDER` holds, a column each.

    ends: of the 80 % interval of a run that nothing widens, for a family of a later lot; wider: the
    factors; between, within: the part of the scale that is common to a family, and the rest.
    """
    from scipy.optimize import minimize
    from scipy.stats import t as student

    weight = family_weights(site)
    names = [name for name, column in holds.items() if np.any(column)]
    columns = np.column_stack([1.0 * np.asarray(holds[name], float) for name in names] or [off * 0])

    def loss(x: np.ndarray) -> float:
        factors = np.logaddexp(0.0, x[2:])
        wide = columns @ factors
        slow, fast = np.exp(x[0] + wide), np.exp(x[1] + wide)
        scaled = off / np.where(off < 0, slow, fast)
        log_density = -0.5 * (TAILS + 1) * np.log1p(scaled**2 / TAILS) - np.log((slow + fast) / 2)
        return float(-(weight * log_density).sum() + RIDGE * (factors**2).sum())

    start = np.r_[START, np.full(columns.shape[1], -2.0)]
    best = minimize(loss, start, method="L-BFGS-B").x
    factors = np.maximum(np.exp(np.logaddexp(0.0, best[2:])), LEAST)
    slow, fast = np.exp(best[:2])
    left = slow / (slow + fast)  # the mass of the slow piece
    low = -LATER * slow * abs(student.ppf(min(0.1 / (2 * left), 0.5), TAILS))
    high = LATER * fast * abs(student.ppf(min(0.1 / (2 * (1 - left)), 0.5), TAILS))
    common, rest = parts(off / np.exp(columns @ np.log(factors)), site)
    return {
        "ends": [round(float(low), 4), round(float(high), 4)],
        "between": round(common, 4),
        "within": round(rest, 4),
        "wider": {name: round(float(f), 3) for name, f in zip(names, factors)},
    }


def parts(off: np.ndarray, site: np.ndarray) -> tuple[float, float]:
    """What is common to a family and what is not, in scales of robust spread (1.48 times the median
    absolute value, families of one weight)."""
    middle = pd.Series(off).groupby(site).transform("median").to_numpy()
    of_family = pd.Series(off).groupby(site).median().to_numpy()
    several = pd.Series(off).groupby(site).transform("size").to_numpy() > 1
    rest = np.abs(off - middle)[several]
    common = 1.4826 * float(np.median(np.abs(of_family)))
    if not len(rest):
        return common, 0.0
    return common, 1.4826 * weighted_quantile(rest, family_weights(site[several]), 0.5)


def left_out(off: np.ndarray, holds: Mapping[str, np.ndarray], site: np.ndarray) -> np.ndarray:
    """(low, high) ends of ln(measured / predicted) of every run, from the other families, shape
    (2, rows)."""
    found = np.empty((2, len(off)))
    for name in np.unique(site):
        own = site == name
        others = {key: np.asarray(column)[~own] for key, column in holds.items()}
        fit = distribution(off[~own], others, site[~own])
        found[:, own] = of(fit, {key: np.asarray(column)[own] for key, column in holds.items()})
    return found


def of(fit: dict, holds: Mapping[str, np.ndarray]) -> np.ndarray:
    """(low, high) ends of ln(measured / predicted) by a fitted distribution."""
    low, high = ends(holds, Bands(**fit))
    (rows,) = np.broadcast_shapes(*(np.shape(column) for column in holds.values()))
    return -np.log([np.broadcast_to(end, rows) for end in (high, low)])


def interval_score(off: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Width of an 80 % interval, and MISS times what it misses by (Gneiting and Raftery 2007, eq.
    43); lower is better."""
    return (high - low) + MISS * (np.maximum(low - off, 0) + np.maximum(off - high, 0))
