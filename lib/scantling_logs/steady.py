"""The steady steps of a log, told from warm-up, pauses, restarts and repeated lines."""

from collections.abc import Mapping
from math import nan
from typing import NamedTuple

import numpy as np
from scantling.base.columns import Array
from scantling.base.records import record

from .contents import Column, Contents, Event
from .wall_clock import before, since_restart, spent

ODD = 0.2  # a first step that far outside the range of the others is warm-up
PAUSE = 3.0  # a step longer than so many medians is a pause (evaluation, checkpoint, straggler)
MOST_PAUSES = 0.2  # where more steps are that long, the steps differ and nothing is left out
MOST_BACK = 0.25  # of a clock's lines of later steps may be earlier (restarts); judgement
FEW = 20  # of so few steps none is left out
WINDOW_S = 20.0  # a clock of whole seconds shows a step's time over no less
SLOW_STRETCH = 1.5  # medians from which a stretch of steps has a pause in it; judgement


@record
class Steady:
    """Steady step time of a log [s], how it spreads, and what was left out."""

    steps: int
    step_s: float
    p10_s: float
    p90_s: float
    restarts: int
    goodput: float
    badput: dict[str, float]
    pauses: int
    columns: dict[Column, Array]  # what the log printed at each distinct step line
    steady: Array  # which of those are steady: a line without a time too, after the warm-up


class Pace(NamedTuple):
    """Seconds of a step, and the 10th and 90th percentile."""

    step_s: float
    p10_s: float
    p90_s: float


def went_back(step: Array) -> Array:
    """Where the step went back by more than lines out of order."""
    if step.size < 2:
        return np.zeros(step.size, bool)
    moved = np.diff(step, prepend=step[:1])
    earlier = step < np.maximum.accumulate(step) - 3 * np.median(np.abs(moved[1:]))
    return np.asarray((moved < 0) & earlier)


