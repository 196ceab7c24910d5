"""Pictures of the report, and where they stand between its sections."""

from ..charts.endurance import goodput, ladder
from ..charts.memory_step import memory, step
from ..charts.network import traffic
from ..charts.plans import memories, steps
from ..charts.schedule import laid as layers

SIDE_BY_SIDE = (memories, steps)
FIGURES = {
    "memory": memory,
    "step": step,
    "layers": layers,
    "goodput": goodput,
    "ladder": ladder,
    "communication": traffic,
}
# sections of the report, and the pictures that follow them; the first page ends before the plan
ORDER = (
    "verdict",
    "sensitivity-picture",
    "brief",
    "signing",
    "plan",
    "layers",
    "layers-picture",
    "cost",
    "specialist",
    "memory",
    "memory-picture",
    "step",
    "step-picture",
    "communication",
    "communication-picture",
    "recovery",
    "goodput-picture",
    "ladder",
    "ladder-picture",
    "domains",
    "site",
    "sensitivity",
    "risks",
    "avoid",
    "measured",
    "evidence",
    "candidates",
    "assumptions",
    "quantities",
    "planes",
    "fabrics",
    "stores",
    "rollout",
    "evolution",
)
