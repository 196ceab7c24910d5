"""A run on devices that their owner takes back: what preemptions leave of its goodput."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base.columns import Column
from ..base.units import DAY_S
from . import goodput
from .failures import Cause, Pause, Stop
from .life import Life, lived
from .stated import Usual

# The shortest notice of the clouds: Google Cloud and Azure 30 s, Amazon 120 s
NOTICE_S = Usual(
    30.0,
    "the shortest of the clouds': Google Cloud and Azure 30 s, Amazon EC2 120 s (their documents on"
    " spot instances)",
)
REPLACEMENT_S = Usual(
    600.0, "judgement: until a node of the same kind is allocated, booted and checked"
)
PREEMPTION = Cause(
    id="preemption", count=0, copy=2, evicts=False, what="a node that its owner takes back"
)


class Preempted(NamedTuple):
    """What preemptions make of a run. Seconds and shares of the wall time."""

    goodput: float
    interval_s: float  # between saves
    save_s: float  # that a save takes until it is safe
    saved: bool  # whether the notice is long enough for it
    life: Life


def preempted(
    life: Life, per_day: float, notice_s: float, replacement_s: float, step_s: float
) -> Preempted:
    """The same job where a node is taken back `per_day` times a day, all its nodes together.

    A notice that is as long as a save until it is safe (stall + durable of the farthest copy, which
    alone survives the node) makes it a stop that loses nothing but that save, the replacement and
    the restart; a shorter one a failure that is noticed at once, and loses the work since the last
    save too. The interval between saves is the optimum for both kinds of stops, where nothing else
    set it. The node is replaced after `replacement_s`; where replicas recover alone, the loss is a
    replica's.
    """
    far = life.levels[-1]
    save_s = float(np.max(far.stall_s + far.durable_s))
    per_s = per_day / DAY_S
    restart_s = life.mean_restart_s + replacement_s
    saved = save_s <= notice_s
    if saved:
        pause = Pause(id=PREEMPTION.id, per_s=per_s, seconds=save_s + restart_s)
        after = replace(life, pauses=(*life.pauses, pause))
    else:
        after = _with_stop(life, per_s, restart_s)
        after = _saved_anew(life, after, step_s)
    good, _ = lived(after)
    return Preempted(
        goodput=float(np.clip(good, 1e-12, 1.0)),
        interval_s=float(after.interval_s),
        save_s=save_s,
        saved=saved,
        life=after,
    )


def _with_stop(life: Life, per_s: float, restart_s: Column) -> Life:
    """The life with stops by preemption: of the whole job, or of a replica that recovers alone."""
    stop = Stop(
        cause=PREEMPTION, per_s=per_s, detect_s=0.0, restart_s=restart_s, repair_s=life.repair_s
    )
    if life.detached:
        return replace(life, detached=(*life.detached, stop))
    return replace(life, stops=(*life.stops, stop), reach=(*life.reach, len(life.levels) - 1))


def _saved_anew(before: Life, after: Life, step_s: float) -> Life:
    """The life saved as often as its preemptions ask for, where it has one level of copies and was
    saved at its optimum before."""
    stall_s, durable_s = before.levels[-1].stall_s, before.levels[-1].durable_s
    if len(before.levels) > 1:
        return after
    least = np.maximum(durable_s - stall_s, step_s)

    def best(life: Life) -> Column:
        return np.maximum(goodput.optimum_interval(life.stopping_s * life.alone, stall_s), least)

    at_optimum = np.isclose(before.interval_s, best(before), rtol=1e-6)
    return replace(after, interval_s=np.where(at_optimum, best(after), before.interval_s))
