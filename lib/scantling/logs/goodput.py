"""Where the wall clock of a log went: into steps that counted, and by cause into what did not.

Between two step lines lie wall seconds and steps; what is longer than the steps at the steady time
is lost to the cause that the lines between them tell: a start, a restart, an evaluation, a
checkpoint (with both, the evaluation); else to warm-up after a start, to a pause that nothing
tells, or to steps slower than the steady ones (stragglers, drift). Steps done again after a restart
are lost work. Useful and lost shares sum to one.
"""

import numpy as np
from numpy import diff, flatnonzero, isfinite, ndarray

from ..base.units import DAY_S, HOUR_S
from ..endure.reliability import LOGGED
from .found import NAN, Found
from .rows import spoken


def before(
    found: Found,
    at: ndarray,
    *causes: str,
) -> ndarray:
    """Which of the lines `at` are the first after a line that tells one of the causes."""
    told = [row for name in causes for row in found.marks.get(name, ())]
    return np.isin(np.arange(at.size), np.searchsorted(at, told))


def stopped(
    found: Found,
    at: ndarray,
    step: ndarray,
    clock: ndarray,
    step_s: float,
) -> ndarray:
    """Which of the step lines `at` come after a gap of the clock [s] that no running job leaves:
    the job began again. A gap of whole hours is a clock that was set; evaluations and checkpoints
    that the log tells are none."""
    limits = spoken()["clock"]
    held = flatnonzero(isfinite(clock))
    gap = diff(clock[held]) - np.maximum(diff(step[held]), 0) * step_s
    gone = gap > max(limits["gap_s"], limits["gap_steps"] * step_s)
    gone &= np.abs(gap - HOUR_S * np.round(gap / HOUR_S)) > step_s
    return np.isin(np.arange(at.size), held[1:][gone]) & ~before(found, at, "evaluation", "saves")


def since_restart(again: ndarray) -> ndarray:
    """Lines since the job began or began again, at each line."""
    at = np.arange(again.size, dtype=np.int32)
    return at - np.maximum.accumulate(at * again)


def spent(
    found: Found,
    step: ndarray,
    clock: ndarray,
    at: ndarray,
    again: ndarray,
    *,
    step_s: float,
    warm: int,
    pause: float,
) -> tuple:
    """(share of the wall clock that went into steps that counted, {cause: share}); nan without a
    clock.

    step, clock [s], at (which line of the log it is), again (the job began again here): of each
    step line; warm: lines of warm-up; pause: a step of so many steady ones is a pause.
    """
    held = isfinite(clock)
    limits = spoken()["clock"]
    if held.sum() < limits["lines"] or not step_s > 0:
        return NAN, {}
    at = at[held]
    step = step[held]
    again = again[held]
    interval = np.median(np.abs(diff(step)))
    new = step.max() - step[0]
    wall = np.maximum(diff(clock[held], prepend=found.clock_from), 0)
    wall[0] *= wall[0] < DAY_S  # another date that the log tells ahead
    ahead = diff(step, prepend=step[0] - interval)
    ahead[ahead <= 0] = interval
    total = wall.sum()
    over = wall - ahead * step_s
    codes = {name: np.int8(code) for code, name in enumerate(LOGGED)}
    cause = np.full(step.size, codes["slow steps"])
    cause[over > np.maximum((pause - 1) * ahead * step_s, limits["pause_s"])] = codes["pauses"]
    cause[since_restart(again) <= max(warm, 1)] = codes["warm-up"]
    for name in (*spoken()["events"], "restart"):
        cause[before(found, at, name)] = codes[name]
    cause[again] = codes["restart"]
    cause[0] = codes["start"]
    if not total > 0 or new * step_s > limits["over"] * total:
        return NAN, {}
    lost = np.maximum(np.bincount(cause, over, len(codes)), 0) / total
    bad = dict(zip(codes, map(float, lost)))
    bad["lost work"] = float((ahead.sum() - interval - new) * step_s / total)
    good = 1 - sum(bad.values())
    return (good, {n: float(f"{s:.4g}") for n, s in bad.items()}) if good >= 0 else (NAN, {})
