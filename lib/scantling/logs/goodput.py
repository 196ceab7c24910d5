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


def since_restart(again: ndarray) -> ndarray:
    """Lines since the job began or began again, at each line."""
    at = np.arange(again.size, dtype=np.int32)
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
    cause[over > np.maximum((pause - 1) * ahead * step_s, PAUSE_S)] = codes["pauses"]
    cause[since_restart(again) <= max(warm, 1)] = codes["warm-up"]
    for name in (*spoken()["events"], "restart"):
        rows = np.searchsorted(at, found.marks.get(name, []))
        cause[rows[rows < at.size]] = codes[name]
    cause[again] = codes["restart"]
    cause[0] = codes["start"]
    if not total > 0 or new * step_s > 1.02 * total:
        return NAN, {}
    bad = dict(zip(codes, map(float, np.maximum(np.bincount(cause, over, len(codes)), 0) / total)))
    bad["lost work"] = float((ahead.sum() - interval - new) * step_s / total)
    good = 1 - sum(bad.values())
    return (good, {n: float(f"{s:.4g}") for n, s in bad.items()}) if good >= 0 else (NAN, {})
