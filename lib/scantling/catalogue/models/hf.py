"""Hugging Face config.json -> `Model`, with what was read and what was assumed; the architectures
are those of architectures.yaml."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...base.errors import DesignError, show_value
from ...base.files import json_object, read_text
from ...base.records import Assumed, Lines, at
from ...base.show import is_number
from .architectures import Architecture, Flag, Sizes, following, tables, usual_of
from .check import check_model
from .hf_layers import OF_LETTERS, pattern_fields
from .kinds import SLIDING
from .patterns import counts_of
from .shape import Model, attention_kind

_SIZE_LIMIT = 4_000_000  # a config is a few kB; anything larger is another file
_CLASS = re.compile("(ForCausalLM|LMHeadModel|ForConditionalGeneration|Model)+$")


class _Reader:
    """One config's fields, with a record of what was taken from where."""

    def __init__(self, config: Mapping, prefix: str = ""):
        self.config = config
        self.prefix = prefix
        self.read = {}
        self.assumed = []

    def error(self, field: str, *found: Any, allowed: Any, problem: str = ""):
        """The refusal of a field; without a value it is missing."""
        problem = problem or ("" if found else "missing")
        return DesignError(self.prefix + field, *found, allowed=allowed, problem=problem)

    def get(self, *names: str) -> Any:
        """The first of the fields that the file has; a dot steps inside."""
        for name in names:
            value = at(self.config, name)
            if value is not None:
                self.read[self.prefix + name] = value
                return value
        return None

    def count(self, *names: str, least: int = 1) -> int | None:
        """A whole number from `least` to a billion, or None where no name is in the file."""
        for name in names:
            value = self.get(name)
            if value is None:
                continue
            if not is_number(value) or not least <= value <= 1e9 or value % 1:
                raise self.error(name, value, allowed=f"a whole number of at least {least}")
            return int(value)
        return None

    def size(self, arch: Architecture, names: Sizes, known=None, name="", least=1) -> int:
        """A dimension by the names of its field, refused where the file and its class leave it
        out; `name` of the field that follows from `known` ones."""
        fields, usual = usual_of(names)
        if any(self.config.get(each) == "auto" for each in fields):
            return following(usual, known)
        value = self.count(*fields, least=least)
        if value is not None:
            return value
        if usual is None:
            raise self.error(fields[0], allowed="this dimension of the model; it is not guessed")
        if isinstance(usual, str):
            return self.assume(name, following(usual, known), f"derived: {usual[1:]}")
        return self.of_class(self.prefix + fields[0], usual, arch.model_type)

    def numbers(self, name: str) -> list:
        """A list of layer numbers or 0/1 marks; anything else in the list, or another value, is
        refused."""
        value = self.get(name)
        if value is None:
            return []
        if isinstance(value, str) and re.fullmatch(r"\d+(,\d+)*", value):
            return [int(number) for number in value.split(",")]
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise self.error(name, value, allowed="a list of whole numbers")
        return value

    def assume(self, field: str, value: Any, why: str) -> Any:
        self.assumed.append(Assumed(field, value, why))
        return value

    def of_class(self, field: str, value: Any, model_type: str) -> Any:
        """What the config class puts where the file says nothing."""
        return self.assume(field, value, f"the {model_type} class's value; not in the file")

    def flag(self, spec: Flag) -> bool:
        """A switch of the file, or what the class has where it is silent."""
        if isinstance(spec, bool):
            return spec
        ((field, usual),) = spec.items() if isinstance(spec, Mapping) else ((spec, False),)
        value = self.get(field)
        return usual if value is None else bool(value)


