"""Decoder-only architectures of the transformers library: the records that architectures.yaml
fills, one entry what the library's code builds from a config."""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from math import ceil
from pathlib import Path
from re import findall
from typing import Any, NamedTuple

from ...base.records import Lines, record
from ...base.words import yaml_of

# true, false, the field that switches it on, or {field: what the class has if it is left out}
Flag = bool | str | Mapping[str, bool]
# fields of a dimension in their order; last, where its publisher leaves it out, the class's value
# or what it follows from (`=hidden/heads`)
Sizes = tuple[str | int, ...]


class Refusal(NamedTuple):
    """A field whose value must be among those that are understood, and why others are not."""

    field: str
    understood: tuple  # values, or names of fields that have them
    why: str


@record
class Moe:
    """Where the expert fields are and which layers are MoE: those `listed`, else every `step`-th
    from `first` to `last`, each the name of a field; all of them where none is named."""

    experts: Lines = ("num_local_experts", "num_experts")
    top_k: Lines = ("num_experts_per_tok",)
    width: Lines = ("moe_intermediate_size",)
    dense: Lines = ("intermediate_size",)  # the dense layers' width; () where there are none
    shared: str = ""  # "count:FIELD" x expert width, "width:FIELD", "one" expert width, "" none
    shared_gate: bool = False
    listed: str = ""
    offset: str = ""  # where every `step`-th starts
    switch: str = ""  # false in the file: no layer is MoE
    beside: bool = False  # a dense MLP stands beside the experts
    listed_dense: str = ""
    step: str = ""
    step_class: int = 1  # class value of `step`
    first: str = ""
    first_class: int = 0  # class value of `first`
    last: str = ""
    null_is_dense: bool = False  # experts null: no layer is MoE


@record
class Architecture:
    """One entry; names of fields are tried in their order."""

    model_type: str
    layers: Sizes = ("num_hidden_layers",)
    hidden: Sizes = ("hidden_size",)
    heads: Sizes = ("num_attention_heads",)
    kv_heads: Sizes = ("num_key_value_heads",)
    kv_rule: str = "required"  # where missing: required | heads; multi-query: one unless it says so
    head_dim: Sizes = ("head_dim", "=hidden/heads")
    ffn: Sizes = ("intermediate_size",)
    ffn_rule: str = ""  # what its code makes of the width: half | lfm2
    vocab: Sizes = ("vocab_size",)
    seq_len: Lines = ("max_position_embeddings",)
    tied: bool = False
    gated: bool = True
    activation: Lines = ("hidden_act", "hidden_activation", "activation_function")
    activation_class: str = "silu"
    norms: int = 2
    norm_bias: Flag = False
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: str = ""  # head | width
    qk_norm_flag: str = ""  # where the file switches it on
    qkv_bias: Flag = False
    out_bias: Flag = False
    mlp_bias: Flag = False
    expert_bias: bool = False
    router_bias: bool = False
    head_bias: Flag = False
    sinks: bool = False
    positions: Sizes = ()  # rows of the learned position table
    positions_extra: int = 0
    parallel: Flag = False  # attention and MLP side by side
    mla: bool = False
    router_buffers: bool = False
    moe: Moe | None = None
    window: str = ""  # all | qwen | every-N (every N-th layer attends to everything) | chunk
    window_field: str = "sliding_window"
    window_class: int = 0
    mtp: Lines = ("num_nextn_predict_layers",)
    refuse: tuple[Refusal, ...] = ()
    # of a model whose layers are not all attention and MLP
    mixer: str = ""  # block of the layers that nothing below names, as in `patterns`
    feed: bool = True  # layers end with an MLP or experts; false: each block is a layer
    letters: Lines = ()  # a string of Nemotron's letters, or a list of words
    words: Mapping[Any, str] = field(
        default_factory=dict
    )  # of a list of layers: the block it means
    word_lists: Lines = ("layer_types", "layers_block_type")
    listed: Mapping[str, str] = field(default_factory=dict)  # field with layer numbers: block
    listed_from: int = 0
    every: tuple = ()  # field, class value, field of the offset (or number), block
    mtp_letters: Lines = ()
    sizes: Mapping[str, list] = field(
        default_factory=dict
    )  # field of Model: names, and last the class's value
    fixed: Mapping = field(default_factory=dict)  # fields of Model that the class has alone
    switches: Mapping[str, Flag] = field(default_factory=dict)
    no_q_lora: bool = False


@record
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
    signs: dict[str, str]  # pattern in the name or fields of others: what is missing


@cache
def tables() -> Tables:
    """The rows of architectures.yaml."""
    data = yaml_of(Path(__file__).with_suffix(".yaml"))
    read = {}
    for model_type, row in data["architectures"].items():
        base = read[row.pop("like")] if "like" in row else Architecture(model_type=model_type)
        row |= {k: row[k] and made(row[k]) for k, made in _MADE.items() if k in row}
        read[model_type] = replace(base, **row | {"model_type": model_type})
    return Tables(
        read,
        {model_type: Composite(**row) for model_type, row in data["composites"].items()},
        {model_type: why for why, names in data["refused"].items() for model_type in names},
        data["signs"],
    )


_MADE = {"moe": lambda row: Moe(**row), "refuse": lambda rows: [Refusal(**row) for row in rows]}


def usual_of(names: Sizes) -> tuple:
    """(names of fields, the class's value or what a dimension follows from, where it has one)."""
    *fields, last = names
    named = isinstance(last, str) and last[0] != "="
    return (tuple(names), None) if named else (tuple(fields), last)


def following(rule: str, known) -> int:
    """`=hidden*expand/ssm_heads`: a product of numbers and fields over others, rounded up."""
    value = 1.0
    for sign, word in findall("([=*/])([^*/]+)", rule):
        factor = float(word) if word[0].isdigit() else known[word]
        value = value / max(factor, 1) if sign == "/" else value * factor
    return ceil(value)
