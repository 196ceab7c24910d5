"""What else could be bought: the two best designs beside the one that was asked for."""

from collections.abc import Iterator
from itertools import chain
from math import inf

from ..verdict.assessment import Assessment
from ..verdict.result import FixRow, Saving
from .candidates import device_change, site_changes
from .changes import Change
from .fixes import can_do, fixes, tries
from .trials import Trials, Tried

TIMES = (0.5, 0.75, 1.5, 2)  # today's devices
SHOWN = 2


def rivals(
    assessment: Assessment, recommended: Saving | None = None, others: Trials | None = None
) -> list[FixRow]:
    """The two best designs beside this one, rows as of `fixes`; where one is recommended already,
    the other alone.

    Of a design that may be run: the change after which the run costs least, and the one after which
    it ends first (throughput a device and step time where the design names no tokens or no price),
    among other counts of its devices, precisions, batches, fabrics, chips and stacks; both keep
    every stated constraint. Beside a recommended one: the one that ends first. Of any other: its
    two nearest changes, those that give nothing up first. `others`: as of `Trials`.
    """
    if not assessment.met:
        near = fixes(assessment, tries(assessment, others))
        return [*near, *can_do(assessment, tries(assessment, others))][:SHOWN]
    tried = Trials(assessment, others)
    tried.judge(chain(_counts(assessment), site_changes(assessment)))
    known = [recommended["set"]] if recommended else []
    shown: list[Tried] = []
    for worth in (_time,) if recommended else (_cost, _time):
        able = (t for t in tried if t.feasible and t.change.set not in known)
        shown += tried.verified(sorted(able, key=worth), 1)
        known += [t.change.set for t in shown]
    return [t.fix() for t in shown]


def _counts(assessment: Assessment) -> Iterator[Change]:
    """Other counts of the same devices, in whole nodes."""
    if "dp" in assessment.design.plan.stated():
        return
    cluster = assessment.resolved.cluster
    counts = {cluster.counted(cluster.devices * times) for times in TIMES} - {cluster.devices}
    for count in sorted(counts):
        yield device_change(assessment, count)


def _cost(t: Tried) -> float:
    """Likely dollars, what has no price last; device-seconds of a token where the design names no
    tokens."""
    after = t.result
    if after.days is None:
        return 1 / after.tokens_per_s_per_device
    return inf if after.likely.cost_usd is None else after.likely.cost_usd


def _time(t: Tried) -> float:
    """Likely days; seconds of a token where the design names no tokens."""
    after = t.result
    if after.days is None:
        return 1 / (after.tokens_per_s_per_device * after.devices_used)
    return after.likely.days or inf