def from_hf(config: Mapping | str | Path) -> tuple:
    """The `Model` of a Hugging Face config.json (a mapping, or its path), the fields read and what
    was assumed.

    Counts as the transformers library builds it: `parameters` of the result equals its parameter
    count to the last digit. Of a multimodal file the language part alone; `read` keeps the vision
    part's model type. A dimension that the file leaves out is refused by name, except those that
    the publisher's own files leave to the config class, which are listed in the result. MTP modules
    are read (`mtp_layers`) though the library does not build them. Raises DesignError: not a
    config, an architecture that is not a decoder-only transformer of the table (named, with the
    reason), a missing or impossible dimension.
    """
    name = ""
    if not isinstance(config, Mapping):
        path = Path(config)
        name = path.stem
        config = _load(path)
    reader = _Reader(config)
    known = tables()
    model_type = _named_type(reader)
    kind = _not_refused(model_type, config)
    tied = None
    if kind in known.composites:
        reader, kind, tied = _language_part(kind, reader)
    name = name or str(config.get("_name_or_path") or model_type)
    return _build(known.architectures[kind], reader, name, tied)


def _language_part(model_type: str, whole: _Reader) -> tuple:
    """The reader of a multimodal config's language part, its architecture, and whether it is
    tied."""
    composite = tables().composites[model_type]
    known = tables().architectures
    wrong = partial(DesignError, problem=f"missing in this {model_type} config")
    whole.get("vision_config.model_type")
    part = whole.config.get(composite.part)
    text = composite.text
    if isinstance(part, Mapping):
        reader = _Reader(part, composite.part + ".")
        reader.read = whole.read
        reader.assumed = whole.assumed
        kind = str(part.get("model_type") or text)
    elif text and any(whole.config.get(f) is not None for f in known[text].layers):
        reader = whole  # older files keep the text fields at the top
        kind = text
    else:
        raise wrong(composite.part, allowed="the language part")
    if not kind:
        raise wrong(composite.part + ".model_type", allowed="the architecture of the language part")
    places = ((whole, "part"), (reader, "whole"))
    heeded = [r for r, place in places if composite.tie_read_from != place]
    said = [bool(v) for r in heeded if (v := r.get("tie_word_embeddings")) is not None]
    tied = any(said) if said else whole.of_class("tied_embeddings", composite.tied, model_type)
    return reader, _not_refused(kind, reader.config), tied


def _load(path: Path) -> Mapping:
    shown = str(path) if len(str(path)) < 60 else f"…{str(path)[-55:]}"  # its end tells most
    wrong = partial(DesignError, "hf_config", shown)
    path = path / "config.json" if path.is_dir() else path
    return json_object(read_text(path, "the path of a config.json", _SIZE_LIMIT, wrong), wrong)


def _named_type(reader: _Reader) -> str:
    model_type = reader.config.get("model_type")
    if isinstance(model_type, str) and model_type:
        reader.read["model_type"] = model_type
        return model_type
    names = {re.sub("[_-]", "", known): known for t in tables()[2::-1] for known in t}
    classes = reader.config.get("architectures")
    for cls in classes if isinstance(classes, (list, tuple)) else [classes]:
        known = names.get(_CLASS.sub("", str(cls)).lower())
        if known:
            reader.read["architectures"] = cls
            return reader.assume(
                "model_type", known, f"from architectures: {cls}; the file has no model_type"
            )
    raise DesignError(
        "model_type",
        problem="missing, and no architectures that name it",
        allowed="the config's model_type, e.g. llama, qwen3_moe, deepseek_v3; it is not guessed",
    )


def _not_refused(model_type: str, config: Mapping) -> str:
    known = tables()
    allowed = "decoder-only transformers"
    problem = ""
    if model_type in known.refused:
        problem = f"is {known.refused[model_type]}"
    elif config.get("is_encoder_decoder") is True:
        problem = "is an encoder-decoder (is_encoder_decoder true)"
    elif model_type not in (allowed := sorted((*known.architectures, *known.composites))):
        problem = f"is not among the architectures that are read: {_missing(model_type, config)}"
    if problem:
        raise DesignError("model_type", model_type, allowed, problem=problem)
    return model_type


