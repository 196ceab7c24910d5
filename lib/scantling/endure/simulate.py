"""Monte-Carlo of one job through its failures, all replicas at once: for what no closed form
covers, and for the spread of the finishing day.

One pass of the loop takes every unfinished replica to its next event (failure, planned stop,
regrowth); the saves between two events are
worked out by arithmetic, never one by one. Positions count saves: position 7.4 is 40 % through the
eighth interval.
"""

from dataclasses import astuple, field, replace
from math import ceil, sqrt

import numpy as np

from ..base.records import record
from ..base.units import DAY_S
from . import elastic


@record
class Level:
    """One tier of copies: written at every `every`-th save, stalls and is durable so many seconds
    later, restarts take `restart_s` from it."""

    stall_s: float = 0.0
    durable_s: float = 0.0
    restart_s: float = 0.0
    every: int = 1


@record
class Fault:
    """One cause of stops: its rate for the whole job, the lowest level that survives it, downtime,
    nodes it takes, wall time until it is found."""

    rate_per_s: float
    level: int = 0
    down_s: float = 0.0
    nodes: int = 0
    latency_s: float = 0.0
    restart_s: float | None = None  # None: that of the level it restores from


@record
class Shrink:
    """Run on without a gang instead of waiting: gangs (data-parallel replicas), nodes in each,
    micro-batches per gang, time to change size, `ratios` of `elastic.slower`."""

    gangs: int
    gang_nodes: int = 1
    micro_batches: int = 1
    resize_s: float = 0.0
    ratios: np.ndarray | None = None


@record
class Scenario:
    """One job. `interval_s` is rounded so that whole intervals fill `work_s`. Levels from the
    nearest copy up: a save stalls the same on each, each `every` divides the next,
    durable times do not fall. The job ends when its last save is durable on the top level."""

    work_s: float
    interval_s: float
    levels: tuple[Level, ...] = (Level(),)
    faults: tuple[Fault, ...] = ()
    pauses: tuple = ()  # failures.Pause: hold the job up, lose no work, strike while it runs
    spares: int | None = None  # None: a node is always at hand
    repair_s: float = 14_400.0  # mean; exponential
    shrink: Shrink | None = None

    @property
    def saves(self) -> int:
        return max(1, round(self.work_s / self.interval_s))

    @property
    def tau_s(self) -> float:
        return self.work_s / self.saves

    @property
    def rate_per_s(self) -> float:
        return sum(f.rate_per_s for f in self.faults)


@record
class Simulation:
    """What came out: wall time, failures and waiting of each replica, mean seconds by where they
    went."""

    scenario: Scenario
    seed: int
    wall_s: np.ndarray
    failures: np.ndarray
    waited_s: np.ndarray  # for nodes
    spent_s: dict = field(repr=False)

    @property
    def goodput(self) -> float:
        """Useful time over mean wall time (a ratio of means, not the mean of ratios)."""
        return self.scenario.work_s / self.wall_s.mean()

    @property
    def badput(self) -> dict:
        """Shares of the wall time lost, in operators' words; with goodput they sum to one."""
        mean = self.wall_s.mean()
        return {k: v / mean for k, v in self.spent_s.items()}

    def days(self, quantile=0.5):
        """Finishing day at these quantiles: 0.5 for P50, 0.9 for P90."""
        return np.quantile(self.wall_s, quantile) / DAY_S

    def as_dict(self) -> dict:
        return {
            "goodput": self.goodput,
            "badput": self.badput,
            **{f"days_p{p}": self.days(p / 100) for p in (10, 50, 90)},
            "replicas": len(self.wall_s),
            "seed": self.seed,
            "failures": self.failures.mean(),
        }


def simulate(scenario: Scenario, replicas: int = 1000, seed: int = 0) -> Simulation:
    """Run `replicas` copies of the job; the same seed gives the same numbers.

    Time to the next event is exponential in running time: nothing fails while the job is down or
    waits for a node. A failure aborts the saves in flight, wipes the levels
    below the one it needs, and the job resumes
    from the newest durable save of that level. Memory is a few arrays of `replicas`, times `spares`
    for the pool.
    Raises ValueError where the levels are not nested, TooLong where failures are so many that the
    copies would not end.
    """
    return _Run(scenario, replicas, seed).go()


MOST_EVENTS = 10_000  # of one copy: 90 days at a failure every 13 minutes
MOST_IN_REPAIR = 20_000  # nodes of one copy


class TooLong(ValueError):
    """A job that fails so often that its simulation would not end."""


KEPT = ("wall", "fails", "up", "detecting", "restarting", "short", "replayed", "slow")
STATE = (*KEPT, "id", "u", "r", "saved", "pool")  # the replicas are the last axis of each
LOST = ("detection", "restart", "spare shortage", "sdc", "shrunk")  # of KEPT


