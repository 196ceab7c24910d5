"""The launch plan of a phase under a framework: the assessment's own where the framework has words
for it, else the nearest that it can express, with what is lost and what that costs."""

from dataclasses import replace
from functools import lru_cache

from scantling.verdict.assess import assess
from scantling.verdict.record import Assessment
from scantling.verdict.verdicts import VERDICTS

from .launched import launch_plan
from .misfits import (
    Inexpressible,
    hard_gaps,
    lacking,
    misfits,
    refuse_blocks,
    refuse_chip,
    refuse_packing,
    refuse_sites,
)
from .nearest import cost_of, faster, nearest, rebuilt, rehoused
from .record import Framework, Gap, LaunchPlan


def express(assessment: Assessment, which: int, framework: Framework, on: str) -> LaunchPlan:
    """The launch plan of phase `which` under a framework: the assessment's own where it can be
    expressed, else the nearest, with the gaps.

    Raises Inexpressible where no plan that fits and keeps the constraints can be expressed.
    """
    own = launch_plan(assessment, framework, on, which)
    refuse_chip(own)
    refuse_blocks(own)
    refuse_packing(own)
    refuse_sites(own)
    asked, waits = without_shrinking(own, which)
    own, swaps = with_built_model(asked)
    hard = hard_gaps(own)
    if not hard:
        return replace(own, gaps=(*swaps, *misfits(own), *waits))
    launch = rehoused(asked, nearest(own, hard))
    moved = instead_of(hard, launch, cost_of(launch, asked))
    return replace(
        launch, faster=faster(own, hard, launch), gaps=(*swaps, *moved, *misfits(launch), *waits)
    )


def instead_of(hard: list[Gap], launch: LaunchPlan, cost: str) -> list[Gap]:
    """Gaps with what a launch plan has in their place, and what it costs."""
    now = {"optimizer": launch.phase.optimizer} | launch.plan.as_dict()
    return [replace(gap, instead=now.get(gap.field, "see the note"), cost=cost) for gap in hard]


def with_built_model(asked: LaunchPlan) -> tuple[LaunchPlan, list[Gap]]:
    """The same phase with the model that the framework builds, and what of the design's is left
    out, with its cost."""
    built = asked.framework.builds(asked.model)
    if built == asked.model:
        return asked, []
    swaps = [gap for gap in misfits(asked) if gap.field.startswith("model")]
    own = rehoused(asked, rebuilt(asked, built, swaps))
    cost = cost_of(own, asked)
    still = misfits(own)
    return own, [replace(gap, cost=cost) for gap in swaps if gap not in still]


@lru_cache(maxsize=1)
def in_place(before: Assessment) -> Assessment:
    """The assessment of the same run, all its phases, where a lost node is waited for."""
    return assess(
        before.design.change({"reliability.recovery": "in-place"}),
        kit=before.resolved.kit,
        like=before,
    )


def without_shrinking(own: LaunchPlan, which: int) -> tuple[LaunchPlan, list[Gap]]:
    """The launch plan of the same run where a lost node is waited for, with what that costs, where
    the design counts on going on with fewer and the framework does not.

    Raises Inexpressible where that does not meet what the design asks for.
    """
    gaps = [gap for gap in lacking(own) if gap.field == "reliability.recovery"]
    if not gaps:
        return own, []
    before = own.assessment
    trial = in_place(before)
    if VERDICTS[before.verdict].launch and not VERDICTS[trial.verdict].launch:
        raise Inexpressible(own.to, gaps, trial.missed[0].text)
    cost = f"goodput {trial.goodput:.2%} against {before.goodput:.2%}"
    launch = launch_plan(trial, own.framework, own.on, which)
    return launch, [replace(gaps[0], cost=cost)]
