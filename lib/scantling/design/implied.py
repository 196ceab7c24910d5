"""Pins of a plan that other words of recipes mean: layers that are named, groups of replicas, the
compiler's memory budget, the format of the moments."""

from collections.abc import Mapping
from typing import Any

from ..base.errors import DesignError
from ..catalogue.words import Moments, Recompute, RecomputeModule, Sharding

# of Adam, by the format of its moments
WITH_MOMENTS: Mapping[str, str] = {
    Moments.FP32: "adamw",
    Moments.BF16: "adamw-bf16",
    Moments.INT8: "adamw-8bit",
}


def implied(stated: Mapping[str, Any], layers: int, devices: int) -> dict[str, Any]:
    """The pins of a plan of so many layers on so many devices, with those that its words mean.
    Raises DesignError for words that contradict each other."""
    pins = dict(stated)
    pins |= _budget(pins)
    pins |= _named_layers(pins, layers)
    pins |= _outer_groups(pins, devices)
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
