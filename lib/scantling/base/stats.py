"""Distributions of which a few terms are asked for: normal, Poisson, binomial."""

from collections.abc import Iterable
from itertools import accumulate, count
from math import exp, lgamma, log
from statistics import NormalDist

import numpy as np

from .columns import Array, Column, each


def quantile(p: Column) -> Array:
    """Standard normal quantile Phi^-1(p), clipped to 1e-300 and 1 - 1e-16; broadcasts."""
    return np.asarray(each(NormalDist().inv_cdf, np.clip(p, 1e-300, 1 - 1.2e-16)))


def quantile_of(ascending: Array, share: float) -> float:
    """The value below which a share under one of some sorted draws lies, in proportion between the
    two next to it (Hyndman and Fan 1996, definition 7)."""
    place = (len(ascending) - 1) * share
    below, above = ascending[int(place) : int(place) + 2].tolist()
    part = place % 1
    if part < 0.5:
        return float(below + (above - below) * part)
    return float(above - (above - below) * (1 - part))


def poisson_share(k: int, mean: float) -> float:
    """P(K = k) of a Poisson law."""
    return exp(k * log(mean) - mean - lgamma(k + 1)) if mean > 0 else float(k == 0)


def poisson_beyond(most: int, mean: float) -> Array:
    """P(K > m) for m = 0 ... `most`, summed from the far end so that small chances keep their
    digits."""
    far = most + 40 + int(12 * mean**0.5)
    return np.cumsum([poisson_share(k, mean) for k in range(far, 0, -1)])[::-1][: most + 1]


def poisson_quantile(q: float, mean: float) -> int:
    """The smallest k with P(K <= k) >= q."""
    return _least(q, (poisson_share(k, mean) for k in count()))


def binomial_share(k: int, n: int, p: float) -> float:
    """P(K = k) of n trials: two Poisson counts of means n p and n (1 - p), given their sum."""
    hits, misses = poisson_share(k, n * p), poisson_share(n - k, n * (1 - p))
    return hits * misses / poisson_share(n, n)


def binomial_quantile(q: float, n: int, p: float) -> int:
    """The smallest k of n trials with P(K <= k) >= q."""
    return _least(q, (binomial_share(k, n, p) for k in range(n + 1)))


def _least(q: float, shares: Iterable[float]) -> int:
    """The first k at which the shares sum to q."""
    return next(k for k, so_far in enumerate(accumulate(shares)) if so_far >= q)
