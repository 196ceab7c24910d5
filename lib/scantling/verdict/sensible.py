"""The nearest number of devices that is enough for what is asked, and the one on which a design
that is past a limit of sense makes sense."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from ..plans.space import COARSE
from .assess import changed
from .record import Assessment
from .words import say

# times the devices that are tried, until one is enough
MORE_DEVICES = (1.125, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
HALVINGS = 5  # between it and the last that was not


def nearest(cluster, scales, enough: Callable) -> int | None:
    """The number of devices nearest to a cluster's that is enough, in whole units of them: the
    first of so many times as many, then halving towards the last that is not; None where none
    is."""
    last = cluster.devices
    for scale in scales:
        hit = cluster.whole(cluster.devices * scale)
        if enough(hit):
            break
        last = hit
    else:
        return None
    for _ in range(HALVINGS):
        middle = cluster.whole((last + hit) / 2)
        if middle in (last, hit):
            break
        last, hit = (last, middle) if enough(middle) else (middle, hit)
    return hit


@lru_cache(maxsize=8)
def sensible(assessment: Assessment) -> Assessment | None:
    """A design that is past a limit of sense on the nearest number of devices of the same kind on
    which it is feasible by a coarse search: more of them, fewer where MFU alone is past; None where
    there is none."""
    past = {r.field for r in assessment.reasons if r.verdict == "impractical"}
    if not past:
        return None

    best = None  # alone is kept: an assessment of 100,000 plans takes half a gigabyte

    def enough(count):
        nonlocal best
        found = changed(assessment.design, {"cluster.devices": count}, space=COARSE)
        feasible = getattr(found, "verdict", "") == "feasible"
        best = found if feasible else best
        return feasible

    nearest(
        assessment.resolved.cluster,
        [1 / s for s in MORE_DEVICES] if past == {"mfu"} else MORE_DEVICES,
        enough,
    )
    return best


def smallest(assessment: Assessment, advice: bool = True) -> Iterator[str]:
    """A line with the devices on which a design that is past a limit of sense makes sense; none
    without advice, which takes searches."""
    after = sensible(assessment) if advice else None
    if after is not None:
        yield say("smallest", a=after)
