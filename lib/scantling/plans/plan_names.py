"""Plans in names and in a few words, as every table and line of text shows them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from ..base.columns import Array
from ..base.records import take
from ..base.show import several
from ..catalogue.models.shape import Model
from ..catalogue.words import (
    CP_TYPES,
    DEGREES,
    LAYER_SPLITS,
    OFFLOADS,
    RECOMPUTES,
    SCHEDULES,
    SHARDINGS,
    Axis,
    Offload,
    Recompute,
    RecomputeModule,
    Sharding,
)
from ..design.resolved import Phase
from ..physics.cases import Plan, accumulated


class PlanRow(TypedDict):
    """A plan as plain values, in the keys and the order of `design --json`."""

    tp: int
    cp: int
    pp: int
    vpp: int
    dp: int
    ep: int
    etp: int
    sp: bool
    sharding: str
    shard_group: int  # ranks; 0 where the state is not sharded in groups
    schedule: str
    micro_batch: int  # sequences
    grad_accum: int  # micro-batches of a step
    recompute: str
    recompute_modules: Sequence[str]
    recompute_layers: int  # of a stage
    layer_split: str
    layout: list[list[int]]  # runs of layers where they are not the framework's own
    cp_type: str
    offload: str
    precision: str


# fields of a plan whose columns are codes, and the words that these stand for
CODED = {
    "sharding": SHARDINGS,
    "schedule": SCHEDULES,
    "recompute": RECOMPUTES,
    "cp_type": CP_TYPES,
    "offload": OFFLOADS,
    "layer_split": LAYER_SPLITS,
}
KEYS = tuple(PlanRow.__annotations__)


def named(
    plan: Plan, n: int, global_batch: int, words_of: Callable[[Sequence[str]], Any] = np.array
) -> dict[str, Array]:
    """Plan columns of n rows, words instead of codes, with the micro-batches of a step. words_of :
    makes the array that words are picked from."""
    at = {name: np.broadcast_to(np.asarray(column), n) for name, column in vars(plan).items()}
    out = {degree: at[degree].astype(int) for degree in DEGREES}
    out["sp"] = at["sp"] > 0
    for name, words in CODED.items():
        out[name] = words_of(words)[at[name].astype(int)]
    out["recompute_share"] = np.where(at["recompute"] > 0, at["recompute_share"], 0.0)
    out["shard_group"] = at["shard_group"].astype(int)
    out["micro_batch"] = at["micro_batch"].astype(int)
    steps = accumulated(global_batch, out["dp"], out["micro_batch"])
    out["grad_accum"] = np.asarray(steps).astype(int)
    return out


def plan_at(plan: Plan, i: int) -> Plan:
    """Row i of plan columns as scalars."""
    row = take(plan, i)
    return replace(row, **{k: np.asarray(v).item() for k, v in vars(row).items()})


def as_dict(
    plan: Plan,
    i: int,
    model: Model,
    phase: Phase,
    modules: Sequence[str] = (),
    bounds: Iterable[int] = (),
) -> PlanRow:
    """One row of plan columns as plain values, in the keys of the assessment; `bounds` of the runs
    of layers, where they are not the framework's own."""
    columns = named(plan_at(plan, i), 1, phase.global_batch)
    at = {name: column[0].item() for name, column in columns.items()}
    runs = [[*pair] for pair in pairwise(bounds)]
    stage_layers = -(-model.layers // at["pp"])
    return PlanRow(
        tp=at["tp"],
        cp=at["cp"],
        pp=at["pp"],
        vpp=at["vpp"],
        dp=at["dp"],
        ep=at["ep"],
        etp=at["etp"],
        sp=at["sp"],
        sharding=at["sharding"],
        shard_group=at["shard_group"],
        schedule=at["schedule"],
        micro_batch=at["micro_batch"],
        grad_accum=at["grad_accum"],
        recompute=at["recompute"],
        recompute_modules=modules,
        recompute_layers=round(at["recompute_share"] * stage_layers),
        layer_split="balanced" if runs else "even",
        layout=runs,
        cp_type=at["cp_type"],
        offload=at["offload"],
        precision=phase.precision,
    )


def degrees_of(plan: PlanRow) -> dict[str, int]:
    """The ways of each axis of a plan."""
    return {
        Axis.TP: plan["tp"],
        Axis.CP: plan["cp"],
        Axis.PP: plan["pp"],
        Axis.VPP: plan["vpp"],
        Axis.DP: plan["dp"],
        Axis.EP: plan["ep"],
        Axis.ETP: plan["etp"],
    }


def fields_of_plan(plan: PlanRow, names: Iterable[str]) -> dict[str, Any]:
    """Fields of a plan by name."""
    values: Mapping[str, Any] = {**plan}
    return {name: values[name] for name in names}


def of_modules(plan: Mapping[str, Any]) -> str:
    """Of which modules a plan recomputes; nothing where the stack's own say it."""
    modules = [module for module in plan["recompute_modules"] if module != RecomputeModule.LAYERS]
    return f" of {' and '.join(modules)}" if modules else ""


def sharding_word(sharding: str) -> str:
    """What data parallelism shares, as it stands among other words of a plan."""
    return "no sharding" if sharding == Sharding.NONE else sharding


def short(plan: PlanRow) -> str:
    """A plan in a few words: tp 8 · pp 16 · dp 128 · zero1 · full recompute of 2 layers a stage, or
    selective recompute of norm and mlp_act."""
    always = (Axis.TP, Axis.PP, Axis.DP)
    words = [f"{k} {ways}" for k, ways in degrees_of(plan).items() if ways > 1 or k in always]
    words += [sharding_word(plan["sharding"]), f"micro-batch {plan['micro_batch']}"]
    if plan["recompute"] == Recompute.FULL:
        words.append(f"full recompute of {several(plan['recompute_layers'], 'layer')} a stage")
    elif plan["recompute"] != Recompute.NONE:
        words.append(f"{plan['recompute']} recompute{of_modules(plan)}")
    if plan["offload"] != Offload.NONE:
        words.append(f"offload {plan['offload']}")
    return " · ".join(words)


def pins_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plan, as plain values or as words of a table, that a design file takes as
    pins."""
    pins: dict[str, Any] = {name: int(float(plan[name])) for name in (*DEGREES, "micro_batch")}
    for name in ("sharding", "schedule", "recompute", "offload"):
        pins[name] = plan[name]
    pins["sp"] = str(plan["sp"]) in ("True", "true", "1")
    if plan.get("recompute_layers") and pins["recompute"] != Recompute.NONE:
        pins["recompute_layers"] = int(float(plan["recompute_layers"]))
    if isinstance(plan.get("recompute_modules"), list) and plan["recompute_modules"]:
        pins["recompute_modules"] = plan["recompute_modules"]
    if plan.get("shard_group") and pins["sharding"] == Sharding.HSDP:
        pins["shard_group"] = int(float(plan["shard_group"]))
    if isinstance(plan.get("layout"), list) and plan["layout"]:
        pins["layout"] = plan["layout"]
    if pins["tp"] == 1:
        del pins["sp"]
    if pins["ep"] == pins["etp"] == 1:
        del pins["ep"], pins["etp"]
    return pins
