"""Other plans for an assessed design: the search that they come from, and the best of them under a
condition."""

from functools import lru_cache

from ..base.columns import Array
from ..plans.evaluate import Search, unpinned
from ..plans.stages import searched
from ..verdict.assessment import Assessment, Chosen


@lru_cache(maxsize=2)
def alternatives(assessment: Assessment) -> Search | None:
    """The search that alternatives come from: the design's own, or one without its pins; None where
    the plan does not fit."""
    if not assessment.phases or not assessment.chosen.fits:
        return None
    search = assessment.chosen.search
    if not search.situation.phase.pins:
        return search
    return unpinned_but(assessment)


def unpinned_but(assessment: Assessment, *names: str) -> Search:
    """The search of the main phase with its pins let go, except those named."""
    return searched(unpinned(assessment.chosen.search.situation, *names))


def best_among(search: Search, mask: Array) -> int | None:
    """Row of the fastest fitting plan under a mask, of a kind that has been run where there is one;
    None where none fits."""
    row = search.fastest(mask & search.practised)
    return search.fastest(mask) if row is None else row


def longer(search: Search, chosen: Chosen, row: int) -> float:
    """Share by which the step of a plan is longer than today's."""
    return float(search.step_s[row] / chosen.step.total - 1)
