"""Slow devices and wrong ones: the slowest of N, nodes that degrade, bad apples, corruption that
nobody sees."""

from __future__ import annotations

import numpy as np

from ..base.units import DAY_S


def slowest_of(n, *, exact=True):
    """Expected maximum of n independent standard normal values [standard deviations]; a step that
    waits for all is mean + sd x this.

    Exact: integral over (0, 1) of Phi^-1(u^(1/n)) du (tail resolved by a change of variable).
    Blom's Phi^-1((n - 3/8) / (n + 1/4)) is
    within 0.6 % from n = 10 up; sqrt(2 ln n) is 8 % (n = 10^6) to 39 % (n = 10) too high. 3.97 at
    16,384, 4.44 at 131,072. Independent and
    normal: correlated jitter is less, heavy tails are more.
    """
    from scipy.special import ndtri

    n = np.asarray(n, float)
    if not exact:
        return ndtri((n - 0.375) / (n + 0.25))
    # E = int Phi^-1(exp(-y / n)) exp(-y) dy, y > 0, by Gauss-Legendre in log y
    x, w = np.polynomial.legendre.leggauss(200)
    t = np.log(1e-12) + (x + 1) / 2 * (np.log(60.0) - np.log(1e-12))
    y = np.exp(t)
    weight = w / 2 * (np.log(60.0) - np.log(1e-12)) * y * np.exp(-y)
    z = -ndtri(-np.expm1(-y / n[..., None]))
    return (z * weight).sum(axis=-1)


def fail_slow_share(
    nodes,
    episodes_per_1000_node_days,
    *,
    duration_s=72 * 60.0,
    slowdown=1.34,
):
    """Share of the time lost to nodes that degrade until they are found: rate x duration x (1 - 1 /
    slowdown), capped at the slowdown
    itself.

    72 min and 1.34 x are GREYHOUND's (ATC'25) means before mitigation, in 16 of 27 jobs of 512
    devices and more; the rate has not been
    published and is the caller's. Finding a slow node in 5 min instead of 72 divides the loss by
    14.
    """
    busy = np.asarray(nodes, float) * episodes_per_1000_node_days / 1000 / DAY_S * duration_s
    return (1 - np.exp(-busy)) * (1 - 1 / slowdown)


def lemons(
    failure_share,
    nodes,
    count,
) -> dict:
    """Bad apples: what `count` of `nodes` nodes that cause `failure_share` of all failures mean.

    {multiplier: rate of a lemon over a sound node, mtbf_gain: job MTBF after sound nodes replaced
    them over before}. Two-point mix of
    exponential nodes. RSC found some 40 lemons; removing them cut failures of large jobs from 14 %
    to 4 % (arXiv 2410.21680).
    """
    f, c = np.asarray(failure_share, float), np.asarray(count, float)
    return {
        "multiplier": (f / c) / ((1 - f) / (nodes - c)),
        "mtbf_gain": (1 - c / nodes) / (1 - f),
    }


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


def verified_interval(
    failures_per_s,
    corruptions_per_s,
    verify_s,
    save_s,
):
    """Work between verified saves [s] where failures stop at once and corruption is found by the
    check before the save, and its overhead.

    W* = sqrt((V + C) / (l_f / 2 + l_s)), H* = 2 sqrt((l_s + l_f / 2) (V + C)). First order; Benoit,
    Cavelan, Robert & Sun 2014-16.
    Without corruption it is Young's.
    """
    rate, each = (
        np.asarray(failures_per_s, float) / 2 + corruptions_per_s,
        np.asarray(verify_s, float) + save_s,
    )
    return np.sqrt(each / rate), 2 * np.sqrt(rate * each)
