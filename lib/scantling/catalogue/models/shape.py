"""The shape of a decoder-only transformer: its parameters and its matrix products.

`Model` is the record a design holds; `make_shape` turns it, or columns of its fields, into the
table of blocks that all arithmetic reads, so that one design and a thousand published runs go the
same way. Integers in, exact integers out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from ...base.columns import Column
from ...base.errors import DesignError
from ...base.records import record
from ...blocks import KINDS
from ...blocks.block import Block
from ...blocks.block_table import Shape
from ...blocks.head import Head
from ...blocks.moe import Moe
from ...blocks.mtp import Mtp
from . import pattern_words
from .dimensions import Dimensions, Names, number
from .patterns import attention_every, counted, counts, counts_of, layers_of


@record
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
    mtp_repeats: int = 1  # depths that one MTP module is trained for
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_head_dim: int = 0
    window: int = 0
    windowed_layers: int = 0
    chunks: bool = False  # windows stand still: a query sees keys of its own chunk alone
    mixers: str = ""  # kinds of block in place of attention: "10*shortconv(conv=3)"
    norms_per_layer: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    # "head": one weight of head_dim each for q and k; "width": over the projections
    qk_norm: str = ""
    position_rows: int = 0  # learned position table
    # weights that no part below has, counted with the embedding (scalars of activations, gains,
    # tables of a layer's own), and those of them that multiply every token
    extras: int = 0
    extra_products: int = 0
    # one more hidden x q projection a layer, for the positions (Transformer-XL)
    relative_positions: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    head_bias: bool = False
    sinks: bool = False  # one learned attention sink per head
    window_sinks: bool = False  # in the layers with a window alone
    shared_gate: bool = False  # hidden x 1 gate on the shared expert
    parallel_block: bool = False  # attention and MLP read the same input
    # load-balancing bias per expert, kept as a buffer: in the file, not a parameter
    router_buffers: bool = False
    rope_base: float = 0.0  # of the rotary positions; 0: not known
    norm_epsilon: float = 0.0  # ditto
    # the router as it was trained: what multiplies its weights, the groups that experts stand in
    # and those of them that a token may visit; 0: not known
    router_scale: float = 0.0
    router_groups: int = 0
    router_group_topk: int = 0
    router_pre_softmax: bool = False  # weights of the chosen are not brought to a sum of one
    # gates as they were trained: the largest value of either half, what is added to the half that
    # is not gated, beside a gate by the quick GELU (GPT-OSS); 0: neither
    gate_clamp: float = 0.0
    gate_offset: float = 0.0
    norm_zero_centered: bool = False  # weights of norms are kept as their distance from one
    pattern: str = ""  # the blocks of the layers in order (`patterns`); "": as counted above
    mtp_pattern: str = ""  # of one MTP module; "": a layer of the last kind
    window_heads: int = 0  # of the layers with a window, where they differ
    window_kv_heads: int = 0
    window_head_dim: int = 0
    v_dim: int = 0  # of a value head that is not latent; 0: head_dim
    shared_kv: bool = False  # keys are the values, in the layers without a window
    attention_gate: str = ""  # an output gate: "head", one number each; "width", one a value
    state_size: int = 0  # Mamba's N
    ssm_heads: int = 0
    ssm_head_dim: int = 0
    groups: int = 0
    gated_norm: bool = True  # before Mamba-2's output projection
    inner_norms: bool = False  # on Mamba-1's step size, B and C
    conv: int = 0  # taps
    conv_bias: bool = False
    proj_bias: bool = False
    dt_rank: int = 0
    d_inner: int = 0
    chunk: int = 0  # tokens that a scan's kernel takes together
    lin_k_heads: int = 0  # linear attention
    lin_v_heads: int = 0
    lin_k_dim: int = 0
    lin_v_dim: int = 0
    full_decay: bool = False  # Kimi delta attention without low-rank gates
    full_gates: bool = False
    lru_width: int = 0
    index_heads: int = 0  # the indexer of sparse attention
    index_dim: int = 0
    index_topk: int = 0
    o_lora: int = 0
    o_groups: int = 0
    hyper_connections: int = 0  # copies of the residual stream
    hyper_mixed: bool = True  # and each layer mixes them with one another
    latent: int = 0  # width that routed experts work in
    latent_norm: bool = False
    zero_experts: int = 0
    router_scales: bool = False
    memory_blocks: int = 0  # sets of weights of a shared layer
    adapter_rank: int = 0
    attention_adapter: bool = False
    source: str = ""

    @property
    def is_moe(self) -> bool:
        return self.experts > 0 and self.moe_layers > 0

    @property
    def attention_every(self) -> int:
        return attention_every(self.pattern)

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers


@record
class Params:
    """Parameters by part [count]; `mtp` stands apart, the parts from embedding to other sum to
    `total`."""

    total: Column
    active: Column
    embedding: Column
    lm_head: Column
    attention: Column
    mlp_dense: Column
    shared_experts: Column
    router: Column
    routed_experts: Column
    norms: Column
    other: Column
    mtp: Column
    expert: Column

    @property
    def non_embedding(self) -> Column:
        return self.total - self.embedding - self.lm_head


@record
class Flops:
    """Training FLOP per token by part (3 x forward, matrix products); `mtp` apart, the others sum
    to `total`."""

    total: Column
    attention_linear: Column
    attention_scores: Column
    mlp_dense: Column
    shared_experts: Column
    shared_gate: Column
    router: Column
    routed_experts: Column
    lm_head: Column
    mtp: Column


def attention_kind(heads: int, kv_heads: int) -> str:
    """What attention with so many heads of queries, and of keys and values, is called."""
    return "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"


def make_shape(**columns: Any) -> Shape:
    """The table of blocks of fields named as in `Model`, scalars or columns [n]; what is left out
    is `Model`'s default.

    `mlp`, `attention` and `qk_norm` may be strings or columns of strings. A nan in a column counts
    as 0 (the dense width of a model with no dense layer); whether a dimension is missing is for the
    caller to say.
    """
    unknown = set(columns).difference(_DEFAULTS, _UNCOUNTED)
    if unknown:
        raise TypeError(f"make_shape got unknown fields {sorted(unknown)}")
    return _shape(_dimensions(columns))


def dimensions_of(model: Model) -> Dimensions:
    """The dimensions of one model."""
    return _dimensions(vars(model))


def _dimensions(columns: Mapping[str, Any]) -> Dimensions:
    values = _DEFAULTS | {name: v for name, v in columns.items() if name not in _UNCOUNTED}
    return Dimensions(**{k: v if k in _WORDS else number(v) for k, v in values.items()})


def _shape(m: Dimensions) -> Shape:
    """The table of blocks of models."""
    (mixers,) = np.unique(m.mixers)  # a column of models has none
    others = mixers_of(str(mixers), m.hidden, m.layers, m.windowed_layers)
    plain = _without_pattern(m, sum(b.count for b in others))
    inside = _blocks(m, counts(m.pattern), plain)
    head = pattern_words.head(m)
    behind: list[Block] = [head]
    if np.any(m.hyper_connections):
        behind.append(pattern_words.gather(m))
    if np.any(m.memory_blocks):
        behind.append(pattern_words.shared_weights(m))
    if np.any(m.mtp_layers):
        behind.append(_mtp(m, head))
    return Shape(
        layers=m.layers,
        hidden=m.hidden,
        blocks=(pattern_words.embedding(m), *others, *inside, *behind),
        order=_order(m.pattern, 1 + len(others)),
    )


def _without_pattern(m: Dimensions, others: Column = 0) -> dict[str, Column]:
    """Blocks of models without a pattern, by the words of patterns; `others` of the layers have
    another mixer."""
    latent = m.latent_attention
    whole = m.layers - others - m.windowed_layers
    return {
        "attn": (1 - latent) * whole,
        "local": (1 - latent) * (1 - m.chunks) * m.windowed_layers,
        "chunk": (1 - latent) * m.chunks * m.windowed_layers,
        "mla": latent * whole,
        "local_mla": latent * m.windowed_layers,
        "mlp": m.layers - m.moe_layers,
        "moe": m.moe_layers,
    }


def _blocks(m: Dimensions, patterned: dict[str, Column], plain: dict[str, Column]) -> list[Block]:
    """The blocks of layers: those counted in patterns, those of `plain` models without one."""
    has = 1 * (patterned.get("layers", 0) > 0)
    number = {k: patterned.get(k, 0) + (1 - has) * plain.get(k, 0) for k in {**plain, **patterned}}
    norms = (1 - has) * m.layer_norms
    blocks = []
    for name, word in pattern_words.WORDS.items():
        # the width of a dense MLP is there even where all layers have experts
        if np.any(number.get(name, 0)) or (name == "mlp" and not patterned):
            blocks.append(word.build(m, number[name], norms))
    if np.any(has):
        blocks.append(pattern_words.stream(m, has * number["layers"]))
    return blocks


def _order(pattern: Names, ahead: int) -> tuple[tuple[int, ...], ...]:
    """The blocks of each layer of one pattern, as numbers among the blocks of a shape."""
    if not isinstance(pattern, str) or not pattern:
        return ()
    present = [name for name in pattern_words.WORDS if name in counts_of(pattern)]
    at = {name: ahead + i for i, name in enumerate(present)}
    return tuple(tuple(at[word] for word in counted(layer)) for layer in layers_of(pattern))


def mixers_of(text: str, hidden: Column, layers: Column, windowed: Column) -> list[Block]:
    """The blocks of a model's `mixers`: so many layers of a kind in place of attention, its own
    dimensions in brackets, kinds joined by commas. Raises DesignError."""
    names = sorted(name for name, kind in KINDS.items() if kind.place == "mixer")

    def wrong(problem: str) -> DesignError:
        allowed = f"such as 10*{names[0]}, of {', '.join(names)}"
        return DesignError("mixers", text, allowed, problem=problem)

    rest = _MIXER.sub("", text).strip(", ")
    if rest:
        raise wrong(f"is not read from {rest!r} on")
    blocks = []
    for count, name, sizes in _MIXER.findall(text):
        if name not in names:
            raise wrong(f"names {name}, which mixes nothing")
        try:
            blocks.append(KINDS[name](count=int(count), hidden=hidden, **_sizes(sizes)))
        except (TypeError, ValueError):
            raise wrong(f"does not give the dimensions of {name}") from None
    if np.any(sum(b.count for b in blocks) + windowed > layers):
        raise wrong(f"holds more than {layers} layers")
    return blocks


def _sizes(text: str) -> dict[str, float]:
    """`taps=3,width=0.5` as numbers by name."""
    sizes = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        sizes[name] = float(value) if "." in value else int(value)
    return sizes


def _mtp(m: Dimensions, head: Head) -> Mtp:
    """The MTP modules: the layers of their own pattern, else one of the last kind over the whole
    sequence."""
    last = 1 * (m.moe_layers > 0)
    latent = m.latent_attention
    plain = {"attn": 1 - latent, "mla": latent, "mlp": 1 - last, "moe": last}
    return Mtp(
        count=m.mtp_layers,
        hidden=m.hidden,
        layer=tuple(_blocks(m, counts(m.mtp_pattern), plain)),
        head=head,
        norms=m.final_norms,
        repeats=m.mtp_repeats,
    )


def shape_of(model: Model | Shape) -> Shape:
    """The table of blocks of one `Model`; such a table as it is."""
    return model if isinstance(model, Shape) else _shape_of(model)


@lru_cache
def _shape_of(model: Model) -> Shape:
    return _shape(dimensions_of(model))


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
    s = shape_of(model)
    parts = _by_part((b.count, b.parameters()) for b in s.blocks)
    unused = parts.pop("unused", 0)
    mtp = parts.pop("mtp", 0)
    total = sum(parts.values())
    return Params(
        total=total,
        active=total - unused,
        embedding=parts.get("embedding", 0),
        lm_head=parts.get("lm_head", 0),
        attention=parts.get("attention", 0),
        mlp_dense=parts.get("mlp_dense", 0),
        shared_experts=parts.get("shared_experts", 0),
        router=parts.get("router", 0),
        routed_experts=parts.get("routed_experts", 0),
        norms=parts.get("norms", 0),
        other=parts.get("other", 0),
        mtp=mtp,
        expert=sum((b.count > 0) * b.expert() for b in s.of(Moe)),
    )


def as_floats(count: Params) -> Params:
    """Counts that go into columns: a whole number beyond 32 bits meets no column of them."""
    return Params(**{name: value * 1.0 for name, value in vars(count).items()})


def flops_per_token(model: Model | Shape, seq_len: Column) -> Flops:
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
    parts = _by_part((b.count, b.flops(seq_len)) for b in shape_of(model).blocks)
    mtp = parts.pop("mtp", 0)
    return Flops(
        total=sum(parts.values()),
        attention_linear=parts.get("attention_linear", 0),
        attention_scores=parts.get("attention_scores", 0),
        mlp_dense=parts.get("mlp_dense", 0),
        shared_experts=parts.get("shared_experts", 0),
        shared_gate=parts.get("shared_gate", 0),
        router=parts.get("router", 0),
        routed_experts=parts.get("routed_experts", 0),
        lm_head=parts.get("lm_head", 0),
        mtp=mtp,
    )


def causal_flops_per_token(model: Model | Shape, seq_len: Column) -> Column:
    """Training FLOP per token [FLOP] as the published counters of training frameworks give it: the
    causal half of the scores, windows and chosen keys by what is attended to, no router.

    Megatron-LM and Megatron-Bridge, num_floating_point_operations; a scan as its recurrence, with
    the model's own inner width. MTP modules are not in it.
    """
    total: Column = 0
    for block in shape_of(model).blocks:
        parts = {k: v for k, v in block.flops(seq_len).items() if k not in ("router", "mtp")}
        if "attention_scores" in parts:
            parts["attention_scores"] = parts["attention_scores"] * block.causal_share(seq_len)
        total = total + block.count * sum(parts.values())
    return total


def block_counts(model: Model) -> dict[str, int]:
    """How many blocks of each kind the layers have, by the words of patterns."""
    number: dict[str, int] = {**counts_of(model.pattern)}
    if not number:
        number = {k: int(v) for k, v in _without_pattern(dimensions_of(model)).items()}
    number["mlp"] = number.get("mlp", 0) + number.get("beside", 0)
    apart = ("layers", "bare", "beside", "still")
    return {k: n for k, n in number.items() if n and k not in apart}


def _by_part(answers: Iterable[tuple[Column, dict[str, Column]]]) -> dict[str, Column]:
    """What blocks answer, times their counts, summed by part."""
    parts: dict[str, Column] = {}
    for count, answer in answers:
        for name, value in answer.items():
            parts[name] = parts.get(name, 0) + count * value
    return parts


_MIXER = re.compile(r"(\d+)\*([a-z][a-z0-9-]*)(?:\(([a-z_=0-9.,]*)\))?")
# fields of text
_WORDS = ("mlp", "attention", "qk_norm", "mixers", "attention_gate", "pattern", "mtp_pattern")
# fields that no count depends on
_UNCOUNTED = (
    "name",
    "source",
    "seq_len",
    "moe_layout",
    "rope_base",
    "norm_epsilon",
    "router_scale",
    "router_groups",
    "router_group_topk",
    "router_pre_softmax",
    "gate_clamp",
    "gate_offset",
    "norm_zero_centered",
)
_REQUIRED = ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab")
_DEFAULTS: dict[str, Any] = {
    f.name: None if f.name in _REQUIRED else f.default
    for f in fields(Model)
    if f.name not in _UNCOUNTED
}
