"""Everything that is said of one design, as plain data: what `design --json` prints."""

from __future__ import annotations

from ..verdict.limits import limits
from ..verdict.numbers import tables
from ..verdict.record import Assessment
from .alternatives import alternatives
from .avoid import avoid
from .batch import batch_guide
from .fixes import fixes, singles, tries
from .why import why


def as_dict(assessment: Assessment, advice: bool = True) -> dict:
    """The keys of `design --json` and the tables of the panels; `advice=False` leaves out what
    takes more searches (fixes, batch)."""
    tried = tries(assessment) if advice else []
    near = fixes(assessment, tried=tried) if advice else []
    out = {
        "name": assessment.resolved.name,
        "verdict": assessment.verdict,
    }
    if assessment.verdict == "impossible":
        return out | {
            "error": assessment.error,
            "limits": limits(assessment),
            "nearest_fixes": near,
        }
    others = alternatives(assessment)
    return {
        **out,
        **assessment.headline(),
        "limits": limits(assessment),
        "avoid": avoid(assessment, others),
        "batch": batch_guide(assessment, others) if advice else {},
        "nearest_fixes": near,
        "tried": singles(tried),
        "why": why(assessment, others),
        **tables(assessment),
    }
