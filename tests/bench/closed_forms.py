"""Closed forms from the literature that the library does not use: what its own are held against."""

from __future__ import annotations

import numpy as np
from scantling.base.units import DAY_S
from scantling.endure.copies import Level
from scantling.endure.goodput import ettr
from scantling.endure.simulate import Fault, Scenario
from scantling.endure.spares import cheapest, stall_share, wait_chance
from scantling.physics.cases import accumulated


def saxena_period(mtbf_s, stall_s, restart_s):
    """Period (interval + stall) that Saxena et al. give: Ts + sqrt(2 (Tf + Tr) Ts + Ts^2) [s].
    arXiv 2410.18124.

    Their optimum grows with the restart time; the exact one does not.
    """
    ts = np.asarray(stall_s, float)
    return ts + np.sqrt(2 * (np.asarray(mtbf_s, float) + restart_s) * ts + ts * ts)


def ettr_meta_queued(failures_per_s, interval_s, restart_s, queue_s, productive_s=np.inf):
    """Meta's first-order E[ETTR] with a queue q per failure and productive time Rp, saves free:
    a / ((1 + u0 / Rp) (1 + l q) + (q / Rp) a), a = 1 - l (u0 + dt / 2). arXiv 2410.21680."""
    alive = 1 - failures_per_s * (restart_s + interval_s / 2)
    queued = (1 + restart_s / productive_s) * (1 + failures_per_s * queue_s)
    return alive / (queued + queue_s / productive_s * alive)


def ft_hsdp_renewal(mtbf_s, replicas, stall_s=180.0, replica_recovery_s=600.0):
    """`elastic.ft_hsdp` with the common stall counted by renewal: M / (M + stall) x
    (1 - t_rep / M / d); 0.817 at 98,304 devices."""
    return mtbf_s / (mtbf_s + stall_s) * (1 - replica_recovery_s / mtbf_s / replicas)


def finite_wall_s(work_s, mtbf_s, stall_s, interval_s, *, durable_s=0.0, restart_s=0.0, down_s=0.0):
    """Expected wall time of a job of `work_s` seconds of useful compute that starts without a
    restart and ends when its last save is durable [s].

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
    P90) it gives the finishing day; the tail is a little fatter where failures are few. A
    simulation has it exactly.
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
    failure: M / (M + s L) when every failure stops all (coupled), M / (M + L) when a site falls
    back alone and joins at the next outer step."""
    m = np.asarray(site_mtbf_s, float)
    return m / (m + (sites if coupled else 1) * np.asarray(loss_s, float))


def spares_for_run(chance, evictions_per_s, repair_s, duration_s, limit=400):
    """Fewest spare nodes such that a whole run never waits with probability `chance`
    (`never_wait`)."""
    return next(
        (s for s in range(limit) if never_wait(s, evictions_per_s, repair_s, duration_s) >= chance),
        limit,
    )


def ettr_tiers(rates_per_s, every, interval_s, stalls_s, restores_s, down_s=0.0) -> float:
    """Useful share with tiers of saves, exactly, where a copy is durable as soon as its stall ends.

    rates_per_s : failures per second by class; class k is survived by tiers k and above [1/s,
    (K,)].
    every       : tier k is written at every `every[k]`-th save; every[0] = 1 and each divides the
    next [(K,)].
    stalls_s    : stall of a save whose highest tier is k [s, (K,)];  restores_s : restart of a
    failure of class k [s, (K,)].

    Markov chain at failure epochs over the position since the last top-tier save (the idea of Moody
    et al., SC'10): with L the total rate and p_k the class shares, E_i (running after save i) and
    H_i (mean cost from a failure there) satisfy

    E_i = (1 - q_i) (1/L + H_i) + q_i E_(i+1)
    H_i = D + sum_k p_k [r_k E_(f_k(i)) + (1 - r_k) (1/L + H_(f_k(i)))]
    f_k(i) = every_k floor(i / every_k), E_n = 0

    A delay until durable makes the state space explode: use `simulate` there.
    """
    return float(
        every[-1]
        * interval_s
        / tiers_cycle_s(rates_per_s, every, interval_s, stalls_s, restores_s, down_s)
    )


