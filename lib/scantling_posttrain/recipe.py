"""A run of a framework, and what all frameworks are told of a post-training design."""

from collections.abc import Mapping
from json import dumps
from typing import Any, NamedTuple

from scantling.base.errors import DesignError
from scantling.design.design import Design
from scantling.design.methods import untuned
from scantling.plans.prepare import prepare

from .answering import posttrain
from .posttrained import Posttrained

PORT = 29500  # of the first node, where the others meet: torchrun's usual one
RAY_PORT = 6379  # Ray's usual one
ALPHA = 2  # lora_alpha over rank: the usual one of torchtune's recipes
PROMPT_ROOM = 8  # times the mean prompt that the longest one may have: longer ones are dropped
# policies that train and sample in bf16
SIXTEEN_BIT: Mapping[str, Any] = {
    "job.precision": "bf16",
    "plan.precision": None,
    "job.rollout.precision": "bf16",
}
# a model that data-parallel ranks alone split, trained in bf16; None: follows from the rest
UNSPLIT: Mapping[str, Any] = {
    **{f"plan.{axis}": 1 for axis in ("tp", "pp", "cp", "ep", "vpp")},
    **dict.fromkeys(f"plan.{axis}" for axis in ("dp", "etp", "schedule", "layer_split", "layout")),
    "plan.precision": None,
    "job.precision": "bf16",
}


class Recipe(NamedTuple):
    """A run of a framework."""

    command: str  # what starts it, without its settings
    settings: Mapping[str, str]
    gaps: tuple[str, ...]  # what the framework has no words for, or the design no value
    changes: tuple[str, ...]  # what the design states, and the framework does in its place
    result: Posttrained  # of the plan that the settings have


def planned(design: Design, pins: Mapping[str, Any]) -> Posttrained:
    """The answer to a design with what a framework has no other way of. Raises DesignError where no
    plan is left."""
    result = posttrain(design.change(pins))
    if result.plan is None:
        raise DesignError("design", result.verdict, problem="holds no plan: see its limits")
    return result


def changed(design: Design, pins: Mapping[str, Any]) -> tuple[str, ...]:
    """What a design states, and a framework does in its place."""
    out = []
    for path, value in pins.items():
        section, _, name = path.rpartition(".")
        stated: Any = design.data()
        for step in section.split("."):
            stated = stated.get(step, {}) if isinstance(stated, dict) else {}
        stated = stated.get(name) if isinstance(stated, dict) else None
        if stated not in (None, value):
            instead = "it follows from the rest" if value is None else dumps(value)
            out.append(f"{path} is {dumps(stated)}, here {instead}")
    return (*out,)


def taken(result: Posttrained, field: str) -> Any:
    """What a design that says nothing of a field is taken to say."""
    return next(one.value for one in result.assumed if one.field == field)


def prompt_tokens(result: Posttrained) -> int:
    """Mean tokens of a prompt: as stated, else as assumed."""
    spec = result.design.job.rollout
    if spec is not None and spec.mean_prompt is not None:
        return round(spec.mean_prompt)
    return int(round(taken(result, "job.rollout.mean_prompt")))


def machine(design: Design) -> tuple[int, int]:
    """(nodes, devices of a node)."""
    cluster = prepare(untuned(design)).cluster
    each = min(cluster.devices, cluster.devices_per_node)
    return -(-cluster.devices // each), each


def packed(result: Posttrained) -> bool:
    """Whether samples are packed: as stated, else as assumed."""
    data = result.design.job.data
    return data is None or data.packed is not False


def row_tokens(result: Posttrained) -> int:
    """Tokens of a row that samples are packed into, or of the longest one."""
    stated = result.design.job.seq_len
    return stated if stated is not None else int(taken(result, "job.seq_len"))


def rank_of(result: Posttrained) -> int:
    """Rank of the adapters."""
    spec = result.design.job.adapter
    return spec.rank if spec and spec.rank else int(taken(result, "job.adapter.rank"))


def targets_of(result: Posttrained) -> list[str]:
    """Projections that have adapters, in the words of a design."""
    spec = result.design.job.adapter
    named: list[str] = (spec and spec.targets) or taken(result, "job.adapter.targets")
    return named


def ray_cluster(nodes: int) -> tuple[str, ...]:
    """What stands before a run on several nodes."""
    if nodes == 1:
        return ()
    head, others = f"ray start --head --port={RAY_PORT}", f"ray start --address=$HEAD:{RAY_PORT}"
    return (f"a Ray cluster of {nodes} nodes: {head} on this one, {others} on the others, first",)


def repeated(result: Posttrained) -> tuple[str, ...]:
    """What a framework that recomputes all layers or none does otherwise than the plan."""
    plan = result.plan or {}
    layers = plan.get("recompute_layers")
    if plan["recompute"] == "none" or not layers:
        return ()
    if layers * plan["pp"] >= prepare(untuned(result.design)).model.layers:
        return ()
    return (f"plan.recompute_layers {layers}: every layer is recomputed",)


def texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as they are written on a command line."""
    return {name: str(value) for name, value in settings.items()}
