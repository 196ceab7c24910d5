"""Slow devices and wrong ones: the slowest of N, corruption that nobody sees."""

from statistics import NormalDist

import numpy as np


def slowest_of(n):
    """Expected maximum of n independent standard normal values [standard deviations]; a step that
    waits for all is mean + sd x this.

    Exact: integral over z > 0 of 1 - (1 - Q)^n - Q^n, with Q the chance of more than z. Blom's
    Phi^-1((n - 3/8) / (n + 1/4)) is within 0.6 % from n = 10 up; sqrt(2 ln n) is 8 % (n = 10^6) to
    39 % (n = 10) too high. 3.97 at 16,384, 4.44 at 131,072. Independent and normal: correlated
    jitter is less, heavy tails are more.
    """
    z = np.linspace(0.0, 9.0, 4001)
    tail = np.vectorize(NormalDist().cdf)(-z)
    n = np.asarray(n, float)[..., None]
    return np.trapezoid(1 - (1 - tail) ** n - tail**n, z)


def sdc_loss(corruptions_per_s, latency_s):
    """Share of the time lost to silent corruption found `latency_s` after it happened: l L.
    Llama 3's 6 in 54 days at 8 h: 3.8 %.

    First order; also the least history to keep: `checkpoint.retention`.
    """
    return corruptions_per_s * latency_s
