"""Decoder-only architectures of the transformers library, as a table: one entry is what its code
builds from a config.

Field names, what the config class puts where the file says nothing, biases, norms, tying, which
layers are MoE and
which slide. Facts read from the library's configuration and modelling code (release 5.23). To add
one: the nearest
relative with `_like`, the differences, and a count of the library in tests/published/hf.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Flag:
    """A switch read from the file, and the class's value where the file leaves it out."""

    field: str
    default: bool = False


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Architecture:
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
    refuse: tuple[
        tuple[str, tuple, str], ...
    ] = ()  # field, values that are understood, why others are not


ARCHITECTURES: dict[str, Architecture] = {}


def _add(*entries: Architecture) -> None:
    for entry in entries:
        ARCHITECTURES[entry.model_type] = entry


def _like(other: str, model_type: str, **changes) -> None:
    _add(replace(ARCHITECTURES[other], model_type=model_type, **changes))


_ATTENTION_BIAS = dict(qkv_bias=Flag("attention_bias"), out_bias=Flag("attention_bias"))
_ALL_BIASES = dict(qkv_bias=True, out_bias=True, mlp_bias=True)

# Llama and its descendants: RMSNorm, gated MLP, rotary positions
_add(Architecture("llama", kv_rule="heads", mlp_bias=Flag("mlp_bias"), **_ATTENTION_BIAS))
_add(Architecture("mistral", window="all", window_class=4096))
_like("mistral", "ministral", window="every-1")
_like("mistral", "ministral3", head_dim_class=128, window="")
_like("llama", "smollm3", tied=True, kv_rule="required", window="qwen")
_like("llama", "granite")
_like("llama", "hunyuan_v1_dense", mlp_bias=False, qk_norm="head")
_like("llama", "arcee", gated=False, activation_class="relu2")
_add(Architecture("olmo", kv_rule="heads", no_norm_weights=True, **_ATTENTION_BIAS))
_add(Architecture("olmo2", kv_rule="heads", qk_norm="width", **_ATTENTION_BIAS))
_like("olmo2", "olmo3", window="every-4", window_class=4096)
_add(Architecture("exaone4", qk_norm="head", window="every-4", window_class=4096))
_add(
    Architecture(
        "seed_oss",
        head_dim_class=128,
        qkv_bias=Flag("attention_bias", True),
        out_bias=Flag("attention_out_bias"),
        mlp_bias=Flag("mlp_bias"),
    )
)
_add(
    Architecture(
        "ernie4_5",
        tied=True,
        head_dim_class=128,
        qkv_bias=Flag("use_bias"),
        out_bias=Flag("use_bias"),
        mlp_bias=Flag("use_bias"),
    )
)

# Qwen
_add(Architecture("qwen2", qkv_bias=True, window="qwen", window_class=4096))
_like("qwen2", "qwen2_vl_text")
_like("qwen2", "qwen2_5_vl_text")
_add(
    Architecture(
        "qwen3",
        head_dim_class=128,
        qk_norm="head",
        window="qwen",
        window_class=4096,
        **_ATTENTION_BIAS,
    )
)
_like("qwen3", "qwen3_vl_text", window="")

# Gemma: (1 + weight) RMSNorm, gated GELU, tied
_add(
    Architecture("gemma", tied=True, head_dim_class=256, activation_class="gelu", **_ATTENTION_BIAS)
)
_like("gemma", "gemma2", norms=4, window="every-2", window_class=4096)
_like(
    "gemma2",
    "gemma3_text",
    qk_norm="head",
    window="every-6",
    class_dimensions=(
        ("num_attention_heads", 8),
        ("num_key_value_heads", 4),
        ("head_dim", 256),
        ("vocab_size", 262208),
    ),
)
_like("gemma2", "vaultgemma", norms=2)

