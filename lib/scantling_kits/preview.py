"""What the launch kit of a design's stack would run: said with the design, before a kit is
written."""

from scantling.base.errors import DesignError
from scantling.base.show import days, percent, seconds, usd
from scantling.catalogue.stacks import stack as stack_of
from scantling.verdict.assessment import Assessment

from .expressible import express
from .frameworks import FRAMEWORKS
from .launch_plan import LaunchPlan

EQUAL = 1e-9  # share by which two figures of one plan may differ


def kit_gaps(assessment: Assessment) -> list[str]:
    """A line for each thing of the design that the kit of its stack has no words for, and what the
    kit's own plan comes to; empty where the kit runs the very plan, and without a stack."""
    stack = assessment.resolved.stack
    if stack is None or not assessment.fits:
        return []
    to = stack_of(stack).kit
    if not to:
        return [f"no launch kit starts {stack}: the plan is not written out"]
    try:
        launch = express(assessment, assessment.resolved.main, FRAMEWORKS[to], "torchrun")
    except DesignError as error:
        return [f"{to} kit: {error}"]
    lines = [
        f"{to} kit: {gap.field} {gap.value} cannot be expressed ({gap.why}); "
        f"{gap.instead or 'nothing'} in its place"
        for gap in launch.gaps
    ]
    return [*lines, *_differs(assessment, launch)]


def _differs(assessment: Assessment, launch: LaunchPlan) -> list[str]:
    """A line where the kit's plan takes another time than the design's."""
    ratio = launch.step_s / assessment.step_s
    if abs(ratio - 1) <= EQUAL:
        return []
    own = launch.assessment
    text = (
        f"{launch.to} kit: its plan has a step of {seconds(launch.step_s)} where the design has "
        f"{seconds(assessment.step_s)} ({percent(ratio - 1, 1, '+')})"
    )
    if own.days is not None:
        text += f", {days(own.likely.days)} likely"
    if own.cost_usd is not None:
        text += f", {usd(own.likely.cost_usd)}"
    return [text]