def _missing(model_type: str, config: Mapping) -> str:
    """What an unknown architecture has that no block counts: a word of its lists of layers that no
    other config has, else what its name and its fields give away."""
    known = tables()
    heard = {*OF_LETTERS} | {str(w) for other in known.architectures.values() for w in other.words}
    for field in ("layer_types", "layers_block_type", "block_types"):
        listed = config.get(field)
        for word in listed if isinstance(listed, list) else ():
            if str(word) not in heard:
                return f"{field} has {show_value(word)}, a block that is not counted"
    text = " ".join((model_type, *map(str, config)))
    return next(what for sign, what in known.signs.items() if re.search(sign, text, re.I))


def _build(arch: Architecture, r: _Reader, name: str, tied: bool | None):
    sizes = {
        k: r.size(arch, names) if (names := getattr(arch, k)) else 0
        for k in ("layers", "hidden", "heads", "vocab")
    }
    if "num_hidden_layers" not in r.config and arch.letters:
        sizes["layers"] = len(r.get(*arch.letters) or ())
    for field, understood, why in arch.refuse:
        value = r.get(field)
        understood = [r.config.get(u, u) if isinstance(u, str) else u for u in understood]
        if value not in understood:
            raise r.error(
                field,
                value,
                allowed=f"{understood[0]} for {arch.model_type}",
                problem=f"is not read: {why}",
            )
    layers, hidden, heads, _ = sizes.values()
    if layers > 100_000:
        raise r.error(arch.layers[0], layers, allowed="at most 100,000")
    kv_heads = _kv_heads(r, arch, heads) if heads else 0
    attention = {"attention": attention_kind(heads, kv_heads), "head_dim": 0}
    if arch.mla:
        attention |= _mla(r, arch)
    elif heads:
        attention["head_dim"] = _head_dim(r, arch, hidden, heads)
    moe = _moe_layers(r, arch, layers) if arch.moe else ()
    pattern = pattern_fields(r, arch, layers, hidden, moe)
    width, sliding = _window(r, arch, layers) if arch.window else (0, 0)
    found = counts_of(pattern.get("pattern", "")) or {
        "moe": len(moe),
        "mlp": layers - len(moe),
        "local": sliding,
    }
    feeds = _ffn(r, arch, hidden, found)
    feeds["windowed_layers"] = sum(found.get(word, 0) for word in SLIDING)
    feeds["window"] = width
    if tied is None:
        tied = r.get("tie_word_embeddings")
    if tied is None:
        tied = r.of_class("tied_embeddings", arch.tied, arch.model_type)
    fields = {k: r.flag(getattr(arch, k)) for k in _FLAGS}
    norms = _falcon_norms(r) if arch.model_type == "falcon" else arch.norms
    if arch.model_type == "gemma4_text" and not feeds.get("moe_layers"):
        norms = 4  # three more are the experts'
    switched = not arch.qk_norm_flag or r.flag(arch.qk_norm_flag)
    model = Model(
        name=name,
        kv_heads=kv_heads,
        tied_embeddings=bool(tied),
        position_rows=r.size(arch, arch.positions) + arch.positions_extra if arch.positions else 0,
        qk_norm=arch.qk_norm * switched,
        seq_len=r.count(*arch.seq_len),
        rope_base=_positive(r, ROPE_BASE),
        norm_epsilon=_positive(r, NORM_EPSILON),
        mtp_layers=r.count(*arch.mtp, least=0) or 0,
        norms_per_layer=norms,
        final_norm=arch.final_norm,
        parallel_block=r.flag(arch.parallel),
        chunks=arch.window == "chunk",
        source=f"Hugging Face config, {arch.model_type}",
        **sizes | attention | feeds | fields | pattern,
    )
    named = {k: n for k, names in arch.sizes.items() for n in names[-2::-1] if n in r.config}
    check_model(model, read_as=_HF_NAMES | named)
    return model, r.read, tuple(r.assumed)


