"""The standard normal distribution, where scipy is not installed."""

from statistics import NormalDist

import numpy as np

_QUANTILE = np.vectorize(NormalDist().inv_cdf, otypes=[float])


def quantile(p):
    """Standard normal quantile Phi^-1(p), clipped to 1e-300 and 1 - 1e-16; broadcasts."""
    return _QUANTILE(np.clip(p, 1e-300, 1 - 1.2e-16))
