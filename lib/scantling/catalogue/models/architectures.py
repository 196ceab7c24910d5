"""What the transformers library's code builds from a config, by architecture: the records of the
tables beside this module."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from ...base.records import Lines, record
from .hf_reader import Flag, Reader


class KvHeads(StrEnum):
    """What a file without key-value heads means."""

    REQUIRED = "required"
    AS_HEADS = "as heads"
    MULTI_QUERY = "multi-query"  # one, unless the file says otherwise


class FfnRule(StrEnum):
    """What the code makes of the width of the MLP."""

    PLAIN = "plain"
    HALF = "half"
    LFM2 = "lfm2"
    XLSTM = "xlstm"


class Sliding(StrEnum):
    """Which layers' attention slides over a window, where the file does not list them."""

    NONE = "none"
    ALL = "all"
    QWEN = "qwen"  # those from max_window_layers on, where it is switched on
    EVERY = "every"  # all but every n-th
    CHUNK = "chunk"  # those with rotary positions, inside chunks


class Refusal(NamedTuple):
    """A field whose value must be among those that are understood, and why others are not."""

    field: str
    understood: tuple[Any, ...]
    why: str
    same_as: str = ""  # field whose value is understood too


class Every(NamedTuple):
    """Every so many layers have another block."""

    field: str  # of the period
    period: int  # the class's value
    offset: str  # field of the first; "": the last of each period
    block: str


class BlockSizes(TypedDict, total=False):
    """Fields of `Model` that a hybrid's blocks have."""

    state_size: int
    ssm_heads: int
    ssm_head_dim: int
    groups: int
    gated_norm: bool
    inner_norms: bool
    conv: int
    conv_bias: bool
    proj_bias: bool
    dt_rank: int
    d_inner: int
    chunk: int
    lin_k_heads: int
    lin_v_heads: int
    lin_k_dim: int
    lin_v_dim: int
    full_decay: bool
    full_gates: bool
    lru_width: int
    q_lora: int
    o_lora: int
    o_groups: int
    index_heads: int
    index_dim: int
    index_topk: int
    hyper_connections: int
    hyper_mixed: bool
    latent: int
    zero_experts: int
    router_scales: bool
    memory_blocks: int
    adapter_rank: int
    attention_adapter: bool
    attention_gate: str
    shared_kv: bool
    v_dim: int
    window_heads: int
    window_kv_heads: int
    window_head_dim: int
    window_sinks: bool
    mtp_repeats: int


@record
class Experts:
    """Where the expert fields are and which layers are MoE: those `listed`, else every `step`-th
    from `first` to `last`, each the name of a field; all of them where none is named."""

    experts: Lines = ("num_local_experts", "num_experts")
    top_k: Lines = ("num_experts_per_tok",)
    width: Lines = ("moe_intermediate_size",)
    dense: Lines = ("intermediate_size",)  # the dense layers' width; () where there are none
    shared_count: Lines = ()  # shared experts, each as wide as a routed one
    shared_width: str = ""  # of all shared experts together
    shared_one: bool = False  # one shared expert as wide as a routed one
    shared_gate: bool = False
    listed: str = ""
    offset: str = ""  # where every `step`-th starts
    switch: str = ""  # false in the file: no layer is MoE
    parallel_mlp: bool = False  # a dense MLP stands beside the experts
    listed_dense: str = ""
    step: str = ""
    step_class: int = 1  # class value of `step`
    first: str = ""
    first_class: int = 0  # class value of `first`
    last: str = ""
    null_is_dense: bool = False  # experts null: no layer is MoE


class Extras(NamedTuple):
    """Weights of a whole model that no block has: all, and those that multiply every token."""

    weights: int
    products: int = 0


def no_extras(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Of an architecture whose weights are all those of its blocks."""
    return Extras(0)


def no_blocks(r: Reader, hidden: int) -> BlockSizes:
    """Of an architecture that has no blocks of its own."""
    return {}


@record
class Architecture:
    """One entry; names of fields are tried in their order. `..._class` is what the config class has
    where the file says nothing; None: the file has to say it."""

    model_type: str
    layers: Lines = ("num_hidden_layers",)
    hidden: Lines = ("hidden_size",)
    heads: Lines = ("num_attention_heads",)
    heads_class: int | None = None
    kv_heads: Lines = ("num_key_value_heads",)
    kv_heads_class: int | None = None
    kv_rule: KvHeads = KvHeads.REQUIRED
    head_dim: Lines = ("head_dim",)
    head_dim_class: int | None = None  # None: hidden / heads
    head_dim_floor: bool = False  # rounded down where heads do not divide the hidden width
    ffn: Lines = ("intermediate_size",)
    ffn_of_hidden: bool = False  # 4 x hidden where the file says nothing
    ffn_times: str = ""  # field of its width in hidden widths
    ffn_rule: FfnRule = FfnRule.PLAIN
    vocab: Lines = ("vocab_size",)
    vocab_class: int | None = None
    seq_len: Lines = ("max_position_embeddings",)
    tied: bool = False
    tie_heeded: bool = True  # false: the head is its own, whatever the file says
    gated: bool = True
    activation: Lines = ("hidden_act", "hidden_activation", "activation_function")
    activation_class: str = "silu"
    norms: int = 2
    norms_of: Callable[[Reader], int] | None = None  # where the file decides how many
    norm_bias: Flag = False
    norm_zero_centered: bool = False
    gate_offset: float = 0.0  # added to the half that is not gated
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
    positions: Lines = ()  # rows of the learned position table
    positions_extra: int = 0
    parallel: Flag = False  # attention and MLP side by side
    mla: bool = False
    router_buffers: bool = False
    experts: Experts | None = None
    window: Sliding = Sliding.NONE
    whole_every: int = 0  # of `Sliding.EVERY`: every so many layers attend to everything
    window_field: str = "sliding_window"
    window_class: int = 0
    mtp: Lines = ("num_nextn_predict_layers",)
    refuse: tuple[Refusal, ...] = ()
    # of a model whose layers are not all attention and MLP
    mixer: str = ""  # block of the layers that nothing below names, as in `patterns`
    feed: bool = True  # layers end with an MLP or experts; false: each block is a layer
    letters: Lines = ()  # a string of Nemotron's letters, or a list of words
    words: Mapping[str | int, str] = field(default_factory=dict)  # of a list of layers: the block
    word_lists: Lines = ("layer_types", "layers_block_type")
    listed: Mapping[str, str] = field(default_factory=dict)  # field with layer numbers: block
    listed_from: int = 0
    every: Every | None = None
    mtp_letters: Lines = ()
    dimensions: Callable[[Reader, int], BlockSizes] = no_blocks  # of the blocks, from hidden
    no_q_lora: bool = False
    # of the fields of `Model` that have been read
    extras: Callable[[Reader, Mapping[str, Any]], Extras] = no_extras


@record
class Composite:
    """A multimodal config: its language part, and whose tie_word_embeddings the library heeds
    (whole, part or either)."""

    text: str = ""  # architecture of the language part where the part does not name it
    tie_read_from: str = "either"
    tied: bool = False  # where no heeded place says
    part: str = "text_config"