def tiers_cycle_s(rates_per_s, every, interval_s, stalls_s, restores_s, down_s=0.0) -> float:
    """Expected wall time from one top-tier save to the next [s]; the chain of `ettr_tiers`. Whole
    cycles add up, the first one included."""
    rates, every = np.asarray(rates_per_s, float), np.asarray(every, int)
    total, n = rates.sum(), int(every[-1])
    p, m = rates / total, 1 / total
    top = np.array([max(k for k in range(len(every)) if (i + 1) % every[k] == 0) for i in range(n)])
    q = np.exp(-(interval_s + np.asarray(stalls_s, float)[top]) * total)
    alive = np.exp(-np.asarray(restores_s, float) * total)
    a, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    i = np.arange(n)
    a[i, i] = 1.0
    a[i[:-1], i[1:]] -= q[:-1]
    a[i, n + i] -= 1 - q
    b[:n] = (1 - q) * m
    a[n + i, n + i] += 1.0
    b[n:] = down_s
    for k, share in enumerate(p):
        back = every[k] * (i // every[k])
        np.add.at(a, (n + i, back), -share * alive[k])
        np.add.at(a, (n + i, n + back), -share * (1 - alive[k]))
        b[n:] += share * (1 - alive[k]) * m
    return float(np.linalg.solve(a, b)[0])


def never_wait(spares, evictions_per_s, repair_s, duration_s):
    """Chance that no eviction of a run ever has to wait, all nodes being whole at the start.

    First passage of the birth-death chain 0..S (up at the eviction rate, down at N / repair) to S +
    1 by the end of the run: the generator is made symmetric and solved by eigenvalues. Exact for
    exponential repairs; other distributions differ little.
    """
    s = int(spares)
    n = np.arange(s + 1)
    up, down = np.full(s + 1, float(evictions_per_s)), n / repair_s
    off = np.sqrt(up[:-1] * down[1:])
    values, vectors = np.linalg.eigh(np.diag(-(up + down)) + np.diag(off, 1) + np.diag(off, -1))
    scale = (
        np.concatenate([[0.0], np.cumsum(0.5 * (np.log(up[:-1]) - np.log(down[1:])))])
        if s
        else np.zeros(1)
    )
    start, end = vectors[0], np.exp(scale) @ vectors
    return float(np.clip((start * end * np.exp(values * duration_s)).sum(), 0.0, 1.0))


BLOCK_KINDS = ("fused", "eager")
ATTENTION_KERNELS = ("flash", "materialised")


def saved_bytes_per_layer(
    shape, tokens, seq_len, dtype_bytes=2, kind="fused", attention="flash", head_norm=False
):
    """Bytes of one dense block's saved tensors for `tokens` tokens in sequences of `seq_len`.
    [bytes]

    Parameters
    ----------
    shape : blocks.block_table.Shape
        Columns work. Expert layers are not counted here.
    tokens, seq_len : int or array
        Tokens in the micro-batch, and in one sequence.
    dtype_bytes : 2 or 4
        Of the activations; log-sum-exps, and under 2 the eager norms' copies, stay in 4.
    kind : "fused" or "eager"
        fused, per token: norms 4h in and out, 3h in parallel blocks; q, 2 kv and the output as kept
        by flash attention; gate, up and product, or up and its activation. eager: gated blocks as
        in the llama kind (RMSNorm upcast to fp32: 2h fp32 and 4h; silu kept: 4f), plain ones as in
        gpt2 (LayerNorm fused; five tensors of f for the tanh GELU written out).
    attention : "flash" or "materialised"
        flash keeps 4 bytes per head and token; materialised keeps the probabilities, and under the
        eager llama kind k and v repeated for every head, with an fp32 softmax beside a 16-bit one.
    head_norm : bool
        Norms over the heads of q and k (eager kind).

    Notes
    -----
    Dropout is off. With checkpointing a block keeps hidden x dtype_bytes a token, whatever the
    kind. Megatron's 34 s b h (Korthikanti et al. 2022) is the fused list of a GPT block plus two
    masks of one byte and h each.

    Raises
    ------
    ValueError
        For a kind, kernel or dtype that is not listed.

    References
    ----------
    torch.autograd.graph.saved_tensors_hooks around the blocks of transformers 5.23.0, torch 2.13.0,
    CPU.
    """
    for value, allowed in (
        (kind, BLOCK_KINDS),
        (attention, ATTENTION_KERNELS),
        (dtype_bytes, (2, 4)),
    ):
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(map(str, allowed))}")
    (mixer,), (mlp,) = shape.of("mixer"), shape.of("feed")
    e, flash, half, gated = dtype_bytes, attention == "flash", dtype_bytes == 2, mlp.matrices == 3
    h, f, heads = shape.hidden, mlp.width, mixer.heads
    q, kv, out = mixer.q_width, mixer.kv_width, mixer.out_width
    if kind == "fused":
        core = 4 * heads if flash else e * heads * seq_len
        return tokens * (
            e * ((4 - mlp.parallel) * h + q + 2 * kv + out + np.where(gated, 3, 2) * f) + core
        )
    heads_kept = np.where(gated & (not flash), 2 * q, 2 * kv)
    norms = np.where(gated, (8 * h + 8 * h if half else 24 * h) + 8, e * (4 * h + 4))
    head_norms = (
        (((6 if half else 8) * (q + kv)) + 4 * (heads + mixer.kv_heads)) if head_norm else 0
    )
    probabilities = np.where(gated & half, 6, e) * heads * seq_len
    core = 4 * heads if flash else probabilities
    return (
        tokens
        * (norms + head_norms + e * (q + heads_kept + out + np.where(gated, 4, 5) * f) + core)
    )[()]


