"""Decoder-only architectures that the transformers library lacks: their code lies beside their
weights (trust_remote_code). As in `architectures_dense`; facts read from the configuration and
modelling files of the repositories named, counts held to their published ones."""

from dataclasses import replace

from .architectures import Architecture, Experts, FfnRule, KvHeads, Refusal
from .architectures_dense import FALCON, LLAMA, STABLELM
from .architectures_experts import DEEPSEEK_V3
from .architectures_hybrid import MINIMAX
from .hf_reader import Switch

# baichuan-inc/Baichuan2-7B-Base, Baichuan-13B-Base; xverse/XVERSE-7B; BAAI/Aquila-7B
BAICHUAN = Architecture(
    model_type="baichuan",
    kv_heads=(),
    head_dim=(),
    seq_len=("max_position_embeddings", "model_max_length"),
)
# internlm/internlm2-7b: wqkv and wo heed `bias`; of internlm-7b q, k, v and o do
INTERNLM2 = Architecture(
    model_type="internlm2",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=(),
    qkv_bias=Switch("bias", usual=True),
    out_bias=Switch("bias", usual=True),
)
# THUDM/chatglm3-6b
CHATGLM = Architecture(
    model_type="chatglm",
    layers=("num_layers",),
    kv_heads=("multi_query_group_num",),
    head_dim=("kv_channels",),
    ffn=("ffn_hidden_size",),
    vocab=("padded_vocab_size",),
    seq_len=("seq_length",),
    qkv_bias=Switch("add_qkv_bias"),
    out_bias=Switch("add_bias_linear", usual=True),
    mlp_bias=Switch("add_bias_linear", usual=True),
    refuse=(
        Refusal("multi_query_attention", (True,), "its heads of keys are not stated"),
        Refusal("rmsnorm", (True, None), "its norms are not counted"),
    ),
)
# Qwen/Qwen-7B: w1 and w2 have half of the width that the file states
QWEN = Architecture(
    model_type="qwen",
    kv_heads=(),
    head_dim=("kv_channels",),
    ffn_rule=FfnRule.HALF,
    seq_len=("seq_length", "max_position_embeddings"),
    qkv_bias=True,
    refuse=(Refusal("no_bias", (True, None), "its biases are not counted"),),
)
# deepseek-ai/deepseek-moe-16b-base
DEEPSEEK = replace(DEEPSEEK_V3, model_type="deepseek", mla=False, router_buffers=False, mtp=())
# inclusionAI/Ling-lite, Ling-mini-2.0
BAILING_MOE = Architecture(
    model_type="bailing_moe",
    qkv_bias=Switch("use_qkv_bias"),
    out_bias=Switch("use_bias"),
    mlp_bias=Switch("use_bias"),
    experts=Experts(
        experts=("num_experts",),
        shared_count=("num_shared_experts",),
        first="first_k_dense_replace",
    ),
)
# hpcai-tech/grok-1: four norms a layer
GROK1 = Architecture(
    model_type="grok-1",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=(),
    tied=True,
    activation_class="gelu",
    norms=4,
    experts=Experts(experts=("num_experts",), width=("intermediate_size",), dense=()),
)
# Snowflake/snowflake-arctic-base: beside the experts an MLP as wide as the residual stream, with a
# norm of its own
ARCTIC = Architecture(
    model_type="arctic",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=(),
    norms=3,
    mixer="attn",
    experts=Experts(width=("intermediate_size",), dense=("hidden_size",), parallel_mlp=True),
    refuse=(
        Refusal("moe_layer_frequency", (1,), "layers without experts have another MLP"),
        Refusal("parallel_attn_mlp_res", (True,), "layers without the MLP beside the experts"),
    ),
)
# tiiuae/falcon-40b as it came out, configuration_RW.py; falcon-7b's class is that of the library
REFINED_WEB = replace(
    FALCON, model_type="RefinedWeb", kv_rule=KvHeads.AS_HEADS, norms=2, norms_of=None
)
TABLE = {
    each.model_type: each
    for each in (
        BAICHUAN,
        replace(BAICHUAN, model_type="xverse"),
        replace(LLAMA, model_type="aquila"),
        INTERNLM2,
        replace(INTERNLM2, model_type="internlm", kv_heads=()),
        CHATGLM,
        QWEN,
        DEEPSEEK,
        replace(DEEPSEEK_V3, model_type="kimi_k2"),
        BAILING_MOE,
        GROK1,
        ARCTIC,
        REFINED_WEB,
        replace(FALCON, model_type="RefinedWebModel"),
        replace(
            BAILING_MOE,
            model_type="bailing_moe_v2",
            qk_norm="head",
            qk_norm_flag="use_qk_norm",
            router_buffers=True,
        ),
        replace(MINIMAX, model_type="minimax_text_01"),  # MiniMaxAI/MiniMax-Text-01
        replace(LLAMA, model_type="minicpm", tied=True),  # openbmb/MiniCPM-2B-sft-bf16
        replace(LLAMA, model_type="orion", norm_bias=True),  # OrionStarAI/Orion-14B-Base
        replace(STABLELM, model_type="stablelm_epoch"),  # stabilityai/stablelm-3b-4e1t, at first
    )
}
