"""The smallest machine on which a design that is past a limit of sense makes sense."""

from __future__ import annotations

from ..plans.space import COARSE
from .assess import changed
from .record import Assessment
from .words import say

DOUBLINGS = 14


def smallest(assessment: Assessment) -> list[str]:
    """A line with the fewest devices of the same kind, today's doubled again and again, whose
    coarse search is past no limit of sense; halved where MFU alone is. Nothing where none is."""
    past = {r.field for r in assessment.reasons if r.verdict == "impractical"}
    if not past:
        return []
    cluster = assessment.resolved.cluster
    for k in range(1, DOUBLINGS + 1):
        count = cluster.devices // 2**k if past == {"mfu"} else cluster.devices * 2**k
        if count < 1:
            break
        unit = cluster.unit if count >= cluster.unit else 1
        count = -(-count // unit) * unit
        after = changed(
            assessment.design,
            {"cluster.devices": count},
            space=COARSE,
        )
        if after is None or not after.fits:
            continue
        if not any(r.verdict == "impractical" for r in after.reasons):
            return [
                say(
                    "smallest",
                    devices=count,
                    a=after,
                )
            ]
    return []