_FLAGS = (
    "norm_bias",
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "head_bias",
    "expert_bias",
    "router_bias",
    "router_buffers",
    "embedding_norm",
    "sinks",
)
_HF_NAMES = {
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "layers": "num_hidden_layers",
    "top_k": "num_experts_per_tok",
}


ROPE_BASE = (
    "rope_theta",
    "rope_parameters.rope_theta",
    "rope_parameters.full_attention.rope_theta",
    "rotary_emb_base",
)
NORM_EPSILON = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")


def _positive(r: _Reader, names: Lines) -> float:
    """The first of these numbers that the file has; 0 where it has none above 0."""
    value = r.get(*names)
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e12 else 0.0


def _kv_heads(r, arch, heads) -> int:
    once = arch.kv_rule == "multi-query" and not r.flag("new_decoder_architecture")
    if once and r.flag({"multi_query": True}):
        return 1
    if arch.mla or not arch.kv_heads:
        return heads
    names, _ = usual_of(arch.kv_heads)
    optional = arch.kv_rule != "required" or any(r.config.get(n, 0) is None for n in names)  # null
    if optional and r.get(*names) is None:
        return r.assume(
            "kv_heads", heads, f"no {names[0]} in the file: one per head, as the class does"
        )
    return r.size(arch, arch.kv_heads)


def _head_dim(r, arch, hidden, heads) -> int:
    names, usual = usual_of(arch.head_dim)
    if hidden % heads and isinstance(usual, str) and r.get(*names) is None:
        wide = f"{arch.hidden[0]} {hidden}"
        raise r.error(
            arch.heads[0],
            heads,
            allowed=f"a divisor of {wide}, or head_dim given",
            problem=f"does not divide {wide} and head_dim is not given",
        )
    return r.size(arch, arch.head_dim, {"hidden": hidden, "heads": heads}, "head_dim")


_RANKS = {
    "v_head_dim": "v_head_dim",
    "kv_lora": "kv_lora_rank",
    "qk_nope": "qk_nope_head_dim",
    "qk_rope": "qk_rope_head_dim",
}


def _mla(r, arch) -> dict:
    if "q_lora_rank" not in r.config and not arch.no_q_lora:
        raise r.error("q_lora_rank", allowed="a rank, or null for one full projection")
    sizes = {field: r.size(arch, (name,)) for field, name in _RANKS.items()}
    return dict(
        attention="mla", q_lora=r.count("q_lora_rank") or 0, head_dim=sizes["v_head_dim"], **sizes
    )


def _ffn(r, arch, hidden, found) -> dict:
    """The MLP and the experts of a model with so many blocks of each kind."""
    moe = arch.moe
    activation = str(r.get(*arch.activation) or arch.activation_class)
    fields = {"mlp": _PLAIN_MLPS.get(activation, "gelu"), "ffn_hidden": 0}
    if arch.gated:
        fields["mlp"] = "geglu" if "gelu" in activation else "swiglu"
    if found.get("moe"):
        width, experts, top_k = (
            r.size(arch, names) for names in (moe.width, moe.experts, moe.top_k)
        )
        shared = _shared(r, moe.shared, width)
        fields |= {
            "expert_ffn_hidden": width,
            "experts": experts,
            "top_k": top_k,
            "moe_layers": found["moe"],
            "shared_ffn_hidden": shared,
            "shared_gate": moe.shared_gate and shared > 0,
            "moe_layout": "interleaved" if (r.count(moe.step) or 1) > 1 else "dense-first",
        }
    dense = found.get("mlp") or found.get("beside")
    if dense or not moe and found.get("shared"):
        names = moe.dense if moe else arch.ffn
        width = r.size(arch, names, {"hidden": hidden}, "ffn_hidden")
        if arch.ffn_rule:
            width = width // 2 if arch.ffn_rule == "half" else _lfm2_width(r, width)
        fields["ffn_hidden"] = width
    return fields


