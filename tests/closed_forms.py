"""Closed forms from the literature that the library does not use: what its own are held against."""

from __future__ import annotations

import numpy as np
from scantling.endure.goodput import ettr
from scantling.endure.spares import never_wait


def saxena_period(mtbf_s, stall_s, restart_s):
    """Period (interval + stall) that Saxena et al. give: Ts + sqrt(2 (Tf + Tr) Ts + Ts^2) [s].
    arXiv 2410.18124.

    Their optimum grows with the restart time; the exact one does not.
    """
    ts = np.asarray(stall_s, float)
    return ts + np.sqrt(2 * (np.asarray(mtbf_s, float) + restart_s) * ts + ts * ts)


def finite_wall_s(work_s, mtbf_s, stall_s, interval_s, *, durable_s=0.0, restart_s=0.0, down_s=0.0):
    """Expected wall time of a job of `work_s` seconds of useful compute that starts without a
    restart and ends when its last save is
    durable [s].

    (M + D) [e^(R/M) (e^((P1 + Delta)/M) - 1) + sum over the later intervals of e^((R + Delta)/M)
    (e^(Pi/M) - 1)],  P = interval + stall,
    the last interval being what is left. Exact; the long-run rate is `ettr`.
    """
    m, tau = np.asarray(mtbf_s, float), np.asarray(interval_s, float)
    n = np.maximum(1, np.ceil(np.asarray(work_s, float) / tau - 1e-9))
    last = work_s - (n - 1) * tau
    first = np.where(n == 1, last, tau)
    later = np.exp((restart_s + np.asarray(durable_s, float)) / m)
    middle = np.maximum(n - 2, 0) * np.expm1((tau + stall_s) / m) + np.where(
        n > 1, np.expm1((last + stall_s) / m), 0.0
    )
    return (m + down_s) * (
        np.exp(np.asarray(restart_s, float) / m) * np.expm1((first + stall_s + durable_s) / m)
        + later * middle
    )


def finish_spread_s(
    work_s, mtbf_s, stall_s, interval_s, *, durable_s=0.0, restart_s=0.0, down_s=0.0
):
    """Standard deviation of the wall time of a job of `work_s` seconds of useful compute [s], to
    first order.

    sqrt(n E[L^2]), n = useful time / goodput / (M + D) failures that each lose L = D + R + Delta +
    a share of the period, uniform:
    E[L^2] = (D + R + Delta + P / 2)^2 + P^2 / 12. With the mean and a normal quantile (z = 1.28 for
    P90) it gives the finishing day; the
    tail is a little fatter where failures are few. A simulation has it exactly.
    """
    p = np.asarray(interval_s, float) + stall_s
    n = (
        np.asarray(work_s, float)
        / ettr(mtbf_s, stall_s, interval_s, durable_s=durable_s, restart_s=restart_s, down_s=down_s)
        / (np.asarray(mtbf_s, float) + down_s)
    )
    return np.sqrt(n * ((down_s + restart_s + durable_s + p / 2) ** 2 + p * p / 12))


def ettr_renewal(mtbf_s, loss_s, *, fails_in_restart=False):
    """Accounting in which the clock of failures stands while the job is down: M / (M + L); exp(-L /
    M) where a restart can fail too."""
    m = np.asarray(mtbf_s, float)
    return np.exp(-np.asarray(loss_s, float) / m) if fails_in_restart else m / (m + loss_s)


def ettr_tiers_first_order(rates_per_s, intervals_s, stalls_s, restores_s, durables_s, down_s=0.0):
    """First-order tiers: 1 - stall share - sum over classes l_k (D + R_k + Delta_k + tau_k / 2). Di
    et al. 2014; high by up to 3 points at
    M = 14 min.

    Class k of `rates_per_s` is what tier k and above survive; `intervals_s[k]` is the spacing of
    tier-k copies; the shortest one stalls.
    """
    l, tau = np.asarray(rates_per_s, float), np.asarray(intervals_s, float)
    stall = (np.asarray(stalls_s, float) / tau).sum()
    return (1 - stall / (1 + stall)) - (
        l * (down_s + np.asarray(restores_s, float) + durables_s + tau / 2)
    ).sum()


def sites_goodput(site_mtbf_s, sites, loss_s, *, coupled=True):
    """Useful share over several sites that each fail every `site_mtbf_s` and lose `loss_s` per
    failure: M / (M + s L) when every failure
    stops all (coupled), M / (M + L) when a site falls back alone and joins at the next outer
    step."""
    m = np.asarray(site_mtbf_s, float)
    return m / (m + (sites if coupled else 1) * np.asarray(loss_s, float))


def spares_for_run(chance, evictions_per_s, repair_s, duration_s, limit=400):
    """Fewest spare nodes such that a whole run never waits with probability `chance`
    (`never_wait`)."""
    return next(
        (s for s in range(limit) if never_wait(s, evictions_per_s, repair_s, duration_s) >= chance),
        limit,
    )
