"""The launch plan of a phase under a framework: the assessment's own where the framework has words
for it, else the nearest that it can express, with what is lost and what that costs."""

from dataclasses import replace
from functools import lru_cache

from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

from .launch_plan import Framework, Gap, LaunchPlan
from .launched import launch_plan
from .misfits import (
    STALL,
    Inexpressible,
    hard_gaps,
    lacking,
    misfits,
    refuse_blocks,
    refuse_chip,
    refuse_packing,
    refuse_sites,
)
from .nearest import cost_of, faster, launched_as, nearest, newly_missed, rebuilt

RECOVERY = "reliability.recovery"
DURABLE = "reliability.checkpoint_durable_s"


def express(assessment: Assessment, which: int, framework: Framework, on: str) -> LaunchPlan:
    """The launch plan of phase `which` under a framework: the assessment's own where it can be
    expressed, else the nearest, with the gaps.

    Raises Inexpressible where no plan that fits can be expressed.
    """
    wanted = launch_plan(assessment, framework, on, which)
    refuse_chip(wanted)
    refuse_blocks(wanted)
    refuse_packing(wanted)
    refuse_sites(wanted)
    wanted, survival_gaps = surviving(wanted, which)
    launch, model_gaps = with_built_model(wanted)
    hard = hard_gaps(launch)
    if not hard:
        return replace(launch, gaps=(*model_gaps, *misfits(launch), *survival_gaps))
    near = launched_as(wanted, nearest(launch, hard))
    plan_gaps = instead_of(hard, near, cost_of(near, wanted))
    return replace(
        near,
        faster=faster(launch, hard, near),
        gaps=(*model_gaps, *plan_gaps, *misfits(near), *survival_gaps),
    )


def instead_of(hard: list[Gap], launch: LaunchPlan, cost: str) -> list[Gap]:
    """Gaps with what a launch plan has in their place, and what it costs."""
    now = {"optimizer": launch.phase.optimizer} | launch.plan.as_dict()
    return [replace(gap, instead=now.get(gap.field, "see the note"), cost=cost) for gap in hard]


def with_built_model(wanted: LaunchPlan) -> tuple[LaunchPlan, list[Gap]]:
    """The same phase with the model that the framework builds, and what of the design's is left
    out, with its cost."""
    built = wanted.framework.builds(wanted.model)
    if built == wanted.model:
        return wanted, []
    model_gaps = [gap for gap in misfits(wanted) if gap.field.startswith("model")]
    launch = launched_as(wanted, rebuilt(wanted, built, model_gaps))
    cost = cost_of(launch, wanted)
    still = misfits(launch)
    return launch, [replace(gap, cost=cost) for gap in model_gaps if gap not in still]


@lru_cache(maxsize=1)
def changed(counted: Assessment, changes: tuple[tuple[str, str | float], ...]) -> Assessment:
    """The assessment of the same run, all its phases, with these fields of its design."""
    return assess(counted.design.change(dict(changes)), kit=counted.resolved.kit, like=counted)


def surviving(wanted: LaunchPlan, which: int) -> tuple[LaunchPlan, list[Gap]]:
    """The launch plan of the same run as the framework lives through failures, with what that
    costs, where the design counts on more: a lost node is waited for where it does not go on with
    fewer, and a save where it writes none behind training.

    Raises Inexpressible where no plan fits so.
    """
    instead: dict[str, dict[str, str | float]] = {
        RECOVERY: {RECOVERY: "in-place"},
        STALL: {STALL: wanted.survival.waited_s, DURABLE: 0.0},
    }
    gaps = [gap for gap in lacking(wanted) if gap.field in instead]
    if not gaps:
        return wanted, []
    counted = wanted.assessment
    fields = {field: value for gap in gaps for field, value in instead[gap.field].items()}
    lived = changed(counted, tuple(fields.items()))
    if not lived.fits:
        raise Inexpressible(wanted.to, gaps, "no plan fits the memory that waits for a lost node")
    missed = "".join(f"; {text}" for text in newly_missed(lived, wanted))
    cost = f"goodput {lived.goodput:.2%} against {counted.goodput:.2%}{missed}"
    launch = launch_plan(lived, wanted.framework, wanted.on, which)
    return launch, [replace(gap, cost=cost) for gap in gaps]
