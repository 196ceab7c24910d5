"""Hugging Face config.json -> `Model`, with what was read and what was assumed; the architectures
are those of architectures.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.errors import DesignError
from ...base.records import Assumed
from .architectures import Architecture, Flag, tables
from .shape import Model, attention_kind, check_model

_SIZE_LIMIT = 4_000_000  # a config is a few kB; anything larger is another file


class _Reader:
    """One config's fields, with a record of what was taken from where."""

    def __init__(
        self,
        config: Mapping[str, Any],
        prefix: str = "",
    ):
        self.config, self.prefix = config, prefix
        self.read: dict[str, Any] = {}
        self.assumed: list[Assumed] = []

    def error(
        self,
        field: str,
        *found: Any,
        allowed: Any,
        problem: str | None = None,
    ):
        """The refusal of a field; without a value it is missing."""
        problem = "missing" if not found and problem is None else problem
        return DesignError(
            self.prefix + field,
            *found,
            allowed=allowed,
            problem=problem or "",
        )

    def get(self, *names: str) -> Any:
        """The first of the fields that the file has; a dot steps inside."""
        for name in names:
            value: Any = self.config
            for step in name.split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
            if value is not None:
                self.read[self.prefix + name] = value
                return value
        return None

    def count(
        self,
        *names: str,
        least: int = 1,
    ) -> int | None:
        """A whole number from `least` to a billion, or None where no name is in the file."""
        for name in names:
            value = self.get(name)
            if value is None:
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not least <= value <= 1e9 or value % 1:
                raise self.error(name, value, allowed=f"a whole number of at least {least}")
            return int(value)
        return None

    def dimension(
        self,
        arch: Architecture,
        names: tuple[str, ...],
    ) -> int:
        """A dimension that the file has to name, where its publisher does not leave it to the
        class."""
        value = self.count(*names)
        if value is not None:
            return value
        for field, size in arch.class_dimensions:
            if field == names[0]:
                why = f"the {arch.model_type} class's value; its files leave it out"
                return self.assume(self.prefix + field, size, why)
        raise self.error(names[0], allowed="this dimension of the model; it is not guessed")

    def numbers(self, name: str) -> list[int]:
        """A list of layer numbers or 0/1 marks; anything else in the list, or another value, is
        refused."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise self.error(name, value, allowed="a list of whole numbers")
        return value

    def assume(
        self,
        field: str,
        value: Any,
        why: str,
    ) -> Any:
        self.assumed.append(Assumed(field, value, why))
        return value

    def of_class(
        self,
        field: str,
        value: Any,
        model_type: str,
    ) -> Any:
        """What the config class puts where the file says nothing."""
        return self.assume(field, value, f"the {model_type} class's value; not in the file")

    def flag(self, spec: bool | Flag) -> bool:
        if isinstance(spec, bool):
            return spec
        value = self.get(spec.field)
        return spec.default if value is None else bool(value)


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
        name, config = path.stem, _load(path)
    reader, known = _Reader(config), tables()
    model_type = _named_type(reader)
    kind, tied = _not_refused(model_type, config), None
    if kind in known.composites:
        reader, kind, tied = _language_part(kind, reader)
    name = name or str(config.get("_name_or_path") or model_type)
    return _build(
        known.architectures[kind],
        reader,
        name,
        tied,
    )


def _language_part(model_type: str, whole: _Reader) -> tuple[_Reader, str, bool]:
    """The reader of a multimodal config's language part, its architecture, and whether it is
    tied."""
    composite = tables().composites[model_type]
    whole.get("vision_config.model_type")
    part, text = whole.config.get(composite.part), composite.text
    if isinstance(part, Mapping):
        reader = _Reader(part, composite.part + ".")
        reader.read, reader.assumed = whole.read, whole.assumed
        kind = str(part.get("model_type") or text)
    elif text and any(whole.config.get(f) is not None for f in tables().architectures[text].layers):
        reader, kind = whole, text  # older files keep the text fields at the top
    else:
        problem = f"missing in this {model_type} config"
        raise DesignError(
            composite.part,
            allowed="the language part",
            problem=problem,
        )
    if not kind:
        raise DesignError(
            composite.part + ".model_type",
            allowed="the architecture of the language part",
            problem=f"missing in this {model_type} config",
        )
    places = ((whole, "part"), (reader, "whole"))
    heeded = [r for r, place in places if composite.tie_read_from != place]
    said = [bool(v) for r in heeded if (v := r.get("tie_word_embeddings")) is not None]
    tied = any(said) if said else whole.of_class("tied_embeddings", composite.tied, model_type)
    return reader, _not_refused(kind, reader.config), tied


def _load(path: Path) -> Mapping[str, Any]:
    def wrong(allowed: str, problem: str) -> DesignError:
        return DesignError(
            "hf_config",
            str(path),
            allowed,
            problem=problem,
        )

    try:
        if path.is_dir():
            path = path / "config.json"
        if path.stat().st_size > _SIZE_LIMIT:
            raise wrong("a Hugging Face config.json of a few kB", "is too large")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        said = f"cannot be read ({error.strerror})"
        raise wrong("the path of a config.json", said) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise wrong("a JSON file", "is not JSON") from None
    if not isinstance(data, Mapping):
        raise wrong("a JSON object", "is not a JSON object")
    return data


def _named_type(reader: _Reader) -> str:
    model_type = reader.config.get("model_type")
    classes = reader.config.get("architectures")
    if isinstance(model_type, str) and model_type:
        reader.read["model_type"] = model_type
        return model_type
    names = {known.replace("_", "").replace("-", ""): known for t in tables()[::-1] for known in t}
    if not isinstance(classes, (list, tuple)):
        classes = [classes] if isinstance(classes, str) else []
    for cls in classes:
        bare = str(cls)
        for tail in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model"):
            bare = bare.removesuffix(tail)
        if bare.lower() in names:
            reader.read["architectures"] = cls
            why = f"from architectures: {cls}; the file has no model_type"
            return reader.assume("model_type", names[bare.lower()], why)
    raise DesignError(
        "model_type",
        problem="missing, and no architectures that name it",
        allowed="the config's model_type, e.g. llama, qwen3_moe, deepseek_v3; it is not guessed",
    )


def _not_refused(model_type: str, config: Mapping[str, Any]) -> str:
    known, allowed, problem = tables(), "decoder-only transformers", ""
    if model_type in known.refused:
        problem = f"is {known.refused[model_type]}"
    elif config.get("is_encoder_decoder") is True:
        problem = "is an encoder-decoder (is_encoder_decoder true)"
    elif model_type not in known.architectures and model_type not in known.composites:
        allowed = sorted((*known.architectures, *known.composites))
        problem = "is not among the architectures that are read"
    if problem:
        raise DesignError(
            "model_type",
            model_type,
            allowed,
            problem=problem,
        )
    return model_type


def _build(
    arch: Architecture,
    r: _Reader,
    name: str,
    tied: bool | None,
):
    for field, understood, why in arch.refuse:
        value = r.get(field)
        if value not in understood:
            allowed = f"{understood[0]} for {arch.model_type}"
            raise r.error(
                field,
                value,
                allowed=allowed,
                problem=f"is not read: {why}",
            )
    fields: dict[str, Any] = {
        field: r.dimension(arch, getattr(arch, field))
        for field in ("layers", "hidden", "heads", "vocab")
    }
    layers, hidden, heads, _ = fields.values()
    if layers > 100_000:
        raise r.error(arch.layers[0], layers, allowed="at most 100,000")
    kv_heads = fields["kv_heads"] = _kv_heads(r, arch, heads)
    fields["attention"] = attention_kind(heads, kv_heads)
    fields |= (
        _mla(r, arch)
        if arch.mla
        else dict(
            head_dim=_head_dim(
                r,
                arch,
                hidden,
                heads,
            )
        )
    )
    fields |= _ffn(
        r,
        arch,
        hidden,
        layers,
    )
    fields |= _window(r, arch, layers)
    if tied is None:
        tied = r.get("tie_word_embeddings")
    if tied is None:
        tied = r.of_class("tied_embeddings", arch.tied, arch.model_type)
    fields |= {k: r.flag(getattr(arch, k)) for k in _FLAGS}
    fields |= {k: getattr(arch, k) for k in _CLASS_FIELDS}
    norms = _falcon_norms(r) if arch.model_type == "falcon" else arch.norms
    if arch.qk_norm_flag is not None and not r.flag(arch.qk_norm_flag):
        fields["qk_norm"] = ""
    model = Model(
        name=name,
        tied_embeddings=bool(tied),
        position_rows=_positions(r, arch),
        seq_len=r.count(*arch.seq_len),
        mtp_layers=r.count(*arch.mtp, least=0) or 0,
        norms_per_layer=0 if arch.no_norm_weights else norms,
        final_norm=arch.final_norm and not arch.no_norm_weights,
        parallel_block=r.flag(arch.parallel),
        source=f"Hugging Face config, {arch.model_type}",
        **fields,
    )
    projected = r.count("word_embed_proj_dim") if arch.model_type == "opt" else None
    if projected not in (None, hidden):
        allowed, problem = f"hidden_size {hidden}", "is not read: a projected embedding"
        raise DesignError(
            "word_embed_proj_dim",
            projected,
            allowed,
            problem=problem,
        )
    check_model(model, read_as=_HF_NAMES)
    return model, r.read, tuple(r.assumed)


_FLAGS = ("norm_bias", "qkv_bias", "out_bias", "mlp_bias", "head_bias")
_CLASS_FIELDS = (
    "embedding_norm",
    "qk_norm",
    "expert_bias",
    "router_bias",
    "sinks",
    "router_buffers",
)
_HF_NAMES = {
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "layers": "num_hidden_layers",
    "top_k": "num_experts_per_tok",
}


def _positions(r: _Reader, arch: Architecture) -> int:
    """Rows of the learned position table."""
    if not arch.positions:
        return 0
    rows = r.count(*arch.positions)
    if rows is None:
        raise r.error(arch.positions[0], allowed="rows of the learned position table")
    return rows + arch.positions_extra


def _kv_heads(
    r: _Reader,
    arch: Architecture,
    heads: int,
) -> int:
    rule = arch.kv_rule
    if arch.mla or rule == "equal":
        return heads
    new = rule == "falcon" and r.flag(Flag("new_decoder_architecture"))
    if rule in ("multi-query", "falcon") and not new and r.flag(Flag("multi_query", True)):
        return 1
    if rule == "multi-query":
        return heads
    value = r.count(*arch.kv_heads)
    if value is not None:
        return value
    if rule == "falcon":
        return r.assume("kv_heads", heads, "no num_kv_heads in the file: one per head")
    if rule == "heads" or any(r.config.get(n, 0) is None for n in arch.kv_heads):  # null
        why = "no num_key_value_heads in the file: one per head, as the class does"
        return r.assume("kv_heads", heads, why)
    return r.dimension(arch, arch.kv_heads)


def _head_dim(
    r: _Reader,
    arch: Architecture,
    hidden: int,
    heads: int,
) -> int:
    value = r.count(*arch.head_dim) if arch.head_dim else None
    if value is not None:
        return value
    if arch.head_dim_class:
        return r.of_class("head_dim", arch.head_dim_class, arch.model_type)
    wide, many = arch.hidden[0], arch.heads[0]
    if hidden % heads:
        raise r.error(
            many,
            heads,
            allowed=f"a divisor of {wide} {hidden}, or head_dim given",
            problem=f"does not divide {wide} {hidden} and head_dim is not given",
        )
    return r.assume("head_dim", hidden // heads, f"derived: {wide} / {many}")


_RANKS = {
    "v_head_dim": "v_head_dim",
    "kv_lora": "kv_lora_rank",
    "qk_nope": "qk_nope_head_dim",
    "qk_rope": "qk_rope_head_dim",
}


def _mla(r: _Reader, arch: Architecture) -> dict[str, Any]:
    if "q_lora_rank" not in r.config:
        raise r.error("q_lora_rank", allowed="a rank, or null for one full projection")
    sizes = {field: r.dimension(arch, (name,)) for field, name in _RANKS.items()}
    q_lora = r.count("q_lora_rank") or 0
    return dict(
        attention="mla",
        q_lora=q_lora,
        head_dim=sizes["v_head_dim"],
        **sizes,
    )


def _ffn(
    r: _Reader,
    arch: Architecture,
    hidden: int,
    layers: int,
) -> dict[str, Any]:
    moe, activation = arch.moe, r.get(*arch.activation) or arch.activation_class
    fields: dict[str, Any] = dict(mlp=_mlp(str(activation), arch.gated))
    moe_layers = _moe_layers(r, arch, layers) if moe else 0
    if moe_layers:
        width, experts, top_k = (
            r.dimension(arch, names) for names in (moe.width, moe.experts, moe.top_k)
        )
        shared = _shared(r, moe.shared, width)
        fields |= dict(
            expert_ffn_hidden=width,
            experts=experts,
            top_k=top_k,
            moe_layers=moe_layers,
            shared_ffn_hidden=shared,
            shared_gate=moe.shared_gate and shared > 0,
            moe_layout=_layout(r, arch),
        )
    if moe_layers == layers:
        fields["ffn_hidden"] = 0
    elif moe is not None:
        fields["ffn_hidden"] = r.dimension(arch, moe.dense)
    else:
        width = r.count(*arch.ffn) if arch.ffn else None
        if width is None and arch.ffn_multiple:
            why = f"derived: {arch.ffn_multiple} x hidden, as the class does"
            width = r.assume("ffn_hidden", arch.ffn_multiple * hidden, why)
        fields["ffn_hidden"] = width or r.dimension(arch, arch.ffn)
    return fields


def _mlp(activation: str, gated: bool) -> str:
    if gated:
        return "geglu" if "gelu" in activation else "swiglu"
    return {
        "relu2": "squared-relu",
        "relu": "relu",
    }.get(activation, "gelu")


def _shared(
    r: _Reader,
    rule: str,
    width: int,
) -> int:
    if rule == "one":
        return width
    kind, _, field = rule.partition(":")
    if field and field not in r.config:
        raise r.error(field, allowed="0 or more; it is not guessed")
    value = field and r.count(field, least=0) or 0  # written as null: none
    return value * width if kind == "count" else value


def _moe_layers(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    """Layers with experts: as the file lists the kind of each, else by the class's rule."""
    kinds = r.get("mlp_layer_types")
    if isinstance(kinds, list):
        return sum(k == "sparse" for k in kinds[:layers])
    return _MOE_LAYERS[arch.moe.where](r, arch, layers)