# GLM, Phi, Cohere, StableLM, Nemotron, StarCoder 2
_add(Architecture("glm", head_dim_class=128, qkv_bias=Flag("attention_bias", True)))
_like("glm", "glm4", norms=4)
_add(
    Architecture(
        "phi",
        kv_rule="heads",
        head_dim=(),
        gated=False,
        activation_class="gelu_new",
        norms=1,
        norm_bias=True,
        head_bias=True,
        parallel=True,
        refuse=(("qk_layernorm", (False, None), "its q/k LayerNorm is not counted"),),
        **_ALL_BIASES,
    )
)
_add(Architecture("phi3", kv_rule="heads", window="all"))
_add(
    Architecture(
        "cohere",
        kv_rule="heads",
        head_dim=("head_dim",),
        tied=True,
        norms=1,
        parallel=True,
        qk_norm="width",
        qk_norm_flag=Flag("use_qk_norm"),
        **_ATTENTION_BIAS,
    )
)
_like("cohere", "cohere2", qk_norm="", qk_norm_flag=None, window="every-4", window_class=4096)
_add(
    Architecture(
        "stablelm",
        head_dim=(),
        norm_bias=True,
        qkv_bias=Flag("use_qkv_bias"),
        parallel=Flag("use_parallel_residual"),
        refuse=(
            ("qk_layernorm", (False, None), "its q/k LayerNorm is not counted"),
            ("use_parallel_residual", (False, None), "its parallel block is not counted"),
        ),
    )
)
_add(
    Architecture(
        "nemotron",
        kv_rule="heads",
        gated=False,
        activation_class="relu2",
        norm_bias=True,
        mlp_bias=Flag("mlp_bias"),
        **_ATTENTION_BIAS,
    )
)
_add(
    Architecture(
        "starcoder2",
        head_dim=(),
        tied=True,
        gated=False,
        activation_class="gelu_pytorch_tanh",
        norm_bias=True,
        window="all",
        qkv_bias=Flag("use_bias", True),
        out_bias=Flag("use_bias", True),
        mlp_bias=Flag("use_bias", True),
    )
)

# GPT and its contemporaries: LayerNorm, plain MLP
_add(
    Architecture(
        "gpt2",
        layers=("n_layer", "num_hidden_layers"),
        hidden=("n_embd", "hidden_size"),
        heads=("n_head", "num_attention_heads"),
        kv_heads=(),
        kv_rule="equal",
        head_dim=(),
        ffn=("n_inner",),
        ffn_multiple=4,
        seq_len=("n_positions", "max_position_embeddings", "n_ctx"),
        tied=True,
        gated=False,
        activation_class="gelu_new",
        norm_bias=True,
        positions=("n_positions", "max_position_embeddings"),
        refuse=(("add_cross_attention", (False, None), "cross attention is an encoder-decoder's"),),
        **_ALL_BIASES,
    )
)
_like("gpt2", "gpt_bigcode", kv_rule="multi-query", refuse=())
_like(
    "gpt2",
    "gptj",
    tied=False,
    norms=1,
    positions=(),
    qkv_bias=False,
    out_bias=False,
    head_bias=True,
    parallel=True,
    refuse=(),
)
_like("gptj", "codegen")
_add(
    Architecture(
        "gpt_neox",
        kv_heads=(),
        kv_rule="equal",
        head_dim=(),
        gated=False,
        activation_class="gelu",
        norm_bias=True,
        qkv_bias=Flag("attention_bias", True),
        out_bias=Flag("attention_bias", True),
        mlp_bias=True,
        parallel=Flag("use_parallel_residual", True),
    )
)
_add(
    Architecture(
        "opt",
        kv_heads=(),
        kv_rule="equal",
        head_dim=(),
        ffn=("ffn_dim",),
        tied=True,
        gated=False,
        activation_class="relu",
        norm_bias=True,
        positions=("max_position_embeddings",),
        positions_extra=2,
        qkv_bias=Flag("enable_bias", True),
        out_bias=Flag("enable_bias", True),
        mlp_bias=Flag("enable_bias", True),
        refuse=(
            (
                "do_layer_norm_before",
                (True, None),
                "post-norm OPT has no final norm and projects its embedding",
            ),
            ("_remove_final_layer_norm", (False, None), "its norms are not counted"),
            ("layer_norm_elementwise_affine", (True, None), "its norms are not counted"),
        ),
    )
)
_add(
    Architecture(
        "bloom",
        layers=("n_layer", "num_hidden_layers"),
        hidden=("hidden_size", "n_embed"),
        heads=("n_head", "num_attention_heads"),
        kv_heads=(),
        kv_rule="equal",
        head_dim=(),
        ffn=(),
        ffn_multiple=4,
        seq_len=("seq_length",),
        tied=True,
        gated=False,
        activation_class="gelu",
        norm_bias=True,
        embedding_norm=True,
        **_ALL_BIASES,
    )
)
_add(
    Architecture(
        "mpt",
        layers=("n_layers", "num_hidden_layers"),
        hidden=("d_model", "hidden_size"),
        heads=("n_heads", "num_attention_heads"),
        kv_heads=(),
        kv_rule="equal",
        head_dim=(),
        ffn=(),
        ffn_multiple=4,
        seq_len=("max_seq_len",),
        tied=True,
        gated=False,
        activation_class="gelu",
        refuse=(
            ("no_bias", (True, None), "biases of this kind are not counted"),
            ("expansion_ratio", (4, 4.0, None), "another expansion ratio is not counted"),
            ("attn_config.alibi", (True, None), "its position table is not built by the library"),
            (
                "attn_config.attn_type",
                ("multihead_attention", None),
                "grouped heads are not built by the library",
            ),
            ("attn_config.qk_ln", (False, None), "its q/k norm is not counted"),
        ),
    )
)
_add(
    Architecture(
        "falcon",
        layers=("num_hidden_layers", "n_layer"),
        heads=("num_attention_heads", "n_head"),
        kv_heads=("num_kv_heads", "n_head_kv"),
        kv_rule="falcon",
        head_dim=(),
        ffn=("ffn_hidden_size",),
        ffn_multiple=4,
        tied=True,
        gated=False,
        activation_class="gelu",
        norms=0,
        norm_bias=True,
        qkv_bias=Flag("bias"),
        out_bias=Flag("bias"),
        mlp_bias=Flag("bias"),
        parallel=Flag("parallel_attn", True),
    )
)

