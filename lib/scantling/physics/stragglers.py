"""The slowest of N: what a step that waits for all pays for the spread of its devices."""

import numpy as np
from numpy.polynomial.legendre import leggauss

from ..base.columns import Array, Column
from ..base.stats import quantile

_NODES, _WEIGHTS = leggauss(120)


def slowest_of(n: Column, within: Column = 1.0) -> Array:
    """Expected maximum of n independent standard normal values below their `within` quantile
    [standard deviations]; a step that waits for all is mean + sd x this.

    Exact: integral over u from 0 to 1 of Phi^-1(within u^(1/n)), by Gauss's rule in ln(-ln u), for
    n from 2 up and `within` from above 0 to 1: devices slower than that quantile are not in the
    job. Untruncated 3.97 at 16,384, 4.44 at 131,072; Blom's Phi^-1((n - 3/8) / (n + 1/4)) is within
    0.6 % from n = 10 up; sqrt(2 ln n) is 8 % (n = 10^6) to 39 % (n = 10) too high. Independent and
    normal: correlated jitter is less, heavy tails are more. The step's own loss is a fitted law per
    doubling of nodes (`step.straggler_share`), whose prior is of this size. Broadcasts over
    `within`.
    """
    low, high = np.log([1e-10, 50.0])
    half = (high - low) / 2
    y = np.exp(low + (_NODES + 1) * half)  # u = exp(-y), so u^(1/n) = exp(-y / n)
    weight = _WEIGHTS * half * y * np.exp(-y)
    power = y / np.asarray(n, float)[..., None]
    beyond = -np.expm1(np.log(within)[..., None] - power)  # 1 - within u^(1/n)
    slowest: Array = (-quantile(beyond) * weight).sum(axis=-1)
    return slowest
