"""The verdict: what is missed, what could not be checked, what makes no sense, what is at risk."""

from __future__ import annotations

from dataclasses import replace

from ..base.files import table_rows
from ..base.records import record
from ..base.show import days, percent, seconds, share, size
from ..base.units import DAY_S, YEAR_S
from ..catalogue.load import filled
from ..catalogue.words import Offload
from ..design.constraints import CONSTRAINTS, Constraint
from ..design.plausible import questions
from ..physics.cases import devices as ranks
from ..plans.evaluate import unpinned
from ..plans.fit import host_of, streamed_weights
from ..plans.stages import searched
from .assessment import Assessment, Chosen, Reason
from .constraints import chance_of, missed, value_of
from .numbers import MEASURED_SPEEDS
from .unpublished import record_of
from .verdicts import rank

YEAR_DAYS = YEAR_S / DAY_S


@record
class Threshold:
    """A limit of sense: the value past it, its unit, why, and whose word it is."""

    id: str
    most: float
    unit: str
    why: str
    source: str


SENSE = {t.id: t for t in filled(Threshold, table_rows(__file__, "sense"))}


def judge(assessment: Assessment) -> Assessment:
    """The assessment with what it misses, the other reasons and the verdict: the gravest that
    holds."""
    misses = missed(assessment)
    known = replace(assessment, missed=misses)
    reasons = unchecked(known)
    if known.fits:
        reasons += [*senseless(known), *risks(known)]
    reasons.sort(key=lambda reason: -rank(reason.verdict))
    verdicts = ["feasible", *(reason.verdict for reason in reasons)]
    if misses or not known.fits:
        verdicts.append("constraint-missed")
    return replace(known, reasons=tuple(reasons), verdict=max(verdicts, key=rank))


def unchecked(assessment: Assessment) -> list[Reason]:
    """Stated constraints that cannot be computed, each with the field that is missing, and inputs
    out of range that nobody confirmed."""
    stated = assessment.resolved.constraints.stated()
    reasons = [Reason("not-checked", q.field, q.text) for q in questions(assessment.resolved)]
    reasons += _parts_too_late(assessment)
    for row in CONSTRAINTS.values():
        if row.field in stated and row.computed and value_of(assessment, row) is None:
            limit = row.shown(stated[row.field])
            text = (
                f"not checked: {row.name} {limit} is stated, and cannot be computed without "
                f"{_missing(assessment, row)}"
            )
            reasons.append(Reason("not-checked", row.field, text))
    return reasons


def _parts_too_late(assessment: Assessment) -> list[Reason]:
    """A deadline that the whole machine keeps, and would not keep if it waited for its last part;
    none where the design confirms that it counts from that day."""
    field = "cluster.delivery"
    deadline = assessment.resolved.constraints.deadline_days
    waits = assessment.resolved.cluster.handed_over_in_days
    if deadline is None or not waits or assessment.likely.days is None:
        return []
    if field in (assessment.design.confirm or ()):
        return []
    if not assessment.likely.days <= deadline < waits + assessment.likely.days:
        return []
    text = (
        f"not checked: deadline {days(deadline)}: the whole machine takes "
        f"{days(assessment.likely.days)}, and its last part comes {days(waits)} after the first. "
        f"If it counts from the last part, write confirm: [{field}]"
    )
    return [Reason("not-checked", field, text)]


def _missing(assessment: Assessment, row: Constraint) -> str:
    """What would have to be known for a constraint to be checked."""
    chip = assessment.resolved.cluster.accelerator.name
    if row.figure == "cost.power_w":
        return f"the power of {chip}, which nobody has published"
    if assessment.days is None:
        return f"{assessment.resolved.job_path}.tokens"
    kind = assessment.resolved.prices.kind or "on-demand"
    return f"prices.usd_per_device_hour: the catalogue has no {kind} price of {chip}"


