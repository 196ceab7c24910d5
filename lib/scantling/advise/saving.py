"""What a design costs more than it need: a change that saves more than a tenth of the dollars or
the days and touches nothing that was asked for."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..catalogue.words import StepPart
from ..physics.step import straggler_share
from ..verdict.assessment import Assessment
from ..verdict.limits import guessed_batch
from ..verdict.result import Saving
from .candidates import WHOLE, device_change, less_lost, site_changes
from .changes import Change
from .trials import Trials, Tried

WORTH = 0.10  # share of cost or time that is worth the first line
NO_LATER = 1.005  # times the days of today that are no more, as they are shown
STANDING_BY = 1 / 32  # of the devices at work that are kept beside them, where the others go back
FEWER = (0.875, 0.75, 0.625, 0.5, 0.375, 0.25)  # times today's devices
# what takes the same device-seconds on any number of devices and with any batch
_ARITHMETIC = (StepPart.GEMM, StepPart.ATTENTION, StepPart.ELEMENTWISE, StepPart.LOGITS)


def saving(assessment: Assessment, others: Trials | None = None) -> Saving | None:
    """The change that saves most dollars (days, where nothing is dear) of a design that may be run:
    a batch that its devices can share, the devices that its plan uses, fewer within its deadline
    (in no more days, where none is stated), or, where failures take more than WORTH of it, saves,
    restarts and ways of going on by which they cost less. None where none saves more than WORTH,
    without tokens, and where the design's own arithmetic leaves no room for it.

    share : of the dollars, or of the days where no price is known or the days gain more.
    others : trials of the same assessment, where they are at hand: none is made twice.
    """
    if not assessment.met or not assessment.days or _most_to_save(assessment) <= WORTH:
        return None
    tried = Trials(assessment, others)
    tried.judge(change for change in site_changes(assessment) if change.kind == WHOLE)
    tried.judge(idle_given_back(assessment))
    fewer_devices(tried)
    if 1 - assessment.goodput > WORTH:
        tried.judge(less_lost(assessment))
    before = tried.before
    gains = [(share_saved(before, t), t) for t in tried if _keeps(before, t)]
    gains.sort(key=lambda gain: -gain[0])
    worth = [t for share, t in gains if share > WORTH]
    for t in tried.verified(worth, 1):
        share = share_saved(assessment, t)
        if share > WORTH and _keeps(assessment, t):
            return _row(assessment, t, share)
    return None


def idle_given_back(assessment: Assessment) -> Iterator[Change]:
    """The devices that the plan uses, a few to stand by, and the batch as it is."""
    cluster, job = assessment.resolved.cluster, assessment.resolved.job_path
    count = cluster.counted(assessment.devices_used * (1 + STANDING_BY) + cluster.at_work / 2)
    if count < cluster.devices and "dp" not in assessment.design.plan.stated():
        change = device_change(assessment, count)
        batch = {
            f"{job}.global_batch": assessment.chosen.phase.global_batch,
            f"{job}.global_batch_tokens": None,
        }
        guessed = guessed_batch(assessment)
        yield replace(change, set={**change.set, **batch}) if guessed else change


def fewer_devices(tried: Trials) -> None:
    """Fewer of the same devices: some shares of today's, and the fewest that keep the deadline.
    Counts on which the model's own arithmetic takes longer than it may are not searched."""
    assessment = tried.assessment
    cluster = assessment.resolved.cluster
    if "dp" in assessment.design.plan.stated():
        return

    def enough(count: int) -> bool:
        change = device_change(assessment, count)
        return enough_for_arithmetic(assessment, count) and tried.tried(change).feasible

    counts = {cluster.counted(cluster.devices * share) for share in FEWER} - {cluster.devices}
    fewer = sorted(counts, reverse=True)
    able = [count for count in fewer if enough(count)]
    if assessment.resolved.constraints.deadline_days is None or not able:
        return
    fewest = min(able)
    below = max((count for count in fewer if count < fewest), default=0)
    while fewest - below > cluster.at_work:
        middle = cluster.counted((fewest + below) / 2)
        if middle in (fewest, below):
            return
        if enough(middle):
            fewest = middle
        else:
            below = middle


def enough_for_arithmetic(assessment: Assessment, count: int) -> bool:
    """Whether nothing but the arithmetic of the model on so many devices, undisturbed but for what
    they wait for the slowest of them, takes no longer than the run may: its deadline, or today's
    likely days where none is stated. True without tokens."""
    if not assessment.days or assessment.likely.days is None:
        return True
    may = assessment.resolved.constraints.deadline_days or assessment.likely.days
    case, used = assessment.chosen.case, assessment.devices_used
    waits = straggler_share(case.with_plan(dp=np.asarray(case.plan.dp * count / used)))
    device_days = assessment.days * assessment.goodput * used
    return bool(_arithmetic(assessment) * device_days * (1 + waits) <= may * count)


def fewer_that_keep(assessment: Assessment) -> set[int]:
    """Fewer devices with which a design that may be run still keeps what it asks for: the fewest,
    and those tried on the way."""
    if not assessment.met or assessment.resolved.constraints.deadline_days is None:
        return set()
    tried = Trials(assessment)
    fewer_devices(tried)
    return {t.result.resolved.cluster.devices for t in tried if t.feasible}


def _most_to_save(assessment: Assessment) -> float:
    """The share of device-seconds that is no arithmetic of the model: idle devices, and parts of
    the step that another batch or another number of devices could do without."""
    used = assessment.devices_used / assessment.resolved.cluster.devices
    return 1 - _arithmetic(assessment) * used


def _arithmetic(assessment: Assessment) -> float:
    """The share of the step that is arithmetic of the model."""
    step = assessment.step_breakdown_s
    return sum(step[part] for part in _ARITHMETIC) / sum(step.values())


def _keeps(now: Assessment, t: Tried) -> bool:
    """Whether a change keeps all that is asked for without a risk, in no more likely days than
    today where no deadline is stated, and for no more likely dollars."""
    if not t.safe:
        return False
    before, after = now.likely, t.result.likely
    if before.days is None or after.days is None:
        return False
    if now.resolved.constraints.deadline_days is None and after.days > before.days * NO_LATER:
        return False
    if before.cost_usd is None or after.cost_usd is None:
        return after.days <= before.days * NO_LATER
    return after.cost_usd <= before.cost_usd * 1.0001


def share_saved(now: Assessment, t: Tried) -> float:
    """The share of the likely dollars that a change saves, or of the likely days where that is more
    or no price is known."""
    before, after = now.likely, t.result.likely
    days = 0.0
    dollars = 0.0
    if before.days and after.days is not None:
        days = 1 - after.days / before.days
    if before.cost_usd and after.cost_usd is not None:
        dollars = 1 - after.cost_usd / before.cost_usd
    return max(days, dollars)


def _row(now: Assessment, t: Tried, share: float) -> Saving:
    """The change with what it saves of the likely dollars."""
    before = now.likely.cost_usd
    after = t.result.likely.cost_usd
    saved = None if before is None or after is None else before - after
    return {**t.fix(), "share": share, "saved_usd": saved}
