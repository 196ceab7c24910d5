"""The dimensions of models as tables of runs have them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..blocks.block_table import Shape
from ..catalogue.models.shape import Model, make_shape
from ..catalogue.models.sizing import MLA
from .run_table import Table, is_blank

SHAPE = {  # field of a model: column of the tables
    "layers": "layers",
    "hidden": "hidden",
    "ffn_hidden": "ffn_hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "vocab": "vocab",
    "moe_layers": "moe_layers",
    "mtp_layers": "mtp_layers",
    "experts": "moe_experts",
    "top_k": "moe_topk",
    "expert_ffn_hidden": "moe_ffn_hidden",
    "shared_ffn_hidden": "moe_shared_ffn_hidden",
}
WORDS = ("mlp", "attention", "tied_embeddings", "moe_layout", "source")
DETAIL = "model."  # columns of what a model's own code adds to its dimensions
DETAILS: dict[str, int | str] = {  # field of a model: its default
    f.name: f.default
    for f in fields(Model)
    if f.name not in {*SHAPE, *WORDS} and isinstance(f.default, (int, str))
}


def columns_of(model: Model) -> dict[str, Any]:
    """The columns of a row that runs a model of the catalogue or of a config."""
    values = vars(model)
    row = {column: values[name] for name, column in SHAPE.items()}
    row["mlp"] = model.mlp
    row["attention"] = model.attention
    row["seq_len"] = model.seq_len
    row["tied_embeddings"] = int(model.tied_embeddings)
    row["dense_ffn_hidden_in_moe_model"] = model.ffn_hidden if model.moe_layers else np.nan
    return row | {DETAIL + name: values[name] for name in DETAILS}


def shape_of(f: Table) -> Shape:
    """The shapes of the rows of a table."""
    counts = {name: np.nan_to_num(f.numbers(c)).astype(np.int64) for name, c in SHAPE.items()}
    mla = f["attention"] == "mla"
    details: dict[str, Any] = {name: size * mla for name, size in MLA.items()}
    for name, default in DETAILS.items():
        column = DETAIL + name
        if column in f:
            values = f.text(column) if isinstance(default, str) else f.numbers(column)
            usual = details.get(name, default)
            details[name] = np.where(is_blank(values), usual, values).astype(
                str if isinstance(default, str) else np.int64
            )
    return make_shape(
        **counts,
        **details,
        mlp=f["mlp"].astype(str),
        attention=f["attention"].astype(str),
        tied_embeddings=f.numbers("tied_embeddings") > 0,
    )
