"""The shape of a decoder-only transformer: its parameters and its matrix products.

`Model` is the record a design holds; `make_shape` turns it, or columns of its fields, into the
table of blocks that all arithmetic reads, so that one design and a thousand published runs go the
same way. Integers in, exact integers out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...base.errors import DesignError
from ...blocks.attention import Attention
from ...blocks.embedding import Embedding
from ...blocks.head import Head
from ...blocks.mla import Mla
from ...blocks.mlp import Mlp
from ...blocks.moe import Moe
from ...blocks.mtp import Mtp
from ...blocks.table import Block, Shape
from ...blocks.window import Window, WindowMla

GATED = ("swiglu", "geglu")  # three matrices: gate, up, down
PLAIN = ("gelu", "squared-relu", "relu")  # two matrices: up, down
MLPS = GATED + PLAIN
ATTENTIONS = ("mha", "gqa", "mqa", "mla")
QK_NORMS = ("", "head", "width")
MOE_LAYOUTS = ("dense-first", "interleaved")
_CHOICES = dict(
    mlp=MLPS,
    attention=ATTENTIONS,
    qk_norm=QK_NORMS,
    moe_layout=MOE_LAYOUTS,
)
_SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab")


@dataclass(
    frozen=True,
    kw_only=True,
)
class Model:
    """A decoder-only transformer by its dimensions.

    `ffn_hidden` is the width of the dense layers, `expert_ffn_hidden` of one routed expert and
    `shared_ffn_hidden` the summed width of the shared experts of a layer. `moe_layers` of the
    `layers` are MoE: the last ones (`dense-first`) or every n-th (`interleaved`). `window` tokens
    are attended to in `windowed_layers`, all of them in the others. MTP modules are not among the
    `layers`.

    What a paper's shape table leaves out defaults to the usual: two norms a layer and a final one,
    weights only, no biases, no learned positions. An importer sets these from the model's own code.
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


@dataclass(
    frozen=True,
    kw_only=True,
)
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


@dataclass(
    frozen=True,
    kw_only=True,
)
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
    for field, holds, allowed, problem in _rules(model, names):
        if not holds:
            value = getattr(model, field)
            raise DesignError(
                names.get(field, field),
                value,
                allowed,
                problem=problem,
            )
    return model


def _rules(m: Model, names: dict[str, str]):
    """(field, whether it holds, what is allowed, what is wrong) of each rule in turn."""
    for field, choices in _CHOICES.items():
        yield field, getattr(m, field) in choices, choices, ""
    for least, those in ((1, _SIZES), (0, _COUNTS)):
        for field in those:
            yield field, getattr(m, field) >= least, f"a whole number of at least {least}", ""
    heads, layers, experts = (
        f"{names.get(field, field)} {getattr(m, field)}" for field in ("heads", "layers", "experts")
    )
    yield "kv_heads", not m.heads % m.kv_heads, f"a divisor of {heads}", f"does not divide {heads}"
    yield "moe_layers", m.moe_layers <= m.layers, f"at most {layers}", f"is more than {layers}"
    many = "as many as there are layers with experts"
    alike = bool(m.experts) == bool(m.moe_layers)
    yield "moe_layers", alike, many, f"does not go with {experts}"
    if m.experts:
        between = f"is not between 1 and {experts}"
        yield "top_k", 1 <= m.top_k <= m.experts, f"1 to {experts}", between
        yield "expert_ffn_hidden", m.expert_ffn_hidden >= 1, "the width of one expert", ""
    dense = f"the width of the {m.dense_layers} dense layers"
    yield "ffn_hidden", not m.dense_layers or m.ffn_hidden >= 1, dense, ""
    windowed = m.windowed_layers <= m.layers
    yield "windowed_layers", windowed, f"at most {layers}", f"is more than {layers}"
    if m.attention == "mla":
        for field in ("kv_lora", "qk_nope", "qk_rope", "v_head_dim"):
            yield field, getattr(m, field) >= 1, "a dimension of multi-head latent attention", ""


