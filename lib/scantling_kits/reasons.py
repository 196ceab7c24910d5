"""Why each choice of the plan: the assessment's own reason, or what the choice does."""

from typing import NamedTuple

from scantling.base.show import gigabytes, several
from scantling.catalogue.words import Offload, Recompute, Sharding

from .launch_plan import LaunchPlan

FIELDS = (
    "tp",
    "sp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sharding",
    "micro_batch",
    "recompute",
    "offload",
    "precision",
)
SHARED = {
    "none": "every rank holds all of it",
    Sharding.ZERO1: "optimizer states over the ranks",
    Sharding.ZERO2: "gradients and optimizer states over the ranks",
    Sharding.ZERO3: "weights, gradients and optimizer states over the ranks",
}


class Reason(NamedTuple):
    """A choice of the plan, its value, and why."""

    choice: str
    value: str
    why: str


def justification(launch: LaunchPlan) -> list[Reason]:
    """Every field of the plan, from the assessment's own reasons."""
    texts = {row["axis"]: row["text"] for row in launch.reasons()}
    plan = launch.plan.as_dict()
    out = []
    for choice in FIELDS:
        if choice in ("ep", "etp") and not launch.model.is_moe:
            continue
        value = str(plan[choice])
        text = texts.get(choice, "")
        effect = effect_of(choice, launch)
        if choice == "sharding":
            why = f"{text}; {effect}" if ":" in text else effect
        elif text in ("", choice, f"{choice} {value}", value):
            why = effect
        else:
            why = text
        out.append(Reason(choice, value, why))
    return out


def effect_of(choice: str, launch: LaunchPlan) -> str:
    """What a choice does, where the search has no reason of its own."""
    effects = {
        "sp": sequence_parallel,
        "vpp": chunks,
        "dp": replicas,
        "etp": expert_tensors,
        "sharding": sharding,
        "micro_batch": micro_batch,
        "recompute": recompute,
        "offload": offload,
        "precision": precision,
    }
    return effects[choice](launch) if choice in effects else "as the search found it"


def sequence_parallel(launch: LaunchPlan) -> str:
    """Sequence parallelism."""
    if launch.plan.sp:
        return (
            "splits what lies outside the tensor-parallel blocks over the same ranks, at the same "
            "traffic"
        )
    return "tensor parallelism is off" if launch.plan.tp == 1 else "off by the plan"


def chunks(launch: LaunchPlan) -> str:
    """Chunks of a stage."""
    if launch.plan.pp == 1:
        return "no stages"
    bubble = launch.figures.bubble_fraction
    return f"{launch.plan.vpp} chunks a stage; bubble {bubble:.1%} of the step"


def replicas(launch: LaunchPlan) -> str:
    """Data-parallel ranks."""
    return "the devices that the other axes leave"


def expert_tensors(launch: LaunchPlan) -> str:
    """Tensor parallelism of experts."""
    if launch.plan.etp == 1:
        return "each rank holds whole experts"
    return "experts are split over tensor-parallel ranks"


def sharding(launch: LaunchPlan) -> str:
    """What data-parallel ranks share."""
    p = launch.plan
    shared = SHARED.get(p.sharding, f"all of it over groups of {p.shard_group}")
    return f"{shared}: {gigabytes(launch.memory.state)} of state on the fullest device"


def micro_batch(launch: LaunchPlan) -> str:
    """Sequences of a micro-batch."""
    count = several(launch.plan.grad_accum, "micro-batch", "micro-batches")
    activations = gigabytes(launch.memory.activations)
    return f"{count} a step on each replica; activations {activations} on the fullest device"


def recompute(launch: LaunchPlan) -> str:
    """What the backward pass computes again."""
    p = launch.plan
    if p.recompute == Recompute.NONE:
        return "what the backward pass needs fits as it is"
    if p.recompute == Recompute.SELECTIVE:
        modules = ", ".join(p.recompute_modules) or "what is not on the list of kept operations"
        return f"{modules} computed again, the rest is kept"
    return f"{p.recompute_layers} layers a stage are computed again: a layer keeps its input alone"


def offload(launch: LaunchPlan) -> str:
    """What is in host memory."""
    if launch.plan.offload == Offload.NONE:
        return "all state fits in device memory"
    return "device memory is too small for the state"


def precision(launch: LaunchPlan) -> str:
    """The peak that products are counted against."""
    chip = launch.cluster.accelerator
    peak = chip.peak_flops(launch.phase.precision)
    return f"dense peak {peak / 1e12:,.0f} TFLOP/s of {chip.name}"
