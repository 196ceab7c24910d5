"""The shape of a decoder-only transformer: its parameters and its matrix products.

`Model` is the record a design holds; `make_shape` turns it, or columns of its fields, into the
table of blocks that all arithmetic reads, so that one design and a thousand published runs go the
same way. Integers in, exact integers out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache, partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...base.errors import DesignError, Rule, refuse
from ...base.records import Lines, record
from ...base.words import table
from ...blocks import KINDS
from ...blocks.block import Block
from ...blocks.mtp import Mtp
from ...blocks.table import Shape
from ..words import ATTENTIONS, GATES, MLPS
from .kinds import attending, block_of, words, words_that
from .patterns import MOST_LAYERS, attention_every, counted, counts, layers_of

GATED = ("swiglu", "geglu")  # three matrices: gate, up, down
_CHOICES = {
    "mlp": MLPS,
    "attention": ATTENTIONS,
    "qk_norm": ("", "head", "width"),
    "moe_layout": ("dense-first", "interleaved"),
    "attention_gate": GATES,
}
_SIZES = ("layers", "hidden", "vocab")
_HEADS = ("heads", "kv_heads", "head_dim")
_OF_MOE = ("top_k", "expert_ffn_hidden")
_LATENT = ("kv_lora", "qk_nope", "qk_rope", "v_head_dim")
PARTS = table(__file__, "parts")


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
    window_sinks: bool = False  # in the layers with a window alone
    shared_gate: bool = False  # hidden x 1 gate on the shared expert
    parallel_block: bool = False  # attention and MLP read the same input
    router_buffers: bool = (
        False  # load-balancing bias per expert, kept as a buffer: in the file, not a parameter
    )
    rope_base: float = 0.0  # of the rotary positions; 0: not known
    norm_epsilon: float = 0.0  # ditto
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
    expert: Any

    @property
    def non_embedding(self) -> Any:
        return self.total - self.embedding - self.lm_head


@record
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


def check_fields(given) -> None:
    """Refuses fields that `Model` does not have."""
    known = sorted(f.name for f in fields(Model))
    for field in given:
        if field not in known:
            raise DesignError(field, given[field], known, problem="is unknown")


def check_model(model: Model, read_as: dict | None = None) -> Model:
    """The same model, or one DesignError naming the dimension that cannot be, by the name in
    `read_as` where it has one."""
    names = read_as or {}
    refuse(_rules(model, names), vars(model), names)
    other_mixers(model)
    return model


def part(field: str, whole: str, divides: bool, given, names: Mapping, besides=""):
    """The rule of a part that has to divide a whole, or to be no more than it, where `given` has
    both."""
    value = given.get(field)
    of = given.get(whole)
    if value and of is not None:
        said = f"{names.get(whole, whole)} {of:g}"
        if not divides:
            yield Rule(field, value <= of, f"at most {said}", f"is more than {said}")
        elif of % value:
            near = min(
                (d for d in range(1, min(of, 10**5) + 1) if of % d == 0),
                key=lambda d: abs(d - value),
            )
            divisor = f"a divisor of {said}{besides}"
            yield Rule(field, False, divisor, f"does not divide {said}", near)


def parts_of(given, names: Mapping):
    """The rules of all PARTS."""
    return chain.from_iterable(part(*each, given, names) for each in PARTS)


def _rules(m: Model, names: dict):
    """(field, whether it holds, what is allowed, and what is wrong) of each rule in turn."""
    for field, choices in _CHOICES.items():
        yield Rule(field, getattr(m, field) in choices, choices)
    yield Rule("layers", m.layers <= MOST_LAYERS, f"at most {MOST_LAYERS:,}")
    experts = f"{names.get('experts', 'experts')} {m.experts}"
    alike = bool(m.experts) == bool(m.moe_layers)
    many = "as many as there are layers with experts"
    yield Rule("moe_layers", alike, many, f"does not go with {experts}")
    found = counts(m.pattern)
    attends = not found or bool(attending() & found.keys())
    many = found.get("mlp", 0) + found.get("beside", 0) if found else m.dense_layers
    asked = words_that("needs")
    needed = [(field, f"for {block}") for block in found for field in asked.get(block, ())]
    needed += [(field, "in a mixture of experts") for field in _OF_MOE * (m.experts > 0)]
    needed += [
        (field, "in multi-head latent attention") for field in _LATENT * (m.attention == "mla")
    ]
    needed += [(field, "") for field in _SIZES + _HEADS * attends]
    needed += [("ffn_hidden", f"in the {many} dense layers")] * (many > 0)
    for field, where in needed:
        allowed = f"a whole number of at least 1 {where}".strip()
        yield Rule(field, getattr(m, field) >= 1, allowed, "", 1)
    for field in _COUNTS:
        yield Rule(field, getattr(m, field) >= 0, "a whole number of at least 0")
    yield from parts_of(vars(m), names)
    slides = found or bool(m.window) == bool(m.windowed_layers)
    many = f"a width where windowed_layers ({m.windowed_layers}) says how many"
    yield Rule("window", slides, many)
    for field, word in (("layers", "layers"), ("moe_layers", "moe")) if found else ():
        holds = found.get(word, 0)
        yield Rule(field, getattr(m, field) == holds, f"{holds}, as the pattern has them")
    try:
        layers_of(m.mtp_pattern)
    except DesignError as e:
        e.field = "model.mtp_pattern"
        raise


def attention_kind(heads: int, kv_heads: int) -> str:
    """What attention with so many heads of queries, and of keys and values, is called."""
    return "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"


def _flag(value: Any, among: Lines) -> Any:
    if isinstance(value, str):
        return int(value in among)
    return np.isin(np.asarray(value), among).astype(np.int64)


def _number(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.nan_to_num(value)
    return value * 1  # true is 1


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
    raw = {**_DEFAULTS, **columns}
    m = SimpleNamespace(**{k: v if k in _WORDS else _number(v) for k, v in raw.items()})
    norm = m.hidden * (1 + m.norm_bias)
    m.layer_norms = m.norms_per_layer * norm
    m.final_norms = m.final_norm * norm
    m.embedding_norms = m.embedding_norm * norm
    m.matrices = 2 + _flag(m.mlp, GATED)
    m.head_norm, m.width_norm = (_flag(m.qk_norm, (word,)) for word in ("head", "width"))
    m.head_gate, m.width_gate = (_flag(m.attention_gate, (word,)) for word in ("head", "width"))
    for name in ("heads", "kv_heads", "head_dim"):  # of a window, where it has its own
        own = getattr(m, f"window_{name}")
        usual = getattr(m, name)
        setattr(m, f"local_{name}", usual + (own > 0) * (own - usual))
    m.local_sinks = m.sinks + (1 - m.sinks) * m.window_sinks
    latent = _flag(m.attention, ("mla",))
    others = other_mixers(m)
    plain = _plain(m, latent, sum(b.count for b in others))
    before = [block_of("embedding", m, 1)]
    behind = [block_of("head", m, 1)]
    behind += [block_of("gather", m, 1)] * bool(np.any(m.hyper_connections))
    behind += [block_of("weights", m, m.memory_blocks)] * bool(np.any(m.memory_blocks))
    inside = _blocks(m, counts(m.pattern), plain)
    if np.any(m.mtp_layers):
        behind.append(_mtp(m, latent, behind[0]))
    return Shape(
        layers=m.layers,
        hidden=m.hidden,
        blocks=(*before, *others, *inside, *behind),
        order=_order(m.pattern, len(before) + len(others)),
    )


def _plain(m, latent, others=0) -> dict:
    """Blocks of models without a pattern, by the words of patterns; `others` of the layers have
    another mixer."""
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


def _blocks(m, found: dict, plain: dict) -> list:
    """The blocks of layers: those `found` in patterns, those of `plain` models without one."""
    has = 1 * (found.get("layers", 0) > 0)
    count = {k: found.get(k, 0) + (1 - has) * plain.get(k, 0) for k in {**plain, **found}}
    dense = () if found else ("mlp",)  # whose width a layer has even where all have experts
    made = (k for k in words() if k in dense or np.any(count.get(k, 0)))
    blocks = [block_of(k, m, count[k], (1 - has) * m.layer_norms) for k in made]
    if np.any(has):
        blocks.append(block_of("stream", m, has * count["layers"]))
    return blocks


def _order(pattern, ahead: int) -> tuple:
    """The blocks of each layer of one pattern, as numbers among the blocks of a shape."""
    if not isinstance(pattern, str) or not pattern:
        return ()
    made = [k for k in words() if k in counts(pattern)]
    at = {word: ahead + i for i, word in enumerate(made)}
    return tuple(tuple(at[word] for word in counted(layer)) for layer in layers_of(pattern))


def other_mixers(m) -> list:
    """The blocks of `mixers`: so many layers of a kind in place of attention, its own dimensions in
    brackets, kinds joined by commas. Raises DesignError."""
    kinds = sorted(k for k, kind in KINDS.items() if kind.place == "mixer")
    wrong = partial(
        DesignError, "mixers", m.mixers, f"such as 10*{kinds[0]}, of {', '.join(kinds)}"
    )
    (text,) = map(str, np.unique(m.mixers))  # a column of models has none
    blocks = []
    rest = _MIXER.sub("", text)
    if rest.strip(", "):
        raise wrong(problem=f"is not read from {rest.strip(', ')!r} on")
    for count, name, given in _MIXER.findall(text):
        if name not in kinds:
            raise wrong(problem=f"names {name}, which mixes nothing")
        pairs = (pair.partition("=")[::2] for pair in given.split(",") if pair)
        try:
            block = KINDS[name](
                count=int(count),
                hidden=m.hidden,
                **{k: float(v) if "." in v else int(v) for k, v in pairs},
            )
        except (TypeError, ValueError):
            raise wrong(problem=f"does not give the dimensions of {name}") from None
        blocks.append(block)
    if np.any(sum(b.count for b in blocks) + m.windowed_layers > m.layers):
        raise wrong(problem=f"holds more than {m.layers} layers")
    return blocks


def _mtp(m, latent, head: Block) -> Mtp:
    """The MTP modules: the layers of their own pattern, else one of the last kind over the whole
    sequence."""
    last = 1 * (m.moe_layers > 0)
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
    s = shape_of(model)
    parts = _by_part(s.blocks)
    unused = parts.pop("unused", 0)
    mtp = parts.pop("mtp", 0)
    total = sum(parts.values())
    return Params(
        total=total,
        active=total - unused,
        **{name: parts.get(name, 0) for name in _PARTS},
        mtp=mtp,
        expert=sum((b.count > 0) * b.expert() for b in s.of("moe")),
    )


def as_floats(count: Params) -> Params:
    """Counts that go into columns: a whole number beyond 32 bits meets no column of them."""
    return Params(**{name: value * 1.0 for name, value in vars(count).items()})


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
    parts = _by_part(shape_of(model).blocks, lambda b: b.flops(seq_len))
    mtp = parts.pop("mtp", 0)
    return Flops(
        total=sum(parts.values()),
        **{f.name: parts.get(f.name, 0) for f in fields(Flops) if f.name not in ("total", "mtp")},
        mtp=mtp,
    )


def causal_flops_per_token(model: Model | Shape, seq_len: Any) -> Any:
    """Training FLOP per token [FLOP] as the published counters of training frameworks give it: the
    causal half of the scores, windows and chosen keys by what is attended to, no router.

    Megatron-LM and Megatron-Bridge, num_floating_point_operations; a scan as its recurrence, with
    the model's own inner width. MTP modules are not in it.
    """
    total = 0
    for block in shape_of(model).blocks:
        parts = {k: v for k, v in block.flops(seq_len).items() if k not in ("router", "mtp")}
        if "attention_scores" in parts:
            parts["attention_scores"] = parts["attention_scores"] * block.causal_share(seq_len)
        total = total + block.count * sum(parts.values())
    return total


def block_counts(model: Model) -> dict:
    """How many blocks of each kind the layers have, by the words of patterns."""
    found = counts(model.pattern) or _plain(model, _flag(model.attention, ("mla",)))
    named = {k: v for k, v in found.items() if k not in ("layers", "bare", "beside", "still")}
    named["mlp"] = named.get("mlp", 0) + found.get("beside", 0)
    return {k: int(v) for k, v in named.items() if v}


def _by_part(blocks, answer=lambda b: b.parameters()) -> dict:
    """What the blocks answer, times their counts, summed by part."""
    parts = {}
    for block in blocks:
        for name, value in answer(block).items():
            parts[name] = parts.get(name, 0) + block.count * value
    return parts


_PARTS = tuple(f.name for f in fields(Params))[2:11]
_MIXER = re.compile(r"(\d+)\*([a-z][a-z0-9-]*)(?:\(([a-z_=0-9.,]*)\))?")
_WORDS = (
    "mlp",
    "attention",
    "qk_norm",
    "mixers",
    "attention_gate",
    "pattern",
    "mtp_pattern",
    "name",
    "source",
    "moe_layout",
)
# fields that no count depends on
_UNCOUNTED = ("name", "source", "seq_len", "moe_layout", "rope_base", "norm_epsilon")
_DEFAULTS = {f.name: f.default for f in fields(Model) if f.name not in _UNCOUNTED}
_REQUIRED = ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab")
_DEFAULTS.update(dict.fromkeys(_REQUIRED))
_COUNTS = tuple(
    f.name for f in fields(Model) if type(f.default) is int and f.name not in ("norms_per_layer",)
) + ("ffn_hidden",)
