"""Hugging Face config.json -> `Model`, with what was read and what was assumed; the architectures
are those of `architectures_table`."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...base.errors import DesignError, show_value
from ...base.files import json_object, read_text
from ...base.records import Assumed, Lines
from .architectures import Architecture, Experts, FfnRule, KvHeads, Sliding
from .architectures_decoders import AS_DECODERS
from .architectures_table import ARCHITECTURES, COMPOSITES, REFUSED
from .dimension_checks import check_model
from .hf_layers import OF_LETTERS, pattern_fields
from .hf_reader import Reader, Switch
from .pattern_words import SLIDING
from .patterns import counts_of
from .shape import Model, attention_kind

Fields = dict[str, Any]  # of `Model`
CONFIG = "config.json"  # of a model, in its folder
_SIZE_LIMIT = 4_000_000  # a config is a few kB; anything larger is another file
_CLASS = re.compile("(ForCausalLM|LMHeadModel|ForConditionalGeneration|Model)+$")
# what the name of an unknown architecture, or a field of its config, says of the block that is
# missing; the first that is found
_SIGNS = (
    (r"rwkv|time_mix|\bwkv", "the time mixing of RWKV is not counted"),
    ("xlstm|mlstm|slstm", "the cells of xLSTM are not counted"),
    ("retnet|retention", "retention is not counted"),
    ("hyena|monarch|long_conv", "the long convolution of Hyena is not counted"),
    (
        r"hgrn|\bgla\b|gated_linear_att",
        "linear attention with HGRN's or GLA's gates is not counted",
    ),
    (r"\bttt|titans|test_time", "layers that learn at test time are not counted"),
    ("diffusion|denois", "denoising in place of the next token is not counted"),
    ("perceiver|cross_attention_layers|cross_attn", "layers of cross-attention are not counted"),
    (
        r"hierarch|patch_byte|byte_latent|\bblt",
        "a byte model's local encoder and decoder are not counted",
    ),
    (
        r"mamba|\bssm_|d_state|state_size",
        "its state-space block, as mamba1 or mamba2, can be given in model.pattern; this file does "
        "not say in known words where it stands",
    ),
    (
        "delta_net|deltanet|linear_attn|linear_num|linear_attention",
        "its linear attention, as gdn, kda or lightning, can be given in model.pattern; this file "
        "does not say in known words where it stands",
    ),
    (
        "kv_lora_rank",
        "its latent attention, as mla, can be given in model.pattern; what else differs this file "
        "does not say",
    ),
    (
        "expert",
        "its experts, as moe, can be given in model.pattern; how they are routed and which layers "
        "have them is not known of this file",
    ),
)
_NO_SIGN = (
    "no block of its own is named in this file, and none is guessed; if it has attention and an "
    "MLP alone, give the shape as model.layers, model.hidden ..."
)


def from_hf(
    config: Mapping[str, Any] | str | Path,
) -> tuple[Model, dict[str, Any], tuple[Assumed, ...]]:
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
    reader = Reader(config)
    model_type = _named_type(reader)
    kind = _not_refused(model_type, config)
    tied = None
    if kind in COMPOSITES:
        reader, kind, tied = _language_part(kind, reader)
    name = name or str(config.get("_name_or_path") or model_type)
    reader.model_type = kind
    arch = AS_DECODERS[kind] if kind in AS_DECODERS else ARCHITECTURES[kind]
    model = _build(arch, reader, name, tied)
    return model, reader.read, tuple(reader.assumed)


def _language_part(model_type: str, whole: Reader) -> tuple[Reader, str, bool]:
    """The reader of a multimodal config's language part, its architecture, and whether it is
    tied."""
    composite = COMPOSITES[model_type]
    wrong = partial(DesignError, problem=f"missing in this {model_type} config")
    whole.get("vision_config.model_type")
    part = whole.config.get(composite.part)
    text = composite.text
    if isinstance(part, Mapping):
        reader = Reader(part, composite.part + ".")
        reader.read = whole.read
        reader.assumed = whole.assumed
        kind = str(part.get("model_type") or text)
    elif text and any(whole.config.get(f) is not None for f in ARCHITECTURES[text].layers):
        reader = whole  # older files keep the text fields at the top
        kind = text
    else:
        raise wrong(composite.part, allowed="the language part")
    if not kind:
        raise wrong(composite.part + ".model_type", allowed="the architecture of the language part")
    stated = []
    if composite.tie_read_from != "part":
        stated.append(whole.get("tie_word_embeddings"))
    if composite.tie_read_from != "whole":
        stated.append(reader.get("tie_word_embeddings"))
    stated = [value for value in stated if value is not None]
    if stated:
        tied = any(stated)
    else:
        tied = whole.of_class("tied_embeddings", composite.tied, model_type)
    return reader, _not_refused(kind, reader.config), tied


def _load(path: Path) -> Mapping[str, Any]:
    name = str(path) if len(str(path)) < 60 else f"…{str(path)[-55:]}"  # its end tells most
    wrong = partial(DesignError, "hf_config", name)
    text = read_text(config_file(path), "the path of a config.json", _SIZE_LIMIT, wrong)
    return json_object(text, wrong)


def config_file(path: Path) -> Path:
    """The config.json that a path says: of a folder, the one in it."""
    return path / CONFIG if path.is_dir() else path


def _named_type(reader: Reader) -> str:
    model_type = reader.config.get("model_type")
    if isinstance(model_type, str) and model_type:
        reader.read["model_type"] = model_type
        return model_type
    known_types = (*REFUSED, *COMPOSITES, *ARCHITECTURES)
    names = {re.sub("[_-]", "", known): known for known in known_types}
    classes = reader.config.get("architectures")
    for cls in classes if isinstance(classes, (list, tuple)) else [classes]:
        known = names.get(_CLASS.sub("", str(cls)).lower())
        if known:
            reader.read["architectures"] = cls
            why = f"from architectures: {cls}; the file has no model_type"
            reader.assume("model_type", known, why)
            return known
    raise DesignError(
        "model_type",
        problem="missing, and no architectures that name it",
        allowed="the config's model_type, e.g. llama, qwen3_moe, deepseek_v3; it is not guessed",
    )


def _not_refused(model_type: str, config: Mapping[str, Any]) -> str:
    """The type, where it is one that is read. Raises DesignError."""
    allowed: str | list[str] = "decoder-only transformers"
    if model_type in AS_DECODERS:
        if config.get("is_decoder") is True:
            return model_type
        allowed = "decoder-only transformers; is_decoder: true makes one of it"
    if model_type in REFUSED:
        problem = f"is {REFUSED[model_type]}"
    elif config.get("is_encoder_decoder") is True:
        problem = "is an encoder-decoder (is_encoder_decoder true)"
    elif model_type not in ARCHITECTURES and model_type not in COMPOSITES:
        allowed = sorted((*ARCHITECTURES, *COMPOSITES))
        problem = f"is not among the architectures that are read: {_missing(model_type, config)}"
    else:
        return model_type
    raise DesignError("model_type", model_type, allowed, problem=problem)


def _missing(model_type: str, config: Mapping[str, Any]) -> str:
    """What an unknown architecture has that no block counts: a word of its lists of layers that no
    other config has, else what its name and its fields give away."""
    known = {*OF_LETTERS} | {str(word) for arch in ARCHITECTURES.values() for word in arch.words}
    for field in ("layer_types", "layers_block_type", "block_types"):
        listed = config.get(field)
        for word in listed if isinstance(listed, list) else ():
            if str(word) not in known:
                return f"{field} has {show_value(word)}, a block that is not counted"
    text = " ".join((model_type, *map(str, config)))
    return next((what for sign, what in _SIGNS if re.search(sign, text, re.I)), _NO_SIGN)


def _build(arch: Architecture, r: Reader, name: str, tied: bool | None) -> Model:
    """The model of a config; `tied` where whoever holds the language part says so."""
    layers = _layer_count(r, arch)
    hidden = r.size(arch.hidden)
    heads = r.size(arch.heads, arch.heads_class) if arch.heads else 0
    vocab = r.size(arch.vocab, arch.vocab_class)
    _check_refusals(r, arch)
    if layers > 100_000:
        raise r.wrong(arch.layers[0], layers, "at most 100,000")
    attention = _attention(r, arch, hidden, heads)
    moe = _moe_layers(r, arch.experts, layers) if arch.experts else frozenset()
    pattern = pattern_fields(r, arch, layers, hidden, moe)
    width, sliding = _window(r, arch, layers)
    counts = counts_of(pattern.get("pattern", ""))
    if not counts:
        counts = {"moe": len(moe), "mlp": layers - len(moe), "local": sliding}
    feeds = _ffn(r, arch, hidden, counts)
    tied = _tied(r, arch) if tied is None else tied
    flags = _flags(r, arch)
    norms = _norms(r, arch, feeds.get("moe_layers", 0))
    switched = not arch.qk_norm_flag or r.flag(Switch(arch.qk_norm_flag))
    positions = r.size(arch.positions) + arch.positions_extra if arch.positions else 0
    values: Fields = {
        "name": name,
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "vocab": vocab,
        "windowed_layers": sum(counts.get(word, 0) for word in SLIDING),
        "window": width,
        "chunks": arch.window == Sliding.CHUNK,
        "tied_embeddings": bool(tied) and arch.tie_heeded,
        "position_rows": positions,
        "qk_norm": arch.qk_norm if switched else "",
        "seq_len": r.count(*arch.seq_len),
        **_as_trained(r, arch),
        "mtp_layers": r.count(*arch.mtp, least=0) or 0,
        "norms_per_layer": norms,
        "final_norm": arch.final_norm,
        "parallel_block": r.flag(arch.parallel),
        "source": f"Hugging Face config, {arch.model_type}",
    }
    fields = values | attention | feeds | flags | pattern
    extras = arch.extras(r, fields)
    model = Model(**fields, extras=extras.weights, extra_products=extras.products)
    return check_model(model, read_as=_HF_NAMES | r.names)


def _layer_count(r: Reader, arch: Architecture) -> int:
    """Layers: their number, or as many as a list of letters names."""
    listed = arch.letters and not any(name in r.config for name in arch.layers)
    layers = len(r.get(*arch.letters) or ()) if listed else 0
    return layers or r.size(arch.layers)


def _attention(r: Reader, arch: Architecture, hidden: int, heads: int) -> Fields:
    """Attention, its heads of keys and values and the width of a head; none without heads."""
    kv_heads = _kv_heads(r, arch, heads) if heads else 0
    fields: Fields = {
        "kv_heads": kv_heads,
        "attention": attention_kind(heads, kv_heads),
        "head_dim": 0,
    }
    if arch.mla:
        return fields | _mla(r, arch)
    if heads:
        fields["head_dim"] = _head_dim(r, arch, hidden, heads)
    return fields


def _tied(r: Reader, arch: Architecture) -> Any:
    """Whether the output head is the embedding, as the file says or the class does."""
    tied = r.get("tie_word_embeddings")
    return r.of_class("tied_embeddings", arch.tied, arch.model_type) if tied is None else tied


def _as_trained(r: Reader, arch: Architecture) -> Fields:
    """What no count depends on, and a launch does: positions, norms, the router, gates."""
    return {
        "rope_base": _positive(r, ROPE_BASE),
        "norm_epsilon": _positive(r, NORM_EPSILON),
        "router_scale": _positive(r, ROUTER_SCALE),
        "router_pre_softmax": r.get("norm_topk_prob") is False,
        **_router_groups(r),
        "gate_clamp": _positive(r, ("swiglu_limit",)) if arch.gate_offset else 0.0,
        "gate_offset": arch.gate_offset,
        "norm_zero_centered": arch.norm_zero_centered,
    }


def _check_refusals(r: Reader, arch: Architecture) -> None:
    """Refuses a value of a field that is not understood."""
    for field, values, why, same_as in arch.refuse:
        value = r.get(field)
        understood = values
        if same_as:
            understood = (r.config.get(same_as, same_as), *values)
        if value not in understood:
            allowed = f"{understood[0]} for {arch.model_type}"
            raise r.wrong(field, value, allowed, f"is not read: {why}")


def _flags(r: Reader, arch: Architecture) -> Fields:
    return {
        "norm_bias": r.flag(arch.norm_bias),
        "qkv_bias": r.flag(arch.qkv_bias),
        "out_bias": r.flag(arch.out_bias),
        "mlp_bias": r.flag(arch.mlp_bias),
        "head_bias": r.flag(arch.head_bias),
        "expert_bias": arch.expert_bias,
        "router_bias": arch.router_bias,
        "router_buffers": arch.router_buffers,
        "embedding_norm": arch.embedding_norm,
        "sinks": arch.sinks,
    }


def _norms(r: Reader, arch: Architecture, moe_layers: int) -> int:
    """Norms of a layer."""
    if arch.norms_of is not None:
        return arch.norms_of(r)
    if arch.model_type == "gemma4_text" and not moe_layers:
        return 4  # three more are the experts'
    return arch.norms


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


ROUTER_SCALE = ("routed_scaling_factor", "router_scaling_factor", "moe_router_scaling_factor")


def _router_groups(r: Reader) -> Fields:
    """Groups of experts, and those of them that a token may visit, where the file has both."""
    groups = _positive(r, ("n_group", "num_expert_group"))
    most = _positive(r, ("topk_group",))
    if not 1 <= most <= groups or groups % 1 or most % 1:
        return {}
    return {"router_groups": int(groups), "router_group_topk": int(most)}


def _positive(r: Reader, names: Lines) -> float:
    """The first of these numbers that the file has; 0 where it has none above 0."""
    value = r.get(*names)
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e12 else 0.0


def _kv_heads(r: Reader, arch: Architecture, heads: int) -> int:
    once = arch.kv_rule == KvHeads.MULTI_QUERY and not r.flag(Switch("new_decoder_architecture"))
    if once and r.flag(Switch("multi_query", usual=True)):
        return 1
    if arch.mla or not arch.kv_heads:
        return heads
    names = arch.kv_heads
    null = any(r.config.get(name, 0) is None for name in names)
    if (null or arch.kv_rule != KvHeads.REQUIRED) and r.get(*names) is None:
        why = f"no {names[0]} in the file: one per head, as the class does"
        r.assume("kv_heads", heads, why)
        return heads
    return r.size(names, arch.kv_heads_class)


def _head_dim(r: Reader, arch: Architecture, hidden: int, heads: int) -> int:
    if arch.head_dim_class is not None:
        return r.size(arch.head_dim, arch.head_dim_class)
    if arch.head_dim_floor:
        return r.derived("head_dim", arch.head_dim, hidden // heads, "hidden//heads")
    if hidden % heads and r.get(*arch.head_dim) is None:
        width = f"{arch.hidden[0]} {hidden}"
        raise r.wrong(
            arch.heads[0],
            heads,
            f"a divisor of {width}, or head_dim given",
            f"does not divide {width} and head_dim is not given",
        )
    return r.derived("head_dim", arch.head_dim, hidden / max(heads, 1), "hidden/heads")


def _mla(r: Reader, arch: Architecture) -> Fields:
    if "q_lora_rank" not in r.config and not arch.no_q_lora:
        raise r.missing("q_lora_rank", "a rank, or null for one full projection")
    v_head_dim = r.size(("v_head_dim",))
    return {
        "v_head_dim": v_head_dim,
        "kv_lora": r.size(("kv_lora_rank",)),
        "qk_nope": r.size(("qk_nope_head_dim",)),
        "qk_rope": r.size(("qk_rope_head_dim",)),
        "attention": "mla",
        "q_lora": r.count("q_lora_rank") or 0,
        "head_dim": v_head_dim,
    }


def _ffn(r: Reader, arch: Architecture, hidden: int, counts: Mapping[str, int]) -> Fields:
    """The MLP and the experts of a model with so many blocks of each kind."""
    moe = arch.experts
    activation = str(r.get(*arch.activation) or arch.activation_class)
    fields: Fields = {"mlp": _PLAIN_MLPS.get(activation, "gelu"), "ffn_hidden": 0}
    if arch.gated:
        fields["mlp"] = "geglu" if "gelu" in activation else "swiglu"
    if moe and counts.get("moe"):
        fields |= _experts(r, moe, counts["moe"])
    dense = counts.get("mlp") or counts.get("beside")
    if dense and moe:
        if not moe.dense:
            raise r.wrong("mlp_layer_types", r.get("mlp_layer_types"), "experts in every layer")
        fields["ffn_hidden"] = _ffn_width(r, arch, r.size(moe.dense))
    elif dense or (not moe and counts.get("shared")):
        if arch.ffn_rule == FfnRule.XLSTM:
            width = _xlstm_width(r, hidden)
        elif arch.ffn_times:
            width = int(r.size((arch.ffn_times,)) * hidden)
        elif arch.ffn_of_hidden:
            width = r.derived("ffn_hidden", arch.ffn, 4 * hidden, "hidden*4")
        else:
            width = r.size(arch.ffn)
        fields["ffn_hidden"] = _ffn_width(r, arch, width)
    return fields


def _experts(r: Reader, moe: Experts, layers: int) -> Fields:
    """The experts of so many layers."""
    width = r.size(moe.width)
    experts = r.size(moe.experts)
    top_k = r.size(moe.top_k)
    shared = _shared(r, moe, width)
    return {
        "expert_ffn_hidden": width,
        "experts": experts,
        "top_k": top_k,
        "moe_layers": layers,
        "shared_ffn_hidden": shared,
        "shared_gate": moe.shared_gate and shared > 0,
        "moe_layout": "interleaved" if (r.count(moe.step) or 1) > 1 else "dense-first",
    }


def _ffn_width(r: Reader, arch: Architecture, width: int) -> int:
    """What the code makes of the width that the file has."""
    if arch.ffn_rule == FfnRule.HALF:
        return width // 2
    return _lfm2_width(r, width) if arch.ffn_rule == FfnRule.LFM2 else width


def _xlstm_width(r: Reader, hidden: int) -> int:
    """A factor of the stream's width, rounded up."""
    factor = r.get("ffn_proj_factor") or r.of_class("ffn_proj_factor", 2.667, "xlstm")
    unit = r.size(("ffn_round_up_to_multiple_of",), 64)
    return int((hidden * factor + unit - 1) // unit * unit)


def _lfm2_width(r: Reader, width: int) -> int:
    """Two thirds, times a factor, rounded up, where the file says so."""
    if not r.flag(Switch("block_auto_adjust_ff_dim", usual=True)):
        return width
    scaled = int((r.get("block_ffn_dim_multiplier") or 1) * int(2 * width / 3))
    unit = r.count("block_multiple_of") or 256
    return -(-scaled // unit) * unit


_PLAIN_MLPS = {"relu2": "squared-relu", "relu": "relu"}


def _shared(r: Reader, moe: Experts, width: int) -> int:
    """Summed width of a layer's shared experts."""
    if moe.shared_one:
        return width
    names = moe.shared_count or ((moe.shared_width,) if moe.shared_width else ())
    if names and not any(name in r.config for name in names):
        raise r.missing(names[0], "0 or more; it is not guessed")
    value = r.count(*names, least=0) or 0  # written as null: none
    return value * width if moe.shared_count else value


def _moe_layers(r: Reader, moe: Experts, layers: int) -> frozenset[int]:
    """Numbers of the layers with experts: as the file lists them, else every `step`-th from the
    first to the last."""
    kinds = r.get("mlp_layer_types", "moe_layer_freq")
    if moe.switch and not r.flag(Switch(moe.switch)):
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
        first = int(r.of_class(moe.first, moe.first_class, r.model_type))
    step = r.count(moe.step) or moe.step_class
    offset = r.count(moe.offset, least=0)
    offset = -1 if offset is None else offset  # the last of every `step`, as the class has it
    end = layers if last is None or last == -1 else min(last + 1, layers)
    return frozenset(
        i for i in range(first or 0, end) if (i - offset) % step == 0 and i not in dense
    )


SPARSE = ("sparse", "moe", "hash_moe", 1)


def _window(r: Reader, arch: Architecture, layers: int) -> tuple[int, int]:
    """The width of the attention that slides, and its layers; 0 where none does."""
    if arch.window == Sliding.NONE:
        return 0, 0
    if arch.window == Sliding.QWEN and not r.flag(Switch("use_sliding_window")):
        return 0, 0
    width = r.count(arch.window_field)
    if arch.window_field not in r.config:
        width = arch.window_class
    sliding = _sliding(r, arch, layers) if width else 0
    return (width, sliding) if width and sliding else (0, 0)


def _sliding(r: Reader, arch: Architecture, layers: int) -> int:
    """Layers whose attention slides."""
    if arch.window == Sliding.ALL:
        return layers
    kinds = r.config.get("layer_types")
    if isinstance(kinds, list):
        return sum(str(k).startswith(("sliding", "chunked")) for k in kinds[:layers])
    if arch.window == Sliding.QWEN:
        first = r.count("max_window_layers", least=0) or 0
        return layers - min(first, layers) if r.flag(Switch("use_sliding_window")) else 0
    if arch.window == Sliding.CHUNK:
        listed = r.numbers("no_rope_layers")
        if listed:
            return layers - sum(not used for used in listed[:layers])
        return layers - layers // (r.count("no_rope_layer_interval") or 4)
    every = r.config.get("sliding_window_pattern", r.config.get("_sliding_window_pattern"))
    if isinstance(every, str):  # "LLLG": every fourth layer attends to everything
        every = len(every)
    every = every if isinstance(every, int) and every > 0 else arch.whole_every
    return layers if every == 1 else layers - layers // every
