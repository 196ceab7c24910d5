"""The shape of a decoder-only transformer: its parameters and its matrix products.

`Model` is the record a design holds; `Shape` is the same in purely numeric form, where every field
may be
one number or a column of numbers, so that one design and a thousand published runs go through the
same
arithmetic. Integers in, exact integers out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...base.errors import DesignError

GATED = ("swiglu", "geglu")  # three matrices: gate, up, down
PLAIN = ("gelu", "squared-relu", "relu")  # two matrices: up, down
MLPS = GATED + PLAIN
ATTENTIONS = ("mha", "gqa", "mqa", "mla")
QK_NORMS = ("", "head", "width")
MOE_LAYOUTS = ("dense-first", "interleaved")


@dataclass(frozen=True)
class Model:
    """A decoder-only transformer by its dimensions.

    `ffn_hidden` is the width of the dense layers, `expert_ffn_hidden` of one routed expert and
    `shared_ffn_hidden` the summed width of the shared experts of a layer. `moe_layers` of the
    `layers` are MoE:
    the last ones (`dense-first`) or every n-th (`interleaved`). `window` tokens are attended to in
    `windowed_layers`, all of them in the others. MTP modules are not among the `layers`.

    What a paper's shape table leaves out defaults to the usual: two norms a layer and a final one,
    weights
    only, no biases, no learned positions. An importer sets these from the model's own code.
    """

    name: str
    layers: int
    hidden: int
    ffn_hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    mlp: str = "swiglu"
    attention: str = "gqa"
    tied_embeddings: bool = False
    seq_len: int | None = None
    experts: int = 0
    top_k: int = 0
    expert_ffn_hidden: int = 0
    shared_ffn_hidden: int = 0
    moe_layers: int = 0
    moe_layout: str = "dense-first"
    mtp_layers: int = 0
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_head_dim: int = 0
    window: int = 0
    windowed_layers: int = 0
    norms_per_layer: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: str = (
        ""  # "head": one weight of head_dim each for q and k; "width": over the projections
    )
    position_rows: int = 0  # learned position table
    relative_positions: bool = (
        False  # one more hidden x q projection a layer, for the positions (Transformer-XL)
    )
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    head_bias: bool = False
    sinks: bool = False  # one learned attention sink per head
    shared_gate: bool = False  # hidden x 1 gate on the shared expert
    parallel_block: bool = False  # attention and MLP read the same input
    router_buffers: bool = (
        False  # load-balancing bias per expert, kept as a buffer: in the file, not a parameter
    )
    source: str = ""

    @property
    def is_moe(self) -> bool:
        return self.experts > 0 and self.moe_layers > 0

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers


@dataclass(frozen=True)
class Shape:
    """`Model` in numbers alone; each field one number or a column [n]. Flags are 0 or 1."""

    layers: Any
    hidden: Any
    q_width: Any  # heads x query head size
    kv_width: Any  # key and value: 2 x kv_width together (MLA: as expanded, the mean of both)
    out_width: Any  # input width of the output projection, heads x value head size
    heads: Any
    kv_heads: Any
    head_dim: Any
    ffn_hidden: Any
    ffn_matrices: Any  # 3 gated, 2 plain
    vocab: Any
    tied: Any
    experts: Any
    top_k: Any
    expert_ffn_hidden: Any
    shared_ffn_hidden: Any
    moe_layers: Any
    mtp_layers: Any
    mla: Any
    q_lora: Any
    kv_lora: Any
    qk_nope: Any
    qk_rope: Any
    v_head_dim: Any
    window: Any
    windowed_layers: Any
    shared_gate: Any
    parallel_block: Any
    norm_params: Any  # per layer, q/k and low-rank norms included
    attention_bias_params: Any  # per layer, sinks and the position projection included
    mlp_bias_params: Any  # per dense layer
    expert_bias_params: Any  # per routed expert
    shared_bias_params: Any  # per MoE layer
    router_bias_params: Any  # per MoE layer
    position_params: Any  # outside the layers, in the embedding
    head_bias_params: Any
    outside_norm_params: Any  # final and embedding norms
    final_norm_params: Any

    @property
    def dense_layers(self) -> Any:
        return self.layers - self.moe_layers


@dataclass(frozen=True)
class Params:
    """Parameters by part [count]; `mtp` stands apart, the parts from embedding to other sum to
    `total`."""

    total: Any
    active: Any
    embedding: Any
    lm_head: Any
    attention: Any
    mlp_dense: Any
    shared_experts: Any
    router: Any
    routed_experts: Any
    norms: Any
    other: Any
    mtp: Any
    attention_per_layer: Any
    norms_per_layer: Any
    mlp_per_dense_layer: Any
    shared_per_moe_layer: Any
    router_per_moe_layer: Any
    expert: Any
    experts_per_moe_layer: Any
    dense_layer: Any
    moe_layer: Any

    @property
    def non_embedding(self) -> Any:
        return self.total - self.embedding - self.lm_head


@dataclass(frozen=True)
class Flops:
    """Training FLOP per token by part (3 x forward, matrix products); `mtp` apart, the others sum
    to `total`."""

    total: Any
    attention_linear: Any
    attention_scores: Any
    mlp_dense: Any
    shared_experts: Any
    shared_gate: Any
    router: Any
    routed_experts: Any
    lm_head: Any
    mtp: Any


def check_model(model: Model, read_as: dict[str, str] | None = None) -> Model:
    """The same model, or one DesignError naming the dimension that cannot be, by the name in
    `read_as` where it has one."""
    names = read_as or {}

    def wrong(field: str, allowed: Any, problem: str = "") -> DesignError:
        return DesignError(names.get(field, field), getattr(model, field), allowed, problem=problem)

    def named(field: str) -> str:
        return f"{names.get(field, field)} {getattr(model, field)}"

    for field, choices in (
        ("mlp", MLPS),
        ("attention", ATTENTIONS),
        ("qk_norm", QK_NORMS),
        ("moe_layout", MOE_LAYOUTS),
    ):
        if getattr(model, field) not in choices:
            raise wrong(field, choices)
    for field in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab"):
        if getattr(model, field) < 1:
            raise wrong(field, "a whole number of at least 1")
    for field in _COUNTS:
        if getattr(model, field) < 0:
            raise wrong(field, "a whole number of at least 0")
    if model.heads % model.kv_heads:
        raise wrong(
            "kv_heads", f"a divisor of {named('heads')}", f"does not divide {named('heads')}"
        )
    if model.moe_layers > model.layers:
        raise wrong("moe_layers", f"at most {named('layers')}", f"is more than {named('layers')}")
    if bool(model.experts) != bool(model.moe_layers):
        raise wrong(
            "moe_layers",
            "as many as there are layers with experts",
            f"does not go with {named('experts')}",
        )
    if model.experts and not 1 <= model.top_k <= model.experts:
        raise wrong("top_k", f"1 to {named('experts')}", f"is not between 1 and {named('experts')}")
    if model.experts and model.expert_ffn_hidden < 1:
        raise wrong("expert_ffn_hidden", "the width of one expert")
    if model.dense_layers and model.ffn_hidden < 1:
        raise wrong("ffn_hidden", f"the width of the {model.dense_layers} dense layers")
    if model.windowed_layers > model.layers:
        raise wrong(
            "windowed_layers", f"at most {named('layers')}", f"is more than {named('layers')}"
        )
    if model.attention == "mla":
        for field in ("kv_lora", "qk_nope", "qk_rope", "v_head_dim"):
            if getattr(model, field) < 1:
                raise wrong(field, "a dimension of multi-head latent attention")
    return model


def _flag(value: Any, among: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return int(value in among)
    return np.isin(np.asarray(value), among).astype(np.int64)


def _number(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            return value.astype(np.int64)
        if value.dtype.kind == "f":
            return np.nan_to_num(value, nan=0.0)
    return value


def make_shape(**columns: Any) -> Shape:
    """The numeric `Shape` of fields named as in `Model`, scalars or columns [n]; what is left out
    is `Model`'s default.

    `mlp` and `attention` may be strings or columns of strings. A nan in a column counts as 0 (the
    dense width of a
    model with no dense layer); whether a dimension is missing is for the caller to say.
    """
    unknown = set(columns) - _DEFAULTS.keys() - {"name", "source", "seq_len", "moe_layout"}
    if unknown:
        raise TypeError(f"make_shape got unknown fields {sorted(unknown)}")
    raw = {**_DEFAULTS, **columns}
    matrices = 2 + _flag(raw["mlp"], GATED)
    mla = _flag(raw["attention"], ("mla",))
    per_head, whole = _flag(raw["qk_norm"], ("head",)), _flag(raw["qk_norm"], ("width",))
    c = {k: _number(v) for k, v in raw.items() if k not in ("mlp", "attention", "qk_norm")}
    hidden, heads, head_dim = c["hidden"], c["heads"], c["head_dim"]
    qk_dim = mla * (c["qk_nope"] + c["qk_rope"]) + (1 - mla) * head_dim
    v_dim = mla * c["v_head_dim"] + (1 - mla) * head_dim
    q_width, out_width = heads * qk_dim, heads * v_dim
    # MLA expands its latent to one key and one value per head, of different sizes
    kv_width = mla * (heads * (qk_dim + v_dim) // 2) + (1 - mla) * c["kv_heads"] * head_dim
    norm = hidden * (1 + c["norm_bias"])
    inner = matrices - 1
    shared = c["shared_ffn_hidden"] > 0
    return Shape(
        layers=c["layers"],
        hidden=hidden,
        q_width=q_width,
        kv_width=kv_width,
        out_width=out_width,
        heads=heads,
        kv_heads=c["kv_heads"],
        head_dim=head_dim,
        ffn_hidden=c["ffn_hidden"],
        ffn_matrices=matrices,
        vocab=c["vocab"],
        tied=c["tied_embeddings"],
        experts=c["experts"],
        top_k=c["top_k"],
        expert_ffn_hidden=c["expert_ffn_hidden"],
        shared_ffn_hidden=c["shared_ffn_hidden"],
        moe_layers=c["moe_layers"],
        mtp_layers=c["mtp_layers"],
        mla=mla,
        q_lora=c["q_lora"],
        kv_lora=c["kv_lora"],
        qk_nope=c["qk_nope"],
        qk_rope=c["qk_rope"],
        v_head_dim=c["v_head_dim"],
        window=c["window"],
        windowed_layers=c["windowed_layers"],
        shared_gate=c["shared_gate"],
        parallel_block=c["parallel_block"],
        norm_params=(
            c["norms_per_layer"] * norm
            + per_head * 2 * head_dim
            + whole * (q_width + kv_width)
            + mla * (c["q_lora"] + c["kv_lora"])
        ),
        attention_bias_params=(
            c["qkv_bias"]
            * (
                mla * (c["q_lora"] + c["kv_lora"] + c["qk_rope"])
                + (1 - mla) * (q_width + 2 * kv_width)
            )
            + c["out_bias"] * hidden
            + c["sinks"] * heads
            + c["relative_positions"] * hidden * q_width
        ),
        mlp_bias_params=c["mlp_bias"] * (inner * c["ffn_hidden"] + hidden),
        expert_bias_params=c["expert_bias"] * (inner * c["expert_ffn_hidden"] + hidden),
        shared_bias_params=c["mlp_bias"] * shared * (inner * c["shared_ffn_hidden"] + hidden),
        router_bias_params=c["router_bias"] * c["experts"],
        position_params=c["position_rows"] * hidden,
        head_bias_params=c["head_bias"] * c["vocab"],
        outside_norm_params=(c["final_norm"] + c["embedding_norm"]) * norm,
        final_norm_params=c["final_norm"] * norm,
    )


def shape_of(model: Model) -> Shape:
    """The numeric `Shape` of one `Model`."""
    return make_shape(**{f.name: getattr(model, f.name) for f in fields(model)})


def attention_weights(shape: Shape) -> Any:
    """Weights of one attention block without biases and norms [count].

    Plain: h*q + 2*h*kv + q*h. MLA (DeepSeek-V2, arXiv 2405.04434, section 2.1): h*q_lora +
    q_lora*q, or h*q without
    the query's low rank; h*(kv_lora + rope) + kv_lora*heads*(nope + v) + heads*v*h.
    """
    s = shape
    plain = s.hidden * (s.q_width + 2 * s.kv_width + s.out_width)
    low_rank = s.q_lora > 0
    query = low_rank * (s.q_lora * (s.hidden + s.q_width)) + (1 - low_rank) * s.hidden * s.q_width
    latent = (
        s.hidden * (s.kv_lora + s.qk_rope)
        + s.kv_lora * s.heads * (s.qk_nope + s.v_head_dim)
        + s.hidden * s.out_width
    )
    return s.mla * (query + latent) + (1 - s.mla) * plain


def parameters(model: Model | Shape) -> Params:
    """Parameters of a model by part [count], exact by shape; columns in, columns out.

    Tied weights count once, biases with the part they belong to, learned positions with the
    embedding. `active` =
    total - moe_layers * (experts - top_k) * expert, so it keeps the embedding and the output head;
    publishers that
    leave the embedding out print less. MTP modules (`mtp`: a layer of the last kind, the 2h x h
    projection and
    three norms; embedding and head shared, as in DeepSeek-V3, arXiv 2412.19437, section 2.2) are
    not in `total`.
    Load-balancing biases that a library keeps as buffers are not parameters. Agrees with the counts
    of the
    transformers library to the last digit for the architectures that `hf.py` reads.
    """
    s = shape_of(model) if isinstance(model, Model) else model
    attention = attention_weights(s) + s.attention_bias_params
    mlp = s.ffn_matrices * s.hidden * s.ffn_hidden + s.mlp_bias_params
    shared = s.ffn_matrices * s.hidden * s.shared_ffn_hidden + s.shared_bias_params
    gate = s.shared_gate * s.hidden
    router = s.hidden * s.experts + s.router_bias_params
    expert = s.ffn_matrices * s.hidden * s.expert_ffn_hidden + s.expert_bias_params
    dense_layer = attention + s.norm_params + mlp
    moe_layer = attention + s.norm_params + shared + gate + router + s.experts * expert
    embedding = s.vocab * s.hidden + s.position_params
    lm_head = (1 - s.tied) * s.vocab * s.hidden + s.head_bias_params
    norms = s.layers * s.norm_params + s.outside_norm_params
    routed = s.moe_layers * s.experts * expert
    parts = dict(
        embedding=embedding,
        lm_head=lm_head,
        attention=s.layers * attention,
        mlp_dense=s.dense_layers * mlp,
        shared_experts=s.moe_layers * shared,
        router=s.moe_layers * router,
        routed_experts=routed,
        norms=norms,
        other=s.moe_layers * gate,
    )
    total = sum(parts.values())
    has_moe = s.moe_layers > 0
    mtp_layer = has_moe * moe_layer + (1 - has_moe) * dense_layer
    mtp = s.mtp_layers * (mtp_layer + 2 * s.hidden * s.hidden + 3 * s.final_norm_params)
    return Params(
        total=total,
        active=total - s.moe_layers * (s.experts - s.top_k) * expert,
        **parts,
        mtp=mtp,
        attention_per_layer=attention,
        norms_per_layer=s.norm_params,
        mlp_per_dense_layer=mlp,
        shared_per_moe_layer=shared + gate,
        router_per_moe_layer=router,
        expert=expert,
        experts_per_moe_layer=s.experts * expert,
        dense_layer=dense_layer,
        moe_layer=moe_layer,
    )


def flops_per_token(model: Model | Shape, seq_len: Any) -> Flops:
    """Training FLOP per token [FLOP] at `seq_len` tokens per sequence: 3 x forward, matrix products
    only.

    Linear parts: 6 * weights (2 per multiply-add, forward once, backward twice). Scores: 6 *
    seq_len * heads *
    (query + value size) per layer: full attention, no causal halving, no window, no recompute. The
    output head is in,
    the embedding look-up out; routed experts are top_k of them, no capacity factor, no padding.
    `mtp` is apart.
    This is the count of PaLM (arXiv 2204.02311, appendix B) and Megatron-LM; counts that halve the
    causal scores are
    lower, 6 * parameters leaves the scores out. Equals torch's FlopCounterMode on the transformers
    library's models.
    """
    s = shape_of(model) if isinstance(model, Model) else model
    linear = 6 * attention_weights(s)
    scores = 6 * seq_len * (s.q_width + s.out_width)
    per_width = 6 * s.ffn_matrices * s.hidden
    mlp, shared = per_width * s.ffn_hidden, per_width * s.shared_ffn_hidden
    gate, router = 6 * s.shared_gate * s.hidden, 6 * s.hidden * s.experts
    routed = per_width * s.expert_ffn_hidden * s.top_k
    head = 6 * s.vocab * s.hidden
    parts = dict(
        attention_linear=s.layers * linear,
        attention_scores=s.layers * scores,
        mlp_dense=s.dense_layers * mlp,
        shared_experts=s.moe_layers * shared,
        shared_gate=s.moe_layers * gate,
        router=s.moe_layers * router,
        routed_experts=s.moe_layers * routed,
        lm_head=head,
    )
    has_moe = s.moe_layers > 0
    mtp_layer = linear + scores + has_moe * (shared + gate + router + routed) + (1 - has_moe) * mlp
    mtp = s.mtp_layers * (mtp_layer + 12 * s.hidden * s.hidden + head)
    return Flops(total=sum(parts.values()), **parts, mtp=mtp)


_DEFAULTS = {
    f.name: f.default
    for f in fields(Model)
    if f.name not in ("name", "source", "seq_len", "moe_layout")
}
_REQUIRED = ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab")
_DEFAULTS.update(dict.fromkeys(_REQUIRED))
_COUNTS = tuple(
    f.name for f in fields(Model) if type(f.default) is int and f.name not in ("norms_per_layer",)
) + ("ffn_hidden",)
