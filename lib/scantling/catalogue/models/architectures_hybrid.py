"""Hybrids of the transformers library, whose layers are not all attention and MLP; as in
`architectures_dense`. The dimensions of their blocks are read by a function each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .architectures import (
    Architecture,
    BlockSizes,
    Every,
    Experts,
    Extras,
    FfnRule,
    KvHeads,
    Refusal,
    Sliding,
)
from .architectures_experts import DEEPSEEK_V3
from .hf_reader import Reader, Switch


def _mamba2(r: Reader, hidden: int) -> BlockSizes:
    return {
        "conv_bias": r.flag(Switch("use_conv_bias", usual=True)),
        "proj_bias": r.flag(Switch("use_bias")),
        "state_size": r.block_size("state_size", 128, "state_size"),
        "ssm_head_dim": r.block_size("ssm_head_dim", 64, "head_dim"),
        "ssm_heads": r.block_size("ssm_heads", 128, "num_heads"),
        "groups": r.block_size("groups", 8, "n_groups"),
        "conv": r.block_size("conv", 4, "conv_kernel"),
        "chunk": r.block_size("chunk", 256, "chunk_size"),
    }


def _mamba(r: Reader, hidden: int) -> BlockSizes:
    conv_bias = r.flag(Switch("use_conv_bias", usual=True))
    proj_bias = r.flag(Switch("use_bias"))
    state_size = r.block_size("state_size", 16, "state_size")
    expand = r.block_size("_expand", 2, "expand")
    return {
        "conv_bias": conv_bias,
        "proj_bias": proj_bias,
        "state_size": state_size,
        "d_inner": r.block_derived(
            "d_inner", hidden * expand, "hidden*_expand", "intermediate_size"
        ),
        "conv": r.block_size("conv", 4, "conv_kernel"),
        "dt_rank": r.block_derived("dt_rank", hidden / 16, "hidden/16", "time_step_rank"),
    }


def _nemotron_h(r: Reader, hidden: int) -> BlockSizes:
    return {
        # Nemotron 3: mtp_num_layers 2, mtp_use_repeated_layer (Megatron-Bridge, recipes/nemotronh)
        "mtp_repeats": 2,
        "conv_bias": r.flag(Switch("use_conv_bias", usual=True)),
        "proj_bias": r.flag(Switch("mamba_proj_bias")),
        "state_size": r.block_size("state_size", 128, "ssm_state_size"),
        "ssm_heads": r.block_size("ssm_heads", 128, "mamba_num_heads"),
        "ssm_head_dim": r.block_size("ssm_head_dim", 64, "mamba_head_dim"),
        "groups": r.block_size("groups", 8, "n_groups", "mamba_n_groups"),
        "conv": r.block_size("conv", 4, "conv_kernel", "mamba_d_conv"),
        "chunk": r.block_size("chunk", 128, "chunk_size", "mamba_chunk_size"),
        "latent": r.block_size("latent", 0, "moe_latent_size"),
    }


def _mamba2_sizes(r: Reader, hidden: int) -> BlockSizes:
    """The Mamba-2 of Bamba and its relatives."""
    state_size = r.block_size("state_size", 256, "mamba_d_state")
    heads = r.block_size("ssm_heads", 128, "mamba_n_heads")
    expand = r.block_size("_expand", 2, "mamba_expand")
    width = hidden * expand / max(heads, 1)
    return {
        "state_size": state_size,
        "ssm_heads": heads,
        "ssm_head_dim": r.block_derived(
            "ssm_head_dim", width, "hidden*_expand/ssm_heads", "mamba_d_head"
        ),
        "groups": r.block_size("groups", 1, "mamba_n_groups"),
        "conv": r.block_size("conv", 4, "mamba_d_conv"),
        "chunk": r.block_size("chunk", 256, "mamba_chunk_size"),
    }


def _bamba(r: Reader, hidden: int) -> BlockSizes:
    return {
        "conv_bias": r.flag(Switch("mamba_conv_bias", usual=True)),
        "proj_bias": r.flag(Switch("mamba_proj_bias")),
        **_mamba2_sizes(r, hidden),
    }


def _falcon_h1(r: Reader, hidden: int) -> BlockSizes:
    return {
        "conv_bias": r.flag(Switch("mamba_conv_bias", usual=True)),
        "gated_norm": r.flag(Switch("mamba_rms_norm")),
        **_mamba2_sizes(r, hidden),
    }


def _jamba(r: Reader, hidden: int) -> BlockSizes:
    conv_bias = r.flag(Switch("mamba_conv_bias", usual=True))
    proj_bias = r.flag(Switch("mamba_proj_bias"))
    state_size = r.block_size("state_size", 16, "mamba_d_state")
    expand = r.block_size("_expand", 2, "mamba_expand")
    return {
        "inner_norms": True,
        "conv_bias": conv_bias,
        "proj_bias": proj_bias,
        "state_size": state_size,
        "d_inner": r.block_derived("d_inner", hidden * expand, "hidden*_expand"),
        "conv": r.block_size("conv", 4, "mamba_d_conv"),
        "dt_rank": r.block_derived("dt_rank", hidden / 16, "hidden/16", "mamba_dt_rank"),
    }


def _zamba2(r: Reader, hidden: int) -> BlockSizes:
    conv_bias = r.flag(Switch("use_conv_bias", usual=True))
    proj_bias = r.flag(Switch("add_bias_linear"))
    adapter = r.flag(Switch("use_shared_attention_adapter"))
    state_size = r.block_size("state_size", 64, "mamba_d_state")
    heads = r.block_size("ssm_heads", 8, "n_mamba_heads")
    expand = r.block_size("_expand", 2, "mamba_expand")
    width = hidden * expand / max(heads, 1)
    return {
        "conv_bias": conv_bias,
        "proj_bias": proj_bias,
        "attention_adapter": adapter,
        "state_size": state_size,
        "ssm_heads": heads,
        "ssm_head_dim": r.block_derived(
            "ssm_head_dim", width, "hidden*_expand/ssm_heads", "mamba_headdim"
        ),
        "groups": r.block_size("groups", 1, "mamba_ngroups"),
        "conv": r.block_size("conv", 4, "mamba_d_conv"),
        "chunk": r.block_size("chunk", 256, "chunk_size"),
        "memory_blocks": r.block_size("memory_blocks", 1, "num_mem_blocks"),
        "adapter_rank": r.block_size("adapter_rank", 128, "adapter_rank"),
    }


def _zamba(r: Reader, hidden: int) -> BlockSizes:
    """Mamba-1 whose projections of step, B and C stand by heads: as many weights as without."""
    expand = r.block_size("_expand", 2, "mamba_expand")
    return {
        "conv_bias": r.flag(Switch("mamba_conv_bias", usual=True)),
        "proj_bias": r.flag(Switch("mamba_proj_bias")),
        "state_size": r.block_size("state_size", 16, "mamba_d_state"),
        "d_inner": r.block_derived("d_inner", hidden * expand, "hidden*_expand"),
        "conv": r.block_size("conv", 4, "mamba_d_conv"),
        "dt_rank": r.block_derived("dt_rank", hidden / 16, "hidden/16", "mamba_dt_rank"),
        "memory_blocks": 1,
    }


def _rwkv(r: Reader, hidden: int) -> BlockSizes:
    return {"lru_width": r.block_derived("lru_width", hidden, "hidden", "attention_hidden_size")}


def _xlstm(r: Reader, hidden: int) -> BlockSizes:
    heads = r.block_size("lin_v_heads", 8, "num_heads")
    widths = {}
    for field, name, usual in (
        ("lin_k_dim", "qk_dim_factor", 0.5),
        ("lin_v_dim", "v_dim_factor", 1.0),
    ):
        factor = r.get(name) or r.of_class(name, usual, "xlstm")
        widths[field] = r.derived(
            field, (), hidden * factor / max(heads, 1), f"hidden*{name}/heads"
        )
    return {
        "lin_v_heads": heads,
        "lin_k_dim": widths["lin_k_dim"],
        "lin_v_dim": widths["lin_v_dim"],
        "chunk": r.block_size("chunk", 64, "chunk_size"),
    }


def _recurrent_gemma(r: Reader, hidden: int) -> BlockSizes:
    return {
        "conv_bias": True,
        "lru_width": r.block_derived("lru_width", hidden, "hidden", "lru_width"),
        "conv": r.block_size("conv", 4, "conv1d_width"),
    }


def _lfm2(r: Reader, hidden: int) -> BlockSizes:
    return {
        "conv_bias": r.flag(Switch("conv_bias")),
        "proj_bias": r.flag(Switch("conv_bias")),
        "conv": r.block_size("conv", 3, "conv_L_cache"),
    }


def _qwen3_next(r: Reader, hidden: int) -> BlockSizes:
    return {
        "attention_gate": "width",
        "chunk": 64,
        "lin_k_heads": r.block_size("lin_k_heads", 16, "linear_num_key_heads"),
        "lin_v_heads": r.block_size("lin_v_heads", 32, "linear_num_value_heads"),
        "lin_k_dim": r.block_size("lin_k_dim", 128, "linear_key_head_dim"),
        "lin_v_dim": r.block_size("lin_v_dim", 128, "linear_value_head_dim"),
        "conv": r.block_size("conv", 4, "linear_conv_kernel_dim"),
    }


def _olmo_hybrid(r: Reader, hidden: int) -> BlockSizes:
    k_heads = r.block_size("lin_k_heads", None, "linear_num_key_heads", "num_attention_heads")
    v_heads = r.block_size("lin_v_heads", None, "linear_num_value_heads", "num_attention_heads")
    width = hidden * 0.75 / max(k_heads, 1)
    k_dim = r.block_derived("lin_k_dim", width, "hidden*0.75/lin_k_heads", "linear_key_head_dim")
    return {
        "chunk": 64,
        "lin_k_heads": k_heads,
        "lin_v_heads": v_heads,
        "lin_k_dim": k_dim,
        "lin_v_dim": r.block_derived(
            "lin_v_dim", k_dim * 2, "lin_k_dim*2", "linear_value_head_dim"
        ),
        "conv": r.block_size("conv", 4, "linear_conv_kernel_dim"),
    }


def _kimi_linear(r: Reader, hidden: int) -> BlockSizes:
    own = "linear_attn_config"
    return {
        "chunk": 64,
        "lin_v_heads": r.block_size("lin_v_heads", 32, f"{own}.num_heads", "linear_num_heads"),
        "lin_v_dim": r.block_size("lin_v_dim", 128, f"{own}.head_dim", "linear_head_dim"),
        "conv": r.block_size("conv", 4, f"{own}.short_conv_kernel_size", "linear_conv_kernel_dim"),
    }


def _bailing_hybrid(r: Reader, hidden: int) -> BlockSizes:
    return {
        "chunk": 64,
        "full_decay": True,
        "full_gates": True,
        "attention_gate": "head",
        "lin_v_heads": r.block_size("lin_v_heads", None, "num_attention_heads"),
        "lin_v_dim": r.block_size("lin_v_dim", 128, "head_dim"),
        "conv": r.block_size("conv", 4, "short_conv_kernel_size"),
    }


def _minimax(r: Reader, hidden: int) -> BlockSizes:
    heads = r.block_size("lin_v_heads", None, "num_attention_heads")
    width = hidden / max(heads, 1)
    return {
        "chunk": 256,
        "lin_v_heads": heads,
        "lin_v_dim": r.block_derived("lin_v_dim", width, "hidden/lin_v_heads", "head_dim"),
    }


def _mimo_v2_flash(r: Reader, hidden: int) -> BlockSizes:
    return {
        "window_sinks": True,
        "v_dim": r.block_size("v_dim", 128, "v_head_dim"),
        "window_kv_heads": r.block_size("window_kv_heads", 8, "swa_num_key_value_heads"),
        "window_heads": r.block_size("window_heads", 0, "swa_num_attention_heads"),
        "window_head_dim": r.block_size("window_head_dim", 0, "swa_head_dim"),
    }


def _gate_of_width(r: Reader, hidden: int) -> BlockSizes:
    return {"attention_gate": "width"}


def _gate_of_heads(r: Reader, hidden: int) -> BlockSizes:
    return {"attention_gate": "head"}


def _lfm3(r: Reader, hidden: int) -> BlockSizes:
    gate = "head" if r.flag(Switch("use_attention_gate", usual=True)) else ""
    return {**_lfm2(r, hidden), "attention_gate": gate}


def _step3p5(r: Reader, hidden: int) -> BlockSizes:
    own = "attention_other_setting"
    return {
        "attention_gate": "head",
        "window_heads": r.block_size("window_heads", 0, f"{own}.num_attention_heads"),
        "window_kv_heads": r.block_size("window_kv_heads", 0, f"{own}.num_attention_groups"),
        "window_head_dim": r.block_size("window_head_dim", 0, f"{own}.head_dim"),
    }


def _gemma4_text(r: Reader, hidden: int) -> BlockSizes:
    return {
        "router_scales": True,
        "shared_kv": r.flag(Switch("attention_k_eq_v")),
        "window_head_dim": r.block_size("window_head_dim", 256, "head_dim"),
        "window_kv_heads": r.block_size("window_kv_heads", 4, "num_key_value_heads"),
    }


def _deepseek_v32(r: Reader, hidden: int) -> BlockSizes:
    return {
        "index_heads": r.block_size("index_heads", 64, "index_n_heads"),
        "index_dim": r.block_size("index_dim", 128, "index_head_dim"),
        "index_topk": r.block_size("index_topk", 2048, "index_topk"),
    }


def _glm_moe_dsa(r: Reader, hidden: int) -> BlockSizes:
    return {
        "index_heads": r.block_size("index_heads", 32, "index_n_heads"),
        "index_dim": r.block_size("index_dim", 128, "index_head_dim"),
        "index_topk": r.block_size("index_topk", 2048, "index_topk"),
    }


def _deepseek_v4(r: Reader, hidden: int) -> BlockSizes:
    return {
        "q_lora": r.block_size("q_lora", 1024, "q_lora_rank"),
        "o_lora": r.block_size("o_lora", 1024, "o_lora_rank"),
        "o_groups": r.block_size("o_groups", 8, "o_groups"),
        "index_heads": r.block_size("index_heads", 64, "index_n_heads"),
        "index_dim": r.block_size("index_dim", 128, "index_head_dim"),
        "index_topk": r.block_size("index_topk", 512, "index_topk"),
        "hyper_connections": r.block_size("hyper_connections", 4, "hc_mult"),
    }


def _hy_v4(r: Reader, hidden: int) -> BlockSizes:
    return {
        **_glm_moe_dsa(r, hidden),
        "attention_gate": "width",
        "hyper_connections": r.block_size("hyper_connections", 4, "hc_mult"),
        "hyper_mixed": False,
    }


def _longcat_flash(r: Reader, hidden: int) -> BlockSizes:
    return {"zero_experts": r.block_size("zero_experts", 256, "zero_expert_num")}


def _minimax_m3_vl_text(r: Reader, hidden: int) -> BlockSizes:
    index_heads = r.block_size("index_heads", 4, "index_n_heads")
    index_dim = r.block_size("index_dim", 128, "index_head_dim")
    block = r.block_size("_block", 128, "index_block_size")
    blocks = r.block_size("_blocks", 16, "index_topk_blocks")
    return {
        "index_heads": index_heads,
        "index_dim": index_dim,
        "index_topk": r.block_derived("index_topk", block * blocks, "_block*_blocks"),
    }


MAMBA2 = Architecture(
    model_type="mamba2",
    heads=(),
    kv_heads=(),
    head_dim=(),
    ffn=(),
    norms=1,
    mixer="mamba2",
    feed=False,
    dimensions=_mamba2,
)
MAMBA = replace(MAMBA2, model_type="mamba", tied=True, mixer="mamba1", dimensions=_mamba)
FALCON_MAMBA = replace(MAMBA, model_type="falcon_mamba")
NEMOTRON_H = Architecture(
    model_type="nemotron_h",
    head_dim_class=128,
    gated=False,
    activation=("mlp_hidden_act",),
    activation_class="relu2",
    norms=1,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
    experts=Experts(
        experts=("n_routed_experts", "num_local_experts"),
        shared_width="moe_shared_expert_intermediate_size",
    ),
    mixer="mamba2",
    feed=False,
    letters=("hybrid_override_pattern", "layers_block_type", "layer_types"),
    mtp_letters=("mtp_hybrid_override_pattern", "mtp_layers_block_type"),
    router_buffers=True,
    dimensions=_nemotron_h,
)
BAMBA = Architecture(
    model_type="bamba",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
    mixer="mamba2",
    listed={"attn_layer_indices": "attn"},
    words={
        "mamba": "mamba2",
        "linear_attention": "mamba2",
        "attention": "attn",
        "full_attention": "attn",
    },
    dimensions=_bamba,
)
GRANITEMOEHYBRID = replace(
    BAMBA,
    model_type="granitemoehybrid",
    ffn=("shared_intermediate_size",),
    listed={},
    mlp_bias=False,
    experts=Experts(
        null_is_dense=True,
        width=("intermediate_size",),
        dense=("shared_intermediate_size",),
        shared_width="shared_intermediate_size",
    ),
)
FALCON_H1 = replace(
    BAMBA,
    model_type="falcon_h1",
    mixer="mamba2|attn",
    words={},
    listed={},
    refuse=(
        Refusal("mamba_proj_bias", (False, None), "its biases are not counted"),
        Refusal("projectors_bias", (False, None), "its biases are not counted"),
    ),
    dimensions=_falcon_h1,
)
JAMBA = Architecture(
    model_type="jamba",
    norms=2,
    experts=Experts(
        step="expert_layer_period",
        step_class=2,
        offset="expert_layer_offset",
        experts=("num_experts", "num_local_experts"),
        width=("intermediate_size",),
    ),
    mixer="mamba1",
    every=Every("attn_layer_period", 8, "attn_layer_offset", "attn"),
    dimensions=_jamba,
)
ZAMBA2 = Architecture(
    model_type="zamba2",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=("attention_head_dim",),
    tied=True,
    activation_class="gelu",
    norms=1,
    mixer="mamba2",
    feed=False,
    words={"mamba": "mamba2", "linear_attention": "mamba2", "hybrid": "shared(attn+mlp)>mamba2"},
    word_lists=("layers_block_type", "layer_types"),
    refuse=(Refusal("add_bias_linear", (False, None), "its biases are not counted"),),
    dimensions=_zamba2,
)
ZAMBA = replace(
    ZAMBA2,
    model_type="zamba",
    words={"mamba": "mamba1", "linear_attention": "mamba1", "hybrid": "shared(attn+mlp)>mamba1"},
    mixer="mamba1",
    refuse=(
        Refusal(
            "tie_word_embeddings", (True, None), "the library then shares no weights of layers"
        ),
    ),
    dimensions=_zamba,
)


def _first_norm(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """A norm before the first layer (pre_ln)."""
    return Extras(2 * shape["hidden"])


RWKV = Architecture(
    model_type="rwkv",
    heads=(),
    kv_heads=(),
    head_dim=(),
    ffn_of_hidden=True,
    seq_len=("context_length",),
    gated=False,
    activation_class="relu2",
    norm_bias=True,
    mixer="rwkv4",
    dimensions=_rwkv,
    extras=_first_norm,
)
XLSTM = Architecture(
    model_type="xlstm",
    layers=("num_hidden_layers", "num_blocks"),
    hidden=("hidden_size", "embedding_dim"),
    heads=(),
    kv_heads=(),
    head_dim=(),
    ffn=(),
    ffn_rule=FfnRule.XLSTM,
    seq_len=(),
    mixer="mlstm",
    refuse=(
        Refusal("use_bias", (False, None), "its biases are not counted"),
        Refusal("add_out_norm", (True, None), "layers without the norm before the head"),
    ),
    dimensions=_xlstm,
)
RECURRENT_GEMMA = Architecture(
    model_type="recurrent_gemma",
    kv_rule=KvHeads.AS_HEADS,
    tied=True,
    activation_class="gelu",
    qkv_bias=Switch("attention_bias"),
    out_bias=True,
    mlp_bias=True,
    ffn_rule=FfnRule.HALF,
    window_field="attention_window_size",
    window=Sliding.ALL,
    window_class=2048,
    mixer="rglru",
    words={"recurrent": "rglru", "attention": "local"},
    word_lists=("block_types", "layers_block_type"),
    every=Every("", 3, "", "local"),
    dimensions=_recurrent_gemma,
)
LFM2 = Architecture(
    model_type="lfm2",
    tied=True,
    qk_norm="head",
    ffn=("block_ff_dim", "intermediate_size"),
    ffn_rule=FfnRule.LFM2,
    mixer="shortconv",
    listed={"full_attn_idxs": "attn"},
    words={"conv": "shortconv", "full_attention": "attn"},
    dimensions=_lfm2,
)
LFM2_MOE = replace(
    LFM2,
    model_type="lfm2_moe",
    ffn_rule=FfnRule.PLAIN,
    router_buffers=True,
    experts=Experts(first="num_dense_layers", first_class=2, experts=("num_experts",)),
)
QWEN3_NEXT = Architecture(
    model_type="qwen3_next",
    norm_zero_centered=True,
    head_dim_class=256,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(
        step="decoder_sparse_step",
        listed_dense="mlp_only_layers",
        experts=("num_experts", "num_local_experts"),
        shared_width="shared_expert_intermediate_size",
        shared_gate=True,
    ),
    mtp=("num_nextn_predict_layers", "mtp_num_hidden_layers"),
    mixer="gdn",
    words={"linear_attention": "gdn", "full_attention": "attn"},
    every=Every("full_attention_interval", 4, "", "attn"),
    dimensions=_qwen3_next,
)
QWEN3_5_TEXT = replace(QWEN3_NEXT, model_type="qwen3_5_text", experts=None)
QWEN3_5_MOE_TEXT = replace(QWEN3_NEXT, model_type="qwen3_5_moe_text")
OLMO_HYBRID = Architecture(
    model_type="olmo_hybrid",
    kv_rule=KvHeads.AS_HEADS,
    qk_norm="width",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mixer="gdn",
    words={"linear_attention": "gdn", "full_attention": "attn"},
    every=Every("full_attention_interval", 4, "", "attn"),
    dimensions=_olmo_hybrid,
)
KIMI_LINEAR = Architecture(
    model_type="kimi_linear",
    kv_rule=KvHeads.AS_HEADS,
    mla=True,
    router_buffers=True,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(
        first="first_k_dense_replace",
        first_class=0,
        experts=("num_experts", "num_local_experts", "n_routed_experts"),
        top_k=("num_experts_per_token", "num_experts_per_tok"),
        shared_count=("num_shared_experts", "n_shared_experts"),
    ),
    mixer="kda",
    listed={"linear_attn_config.full_attn_layers": "mla", "linear_attn_config.kda_layers": "kda"},
    listed_from=1,
    words={"linear_attention": "kda", "full_attention": "mla"},
    refuse=(
        Refusal("moe_layer_freq", (1, None), "experts in every n-th layer"),
        Refusal(
            "linear_attn_config.use_full_rank_gate",
            (False, None),
            "its gates of full rank are not counted",
        ),
    ),
    dimensions=_kimi_linear,
)
BAILING_HYBRID = replace(
    KIMI_LINEAR,
    model_type="bailing_hybrid",
    no_q_lora=True,
    mtp=("num_mtp_layers", "num_nextn_predict_layers"),
    mixer="kda",
    listed={},
    every=Every("layer_group_size", 6, "", "mla"),
    experts=Experts(
        first="first_k_dense_replace",
        first_class=2,
        experts=("num_local_experts", "num_experts"),
        shared_count=("n_shared_experts", "num_shared_experts"),
    ),
    refuse=(),
    dimensions=_bailing_hybrid,
)
MINIMAX = Architecture(
    model_type="minimax",
    kv_rule=KvHeads.AS_HEADS,
    experts=Experts(width=("intermediate_size",), dense=()),
    mixer="lightning",
    words={"linear_attention": "lightning", "full_attention": "attn", 0: "lightning", 1: "attn"},
    word_lists=("layer_types", "attn_type_list"),
    dimensions=_minimax,
)
MIMO_V2_FLASH = Architecture(
    model_type="mimo_v2_flash",
    head_dim_class=192,
    router_buffers=True,
    experts=Experts(
        first="first_k_dense_replace",
        first_class=1,
        experts=("n_routed_experts", "num_local_experts"),
    ),
    window=Sliding.ALL,
    window_class=129,
    mixer="attn",
    words={"sliding_attention": "local", "full_attention": "attn", 0: "attn", 1: "local"},
    word_lists=("layer_types", "hybrid_layer_pattern"),
    dimensions=_mimo_v2_flash,
)
STEP3P5 = Architecture(
    model_type="step3p5",
    kv_heads=("num_attention_groups", "num_key_value_heads"),
    head_dim_class=128,
    qk_norm="head",
    router_buffers=True,
    experts=Experts(
        listed="moe_layers_enum",
        experts=("moe_num_experts", "n_routed_experts"),
        top_k=("moe_top_k", "num_experts_per_tok"),
        shared_width="share_expert_dims",
    ),
    window=Sliding.ALL,
    window_class=512,
    mixer="attn",
    words={"sliding_attention": "local", "full_attention": "attn", 0: "attn", 1: "local"},
    refuse=(Refusal("use_head_wise_attn_gate", (True, None), "attention without its gate"),),
    dimensions=_step3p5,
)
AFMOE = Architecture(
    model_type="afmoe",
    head_dim_class=128,
    norms=4,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    router_bias=True,
    experts=Experts(
        first="num_dense_layers",
        first_class=1,
        experts=("num_experts", "num_local_experts"),
        shared_count=("num_shared_experts",),
    ),
    window=Sliding.EVERY,
    whole_every=4,
    window_class=1024,
    mixer="attn",
    words={"sliding_attention": "local", "full_attention": "attn"},
    dimensions=_gate_of_width,
)
LAGUNA = Architecture(
    model_type="laguna",
    head_dim_class=128,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    router_bias=True,
    experts=Experts(
        experts=("num_experts", "num_local_experts"), shared_width="shared_expert_intermediate_size"
    ),
    window=Sliding.ALL,
    window_class=512,
    mixer="attn",
    words={"sliding_attention": "local", "full_attention": "attn"},
    refuse=(Refusal("gating", (True, None, "per-head"), "attention without its gate"),),
    dimensions=_gate_of_heads,
)
LFM3 = replace(
    LFM2,
    model_type="lfm3",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    ffn=("intermediate_size",),
    ffn_rule=FfnRule.PLAIN,
    head_dim_class=128,
    norms=4,
    listed={},
    window=Sliding.ALL,
    window_class=256,
    words={"conv": "shortconv", "full_attention": "attn", "sliding_attention": "local"},
    refuse=(Refusal("use_sandwich_norm", (True, None), "layers without the norms behind a block"),),
    dimensions=_lfm3,
)


def _layer_tables(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """An embedding of its own for every layer, w wide: the tables, the stream's projection onto all
    of them with its norm, a gate and a product of w x hidden a layer with a norm behind them."""
    width = r.count("hidden_size_per_layer_input", least=0) or 0
    if not width:
        return Extras(0)
    layers, hidden = shape["layers"], shape["hidden"]
    products = 3 * layers * width * hidden
    rows = r.size(("vocab_size_per_layer_input",), shape["vocab"])
    return Extras(rows * layers * width + products + width + layers * hidden, products)


GEMMA4_TEXT = Architecture(
    model_type="gemma4_text",
    head_dim=("global_head_dim",),
    head_dim_class=512,
    kv_heads=("num_global_key_value_heads", "num_key_value_heads"),
    tied=True,
    activation_class="gelu",
    norms=7,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    experts=Experts(
        experts=("num_experts",),
        null_is_dense=True,
        top_k=("top_k_experts",),
        parallel_mlp=True,
        switch="enable_moe_block",
    ),
    window=Sliding.ALL,
    window_class=512,
    mixer="local",
    words={"sliding_attention": "local", "full_attention": "attn", 0: "attn", 1: "local"},
    every=Every("_sliding_window_pattern", 6, "", "attn"),
    refuse=(
        Refusal(
            "num_kv_shared_layers", (0, None), "layers that share keys and values are not counted"
        ),
    ),
    dimensions=_gemma4_text,
    extras=_layer_tables,
)
GEMMA4_UNIFIED_TEXT = replace(
    GEMMA4_TEXT, model_type="gemma4_unified_text", norms=4, experts=None, window_class=1024
)
DEEPSEEK_V32 = replace(
    DEEPSEEK_V3,
    model_type="deepseek_v32",
    mixer="mla_dsa",
    words={"full": "mla_dsa", "shared": "mla_dsa_shared", "F": "mla_dsa", "S": "mla_dsa_shared"},
    word_lists=("indexer_types", "index_topk_pattern"),
    every=Every("", 1, "", "mla_dsa"),
    dimensions=_deepseek_v32,
)
GLM_MOE_DSA = replace(DEEPSEEK_V32, model_type="glm_moe_dsa", dimensions=_glm_moe_dsa)
DEEPSEEK_V4 = replace(
    DEEPSEEK_V3,
    model_type="deepseek_v4",
    mla=False,
    qkv_bias=False,
    out_bias=False,
    sinks=True,
    experts=Experts(
        experts=("n_routed_experts", "num_local_experts"),
        dense=(),
        shared_count=("n_shared_experts",),
    ),
    window=Sliding.ALL,
    window_class=128,
    mixer="csa4",
    words={
        "sliding_attention": "win",
        "compressed_sparse_attention": "csa4",
        "heavily_compressed_attention": "hca128",
        0: "win",
        4: "csa4",
        128: "hca128",
    },
    word_lists=("layer_types", "compress_ratios"),
    dimensions=_deepseek_v4,
)


def _gated_norms(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Norms with a gate of low rank before attention and experts; queries and a gate as wide as the
    heads' outputs from the latent before and after its norm (AXK2Attention)."""
    hidden, rank, latent = shape["hidden"], r.size(("gated_norm_rank",)), shape["q_lora"]
    gates = (shape["layers"] + shape["moe_layers"]) * 2 * hidden * rank
    queries = shape["heads"] * (shape["qk_nope"] + shape["qk_rope"])
    outputs = shape["heads"] * shape["v_head_dim"]
    products = gates + shape["layers"] * latent * (queries + 2 * outputs)
    return Extras(products, products)


