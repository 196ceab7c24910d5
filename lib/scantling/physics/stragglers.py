"""Slow devices and wrong ones: the slowest of N, corruption that nobody sees."""

import numpy as np

from ..base.normal import quantile


def slowest_of(n):
    """Expected maximum of n independent standard normal values [standard deviations]; a step that
    waits for all is mean + sd x this.

    Exact: integral over (0, 1) of Phi^-1(u^(1/n)) du (tail resolved by a change of variable).
    Blom's Phi^-1((n - 3/8) / (n + 1/4)) is
    within 0.6 % from n = 10 up; sqrt(2 ln n) is 8 % (n = 10^6) to 39 % (n = 10) too high. 3.97 at
    16,384, 4.44 at 131,072. Independent and
    normal: correlated jitter is less, heavy tails are more.
    """
    n = np.asarray(n, float)
    # E = int Phi^-1(exp(-y / n)) exp(-y) dy, y > 0, by Gauss-Legendre in log y
    x, w = np.polynomial.legendre.leggauss(200)
    t = np.log(1e-12) + (x + 1) / 2 * (np.log(60.0) - np.log(1e-12))
    y = np.exp(t)
    weight = w / 2 * (np.log(60.0) - np.log(1e-12)) * y * np.exp(-y)
    z = -quantile(-np.expm1(-y / n[..., None]))
    return (z * weight).sum(axis=-1)


def sdc_loss(
    corruptions_per_s,
    latency_s,
    restart_s=0.0,
):
    """Share of the time lost to silent corruption found `latency_s` after it happened: l (L + R).
    Llama 3's 6 in 54 days at 8 h: 3.8 %.

    First order; also the least history to keep: `checkpoint.retention`.
    """
    return np.asarray(corruptions_per_s, float) * (np.asarray(latency_s, float) + restart_s)
