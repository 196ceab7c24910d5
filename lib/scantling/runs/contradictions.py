"""What a table of runs states that does not add up: degrees against devices, and the laws of plans.

Only what a row states is held against it; a blank contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ..base.columns import Array
from ..catalogue.words import CP_TYPES, SHARDINGS
from ..plans.laws import LAWS, Setting, Stage
from .run_table import Table

DEGREES = ("tp", "pp", "cp", "ulysses_sp", "dp")
PLAN = ("tp", "pp", "cp", "dp", "ep", "etp", "sp", "vpp", "micro_batch", "shard_group")
MANY = 1e12  # in the place of a blank count, so that it limits nothing
WORD_AXES = {"sharding": SHARDINGS, "cp_type": CP_TYPES}


def contradictions(table: Table) -> list[str]:
    """What does not add up in each row, "" where it does."""
    return [devices or law for devices, law in zip(unlike_devices(table), broken_laws(table))]


def unlike_devices(table: Table) -> list[str]:
    """Degrees whose product is not the devices of the row, or does not divide them."""
    stated = {name: np.nan_to_num(table.numbers(name)) for name in DEGREES}
    devices = np.nan_to_num(table.numbers("n_devices"))
    texts = []
    for row in range(len(table)):
        degrees = {n: int(column[row]) for n, column in stated.items() if column[row] > 0}
        texts.append(product_against(degrees, int(devices[row])))
    return texts


def product_against(degrees: Mapping[str, int], devices: int) -> str:
    """Why these degrees cannot fill so many devices; "" where they can, or devices are not stated.
    A context parallel degree that is blank is 1."""
    if "cp" in degrees and "ulysses_sp" in degrees:  # two names of one axis
        less = min(("cp", "ulysses_sp"), key=lambda name: degrees[name])
        degrees = {name: n for name, n in degrees.items() if name != less}
    product = prod(degrees.values())
    words = " x ".join(f"{name} {n:,}" for name, n in degrees.items())
    if not devices or not {"tp", "pp"} <= degrees.keys():
        return ""
    if "dp" in degrees and product != devices:
        return f"{words} is {product:,} devices, n_devices is {devices:,}"
    if devices % product:
        return f"{words} is {product:,}, which does not divide n_devices {devices:,}"
    return ""


def broken_laws(table: Table) -> list[str]:
    """The first law of plans that each row breaks by what it states; "" where it keeps them."""
    plan, is_stated = plan_of(table)
    setting = setting_of_rows(table)
    texts = np.full(len(table), "", object)
    for law in reversed(LAWS):
        if law.stage is Stage.EXCHANGE or not law.reads <= plan.keys():
            continue  # of exchanges each stack has its own
        read = np.all([is_stated[name] for name in law.reads], axis=0)
        broken = read & ~np.broadcast_to(law.holds(plan, setting), len(table))
        texts[broken] = f"{law.field}: {law.text} ({law.source})"
    return texts.tolist()


def plan_of(table: Table) -> tuple[dict[str, Array], dict[str, Array]]:
    """The axes of plans as columns, 1 where blank, and where each is stated."""
    plan = {}
    is_stated = {}
    for name in PLAN:
        column = table.numbers(name)
        is_stated[name] = column >= (0 if name == "sp" else 1)
        plan[name] = np.where(is_stated[name], np.minimum(column, MANY), 1.0)
    exchanged = np.nan_to_num(table.numbers("ulysses_sp"))
    plan["cp"] = np.maximum(plan["cp"], np.clip(exchanged, 1.0, MANY))
    for name, words in WORD_AXES.items():
        column = table.text(name)
        is_stated[name] = np.isin(column.astype(str), words)
        codes = {word: code for code, word in enumerate(words)}
        plan[name] = np.array([codes.get(word, 0) for word in column])
    return plan, is_stated


def setting_of_rows(table: Table) -> Setting:
    """What the plan of each row has to suit, by what it states: blanks forbid nothing."""

    def stated(name: str, blank: float | Array) -> Array:
        column = table.numbers(name)
        return np.where(column > 0, np.minimum(column, MANY), blank)

    heads = stated("heads", 0.0)
    devices = stated("n_devices", MANY)
    return Setting(
        layers=stated("layers", MANY),
        heads=heads,
        kv_heads=np.where(table.numbers("kv_heads") > 0, table.numbers("kv_heads"), heads),
        latent=table.text("attention") == "mla",
        state_split=0,
        state_swapped=0,
        ffn_hidden=stated("ffn_hidden", 0.0),
        shared_ffn_hidden=stated("moe_shared_ffn_hidden", 0.0),
        experts=stated("moe_experts", stated("ep", 1.0)),  # blank: unknown
        expert_ffn_hidden=stated("moe_ffn_hidden", 0.0),
        seq_len=stated("seq_len", 0.0),
        global_batch=stated("global_batch_seqs", 0.0),
        devices=devices,
        sites=1,
        smallest_site=devices,
        shares=1,
    )
