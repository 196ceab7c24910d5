"""The nearest number of devices that is enough for what is asked, and the one on which a design
that is past a limit of sense makes sense."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ..base.show import seconds, share
from ..design.cluster import Cluster
from ..plans.space import COARSE
from .assess import changed
from .assessment import Assessment

# times the devices that are tried, until one is enough
MORE_DEVICES = (1.125, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
HALVINGS = 5  # between it and the last that was not
LARGEST = 2_000_000  # devices of a cluster: more is no answer


def nearest(cluster: Cluster, scales: Iterable[float], enough: Callable[[int], bool]) -> int | None:
    """The number of devices nearest to a cluster's that is enough, in whole units of them: the
    first of so many times as many, then halving towards the last that is not; None where none
    is."""
    last = cluster.devices
    for scale in scales:
        hit = cluster.counted(cluster.devices * scale)
        if enough(hit):
            break
        last = hit
    else:
        return None
    for _ in range(HALVINGS):
        middle = cluster.counted((last + hit) / 2)
        if middle in (last, hit):
            break
        if enough(middle):
            hit = middle
        else:
            last = middle
    return hit


@lru_cache(maxsize=8)
def sensible(assessment: Assessment) -> Assessment | None:
    """A design that is past a limit of sense on the nearest number of devices of the same kind on
    which it is feasible, which a coarse search finds: more of them, fewer where MFU alone is past;
    None where there is none."""
    past = {reason.field for reason in assessment.reasons if reason.verdict == "impractical"}
    if not past:
        return None

    best = None  # the last feasible one alone: an assessment of 100,000 plans takes half a gigabyte

    def enough(count: int) -> bool:
        nonlocal best
        after = changed(assessment.design, {"cluster.devices": count}, space=COARSE)
        if after is None or after.verdict != "feasible":
            return False
        best = after
        return True

    scales = [1 / s for s in MORE_DEVICES] if past == {"mfu"} else MORE_DEVICES
    nearest(assessment.resolved.cluster, scales, enough)
    if best is None:
        return None
    # with the figures that the same number has wherever else it is named
    whole = changed(assessment.design, {"cluster.devices": best.resolved.cluster.devices})
    return best if whole is None or whole.verdict != "feasible" else whole


def smallest(assessment: Assessment) -> Iterator[str]:
    """A line with the devices on which a design that is past a limit of sense makes sense; it takes
    searches."""
    after = sensible(assessment)
    if after is not None:
        yield (
            f"makes sense: {after.devices_used:,} devices of the same kind are the nearest number "
            f"that would do, at {seconds(after.step_s)} a step and MFU {share(after.mfu_shown)}"
        )