def batch_cost(batch_tokens, critical_tokens):
    """Price of a batch: (steps, tokens) relative to the least possible of each. [shares ≥ 1]

    steps/steps_min = 1 + B_crit/B and tokens/tokens_min = 1 + B/B_crit, so that (S/S_min −
    1)(E/E_min − 1) = 1 and both are 2 at
    B = B_crit. Source: McCandlish et al. 2018, arXiv:1812.06162, section 2.3.
    """
    ratio = np.asarray(batch_tokens, dtype=float) / critical_tokens
    return 1 + 1 / ratio, 1 + ratio


def gradient_noise_scale(norm2_small, batch_small, norm2_big, batch_big):
    """Critical batch from measured gradients, unbiased in numerator and denominator. [unit of the
    batches]

    Parameters
    ----------
    norm2_small, norm2_big : float or array
        Squared norms of the gradient averaged over a small and a big batch, averaged over steps;
        with data parallelism that of one rank before, and that of all after, the all-reduce.
    batch_small, batch_big : float

    Notes
    -----
    |G|² = (B_big·g_big − B_small·g_small)/(B_big − B_small); tr(Σ) = (g_small − g_big)/(1/B_small −
    1/B_big); B = tr(Σ)/|G|².
    Average both over many steps before dividing. Source: McCandlish et al. 2018, arXiv:1812.06162,
    appendix A.1.
    """
    g2 = (batch_big * np.asarray(norm2_big) - batch_small * np.asarray(norm2_small)) / (
        batch_big - batch_small
    )
    trace = (np.asarray(norm2_small) - norm2_big) / (1 / batch_small - 1 / batch_big)
    return trace / g2


def reshapes(global_batch, data_parallel=None, micro_batch=None, most_devices=None):
    """Every (dp, micro_batch, grad_accum) that keeps the global batch exactly. [int array, shape
    (n, 3), sorted]

    Parameters
    ----------
    global_batch : int
        Sequences per step.
    data_parallel, micro_batch : int, optional
        Pins.
    most_devices : int, optional
        Upper end of dp.

    Notes
    -----
    dp·micro_batch·grad_accum = global_batch. Any of them gives the same optimizer steps up to
    rounding and the order of sums; the loss must be averaged over tokens, not over micro-batches,
    where sequences are masked or packed. Empty where no such plan exists.
    """
    n = np.arange(1, int(global_batch) + 1)
    divisors = n[global_batch % n == 0]
    dp, micro = (grid.ravel() for grid in np.meshgrid(divisors, divisors, indexing="ij"))
    keep = global_batch % (dp * micro) == 0
    for pin, column in ((data_parallel, dp), (micro_batch, micro)):
        if pin is not None:
            keep &= column == pin
    if most_devices is not None:
        keep &= dp <= most_devices
    dp, micro = dp[keep], micro[keep]
    return np.column_stack([dp, micro, accumulated(global_batch, dp, micro).astype(int)])