def _lfm2_width(r, width) -> int:
    """Two thirds, times a factor, rounded up, where the file says so."""
    if not r.flag({"block_auto_adjust_ff_dim": True}):
        return width
    scaled = int((r.get("block_ffn_dim_multiplier") or 1) * int(2 * width / 3))
    unit = r.count("block_multiple_of") or 256
    return -(-scaled // unit) * unit


_PLAIN_MLPS = {"relu2": "squared-relu", "relu": "relu"}


def _shared(r, rule, width) -> int:
    """Summed width of a layer's shared experts."""
    if rule == "one":
        return width
    kind, _, field = rule.partition(":")
    names = field.split(",")
    if field and not any(name in r.config for name in names):
        raise r.error(names[0], allowed="0 or more; it is not guessed")
    value = r.count(*names, least=0) or 0  # written as null: none
    return value * width if kind == "count" else value


def _moe_layers(r, arch, layers) -> frozenset[int]:
    """Numbers of the layers with experts: as the file lists them, else every `step`-th from the
    first to the last."""
    moe = arch.moe
    kinds = r.get("mlp_layer_types", "moe_layer_freq")
    if moe.switch and not r.flag(moe.switch):
        return frozenset()
    if isinstance(kinds, list):
        return frozenset(i for i, k in enumerate(kinds[:layers]) if k in SPARSE)
    if moe.null_is_dense and not r.config.get(moe.experts[0], 1):
        return frozenset()
    listed = r.numbers(moe.listed)
    dense = r.numbers(moe.listed_dense)
    if listed:
        return frozenset(listed).intersection(range(layers))
    first = r.count(moe.first, least=0)
    last = r.count(moe.last, least=-1)
    if moe.first and first is None:
        first = r.of_class(moe.first, moe.first_class, arch.model_type)
    step = r.count(moe.step) or moe.step_class
    offset = r.count(moe.offset, least=0)
    offset = -1 if offset is None else offset  # the last of every `step`, as the class has it
    numbers = range(first or 0, layers if last in (None, -1) else min(last + 1, layers))
    return frozenset(i for i in numbers if (i - offset) % step == 0 and i not in dense)


SPARSE = ("sparse", "moe", "hash_moe", 1)


def _window(r, arch, layers) -> tuple:
    """The width of the attention that slides, and its layers; 0 where none does."""
    width = r.count(arch.window_field)
    if arch.window_field not in r.config:
        width = arch.window_class
    sliding = _sliding(r, arch.window, layers) if width else 0
    return (width, sliding) if sliding else (0, 0)


def _sliding(r, rule, layers) -> int:
    """Layers whose attention slides."""
    if rule == "all":
        return layers
    kinds = r.config.get("layer_types")
    if isinstance(kinds, list):
        return sum(str(k).startswith(("sliding", "chunked")) for k in kinds[:layers])
    if rule == "qwen":
        first = r.count("max_window_layers", least=0) or 0
        return layers - min(first, layers) if r.flag("use_sliding_window") else 0
    if rule == "chunk":
        listed = r.numbers("no_rope_layers")
        every = r.count("no_rope_layer_interval") or 4
        return layers - (sum(not used for used in listed[:layers]) if listed else layers // every)
    every = r.config.get("sliding_window_pattern", r.config.get("_sliding_window_pattern"))
    if isinstance(every, str):  # "LLLG": every fourth layer attends to everything
        every = len(every)
    every = every if isinstance(every, int) and every > 0 else int(rule.split("-")[1])
    return layers if every == 1 else layers - layers // every


def _falcon_norms(r) -> int:
    if not r.flag({"parallel_attn": True}):
        return 2
    if not r.flag("new_decoder_architecture"):
        return 1
    return r.count("num_ln_in_parallel_attn") or 2
