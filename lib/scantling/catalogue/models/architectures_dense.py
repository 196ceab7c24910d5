"""Dense decoder-only architectures of the transformers library.

Field names, what the config class puts where the file says nothing, biases, norms, tying, which
layers are MoE and which slide; what is left out is as in `Architecture`, or as in the entry that
`replace` names. Facts read from the library's configuration and modelling code (release 5.23). To
add one: the nearest relative, the differences, and a count of the library in tests/published/hf.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .architectures import Architecture, Extras, KvHeads, Refusal, Sliding
from .hf_reader import Reader, Switch

# Llama and its descendants: RMSNorm, gated MLP, rotary positions
LLAMA = Architecture(
    model_type="llama",
    kv_rule=KvHeads.AS_HEADS,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
)
MISTRAL = Architecture(model_type="mistral", window=Sliding.ALL, window_class=4096)
MINISTRAL = replace(MISTRAL, model_type="ministral", window=Sliding.EVERY, whole_every=1)
MINISTRAL3 = replace(
    MISTRAL,
    model_type="ministral3",
    head_dim=("head_dim",),
    head_dim_class=128,
    window=Sliding.NONE,
)
SMOLLM3 = replace(
    LLAMA, model_type="smollm3", kv_rule=KvHeads.REQUIRED, tied=True, window=Sliding.QWEN
)
GRANITE = replace(LLAMA, model_type="granite")
HUNYUAN_V1_DENSE = replace(LLAMA, model_type="hunyuan_v1_dense", qk_norm="head", mlp_bias=False)
ARCEE = replace(LLAMA, model_type="arcee", gated=False, activation_class="relu2")
OLMO = Architecture(
    model_type="olmo",
    kv_rule=KvHeads.AS_HEADS,
    norms=0,
    final_norm=False,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
)
OLMO2 = Architecture(
    model_type="olmo2",
    kv_rule=KvHeads.AS_HEADS,
    qk_norm="width",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
)
OLMO3 = replace(OLMO2, model_type="olmo3", window=Sliding.EVERY, whole_every=4, window_class=4096)
EXAONE4 = Architecture(
    model_type="exaone4", qk_norm="head", window=Sliding.EVERY, whole_every=4, window_class=4096
)
SEED_OSS = Architecture(
    model_type="seed_oss",
    head_dim_class=128,
    qkv_bias=Switch("attention_bias", usual=True),
    out_bias=Switch("attention_out_bias"),
    mlp_bias=Switch("mlp_bias"),
)
ERNIE4_5 = Architecture(
    model_type="ernie4_5",
    head_dim_class=128,
    tied=True,
    qkv_bias=Switch("use_bias"),
    out_bias=Switch("use_bias"),
    mlp_bias=Switch("use_bias"),
)

# Qwen
QWEN2 = Architecture(model_type="qwen2", qkv_bias=True, window=Sliding.QWEN, window_class=4096)
QWEN2_VL_TEXT = replace(QWEN2, model_type="qwen2_vl_text")
QWEN2_5_VL_TEXT = replace(QWEN2, model_type="qwen2_5_vl_text")
QWEN3 = Architecture(
    model_type="qwen3",
    head_dim_class=128,
    qk_norm="head",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    window=Sliding.QWEN,
    window_class=4096,
)
QWEN3_VL_TEXT = replace(QWEN3, model_type="qwen3_vl_text", window=Sliding.NONE)

# Gemma: (1 + weight) RMSNorm, gated GELU, tied
GEMMA = Architecture(
    model_type="gemma",
    norm_zero_centered=True,
    head_dim_class=256,
    tied=True,
    activation_class="gelu",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
)
GEMMA2 = replace(
    GEMMA, model_type="gemma2", norms=4, window=Sliding.EVERY, whole_every=2, window_class=4096
)
GEMMA3_TEXT = replace(
    GEMMA2,
    model_type="gemma3_text",
    qk_norm="head",
    window=Sliding.EVERY,
    whole_every=6,
    heads=("num_attention_heads",),
    heads_class=8,
    kv_heads=("num_key_value_heads",),
    kv_heads_class=4,
    vocab=("vocab_size",),
    vocab_class=262208,
)
VAULTGEMMA = replace(GEMMA2, model_type="vaultgemma", norms=2)

# GLM, Phi, Cohere, StableLM, Nemotron, StarCoder 2
GLM = Architecture(
    model_type="glm", head_dim_class=128, qkv_bias=Switch("attention_bias", usual=True)
)
GLM4 = replace(GLM, model_type="glm4", norms=4)
PHI = Architecture(
    model_type="phi",
    kv_rule=KvHeads.AS_HEADS,
    head_dim=(),
    gated=False,
    activation_class="gelu_new",
    norms=1,
    norm_bias=True,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    head_bias=True,
    parallel=True,
    refuse=(Refusal("qk_layernorm", (False, None), "its q/k LayerNorm is not counted"),),
)
PHI3 = Architecture(model_type="phi3", kv_rule=KvHeads.AS_HEADS, window=Sliding.ALL)
COHERE = Architecture(
    model_type="cohere",
    kv_rule=KvHeads.AS_HEADS,
    tied=True,
    norms=1,
    qk_norm="width",
    qk_norm_flag="use_qk_norm",
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    parallel=True,
)
COHERE2 = replace(
    COHERE,
    model_type="cohere2",
    qk_norm="",
    qk_norm_flag="",
    window=Sliding.EVERY,
    whole_every=4,
    window_class=4096,
)
COHERE_COMPASS_TEXT = replace(COHERE2, model_type="cohere_compass_text")
STABLELM = Architecture(
    model_type="stablelm",
    head_dim=(),
    norm_bias=True,
    qkv_bias=Switch("use_qkv_bias"),
    parallel=Switch("use_parallel_residual"),
    refuse=(
        Refusal("qk_layernorm", (False, None), "its q/k LayerNorm is not counted"),
        Refusal("use_parallel_residual", (False, None), "its parallel block is not counted"),
    ),
)
NEMOTRON = Architecture(
    model_type="nemotron",
    kv_rule=KvHeads.AS_HEADS,
    gated=False,
    activation_class="relu2",
    norm_bias=True,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
)
STARCODER2 = Architecture(
    model_type="starcoder2",
    head_dim=(),
    tied=True,
    gated=False,
    activation_class="gelu_pytorch_tanh",
    norm_bias=True,
    qkv_bias=Switch("use_bias", usual=True),
    out_bias=Switch("use_bias", usual=True),
    mlp_bias=Switch("use_bias", usual=True),
    window=Sliding.ALL,
)

# GPT and its contemporaries: LayerNorm, plain MLP
GPT2 = Architecture(
    model_type="gpt2",
    layers=("n_layer", "num_hidden_layers"),
    hidden=("n_embd", "hidden_size"),
    heads=("n_head", "num_attention_heads"),
    kv_heads=(),
    head_dim=(),
    ffn=("n_inner",),
    ffn_of_hidden=True,
    seq_len=("n_positions", "max_position_embeddings", "n_ctx"),
    tied=True,
    gated=False,
    activation_class="gelu_new",
    norm_bias=True,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    positions=("n_positions", "max_position_embeddings"),
    refuse=(
        Refusal("add_cross_attention", (False, None), "cross attention is an encoder-decoder's"),
    ),
)
GPT_BIGCODE = replace(GPT2, model_type="gpt_bigcode", kv_rule=KvHeads.MULTI_QUERY, refuse=())
GPTJ = replace(
    GPT2,
    model_type="gptj",
    tied=False,
    norms=1,
    qkv_bias=False,
    out_bias=False,
    head_bias=True,
    positions=(),
    parallel=True,
    refuse=(),
)
CODEGEN = replace(GPTJ, model_type="codegen")
GPT_NEOX = Architecture(
    model_type="gpt_neox",
    kv_heads=(),
    head_dim=(),
    gated=False,
    activation_class="gelu",
    norm_bias=True,
    qkv_bias=Switch("attention_bias", usual=True),
    out_bias=Switch("attention_bias", usual=True),
    mlp_bias=True,
    parallel=Switch("use_parallel_residual", usual=True),
)
OPT = Architecture(
    model_type="opt",
    kv_heads=(),
    head_dim=(),
    ffn=("ffn_dim",),
    tied=True,
    gated=False,
    activation_class="relu",
    norm_bias=True,
    qkv_bias=Switch("enable_bias", usual=True),
    out_bias=Switch("enable_bias", usual=True),
    mlp_bias=Switch("enable_bias", usual=True),
    positions=("max_position_embeddings",),
    positions_extra=2,
    refuse=(
        Refusal(
            "do_layer_norm_before",
            (True, None),
            "post-norm OPT has no final norm and projects its embedding",
        ),
        Refusal("_remove_final_layer_norm", (False, None), "its norms are not counted"),
        Refusal("word_embed_proj_dim", (None,), "a projected embedding", same_as="hidden_size"),
        Refusal("layer_norm_elementwise_affine", (True, None), "its norms are not counted"),
    ),
)
BLOOM = Architecture(
    model_type="bloom",
    layers=("n_layer", "num_hidden_layers"),
    hidden=("hidden_size", "n_embed"),
    heads=("n_head", "num_attention_heads"),
    kv_heads=(),
    head_dim=(),
    ffn=(),
    ffn_of_hidden=True,
    seq_len=("seq_length",),
    tied=True,
    gated=False,
    activation_class="gelu",
    norm_bias=True,
    embedding_norm=True,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
)
MPT = Architecture(
    model_type="mpt",
    layers=("n_layers", "num_hidden_layers"),
    hidden=("d_model", "hidden_size"),
    heads=("n_heads", "num_attention_heads"),
    kv_heads=(),
    head_dim=(),
    ffn=(),
    ffn_of_hidden=True,
    seq_len=("max_seq_len",),
    tied=True,
    gated=False,
    activation_class="gelu",
    refuse=(
        Refusal("no_bias", (True, None), "biases of this kind are not counted"),
        Refusal("expansion_ratio", (4, 4.0, None), "another expansion ratio is not counted"),
        Refusal(
            "attn_config.alibi", (True, None), "its position table is not built by the library"
        ),
        Refusal(
            "attn_config.attn_type",
            ("multihead_attention", None),
            "grouped heads are not built by the library",
        ),
        Refusal("attn_config.qk_ln", (False, None), "its q/k norm is not counted"),
    ),
)


def _falcon_norms(r: Reader) -> int:
    """Norms of a layer: one before both blocks of the older one, as many as the file says of the
    newer one."""
    if not r.flag(Switch("parallel_attn", usual=True)):
        return 2
    if not r.flag(Switch("new_decoder_architecture")):
        return 1
    return r.count("num_ln_in_parallel_attn") or 2


FALCON = Architecture(
    model_type="falcon",
    layers=("num_hidden_layers", "n_layer"),
    heads=("num_attention_heads", "n_head"),
    kv_heads=("num_kv_heads", "n_head_kv"),
    kv_rule=KvHeads.MULTI_QUERY,
    head_dim=(),
    ffn=("ffn_hidden_size",),
    ffn_of_hidden=True,
    tied=True,
    gated=False,
    activation_class="gelu",
    norms_of=_falcon_norms,
    norm_bias=True,
    qkv_bias=Switch("bias"),
    out_bias=Switch("bias"),
    mlp_bias=Switch("bias"),
    parallel=Switch("parallel_attn", usual=True),
)

# Later and smaller relatives
CWM = replace(LLAMA, model_type="cwm", window=Sliding.EVERY, whole_every=4, window_class=8192)
EXAONE = replace(LLAMA, model_type="exaone")
INTERNLM3 = replace(LLAMA, model_type="internlm3")
IQUESTCODER = replace(LLAMA, model_type="iquestcoder")
HELIUM = replace(LLAMA, model_type="helium", out_bias=False)
EMU3_TEXT_MODEL = replace(LLAMA, model_type="emu3_text_model")
HYPERCLOVAX = replace(
    LLAMA,
    model_type="hyperclovax",
    norms=4,
    refuse=(Refusal("use_post_norm", (True, None), "layers without the norms behind a block"),),
)
GRANITE_SWA = replace(
    GRANITE,
    model_type="granite_swa",
    sinks=True,
    tied=True,
    window=Sliding.EVERY,
    whole_every=4,
    window_class=128,
)
NANOCHAT = replace(
    LLAMA,
    model_type="nanochat",
    gated=False,
    activation_class="relu2",
    norms=0,
    final_norm=False,
    mlp_bias=False,
)
JAIS2 = replace(
    NEMOTRON,
    model_type="jais2",
    qkv_bias=Switch("attention_bias", usual=True),
    out_bias=Switch("attention_bias", usual=True),
    mlp_bias=Switch("mlp_bias", usual=True),
)
MINICPM3 = replace(LLAMA, model_type="minicpm3", mla=True, tied=True)
YOUTU = replace(LLAMA, model_type="youtu", mla=True, tied=True, mlp_bias=False)
PERSIMMON = Architecture(
    model_type="persimmon",
    kv_heads=(),
    head_dim=(),
    gated=False,
    activation_class="relu2",
    norm_bias=True,
    qk_norm="head",
    qk_norm_flag="qk_layernorm",
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
)
GPT_SW3 = replace(GPT2, model_type="gpt-sw3")
OPENAI_GPT = replace(
    GPT2,
    model_type="openai-gpt",
    ffn=(),
    activation=("afn",),
    activation_class="gelu",
    final_norm=False,
    refuse=(),
)
CTRL = replace(
    GPT2,
    model_type="ctrl",
    ffn=("dff",),
    ffn_of_hidden=False,
    activation_class="relu",
    positions=(),
    head_bias=True,
    refuse=(),
)
GPT_NEO = replace(
    GPT2,
    model_type="gpt_neo",
    layers=("num_layers", "num_hidden_layers"),
    hidden=("hidden_size",),
    heads=("num_heads", "num_attention_heads"),
    ffn=("intermediate_size",),
    qkv_bias=False,
    positions=("max_position_embeddings",),
    window=Sliding.EVERY,
    whole_every=2,
    window_field="window_size",
    window_class=256,
    refuse=(),
)
BIOGPT = replace(
    GPT2,
    model_type="biogpt",
    layers=("num_hidden_layers",),
    hidden=("hidden_size",),
    heads=("num_attention_heads",),
    ffn=("intermediate_size",),
    activation_class="gelu",
    positions=("max_position_embeddings",),
    positions_extra=2,
    refuse=(),
)
XGLM = replace(
    GPT2,
    model_type="xglm",
    layers=("num_layers",),
    hidden=("d_model",),
    heads=("attention_heads",),
    ffn=("ffn_dim",),
    activation_class="gelu",
    positions=(),
)


def _xielu(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Two slopes of a layer's activation (ApertusMLP, XIELUActivation)."""
    return Extras(2 * shape["layers"])


