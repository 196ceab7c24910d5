"""How many spare nodes, and what too few or too many cost."""

from __future__ import annotations

import numpy as np

from .failures import EVICTS


def erlang_b(servers, load):
    """Erlang's loss probability B(servers, load), by the recursion B(0) = 1, B(k) = a B(k-1) / (k +
    a B(k-1)); broadcasts.

    servers : whole numbers >= 0; load : a = arrival rate x mean holding time.  Erlang 1917.
    """
    s, a = np.broadcast_arrays(np.asarray(servers, int), np.asarray(load, float))
    b, out = np.ones(a.shape), np.ones(a.shape)
    for k in range(1, int(s.max(initial=0)) + 1):
        b = a * b / (k + a * b)
        out = np.where(s == k, b, out)
    return out if out.ndim else float(out)


def stall_share(spares, load):
    """Share of the time a job stands still for want of a node: ErlangB(S + 1, a), a = evictions per
    second x mean repair time.

    The job stops failing while it waits, so nodes in repair form a loss system with S + 1 places;
    insensitive to the distribution of
    the repair time. Exact where the clock of failures runs whenever the job is not waiting. The
    Poisson tail P(N > S), which assumes that
    failures go on, is 1.5 to 2 times too high.
    """
    return erlang_b(np.asarray(spares, int) + 1, load)


def shortage(
    spares,
    evictions_per_s,
    repair_s,
    down_s=0.0,
):
    """Share of the time a job stands still for want of a node where each eviction also takes
    `down_s` anyway, exactly, for exponential
    repairs and up to 150 spares (beyond, Erlang-B thinned by the downtime).

    Markov chain over the nodes in repair at evictions: each leaves the pool during the downtime
    with 1 - exp(-D / repair), then one by one
    while the job runs; with S + 1 in repair at its end the job waits repair / (S + 1) on average.
    With D = 0 this is `stall_share`;
    with D the wait hides behind the detection. Broadcasts.
    """
    s, lam, rep, d = np.broadcast_arrays(
        np.asarray(spares, int),
        *(np.asarray(x, float) for x in (evictions_per_s, repair_s, down_s)),
    )
    out = np.zeros(s.shape)
    for at in np.ndindex(s.shape):
        load = lam[at] * rep[at]
        if s[at] > load + 12 * np.sqrt(load) + 24:  # below 1e-15
            continue
        if s[at] > 150:  # the wait left after the downtime, the pool as without it
            out[at] = erlang_b(int(s[at]) + 1, load / (1 + lam[at] * d[at])) * np.exp(
                -(s[at] + 1) * d[at] / rep[at]
            )
        else:
            out[at] = _shortage(
                int(s[at]),
                lam[at],
                rep[at],
                d[at],
            )
    return out if out.ndim else float(out)


def _shortage(
    s,
    lam,
    repair,
    down,
):
    n = np.arange(s + 2)
    up = lam / (lam + n / repair)  # chance that the next event at n in repair is an eviction
    runs = np.zeros((s + 2, s + 2))  # from n at the start of a run to m at its end
    for j in n:
        runs[j, : j + 1] = (
            np.concatenate([np.cumprod((1 - up[1 : j + 1])[::-1])[::-1], [1.0]]) * up[: j + 1]
        )
    stay, thin = np.exp(-down / repair), np.zeros((s + 2, s + 2))
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, s + 2)))])
    for j in n:
        m = np.arange(j + 1)
        with np.errstate(
            divide="ignore",
            invalid="ignore",
        ):
            thin[j, : j + 1] = (
                np.exp(log[j] - log[m] - log[j - m]) * stay**m * (1 - stay) ** (j - m)
            )
    wait = thin[:, s + 1].copy()  # still S + 1 in repair after the downtime
    thin[:, s] += wait
    thin[:, s + 1] = 0.0
    step = np.zeros((s + 2, s + 2))  # from m before an eviction to m before the next
    step[: s + 1] = (thin @ runs)[1:]
    a = step[: s + 1, : s + 1].T - np.eye(s + 1)
    a[-1] = 1.0
    before = np.linalg.solve(a, np.eye(s + 1)[-1])
    lost = max(float(before @ wait[1:]), 0.0) * repair / (s + 1)  # rounding of the solve
    return lost / (1 / lam + down + lost)


def wait_chance(spares, load):
    """Chance that one eviction finds no spare and has to wait for a repair: ErlangB(S, a), the
    weight of S nodes in repair among 0..S."""
    return erlang_b(spares, load)


def waiting(endurance, most: int = 12) -> dict[str, list]:
    """What each number of spare nodes, from none to `most` or a few beyond those it has, leaves of
    waiting for a repair.

    endurance : reliability.Endurance of one design.  Returns {spares, shortage, wait_chance}: share
    of the wall time that the job stands still
    (`shortage`, as in badput), and chance that one eviction finds no spare (`wait_chance`).
    """
    e = endurance
    s = np.arange(min(max(most, int(e.spares) + 2, int(e.spares_recommended) + 4), 60) + 1)
    rate = EVICTS / float(e.mtbf_s)
    repair, detect = max(float(e.repair_s), 1e-3), float(e.detect_s)
    return {
        "spares": s.tolist(),
        "shortage": np.asarray(
            shortage(
                s,
                rate,
                repair,
                detect / EVICTS,
            ),
            float,
        ).tolist(),
        "wait_chance": np.asarray(
            wait_chance(s, EVICTS * repair / (float(e.mtbf_s) + detect)), float
        ).tolist(),
    }


def spares_for(
    load,
    chance=0.99,
    limit=4096,
):
    """Fewest spare nodes such that an eviction finds one with probability `chance`: smallest S with
    ErlangB(S, a) <= 1 - chance, `limit` where more would be needed; broadcasts."""
    return _first(load, lambda k, b, done: b <= 1 - chance, limit)


def cheapest(
    load,
    nodes,
    limit=4096,
):
    """Spare nodes that make a useful hour cheapest: S that maximises (1 - ErlangB(S + 1, a)) N / (N
    + S); broadcasts.

    nodes : nodes of the job. Counts a spare as dear as a working node and waiting as all of them
    idle.
    """
    a, n = np.broadcast_arrays(np.asarray(load, float), np.asarray(nodes, float))
    b = a / (1 + a)  # ErlangB(1, a): no spare
    best, value = np.zeros(a.shape, int), 1 - b
    for s in range(1, limit):
        b = a * b / (s + 1 + a * b)
        now = (1 - b) * n / (n + s)
        better = now > value
        best, value = np.where(better, s, best), np.where(better, now, value)
        if np.all(n / (n + s) < value):
            break  # even with no waiting at all, more spares no longer pay
    return best if best.ndim else int(best)


def _first(
    load,
    good,
    limit,
):
    a = np.asarray(load, float)
    b, out, done = np.ones(a.shape), np.full(a.shape, limit), np.zeros(a.shape, bool)
    for k in range(limit):
        if k:
            b = a * b / (k + a * b)
        hit = good(k, b, done) & ~done
        out, done = np.where(hit, k, out), done | hit
        if done.all():
            break
    return out if out.ndim else int(out)


def standbys(
    machines,
    per_window,
    quantile=0.99,
):
    """Warm standbys as ByteRobust sizes them: the `quantile` of how many of `machines` fail in one
    window, Binomial(machines, p).

    Their Table 5 (arXiv 2509.16293) prints 2/2/3/4 for 128/256/512/1,024 machines; one p of
    1.17e-3...1.23e-3 gives all four.
    """
    from scipy.stats import binom

    found = binom.ppf(quantile, machines, per_window)
    return found.astype(int) if np.ndim(found) else int(found)
