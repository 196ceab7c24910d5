"""How many active parameters a mixture of experts count by its size alone may have and still be
done in time."""

from __future__ import annotations

from bisect import bisect_left

from ..verdict.assess import changed


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
        or assessment.days is None
        or not assessment.resolved.model.experts
        or "size" not in spec
        or "active" in spec
    ):
        return None
    size = float(spec["size"])
    grid = [k * 10.0**power for power in range(5, 13) for k in range(10, 100)]
    grid = [count for count in grid if size / 100 <= count < size]

    def misses(count) -> bool:
        a = changed(design, {"model.active": count})  # None: no such shape
        return a is None or not a.fits or a.days > deadline

    fitting = bisect_left(grid, True, key=misses)
    if not fitting:
        return None
    best = changed(design, {"model.active": grid[fitting - 1]})
    return {
        "active_params": float(best.active_params),
        "experts": best.resolved.model.experts,
        "top_k": best.resolved.model.top_k,
        "days": best.days,
    }
