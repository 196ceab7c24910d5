"""Monte-Carlo of one job through its failures, all replicas at once: for what no closed form
covers, and for the spread of the finishing day.

One pass of the loop takes every unfinished replica to its next event (failure, planned stop,
regrowth); the saves between two events are
worked out by arithmetic, never one by one. Positions count saves: position 7.4 is 40 % through the
eighth interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.units import DAY_S
from . import failures


@dataclass(frozen=True, kw_only=True)
class Level:
    """One tier of copies: written at every `every`-th save, stalls and is durable so many seconds
    later, restarts take `restart_s` from it."""

    stall_s: float = 0.0
    durable_s: float = 0.0
    restart_s: float = 0.0
    every: int = 1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One cause of stops: its rate for the whole job, the lowest level that survives it, downtime,
    nodes it takes, wall time until it is found."""

    rate_per_s: float
    level: int = 0
    down_s: float = 0.0
    nodes: int = 0
    latency_s: float = 0.0
    planned: bool = False  # state saved first: nothing is lost


@dataclass(frozen=True, kw_only=True)
class Lemons:
    """Nodes that fail far more often: how many at the start, failures per second of each, chance
    that a failure gets one thrown out."""

    count: int
    rate_per_s: float
    caught: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Shrink:
    """Run on without a gang instead of waiting: gangs (data-parallel replicas), nodes in each,
    micro-batches per gang, time to change size."""

    gangs: int
    gang_nodes: int = 1
    micro_batches: int = 1
    resize_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One job. `interval_s` is rounded so that whole intervals fill `work_s`. Levels from the
    nearest copy up: each `every` divides the next,
    durable times do not fall. The job ends when its last save is durable on the top level."""

    work_s: float
    interval_s: float
    levels: tuple[Level, ...] = (Level(),)
    faults: tuple[Fault, ...] = ()
    spares: int | None = None  # None: a node is always at hand
    repair_s: float = 14_400.0
    repair_spread: float | None = (
        None  # None: exponential; 0: fixed; else sigma of a lognormal with mean repair_s
    )
    pool_started: bool = (
        False  # start with the nodes in repair of a long-running pool (exponential) instead of none
    )
    lemons: Lemons | None = None
    shrink: Shrink | None = None
    contended: float = 0.0  # chance that a save meets a busy store …
    contention: float = 1.0  # … and its durable time is multiplied so
    shape: float = 1.0  # Weibull shape of the time to the next failure; each failure renews it
    fails_in_restart: bool = True
    save_survives: bool = (
        False  # a save in flight is finished in spite of the failure (the restart waits for it)
    )

    @property
    def saves(self) -> int:
        return max(1, round(self.work_s / self.interval_s))

    @property
    def tau_s(self) -> float:
        return self.work_s / self.saves

    @property
    def rate_per_s(self) -> float:
        return sum(f.rate_per_s for f in self.faults)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What came out: wall time, failures and waiting for nodes of each replica, mean seconds by
    where they went."""

    scenario: Scenario
    seed: int
    wall_s: np.ndarray
    failures: np.ndarray
    waited_s: np.ndarray
    spent_s: dict = field(repr=False)

    @property
    def goodput(self) -> float:
        """Useful time over mean wall time (a ratio of means, not the mean of ratios)."""
        return float(self.scenario.work_s / self.wall_s.mean())

    @property
    def standard_error_s(self) -> float:
        return float(self.wall_s.std(ddof=1) / math.sqrt(len(self.wall_s)))

    @property
    def badput(self) -> dict:
        """Shares of the wall time lost, in operators' words; with goodput they sum to one."""
        mean = self.wall_s.mean()
        return {k: float(v / mean) for k, v in self.spent_s.items()}

    def days(self, quantile=0.5):
        """Finishing day at these quantiles: 0.5 for P50, 0.9 for P90."""
        return np.quantile(self.wall_s, quantile) / DAY_S

    def as_dict(self) -> dict:
        return {
            "goodput": self.goodput,
            "badput": self.badput,
            "days_p10": float(self.days(0.1)),
            "days_p50": float(self.days(0.5)),
            "days_p90": float(self.days(0.9)),
            "replicas": len(self.wall_s),
            "seed": self.seed,
            "failures": float(self.failures.mean()),
        }


