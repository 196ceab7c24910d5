"""Monte-Carlo of one job through its failures, all replicas at once: for what no closed form
covers, and for the spread of the finishing day.

One pass of the loop takes every unfinished replica to its next event (failure, planned stop,
regrowth); the saves between two events are worked out by arithmetic, never one by one. Positions
count saves: position 7.4 is 40 % through the eighth interval.
"""

from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..base.columns import Array, Column, rows_of
from ..base.records import record
from ..base.units import DAY_S
from . import elastic
from .copies import Level
from .failures import CORRUPTION, Pause
from .life import Life


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
    ratios: Array | None = None


@record
class Scenario:
    """One job. `interval_s` is rounded so that whole intervals fill `work_s`. Levels from the
    nearest copy up: a save stalls the same on each, each `every` divides the next,
    durable times do not fall. The job ends when its last save is durable on the top level."""

    work_s: float
    interval_s: float
    levels: tuple[Level, ...] = (Level(),)
    faults: tuple[Fault, ...] = ()
    pauses: tuple[Pause, ...] = ()  # hold the job up, lose no work, strike while it runs
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
    wall_s: Array
    failures: Array
    waited_s: Array  # for nodes
    spent_s: dict[str, float] = field(repr=False)

    @property
    def goodput(self) -> float:
        """Useful time over mean wall time (a ratio of means, not the mean of ratios)."""
        return float(self.scenario.work_s / self.wall_s.mean())

    @property
    def badput(self) -> dict[str, float]:
        """Shares of the wall time lost, in operators' words; with goodput they sum to one."""
        mean = self.wall_s.mean()
        return {k: v / mean for k, v in self.spent_s.items()}

    def days(self, quantile: float = 0.5) -> float:
        """Finishing day at these quantiles: 0.5 for P50, 0.9 for P90."""
        return float(np.quantile(self.wall_s, quantile) / DAY_S)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers: goodput, badput, finishing days, and how they were had."""
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
    waits for a node. A failure aborts the saves in flight, wipes the levels below the one it needs,
    and the job resumes from the newest durable save of that level. Memory is a few arrays of
    `replicas`, times `spares` for the pool.
    Raises ValueError where the levels are not nested, TooLong where failures are so many that the
    copies would not end.
    """
    return _Run(scenario, replicas, seed).go()


MOST_EVENTS = 10_000  # of one copy: 90 days at a failure every 13 minutes
MOST_IN_REPAIR = 20_000  # nodes of one copy


class TooLong(ValueError):
    """A job that fails so often that its simulation would not end."""


class Ended(NamedTuple):
    """What each replica has spent when it is done. [seconds of it]"""

    wall: Array
    fails: Array  # failures, counted
    up: Array  # running
    detecting: Array
    restarting: Array
    short: Array  # waiting for nodes
    replayed: Array  # after corruption
    slow: Array  # lost to running on without gangs


@dataclass
class State:
    """The replicas that are still going: the last axis of each array. Times as in `Ended`."""

    id: Array
    wall: Array
    fails: Array
    up: Array
    detecting: Array
    restarting: Array
    short: Array
    replayed: Array
    slow: Array
    u: Array  # position at which each resumes
    r: Array  # restart that is still to run [s]
    saved: Array  # newest durable position on each level [levels, replicas]
    pool: Array  # when each node in repair is back; -inf where nothing is [slots, replicas]

    def those(self, rows: Array) -> "State":
        """Some of the replicas."""
        return State(**{name: values[..., rows] for name, values in vars(self).items()})