AXK2 = replace(
    DEEPSEEK_V32,
    model_type="axk2",
    words={"indexed_attention": "mla_dsa"},
    word_lists=("layer_types",),
    dimensions=_glm_moe_dsa,
    extras=_gated_norms,
)
HY_V4 = replace(DEEPSEEK_V32, model_type="hy_v4", sinks=True, dimensions=_hy_v4)
LONGCAT_FLASH = Architecture(
    model_type="longcat_flash",
    layers=("num_layers",),
    ffn=("ffn_hidden_size",),
    mla=True,
    norms=4,
    router_buffers=True,
    experts=Experts(
        experts=("n_routed_experts",),
        top_k=("moe_topk",),
        width=("expert_ffn_hidden_size",),
        dense=("ffn_hidden_size",),
        parallel_mlp=True,
    ),
    mixer="mla+mlp+mla",
    dimensions=_longcat_flash,
)
MINIMAX_M3_VL_TEXT = Architecture(
    model_type="minimax_m3_vl_text",
    head_dim_class=128,
    qk_norm="head",
    router_buffers=True,
    experts=Experts(
        dense=("dense_intermediate_size",),
        width=("intermediate_size",),
        shared_width="shared_intermediate_size",
    ),
    mixer="attn",
    words={
        "minimax_m3_sparse": "attn_blocksparse",
        "full_attention": "attn",
        0: "attn",
        1: "attn_blocksparse",
    },
    word_lists=("layer_types", "sparse_attention_config.sparse_attention_freq"),
    dimensions=_minimax_m3_vl_text,
)


