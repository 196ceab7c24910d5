"""The Monte-Carlo against the closed forms, over grids with printed seeds; its speed, its memory,
and what no closed form covers."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import closed_forms
import numpy as np
import pytest
from scantling.endure import elastic, goodput, spares
from scantling.endure.copies import Level
from scantling.endure.failures import Pause
from scantling.endure.simulate import Fault, Scenario, Shrink, _Run, simulate

SEED = 20_240_731


class Started(_Run):
    """Copies that start with the nodes in repair of a pool that has long been running."""

    def _pool(self, n):
        pool, s = super()._pool(n), self.s
        load = sum(f.rate_per_s * f.nodes for f in s.faults) * s.repair_s
        k = np.arange(s.spares + 1)
        p = np.cumprod([1.0, *load / k[1:]])
        busy = self.rng.choice(k, n, p=p / p.sum())
        back = self.rng.exponential(s.repair_s, (n, len(pool))).T
        return np.where(np.arange(len(pool))[:, None] < busy, back, pool)


def simulate_started(s, replicas, seed):
    return Started(s, replicas, seed).go()


def spread_out(s, replicas, seed, spread):
    """The simulation with repairs that all take their mean (0), or lognormal ones of that sigma."""

    class Spread(_Run):
        def _repair(self, n):
            return self.s.repair_s * self.rng.lognormal(-(spread**2) / 2, spread, n)

    return Spread(s, replicas, seed).go()


def _async(rng):
    m = 10 ** rng.uniform(2.7, 4.5)
    stall = m * 10 ** rng.uniform(-4, -0.5)
    some = lambda low, high: m * rng.choice([0.0, 10 ** rng.uniform(low, high)])
    durable, restart, down = some(-3, -0.3), some(-3, -0.1), some(-3, -0.5)
    tau = max(
        float(goodput.optimum_interval(m, stall)) * 10 ** rng.uniform(-0.4, 0.4), durable - stall
    )
    return m, stall, durable, restart, down, tau, rng.uniform(30, 150) * m


def setting_async(rng):
    m, stall, durable, restart, down, tau, work = _async(rng)
    s = closed_forms.single(
        work, tau, m, stall_s=stall, durable_s=durable, restart_s=restart, down_s=down
    )
    return s, closed_forms.finite_wall_s(
        work, m, stall, s.tau_s, durable_s=durable, restart_s=restart, down_s=down
    )


def setting_tiers(rng):
    m = 10 ** rng.uniform(2.9, 4.3)
    every = [1, *np.cumprod(rng.integers(2, 6, rng.integers(1, 3)))]
    k = len(every)
    rates = rng.dirichlet(np.ones(k)) / m
    stalls = np.full(k, m * 10 ** rng.uniform(-4, -1.8))
    restores, down, tau = (
        m * 10 ** rng.uniform(-2.5, -0.5, k),
        m * 10 ** rng.uniform(-3, -1),
        m * 10 ** rng.uniform(-2, -0.8),
    )
    cycles = max(3, int(60 * m / (tau * every[-1])))
    s = Scenario(
        work_s=cycles * every[-1] * tau,
        interval_s=tau,
        levels=tuple(
            Level(stall_s=a, durable_s=0.0, restart_s=b, every=int(c))
            for a, b, c in zip(stalls, restores, every)
        ),
        faults=tuple(Fault(rate_per_s=r, level=i, down_s=down) for i, r in enumerate(rates)),
    )
    return s, cycles * closed_forms.tiers_cycle_s(rates, every, tau, stalls, restores, down)


def setting_spares(rng):
    m, load, n = 3000.0, rng.uniform(0.3, 3.0), int(rng.integers(0, 5))
    s = closed_forms.single(
        1500 * m, 200, m, stall_s=2, restart_s=rng.uniform(10, 300), spares=n, repair_s=load * m
    )
    run = closed_forms.finite_wall_s(s.work_s, m, 2, s.tau_s, restart_s=s.levels[0].restart_s)
    return s, run / (1 - spares.stall_share(n, load))


def setting_spares_and_down(rng):
    """Repairs go on while the job is down: the exact chain instead of Erlang-B. Runs long, since
    the pool starts whole."""
    m, load, n, down = (
        3000.0,
        rng.uniform(0.3, 2.0),
        int(rng.integers(0, 3)),
        rng.uniform(100, 2000),
    )
    s = closed_forms.single(4000 * m, 300, m, stall_s=2, down_s=down, spares=n, repair_s=load * m)
    run = closed_forms.finite_wall_s(s.work_s, m, 2, s.tau_s, down_s=down)
    return s, run / (1 - spares.shortage(n, 1 / m, load * m, down))


KINDS = (
    (setting_async, 370, 2000, simulate),
    (setting_tiers, 160, 2000, simulate),
    (setting_spares, 50, 400, simulate_started),
)


def agreement(share, seed=SEED):
    """z and relative error of every setting of the grid, `share` of each kind."""
    z, error = [], []
    for kind, count, replicas, run in KINDS:
        for i in range(max(3, int(count * share))):
            rng = np.random.default_rng([seed, count, i])
            s, exact = kind(rng)
            r = run(s, replicas, seed=int(rng.integers(2**31)))
            z.append((r.wall_s.mean() - exact) / closed_forms.standard_error_s(r))
            error.append(r.wall_s.mean() / exact - 1)
    return np.array(z), np.array(error)


def test_closed_form_and_simulation_agree_on_a_few():
    z, error = agreement(0.12)
    print(
        f"seed {SEED}: {len(z)} settings, rms z {np.sqrt((z**2).mean()):.3f}, largest "
        f"{abs(z).max():.2f}, bias {error.mean():+.2e}"
    )
    assert len(z) >= 60
    assert 0.75 <= np.sqrt((z**2).mean()) <= 1.25
    assert abs(z).max() <= 4.5
    assert abs(error.mean()) <= 1e-3


@pytest.mark.long
def test_closed_form_and_simulation_agree_over_the_grid():
    z, error = agreement(1.0)
    print(
        f"seed {SEED}: {len(z)} settings, rms z {np.sqrt((z**2).mean()):.3f}, largest "
        f"{abs(z).max():.2f}, bias {error.mean():+.2e}"
    )
    assert len(z) >= 500
    assert 0.9 <= np.sqrt((z**2).mean()) <= 1.1
    assert abs(z).max() <= 4.5
    assert abs(error.mean()) <= 1e-3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_repairs_during_downtime_hide_the_wait(seed):
    s, exact = setting_spares_and_down(np.random.default_rng([SEED, seed]))
    r = simulate(s, 200, seed)
    assert r.wall_s.mean() == pytest.approx(
        exact, rel=4 * closed_forms.standard_error_s(r) / exact + 2e-4
    )


@pytest.mark.parametrize("load", [4.8])
def test_waiting_does_not_depend_on_the_shape_of_the_repair_time(load):
    """Erlang's loss system is insensitive: exponential, fixed and lognormal repairs wait alike."""
    m, n = 3000.0, 6
    s = closed_forms.single(2500 * m, 200, m, stall_s=2, spares=n, repair_s=load * m)
    for r in (simulate(s, 200, 5), spread_out(s, 200, 5, 0), spread_out(s, 200, 5, 1.0)):
        assert r.badput["spare shortage"] == pytest.approx(spares.stall_share(n, load), rel=0.03)


