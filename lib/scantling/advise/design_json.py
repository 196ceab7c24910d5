"""Everything that is said of one design, as plain data: what `design --json` prints."""

from ..verdict.constraints import asked
from ..verdict.limits import limits
from ..verdict.numbers import tables
from ..verdict.record import Assessment
from ..verdict.result import Result
from .answers import to_loss
from .avoid import avoid
from .batch import batch_guide
from .fixes import can_do, fixes, singles, tries
from .measure import measure_first
from .recovery import between_sites
from .why import why


def as_dict(assessment: Assessment, advice: bool = True) -> Result:
    """The keys of `design --json` and the tables of the panels; `advice=False` leaves out what
    takes more searches or other plans (fixes, batch, traps, why)."""
    tried = tries(assessment) if advice else None
    near = fixes(assessment, tried) if tried else []
    if assessment.verdict == "impossible":
        return {
            "name": assessment.resolved.name,
            "verdict": assessment.verdict,
            "error": assessment.error,
            "limits": limits(assessment, advice),
            "nearest_fixes": near,
        }
    job = assessment.design.job
    target = (job.phases[assessment.resolved.main] if job.phases else job).target_loss
    return {
        "name": assessment.resolved.name,
        "verdict": assessment.verdict,
        **assessment.headline(),
        "limits": limits(assessment, advice),
        "asked": asked(assessment),
        "unread": [words.given() for words in assessment.design.unread or ()],
        "avoid": avoid(assessment) if advice else [],
        "to_loss": to_loss(assessment, target) if target and advice else None,
        "batch": batch_guide(assessment) if advice else {},
        "nearest_fixes": near,
        "can_do": can_do(assessment, tried) if tried else [],
        "tried": singles(tried) if tried else [],
        "not_tried": [change.text for change in tried.left] if tried else [],
        "measure_first": measure_first(assessment),
        "sites": between_sites(assessment),
        "why": why(assessment) if advice else [],
        **tables(assessment),
    }
