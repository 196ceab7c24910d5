"""Decoder-only architectures of the transformers library with a mixture of experts; as in
`architectures_dense`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .architectures import Architecture, Experts, Extras, KvHeads, Refusal, Sliding
from .hf_reader import Reader, Switch

MIXTRAL = Architecture(
    model_type="mixtral",
    window=Sliding.ALL,
    experts=Experts(width=("intermediate_size",), dense=()),
)
PHIMOE = Architecture(
    model_type="phimoe",
    norm_bias=True,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    head_bias=Switch("lm_head_bias"),
    window=Sliding.ALL,
    experts=Experts(width=("intermediate_size",), dense=()),
)
MINIMAX_M2 = Architecture(
    model_type="minimax_m2",
    head_dim_class=128,
    qk_norm="width",
    router_buffers=True,
    mtp=("num_mtp_modules",),
    experts=Experts(width=("intermediate_size",), dense=()),
)
GPT_OSS = Architecture(
    model_type="gpt_oss",
    gate_offset=1.0,
    head_dim_class=64,
    qkv_bias=Switch("attention_bias", usual=True),
    out_bias=Switch("attention_bias", usual=True),
    expert_bias=True,
    router_bias=True,
    sinks=True,
    window=Sliding.EVERY,
    whole_every=2,
    window_class=128,
    experts=Experts(
        top_k=("num_experts_per_tok", "experts_per_token"), width=("intermediate_size",), dense=()
    ),
)
OLMOE = Architecture(
    model_type="olmoe",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=(),
    qk_norm="width",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(width=("intermediate_size",), dense=()),
    refuse=(Refusal("head_dim", (None,), "its q/k norm is sized by hidden / heads"),),
)
GRANITEMOE = Architecture(
    model_type="granitemoe",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(width=("intermediate_size",), dense=()),
)
GRANITEMOESHARED = replace(
    GRANITEMOE,
    model_type="granitemoeshared",
    experts=Experts(
        width=("intermediate_size",), dense=(), shared_width="shared_intermediate_size"
    ),
)
QWEN2_MOE = Architecture(
    model_type="qwen2_moe",
    qkv_bias=Switch("qkv_bias", usual=True),
    window=Sliding.QWEN,
    window_class=4096,
    experts=Experts(
        step="decoder_sparse_step",
        listed_dense="mlp_only_layers",
        experts=("num_experts",),
        shared_width="shared_expert_intermediate_size",
        shared_gate=True,
    ),
)
QWEN3_MOE = Architecture(
    model_type="qwen3_moe",
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    window=Sliding.QWEN,
    window_class=4096,
    experts=Experts(
        step="decoder_sparse_step",
        listed_dense="mlp_only_layers",
        experts=("num_experts", "num_local_experts"),
    ),
)
QWEN3_VL_MOE_TEXT = replace(QWEN3_MOE, model_type="qwen3_vl_moe_text", window=Sliding.NONE)
DEEPSEEK_V2 = Architecture(
    model_type="deepseek_v2",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
    mla=True,
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=0,
    ),
    refuse=(Refusal("moe_layer_freq", (1, None), "experts in every n-th layer"),),
)
DEEPSEEK_V3 = Architecture(
    model_type="deepseek_v3",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mla=True,
    router_buffers=True,
    mtp=("num_nextn_predict_layers", "num_mtp_layers"),
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=3,
    ),
    refuse=(Refusal("moe_layer_freq", (1, None), "experts in every n-th layer"),),
)
GLM4_MOE_LITE = replace(
    DEEPSEEK_V3,
    model_type="glm4_moe_lite",
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=1,
    ),
)
DOTS1 = Architecture(
    model_type="dots1",
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    router_buffers=True,
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=0,
    ),
    refuse=(Refusal("moe_layer_freq", (1, None), "experts in every n-th layer"),),
)
GLM4_MOE = Architecture(
    model_type="glm4_moe",
    head_dim_floor=True,
    qk_norm="head",
    qk_norm_flag="use_qk_norm",
    qkv_bias=Switch("attention_bias"),
    router_buffers=True,
    mtp=("num_nextn_predict_layers", "num_mtp_layers"),
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=1,
    ),
    refuse=(Refusal("moe_layer_freq", (1, None), "experts in every n-th layer"),),
)
ERNIE4_5_MOE = Architecture(
    model_type="ernie4_5_moe",
    tied=True,
    qkv_bias=Switch("use_bias"),
    out_bias=Switch("use_bias"),
    mlp_bias=Switch("use_bias"),
    router_bias=True,
    head_bias=Switch("use_bias"),
    experts=Experts(
        step="moe_layer_interval",
        first="moe_layer_start_index",
        first_class=1,
        last="moe_layer_end_index",
        experts=("moe_num_experts", "num_experts"),
        top_k=("moe_k", "num_experts_per_tok"),
        shared_count=("moe_num_shared_experts",),
    ),
)
LLAMA4_TEXT = Architecture(
    model_type="llama4_text",
    head_dim_class=128,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    window=Sliding.CHUNK,
    window_field="attention_chunk_size",
    window_class=8192,
    experts=Experts(
        step="interleave_moe_layer_step",
        listed="moe_layers",
        width=("intermediate_size",),
        dense=("intermediate_size_mlp",),
        shared_one=True,
    ),
)
HY_V3 = Architecture(
    model_type="hy_v3",
    head_dim_class=128,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    router_buffers=True,
    experts=Experts(
        first="first_k_dense_replace",
        first_class=1,
        experts=("num_experts", "num_local_experts"),
        shared_count=("num_shared_experts",),
    ),
)
EXAONE_MOE = replace(
    HY_V3, model_type="exaone_moe", window=Sliding.EVERY, whole_every=4, window_class=4096
)
GRANITEMOE_SWA = replace(
    GRANITEMOESHARED,
    model_type="granitemoe_swa",
    sinks=True,
    window=Sliding.EVERY,
    whole_every=4,
    window_class=128,
)
FLEX_OLMO = replace(OLMOE, model_type="flex_olmo")
MELLUM = replace(
    QWEN3_MOE,
    model_type="mellum",
    window=Sliding.EVERY,
    whole_every=1,
    window_class=1024,
    experts=Experts(experts=("num_local_experts", "num_experts")),
)
KOLIBRI1 = replace(
    MELLUM,
    model_type="kolibri1",
    norms=4,
    whole_every=6,
    window_class=513,
    experts=Experts(
        experts=("num_local_experts", "num_experts"),
        shared_width="shared_expert_intermediate_size",
        dense=(),
    ),
)
FLINT = replace(
    QWEN3_MOE,
    model_type="flint",
    sinks=True,
    window=Sliding.EVERY,
    whole_every=4,
    window_class=513,
    experts=Experts(
        step="decoder_sparse_step",
        listed_dense="mlp_only_layers",
        experts=("num_experts", "num_local_experts"),
        shared_width="shared_expert_intermediate_size",
    ),
)
COHERE2_MOE = Architecture(
    model_type="cohere2_moe",
    kv_rule=KvHeads.AS_HEADS,
    tied=True,
    norms=1,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    parallel=True,
    window=Sliding.EVERY,
    whole_every=4,
    window_class=4096,
    experts=Experts(width=("intermediate_size",), dense=(), shared_count=("num_shared_experts",)),
)
SOLAR_OPEN = replace(
    DOTS1,
    model_type="solar_open",
    qk_norm="",
    out_bias=False,
    experts=Experts(
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        dense=(),
    ),
    refuse=(),
)
SARVAM_MOE = replace(GLM4_MOE, model_type="sarvam_moe")
SARVAM_MLA = replace(
    DEEPSEEK_V3,
    model_type="sarvam_mla",
    no_q_lora=True,
    experts=Experts(
        first="first_k_dense_replace",
        null_is_dense=True,
        experts=("n_routed_experts", "num_local_experts", "num_experts"),
        shared_count=("n_shared_experts",),
        first_class=1,
    ),
)
ARIA_TEXT = Architecture(
    model_type="aria_text",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
    experts=Experts(
        experts=("moe_num_experts",),
        top_k=("moe_topk",),
        width=("intermediate_size",),
        dense=(),
        shared_count=("moe_num_shared_experts",),
    ),
)


DBRX = Architecture(
    model_type="dbrx",
    layers=("n_layers", "num_hidden_layers"),
    hidden=("d_model", "hidden_size"),
    heads=("n_heads", "num_attention_heads"),
    kv_heads=("attn_config.kv_n_heads",),
    head_dim=(),
    seq_len=("max_seq_len",),
    experts=Experts(
        experts=("ffn_config.moe_num_experts",),
        top_k=("ffn_config.moe_top_k",),
        width=("ffn_config.ffn_hidden_size",),
        dense=(),
    ),
)
HUNYUAN_V1_MOE = Architecture(
    model_type="hunyuan_v1_moe",
    kv_rule=KvHeads.AS_HEADS,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(
        experts=("num_experts", "num_local_experts"),
        top_k=("moe_topk", "num_experts_per_tok"),
        width=("intermediate_size",),
        dense=(),
        shared_one=True,
    ),
)


def _norms_behind_experts(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """A norm behind the experts of each layer that has them (post_mlp_layernorm)."""
    return Extras(shape["moe_layers"] * shape["hidden"])


AXK1 = replace(DEEPSEEK_V3, model_type="axk1", extras=_norms_behind_experts)


TABLE = {
    each.model_type: each
    for each in (
        AXK1,
        DBRX,
        HUNYUAN_V1_MOE,
        MIXTRAL,
        GRANITEMOE_SWA,
        FLEX_OLMO,
        MELLUM,
        KOLIBRI1,
        FLINT,
        COHERE2_MOE,
        SOLAR_OPEN,
        SARVAM_MOE,
        SARVAM_MLA,
        ARIA_TEXT,
        PHIMOE,
        MINIMAX_M2,
        GPT_OSS,
        OLMOE,
        GRANITEMOE,
        GRANITEMOESHARED,
        QWEN2_MOE,
        QWEN3_MOE,
        QWEN3_VL_MOE_TEXT,
        DEEPSEEK_V2,
        DEEPSEEK_V3,
        GLM4_MOE_LITE,
        DOTS1,
        GLM4_MOE,
        ERNIE4_5_MOE,
        LLAMA4_TEXT,
        HY_V3,
        EXAONE_MOE,
    )
}
