"""The dimensions of a model, or of a column of models, as its blocks read them."""

from typing import Any

import numpy as np

from ...base.columns import Array, Column
from ...base.records import Lines, record

GATED = ("swiglu", "geglu")  # three matrices: gate, up, down
Names = str | Array  # a word, or a column of them


@record
class Dimensions:
    """The fields of `Model` that a count depends on, each a number or a column [n], and what
    follows from them."""

    layers: Column
    hidden: Column
    ffn_hidden: Column
    heads: Column
    kv_heads: Column
    head_dim: Column
    vocab: Column
    mlp: Names
    attention: Names
    qk_norm: Names
    attention_gate: Names
    mixers: Names
    pattern: Names
    mtp_pattern: Names
    tied_embeddings: Column
    experts: Column
    top_k: Column
    expert_ffn_hidden: Column
    shared_ffn_hidden: Column
    moe_layers: Column
    mtp_layers: Column
    mtp_repeats: Column
    q_lora: Column
    kv_lora: Column
    qk_nope: Column
    qk_rope: Column
    v_head_dim: Column
    window: Column
    windowed_layers: Column
    chunks: Column
    norms_per_layer: Column
    norm_bias: Column
    final_norm: Column
    embedding_norm: Column
    position_rows: Column
    extras: Column
    extra_products: Column
    relative_positions: Column
    qkv_bias: Column
    out_bias: Column
    mlp_bias: Column
    expert_bias: Column
    router_bias: Column
    head_bias: Column
    sinks: Column
    window_sinks: Column
    shared_gate: Column
    parallel_block: Column
    router_buffers: Column
    window_heads: Column
    window_kv_heads: Column
    window_head_dim: Column
    v_dim: Column
    shared_kv: Column
    state_size: Column
    ssm_heads: Column
    ssm_head_dim: Column
    groups: Column
    gated_norm: Column
    inner_norms: Column
    conv: Column
    conv_bias: Column
    proj_bias: Column
    dt_rank: Column
    d_inner: Column
    chunk: Column
    lin_k_heads: Column
    lin_v_heads: Column
    lin_k_dim: Column
    lin_v_dim: Column
    full_decay: Column
    full_gates: Column
    lru_width: Column
    index_heads: Column
    index_dim: Column
    index_topk: Column
    o_lora: Column
    o_groups: Column
    hyper_connections: Column
    hyper_mixed: Column
    latent: Column
    latent_norm: Column
    zero_experts: Column
    router_scales: Column
    memory_blocks: Column
    adapter_rank: Column
    attention_adapter: Column

    @property
    def norm(self) -> Column:
        """Weights of one norm of the stream."""
        return self.hidden * (1 + self.norm_bias)

    @property
    def layer_norms(self) -> Column:
        """Weights of the norms of a layer."""
        return self.norms_per_layer * self.norm

    @property
    def final_norms(self) -> Column:
        """Weights of the norm before the head."""
        return self.final_norm * self.norm

    @property
    def embedding_norms(self) -> Column:
        """Weights of the norm behind the embedding."""
        return self.embedding_norm * self.norm

    @property
    def matrices(self) -> Column:
        """Matrices of an MLP."""
        return 2 + flag(self.mlp, GATED)

    @property
    def latent_attention(self) -> Column:
        """1 where attention is multi-head latent attention."""
        return flag(self.attention, ("mla",))

    @property
    def head_norm(self) -> Column:
        return flag(self.qk_norm, ("head",)) * (1 + self.norm_bias)

    @property
    def width_norm(self) -> Column:
        return flag(self.qk_norm, ("width",))

    @property
    def head_gate(self) -> Column:
        return flag(self.attention_gate, ("head",))

    @property
    def width_gate(self) -> Column:
        return flag(self.attention_gate, ("width",))

    @property
    def local_heads(self) -> Column:
        """Heads of the layers with a window."""
        return first_positive(self.window_heads, self.heads)

    @property
    def local_kv_heads(self) -> Column:
        return first_positive(self.window_kv_heads, self.kv_heads)

    @property
    def local_head_dim(self) -> Column:
        return first_positive(self.window_head_dim, self.head_dim)

    @property
    def local_sinks(self) -> Column:
        return self.sinks + (1 - self.sinks) * self.window_sinks


def flag(value: Names, among: Lines) -> Column:
    """1 where a word is among these, else 0."""
    if isinstance(value, str):
        return int(value in among)
    return np.isin(np.asarray(value), among).astype(np.int64)


def first_positive(value: Column, usual: Column) -> Column:
    """The own number where there is one above 0, else the usual one."""
    return usual + (value > 0) * (value - usual)


def number(value: Any) -> Any:
    """A field as a number: 0 for None and nan, 1 for true."""
    if value is None:
        return 0
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.nan_to_num(value)
    return value * 1