def attention_kind(heads: int, kv_heads: int) -> str:
    """What attention with so many heads of queries, and of keys and values, is called."""
    return "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"


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
    """The table of blocks of fields named as in `Model`, scalars or columns [n]; what is left out
    is `Model`'s default.

    `mlp`, `attention` and `qk_norm` may be strings or columns of strings. A nan in a column counts
    as 0 (the dense width of a model with no dense layer); whether a dimension is missing is for the
    caller to say.
    """
    unknown = (
        set(columns)
        - _DEFAULTS.keys()
        - {
            "name",
            "source",
            "seq_len",
            "moe_layout",
        }
    )
    if unknown:
        raise TypeError(f"make_shape got unknown fields {sorted(unknown)}")
    raw = {
        **_DEFAULTS,
        **columns,
    }
    m = SimpleNamespace(**{k: v if k in _WORDS else _number(v) for k, v in raw.items()})
    m.norm = m.hidden * (1 + m.norm_bias)
    mixers, feeds = _mixers(m), _feeds(m)
    ends = dict(
        count=1,
        hidden=m.hidden,
        vocab=m.vocab,
    )
    head = Head(
        **ends,
        tied=m.tied_embeddings,
        bias=m.head_bias,
        norms=m.final_norm * m.norm,
    )
    blocks = [
        Embedding(
            **ends,
            positions=m.position_rows,
            norms=m.embedding_norm * m.norm,
        ),
        *mixers,
        *feeds,
        head,
    ]
    if np.any(m.mtp_layers):
        blocks.append(
            _mtp(
                m,
                mixers,
                feeds,
                head,
            )
        )
    return Shape(
        layers=m.layers,
        hidden=m.hidden,
        blocks=tuple(blocks),
    )


def _mixers(m) -> list[Block]:
    """The attention blocks of the layers: each kind with the whole sequence, then with a window."""
    latent = _flag(m.attention, ("mla",))
    common = dict(
        hidden=m.hidden,
        heads=m.heads,
        norms=m.norms_per_layer * m.norm,
        head_norm=_flag(m.qk_norm, ("head",)),
        width_norm=_flag(m.qk_norm, ("width",)),
        **{k: getattr(m, k) for k in ("qkv_bias", "out_bias", "sinks", "relative_positions")},
    )
    ranks = {k: getattr(m, k) for k in ("q_lora", "kv_lora", "qk_nope", "qk_rope")}
    ranks["v_head"] = m.v_head_dim
    heads = dict(
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
    )
    blocks = []
    for has, whole, windowed, own in (
        (1 - latent, Attention, Window, heads),
        (latent, Mla, WindowMla, ranks),
    ):
        if np.any(has):
            own = {
                **common,
                **own,
            }
            blocks.append(
                whole(
                    count=has * (m.layers - m.windowed_layers),
                    **own,
                )
            )
            if np.any(has * m.windowed_layers):
                count = has * m.windowed_layers
                blocks.append(
                    windowed(
                        count=count,
                        window=m.window,
                        **own,
                    )
                )
    return blocks


def _feeds(m) -> list[Block]:
    """The feed-forward blocks of the layers: the dense MLP, and the experts where there are any."""
    common = dict(
        hidden=m.hidden,
        matrices=2 + _flag(m.mlp, GATED),
        parallel=m.parallel_block,
    )
    dense = m.layers - m.moe_layers
    blocks: list[Block] = [
        Mlp(
            count=dense,
            width=m.ffn_hidden,
            bias=m.mlp_bias,
            **common,
        )
    ]
    if np.any(m.moe_layers):
        moe = Moe(
            count=m.moe_layers,
            width=m.expert_ffn_hidden,
            shared_width=m.shared_ffn_hidden,
            shared_bias=m.mlp_bias,
            **{k: getattr(m, k) for k in _OF_EXPERTS},
            **common,
        )
        blocks.append(moe)
    return blocks


def _mtp(
    m,
    mixers,
    feeds,
    head: Head,
) -> Mtp:
    """The MTP modules: a layer of the last kind over the whole sequence."""
    last, latent = 1 * (m.moe_layers > 0), _flag(m.attention, ("mla",))
    layer = [replace(b, count=latent if b.kind == "mla" else 1 - latent) for b in mixers]
    layer = [b for b in layer if b.kind in ("attention", "mla")]
    layer += [replace(b, count=last if b.kind == "moe" else 1 - last) for b in feeds]
    return Mtp(
        count=m.mtp_layers,
        hidden=m.hidden,
        layer=tuple(layer),
        head=head,
        norms=m.final_norm * m.norm,
    )