def senseless(assessment: Assessment) -> list[Reason]:
    """Thresholds of sense that are passed: years of run, hours a step, weights through NVMe, a
    tenth of the best published MFU."""
    reasons = []
    limit = SENSE["run"]
    run, most = assessment.days or 0.0, limit.most * YEAR_DAYS
    if run > most / 2:  # runs are drawn where they may decide
        run = assessment.likely.days or 0.0
    if run > most:
        text = f"a run of {days(run)}; past {limit.most:g} years ({days(most)}) {limit.why}"
        reasons.append(_senseless("run", text))
    step_s = max(one.step_s for one in assessment.phases)
    limit = SENSE["step"]
    if step_s > limit.most:
        text = f"a step of {seconds(step_s)}; above an hour, {limit.why}"
        reasons.append(_senseless("step", text))
    from_nvme = max(streamed_bytes(one) for one in assessment.phases)
    limit = SENSE["nvme"]
    if from_nvme > limit.most:
        text = f"{size(from_nvme)} of a device's weights come from NVMe in every pass; {limit.why}"
        reasons.append(_senseless("nvme", text))
    best = record_of(assessment.chosen)
    limit = SENSE["mfu"]
    slow = best is not None and assessment.mfu < limit.most * best.mfu
    believed = is_pretraining_on_nodes(assessment) and not is_slow_by_choice(assessment)
    if slow and best is not None and believed and not is_slow_by_pins(assessment, best.mfu):
        text = (
            f"MFU {share(assessment.mfu)} (attention in full) is less than a tenth of the best "
            f"that is published for this chip, {share(best.mfu)} ({best.run}); {limit.why}"
        )
        reasons.append(_senseless("mfu", text))
    return reasons


def is_pretraining_on_nodes(assessment: Assessment) -> bool:
    """Whether a run trains from nothing on more than one node: what continues from a checkpoint, or
    has a node alone, is made as slow as it must be (ZeRO-Offload, fine-tuning of long models)."""
    devices = assessment.resolved.cluster.devices_per_node
    pretrains = not all(phase.from_checkpoint for phase in assessment.resolved.phases)
    return pretrains and int(ranks(assessment.chosen.case.plan)) > devices


def is_slow_by_choice(assessment: Assessment) -> bool:
    """Whether a run was made as slowly, which `measured` says, or its plan states that states
    leave the device: an optimizer that steps on the host is no slip (ZeRO-Infinity on 64 V100)."""
    timed = bool(assessment.resolved.measured.keys() & MEASURED_SPEEDS)
    offload = assessment.chosen.phase.pins.get("offload")
    return timed or offload not in (None, Offload.NONE)


def is_slow_by_pins(assessment: Assessment, best_mfu: float) -> bool:
    """Whether pins alone keep a plan of a kind that is run below the limit, and by less than it:
    the same devices with their plan open pass it, and a step is no ten times as long as theirs.
    What the pins cost is said then (ZeRO-3 over 10 Gbit/s Ethernet: people wait for it)."""
    chosen = assessment.chosen
    situation = chosen.search.situation
    if not situation.phase.pins or not chosen.search.practised[chosen.row]:
        return False
    search = searched(unpinned(situation))
    row = search.best()
    if row is None:
        return False
    times = float(chosen.step.total / search.step_s[row])
    limit = SENSE["mfu"].most
    return assessment.mfu * times >= limit * best_mfu and times * limit <= 1


def _senseless(id: str, text: str) -> Reason:
    return Reason("impractical", id, f"makes no sense: {text}")


def streamed_bytes(chosen: Chosen) -> float:
    """Weights of a device that come from NVMe in every pass. [bytes]"""
    cluster = chosen.search.situation.resolved.cluster
    return float(streamed_weights(host_of(cluster), chosen.case, chosen.memory))


def risks(assessment: Assessment) -> list[Reason]:
    """Chances that are larger than asked for: of going out of memory, and of missing a stated
    constraint inside the band."""
    reasons = []
    allowed = assessment.resolved.max_oom_probability
    chance = assessment.oom_probability
    if chance > allowed:
        memory = assessment.memory_bytes
        text = (
            f"at risk: chance {percent(chance, 0)} of going out of memory ({size(memory['total'])} "
            f"of {size(memory['capacity'])}), {percent(allowed, 0)} allowed"
        )
        reasons.append(Reason("feasible-at-risk", "max_oom_probability", text))
    stated = assessment.resolved.constraints.stated()
    lost = {m.field for m in assessment.missed}
    for row in CONSTRAINTS.values():
        if row.field in stated and row.field not in lost and row.band:
            reasons += _at_risk(assessment, row, float(stated[row.field]))
    return reasons


def _at_risk(assessment: Assessment, row: Constraint, limit: float) -> list[Reason]:
    """The reason of a constraint that is missed with too large a chance; none where it is not."""
    value = value_of(assessment, row)
    chance = None if value is None else chance_of(assessment, row, value, limit)
    if chance is None or 1 - chance <= SENSE["miss"].most:
        return []
    text = (
        f"at risk: {row.name} {row.shown(limit)}, {row.shown(value)} predicted; "
        f"chance {percent(1 - chance, 0)} of missing it"
    )
    return [Reason("feasible-at-risk", row.field, text)]