# Mixtures of experts
_add(Architecture("mixtral", window="all", moe=Moe("all", width=("intermediate_size",), dense=())))
_add(
    Architecture(
        "phimoe",
        norm_bias=True,
        head_bias=Flag("lm_head_bias"),
        window="all",
        moe=Moe("all", width=("intermediate_size",), dense=()),
        **_ATTENTION_BIAS,
    )
)
_add(
    Architecture(
        "minimax_m2",
        head_dim_class=128,
        qk_norm="width",
        mtp=("num_mtp_modules",),
        router_buffers=True,
        moe=Moe("all", width=("intermediate_size",), dense=()),
    )
)
_add(
    Architecture(
        "gpt_oss",
        head_dim_class=64,
        qkv_bias=Flag("attention_bias", True),
        out_bias=Flag("attention_bias", True),
        expert_bias=True,
        router_bias=True,
        sinks=True,
        window="every-2",
        window_class=128,
        moe=Moe(
            "all",
            width=("intermediate_size",),
            dense=(),
            top_k=("num_experts_per_tok", "experts_per_token"),
        ),
    )
)
_add(
    Architecture(
        "olmoe",
        kv_rule="heads",
        head_dim=(),
        qk_norm="width",
        refuse=(("head_dim", (None,), "its q/k norm is sized by hidden / heads"),),
        moe=Moe("all", width=("intermediate_size",), dense=()),
        **_ATTENTION_BIAS,
    )
)
_add(
    Architecture(
        "granitemoe",
        kv_rule="heads",
        moe=Moe("all", width=("intermediate_size",), dense=()),
        **_ATTENTION_BIAS,
    )
)
_like(
    "granitemoe",
    "granitemoeshared",
    moe=Moe("all", width=("intermediate_size",), dense=(), shared="width:shared_intermediate_size"),
)
_add(
    Architecture(
        "qwen2_moe",
        qkv_bias=Flag("qkv_bias", True),
        window="qwen",
        window_class=4096,
        moe=Moe(
            "sparse-step",
            experts=("num_experts",),
            shared="width:shared_expert_intermediate_size",
            shared_gate=True,
        ),
    )
)
_add(
    Architecture(
        "qwen3_moe",
        qk_norm="head",
        window="qwen",
        window_class=4096,
        moe=Moe("sparse-step", experts=("num_experts", "num_local_experts")),
        **_ATTENTION_BIAS,
    )
)
_like("qwen3_moe", "qwen3_vl_moe_text", window="")
_ROUTED = ("n_routed_experts", "num_local_experts", "num_experts")
_add(
    Architecture(
        "deepseek_v2",
        kv_rule="heads",
        mla=True,
        mlp_bias=Flag("mlp_bias"),
        moe=Moe("first-k", experts=_ROUTED, shared="count:n_shared_experts", first_k=0),
        **_ATTENTION_BIAS,
    )
)
_add(
    Architecture(
        "deepseek_v3",
        kv_rule="heads",
        mla=True,
        router_buffers=True,
        mtp=("num_nextn_predict_layers", "num_mtp_layers"),
        moe=Moe("first-k", experts=_ROUTED, shared="count:n_shared_experts", first_k=3),
        **_ATTENTION_BIAS,
    )
)
_like("deepseek_v3", "kimi_k2")  # its files name the DeepSeek-V3 class
_add(
    Architecture(
        "dots1",
        qk_norm="head",
        router_buffers=True,
        moe=Moe("first-k", experts=_ROUTED, shared="count:n_shared_experts", first_k=0),
        **_ATTENTION_BIAS,
    )
)
_add(
    Architecture(
        "glm4_moe",
        qk_norm="head",
        qk_norm_flag=Flag("use_qk_norm"),
        qkv_bias=Flag("attention_bias"),
        router_buffers=True,
        mtp=("num_nextn_predict_layers", "num_mtp_layers"),
        moe=Moe("first-k", experts=_ROUTED, shared="count:n_shared_experts", first_k=1),
    )
)
_add(
    Architecture(
        "ernie4_5_moe",
        tied=True,
        qkv_bias=Flag("use_bias"),
        out_bias=Flag("use_bias"),
        mlp_bias=Flag("use_bias"),
        head_bias=Flag("use_bias"),
        router_bias=True,
        moe=Moe(
            "start-interval",
            experts=("moe_num_experts", "num_experts"),
            top_k=("moe_k", "num_experts_per_tok"),
            shared="count:moe_num_shared_experts",
        ),
    )
)
_add(
    Architecture(
        "llama4_text",
        head_dim_class=128,
        window="chunk",
        window_field="attention_chunk_size",
        window_class=8192,
        **_ATTENTION_BIAS,
        moe=Moe(
            "interleave",
            width=("intermediate_size",),
            dense=("intermediate_size_mlp",),
            shared="one",
        ),
    )
)


