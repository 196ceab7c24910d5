"""What breaks next: the same design at more devices, other precision, more experts, longer context,
reducing switches, several sites, post-training."""

from time import perf_counter

from scantling.base.records import Record, record

from ..job_site import Site
from .change import Base, Change
from .next_changes import changes


@record
class Evolution(Record):
    """All changes in the order of the list, and the first thing that breaks as the cluster
    grows."""

    changes: tuple[Change, ...]
    next: str
    searches: int
    seconds: float


def evolution(s: Site) -> Evolution:
    """Evaluate the changes that come next for a design; each is assessed, none is asserted.

    Growth and longer context are searched again on the coarse space, before and after, so that the
    ratio is like with like; precision keeps the plan; switches, sites and post-training are
    formulas of `changes`. A change that the chip or the model does not allow is left out.
    """
    start = perf_counter()
    base = Base(s)
    evaluated = tuple(changes(base))
    broken = (c for c in evaluated if c.id.startswith("devices-") and c.breaks)
    first = next((f"at {c.what}: {c.breaks}" for c in broken), None)
    return Evolution(
        changes=evaluated,
        next=first or "nothing up to ten times the devices",
        searches=base.searches,
        seconds=perf_counter() - start,
    )
