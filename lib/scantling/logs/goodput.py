"""Where the wall clock of a log went: into steps that counted, and by cause into what did not.

Between two step lines lie wall seconds and steps; what is longer than the steps at the steady time
is lost to the cause that the lines between them tell: a start, a restart, an evaluation, a
checkpoint (with both, the evaluation); else to warm-up after a start, to a pause that nothing
tells, or to steps slower than the steady ones (stragglers, drift). Steps done again after a restart
are lost work. Useful and lost shares sum to one.
"""

import numpy as np
from numpy import diff, flatnonzero, isfinite, ndarray

from ..base.units import DAY_S
from ..endure.reliability import LOGGED
from .found import NAN, Found
from .rows import spoken

PAUSE_S = 1.0  # a pause is no shorter: clocks of whole seconds


def since_restart(step: ndarray, again: ndarray) -> ndarray:
    """Lines since the job began or began again, at each line."""
    at = np.arange(step.size)
    return at - np.maximum.accumulate(at * again)


def spent(
    found: Found,
    step: ndarray,
    clock: ndarray,
    kept: ndarray,
    again: ndarray,
    *,
    step_s: float,
    warm: int,
    pause: float,
) -> tuple:
    """(share of the wall clock that went into steps that counted, {cause: share}); nan without a
    clock.

    step, clock [s], again (the job began again here): of each step line; kept: which lines of the
    log these are; warm: lines of warm-up; pause: a step of so many steady ones is a pause.
    """
    held = isfinite(clock)
    if held.sum() < 10 or not step_s > 0:
        return NAN, {}
    at = flatnonzero(kept)[held]
    step = step[held]
    again = again[held]
    interval = np.median(np.abs(diff(np.unique(step)))) if np.ptp(step) else 1.0
    wall = np.maximum(diff(clock[held], prepend=found.clock_from), 0)
    wall[0] *= wall[0] < DAY_S  # another date that the log tells ahead
    ahead = diff(step, prepend=step[0] - interval)
    ahead[ahead <= 0] = interval
    new = diff(np.maximum.accumulate(step), prepend=step[0] - interval)
    over = wall - ahead * step_s
    since = since_restart(step, again)
    cause = np.where(
        over > np.maximum((pause - 1) * ahead * step_s, PAUSE_S), "pauses", "slow steps"
    )
    cause[since <= max(warm, 1)] = "warm-up"
    for name in (*spoken()["events"], "restart"):
        rows = np.searchsorted(at, found.marks.get(name, []))
        cause[rows[rows < at.size]] = name
    cause[again] = "restart"
    cause[0] = "start"
    total = wall.sum()
    if not total > 0 or np.sum(new[1:]) * step_s > 1.02 * total:
        return NAN, {}
    bad = {name: max(0.0, over[cause == name].sum()) / total for name in LOGGED}
    bad["lost work"] = np.sum(ahead - new) * step_s / total
    good = 1 - sum(bad.values())
    return (good, {n: float(f"{s:.4g}") for n, s in bad.items()}) if good >= 0 else (NAN, {})
