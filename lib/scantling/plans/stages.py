"""The search in stages: a space, and beside it what decides where memory is short, so that more
memory never leaves less to choose from."""

from ..base.errors import DesignError
from ..physics.gather import Situation
from .evaluate import Found, find, union
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
    *,
    own_stack: bool = True,
    progress=None,
) -> Found:
    """The search of a space, and beside the default one what memory decides: finer shares of
    recompute, state in host memory, uneven depths and the lean end of every axis; of a space of
    SMALL plans or more a coarse part of them, and the whole only where nothing fits. Which of these
    are searched does not hang on the memory, so that more of it leaves no plan out.

    own_stack : False also searches what the named stack does not offer. A space with offload (the
    wide one) is streamed: its best plans are held, its counts are of all.
    progress : as `evaluate.find`; of the space alone.
    Raises DesignError where the pins leave no legal plan.
    """
    found = [looked_through(where, offered(space, where.resolved, own_stack), progress=progress)]
    beside, short_of = (), (OFFLOADED, LAST_RESORT)
    if space == DEFAULT:
        small = found[0].legal < SMALL
        beside, short_of = (short_of, ()) if small else ((OFFLOADS_COARSE, LEAN), short_of)
        beside += (FINE,)
    for more in beside:
        found += _tried(where, more, own_stack)
    if all(one.best() is None for one in found):
        for more in short_of:
            found += _tried(where, more, own_stack)
    return union(found)


def on_device(where: Situation, space: Space) -> Found:
    """The search of the space alone, under the pins and what the stack offers."""
    return find(where, offered(space, where.resolved))


def with_schedules(found: Found) -> Found:
    """A search together with the pipeline schedules and expert layouts that it left out: those that
    nobody has run at this scale, or that the space does not list."""
    where = found.situation
    return union([found, *_tried(where, SCHEDULES, True)])


def _tried(
    where: Situation,
    space: Space,
    own_stack: bool,
) -> list[Found]:
    """The search of one more space; nothing where the pins or the stack leave it no plan."""
    try:
        return [find(where, offered(space, where.resolved, own_stack))]
    except DesignError:
        return []
