"""How many active parameters a mixture of experts known by its size alone may have and still be
done in time."""

from __future__ import annotations

from ..base.errors import DesignError
from ..verdict.assess import assess


def largest_active(assessment) -> dict | None:
    """Largest active count that meets the deadline: {active_params, experts, top_k, days}; None
    where the question does not arise or none does.

    It arises where the model is {size, moe: true} without `active`, and constraints.deadline_days
    and tokens are given. Counts of two
    digits from a hundredth of the size up, halved between: days grow with the active count but for
    steps of the search, so the count above
    the answer misses. Each is a whole assessment with the experts that `sizing.from_size` derives
    for it; how well a model of that shape
    trains is not asked.
    """
    design, deadline = assessment.design, assessment.resolved.constraints.deadline_days
    spec = {} if isinstance(design.model, str) else design.model.given()
    if (
        deadline is None
        or not assessment.phases
        or assessment.days is None
        or not assessment.resolved.model.experts
        or "size" not in spec
        or "active" in spec
    ):
        return None
    size = float(spec["size"])
    grid = [
        c
        for power in range(6, 14)
        for c in (k * 10.0 ** (power - 1) for k in range(10, 100))
        if size / 100 <= c < size
    ]

    def at(count):
        try:
            a = assess(design.change({"model.active": count}))
        except DesignError:  # no such shape
            return None
        return a if a.fits and a.days <= deadline else None

    best, low, high = None, 0, len(grid)
    while low < high:
        middle = (low + high) // 2
        found = at(grid[middle])
        best, low, high = (found, middle + 1, high) if found else (best, low, middle)
    if best is None:
        return None
    m = best.resolved.model
    return {
        "active_params": float(best.active_params),
        "experts": m.experts,
        "top_k": m.top_k,
        "days": best.days,
    }
