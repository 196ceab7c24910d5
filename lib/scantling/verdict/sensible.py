"""The smallest machine on which a design that is past a limit of sense makes sense."""

from collections.abc import Iterator

from ..plans.space import COARSE
from .assess import changed
from .record import Assessment
from .words import say

DOUBLINGS = 14


def smallest(assessment: Assessment) -> Iterator[str]:
    """A line with the fewest devices of the same kind, today's doubled again and again, whose
    coarse search is past no limit of sense; halved where MFU alone is. Nothing where none is."""
    past = impractical(assessment)
    cluster = assessment.resolved.cluster
    way = -1.0 if past == {"mfu"} else 1.0
    counts = {cluster.whole(cluster.devices * 2.0 ** (way * k)) for k in range(1, DOUBLINGS + 1)}
    for count in sorted(counts, key=lambda n: way * n) if past else ():
        after = changed(
            assessment.design,
            {"cluster.devices": count},
            space=COARSE,
        )
        if after is not None and after.fits and not impractical(after):
            yield say(
                "smallest",
                devices=count,
                a=after,
            )
            break


def impractical(assessment: Assessment) -> set[str]:
    """Limits of sense that a design is past."""
    return {r.field for r in assessment.reasons if r.verdict == "impractical"}