def _every_layer(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    return layers


def _after_first(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    if r.count("moe_layer_freq") not in (None, 1):
        frequency = r.config["moe_layer_freq"]
        raise r.error(
            "moe_layer_freq",
            frequency,
            allowed=1,
            problem="is not read",
        )
    if r.config.get(arch.moe.experts[0], 0) is None:
        return 0
    first = r.count("first_k_dense_replace", least=0)
    if first is None:
        first = r.of_class("first_k_dense_replace", arch.moe.first_k, arch.model_type)
    return layers - min(first, layers)


def _sparse_step(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    step, dense = r.count("decoder_sparse_step") or 1, set(r.numbers("mlp_only_layers"))
    return sum((i + 1) % step == 0 and i not in dense for i in range(layers))


def _interleave(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    listed = r.numbers("moe_layers")
    if listed:
        return len({i for i in listed if 0 <= i < layers})
    step = r.count("interleave_moe_layer_step") or 1
    return len(range(step - 1, layers, step))


def _start_interval(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> int:
    start = r.count("moe_layer_start_index", least=0)
    last = r.count("moe_layer_end_index", least=-1)
    interval = r.count("moe_layer_interval") or 1
    if start is None:
        start = r.of_class("moe_layer_start_index", 1, arch.model_type)
    last = layers - 1 if last in (None, -1) else last
    return sum((i + 1) % interval == 0 and start <= i <= last for i in range(layers))


_MOE_LAYERS = {
    "all": _every_layer,
    "first-k": _after_first,
    "sparse-step": _sparse_step,
    "interleave": _interleave,
    "start-interval": _start_interval,
}
_STEPS = {
    "sparse-step": "decoder_sparse_step",
    "interleave": "interleave_moe_layer_step",
    "start-interval": "moe_layer_interval",
}


def _layout(r: _Reader, arch: Architecture) -> str:
    step = _STEPS.get(arch.moe.where)
    return "interleaved" if step and (r.count(step) or 1) > 1 else "dense-first"


def _window(
    r: _Reader,
    arch: Architecture,
    layers: int,
) -> dict[str, int]:
    if not arch.window:
        return {}
    width = r.count(arch.window_field)
    if width is None and arch.window_field not in r.config:
        width = arch.window_class or None
    sliding = _sliding(r, arch.window, layers) if width is not None else 0
    return (
        dict(
            window=width,
            windowed_layers=sliding,
        )
        if sliding
        else {}
    )


def _sliding(
    r: _Reader,
    rule: str,
    layers: int,
) -> int:
    """Layers whose attention slides."""
    if rule == "all":
        return layers
    kinds = r.config.get("layer_types")
    if isinstance(kinds, list):
        return sum(str(k).startswith(("sliding", "chunked")) for k in kinds[:layers])
    if rule == "qwen":
        first = r.count("max_window_layers", least=0) or 0
        return layers - min(first, layers) if r.flag(Flag("use_sliding_window")) else 0
    if rule == "chunk":
        listed, every = r.numbers("no_rope_layers"), r.count("no_rope_layer_interval") or 4
        return layers - (sum(not used for used in listed[:layers]) if listed else layers // every)
    every = r.config.get("sliding_window_pattern", r.config.get("_sliding_window_pattern"))
    if isinstance(every, str):  # "LLLG": every fourth layer attends to everything
        every = len(every)
    every = every if isinstance(every, int) and every > 0 else int(rule.split("-")[1])
    return layers if every == 1 else layers - layers // every


def _falcon_norms(r: _Reader) -> int:
    if not r.flag(Flag("parallel_attn", True)):
        return 2
    if not r.flag(Flag("new_decoder_architecture")):
        return 1
    return r.count("num_ln_in_parallel_attn") or 2
