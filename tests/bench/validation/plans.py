"""How far the plans of published runs are from the best that the search finds by the same model."""

from collections.abc import Iterator
from pathlib import Path

from scantling.advise.why import why
from scantling.design.design import Design
from scantling.plans.plan_names import short
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment
from scantling_kits.nearest import software_fields

DESIGNS = Path("gallery/designs")


def published_and_own(design: Design) -> tuple[Assessment, Assessment]:
    """A design with its plan as it is pinned, and with the plan that the search finds by the same
    switches of the software when it may come as near to the end of the memory."""
    pinned = assess(design)
    allowed = max(pinned.oom_probability or 0.0, pinned.resolved.max_oom_probability)
    freed = dict.fromkeys(f"plan.{f}" for f in design.plan.stated() if f not in software_fields())
    return pinned, assess(design.change(freed | {"constraints.max_oom_probability": allowed}))


def distances(folder: Path = DESIGNS) -> Iterator[dict]:
    """A row for each design of the folder that pins the plan of its run: the plan, its step [s] and
    chance to run out of memory, the plan and step that the search finds, how much longer the
    published step is [share], the same with no stack named (None where the plan then does not
    fit), and why."""
    for path in sorted(folder.glob("*.yaml")):
        design = Design.read(path)
        if not design.plan.stated():
            continue
        (pinned, own), (any_pinned, any_own) = map(
            published_and_own, (design, design.change({"stack": None}))
        )
        yield {
            "design": path.stem,
            "stack": pinned.resolved.stack,
            "plan": short(pinned.plan),
            "step_s": pinned.step_s,
            "oom_probability": pinned.oom_probability,
            "best": short(own.plan),
            "best_step_s": own.step_s,
            "longer": pinned.step_s / own.step_s - 1,
            "longer_without_stack": any_pinned.step_s / any_own.step_s - 1
            if any_pinned.fits
            else None,
            "why": next(line["text"] for line in why(pinned) if line["axis"] == "pins"),
        }