def test_optimum_by_search_is_the_exact_one():
    """The interval that a golden-section search over the exact goodput finds is the Lambert-W one,
    from stall = M / 10,000 to 2 M."""
    from scipy.optimize import minimize_scalar

    for ratio in np.geomspace(1e-4, 2, 30):
        found = minimize_scalar(
            lambda t, d=ratio: (
                -float(goodput.ettr(1.0, d, np.exp(t), restart_s=0.3, durable_s=0.1, down_s=0.2))
            ),
            bounds=(-12, 3),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        assert np.exp(found) == pytest.approx(float(goodput.optimum_interval(1.0, ratio)), rel=1e-4)


def test_optimum_by_simulation_is_the_exact_one():
    m, stall = 1800.0, 30.0
    best = float(goodput.optimum_interval(m, stall))
    runs = {
        f: simulate(
            closed_forms.single(400 * m, best * f, m, stall_s=stall, restart_s=100), 2000, 11
        ).goodput
        for f in (0.5, 1.0, 2.0)
    }
    assert runs[1.0] > runs[0.5]
    assert runs[1.0] > runs[2.0]


FLEET_100K = 6.5e-3 * 12_500 / 86_400


def _hundred_thousand(**features):
    faults = (
        Fault(rate_per_s=FLEET_100K * 0.15, level=0, down_s=60),
        Fault(rate_per_s=FLEET_100K * 0.826, level=1, down_s=120, nodes=1),
        Fault(rate_per_s=FLEET_100K * 0.01, level=2, down_s=300, nodes=4),
        Fault(rate_per_s=FLEET_100K * 0.014, level=2, down_s=300, nodes=1, latency_s=1800.0),
    )
    planned = Pause(id="planned stops", per_s=1 / 86_400, seconds=330.5)
    levels = (
        Level(stall_s=0.5, durable_s=0, restart_s=60, every=1),
        Level(stall_s=0.5, durable_s=10, restart_s=120, every=1),
        Level(stall_s=0.5, durable_s=30, restart_s=300, every=2),
    )
    return Scenario(
        work_s=70 * 86_400,
        interval_s=40,
        levels=levels,
        faults=faults,
        pauses=(planned,),
        **features,
    )


@pytest.mark.slow
def test_ninety_days_of_100_000_devices():
    """1,000 replicas of 90 days with tiers, racks, corruption, planned stops and 24 spares."""
    levels = simulate(_hundred_thousand(), 1000, 3)
    pool = simulate(_hundred_thousand(spares=24, repair_s=7200.0), 1000, 3)
    assert pool.days(0.5) >= 88
    assert levels.failures.sum() > 1e6
    tracemalloc.start()
    simulate(replace(_hundred_thousand(spares=24), work_s=5 * 86_400), 1000, 3)
    assert tracemalloc.get_traced_memory()[1] < 1e9
    tracemalloc.stop()


def test_same_seed_same_numbers():
    s = replace(_hundred_thousand(spares=8), work_s=86_400)
    a, b, c = simulate(s, 50, 1), simulate(s, 50, 1), simulate(s, 50, 2)
    assert np.array_equal(a.wall_s, b.wall_s)
    assert not np.array_equal(a.wall_s, c.wall_s)


def test_goodput_and_badput_make_the_whole():
    for features in (
        {},
        {"spares": 4},
        {"spares": 4, "shrink": Shrink(gangs=64, gang_nodes=196, micro_batches=16, resize_s=60.0)},
    ):
        r = simulate(replace(_hundred_thousand(**features), work_s=3 * 86_400), 100, 1)
        assert r.goodput + sum(r.badput.values()) == pytest.approx(1, abs=1e-9)
        assert all(v >= 0 for v in r.badput.values())
        assert r.days(0.1) <= r.days(0.5) <= r.days(0.9)


def test_without_failures_only_the_saves_cost():
    r = simulate(closed_forms.single(1e6, 1000, 1e30, stall_s=10, durable_s=50), 5, 0)
    assert r.wall_s == pytest.approx(1e6 + 1000 * 10 + 50)


def test_a_rack_takes_several_spares():
    """The same failures one node at a time or in fours, for the same nodes in repair: fours wait
    longer."""
    m = 3000.0
    base = dict(
        work_s=600 * m,
        interval_s=200,
        levels=(Level(stall_s=2, durable_s=0, restart_s=50),),
        spares=6,
        repair_s=3 * m,
    )
    ones = simulate(
        Scenario(faults=(Fault(rate_per_s=1 / m, level=0, down_s=0, nodes=1),), **base), 300, 2
    )
    racks = simulate(
        Scenario(
            faults=(
                Fault(rate_per_s=0.75 / m, level=0, down_s=0, nodes=0),
                Fault(rate_per_s=0.25 / m, level=0, down_s=0, nodes=4),
            ),
            **base,
        ),
        300,
        2,
    )
    assert racks.badput["spare shortage"] > 1.5 * ones.badput["spare shortage"] > 0


def test_planned_stops_lose_no_work():
    """Graceful stops cost their save and restart only: a first-order sum, at one a day."""
    quiet = Scenario(
        work_s=60 * 86_400.0,
        interval_s=600,
        levels=(Level(stall_s=2, durable_s=60, restart_s=300),),
        faults=(Fault(rate_per_s=1e-12),),
        pauses=(Pause(id="planned stops", per_s=1 / 86_400, seconds=2 + 60 + 300 + 100),),
    )
    r = simulate(quiet, 400, 6)
    per_day = r.scenario.work_s / 86_400
    assert r.wall_s.mean() - r.scenario.work_s - r.scenario.saves * 2 == pytest.approx(
        per_day * (2 + 60 + 300 + 100), rel=0.05
    )
    assert r.failures.mean() == pytest.approx(0, abs=0.01)


def test_shrinking_beats_waiting_for_long_repairs_only():
    """With repairs of hours and no spare, running on short of a replica wins; with nodes back 40 s
    after detection, waiting does."""
    m = 7200.0
    base = dict(
        work_s=300 * m,
        interval_s=300,
        levels=(Level(stall_s=1, durable_s=0, restart_s=60),),
        faults=(Fault(rate_per_s=1 / m, level=0, down_s=60, nodes=1),),
        spares=0,
    )
    shrink = Shrink(gangs=64, gang_nodes=16, micro_batches=32, resize_s=120.0)
    long_wait, long_shrink = (
        simulate(Scenario(repair_s=14_400, shrink=x, **base), 200, 1).goodput
        for x in (None, shrink)
    )
    assert long_shrink > long_wait + 0.1
    short_wait, short_shrink = (
        spread_out(Scenario(repair_s=100, shrink=x, **base), 800, 1, 0).goodput
        for x in (None, shrink)
    )
    assert short_wait > short_shrink
    assert elastic.wait_or_shrink(14_400, 32, 64, resize_s=60)["choice"] == "shrink"
    assert elastic.wait_or_shrink(30, 32, 64, resize_s=60)["choice"] == "wait"


def test_replica_level_recovery_matches_its_closed_form():
    """FT-HSDP at 98,304 devices: 12 replicas, a failure every 18 min, 3 min of stall, 10 min until
    the replica is back."""
    m = 1080.0
    s = Scenario(
        work_s=3000 * m,
        interval_s=10.0,
        levels=(Level(stall_s=0, durable_s=0, restart_s=0),),
        faults=(Fault(rate_per_s=1 / m, level=0, down_s=180, nodes=1),),
        spares=0,
        repair_s=780,
        shrink=Shrink(gangs=12, gang_nodes=1, micro_batches=1200),
    )
    r = spread_out(s, 100, 1, 0)
    low, high = elastic.ft_hsdp(m, 12), closed_forms.ft_hsdp_renewal(m, 12)
    assert low - 0.01 < r.goodput < high + 0.015


def test_corruption_rolls_back_past_the_newest_copies():
    m, late = 5000.0, 3600.0
    base = Scenario(
        work_s=800 * m,
        interval_s=100,
        levels=(Level(stall_s=0.5, durable_s=0, restart_s=30),),
        faults=(Fault(rate_per_s=0.9 / m), Fault(rate_per_s=0.1 / m, latency_s=late)),
    )
    r = simulate(base, 500, 3)
    none = simulate(replace(base, faults=(Fault(rate_per_s=1 / m),)), 500, 3)
    assert r.wall_s.mean() / none.wall_s.mean() - 1 == pytest.approx(0.1 / m * late, rel=0.08)


def test_wrong_levels_are_refused():
    with pytest.raises(ValueError, match="levels"):
        simulate(
            Scenario(
                work_s=1000,
                interval_s=10,
                levels=(Level(), Level(every=2), Level(every=3)),
                faults=(Fault(rate_per_s=1e-3),),
            ),
            2,
        )


def test_spread_of_the_finish_to_first_order():
    m, stall, tau = 11_134.0, 5.0, 330.0
    s = closed_forms.single(
        60 * 86_400, tau, m, stall_s=stall, durable_s=60, restart_s=200, down_s=180
    )
    r = simulate(s, 4000, 3)
    assert float(
        closed_forms.finish_spread_s(
            s.work_s, m, stall, s.tau_s, durable_s=60, restart_s=200, down_s=180
        )
    ) == pytest.approx(r.wall_s.std(), rel=0.05)
    p90 = r.wall_s.mean() + 1.2816 * r.wall_s.std()
    assert r.days(0.9) * 86_400 == pytest.approx(p90, rel=1e-3)
