"""Where the wall clock of a log went: into steps that counted, and by cause into what did not.

Between two step lines lie wall seconds and steps; what is longer than the steps at the steady time
is lost to the cause that the lines between them tell: a start, a restart, an evaluation, a
checkpoint (with both, the evaluation); else to warm-up after a start, to a pause that nothing
tells, or to steps slower than the steady ones (stragglers, drift). Steps done again after a restart
are lost work. Useful and lost shares sum to one.
"""

import numpy as np
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure.reliability import LOGGED

from .found import NAN, Found
from .rows import spoken


def before(found: Found, at: np.ndarray, cause: str) -> np.ndarray:
    """Which of the lines `at` are the first after a line that tells a cause."""
    return np.isin(np.arange(at.size), np.searchsorted(at, [*found.marks[cause]]))


def since_restart(again: np.ndarray) -> np.ndarray:
    """Lines since the job began or began again, at each line."""
    at = np.arange(again.size, dtype=np.int32)
    return at - np.maximum.accumulate(at * again)


def spent(
    found: Found,
    step: np.ndarray,
    clock: np.ndarray,
    at: np.ndarray,
    again: np.ndarray,
    *,
    step_s: float,
    warm: int,
    pause: float,
) -> tuple:
    """(share of the wall clock that went into steps that counted, {cause: share}, restarts that
    the clock alone shows); nan without a clock.

    step, clock [s], at (which line of the log it is), again (the job began again here): of each
    step line; warm: lines of warm-up; pause: a step of so many steady ones is a pause. A gap that
    no running job leaves and that no line explains is a restart, unless it is of whole hours: then
    the clock was set.
    """
    held = np.isfinite(clock)
    limits = spoken()["clock"]
    if held.sum() < limits["lines"] or not step_s > 0:
        return NAN, {}, 0
    at = at[held]
    step = step[held]
    again = again[held]
    interval = np.median(np.abs(np.diff(step)))
    new = step.max() - step[0]
    wall = np.maximum(np.diff(clock[held], prepend=found.clock_from), 0)
    wall[0] *= wall[0] < DAY_S  # another date that the log tells ahead
    ahead = np.diff(step, prepend=step[0] - interval)
    ahead[ahead <= 0] = interval
    total = wall.sum() or NAN
    over = wall - ahead * step_s
    told = {name: before(found, at, name) for name in spoken()["events"]}
    gone = (over > max(limits["gap_s"], limits["gap_steps"] * step_s)) & ~again
    gone[0] = False
    gone &= ~np.any([*told.values()], axis=0)
    gone &= (over + step_s) % HOUR_S > 2 * step_s
    causes = {
        "slow steps": at >= 0,
        "pauses": over > np.maximum((pause - 1) * ahead * step_s, limits["pause_s"]),
        "warm-up": since_restart(again) <= max(warm, 1),
        **told,
        "restart": again | gone,
        "start": at == at[0],
    }
    codes = {name: np.int8(code) for code, name in enumerate(LOGGED)}
    cause = np.zeros(step.size, np.int8)
    for name, here in causes.items():
        cause[here] = codes[name]
    lost = np.maximum(np.bincount(cause, over, len(codes)), 0) / total
    bad = dict(zip(codes, map(float, lost)))
    bad["lost work"] = float((ahead.sum() - interval - new) * step_s / total)
    good = 1 - sum(bad.values())
    if not (good >= 0 and new * step_s <= limits["over"] * total):
        return NAN, {}, 0
    return good, {n: float(f"{s:.4g}") for n, s in bad.items()}, int(gone.sum())
