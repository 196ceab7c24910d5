"""Other plans for an assessed design: the search that they come from, and the best of them under a
condition."""

from __future__ import annotations

import numpy as np

from ..plans import space as planning
from ..plans.run import Found, find, unpinned
from ..verdict.record import Assessment


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
    where = unpinned(assessment.chosen.found.situation, *kept)
    return find(where, planning.offered(planning.DEFAULT, assessment.resolved.stack))


def column(found: Found, name: str) -> np.ndarray:
    """A field of all plans."""
    return np.broadcast_to(np.asarray(getattr(found.plan, name), float), found.fits.shape)


def best_where(found: Found, mask) -> int | None:
    """Row of the fastest fitting plan under a mask, of a kind that has been run where there is one;
    None where none fits."""
    for kind in (mask & found.practised, mask):
        rows = np.flatnonzero(kind & found.fits)
        if len(rows):
            return int(rows[np.argmin(found.step_s[rows])])
    return None