def contention(writers, checkpoint_bytes, interval_s, store_bytes_per_s) -> dict:
    """Several jobs that save to one store: {utilisation, slowdown}; slowdown of one save's transfer
    by processor sharing, 1 / (1 - others' load).

    utilisation = writers x B / (interval x rate); >= 1 means that the store never catches up
    (slowdown inf). M/G/1 processor sharing, insensitive to the size distribution; saves that start
    together see up to `writers` times instead.
    """
    each = np.asarray(checkpoint_bytes, float) / (np.asarray(interval_s, float) * store_bytes_per_s)
    others = (np.asarray(writers) - 1) * each
    with np.errstate(divide="ignore"):
        slow = np.where(others < 1, 1 / np.maximum(1 - others, 1e-300), np.inf)
    return {"utilisation": others + each, "slowdown": slow}


def ladder(evictions_per_s, repair_s, nodes, spares=None) -> dict:
    """What each number of spares costs: {spares, wait_chance, stall_share, paid_extra,
    cost_per_useful} (arrays).

    paid_extra = S / N; cost_per_useful = (1 + S / N) / (1 - stall_share), the price of a useful
    hour against one with no failures and no spares. Too few shows in the stall, too many in what is
    paid.
    """
    a = evictions_per_s * repair_s
    enough = int(cheapest([(1.0, a)], nodes)) * 2 + 4
    s = np.arange(enough) if spares is None else np.asarray(spares, int)
    stall = stall_share(s, a)
    return {
        "spares": s,
        "wait_chance": wait_chance(s, a),
        "stall_share": stall,
        "paid_extra": s / nodes,
        "cost_per_useful": (1 + s / nodes) / (1 - stall),
    }


def large_job_hazard(failed_share_before, failed_share_after):
    """Share of failures that the removed nodes caused, from the shares of jobs that failed: 1 -
    ln(1 - after) / ln(1 - before). RSC: 0.73."""
    return 1 - np.log1p(-np.asarray(failed_share_after, float)) / np.log1p(
        -np.asarray(failed_share_before, float)
    )


def single(
    work_s, interval_s, mtbf_s, *, stall_s=0.0, durable_s=0.0, restart_s=0.0, down_s=0.0, **features
) -> Scenario:
    """The world of the closed form: one level, one cause, every further field of Scenario as a
    keyword."""
    nodes = int(features.get("spares") is not None or bool(features.get("shrink")))
    return Scenario(
        work_s=work_s,
        interval_s=interval_s,
        levels=(Level(stall_s=stall_s, durable_s=durable_s, restart_s=restart_s),),
        faults=(Fault(rate_per_s=1 / mtbf_s, down_s=down_s, nodes=nodes),),
        **features,
    )


def fail_slow_share(nodes, episodes_per_1000_node_days, *, duration_s=72 * 60.0, slowdown=1.34):
    """Share of the time lost to nodes that degrade until they are found: rate x duration x (1 - 1 /
    slowdown), capped at the slowdown itself.

    72 min and 1.34 x are GREYHOUND's (ATC'25) means before mitigation, in 16 of 27 jobs of 512
    devices and more; the rate has not been published and is the caller's. Finding a slow node in 5
    min instead of 72 divides the loss by 14.
    """
    busy = np.asarray(nodes, float) * episodes_per_1000_node_days / 1000 / DAY_S * duration_s
    return (1 - np.exp(-busy)) * (1 - 1 / slowdown)


def lemons(failure_share, nodes, count) -> dict:
    """Bad apples: what `count` of `nodes` nodes that cause `failure_share` of all failures mean.

    {multiplier: rate of a lemon over a sound node, mtbf_gain: job MTBF after sound nodes replaced
    them over before}. Two-point mix of exponential nodes. RSC found some 40 lemons; removing them
    cut failures of large jobs from 14 % to 4 % (arXiv 2410.21680).
    """
    f, c = np.asarray(failure_share, float), np.asarray(count, float)
    return {"multiplier": (f / c) / ((1 - f) / (nodes - c)), "mtbf_gain": (1 - c / nodes) / (1 - f)}


def verified_interval(failures_per_s, corruptions_per_s, verify_s, save_s):
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


def standard_error_s(simulation) -> float:
    """Of the mean wall time over the replicas. [s]"""
    return simulation.wall_s.std(ddof=1) / np.sqrt(len(simulation.wall_s))