def simulate(scenario: Scenario, replicas: int = 1000, seed: int = 0) -> Simulation:
    """Run `replicas` copies of the job; the same seed gives the same numbers.

    Time to the next event is exponential (or Weibull) in running time: nothing fails while the job
    is down, waits for a node, or (where
    `fails_in_restart` is off) restarts. A failure aborts the saves in flight, wipes the levels
    below the one it needs, and the job resumes
    from the newest durable save of that level. Memory is a few arrays of `replicas`, times `spares`
    for the pool.
    Raises ValueError where the levels are not nested.
    """
    return _Run(scenario, replicas, seed).go()


class _Run:
    """State of the replicas that are still going; `keep` drops the finished."""

    def __init__(self, s: Scenario, n: int, seed: int):
        self.s, self.seed, self.rng = s, seed, np.random.default_rng(seed)
        levels = s.levels
        every, self.delay = [l.every for l in levels], [l.durable_s for l in levels]
        if (
            every[0] != 1
            or any(b % a for a, b in zip(every, every[1:]))
            or any(b < a for a, b in zip(self.delay, self.delay[1:]))
        ):
            raise ValueError(
                "levels: the first is written at every save, each `every` divides the "
                "next, durable times do not fall"
            )
        self.every, self.tau, self.saves = every, s.tau_s, s.saves
        self.restart = np.array([l.restart_s for l in levels])
        stalls = [l.stall_s for l in levels]
        self.even = len(set(stalls)) == 1
        self.stall = stalls[0]
        top = [max(k for k, e in enumerate(every) if (i + 1) % e == 0) for i in range(every[-1])]
        self.cycle = np.concatenate(
            [[0.0], np.cumsum([self.tau + stalls[k] for k in top])]
        )  # time at which each save of a top-level cycle ends
        self.total_s = self._time(np.array([float(self.saves)]), None)[0]
        if not self.even and s.shrink:
            raise ValueError(
                "levels: shrinking is worked out for stalls that are the same on every level"
            )
        f = s.faults
        rates = np.array([x.rate_per_s for x in f])
        self.rate = rates.sum()
        self.cum = np.cumsum(rates)[:-1] / self.rate if self.rate else np.zeros(0)
        self.f_level, self.f_down = (
            np.array([x.level for x in f], int),
            np.array([x.down_s for x in f]),
        )
        self.f_nodes, self.f_late = (
            np.array([x.nodes for x in f], int),
            np.array([x.latency_s for x in f]),
        )
        self.f_planned = np.array([x.planned for x in f], bool)

        def zeros():
            return np.zeros(n)

        self.id, self.wall, self.u, self.r, self.fails = (
            np.arange(n),
            zeros(),
            zeros(),
            zeros(),
            zeros(),
        )
        self.down, self.restarts, self.short, self.stops, self.late = (
            zeros(),
            zeros(),
            zeros(),
            zeros(),
            zeros(),
        )
        self.saved = np.zeros((len(levels), n))  # newest durable position on each level
        self.lemons = np.full(n, float(s.lemons.count)) if s.lemons else None
        self.pool = None
        if s.spares is not None or s.shrink:
            self._make_pool(n)
        self.out = {
            k: np.zeros(n)
            for k in (
                "wall",
                "fails",
                "detection",
                "restart",
                "spare shortage",
                "planned stops",
                "sdc",
                "slow",
            )
        }
        self.slow = zeros()

    # the clock of saves
    # ------------------------------------------------------------

    def _time(self, position, speed):
        """Running time from position 0 to `position` [s]."""
        whole = np.floor(position)
        if self.even:
            return position * (self.tau / (1 if speed is None else speed)) + whole * self.stall
        cycles, i = np.divmod(whole, len(self.cycle) - 1)
        return cycles * self.cycle[-1] + self.cycle[i.astype(int)] + (position - whole) * self.tau

    def _progress(self, elapsed, speed):
        """Position and time since its last save ended, `elapsed` seconds of running after position
        self.u."""
        t = self._time(self.u, speed) + elapsed
        if self.even:
            tau = self.tau if speed is None else self.tau / speed
            whole = np.floor(t / (tau + self.stall))
            rest = t - whole * (tau + self.stall)
            return whole, rest, np.minimum(rest / tau, 1.0)
        cycles = np.floor(t / self.cycle[-1])
        t = t - cycles * self.cycle[-1]
        i = np.searchsorted(self.cycle, t, side="right") - 1
        rest = t - self.cycle[i]
        return cycles * (len(self.cycle) - 1) + i, rest, np.minimum(rest / self.tau, 1.0)

    def _age(self, whole, j, rest, speed):
        """Time since save j ended, given the last ended save and the time since it."""
        if self.even:
            return rest + (whole - j) * (
                (self.tau if speed is None else self.tau / speed) + self.stall
            )
        return rest + self._time(whole, None) - self._time(j, None)

    # nodes in repair
    # ------------------------------------------------------------

    def _make_pool(self, n):
        s, spares = self.s, self.s.spares or 0
        load = sum(x.rate_per_s * x.nodes for x in s.faults) * s.repair_s
        most = max([x.nodes for x in s.faults], default=0) or 1
        self.slots = (
            spares + 1
            if s.shrink is None
            else max(spares, math.ceil(load + 8 * math.sqrt(load))) + 2 * most + 8
        )
        self.pool = np.full((n, self.slots), -np.inf)
        if s.pool_started:
            k = np.arange(spares + 1)
            p = np.exp(k * np.log(load) - np.array([math.lgamma(i + 1) for i in k]))
            busy = self.rng.choice(k, n, p=p / p.sum())
            due = self.rng.exponential(s.repair_s, self.pool.shape)
            self.pool = np.where(np.arange(self.slots) < busy[:, None], due, -np.inf)

    def _repair(self, n):
        s = self.s
        if s.repair_spread is None:
            return self.rng.exponential(s.repair_s, n)
        if s.repair_spread == 0:
            return np.full(n, s.repair_s)
        return self.rng.lognormal(math.log(s.repair_s) - s.repair_spread**2 / 2, s.repair_spread, n)

    def _evict(self, taken, now):
        """Send `taken` nodes of each replica to repair at `now`; without shrinking, the time at
        which the job has all its nodes again.

        There is one slot more than spares, so the job can run when any slot is free. A node that
        finds none takes the place of the first
        to return, unless it returns before that.
        """
        every = np.arange(len(taken))
        for k in range(int(taken.max(initial=0))):
            rows = every if k == 0 else np.flatnonzero(taken > k)
            back = (
                now[rows] + self._repair(len(rows))
                if k
                else np.where(taken > 0, now + self._repair(len(rows)), -np.inf)
            )
            slot = (self.pool[rows] if k else self.pool).argmin(axis=1)
            self.pool[rows, slot] = np.maximum(self.pool[rows, slot], back)
        return self.pool[every, self.pool.argmin(axis=1)] if self.s.shrink is None else None

    # one pass
    # ------------------------------------------------------------

    def go(self) -> Simulation:
        s = self.s
        if self.rate == 0 and not s.lemons:
            wall = np.full(len(self.id), self.total_s + self.delay[-1])
            return self._result(wall)
        while len(self.id):
            self._pass()
        return self._result(self.out["wall"])

    def _pass(self):
        s, n = self.s, len(self.id)
        speed, alive, regrow = self._size()
        rate = self.rate if self.lemons is None else self.rate + self.lemons * s.lemons.rate_per_s
        x = self.rng.standard_exponential(n)
        if s.shape != 1.0:
            x = x ** (1 / s.shape) / math.gamma(1 + 1 / s.shape)
        x /= rate if alive is None else rate * alive
        grows = None
        if regrow is not None:
            grows, x = regrow < x, np.minimum(x, regrow)
        if not s.fails_in_restart:  # the restart is downtime
            self.wall += self.r
            self.restarts += self.r
            self.r = np.zeros(n)
        need = (
            self.r
            + self._time(np.full(n, float(self.saves)), speed)
            - self._time(self.u, speed)
            + self.delay[-1]
        )
        done = x >= need
        if done.any():
            self.wall[done] += need[done]
            self.restarts[done] += self.r[done]
            self._finish(done)
            if not len(self.id):
                return
            x, speed, grows = (a if a is None else a[~done] for a in (x, speed, grows))
        ran = np.maximum(x - self.r, 0.0)
        self.restarts += x - ran
        self.wall += x
        if speed is not None:
            self.slow += ran * (1 - speed)
        whole, rest, part = self._progress(ran, speed)
        pending = self._copies(np.minimum(whole, self.saves), rest, speed)
        position = np.where(ran > 0, np.minimum(whole + part, self.saves), self.u)
        self._stop(position, grows, pending)

    def _copies(self, whole, rest, speed):
        """Note which saves of this stretch became durable on which level before the event; time
        that surviving saves still need."""
        s, pending, slow = self.s, 0.0, 1.0
        if s.contended:
            slow = np.where(self.rng.random(len(whole)) < s.contended, s.contention, 1.0)
        for k, every in enumerate(self.every):
            j = (
                whole
                if every == 1
                else np.where(whole == self.saves, whole, np.floor(whole / every) * every)
            )
            if self.delay[k] > 0:
                left = self.delay[k] * slow - self._age(whole, j, rest, speed)
                if s.save_survives:
                    pending = np.where(
                        (left > 0) & (j > self.u), np.maximum(pending, left), pending
                    )
                else:
                    j = np.where(
                        left > 0, j - 1 if every == 1 else np.floor((j - 1) / every) * every, j
                    )
            self.saved[k] = np.where(j > self.u, np.maximum(j, self.saved[k]), self.saved[k])
        return pending

    def _stop(self, position, grows, pending):
        """What the event destroys, how long the job is down, and where it resumes."""
        s, n = self.s, len(self.id)
        kind = (
            np.searchsorted(self.cum, self.rng.random(n), side="right")
            if len(self.cum)
            else np.zeros(n, int)
        )
        if self.lemons is not None:
            kind = self._sour(kind)
        level, down = self.f_level[kind], self.f_down[kind]
        back = self.saved[0] if len(self.every) == 1 else self.saved[level, np.arange(n)]
        if self.f_late.any():  # corruption: nothing saved since it can be used
            late = self.f_late[kind] if grows is None else np.where(grows, 0.0, self.f_late[kind])
            pace = (
                position / self.wall
            )  # intervals per second so far: what the wall time since the corruption had brought
            clean = np.where(late > 0, np.floor(np.maximum(position - late * pace, 0.0)), np.inf)
            self.late += np.maximum(back - clean, 0.0) * self.tau
            back = np.minimum(back, clean)
        if s.save_survives:
            down = np.maximum(down, pending)
        failed = True if grows is None else ~grows
        if grows is not None:
            back = np.where(grows, position, back)
        if self.f_planned.any():  # the state is saved, durably, before the stop
            soft = self.f_planned[kind] & failed
            failed = failed & ~soft
            back = np.where(soft, position, back)
            cost = np.where(soft, self.stall + self.delay[-1], 0.0)
            self.wall += cost
            self.stops += np.where(soft, cost + down, 0.0)
            self.saved = np.where(soft, position, self.saved)
        self.u = back
        for k in range(len(self.every)):  # levels below the one needed are refilled by the restore
            lost = failed & ((level > k) | (self.saved[k] > back))
            self.saved[k] = np.where(lost, back, self.saved[k])
        self.fails += failed
        self.down += np.where(failed, down, 0.0)
        struck = self.wall
        self.wall = self.wall + (down if grows is None else np.where(grows, 0.0, down))
        if self.pool is not None:
            ready = self._evict(np.where(failed, self.f_nodes[kind], 0), struck)
            if s.shrink is None:
                wait = np.where(failed, np.maximum(ready - self.wall, 0.0), 0.0)
                self.wall += wait
                self.short += wait
        self.r = (
            self.restart[level]
            if grows is None
            else np.where(grows, s.shrink.resize_s, self.restart[level])
        )

    def _sour(self, kind):
        """Failures of lemon nodes among all: they count as the first cause that takes a node, and
        get the node thrown out by chance."""
        bad, n = self.s.lemons, len(kind)
        share = self.lemons * bad.rate_per_s
        sour = self.rng.random(n) * (self.rate + share) < share
        self.lemons = self.lemons - (sour & (self.rng.random(n) < bad.caught))
        return np.where(sour, int(np.argmax(self.f_nodes > 0)), kind)

    def _size(self):
        """Speed and share of the devices of each replica at its present size, and the time until it
        can grow (None without shrinking)."""
        s = self.s
        if s.shrink is None:
            return None, None, None
        spares, g = s.spares or 0, s.shrink
        away = self.pool > self.wall[:, None]
        out = away.sum(axis=1)
        gone = np.minimum(-(-np.maximum(out - spares, 0) // g.gang_nodes), g.gangs - 1)
        speed = g.micro_batches / np.ceil(g.micro_batches * g.gangs / (g.gangs - gone) - 1e-12)
        due = np.sort(np.where(away, self.pool, np.inf), axis=1)
        nth = np.clip(out - spares - g.gang_nodes * (gone - 1), 1, self.slots) - 1
        when = due[np.arange(len(out)), nth] - self.wall
        return speed, 1 - gone / g.gangs, np.where(gone > 0, np.maximum(when, 0.0), np.inf)

    def _finish(self, done):
        i, o = self.id[done], self.out
        o["wall"][i], o["fails"][i], o["detection"][i] = (
            self.wall[done],
            self.fails[done],
            self.down[done],
        )
        o["restart"][i], o["spare shortage"][i], o["planned stops"][i] = (
            self.restarts[done],
            self.short[done],
            self.stops[done],
        )
        o["sdc"][i], o["slow"][i] = self.late[done], self.slow[done]
        keep = ~done
        for name in (
            "id",
            "wall",
            "u",
            "r",
            "fails",
            "down",
            "restarts",
            "short",
            "stops",
            "late",
            "slow",
        ):
            setattr(self, name, getattr(self, name)[keep])
        self.saved = self.saved[:, keep]
        if self.lemons is not None:
            self.lemons = self.lemons[keep]
        if self.pool is not None:
            self.pool = self.pool[keep]

    def _result(self, wall) -> Simulation:
        spent = {k: float(v.mean()) for k, v in self.out.items() if k not in ("wall", "fails")}
        spent = {
            "saves": self.total_s - self.s.work_s,
            "detection": spent["detection"],
            "restart": spent["restart"],
            "spare shortage": spent["spare shortage"],
            "planned stops": spent["planned stops"],
            "sdc": spent["sdc"],
            "shrunk": spent["slow"],
        }
        spent["lost work"] = max(0.0, float(wall.mean()) - self.s.work_s - sum(spent.values()))
        return Simulation(
            scenario=self.s,
            seed=self.seed,
            wall_s=wall,
            failures=self.out["fails"],
            waited_s=self.out["spare shortage"],
            spent_s=spent,
        )


def single(
    work_s, interval_s, mtbf_s, *, stall_s=0.0, durable_s=0.0, restart_s=0.0, down_s=0.0, **features
) -> Scenario:
    """The world of the closed form: one level, one cause, every further field of Scenario as a
    keyword."""
    nodes = 1 if features.get("spares") is not None or features.get("shrink") else 0
    return Scenario(
        work_s=work_s,
        interval_s=interval_s,
        levels=(Level(stall_s=stall_s, durable_s=durable_s, restart_s=restart_s),),
        faults=(Fault(rate_per_s=1 / mtbf_s, level=0, down_s=down_s, nodes=nodes),),
        **features,
    )


def of_endurance(endurance, work_s, *, sdc_latency_s=1800.0, **features) -> Scenario:
    """The scenario of an Endurance: its rates by cause, one durable level, spares, repair and
    planned stops; keywords override.

    work_s : compute time of the whole run, failures apart [s].  sdc_latency_s : corruption to its
    discovery.
    """
    e = endurance
    down, rate = float(e.detect_s), 1 / float(e.mtbf_s)
    faults = [
        Fault(
            rate_per_s=rate * c.share,
            level=0,
            down_s=down,
            nodes=int(c.evicts),
            latency_s=sdc_latency_s if c.id == "sdc" else 0.0,
        )
        for c in failures.CAUSES
    ]
    if e.planned_per_day:
        faults.append(
            Fault(
                rate_per_s=e.planned_per_day / DAY_S,
                level=0,
                down_s=0.0,
                nodes=0,
                latency_s=0.0,
                planned=True,
            )
        )
    level = Level(
        stall_s=float(e.checkpoint_stall_s),
        durable_s=float(e.checkpoint_durable_s),
        restart_s=float(e.restart_s),
    )
    base = Scenario(
        work_s=float(work_s),
        interval_s=float(e.checkpoint_interval_s),
        levels=(level,),
        faults=tuple(faults),
        spares=int(e.spares),
        repair_s=float(e.repair_s),
    )
    return replace(base, **features) if features else base
