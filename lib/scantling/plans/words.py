"""Plans in names and in a few words, as every table and line of text shows them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..catalogue.words import CP_TYPES, LAYER_SPLITS, OFFLOADS, RECOMPUTES, SHARDINGS
from ..physics.cases import Plan, accumulated
from ..physics.pipeline import SCHEDULE_NAMES

NAMES = {
    "sharding": SHARDINGS,
    "schedule": SCHEDULE_NAMES,
    "recompute": RECOMPUTES,
    "cp_type": CP_TYPES,
    "offload": OFFLOADS,
    "layer_split": LAYER_SPLITS,
}
DEGREES = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp")
KEYS = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sp",
    "sharding",
    "shard_group",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "recompute_modules",
    "recompute_layers",
    "layer_split",
    "layout",
    "cp_type",
    "offload",
    "precision",
)


def named(plan: Plan, n: int, global_batch: int) -> dict:
    """Plan columns of n rows, words instead of codes, with the micro-batches of a step."""
    at = {k: np.broadcast_to(np.asarray(v), n) for k, v in vars(plan).items()}
    out = {k: at[k].astype(int) for k in DEGREES} | {"sp": at["sp"] > 0}
    out |= {name: np.array(words)[at[name].astype(int)] for name, words in NAMES.items()}
    out["recompute_share"] = np.where(at["recompute"] > 0, at["recompute_share"], 0.0)
    out |= {k: at[k].astype(int) for k in ("shard_group", "micro_batch")}
    steps = accumulated(global_batch, out["dp"], out["micro_batch"])
    out["grad_accum"] = steps.astype(int)
    return out


def one(plan: Plan, i: int) -> Plan:
    """Row i of plan columns as scalars."""
    n = np.shape(plan.tp)
    return replace(plan, **{k: np.broadcast_to(v, n)[i].item() for k, v in vars(plan).items()})


def as_dict(plan: Plan, i: int, model, phase, modules=(), bounds=()) -> dict:
    """One row of plan columns as plain values, in the keys of the assessment; `bounds` of the runs
    of layers, where they are not the framework's own."""
    row = {k: v[0].item() for k, v in named(one(plan, i), 1, phase.global_batch).items()}
    row["recompute_layers"] = round(row["recompute_share"] * -(-model.layers // row["pp"]))
    row["layout"] = [[*pair] for pair in pairwise(bounds)]
    row["layer_split"] = "balanced" if bounds else "even"
    row["precision"], row["recompute_modules"] = phase.precision, modules
    return {k: row[k] for k in KEYS}


def short(plan: dict) -> str:
    """A plan in a few words: tp 8 · pp 16 · dp 128 · zero1 · full recompute of 2 layers a stage."""
    words = [f"{k} {plan[k]}" for k in DEGREES if plan[k] > 1 or k in ("tp", "pp", "dp")]
    words += [plan["sharding"], f"micro-batch {plan['micro_batch']}"]
    if plan["recompute"] != "none":
        n = plan["recompute_layers"]
        words.append(
            f"{plan['recompute']} recompute"
            + (f" of {n} layer{'s' * (n != 1)} a stage" if plan["recompute"] == "full" else "")
        )
    words += [f"offload {plan['offload']}"] if plan["offload"] != "none" else []
    return " · ".join(words)


def pins_of(plan: dict) -> dict:
    """The fields of a plan, as plain values or as words of a table, that a design file takes as
    pins."""
    pins = {k: int(float(plan[k])) for k in (*DEGREES, "micro_batch")}
    pins |= {k: plan[k] for k in ("sharding", "schedule", "recompute", "offload")}
    pins["sp"] = str(plan["sp"]) in ("True", "true", "1")
    more = {"recompute_layers": "recompute", "shard_group": "sharding"}
    pins |= {k: int(float(plan[k])) for k, of in more.items() if plan.get(k) and pins[of] != "none"}
    if isinstance(plan.get("layout"), list) and plan["layout"]:
        pins["layout"] = plan["layout"]
    dense = pins["ep"] == pins["etp"] == 1
    idle = {
        "sp": pins["tp"] == 1,
        "ep": dense,
        "etp": dense,
        "shard_group": pins["sharding"] != "hsdp",
    }
    return {k: v for k, v in pins.items() if not idle.get(k)}
