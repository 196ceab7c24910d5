"""The life of a job among failures: the one description that closed form and simulation read, and
the closed form."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypedDict

import numpy as np

from ..base.columns import Array, Column
from ..base.records import record
from . import elastic, failures, goodput, spares
from .copies import Level

PROBES = 12  # numbers of lost gangs at which the reshaped plan is assessed
HARDLY = 1e-6  # share of the time that a job waits for nodes, below which it does not shrink
BADPUT = (
    "saves",
    "lost work",
    "detection",
    "restart",
    "spare shortage",
    "planned stops",
    "stragglers",
    "link flaps",
    "sdc",
    "sites",
)


class Reshaped(TypedDict):
    """A plan with some gangs gone, the global batch kept by accumulation, a row a number of
    them."""

    dp: Array
    micro_batches: Array
    ratio: Array  # its step over the whole plan's
    memory_bytes: Array
    fits: Array  # within the capacity, or no more than the plan takes whole


@record
class Gang:
    """What an elastic run drops at once: data-parallel replicas, nodes in each, micro-batches of
    one replica in a step."""

    replicas: int
    nodes: int
    micro_batches: int
    reshape: Callable[[Array], Reshaped] | None = None  # of the plan with so many gone
    probed: Reshaped | None = None  # with as many gone as `probes` has, where it is at hand

    @property
    def probes(self) -> Array:
        """Numbers of lost gangs at which the reshaped plan is assessed: PROBES of them, from one to
        all but one."""
        most = self.replicas - 1
        some: Array = np.unique(np.geomspace(1, max(most, 1), PROBES).astype(int))
        return some[some <= most]

    @cached_property
    def ratios(self) -> Array | None:
        """Step over the whole one by gangs gone, for `elastic.slower`: `reshape` at PROBES of them,
        between these in proportion to `elastic.shrink_ratio`; STANDS from where it does not fit.
        None without `reshape`."""
        if self.reshape is None or self.replicas < 2:
            return None
        every = np.arange(self.replicas)
        some = self.probes
        plain = np.asarray(elastic.shrink_ratio(self.micro_batches, self.replicas, every))
        reshaped = self.probed or self.reshape(some)
        ratios = plain * np.interp(every, [0, *some], [1.0, *reshaped["ratio"] / plain[some]])
        return np.where(
            every > np.max(some[reshaped["fits"]], initial=0),
            elastic.STANDS,
            np.maximum(ratios, 1.0),
        )


def mean(stops: Sequence[failures.Stop], time: Callable[[failures.Stop], Column]) -> Column:
    """Mean of a time over failures. [s]"""
    total = sum(stop.per_s for stop in stops)
    return sum(stop.per_s * time(stop) for stop in stops) / np.maximum(total, 1e-300)


@record
class Life:
    """All that the closed form and the simulation know of a job: the one description that both
    read. Seconds of the whole job; arrays where device counts are."""

    stops: tuple[failures.Stop, ...]
    levels: tuple[Level, ...]  # one, or those of the tiers, nearest first
    reach: tuple[int, ...]  # level that each of the stops restores from
    interval_s: Column = 1.0  # between saves of the first level
    pauses: tuple[failures.Pause, ...] = ()
    latency_s: Column = 0.0  # corruption to its discovery
    planned_per_s: Column = 0.0  # stops that save first, restart and lose nothing
    spares: Column = 0  # losses of a node that they cover at a time (`spares.Segments`)
    gang: Gang | None = None  # what the plan could drop
    shrinks: bool = True  # whether it does where spares are out; else it waits
    # stops of one replica, which recovers alone: they hold the others up for `detect_s` and
    # `resize_s`, and lose no work
    detached: tuple[failures.Stop, ...] = ()
    resize_s: Column = 0.0
    cut_off: float = 0.0  # share of the time that a synchronous run waits for a site
    alone: int = 1  # parts that restart without the others
    slower: Column = 1.0  # failures over those of `stops`

    @cached_property
    def every_stop(self) -> tuple[failures.Stop, ...]:
        """The stops of the whole job and those of one replica."""
        return (*self.stops, *self.detached)

    @cached_property
    def mtbf_s(self) -> Column:
        """Time between failures, of whatever part."""
        return 1 / np.maximum(self.slower * sum(s.per_s for s in self.every_stop), 1e-300)

    @cached_property
    def stopping_s(self) -> Column:
        """Time between failures that stop the whole job."""
        return 1 / np.maximum(self.slower * sum(s.per_s for s in self.stops), 1e-300)

    @cached_property
    def evictions(self) -> tuple[failures.Stop, ...]:
        """The stops that take a node out of the job."""
        return tuple(stop for stop in self.every_stop if stop.cause.evicts)

    @cached_property
    def others(self) -> tuple[failures.Stop, ...]:
        """The stops that leave the job its nodes."""
        return tuple(stop for stop in self.every_stop if not stop.cause.evicts)

    @cached_property
    def detect_s(self) -> Column:
        """Mean time until a failure is noticed and localised."""
        return mean(self.every_stop, lambda stop: stop.detect_s)

    @cached_property
    def repair_s(self) -> Column:
        """Mean time until a lost node is back."""
        return np.maximum(mean(self.evictions, lambda stop: stop.repair_s), 1e-3)

    @cached_property
    def mean_restart_s(self) -> Column:
        """Mean time from the decision to restart until the first new step."""
        return mean(self.every_stop, lambda stop: stop.restart_s)

    @cached_property
    def all_pauses(self) -> tuple[failures.Pause, ...]:
        """The pauses, planned stops among them: a save and a restart."""
        far = self.levels[-1]
        planned = failures.Pause(
            id="planned stops",
            per_s=self.planned_per_s,
            seconds=far.stall_s + far.durable_s + self.mean_restart_s,
        )
        return (planned, *self._stalls, *self.pauses)

    @cached_property
    def _stalls(self) -> tuple[failures.Pause, ...]:
        """What the loss of a replica costs the others, in time of the whole job: until it is seen,
        the change of the communicators, and its own share while it recovers (FT-HSDP, arXiv
        2602.00277: 1 - stall / M - (t_rep / M) / d)."""
        if not self.detached or self.gang is None:
            return ()
        often = self.slower * sum(stop.per_s for stop in self.detached)
        seen_s = mean(self.detached, lambda stop: stop.detect_s)
        back_s = mean(self.detached, lambda stop: stop.restart_s)
        changed_s = self.resize_s + (seen_s + back_s) / self.gang.replicas
        return (
            failures.Pause(id="detection", per_s=often, seconds=seen_s),
            failures.Pause(id="restart", per_s=often, seconds=changed_s),
        )

    @cached_property
    def evictions_per_s(self) -> Column:
        """Failures that take a node out of the job."""
        return self.slower * sum(s.per_s for s in self.evictions)

    @cached_property
    def corruptions_per_s(self) -> Column:
        """Corruptions of the state that nobody sees."""
        return self.slower * sum(s.per_s for s in self.stops if s.cause.id == failures.CORRUPTION)

    def restart_s(self, level: int | None = None) -> Column:
        """The one restart that fails as often as those of all causes: -M log of the mean of
        exp(-R / M), over the failures that restore from a level."""
        stops = [s for s, k in zip(self.stops, self.reach) if level in (None, k)]
        total = np.maximum(sum(s.per_s for s in stops), 1e-300)
        m = self.stopping_s * self.alone
        struck = sum(s.per_s / total * -np.expm1(-s.restart_s / m) for s in stops)
        return np.where(
            struck < 0.999,
            -m * np.log1p(-np.minimum(struck, 0.9999)),
            sum(s.per_s / total * s.restart_s for s in stops),
        )


def otherwise(
    life: Life,
    *,
    durable_s: Column | None = None,
    restart_s: Column | None = None,
    repair_s: Column | None = None,
) -> Life:
    """The same life with other times of every cause, or with the farthest copy durable that late.
    [s]"""
    far = life.levels[-1]
    if durable_s is not None:
        far = replace(far, durable_s=durable_s)

    def retimed(stops: tuple[failures.Stop, ...]) -> tuple[failures.Stop, ...]:
        return tuple(
            replace(
                stop,
                restart_s=stop.restart_s if restart_s is None else restart_s,
                repair_s=stop.repair_s if repair_s is None else repair_s,
            )
            for stop in stops
        )

    return replace(
        life,
        stops=retimed(life.stops),
        detached=retimed(life.detached),
        levels=(*life.levels[:-1], far),
    )


def lived(life: Life) -> tuple[Column, dict[str, Column]]:
    """(goodput, badput) of a life: shares of the wall time that sum to one.

    Per second of running: detection D / M, the pauses, waiting for nodes (`spares.shortage`, or
    shrinking where that costs less); running itself splits by `goodput.shares`. Corruption throws
    away `latency` less what an ordinary failure loses anyway. Sums exactly. One level of copies:
    exact for exponential failures but for waits that overlap other downtime; several: nested
    (`goodput.ettr_tiers_nested`), within 0.3 points at 30 min between failures.
    """
    part = running(life)
    run = 1 - part.detection
    paused = {p.id: run * p.per_s * p.seconds for p in life.all_pauses}
    short = shortage(life)
    up = (1 - short) / (1 + sum(paused.values()))
    late = np.maximum(life.latency_s - life.levels[-1].durable_s, 0.0)
    replayed = goodput.sdc_loss(life.corruptions_per_s / life.alone * run * up, late)
    left = (1 - life.cut_off) / (1 + replayed)
    bad: dict[str, Column] = dict.fromkeys(BADPUT, 0.0)
    bad["saves"] = part.saves * up * left
    bad["lost work"] = part.lost_work * up * left
    bad["detection"] = part.detection * up * left
    bad["restart"] = part.restart * up * left
    for cause, share in paused.items():
        if cause in bad:
            bad[cause] = bad[cause] + share * up * left
    bad["spare shortage"] = short * left
    bad["sdc"] = (replayed + paused.get("checks", 0.0) * up) * left
    bad["sites"] = life.cut_off + 0 * life.mtbf_s
    return part.useful * up * left, bad


def running(life: Life) -> goodput.Shares:
    """The time that a job runs or looks for a failure, split."""
    near, tau = life.levels[0], life.interval_s
    part = goodput.shares(
        life.stopping_s * life.alone,
        near.stall_s,
        tau,
        durable_s=life.levels[-1].durable_s,
        restart_s=life.restart_s(),
        down_s=mean(life.stops, lambda stop: stop.detect_s),
    )
    if len(life.levels) == 1:
        return part
    slower = life.slower / life.alone
    every_level = range(len(life.levels))
    useful = goodput.ettr_tiers_nested(
        [
            slower * sum(s.per_s for s, k in zip(life.stops, life.reach) if k == level)
            for level in every_level
        ],
        life.levels,
        tau,
        [life.restart_s(level) for level in every_level],
        mean(life.stops, lambda stop: stop.detect_s),
    )
    saves = useful * near.stall_s / tau
    spent = useful + saves + part.detection + part.restart
    return part._replace(useful=useful, saves=saves, lost_work=np.maximum(1 - spent, 0.0))


def shortage(life: Life) -> Column:
    """Share of the wall time lost for want of nodes: waiting for a repair, or running on without a
    gang where that costs less. The wait of an eviction hides behind its own detection; other
    downtime stretches the time between evictions."""
    rate = np.maximum(life.evictions_per_s, 1e-300)
    others = (1 / life.mtbf_s - rate) * mean(life.others, lambda stop: stop.detect_s)
    wait: Column = spares.shortage(
        life.spares,
        rate / (1 + others + sum(p.per_s * p.seconds for p in life.all_pauses)),
        life.repair_s,
        mean(life.evictions, lambda stop: stop.detect_s),
    )
    gang = life.gang
    waits = np.asarray(wait) >= HARDLY
    if gang is None or not life.shrinks or gang.replicas < 2 or not np.any(waits):
        return wait
    shrunk = elastic.shrink_loss(
        rate * life.repair_s,
        life.spares,
        gang.nodes,
        gang.replicas,
        gang.micro_batches,
        resize_share=rate * elastic.RESIZE_S,
        ratios=gang.ratios,
    )
    least: Column = np.where(waits, np.minimum(wait, shrunk), wait)[()]
    return least