class _Run:
    """State of the replicas that are still going; those that are done move to `out`."""

    def __init__(self, s: Scenario, n: int, seed: int):
        self.s = s
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        stalls, self.delay, self.restart, every = np.array([astuple(l) for l in s.levels]).T
        self.every = every
        if every[0] != 1 or np.any(every[1:] % every[:-1]) or np.any(np.diff(self.delay) < 0):
            raise ValueError(
                "levels: the first is written at every save, each `every` divides the "
                "next, durable times do not fall"
            )
        if np.ptp(stalls):
            raise ValueError("levels: a save stalls the same on every level")
        self.stall = stalls[0]
        self.tau = s.tau_s
        self.saves = s.saves
        rows = [astuple(f) for f in s.faults]
        rows = [(*r[:-1], self.restart[r[1]] if r[-1] is None else r[-1]) for r in rows]
        rates, *causes = np.array(rows).reshape(-1, 6).T
        self.causes = np.array(causes)
        self.paused = np.array([(p.per_s, p.seconds) for p in s.pauses]).reshape(-1, 2, 1)
        self.rate = rates.sum()
        self.cum = np.cumsum(rates)[:-1] / self.rate
        self.id = np.arange(n)
        self.out = np.zeros((len(KEPT), n))
        vars(self).update({name: np.zeros(n) for name in (*KEPT, "u", "r")})
        self.saved = np.zeros((len(every), n))  # newest durable position on each level
        self.held = np.prod(self.paused, axis=1).sum()  # by pauses, of each second up, on average
        self.pool = self._pool(n)

    # the clock of saves
    # ------------------------------------------------------------

    def _time(self, position, pace):
        """Running time from position 0 to `position` [s]; `pace` is the time of one interval."""
        return position * pace + np.floor(position) * self.stall

    def _progress(self, elapsed, pace):
        """The last save ended, time since and share of the interval, `elapsed` seconds of running
        after position self.u."""
        t = self._time(self.u, pace) + elapsed
        period = pace + self.stall
        ended = np.floor(t / period)
        rest = np.maximum(t - ended * period, 0.0)
        return ended, rest, np.minimum(rest / pace, 1.0)

    # nodes in repair
    # ------------------------------------------------------------

    def _pool(self, n):
        """When each node in repair is back; -inf where nothing is."""
        s = self.s
        load = sum(f.rate_per_s * f.nodes for f in s.faults) * s.repair_s
        most = max([1, *(f.nodes for f in s.faults)])
        enough = ceil(load + 8 * sqrt(load)) + 2 * most + 8  # at once, in any replica
        if enough > MOST_IN_REPAIR:
            raise TooLong(f"some {load:,.0f} nodes are in repair at any time")
        slots = 0 if s.spares is None else min(s.spares + 1, enough)
        slots = enough if s.shrink else slots
        return np.full((slots, n), -np.inf)

    def _evict(self, taken, now):
        """Send `taken` nodes of each replica to repair at `now`.

        Without shrinking there is one slot more than spares, so the job can run when any slot is
        free. A node that finds none takes the place of the first to return, unless it returns
        before that.
        """
        rows = np.flatnonzero(taken)
        sent = 1
        while len(rows):
            back = now[rows] + self.rng.exponential(self.s.repair_s, len(rows))
            pool = self.pool.take(rows, axis=1)
            self.pool[pool.argmin(axis=0), rows] = np.maximum(pool.min(axis=0), back)
            rows = rows[taken[rows] > sent]
            sent += 1

    # one pass
    # ------------------------------------------------------------

    def go(self) -> Simulation:
        if self.s.rate_per_s * self.s.work_s > MOST_EVENTS:
            raise TooLong(f"a failure every {1 / self.s.rate_per_s:.3g} s")
        passes = 0
        while len(self.id):
            self._pass()
            passes += 1
            if passes > MOST_EVENTS:
                raise TooLong(f"more than {MOST_EVENTS:,} failures a run")
        wall, fails, up, *lost = self.out
        held = self.rng.poisson(self.paused[:, 0] * up) * self.paused[:, 1]
        wall = wall + held.sum(axis=0) - up * self.held
        work = self.s.work_s
        spent = {"saves": self._time(np.array([self.saves]), self.tau)[0] - work}
        spent |= {k: v.mean() for k, v in zip(LOST, lost)}
        spent |= {p.id: each for p, each in zip(self.s.pauses, held.mean(axis=1))}
        spent["lost work"] = max(0.0, wall.mean() - work - sum(spent.values()))
        return Simulation(
            scenario=self.s,
            seed=self.seed,
            wall_s=wall,
            failures=fails,
            waited_s=lost[LOST.index("spare shortage")],
            spent_s=spent,
        )

    def _pass(self):
        speed, alive, regrow = self._size()
        x = self.rng.standard_exponential(len(self.id)) / np.maximum(self.rate * alive, 1e-300)
        grows = regrow < x
        x = np.minimum(x, regrow)
        pace = self.tau / speed
        end = self._time(float(self.saves), pace) + self.delay[-1]
        need = self.r + end - self._time(self.u, pace)
        done = x >= need
        up = np.minimum(x, need)
        self.up += up
        self.wall += up * self.held
        if done.any():
            self.wall[done] += need[done]
            self.restarting[done] += self.r[done]
            self._finish(done)
            if not len(self.id):
                return
            left = (x, speed, pace, grows)
            x, speed, pace, grows = (a[~done] if np.ndim(a) else a for a in left)
        ran = np.maximum(x - self.r, 0.0)
        self.restarting += x - ran
        self.wall += x
        self.slow += ran * (1 - speed)
        whole, rest, part = self._progress(ran, pace)
        self._copies(np.minimum(whole, self.saves), rest, pace + self.stall)
        position = np.where(ran > 0, np.minimum(whole + part, self.saves), self.u)
        self._stop(position, grows)

    def _copies(self, whole, rest, period):
        """Note which saves of this stretch became durable on which level before the event."""
        every = self.every[:, None]
        j = np.where(whole == self.saves, whole, np.floor(whole / every) * every)
        j = np.where(
            self.delay[:, None] > rest + (whole - j) * period, np.floor((j - 1) / every) * every, j
        )
        self.saved = np.where(j > self.u, np.maximum(j, self.saved), self.saved)

    def _stop(self, position, grows):
        """What the event destroys, how long the job is down, and where it resumes."""
        s = self.s
        n = len(self.id)
        kind = np.searchsorted(self.cum, self.rng.random(n), side="right")
        level, down, nodes, late, restart = self.causes.take(kind, axis=1)
        level = level.astype(int)
        back = self.saved[level, np.arange(n)]
        failed = ~grows
        rows = np.flatnonzero((late > 0) & failed)
        if len(rows):
            # corruption: nothing saved since it can be used; intervals per second so far say what
            # the wall time since had brought
            at = position[rows]
            clean = np.floor(np.maximum(at - late[rows] * at / self.wall[rows], 0.0))
            self.replayed[rows] += np.maximum(back[rows] - clean, 0.0) * self.tau
            back[rows] = np.minimum(back[rows], clean)
        back = np.where(failed, back, position)
        down = failed * down
        self.u = back
        # levels below the one needed are refilled by the restore
        self.saved = np.where(
            failed & ((level > np.arange(len(self.saved))[:, None]) | (self.saved > back)),
            back,
            self.saved,
        )
        self.fails += failed
        self.detecting += down
        struck = self.wall
        self.wall = self.wall + down
        if len(self.pool):
            self._evict(failed * nodes, struck)
        if len(self.pool) and not s.shrink:  # wait until the job has all its nodes again
            wait = failed * np.maximum(self.pool.min(axis=0) - self.wall, 0.0)
            self.wall += wait
            self.short += wait
        self.r = np.where(grows, s.shrink.resize_s if s.shrink else 0.0, restart)

    def _size(self):
        """Speed and share of the devices of each replica at its present size, and the time until it
        can grow (infinite at full size)."""
        spares = self.s.spares or 0
        g = self.s.shrink
        if g is None:
            return 1.0, 1.0, np.inf
        out = (self.pool > self.wall).sum(axis=0)
        gone = np.minimum(-(-np.maximum(out - spares, 0) // g.gang_nodes), g.gangs - 1)
        speed = 1 / elastic.slower(g.micro_batches, g.gangs, gone, g.ratios)
        regrow = np.full(len(out), np.inf)
        rows = np.flatnonzero(gone)
        due = np.sort(self.pool[:, rows], axis=0)  # those that are back, or empty, come first
        nth = len(due) - out[rows] + np.maximum(out - spares - g.gang_nodes * (gone - 1), 1)[rows]
        regrow[rows] = np.maximum(due[nth - 1, np.arange(len(rows))] - self.wall[rows], 0.0)
        return speed, 1 - gone / g.gangs, regrow

    def _finish(self, done):
        self.out[:, self.id[done]] = [getattr(self, name)[done] for name in KEPT]
        vars(self).update({name: getattr(self, name)[..., ~done] for name in STATE})


def of_life(life, work_s, **features) -> Scenario:
    """The scenario of a `reliability.Life`: each cause with its own times and copy, pauses, spares,
    what the job can drop; keywords override.

    work_s : compute time of the whole run, failures apart [s].
    """
    gang = life.gang
    base = Scenario(
        work_s=work_s,
        interval_s=life.interval_s,
        levels=life.levels,
        faults=tuple(
            Fault(
                rate_per_s=life.slower * stop.per_s,
                level=level,
                down_s=stop.detect_s,
                nodes=int(stop.cause.evicts),
                latency_s=life.latency_s if stop.cause.id == "sdc" else 0.0,
                restart_s=stop.restart_s,
            )
            for stop, level in zip(life.stops, life.reach)
            if stop.per_s > 0
        ),
        pauses=life.held,
        spares=int(life.spares),
        repair_s=life.repair_s,
        shrink=gang
        and Shrink(
            gangs=gang.replicas,
            gang_nodes=gang.nodes,
            micro_batches=gang.micro_batches,
            resize_s=elastic.RESIZE_S,
            ratios=gang.ratios,
        ),
    )
    return replace(base, **features)
