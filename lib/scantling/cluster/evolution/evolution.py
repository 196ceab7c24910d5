"""What breaks next: the same design at more devices, other precision, more experts, longer context,
reducing switches, several sites, post-training."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.records import Record
from .changes import CHANGES, Base


@dataclass(frozen=True)
class Figure(Record):
    """One figure before and after a change."""

    name: str
    now: float | None
    then: float | None
    unit: str


@dataclass(frozen=True)
class Change(Record):
    """One change evaluated: the figure that it moves most, others beside it, what breaks and what
    would mend it."""

    id: str
    what: str
    figure: Figure
    more: tuple[Figure, ...]
    works: bool  # whether a plan fits and trains
    breaks: str
    mend: str
    confirm: str  # what an ML specialist has to confirm, empty where nothing


@dataclass(frozen=True)
class Evolution(Record):
    """All changes in the order of the list, and the first thing that breaks as the cluster
    grows."""

    changes: tuple[Change, ...]
    next: str
    searches: int
    seconds: float

    def change(self, id: str) -> Change:
        """One change by id. Raises KeyError for an unknown one."""
        for one in self.changes:
            if one.id == id:
                return one
        raise KeyError(id)


def evolution(assessment) -> Evolution:
    """Evaluate the changes that come next for a design; each is assessed, none is asserted.

    Growth and longer context are searched again on the coarse space, before and after, so that the
    ratio is like with like; precision
    keeps the plan; switches, sites and post-training are formulas of `evolution_changes`. A change
    that the chip or the model does not
    allow is left out.
    """
    import time

    start = time.perf_counter()
    base = Base(assessment)
    found = []
    for look in CHANGES:
        row = look(base)
        if row is not None:
            found.append(_change(**row))
    grown = [c for c in found if c.id.startswith("devices-")]
    first = next(
        (f"at {c.what}: {c.breaks}" for c in grown if c.breaks),
        "nothing up to ten times the devices",
    )
    return Evolution(tuple(found), first, base.searches, time.perf_counter() - start)


def _change(*, id, what, figure, more=(), works=True, breaks="", mend="", confirm="") -> Change:
    return Change(
        id, what, Figure(*figure), tuple(Figure(*m) for m in more), works, breaks, mend, confirm
    )
