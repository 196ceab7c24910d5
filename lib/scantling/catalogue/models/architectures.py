"""Decoder-only architectures of the transformers library: the records that architectures.yaml
fills, one entry what the library's code builds from a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Flag(NamedTuple):
    """A switch read from the file, and the class's value where the file leaves it out."""

    field: str
    default: bool = False


class Refusal(NamedTuple):
    """A field whose value must be among those that are understood, and why others are not."""

    field: str
    understood: tuple
    why: str


@dataclass(
    frozen=True,
    kw_only=True,
)
class Moe:
    """Where the expert fields are and which layers are MoE."""

    where: str  # all | first-k | sparse-step | interleave | start-interval
    experts: tuple[str, ...] = ("num_local_experts", "num_experts")
    top_k: tuple[str, ...] = ("num_experts_per_tok",)
    width: tuple[str, ...] = ("moe_intermediate_size",)
    dense: tuple[str, ...] = (
        "intermediate_size",
    )  # the dense layers' width; () where there are none
    shared: str = ""  # "count:FIELD" x expert width, "width:FIELD", "one" expert width, "" none
    shared_gate: bool = False
    first_k: int | None = None  # class value of first_k_dense_replace


@dataclass(
    frozen=True,
    kw_only=True,
)
class Architecture:
    """One entry; names of fields are tried in their order."""

    model_type: str
    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    kv_heads: tuple[str, ...] = ("num_key_value_heads",)
    kv_rule: str = (
        "required"  # where missing: required | heads | multi-query | falcon | equal (never a field)
    )
    head_dim: tuple[str, ...] = ("head_dim",)
    head_dim_class: int = 0  # class value; 0: hidden / heads
    ffn: tuple[str, ...] = ("intermediate_size",)
    ffn_multiple: int = 0  # width = this x hidden where the file names none
    vocab: tuple[str, ...] = ("vocab_size",)
    seq_len: tuple[str, ...] = ("max_position_embeddings",)
    class_dimensions: tuple[
        tuple[str, int], ...
    ] = ()  # dimensions its publisher's files leave to the class
    tied: bool = False
    gated: bool = True
    activation: tuple[str, ...] = ("hidden_act", "hidden_activation", "activation_function")
    activation_class: str = "silu"
    norms: int = 2
    norm_bias: bool | Flag = False
    no_norm_weights: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: str = ""  # head | width
    qk_norm_flag: Flag | None = None  # where the file switches it on
    qkv_bias: bool | Flag = False
    out_bias: bool | Flag = False
    mlp_bias: bool | Flag = False
    expert_bias: bool = False
    router_bias: bool = False
    head_bias: bool | Flag = False
    sinks: bool = False
    positions: tuple[str, ...] = ()  # rows of the learned position table
    positions_extra: int = 0
    parallel: bool | Flag = False  # attention and MLP side by side
    mla: bool = False
    router_buffers: bool = False
    moe: Moe | None = None
    window: str = ""  # all | qwen | every-N (every N-th layer attends to everything) | chunk
    window_field: str = "sliding_window"
    window_class: int = 0
    mtp: tuple[str, ...] = ("num_nextn_predict_layers",)
    refuse: tuple[Refusal, ...] = ()


@dataclass(
    frozen=True,
    kw_only=True,
)
class Composite:
    """A multimodal config: its language part, and whose tie_word_embeddings the library heeds
    (whole, part or either)."""

    text: str = ""  # architecture of the language part where the part does not name it
    tie_read_from: str = "either"
    tied: bool = False  # where no heeded place says
    part: str = "text_config"


class Tables(NamedTuple):
    """What architectures.yaml holds, by model type."""

    architectures: dict[str, Architecture]
    composites: dict[str, Composite]
    refused: dict[str, str]  # and what it is instead


@cache
def tables() -> Tables:
    """The rows of architectures.yaml."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    read: dict[str, Architecture] = {}
    for model_type, row in data["architectures"].items():
        base = read[row.pop("like")] if "like" in row else Architecture(model_type=model_type)
        changes = {name: _value(name, value) for name, value in row.items()}
        read[model_type] = replace(
            base,
            model_type=model_type,
            **changes,
        )
    return Tables(
        read,
        {model_type: Composite(**row) for model_type, row in data["composites"].items()},
        {model_type: why for why, names in data["refused"].items() for model_type in names},
    )


_FLAGS = {f.name for f in fields(Architecture) if "Flag" in str(f.type)}


def _value(name: str, value: Any) -> Any:
    """A cell of the file as the field that it fills."""
    if name == "moe":
        return Moe(**{k: _value(k, v) for k, v in value.items()})
    if name == "refuse":
        return tuple(Refusal(**{k: _value(k, v) for k, v in row.items()}) for row in value)
    if name in _FLAGS and isinstance(value, str):
        return Flag(value)
    if isinstance(value, Mapping):
        pairs = tuple(value.items())
        return Flag(*pairs[0]) if name in _FLAGS else pairs
    return tuple(value) if isinstance(value, list) else value
