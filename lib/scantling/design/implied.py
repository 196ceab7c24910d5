"""Pins of a plan that other words of recipes mean: layers that are named, groups of replicas, the
compiler's memory budget, modules that graphs capture, the format of the moments."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import DesignError
from ..catalogue.models.shape import Model
from ..catalogue.words import GraphModule, Moments, Recompute, RecomputeModule, Sharding

# of Adam, by the format of its moments
WITH_MOMENTS: Mapping[str, str] = {
    Moments.FP32: "adamw",
    Moments.BF16: "adamw-bf16",
    Moments.INT8: "adamw-8bit",
}

ROUTING_MODULES = {GraphModule.MOE_ROUTER, GraphModule.MOE_PREPROCESS}
OF_EXPERTS = {GraphModule.MOE, *ROUTING_MODULES}


def implied(stated: Mapping[str, Any], model: Model, devices: int) -> dict[str, Any]:
    """The pins of a plan of a model on so many devices, with those that its words mean. Raises
    DesignError for words that contradict each other."""
    pins = dict(stated)
    pins |= _budget(pins)
    pins |= _named_layers(pins, model.layers)
    pins |= _outer_groups(pins, devices)
    pins |= _captured(pins, model)
    _check_experts(pins, model)
    for word in ("recompute_layer_ids", "dp_outer"):
        pins.pop(word, None)
    return pins


def with_moments(optimizer: str | None, moments: str) -> str:
    """The optimizer whose moments have that format; Adam alone keeps them in several. Raises
    DesignError for another."""
    meant = WITH_MOMENTS[moments]
    if optimizer not in (None, WITH_MOMENTS[Moments.FP32], meant):
        raise DesignError(
            "plan.moments",
            moments,
            f"beside job.optimizer {WITH_MOMENTS[Moments.FP32]}, or leave it out",
            problem=f"is no format of the states of {optimizer}",
        )
    return meant


def _alone(pins: Mapping[str, Any], word: str, recompute: str, *others: str) -> dict[str, Any]:
    """Recompute as a word means it. Raises DesignError where another is stated beside it."""
    there = [other for other in others if pins.get(other)]
    if there or pins.get("recompute", recompute) != recompute:
        raise DesignError(
            f"plan.{word}",
            pins[word],
            f"without {' and '.join(('recompute', *others))}",
            problem=f"means recompute {recompute}, and another is stated beside it",
        )
    return {"recompute": recompute}


def _budget(pins: Mapping[str, Any]) -> dict[str, Any]:
    if pins.get("compile_memory_budget") is None:
        return {}
    others = ("recompute_modules", "recompute_layer_ids", "recompute_layers", "remat")
    return _alone(pins, "compile_memory_budget", Recompute.SELECTIVE.value, *others)


def _named_layers(pins: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """Whole layers by their numbers, from 0: as many on each stage, whose layers follow each other
    in chunks. Raises DesignError for other numbers."""
    ids = pins.get("recompute_layer_ids")
    if ids is None:
        return {}
    wrong = DesignError(
        "plan.recompute_layer_ids",
        ids,
        f"numbers of layers, 0 to {layers - 1}, as many on each stage; or recompute_layers",
    )
    numbers = sorted({int(i) for i in ids})
    parts = pins.get("pp", 1) * pins.get("vpp", 1)
    if (
        len(numbers) < len(ids)
        or not numbers
        or not 0 <= numbers[0] <= numbers[-1] < layers
        or layers % parts
    ):
        raise wrong
    of_stage = [0] * pins.get("pp", 1)
    for i in numbers:
        of_stage[i // (layers // parts) % len(of_stage)] += 1
    if len(set(of_stage)) > 1:
        raise wrong
    modules = [m for m in pins.get("recompute_modules") or () if m != RecomputeModule.LAYERS]
    others = ("recompute_modules",) if modules else ()
    pinned = _alone(pins, "recompute_layer_ids", Recompute.FULL.value, *others, "remat")
    return {**pinned, "recompute_layers": of_stage[0], "pp": len(of_stage)}


def _outer_groups(pins: Mapping[str, Any], devices: int) -> dict[str, Any]:
    """Groups of replicas that hold all states each: hsdp over dp x cp / groups ranks."""
    groups = pins.get("dp_outer")
    if groups is None:
        return {}
    ranks = pins.get("dp", 0) * pins.get("cp", 1)
    if not ranks and {"tp", "pp"} <= pins.keys():
        ranks = devices // (pins["tp"] * pins["pp"])
    if not ranks:
        allowed = "beside plan.dp, or plan.tp and plan.pp"
        raise DesignError("plan.dp_outer", groups, allowed, problem="is a share of ranks not said")
    if groups == 1:
        return {}
    inner = ranks // groups
    clash = pins.get("shard_group", inner) != inner
    if ranks % groups or inner < 2 or clash or pins.get("sharding", "hsdp") != Sharding.HSDP:
        allowed = f"a divisor of dp x cp, {ranks}, under hsdp, with shard_group left out"
        raise DesignError("plan.dp_outer", groups, allowed)
    return {"sharding": Sharding.HSDP.value, "shard_group": inner}


def graphs_of(modules: Sequence[str]) -> str:
    """What graphs of these modules hold, by the words of the switch `graphs`."""
    if GraphModule.FULL_ITERATION in modules:
        return "full"
    if not modules:
        return "none"
    return "layer" if set(modules) - ROUTING_MODULES else "router"


def _captured(pins: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Graphs as their modules say. Raises DesignError where `cuda_graphs` says something else,
    where the whole iteration stands beside its parts, and for modules that the model lacks."""
    modules = pins.get("graph_modules")
    if modules is None:
        return {}
    graphs = graphs_of(modules)
    lacks = set() if model.is_moe else OF_EXPERTS
    lacks = lacks if "mamba" in model.pattern else lacks | {GraphModule.MAMBA}
    if graphs == "full" and len(modules) > 1:
        problem, allowed = "names parts beside the whole iteration", "full_iteration alone"
    elif absent := [module for module in modules if module in lacks]:
        problem = f"captures {' and '.join(absent)}, which the model has not"
        allowed = "modules that the model has"
    elif pins.get("cuda_graphs", graphs) != graphs:
        problem = f"means graphs: {graphs}, and plan.cuda_graphs says {pins['cuda_graphs']}"
        allowed = "one of the two"
    else:
        return {"cuda_graphs": graphs}
    raise DesignError("plan.graph_modules", modules, allowed, problem=problem)


def _check_experts(pins: Mapping[str, Any], model: Model) -> None:
    """Raises DesignError for a sharding of experts that there are none of."""
    own = pins.get("expert_sharding")
    if own and not model.is_moe:
        problem = "is said of a model without experts"
        raise DesignError("plan.expert_sharding", own, "a model with experts", problem=problem)


def layers_in_16bit(
    keep: Mapping[str, Any] | None, layers: int, low: bool
) -> tuple[int, int] | None:
    """First and last layers that stay in 16 bit, where a plan says so. Raises DesignError for more
    than the model has, and where products are not in low precision."""
    if keep is None:
        return None
    first, last = keep.get("first", 0), keep.get("last", 0)
    if not low:
        raise DesignError(
            "plan.keep_16bit",
            dict(keep),
            "beside a precision of 8 or 4 bit, such as fp8, mxfp8 or nvfp4, or leave it out",
            problem="keeps layers in 16 bit where all are",
        )
    if first + last > layers:
        raise DesignError(
            "plan.keep_16bit", dict(keep), f"at most {layers} layers together, all of the model"
        )
    return first, last