@dataclass(frozen=True)
class Composite:
    """A multimodal config: its language part, and whose tie_word_embeddings the library heeds
    (whole, part or either)."""

    text: str  # architecture of the language part where the part does not name it
    tie_read_from: str = "either"
    tied: bool = False  # where no heeded place says
    part: str = "text_config"


COMPOSITES = {
    "gemma3": Composite("gemma3_text", "whole", True),
    "llama4": Composite("llama4_text", "part"),
    "mistral3": Composite("", "whole", True),
    "llava": Composite(""),
    "qwen2_vl": Composite("qwen2_vl_text"),
    "qwen2_5_vl": Composite("qwen2_5_vl_text"),
    "qwen3_vl": Composite("qwen3_vl_text", "whole"),
    "qwen3_vl_moe": Composite("qwen3_vl_moe_text", "whole"),
}

# Known, and not a stack of attention and MLP blocks that read left to right
REFUSED: dict[str, str] = {}
for _why, _types in {
    "an encoder-decoder": "t5 mt5 umt5 longt5 switch_transformers bart mbart pegasus bigbird_pegasus "
    "blenderbot led marian "
    "m2m_100 nllb-moe prophetnet fsmt plbart mvp encoder-decoder t5gemma",
    "an encoder-decoder speech model": "whisper speech_to_text speecht5 seamless_m4t moonshine",
    "encoder-only (bidirectional)": "bert roberta xlm-roberta distilbert albert electra deberta deberta-v2 modernbert "
    "mpnet "
    "camembert ernie nomic_bert esm longformer big_bird roformer rembert",
    "a state-space model without attention": "mamba mamba2 falcon_mamba rwkv recurrent_gemma xlstm",
    "a state-space hybrid, most of whose layers are not attention": "jamba zamba zamba2 bamba nemotron_h falcon_h1 "
    "granitemoehybrid plamo2",
    "a linear-attention hybrid, most of whose layers are not softmax attention": "qwen3_next qwen3_5 qwen3_5_moe minimax "
    "kimi_linear lfm2 lfm2_moe olmo_hybrid bailing_hybrid",
    "a vision encoder": "vit clip siglip siglip_vision_model dinov2 swin",
}.items():
    REFUSED.update(dict.fromkeys(_types.split(), _why))