def shape_of(model: Model) -> Shape:
    """The table of blocks of one `Model`."""
    return make_shape(**{f.name: getattr(model, f.name) for f in fields(model)})


def parameters(model: Model | Shape) -> Params:
    """Parameters of a model by part [count], exact by shape; columns in, columns out.

    Tied weights count once, biases with the part they belong to, learned positions with the
    embedding. `active` = total - moe_layers * (experts - top_k) * expert, so it keeps the embedding
    and the output head; publishers that leave the embedding out print less. MTP modules (`mtp`: a
    layer of the last kind, the 2h x h projection and three norms; embedding and head shared, as in
    DeepSeek-V3, arXiv 2412.19437, section 2.2) are not in `total`. Load-balancing biases that a
    library keeps as buffers are not parameters. Agrees with the counts of the transformers library
    to the last digit for the architectures that `hf.py` reads.
    """
    s = shape_of(model) if isinstance(model, Model) else model
    parts = _by_part(s.blocks, lambda b: b.parameters())
    unused, mtp = parts.pop("unused", 0), parts.pop("mtp", 0)
    total = sum(parts.values())
    mixers = _by_part(s.of("mixer"), lambda b: b.parameters())
    attention, norms = (_over(mixers.get(k, 0), s.layers) for k in ("attention", "norms"))
    mlp = sum(b.parameters()["mlp_dense"] for b in s.blocks if b.kind == "mlp")
    experts = _one(s.of("moe"))
    shared, router = experts["shared_experts"] + experts["other"], experts["router"]
    routed = experts["routed_experts"]
    return Params(
        total=total,
        active=total - unused,
        **{name: parts.get(name, 0) for name in _PARTS},
        mtp=mtp,
        attention_per_layer=attention,
        norms_per_layer=norms,
        mlp_per_dense_layer=mlp,
        shared_per_moe_layer=shared,
        router_per_moe_layer=router,
        expert=sum((b.count > 0) * b.expert() for b in s.of("moe")),
        experts_per_moe_layer=routed,
        dense_layer=attention + norms + mlp,
        moe_layer=attention + norms + shared + router + routed,
    )


def flops_per_token(model: Model | Shape, seq_len: Any) -> Flops:
    """Training FLOP per token [FLOP] at `seq_len` tokens per sequence: 3 x forward, matrix products
    only.

    Linear parts: 6 * weights (2 per multiply-add, forward once, backward twice). Scores: 6 *
    seq_len * heads * (query + value size) per layer: full attention, no causal halving, no window,
    no recompute. The output head is in, the embedding look-up out; routed experts are top_k of
    them, no capacity factor, no padding. `mtp` is apart. This is the count of PaLM (arXiv
    2204.02311, appendix B) and Megatron-LM; counts that halve the causal scores are lower, 6 *
    parameters leaves the scores out. Equals torch's FlopCounterMode on the transformers library's
    models.
    """
    s = shape_of(model) if isinstance(model, Model) else model
    parts = _by_part(s.blocks, lambda b: b.flops(seq_len))
    mtp = parts.pop("mtp", 0)
    named = {f.name: parts.get(f.name, 0) for f in fields(Flops) if f.name not in ("total", "mtp")}
    return Flops(
        total=sum(parts.values()),
        **named,
        mtp=mtp,
    )


def _by_part(blocks, answer) -> dict[str, Any]:
    """Counts x what the blocks answer, summed by part."""
    parts: dict[str, Any] = {}
    for block in blocks:
        for name, value in answer(block).items():
            parts[name] = parts.get(name, 0) + block.count * value
    return parts


def _one(blocks) -> dict[str, Any]:
    """The parts of one block of the only kind of these that a model has."""
    parts: dict[str, Any] = dict.fromkeys(_PARTS, 0)
    for block in blocks:
        for name, value in block.parameters().items():
            parts[name] = parts.get(name, 0) + (block.count > 0) * value
    return parts


def _over(value, count):
    """value / count, exact for whole numbers."""
    whole = np.asarray(value).dtype.kind in "iO" and np.asarray(count).dtype.kind in "iO"
    return value // count if whole else value / count


_PARTS = tuple(f.name for f in fields(Params))[2:11]
_WORDS = ("mlp", "attention", "qk_norm")
_OF_EXPERTS = ("experts", "top_k", "shared_gate", "expert_bias", "router_bias")
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
