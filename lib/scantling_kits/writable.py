"""Whether a kit is written for an assessment, and what is said beside it: any plan that can run has
one; what it misses is a warning."""

from scantling.verdict.assessment import Assessment
from scantling.verdict.limits import limits
from scantling.verdict.verdicts import VERDICTS, without_lead

ANYWAY = "--anyway"


def senseless(assessment: Assessment) -> str:
    """What makes no sense in practice of a run; "" where it makes some."""
    texts = [reason.text for reason in assessment.reasons if reason.verdict == "impractical"]
    return "; ".join(texts)


def refusal(assessment: Assessment, anyway: bool = False) -> str:
    """Why nothing is written for a design; "" where a kit is: no plan holds the model, the pinned
    plan does not fit, or the run makes no sense, which `anyway` writes all the same."""
    if not assessment.fits:
        return next(iter(limits(assessment, advice=False)), "the plan does not fit")
    if anyway or not senseless(assessment):
        return ""
    return f"{senseless(assessment)}; {ANYWAY} writes the kit all the same"


def warning(assessment: Assessment) -> str:
    """What is said beside a kit, on one line: the verdict, the stated limits that are missed and
    what makes no sense, else the first other reason; "" for a plainly feasible design."""
    grave = [reason.text for reason in assessment.reasons if reason.verdict == "impractical"]
    texts = [missed.text for missed in assessment.missed] + grave
    texts = texts or [reason.text for reason in assessment.reasons[:1]]
    if not texts:
        return ""
    name = VERDICTS[assessment.verdict].name.lower()
    return f"{name}: {'; '.join(without_lead(text) for text in texts)}"
