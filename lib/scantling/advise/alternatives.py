"""Other plans for an assessed design: the search that they come from, and the best of them under a
condition."""

from functools import lru_cache

from ..plans.evaluate import Found, unpinned
from ..plans.stages import searched
from ..verdict.record import Assessment


@lru_cache(maxsize=2)
def alternatives(assessment: Assessment) -> Found | None:
    """The search that alternatives come from: the design's own, or one without its pins; None where
    the plan does not fit."""
    if not assessment.phases or not assessment.chosen.fits:
        return None
    found = assessment.chosen.found
    if not found.situation.phase.pins:
        return found
    return unpinned_but(assessment)


def unpinned_but(assessment: Assessment, *kept: str) -> Found:
    """The search of the main phase with its pins let go, except those named."""
    return searched(unpinned(assessment.chosen.found.situation, *kept))


def best_where(found: Found, mask) -> int | None:
    """Row of the fastest fitting plan under a mask, of a kind that has been run where there is one;
    None where none fits."""
    row = found.fastest(mask & found.practised)
    return found.fastest(mask) if row is None else row
