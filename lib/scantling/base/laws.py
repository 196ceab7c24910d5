"""Laws of counts, Poisson and binomial, by their own sums: no library is needed for a few terms."""

from itertools import accumulate, count, repeat
from math import exp, lgamma, log

import numpy as np


def poisson_share(k: int, mean: float) -> float:
    """P(K = k) of a Poisson law."""
    return exp(k * log(mean) - mean - lgamma(k + 1)) if mean > 0 else float(k == 0)


def poisson_beyond(most: int, mean: float) -> np.ndarray:
    """P(K > m) for m = 0 ... `most`, summed from the far end so that small chances keep their
    digits."""
    far = most + 40 + int(12 * mean**0.5)
    return np.cumsum([poisson_share(k, mean) for k in range(far, 0, -1)])[::-1][: most + 1]


def poisson_quantile(q: float, mean: float) -> int:
    """The smallest k with P(K <= k) >= q."""
    return _least(q, map(poisson_share, count(), repeat(mean)))


def binomial_share(k: int, n: int, p: float) -> float:
    """P(K = k) of n trials: two Poisson counts of means n p and n (1 - p), given their sum."""
    hits, misses = poisson_share(k, n * p), poisson_share(n - k, n * (1 - p))
    return hits * misses / poisson_share(n, n)


def binomial_quantile(q: float, n: int, p: float) -> int:
    """The smallest k of n trials with P(K <= k) >= q."""
    return _least(q, (binomial_share(k, n, p) for k in range(n + 1)))


def _least(q: float, shares) -> int:
    return next(k for k, so_far in enumerate(accumulate(shares)) if so_far >= q)