def _head_biases(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """A number a head beside its gate (gate_bias)."""
    return Extras(shape["layers"] * shape["heads"])


def _lara_mini(r: Reader, hidden: int) -> BlockSizes:
    return {**_qwen3_next(r, hidden), "attention_gate": ""}


def _inkling_text(r: Reader, hidden: int) -> BlockSizes:
    return {
        "window_heads": r.block_size("window_heads", 0, "swa_num_attention_heads"),
        "window_kv_heads": r.block_size("window_kv_heads", 0, "swa_num_key_value_heads"),
        "window_head_dim": r.block_size("window_head_dim", 0, "swa_head_dim"),
    }


def _taps_and_distances(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Short convolutions of keys, values and both sub-layers' outputs; biases by distance, mixed
    for each head from as many profiles as `d_rel`; the shared experts' rows of the router and a
    scale (InklingAttention, InklingDecoderLayer, InklingTopkRouter)."""
    hidden, profiles, taps = shape["hidden"], r.size(("d_rel",)), r.size(("conv_kernel_size",))
    sliding = shape["windowed_layers"]
    whole = shape["layers"] - sliding
    kv_width = whole * shape["kv_heads"] * shape["head_dim"]
    kv_width += sliding * shape["window_kv_heads"] * shape["window_head_dim"]
    heads = whole * shape["heads"] + sliding * shape["window_heads"]
    reach = whole * r.size(("rel_extent",)) + sliding * shape["window"]
    convolved = 2 * taps * (kv_width + shape["layers"] * hidden)
    rows = shape["moe_layers"] * (r.count("n_shared_experts", least=0) or 0) * hidden
    products = hidden * heads * profiles + rows
    return Extras(products + convolved + profiles * reach + shape["layers"], products)


INKLING_TEXT = Architecture(
    model_type="inkling_text",
    tie_heeded=False,
    qk_norm="head",
    embedding_norm=True,
    router_buffers=True,
    experts=Experts(experts=("n_routed_experts",), shared_count=("n_shared_experts",)),
    window=Sliding.ALL,
    window_field="sliding_window_size",
    window_class=512,
    mixer="attn",
    words={"hybrid": "attn", "hybrid_sliding": "local"},
    dimensions=_inkling_text,
    extras=_taps_and_distances,
)


def _compressed_convolutions(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Two convolutions over queries and keys, by channel and by head, with a temperature a head of
    keys; scales and shifts of the stream and of both sub-layers; a router of three products in
    place of one, whose state the next layer's adds (Zyphra's CCA, arXiv 2510.04476)."""
    hidden, layers, head = shape["hidden"], shape["layers"], shape["head_dim"]
    channels = (shape["heads"] + shape["kv_heads"]) * head
    by_head = channels * head * r.size(("cca_time1",))
    taps = channels * (r.size(("cca_time0",)) + 2) + shape["kv_heads"]
    width, experts = r.size(("router_hidden_size",)), shape["experts"]
    routed = width * (hidden + 2 * width + experts + 1) - hidden * experts
    weights = layers * (by_head + taps + 8 * hidden + routed + 5 * width) - width
    return Extras(weights + 2 * hidden, layers * (by_head + routed))


ZAYA = Architecture(
    model_type="zaya",
    head_dim_class=128,
    tied=True,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    head_bias=Switch("lm_head_bias"),
    router_buffers=True,
    experts=Experts(experts=("num_experts", "num_local_experts"), dense=()),
    window=Sliding.ALL,
    mixer="attn",
    words={"hybrid": "attn", "hybrid_sliding": "local"},
    extras=_compressed_convolutions,
)
BEAM = replace(
    AFMOE,
    model_type="beam",
    router_bias=False,
    experts=Experts(experts=("num_experts", "num_local_experts")),
    window_class=512,
    extras=_head_biases,
)
LARA_MINI = replace(
    QWEN3_NEXT,
    model_type="lara_mini",
    head_dim_class=128,
    tied=True,
    experts=Experts(
        experts=("num_experts", "num_local_experts"),
        dense=(),
        shared_width="shared_expert_intermediate_size",
    ),
    window=Sliding.ALL,
    window_class=512,
    words={"linear_attention": "gdn", "full_attention": "attn", "sliding_attention": "local"},
    every=None,
    dimensions=_lara_mini,
)


TABLE = {
    each.model_type: each
    for each in (
        AXK2,
        HY_V4,
        INKLING_TEXT,
        ZAYA,
        BEAM,
        LARA_MINI,
        GEMMA4_UNIFIED_TEXT,
        MAMBA2,
        MAMBA,
        FALCON_MAMBA,
        NEMOTRON_H,
        BAMBA,
        GRANITEMOEHYBRID,
        FALCON_H1,
        JAMBA,
        RWKV,
        XLSTM,
        ZAMBA,
        ZAMBA2,
        RECURRENT_GEMMA,
        LFM2,
        LFM2_MOE,
        QWEN3_NEXT,
        QWEN3_5_TEXT,
        QWEN3_5_MOE_TEXT,
        OLMO_HYBRID,
        KIMI_LINEAR,
        BAILING_HYBRID,
        MINIMAX,
        MIMO_V2_FLASH,
        STEP3P5,
        AFMOE,
        LAGUNA,
        LFM3,
        GEMMA4_TEXT,
        DEEPSEEK_V32,
        GLM_MOE_DSA,
        DEEPSEEK_V4,
        LONGCAT_FLASH,
        MINIMAX_M3_VL_TEXT,
    )
}