def _sub_norms(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Norms before the second products (attn_sub_norm, ffn_sub_norm)."""
    return Extras(shape["layers"] * (shape["heads"] * shape["head_dim"] + shape["ffn_hidden"]))


def _lambdas(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Four vectors of a head that weigh the second softmax (lambda_q1 ... lambda_k2)."""
    return Extras(4 * shape["layers"] * shape["head_dim"])


def _last_bias(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """The last layer alone has a bias behind its attention (dense_bias)."""
    return Extras(shape["hidden"])


def _cpm_tables(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Tables of segments and prompts, biases of positions by bucket and pair of segments, and the
    head apart from the embedding, which has the prompts' rows (CpmAntModel)."""
    segments = r.size(("segment_types",))
    prompts = r.size(("prompt_types",)) * r.size(("prompt_length",))
    biases = (segments**2 + r.size(("position_bias_num_buckets",))) * shape["heads"]
    return Extras((segments + prompts) * shape["hidden"] + biases)


def _doge(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Gains of both residuals, and a mask of keys by their values: kv heads x values and A."""
    kv, hidden = shape["kv_heads"], shape["hidden"]
    mask = kv * kv * shape["head_dim"]
    layers = shape["layers"]
    return Extras(layers * (2 * hidden + kv + mask), layers * mask)


def _modern_bert(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """A product and a norm before the head; the first layer has no norm before its attention."""
    hidden = shape["hidden"]
    dense = hidden * hidden + hidden * r.flag(Switch("classifier_bias"))
    return Extras(dense, hidden * hidden)


APERTUS = replace(LLAMA, model_type="apertus", gated=False, qk_norm="head", extras=_xielu)
APERTUS1P5_TEXT = replace(APERTUS, model_type="apertus1p5_text")
BITNET = replace(LLAMA, model_type="bitnet", mlp_bias=False, extras=_sub_norms)
# products of its two softmaxes with values of twice the width are counted once
DIFFLLAMA = replace(LLAMA, model_type="diffllama", mlp_bias=False, extras=_lambdas)
GPT_NEOX_JAPANESE = replace(
    GPT_NEOX,
    model_type="gpt_neox_japanese",
    ffn=(),
    ffn_times="intermediate_multiple_size",
    tied=True,
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
    parallel=False,
    extras=_last_bias,
)
CPMANT = Architecture(
    model_type="cpmant",
    kv_heads=(),
    head_dim=("dim_head",),
    ffn=("dim_ff",),
    seq_len=(),
    activation_class="gelu",
    tie_heeded=False,
    extras=_cpm_tables,
)
DOGE = replace(
    LLAMA,
    model_type="doge",
    qk_norm="head",
    extras=_doge,
    refuse=(
        Refusal("is_moe", (False, None), "experts that are rows of two tables are not counted"),
    ),
)
MODERNBERT_DECODER = Architecture(
    model_type="modernbert-decoder",
    kv_heads=(),
    head_dim=(),
    tied=True,
    activation_class="gelu",
    norm_bias=Switch("norm_bias"),
    embedding_norm=True,
    qkv_bias=Switch("attention_bias"),
    out_bias=Switch("attention_bias"),
    mlp_bias=Switch("mlp_bias"),
    head_bias=Switch("decoder_bias", usual=True),
    window=Sliding.EVERY,
    whole_every=3,
    extras=_modern_bert,
)


TABLE = {
    each.model_type: each
    for each in (
        APERTUS,
        APERTUS1P5_TEXT,
        BITNET,
        DIFFLLAMA,
        GPT_NEOX_JAPANESE,
        CPMANT,
        DOGE,
        MODERNBERT_DECODER,
        LLAMA,
        CWM,
        EXAONE,
        INTERNLM3,
        IQUESTCODER,
        HELIUM,
        EMU3_TEXT_MODEL,
        HYPERCLOVAX,
        GRANITE_SWA,
        NANOCHAT,
        JAIS2,
        MINICPM3,
        YOUTU,
        PERSIMMON,
        GPT_SW3,
        OPENAI_GPT,
        CTRL,
        GPT_NEO,
        BIOGPT,
        XGLM,
        MISTRAL,
        MINISTRAL,
        MINISTRAL3,
        SMOLLM3,
        GRANITE,
        HUNYUAN_V1_DENSE,
        ARCEE,
        OLMO,
        OLMO2,
        OLMO3,
        EXAONE4,
        SEED_OSS,
        ERNIE4_5,
        QWEN2,
        QWEN2_VL_TEXT,
        QWEN2_5_VL_TEXT,
        QWEN3,
        QWEN3_VL_TEXT,
        GEMMA,
        GEMMA2,
        GEMMA3_TEXT,
        VAULTGEMMA,
        GLM,
        GLM4,
        PHI,
        PHI3,
        COHERE,
        COHERE2,
        COHERE_COMPASS_TEXT,
        STABLELM,
        NEMOTRON,
        STARCODER2,
        GPT2,
        GPT_BIGCODE,
        GPTJ,
        CODEGEN,
        GPT_NEOX,
        OPT,
        BLOOM,
        MPT,
        FALCON,
    )
}