def warm_up(seconds: Array) -> int:
    """How many of the first steps are no steady ones (compilation, first allocations, tuning): the
    first, and those after it that lie a fifth outside the range of the rest."""
    if seconds.size < 3:
        return max(0, seconds.size - 1)
    count = min(max(1, seconds.size // 20), 10)
    while count < min(10, seconds.size // 2):
        rest = seconds[count + 1 :]
        if (1 - ODD) * rest.min() <= seconds[count] <= (1 + ODD) * rest.max():
            break
        count += 1
    return count


def differences(step: Array, clock: Array) -> Array:
    """Seconds a step between neighbouring lines [s], nan where the clock or the step goes back."""
    out = np.full(step.size, nan)
    ahead = np.diff(step)
    passed = np.diff(clock)
    good = (ahead > 0) & (passed > 0)
    out[1:][good] = passed[good] / ahead[good]
    return out


def slope(step: Array, clock: Array) -> Pace:
    """The pace of steps by a clock of whole seconds, after the warm-up: the mean without the
    stretches that have a pause in them (evaluations, saves)."""
    good = np.flatnonzero(np.isfinite(clock))
    good = good[min(2, max(0, good.size - 2)) :]
    step = step[good]
    clock = clock[good]
    if good.size < 2 or clock[-1] <= clock[0] or step[-1] <= step[0]:
        return Pace(nan, nan, nan)
    long, steps = clock[-1] - clock[0], step[-1] - step[0]
    edges = np.arange(clock[0], clock[-1] + 1, max(WINDOW_S, long / 50))
    at = np.unique(np.searchsorted(clock, edges).clip(0, good.size - 1))
    pace = differences(step[at], clock[at])
    known = np.isfinite(pace)
    pace, passed = pace[known], np.diff(clock[at], prepend=nan)[known]
    if pace.size <= 2:
        return Pace(float(long / steps), nan, nan)
    p10, median, p90 = np.quantile(pace, (0.1, 0.5, 0.9))
    slow = pace > SLOW_STRETCH * median
    mean = (long - passed[slow].sum()) / (steps - (passed[slow] / pace[slow]).sum())
    return Pace(float(mean), float(p10), float(p90))


def seconds_of(columns: Mapping[Column, Array]) -> Array:
    """Seconds of a step at each distinct line, from the best source that the log has."""
    step = columns[Column.STEP]
    if np.isfinite(columns[Column.SECONDS]).any():
        return columns[Column.SECONDS]
    for name in (Column.TOTAL_S, Column.CLOCK_S):
        known = np.isfinite(columns[name])
        ahead = np.diff(step[known]) > 0  # lines of ranks out of order go back in both
        if (np.diff(columns[name][known])[ahead] < 0).sum() > MOST_BACK * ahead.sum():
            continue  # no clock, whatever it is called
        seconds = np.full(step.size, nan)
        seconds[known] = differences(step[known], columns[name][known])
        if np.isfinite(seconds).any():
            return seconds
    rate = columns[Column.SAMPLES_PER_S]
    return np.asarray(columns[Column.GLOBAL_BATCH] / np.where(rate > 0, rate, nan))


def without_pauses(seconds: Array, usable: Array) -> Array:
    """Which usable steps are no pauses."""
    if usable.sum() < FEW:
        return usable
    short = usable & (seconds <= PAUSE * np.median(seconds[usable]))
    return short if short.sum() >= (1 - MOST_PAUSES) * usable.sum() else usable


def several_batches(batch: Array, usable: Array) -> Array:
    """The batches of a run that changes its batch (ramped up, say), that of most steps first; none
    where it is one, or changes too often for any to be steady."""
    sizes, counts = np.unique(batch[usable & np.isfinite(batch)], return_counts=True)
    often = np.flatnonzero(counts >= FEW)
    if sizes.size < 2:
        return sizes[:0]
    return np.asarray(sizes[often[np.argsort(-counts[often])]])


def steady(log: Contents) -> Steady:
    """The steady steps of what a log holds; takes its columns, which are large."""
    # a line of the step before is that of another rank, or printed twice
    distinct = np.diff(np.asarray(log.columns[Column.STEP]), prepend=nan) != 0
    columns = columns_at(log, distinct)
    step = columns[Column.STEP]
    seconds = seconds_of(columns)
    usable = np.isfinite(seconds) & (seconds > 0)
    warm = warm_up(seconds[usable])
    lines = np.flatnonzero(distinct)
    again = went_back(step) | before(log, lines, Event.RESTART)
    again[:1] = False
    usable[np.flatnonzero(usable)[:warm]] = False
    if again.any():
        usable[since_restart(again) <= warm] = False
    batch = columns[Column.GLOBAL_BATCH]
    batches = several_batches(batch, usable)
    of_batch = usable & (batch == batches[0]) if batches.size else usable
    chosen = without_pauses(seconds, of_batch)
    pace = Pace(nan, nan, nan)
    if chosen.any():
        p10, median, p90 = np.quantile(seconds[chosen], (0.1, 0.5, 0.9))
        pace = Pace(float(median), float(p10), float(p90))
    elif np.isfinite(columns[Column.BAR_S]).any():
        pace = slope(step, columns[Column.BAR_S])
        log.coarse_mean = True
    pace_s = np.full(step.size, pace.step_s)
    for size in batches[1:]:
        pace_s[batch == size] = np.median(seconds[usable & (batch == size)])
    if batches.size:
        log.notes.append(
            f"step_s: the batch changes; of the steps with {batches[0]:,.0f} sequences"
        )
    stamps = columns[Column.STAMP_S]
    wall_clock = spent(
        log,
        step,
        np.where(np.isfinite(stamps), stamps, columns[Column.CLOCK_S]),
        lines,
        again,
        pace_s=pace_s,
        warm=warm,
        pause=PAUSE,
    )
    return Steady(
        steps=int(step.max(initial=0)) if log.progress_bar else int(np.unique(step).size),
        step_s=pace.step_s,
        p10_s=pace.p10_s,
        p90_s=pace.p90_s,
        restarts=int(log.goes_on)
        + int(again.sum())
        + wall_clock.restarts
        + restarts_without_steps(log, distinct.size),
        goodput=wall_clock.goodput,
        badput=wall_clock.badput,
        pauses=int(of_batch.sum() - chosen.sum()),
        columns=columns,
        steady=chosen | ((np.arange(step.size) >= max(warm, 1)) & ~usable),
    )


def columns_at(log: Contents, lines: Array) -> dict[Column, Array]:
    """Every column at some of the lines, nan where the log has none; the log's own are taken one
    at a time: of a long log each is large."""
    columns: dict[Column, Array] = dict.fromkeys(Column, np.broadcast_to(nan, lines.sum()))
    for name in [*log.columns]:
        columns[name] = np.asarray(log.columns.pop(name))[lines]
    return columns


def restarts_without_steps(log: Contents, step_lines: int) -> int:
    """Launches that ended before a step line: the first ones, and one after the last step line."""
    early = max(0, log.events[Event.LAUNCH][0] - 1)
    late = step_lines > 0 and step_lines in log.events[Event.RESTART]
    return early + int(late)
