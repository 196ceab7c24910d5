"""What every framework's configuration has beside the plan: steps, warm-up, learning rate."""

from scantling.base.records import record

from .launch_plan import LaunchPlan
from .values import RunValues

ENDLESS = 1_000_000  # steps of a run whose design names no tokens
WARM_UP = 2000  # steps at most, and a twentieth of the run
WEIGHT_DECAY = 0.1


@record
class Schedule:
    """The run's steps and learning rate."""

    steps: int
    warm_up: int  # steps
    lr: float  # peak


def schedule(launch: LaunchPlan, run: RunValues) -> Schedule:
    """The schedule of a launch plan."""
    steps = launch.steps or ENDLESS
    return Schedule(steps=steps, warm_up=min(WARM_UP, steps // 20), lr=run.train["lr"])
