"""Everything that is said of one design, as plain data: what `design --json` prints."""

from ..base.errors import DesignError
from ..base.plugins import FUNCTIONS, entries, function
from ..verdict.assessment import Assessment
from ..verdict.constraints import stated_constraints
from ..verdict.limits import Limit, binding, violations
from ..verdict.numbers import tables
from ..verdict.result import Result
from ..verdict.spot import spot
from .avoid import avoid
from .batch_size import batch_guide
from .extremes import to_loss
from .fixes import can_do, fixes, singles, tries
from .inert import inert
from .measure import measure_first
from .recovery import between_sites
from .saving import saving
from .trials import Trials
from .why import pinned_loss, why


def announced(assessment: Assessment) -> str | None:
    """How far the figures of a chip that nobody can buy yet are to be trusted; None for one that
    ships."""
    chip = assessment.resolved.cluster.accelerator
    if chip.status == "announced":
        return f"announced, not shipping ({chip.name}: its maker's figures)"
    if chip.status == "estimate":
        return f"not announced yet ({chip.name}: analysts' figures)"
    return None


def kit_gaps(assessment: Assessment) -> list[str] | None:
    """What of the design the launch kit of its stack cannot say, and what its own plan comes to;
    empty where the kit runs the very plan. None where no kit was looked at: none is installed, or
    the design names no stack."""
    if "kit_gaps" not in entries(FUNCTIONS) or assessment.resolved.stack is None:
        return None
    try:
        lines: list[str] = function("kit_gaps")(assessment)
    except DesignError:  # an extra that is not installed
        return None
    return lines


def as_dict(assessment: Assessment, advice: bool = True, others: Trials | None = None) -> Result:
    """The keys of `design --json` and the tables of the panels; `advice=False` leaves out what
    takes more searches, other plans or runs drawn again (fixes, batch, traps, why, what to find
    out first). `others`: as of `Trials`."""
    tried = tries(assessment, others) if advice else None
    near = fixes(assessment, tried) if tried else []
    lines = binding(assessment, advice)
    if assessment.verdict == "impossible":
        return {
            "name": assessment.resolved.name,
            "verdict": assessment.verdict,
            "error": assessment.error,
            "limits": [line.text for line in lines],
            "nearest_fixes": near,
        }
    loss = pinned_loss(assessment) if advice else None
    if loss is not None:  # behind what is violated; last where nothing fits
        place = len(list(violations(assessment))) if assessment.fits else len(lines)
        lines.insert(place, Limit("pinned", loss))
    job = assessment.design.job
    main = job.phases[assessment.resolved.main] if job.phases else job
    return {
        "name": assessment.resolved.name,
        "verdict": assessment.verdict,
        **assessment.headline(),
        "likely": assessment.likely.row(),
        "announced": announced(assessment),
        "limits": [line.text for line in lines],
        "limit_kinds": [line.kind for line in lines],
        "asked": stated_constraints(assessment),
        "saving": saving(assessment, tried) if advice else None,
        "spot": spot(assessment),
        "unread": [words.stated() for words in assessment.design.unread or ()],
        "avoid": avoid(assessment) if advice else [],
        "to_loss": to_loss(assessment, main.target_loss) if main.target_loss and advice else None,
        "kit": kit_gaps(assessment) if advice else None,
        "no_effect": inert(assessment) if advice else [],
        "batch": batch_guide(assessment) if advice else {},
        "nearest_fixes": near,
        "can_do": can_do(assessment, tried) if tried else [],
        "tried": singles(tried) if tried else [],
        "not_tried": [change.text for change in tried.left] if tried else [],
        "measure_first": measure_first(assessment) if advice else [],
        "sites": between_sites(assessment),
        "why": why(assessment) if advice else [],
        **tables(assessment),
    }
