"""The search in stages: a space, and beside it what decides where memory is short, so that more
memory never leaves less to choose from."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from ..base.errors import DesignError
from ..catalogue.words import Offload
from ..design.pins import pins_from
from ..physics.gather import Situation
from .evaluate import Search, evaluate, joined_plans, legal, union
from .refine import refined
from .remote import Progress
from .space import (
    COARSE,
    DEFAULT,
    LAST_RESORT,
    LEAN,
    LEAN_OFFLOADED,
    OFFLOADED,
    OFFLOADS_COARSE,
    SCHEDULES,
    WIDE,
    Space,
    more_cp,
    offered,
)
from .stream import search_space

# legal plans of the default space, below which the spaces beside it are searched whole
SMALL = 5000


def searched(
    situation: Situation,
    space: Space = DEFAULT,
    first: Search | None = None,
    *,
    own_stack: bool = True,
    progress: Progress | None = None,
) -> Search:
    """The search of a space, and beside the default one what memory decides: finer shares of
    recompute, state in host memory, uneven depths and the lean end of every axis; of a space of
    SMALL plans or more a coarse part of them, and the whole only where nothing fits; beside a
    coarse space that part alone, where nothing fits. Which of these are searched does not hang on
    the memory, so that more of it leaves no plan out.

    first : the search of the space alone, where it is at hand.
    own_stack : False also searches what the named stack does not offer. A space with offload (the
    wide one) is streamed: its best plans are held, its counts are of all.
    progress : as `evaluate.find`; of the space alone.
    Raises DesignError where the pins leave no legal plan.
    """
    if first is None:
        allowed = offered(space, situation.resolved, own_stack)
        first = search_space(situation, allowed, progress=progress)
    further: tuple[Space, ...] = ()
    short_of: tuple[Space, ...] = (OFFLOADED, LAST_RESORT)
    if space == DEFAULT and first.legal < SMALL:
        further, short_of = (OFFLOADED, LEAN_OFFLOADED), (LAST_RESORT,)
    elif space == DEFAULT:
        more = more_cp(situation.resolved, situation.phase, own_stack)
        further = (OFFLOADS_COARSE, LEAN, *more)
    elif space == COARSE:
        short_of = (OFFLOADS_COARSE, LEAN_OFFLOADED)
    searches = [first, *_further(situation, further, own_stack)]
    if all(search.best() is None for search in searches):
        searches += _further(situation, short_of, own_stack)
    if space in (DEFAULT, WIDE):
        searches += refined(situation, searches, own_stack)
    return union(searches)


def with_schedules(search: Search) -> Search:
    """A search together with the pipeline schedules and expert layouts that it left out: those that
    nobody has run at this scale, or that the space does not list."""
    return union([search, *_further(search.situation, (SCHEDULES,), own_stack=True)])


def kept_on_device(search: Search) -> Search:
    """A search together with the neighbours of its plans that have all of the state on the
    device."""
    situation = search.situation
    pins = pins_from({**situation.phase.pins, "offload": Offload.NONE.value})
    held = replace(situation, phase=replace(situation.phase, pins=pins))
    return union([search, *refined(held, [search])])


def _further(situation: Situation, spaces: Iterable[Space], own_stack: bool) -> list[Search]:
    """One search of several more spaces; nothing where the pins or the stack leave them no plan."""
    plans = []
    for space in spaces:
        with suppress(DesignError):
            plans.append(legal(situation, offered(space, situation.resolved, own_stack)))
    return [evaluate(situation, joined_plans(plans))] if plans else []
