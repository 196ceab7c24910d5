"""The verdict: what is missed, what could not be checked, what makes no sense, what is at risk."""

from __future__ import annotations

from dataclasses import replace

from ..base.records import record
from ..base.words import table_rows
from ..catalogue.load import filled
from ..design.constraints import CONSTRAINTS, Constraint
from ..design.plausible import questions
from ..plans.fit import streamed_weights
from .constraints import chance_of, missed, value_of
from .record import Assessment, Chosen, Reason
from .unpublished import record_of
from .verdicts import rank
from .words import say

YEAR_DAYS = 365.25


@record
class Threshold:
    """A limit of sense: the value past it, its unit, why, and whose word it is."""

    id: str
    most: float
    unit: str
    why: str
    source: str


SENSE = {t.id: t for t in filled(Threshold, table_rows(__file__, "sense"))}


def judged(assessment: Assessment) -> Assessment:
    """The assessment with what it misses, the other reasons and the verdict: the gravest that
    holds."""
    misses = missed(assessment)
    known = replace(assessment, missed=misses)
    reasons = unchecked(known)
    if known.fits:
        reasons += [*senseless(known), *risks(known)]
    reasons = tuple(sorted(reasons, key=lambda r: -rank(r.verdict)))
    verdicts = ["feasible", *(r.verdict for r in reasons)]
    if misses or not known.fits:
        verdicts.append("constraint-missed")
    return replace(known, reasons=reasons, verdict=max(verdicts, key=rank))


def unchecked(assessment: Assessment) -> list[Reason]:
    """Stated constraints that cannot be computed, each with the field that is missing, and inputs
    out of range that nobody confirmed."""
    stated = assessment.resolved.constraints
    asked = [Reason("not-checked", q.field, q.text) for q in questions(assessment.resolved)]
    for row in CONSTRAINTS.values():
        limit = getattr(stated, row.field)
        if row.computed and limit is not None and value_of(assessment, row) is None:
            text = say(
                "unchecked",
                name=row.name,
                limit=row.shown(limit),
                missing=_missing(assessment, row),
            )
            asked.append(Reason("not-checked", row.field, text))
    return asked


def _missing(assessment: Assessment, row: Constraint) -> str:
    """What would have to be known for a constraint to be checked."""
    if row.field == "max_power_mw":
        return say("missing-power", chip=assessment.resolved.cluster.accelerator.name)
    if assessment.days is None:
        return say("missing-tokens", job=assessment.resolved.job_path)
    return say("missing-price", chip=assessment.resolved.cluster.accelerator.name)


def senseless(assessment: Assessment) -> list[Reason]:
    """Thresholds of sense that are passed: years of run, hours a step, weights through NVMe, a
    tenth of the best published MFU."""
    best = record_of(assessment.chosen)
    values = {
        "run": (assessment.days or 0.0) / YEAR_DAYS,
        "step": max(one.step_s for one in assessment.phases),
        "nvme": max(map(streamed, assessment.phases)),
    }
    reasons = [
        Reason("impractical", id, say(f"sense-{id}", value=value, row=SENSE[id]))
        for id, value in values.items()
        if value > SENSE[id].most
    ]
    row = SENSE["mfu"]
    if best is not None and assessment.mfu < row.most * best.mfu:
        text = say("sense-mfu", a=assessment, row=row, best=best)
        reasons.append(Reason("impractical", "mfu", text))
    return reasons


def streamed(chosen: Chosen) -> float:
    """Weights of a device that come from NVMe in every pass. [bytes]"""
    return float(
        streamed_weights(chosen.found.situation.resolved.cluster, chosen.case, chosen.memory)
    )


def risks(assessment: Assessment) -> list[Reason]:
    """Chances that are larger than asked for: of going out of memory, and of missing a stated
    constraint inside the band."""
    out = []
    stated = assessment.resolved.constraints
    allowed = assessment.resolved.max_oom_probability
    if assessment.oom_probability > allowed:
        text = say("risk-memory", a=assessment, allowed=allowed)
        out.append(Reason("feasible-at-risk", "max_oom_probability", text))
    lost = {m.field for m in assessment.missed}
    for row in CONSTRAINTS.values():
        limit = None if row.field in lost else getattr(stated, row.field)
        value = value_of(assessment, row) if row.band and limit is not None else None
        if value is None:
            continue
        chance = 1 - chance_of(assessment, row, value, float(limit))
        if chance > SENSE["miss"].most:
            text = say(
                "risk", name=row.name, chance=chance, value=row.shown(value), limit=row.shown(limit)
            )
            out.append(Reason("feasible-at-risk", row.field, text))
    return out
