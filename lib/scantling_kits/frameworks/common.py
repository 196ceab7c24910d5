"""What several frameworks say alike."""

from scantling.endure.reliability import RECOVERS

from ..launch_plan import Gap, LaunchPlan, constants_source, norm_epsilon, rotary_base

MOCK_DATA = (
    "MOCK_DATA=1 makes tokens up: good for the first hour on the machine, which is about speed "
    "and memory, not about loss."
)
WEIGHTS = (  # what INIT names for the kits' own trainer
    "the folder of the weights (config.json and safetensors, as Hugging Face and handover.py write "
    "them)"
)
STEPS_TOGETHER = "it steps all ranks together and has no outer optimizer"


def near_copies(launch: LaunchPlan, why: str = "it writes to RUN_DIR alone") -> Gap:
    """Copies near the devices that the framework does not write."""
    tiers = ", ".join(tier["tier"] for tier in launch.tiers)
    return Gap("checkpoint.tiers", tiers, why, "copies in RUN_DIR alone")


def recovery_gaps(launch: LaunchPlan) -> list[Gap]:
    """A lost node that the design goes on without."""
    recovery = launch.survival.recovery
    if recovery in RECOVERS:
        return []
    why = "the kit's replicas share the global batch evenly, and it does not go on with fewer"
    return [Gap("reliability.recovery", recovery, why, "in place, on spare nodes")]


def constants_note(launch: LaunchPlan, rotary: bool, where: str = "") -> str:
    """Rotary base and the norms' epsilon; `where` the configuration has the base."""
    base = f"Rotary positions have base {rotary_base(launch.model):,}{where}, " if rotary else ""
    epsilon = norm_epsilon(launch.model)
    return f"{base}norms have epsilon {epsilon:g}: {constants_source(launch.model)}"


def all_layers(launch: LaunchPlan) -> int:
    """Layers of a stage, rounded up."""
    return -(-launch.model.layers // launch.plan.pp)
