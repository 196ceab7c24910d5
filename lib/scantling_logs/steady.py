"""The steady steps of a log, told from warm-up, pauses, restarts and repeated lines."""

import numpy as np
from scantling.base.records import record

from .found import COLUMNS, NAN, Found
from .goodput import before, since_restart, spent

ODD = 0.2  # a first step that far outside the range of the others is warm-up
PAUSE = 3.0  # a step longer than so many medians is a pause (evaluation, checkpoint, straggler)
MOST_PAUSES = 0.2  # where more steps are that long, the steps differ and nothing is left out
FEW = 20  # of so few steps none is left out
WINDOW_S = 20.0  # a clock of whole seconds shows a step's time over no less


@record
class Steady:
    """Steady step time of a log [s], how it spreads, and what was left out."""

    steps: int
    step_s: float
    p10_s: float
    p90_s: float
    restarts: int
    goodput: float
    badput: dict
    pauses: int
    columns: dict  # what the log printed at each distinct step line
    steady: np.ndarray  # which of those are steady: a line without a time too, after the warm-up


def went_back(step: np.ndarray) -> np.ndarray:
    """Where the step went back by more than lines out of order."""
    if step.size < 2:
        return step > np.inf
    moved = np.diff(step, prepend=step[:1])
    return (moved < 0) & (step < np.maximum.accumulate(step) - 3 * np.median(np.abs(moved[1:])))


def warm_up(seconds: np.ndarray) -> int:
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


def differences(step: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """Seconds a step between neighbouring lines [s], nan where the clock or the step goes back."""
    out = np.full(step.size, NAN)
    ahead = np.diff(step)
    passed = np.diff(clock)
    good = (ahead > 0) & (passed > 0)
    out[1:][good] = passed[good] / ahead[good]
    return out


def slope(step: np.ndarray, clock: np.ndarray) -> tuple:
    """(mean, p10, p90) seconds a step of a clock of whole seconds, after the warm-up."""
    good = np.flatnonzero(np.isfinite(clock))
    good = good[min(2, max(0, good.size - 2)) :]
    step = step[good]
    clock = clock[good]
    if good.size < 2 or clock[-1] <= clock[0] or step[-1] <= step[0]:
        return NAN, NAN, NAN
    long = clock[-1] - clock[0]
    mean = long / (step[-1] - step[0])
    edges = np.arange(clock[0], clock[-1] + 1, max(WINDOW_S, long / 50))
    at = np.unique(np.searchsorted(clock, edges).clip(0, good.size - 1))
    pace = differences(step[at], clock[at])
    pace = pace[np.isfinite(pace)]
    return mean, *(np.quantile(pace, (0.1, 0.9)) if pace.size > 2 else (NAN, NAN))


def seconds_of(columns: dict) -> np.ndarray:
    """Seconds of a step at each distinct line, from the best source that the log has."""
    step = columns["step"]
    if np.isfinite(columns["s"]).any():
        return columns["s"]
    for name in ("total_s", "clock_s"):
        held = np.isfinite(columns[name])
        out = np.full(step.size, NAN)
        out[held] = differences(step[held], columns[name][held])
        if np.isfinite(out).any():
            return out
    rate = columns["samples_per_s"]
    return columns["global_batch"] / np.where(rate > 0, rate, NAN)


def without_pauses(seconds: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Which usable steps are no pauses."""
    if usable.sum() < FEW:
        return usable
    short = usable & (seconds <= PAUSE * np.median(seconds[usable]))
    return short if short.sum() >= (1 - MOST_PAUSES) * usable.sum() else usable


def steady(found: Found) -> Steady:
    """The steady steps of what was found in a log."""
    # a line of the step before is that of another rank, or printed twice
    once = np.diff(np.asarray(found.columns["step"]), prepend=NAN) != 0
    columns = dict.fromkeys(COLUMNS, np.broadcast_to(NAN, once.sum()))
    held = [*found.columns]  # one at a time: of a long log each is large
    columns |= {name: np.asarray(found.columns.pop(name))[once] for name in held}
    step = columns["step"]
    seconds = seconds_of(columns)
    usable = np.isfinite(seconds) & (seconds > 0)
    warm = warm_up(seconds[usable])
    at = np.flatnonzero(once)
    again = went_back(step) | before(found, at, "restart")
    again[:1] = False
    usable[np.flatnonzero(usable)[:warm]] = False
    if again.any():
        usable[since_restart(again) <= warm] = False
    chosen = without_pauses(seconds, usable)
    mean = p10 = p90 = NAN
    if chosen.any():
        p10, mean, p90 = np.quantile(seconds[chosen], (0.1, 0.5, 0.9))
    elif np.isfinite(columns["bar_s"]).any():
        mean, p10, p90 = slope(step, columns["bar_s"])
        found.mean = True
    stamps = columns["stamp_s"]
    clock = np.where(np.isfinite(stamps), stamps, columns["clock_s"])
    good, badput, gaps = spent(
        found, step, clock, at, again, step_s=float(mean), warm=warm, pause=PAUSE
    )
    # launches that ended before a step line, the first ones and one after the last step line
    early = max(0, found.marks["launch"][0] - 1)
    late = once.size > 0 and once.size in found.marks["restart"]
    return Steady(
        steps=int(step.max(initial=0)) if found.bar else int(np.unique(step).size),
        step_s=float(mean),
        p10_s=float(p10),
        p90_s=float(p90),
        restarts=int(again.sum()) + gaps + early + late,
        goodput=good,
        badput=badput,
        pauses=int(usable.sum() - chosen.sum()),
        columns=columns,
        steady=chosen | ((np.arange(step.size) >= max(warm, 1)) & ~usable),
    )
