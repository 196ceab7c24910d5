"""Where the wall clock of a log went: into steps that counted, and by cause into what did not.

Between two step lines lie wall seconds and steps; what is longer than the steps at the steady time
is lost to the cause that the lines between them tell: a start, a restart, an evaluation, a
checkpoint (with both, the evaluation); else to warm-up after a start, to a pause that nothing
tells, or to steps slower than the steady ones (stragglers, drift). Steps done again after a restart
are lost work. Useful and lost shares sum to one.
"""

from collections.abc import Mapping
from math import nan
from typing import NamedTuple

import numpy as np
from scantling.base.columns import Array
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure.reliability import LOGGED

from .contents import Contents, Event

# what the clock of a log is judged by
LEAST_LINES = 10  # step lines with a clock: of fewer one pause is most of the time; judgement
LEAST_PAUSE_S = 1.0  # clocks of whole seconds
# steps at the steady time may fill the wall clock by so much more than it holds (whole seconds, a
# median for a mean); beyond, the clock is another's; judgement
MOST_FILLED = 1.02
# a longer gap of the clock that no line explains is a restart: torch.distributed gives a collective
# of NCCL up after 10 minutes (default_pg_nccl_timeout)
GAP_S = 600.0
GAP_STEPS = 10  # and longer than so many steps, where a step itself takes minutes; judgement


class WallClock(NamedTuple):
    """Share of the wall clock that went into steps that counted, the others by cause, and the
    restarts that the clock alone shows; nan without a clock."""

    goodput: float
    badput: dict[str, float]
    restarts: int


UNKNOWN = WallClock(nan, {}, 0)


def before(log: Contents, lines: Array, event: Event) -> Array:
    """Which of some lines are the first after a line that tells of an event."""
    return np.isin(np.arange(lines.size), np.searchsorted(lines, [*log.events[event]]))


def since_restart(again: Array) -> Array:
    """Lines since the job began or began again, at each line."""
    at = np.arange(again.size, dtype=np.int32)
    return np.asarray(at - np.maximum.accumulate(at * again))


def spent(
    log: Contents,
    step: Array,
    clock: Array,
    lines: Array,
    again: Array,
    *,
    pace_s: Array,
    warm: int,
    pause: float,
) -> WallClock:
    """Where the wall clock went.

    step, clock [s], lines (which line of the log it is), again (the job began again here), pace_s
    (a steady step of its batch): of each step line; warm: lines of warm-up; pause: a step of so
    many steady ones is a pause. A gap that no running job leaves and that no line explains is a
    restart, unless it is of whole hours: then the clock was set.
    """
    clocked = np.isfinite(clock)
    pace_s = pace_s[clocked]
    if clocked.sum() < LEAST_LINES or not (pace_s > 0).all():
        return UNKNOWN
    lines = lines[clocked]
    step = step[clocked]
    again = again[clocked]
    wall_s = np.maximum(np.diff(clock[clocked], prepend=log.clock_from), 0)
    wall_s[0] *= wall_s[0] < DAY_S  # another date that the log tells ahead
    total_s = wall_s.sum() or nan
    interval = np.median(np.abs(np.diff(step)))
    new_steps = step.max() - step[0]
    steps = np.diff(step, prepend=step[0] - interval)
    steps[steps <= 0] = interval
    good_s = steps * pace_s
    over_s = wall_s - good_s
    saves = before(log, lines, Event.SAVES)
    evaluation = before(log, lines, Event.EVALUATION)
    gone = (over_s > np.maximum(GAP_S, GAP_STEPS * pace_s)) & ~again
    gone[0] = False
    gone &= ~(saves | evaluation)
    gone &= (over_s + pace_s) % HOUR_S > 2 * pace_s
    first = lines == lines[0]
    causes: dict[str, Array] = {
        "slow steps": lines >= 0,
        "pauses": over_s > np.maximum((pause - 1) * good_s, LEAST_PAUSE_S),
        "warm-up": since_restart(again) <= max(warm, 1),
        "saves": saves,
        "evaluation": evaluation,
        "restart": again | gone | (first & log.goes_on),
        "start": first & (not log.goes_on),
    }
    badput = lost_by_cause(causes, over_s, float(total_s))
    lost_s = (steps.sum() - interval - new_steps) * np.median(pace_s)
    badput["lost work"] = float(lost_s / total_s)
    goodput = 1 - sum(badput.values())
    useful_s = good_s.sum() - interval * pace_s[0] - lost_s
    if not (goodput >= 0 and useful_s <= MOST_FILLED * total_s):
        return UNKNOWN
    shares = {cause: float(f"{share:.4g}") for cause, share in badput.items()}
    return WallClock(goodput, shares, int(gone.sum()))


def lost_by_cause(causes: Mapping[str, Array], over_s: Array, total_s: float) -> dict[str, float]:
    """Shares of the wall clock by cause; a line that several causes explain is the last one's."""
    codes = {name: np.int8(code) for code, name in enumerate(LOGGED)}
    cause = np.zeros(over_s.size, np.int8)
    for name, lines in causes.items():
        cause[lines] = codes[name]
    lost = np.maximum(np.bincount(cause, over_s, len(codes)), 0) / total_s
    return {name: float(share) for name, share in zip(codes, lost)}
