"""The search in stages: a space, and beside it what decides where memory is short, so that more
memory never leaves less to choose from."""

from contextlib import suppress

from ..base.errors import DesignError
from ..physics.gather import Situation
from .evaluate import Found, joined, legal, looked_at, union
from .space import (
    DEFAULT,
    FINE,
    LAST_RESORT,
    LEAN,
    OFFLOADED,
    OFFLOADS_COARSE,
    SCHEDULES,
    Space,
    offered,
)
from .stream import looked_through

SMALL = (
    5000  # legal plans of the default space, below which the spaces beside it are searched whole
)


def searched(
    where: Situation,
    space: Space = DEFAULT,
    first: Found | None = None,
    *,
    own_stack: bool = True,
    progress=None,
) -> Found:
    """The search of a space, and beside the default one what memory decides: finer shares of
    recompute, state in host memory, uneven depths and the lean end of every axis; of a space of
    SMALL plans or more a coarse part of them, and the whole only where nothing fits. Which of these
    are searched does not hang on the memory, so that more of it leaves no plan out.

    first : the search of the space alone, where it is at hand.
    own_stack : False also searches what the named stack does not offer. A space with offload (the
    wide one) is streamed: its best plans are held, its counts are of all.
    progress : as `evaluate.find`; of the space alone.
    Raises DesignError where the pins leave no legal plan.
    """
    found = [
        first or looked_through(where, offered(space, where.resolved, own_stack), progress=progress)
    ]
    beside, short_of = (), (OFFLOADED, LAST_RESORT)
    if space == DEFAULT:
        if found[0].legal < SMALL:
            beside, short_of = short_of, ()
        else:
            beside = OFFLOADS_COARSE, LEAN
        beside += (FINE,)
    found += _tried(where, beside, own_stack)
    if all(one.best() is None for one in found):
        found += _tried(where, short_of, own_stack)
    return union(found)


def with_schedules(found: Found) -> Found:
    """A search together with the pipeline schedules and expert layouts that it left out: those that
    nobody has run at this scale, or that the space does not list."""
    return union([found, *_tried(found.situation, (SCHEDULES,), True)])


def _tried(where: Situation, spaces: tuple, own_stack: bool) -> list:
    """One search of several more spaces; nothing where the pins or the stack leave them no plan."""
    plans = []
    for space in spaces:
        with suppress(DesignError):
            plans.append(legal(where, offered(space, where.resolved, own_stack)))
    return [looked_at(where, joined(plans))] if plans else []
