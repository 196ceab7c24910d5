"""Spaces too large to hold: the search part by part, keeping the best plans and the counts, here or
on a cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from time import perf_counter

from ..base.errors import DesignError
from ..catalogue.words import Offload
from ..design.pins import Pins, pins_from
from ..physics.gather import Situation
from .enumerate import Question, degrees
from .evaluate import Search, find, union
from .remote import Progress, Scheduler, across
from .space import Space

KEEP = 50_000  # fitting plans that are kept, the fastest
PARTS_OF_ONE = 1000  # into which the progress of one part of a space is counted
ON_DEVICE = (Offload.NONE,)  # the offload of a space whose plans keep all state on the device


def search_space(
    situation: Situation,
    space: Space,
    *,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
) -> Search:
    """The search of a space: whole, or streamed where it also moves state off the device.
    progress, scheduler : as of `find` and `stream`."""
    search = find if space.offload == ON_DEVICE else stream
    return search(situation, space, progress=progress, scheduler=scheduler)


def stream(
    situation: Situation,
    space: Space,
    pins: Pins | None = None,
    *,
    keep: int = KEEP,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
) -> Search:
    """The search of `evaluate.find`, whose outcome holds the `keep` fastest fitting plans alone;
    its counts are of all.

    Memory: one part of the space and what is kept, whatever the size of the space.
    progress : function(thousandths of a part done, of), may return False to end with what has been
    looked at (then `unseen` counts parts).
    scheduler : address of a Dask scheduler, or a distributed.Client; the outcome is the same.
    Raises DesignError as `find`.
    """
    start = perf_counter()
    fixed = situation.phase.pins if pins is None else pins
    parts = [*_parts(situation, space, fixed)]
    results: Sequence[list[Search] | None]
    if scheduler is None:
        results = _here(situation, space, parts, keep, progress)
    else:
        tasks = [(situation, space, part, keep) for part in parts]
        of = PARTS_OF_ONE * len(parts)
        results = across(_best, tasks, scheduler, progress, of, PARTS_OF_ONE)
    done = [searches for searches in results if searches is not None]
    searches = [search for part in done for search in part]
    if not searches:
        return find(situation, space, fixed)  # says which rule leaves none
    best = _fastest(searches, keep)
    counts = best.counts.copy()
    counts["seconds"] = perf_counter() - start
    counts["unseen"] = len(parts) - len(done)
    return replace(best, counts=counts)


def _here(
    situation: Situation, space: Space, parts: Sequence[Pins], keep: int, progress: Progress | None
) -> list[list[Search]]:
    """What `_best` finds in the parts one after the other, as far as progress lets them."""
    done: list[list[Search]] = []
    going = True

    def inner(some: int, of: int) -> bool:
        nonlocal going
        at = int(PARTS_OF_ONE * (len(done) + some / of))
        if going and progress is not None:
            going = progress(at, PARTS_OF_ONE * len(parts)) is not False
        return going

    for part in parts:
        done.append(_best(situation, space, part, keep, inner))
        searches = [search for one in done for search in one]
        if sum(len(search.order) for search in searches) > 4 * keep:
            done = [[_fastest(searches, keep)], *([] for _ in done[1:])]
        if not going:
            break
    return done


def _parts(situation: Situation, space: Space, pins: Pins) -> Iterator[Pins]:
    """Pins of each part: one tp; with experts, whose degrees multiply, one pp and offload too."""
    model, cluster = situation.resolved.model, situation.resolved.cluster
    question = Question(model=model, phase=situation.phase, cluster=cluster, space=space, pins=pins)
    axes = {**degrees(question), "offload": question.pick("offload")}
    names = ("tp", "pp", "offload") if model.is_moe else ("tp",)
    for values in product(*(axes[name] for name in names)):
        part = pins_from({**pins, **dict(zip(names, values))})
        if part["tp"] * (part.get("pp") or 1) <= cluster.devices:
            yield part


def _best(
    situation: Situation, space: Space, pins: Pins, keep: int, progress: Progress | None = None
) -> list[Search]:
    """The fastest `keep` fitting plans of one part, alone in a list; [] where none is legal."""
    try:
        return [_fastest([find(situation, space, pins, progress=progress)], keep)]
    except DesignError:
        return []


def _fastest(searches: Sequence[Search], keep: int) -> Search:
    """The `keep` best plans of several parts, with the counts of all."""
    whole = union(searches)
    return whole.only(whole.order[:keep])
