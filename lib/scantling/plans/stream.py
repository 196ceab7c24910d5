"""Spaces too large to hold: the search part by part, keeping the best plans and the counts, here or
on a cluster."""

from dataclasses import replace
from itertools import product
from time import perf_counter

from ..base.errors import DesignError
from ..physics.gather import Situation
from .enumerate import Question, degrees
from .evaluate import Found, find, union
from .remote import across

KEEP = 50_000  # fitting plans that are kept, the fastest
ON_DEVICE = ("none",)  # the offload of a space whose plans keep all state on the device


def looked_through(where: Situation, space, **how) -> Found:
    """The search of a space: whole, or streamed where it also moves state off the device. how :
    progress and scheduler, as of `find` and `stream`."""
    return (find if space.offload == ON_DEVICE else stream)(where, space, **how)


def stream(
    where: Situation,
    space,
    pins: dict | None = None,
    *,
    keep: int = KEEP,
    progress=None,
    scheduler=None,
) -> Found:
    """The search of `run.find`, whose outcome holds the `keep` fastest fitting plans alone;
    its counts are of all.

    Memory: one part of the space and what is kept, whatever the size of the space.
    progress : function(thousandths of a part done, of), may return False to end with what has been
    looked at (then `unseen` counts parts).
    scheduler : address of a Dask scheduler, or a distributed.Client; the outcome is the same.
    Raises DesignError as `find`.
    """
    start = perf_counter()
    pins = dict(where.phase.pins if pins is None else pins)
    parts = list(_parts(where, space, pins))
    if scheduler is None:
        done = _here(where, space, parts, keep, progress)
    else:
        done = across(
            _best,
            [(where, space, part, keep) for part in parts],
            scheduler,
            progress,
            1000 * len(parts),
            1000,
        )
    done = [found for found in done if found is not None]
    held = [one for found in done for one in found]
    if not held:
        return find(where, space, pins)  # says which rule leaves none
    best = _fastest(held, keep)
    return replace(
        best,
        counts={**best.counts, "seconds": perf_counter() - start, "unseen": len(parts) - len(done)},
    )


def _here(where, space, parts, keep, progress):
    """What `_best` finds in the parts one after the other, as far as progress lets them."""
    done, going = [], True

    def inner(some, of):
        nonlocal going
        at = int(1000 * (len(done) + some / of))
        going = going and not (progress and progress(at, 1000 * len(parts)) is False)
        return going

    for part in parts:
        done.append(_best(where, space, part, keep, inner))
        if sum(len(one.order) for found in done for one in found) > 4 * keep:
            held = [one for found in done for one in found]
            done = [[_fastest(held, keep)], *[[] for _ in done[1:]]]
        if not going:
            break
    return done


def _parts(where, space, pins):
    """Pins of each part: one tp; with experts, whose degrees multiply, one pp and offload too."""
    model, cluster = where.resolved.model, where.resolved.cluster
    q = Question(model=model, phase=where.phase, cluster=cluster, space=space, pins=pins)
    axes = degrees(q) | {"offload": q.pick("offload")}
    names = ("tp", "pp", "offload") if model.is_moe else ("tp",)
    for values in product(*(axes[name] for name in names)):
        part = pins | dict(zip(names, values))
        if part["tp"] * (part.get("pp") or 1) <= cluster.devices:
            yield part


def _best(where, space, pins, keep, progress=None):
    """The fastest `keep` fitting plans of one part, alone in a list; [] where none is legal."""
    try:
        return [_fastest([find(where, space, pins, progress=progress)], keep)]
    except DesignError:
        return []


def _fastest(held: list, keep: int) -> Found:
    """The `keep` best plans of several parts, with the counts of all."""
    whole = union(held)
    return whole.only(whole.order[:keep])