class _Run:
    """State of the replicas that are still going; those that are done move to `out`."""

    def __init__(self, s: Scenario, n: int, seed: int) -> None:
        self.s = s
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        levels = [(x.stall_s, x.durable_s, x.restart_s, x.every) for x in s.levels]
        stalls, self.delay, self.restart, every = np.array(levels).T
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
        rows = []
        for f in s.faults:
            restart_s = self.restart[f.level] if f.restart_s is None else f.restart_s
            rows.append((f.rate_per_s, f.level, f.down_s, f.nodes, f.latency_s, restart_s))
        rates, *causes = np.array(rows).reshape(-1, 6).T
        self.causes = np.array(causes)
        self.paused = np.array([(p.per_s, p.seconds) for p in s.pauses]).reshape(-1, 2, 1)
        self.rate = rates.sum()
        self.cum = np.cumsum(rates)[:-1] / self.rate
        self.out = Ended(*np.zeros((len(Ended._fields), n)))
        # by pauses, of each second up, on average
        self.paused_share = np.prod(self.paused, axis=1).sum()
        self.now = State(
            id=np.arange(n),
            wall=np.zeros(n),
            fails=np.zeros(n),
            up=np.zeros(n),
            detecting=np.zeros(n),
            restarting=np.zeros(n),
            short=np.zeros(n),
            replayed=np.zeros(n),
            slow=np.zeros(n),
            u=np.zeros(n),
            r=np.zeros(n),
            saved=np.zeros((len(every), n)),
            pool=self._pool(n),
        )

    # the clock of saves
    # ------------------------------------------------------------

    def _time(self, position: Column, pace: Column) -> Column:
        """Running time from position 0 to `position` [s]; `pace` is the time of one interval."""
        seconds: Column = position * pace + np.floor(position) * self.stall
        return seconds

    def _progress(self, elapsed: Array, pace: Column) -> tuple[Array, Array, Array]:
        """The last save ended, time since and share of the interval, `elapsed` seconds of running
        after position self.now.u."""
        t = self._time(self.now.u, pace) + elapsed
        period = pace + self.stall
        ended = np.floor(t / period)
        rest = np.maximum(t - ended * period, 0.0)
        return ended, rest, np.minimum(rest / pace, 1.0)

    # nodes in repair
    # ------------------------------------------------------------

    def _pool(self, n: int) -> Array:
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

    def _evict(self, evicted: Array, now: Array) -> None:
        """Send `taken` nodes of each replica to repair at `now`.

        Without shrinking there is one slot more than spares, so the job can run when any slot is
        free. A node that finds none takes the place of the first to return, unless it returns
        before that.
        """
        rows = np.flatnonzero(evicted)
        sent = 1
        while len(rows):
            back = now[rows] + self.rng.exponential(self.s.repair_s, len(rows))
            pool = self.now.pool.take(rows, axis=1)
            self.now.pool[pool.argmin(axis=0), rows] = np.maximum(pool.min(axis=0), back)
            rows = rows[evicted[rows] > sent]
            sent += 1

    # one pass
    # ------------------------------------------------------------

    def go(self) -> Simulation:
        """All passes, and what they come to."""
        if self.s.rate_per_s * self.s.work_s > MOST_EVENTS:
            raise TooLong(f"a failure every {1 / self.s.rate_per_s:.3g} s")
        passes = 0
        while len(self.now.id):
            self._pass()
            passes += 1
            if passes > MOST_EVENTS:
                raise TooLong(f"more than {MOST_EVENTS:,} failures a run")
        out, work = self.out, self.s.work_s
        paused = self.rng.poisson(self.paused[:, 0] * out.up) * self.paused[:, 1]
        wall = out.wall + paused.sum(axis=0) - out.up * self.paused_share
        spent = {
            "saves": self._time(float(self.saves), self.tau) - work,
            "detection": out.detecting.mean(),
            "restart": out.restarting.mean(),
            "spare shortage": out.short.mean(),
            "sdc": out.replayed.mean(),
            "shrunk": out.slow.mean(),
        }
        for pause, seconds in zip(self.s.pauses, paused.mean(axis=1)):
            spent[pause.id] = spent.get(pause.id, 0.0) + seconds
        spent["lost work"] = max(0.0, wall.mean() - work - sum(spent.values()))
        return Simulation(
            scenario=self.s,
            seed=self.seed,
            wall_s=wall,
            failures=out.fails,
            waited_s=out.short,
            spent_s=spent,
        )

    def _pass(self) -> None:
        """Every replica to its next event."""
        speed, alive, regrow = self._size()
        x = self.rng.standard_exponential(len(self.now.id)) / np.maximum(self.rate * alive, 1e-300)
        grows = regrow < x
        x = np.minimum(x, regrow)
        pace = self.tau / speed
        end = self._time(float(self.saves), pace) + self.delay[-1]
        need: Array = self.now.r + end - self._time(self.now.u, pace)
        done = x >= need
        up = np.minimum(x, need)
        self.now.up += up
        self.now.wall += up * self.paused_share
        if done.any():
            self.now.wall[done] += need[done]
            self.now.restarting[done] += self.now.r[done]
            self._finish(done)
            if not len(self.now.id):
                return
            x, grows = x[~done], grows[~done]
            speed, pace = rows_of(speed, ~done), rows_of(pace, ~done)
        ran = np.maximum(x - self.now.r, 0.0)
        self.now.restarting += x - ran
        self.now.wall += x
        self.now.slow += ran * (1 - speed)
        whole, rest, part = self._progress(ran, pace)
        self._copies(np.minimum(whole, self.saves), rest, pace + self.stall)
        position = np.where(ran > 0, np.minimum(whole + part, self.saves), self.now.u)
        self._stop(position, grows)

    def _copies(self, whole: Array, rest: Array, period: Column) -> None:
        """Note which saves of this stretch became durable on which level before the event."""
        every = self.every[:, None]
        j = np.where(whole == self.saves, whole, np.floor(whole / every) * every)
        j = np.where(
            self.delay[:, None] > rest + (whole - j) * period, np.floor((j - 1) / every) * every, j
        )
        self.now.saved = np.where(j > self.now.u, np.maximum(j, self.now.saved), self.now.saved)

    def _stop(self, position: Array, grows: Array) -> None:
        """What the event destroys, how long the job is down, and where it resumes."""
        s = self.s
        n = len(self.now.id)
        kind = np.searchsorted(self.cum, self.rng.random(n), side="right")
        level, down, nodes, late, restart = self.causes.take(kind, axis=1)
        level = level.astype(int)
        back = self.now.saved[level, np.arange(n)]
        failed = ~grows
        rows = np.flatnonzero((late > 0) & failed)
        if len(rows):
            # corruption: nothing saved since it can be used; intervals per second so far say what
            # the wall time since had brought
            at = position[rows]
            clean = np.floor(np.maximum(at - late[rows] * at / self.now.wall[rows], 0.0))
            self.now.replayed[rows] += np.maximum(back[rows] - clean, 0.0) * self.tau
            back[rows] = np.minimum(back[rows], clean)
        back = np.where(failed, back, position)
        down = failed * down
        self.now.u = back
        # levels below the one needed are refilled by the restore
        self.now.saved = np.where(
            failed & ((level > np.arange(len(self.now.saved))[:, None]) | (self.now.saved > back)),
            back,
            self.now.saved,
        )
        self.now.fails += failed
        self.now.detecting += down
        struck = self.now.wall
        self.now.wall = self.now.wall + down
        if len(self.now.pool):
            self._evict(failed * nodes, struck)
        if len(self.now.pool) and not s.shrink:  # wait until the job has all its nodes again
            wait = failed * np.maximum(self.now.pool.min(axis=0) - self.now.wall, 0.0)
            self.now.wall += wait
            self.now.short += wait
        self.now.r = np.where(grows, s.shrink.resize_s if s.shrink else 0.0, restart)

    def _size(self) -> tuple[Column, Column, Column]:
        """Speed and share of the devices of each replica at its present size, and the time until it
        can grow (infinite at full size)."""
        spares = self.s.spares or 0
        g = self.s.shrink
        if g is None:
            return 1.0, 1.0, np.inf
        out = (self.now.pool > self.now.wall).sum(axis=0)
        gone = np.minimum(-(-np.maximum(out - spares, 0) // g.gang_nodes), g.gangs - 1)
        speed = 1 / elastic.slower(g.micro_batches, g.gangs, gone, g.ratios)
        regrow = np.full(len(out), np.inf)
        rows = np.flatnonzero(gone)
        due = np.sort(self.now.pool[:, rows], axis=0)  # those that are back, or empty, come first
        nth = len(due) - out[rows] + np.maximum(out - spares - g.gang_nodes * (gone - 1), 1)[rows]
        regrow[rows] = np.maximum(due[nth - 1, np.arange(len(rows))] - self.now.wall[rows], 0.0)
        return speed, 1 - gone / g.gangs, regrow

    def _finish(self, done: Array) -> None:
        """Those that are done leave what they spent, the others go on."""
        now = self.now
        self.out.wall[now.id[done]] = now.wall[done]
        self.out.fails[now.id[done]] = now.fails[done]
        self.out.up[now.id[done]] = now.up[done]
        self.out.detecting[now.id[done]] = now.detecting[done]
        self.out.restarting[now.id[done]] = now.restarting[done]
        self.out.short[now.id[done]] = now.short[done]
        self.out.replayed[now.id[done]] = now.replayed[done]
        self.out.slow[now.id[done]] = now.slow[done]
        self.now = now.those(~done)


def of_life(life: Life, work_s: float, **features: Any) -> Scenario:
    """The scenario of a `life.Life`: each cause with its own times and copy, pauses, spares,
    what the job can drop; keywords override.

    work_s : compute time of the whole run, failures apart [s].
    """
    gang = life.gang
    shrink = None
    if gang is not None and life.shrinks:
        shrink = Shrink(
            gangs=gang.replicas,
            gang_nodes=gang.nodes,
            micro_batches=gang.micro_batches,
            resize_s=elastic.RESIZE_S,
            ratios=gang.ratios,
        )
    base = Scenario(
        work_s=work_s,
        interval_s=float(life.interval_s),
        levels=life.levels,
        faults=tuple(
            Fault(
                rate_per_s=float(life.slower * stop.per_s),
                level=level,
                down_s=float(stop.detect_s),
                nodes=int(stop.cause.evicts),
                latency_s=float(life.latency_s) if stop.cause.id == CORRUPTION else 0.0,
                restart_s=float(stop.restart_s),
            )
            for stop, level in zip(life.stops, life.reach)
            if stop.per_s > 0
        ),
        pauses=life.all_pauses,
        spares=int(life.spares),
        repair_s=float(life.repair_s),
        shrink=shrink,
    )
    return replace(base, **features)
