"""Closed forms: how often to save, and what share of the time is then useful.

Symbols of this file, all in seconds and all broadcasting as numpy arrays:

    mtbf M            mean time between failures of the whole job while it runs (exponential)
    stall             time that training stands still for one save
    durable           time from the end of that stall until the copy can be restored from
    restart           from the decision to restart until the first new step; a failure can strike in
    it
    down              detecting, diagnosing and swapping; nothing can fail in it
    interval tau      useful compute between two saves, so the period is tau + stall
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.columns import Array, Column
from .copies import Level


def optimum_interval(mtbf_s: Column, stall_s: Column) -> Column:
    """Useful compute between two saves that makes the expected wall time least, exactly [s].

    tau* = M (1 + W0(-exp(-1 - stall / M))),  W0 the principal Lambert W.

    It is the root of d/dtau [tau / (exp((tau + stall) / M) - 1)] = 0, so it does not depend on the
    restart, detection or durable time: those multiply the wall time by a constant. Young and Daly
    approximate it. Exponential failures; one tier; the save in flight must be done before the next
    begins, which the caller has to enforce (`interval + stall >= durable`). Source: optimality
    condition of Daly's complete model (Daly 2006, doi:10.1016/j.future.2004.11.016), solved.
    """
    return mtbf_s * _best_share(stall_s / mtbf_s)


def _best_share(x: Column) -> Array:
    """tau* / M at x = stall / M: the root t of (1 - t) exp(t) = exp(-x), which is 1 + W0(-exp(-1 -
    x)), by Newton's method from the series at the branch point. Below x = 1e-6, where the
    difference of the two sides loses digits, the series in sqrt(x) is exact to rounding."""
    series = np.sqrt(2 * x) * (1 + x / 18) - 2 * x / 3
    p = np.sqrt(-2 * np.expm1(-x))
    t = p - p * p / 3 + 11 / 72 * p**3
    for _ in range(6):
        t = t - (t + np.expm1(-x - t)) / np.maximum(t, 1e-300)
    return np.where(x < 1e-6, series, t)


def young(mtbf_s: Column, stall_s: Column) -> Column:
    """Young's interval sqrt(2 stall M) [s]: 0.5 % of wall time above the optimum at stall = M / 10,
    14 % at stall = M.

    Young 1974, doi:10.1145/361147.361115.
    """
    return np.sqrt(2 * stall_s * mtbf_s)


def daly(mtbf_s: Column, stall_s: Column) -> Column:
    """Daly's higher-order interval [s]; its wall time is within 0.2 % of the best at every stall.

    sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d  for d < 2 M, else M.   Daly 2006, eq. 37,
    doi:10.1016/j.future.2004.11.016.
    """
    x = stall_s / (2 * mtbf_s)
    return np.where(x < 1, young(mtbf_s, stall_s) * (1 + np.sqrt(x) / 3 + x / 9) - stall_s, mtbf_s)


def ettr(
    mtbf_s: Column,
    stall_s: Column,
    interval_s: Column,
    *,
    durable_s: Column = 0.0,
    restart_s: Column = 0.0,
    down_s: Column = 0.0,
) -> Column:
    """Useful share of the wall time in the long run, exactly: tau / ((M + D) X), X as in
    `shares`.

    Asynchronous saves: a failure before a copy is durable falls back to the one before. Daly's
    complete model is durable_s = 0;
    "no failure can strike during a restart" is restart_s moved into down_s. Differs from Meta's
    E[ETTR] (`ettr_meta`), which is first order and leaves the truth beyond some 30,000 devices.
    """
    return shares(
        mtbf_s, stall_s, interval_s, durable_s=durable_s, restart_s=restart_s, down_s=down_s
    ).useful


class Shares(NamedTuple):
    """The wall time split; the five sum to one."""

    useful: Column
    saves: Column
    lost_work: Column
    detection: Column
    restart: Column


def shares(
    mtbf_s: Column,
    stall_s: Column,
    interval_s: Column,
    *,
    durable_s: Column = 0.0,
    restart_s: Column = 0.0,
    down_s: Column = 0.0,
) -> Shares:
    """The same wall time split.

    Rivals charge each failure D + R + Delta + P / 2 once: by renewal with the clock of failures
    standing meanwhile, M / (M + L); "linear" charges it against wall time, 1 - L / M, which reaches
    nothing left at M = L
    (then all is lost). P = tau + stall.
    Published goodputs differ by which of the three they are: at 18 min between failures and 10 min
    each, 0.44 linear (as printed by
    FT-HSDP, arXiv 2602.00277) is 0.64 by renewal.

    With X = exp((R + Delta) / M) (exp((tau + stall) / M) - 1) failures until one more interval is
    durable, running time M X and wall time (M + D) X (exponential failures that may strike during
    restarts, any of which aborts the save in flight): useful tau, saves stall, detection D X,
    restart M (1 - exp(-R / M)) X (restarts cut short by the next failure included), lost work the
    rest of the running time M X. Work redone because the copy was not durable yet is lost work.
    """
    m = mtbf_s
    r = restart_s
    period = interval_s + stall_s
    with np.errstate(over="ignore"):
        # 1 / ((M + D) X)
        per_wall = np.exp(-(r + durable_s) / m) / ((m + down_s) * np.expm1(period / m))
    useful, saves = interval_s * per_wall, stall_s * per_wall
    detection, restart = down_s / (m + down_s), -m * np.expm1(-r / m) / (m + down_s)
    return Shares(
        useful=useful,
        saves=saves,
        lost_work=np.maximum(0.0, 1 - (useful + saves + detection + restart)),
        detection=detection,
        restart=restart,
    )


def ettr_meta(
    failures_per_s: Column, interval_s: Column, write_s: Column, restart_s: Column
) -> Column:
    """Meta's first-order E[ETTR] (Kokolis et al. 2024, arXiv 2410.21680), for comparison with the
    exact one.

    (1 - l (u0 + dt / 2)) / (1 + w / dt). Valid for l (u0 + dt / 2) << 1: -1...-3 % at 8,192
    devices, -7 % at 32,768, negative near 100,000 with 30-minute intervals.
    """
    return (1 - failures_per_s * (restart_s + interval_s / 2)) / (1 + write_s / interval_s)


def ettr_linear(mtbf_s: Column, loss_s: Column) -> Column:
    """Accounting that charges every failure once against wall time: 1 - loss / MTBF. Meta's 44 % at
    18 min and 10 min is this one."""
    return 1 - loss_s / mtbf_s


def sdc_loss(corruptions_per_s: Column, latency_s: Column) -> Column:
    """Share of the time lost to silent corruption found `latency_s` after it happened: l L.
    Llama 3's 6 in 54 days at 8 h: 3.8 %.

    First order; also the least history to keep: `checkpoint.retention`.
    """
    return corruptions_per_s * latency_s


def ettr_tiers_nested(
    rates_per_s: Sequence[Column],
    levels: Sequence[Level],
    interval_s: Column,
    restores_s: Sequence[Column],
    down_s: Column = 0.0,
) -> Column:
    """Nested approximation for tiers with delays: T_k = (1/l_k + D) e^(l_k (R_k + Delta_k)) (e^(l_k
    T) - 1), tier by tier.

    levels : `copies.Level` of each tier, nearest first. T enters as the wall time of the tier
    below over one spacing of tier k. Within 0.3 points of the truth at M = 30 min, 1.2 at 14 min.
    """
    inner = interval_s
    below: Column = 0.0
    before = 1
    for rate, level, restore in zip(rates_per_s, levels, restores_s):
        inner = inner * level.every / before + level.stall_s - below
        below = level.stall_s
        before = level.every
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            failed = np.exp(rate * (restore + level.durable_s)) * np.expm1(rate * inner)
            inner = np.where(np.equal(rate, 0), inner, (1 / np.asarray(rate) + down_s) * failed)
    return before * interval_s / inner
