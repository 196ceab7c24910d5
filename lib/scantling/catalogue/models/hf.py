"""Hugging Face config.json -> `Model`, with what was read and what was assumed; `hf_architectures`
is its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.errors import DesignError
from ...base.records import Assumed
from .architectures import ARCHITECTURES, COMPOSITES, REFUSED, Architecture, Flag
from .shape import Model, check_model

_SIZE_LIMIT = 4_000_000  # a config is a few kB; anything larger is another file


class _Reader:
    """One config's fields, with a record of what was taken from where."""

    def __init__(self, config: Mapping[str, Any], prefix: str = ""):
        self.config, self.prefix = config, prefix
        self.read: dict[str, Any] = {}
        self.assumed: list[Assumed] = []

    def get(self, *names: str) -> Any:
        for name in names:
            value: Any = self.config
            for step in name.split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
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
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not least <= value <= 1e9
                or value % 1
            ):
                raise DesignError(self.prefix + name, value, f"a whole number of at least {least}")
            return int(value)
        return None

    def numbers(self, name: str) -> list[int]:
        """A list of layer numbers or 0/1 marks; anything else in the list, or another value, is
        refused."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise DesignError(self.prefix + name, value, "a list of whole numbers")
        return value

    def assume(self, field: str, value: Any, why: str) -> Any:
        self.assumed.append(Assumed(field, value, why))
        return value

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
    count to the last
    digit. Of a multimodal file the language part alone; `read` keeps the vision part's model type.
    A dimension that
    the file leaves out is refused by name, except those that the publisher's own files leave to the
    config class, which
    are listed in the result. MTP modules are read (`mtp_layers`) though the library does not build
    them.
    Raises DesignError: not a config, an architecture that is not a decoder-only transformer of the
    table (named, with
    the reason), a missing or impossible dimension.
    """
    name = ""
    if not isinstance(config, Mapping):
        path = Path(config)
        name, config = path.stem, _load(path)
    model_type, architectures = config.get("model_type"), config.get("architectures")
    if not isinstance(architectures, (list, tuple)):
        architectures = [architectures] if isinstance(architectures, str) else []
    reader = _Reader(config)
    model_type = _named_type(model_type, architectures, reader)
    known = _not_refused(model_type, config)
    tied = None
    if known in COMPOSITES:
        reader, known, tied = _language_part(known, reader)
    arch = ARCHITECTURES[known]
    return _build(arch, reader, name or str(config.get("_name_or_path") or model_type), tied)


def _language_part(model_type: str, whole: _Reader) -> tuple[_Reader, str, bool]:
    """The reader of a multimodal config's language part, its architecture, and whether it is
    tied."""
    composite = COMPOSITES[model_type]
    whole.get("vision_config.model_type")
    part = whole.config.get(composite.part)
    if isinstance(part, Mapping):
        reader = _Reader(part, composite.part + ".")
        reader.read, reader.assumed = whole.read, whole.assumed
        kind = str(part.get("model_type") or composite.text)
    elif composite.text and any(
        whole.config.get(f) is not None for f in ARCHITECTURES[composite.text].layers
    ):
        reader, kind = whole, composite.text  # older files keep the text fields at the top
    else:
        raise DesignError(
            composite.part,
            problem=f"missing in this {model_type} config",
            allowed="the language part",
        )
    if not kind:
        raise DesignError(
            composite.part + ".model_type",
            problem=f"missing in this {model_type} config",
            allowed="the architecture of the language part",
        )
    heeded = [
        r.get("tie_word_embeddings")
        for r, place in ((whole, "part"), (reader, "whole"))
        if composite.tie_read_from != place
    ]
    said = [bool(value) for value in heeded if value is not None]
    tied = (
        any(said)
        if said
        else whole.assume(
            "tied_embeddings", composite.tied, f"the {model_type} class's value; not in the file"
        )
    )
    return reader, _not_refused(kind, reader.config), tied


def _load(path: Path) -> Mapping[str, Any]:
    try:
        if path.is_dir():
            path = path / "config.json"
        if path.stat().st_size > _SIZE_LIMIT:
            raise DesignError(
                "hf_config",
                str(path),
                "a Hugging Face config.json of a few kB",
                problem="is too large",
            )
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DesignError(
            "hf_config",
            str(path),
            "the path of a config.json",
            problem=f"cannot be read ({error.strerror})",
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise DesignError("hf_config", str(path), "a JSON file", problem="is not JSON") from None
    if not isinstance(data, Mapping):
        raise DesignError("hf_config", str(path), "a JSON object", problem="is not a JSON object")
    return data


def _named_type(model_type: Any, architectures: list, reader: _Reader) -> str:
    if isinstance(model_type, str) and model_type:
        reader.read["model_type"] = model_type
        return model_type
    for cls in architectures:
        bare = str(cls)
        for tail in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model"):
            bare = bare.removesuffix(tail)
        for known in (*ARCHITECTURES, *COMPOSITES, *REFUSED):
            if known.replace("_", "").replace("-", "") == bare.lower():
                reader.read["architectures"] = cls
                return reader.assume(
                    "model_type", known, f"from architectures: {cls}; the file has no model_type"
                )
    raise DesignError(
        "model_type",
        problem="missing, and no architectures that name it",
        allowed="the config's model_type, e.g. llama, qwen3_moe, deepseek_v3; it is not guessed",
    )


def _not_refused(model_type: str, config: Mapping[str, Any]) -> str:
    if model_type in REFUSED:
        raise DesignError(
            "model_type",
            model_type,
            "decoder-only transformers",
            problem=f"is {REFUSED[model_type]}",
        )
    if config.get("is_encoder_decoder") is True:
        raise DesignError(
            "model_type",
            model_type,
            "decoder-only transformers",
            problem="is an encoder-decoder (is_encoder_decoder true)",
        )
    if model_type not in ARCHITECTURES and model_type not in COMPOSITES:
        raise DesignError(
            "model_type",
            model_type,
            sorted((*ARCHITECTURES, *COMPOSITES)),
            problem="is not among the architectures that are read",
        )
    return model_type


def _dimension(r: _Reader, arch: Architecture, names: tuple[str, ...]) -> int:
    value = r.count(*names)
    if value is not None:
        return value
    for field, size in arch.class_dimensions:
        if field == names[0]:
            return r.assume(
                r.prefix + field,
                size,
                f"the {arch.model_type} class's value; its files leave it out",
            )
    raise DesignError(
        r.prefix + names[0],
        problem="missing",
        allowed="this dimension of the model; it is not guessed",
    )


def _build(arch: Architecture, r: _Reader, name: str, tied: bool | None):
    for field, understood, why in arch.refuse:
        value = r.get(field)
        if value not in understood:
            raise DesignError(
                r.prefix + field,
                value,
                f"{understood[0]} for {arch.model_type}",
                problem=f"is not read: {why}",
            )
    layers, hidden = _dimension(r, arch, arch.layers), _dimension(r, arch, arch.hidden)
    if layers > 100_000:
        raise DesignError(r.prefix + arch.layers[0], layers, "at most 100,000")
    heads, vocab = _dimension(r, arch, arch.heads), _dimension(r, arch, arch.vocab)
    kv_heads = _kv_heads(r, arch, heads)
    fields: dict[str, Any] = dict(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, vocab=vocab
    )
    fields |= _mla(r, heads) if arch.mla else dict(head_dim=_head_dim(r, arch, hidden, heads))
    fields |= _ffn(r, arch, hidden, layers)
    fields |= _window(r, arch, layers)
    if arch.mla:
        fields["attention"] = "mla"
    else:
        fields["attention"] = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
    if tied is None:
        tied = r.get("tie_word_embeddings")
        if tied is None:
            tied = r.assume(
                "tied_embeddings",
                arch.tied,
                f"the {arch.model_type} class's value; not in the file",
            )
    norms = arch.norms
    if arch.model_type == "falcon":
        norms = _falcon_norms(r)
    elif arch.no_norm_weights:
        norms = 0
    qk_norm = arch.qk_norm
    if qk_norm and arch.qk_norm_flag is not None and not r.flag(arch.qk_norm_flag):
        qk_norm = ""
    positions = r.count(*arch.positions) if arch.positions else None
    if arch.positions and positions is None:
        raise DesignError(
            r.prefix + arch.positions[0],
            problem="missing",
            allowed="rows of the learned position table",
        )
    if arch.model_type == "opt" and (projected := r.count("word_embed_proj_dim")) not in (
        None,
        hidden,
    ):
        raise DesignError(
            "word_embed_proj_dim",
            projected,
            f"hidden_size {hidden}",
            problem="is not read: a projected embedding",
        )
    seq_len = r.count(*arch.seq_len)
    mtp = r.count(*arch.mtp, least=0) or 0
    model = Model(
        name=name,
        tied_embeddings=bool(tied),
        seq_len=seq_len,
        mtp_layers=mtp,
        norms_per_layer=norms,
        norm_bias=r.flag(arch.norm_bias),
        final_norm=arch.final_norm and not arch.no_norm_weights,
        embedding_norm=arch.embedding_norm,
        qk_norm=qk_norm,
        position_rows=(positions or 0) + (arch.positions_extra if positions else 0),
        qkv_bias=r.flag(arch.qkv_bias),
        out_bias=r.flag(arch.out_bias),
        mlp_bias=r.flag(arch.mlp_bias),
        expert_bias=arch.expert_bias,
        router_bias=arch.router_bias,
        head_bias=r.flag(arch.head_bias),
        sinks=arch.sinks,
        router_buffers=arch.router_buffers,
        parallel_block=r.flag(arch.parallel),
        source=f"Hugging Face config, {arch.model_type}",
        **fields,
    )
    check_model(model, read_as=_HF_NAMES)
    return model, r.read, tuple(r.assumed)


_HF_NAMES = {
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "layers": "num_hidden_layers",
    "top_k": "num_experts_per_tok",
}


def _kv_heads(r: _Reader, arch: Architecture, heads: int) -> int:
    if arch.mla or arch.kv_rule == "equal":
        return heads
    if arch.kv_rule == "multi-query":
        return 1 if r.flag(Flag("multi_query", True)) else heads
    if arch.kv_rule == "falcon":
        if not r.flag(Flag("new_decoder_architecture")) and r.flag(Flag("multi_query", True)):
            return 1
        return r.count(*arch.kv_heads) or r.assume(
            "kv_heads", heads, "no num_kv_heads in the file: one per head"
        )
    value = r.count(*arch.kv_heads)
    if value is not None:
        return value
    named = any(r.config.get(n, 0) is None for n in arch.kv_heads)  # written as null
    if arch.kv_rule == "heads" or named:
        return r.assume(
            "kv_heads", heads, "no num_key_value_heads in the file: one per head, as the class does"
        )
    for field, size in arch.class_dimensions:
        if field == arch.kv_heads[0]:
            return r.assume(
                r.prefix + field,
                size,
                f"the {arch.model_type} class's value; its files leave it out",
            )
    raise DesignError(
        r.prefix + arch.kv_heads[0],
        problem="missing",
        allowed="this dimension of the model; it is not guessed",
    )


def _head_dim(r: _Reader, arch: Architecture, hidden: int, heads: int) -> int:
    value = r.count(*arch.head_dim) if arch.head_dim else None
    if value is not None:
        return value
    if arch.head_dim_class:
        return r.assume(
            "head_dim", arch.head_dim_class, f"the {arch.model_type} class's value; not in the file"
        )
    if hidden % heads:
        raise DesignError(
            r.prefix + arch.heads[0],
            heads,
            f"a divisor of {arch.hidden[0]} {hidden}, or head_dim given",
            problem=f"does not divide {arch.hidden[0]} {hidden} and head_dim is not given",
        )
    return r.assume("head_dim", hidden // heads, f"derived: {arch.hidden[0]} / {arch.heads[0]}")


def _mla(r: _Reader, heads: int) -> dict[str, int]:
    def need(field: str) -> int:
        value = r.count(field)
        if value is None:
            raise DesignError(
                r.prefix + field,
                problem="missing",
                allowed="this dimension of the model; it is not guessed",
            )
        return value

    if "q_lora_rank" not in r.config:
        raise DesignError(
            r.prefix + "q_lora_rank",
            problem="missing",
            allowed="a rank, or null for one full projection",
        )
    v_head_dim = need("v_head_dim")
    return dict(
        q_lora=r.count("q_lora_rank") or 0,
        kv_lora=need("kv_lora_rank"),
        qk_nope=need("qk_nope_head_dim"),
        qk_rope=need("qk_rope_head_dim"),
        v_head_dim=v_head_dim,
        head_dim=v_head_dim,
    )


def _ffn(r: _Reader, arch: Architecture, hidden: int, layers: int) -> dict[str, Any]:
    activation = r.get(*arch.activation) or arch.activation_class
    fields: dict[str, Any] = dict(mlp=_mlp(str(activation), arch.gated))
    moe_layers = 0 if arch.moe is None else _moe_layers(r, arch, layers)
    if moe_layers:
        moe = arch.moe
        width = _dimension(r, arch, moe.width)
        experts, top_k = _dimension(r, arch, moe.experts), _dimension(r, arch, moe.top_k)
        fields |= dict(
            experts=experts,
            top_k=top_k,
            expert_ffn_hidden=width,
            moe_layers=moe_layers,
            shared_ffn_hidden=_shared(r, moe.shared, width),
            moe_layout=_layout(r, arch),
        )
        fields["shared_gate"] = moe.shared_gate and fields["shared_ffn_hidden"] > 0
    if moe_layers == layers:
        fields["ffn_hidden"] = 0
    elif arch.moe is not None:
        fields["ffn_hidden"] = _dimension(r, arch, arch.moe.dense)
    else:
        width = r.count(*arch.ffn) if arch.ffn else None
        if width is None and arch.ffn_multiple:
            width = r.assume(
                "ffn_hidden",
                arch.ffn_multiple * hidden,
                f"derived: {arch.ffn_multiple} x hidden, as the class does",
            )
        fields["ffn_hidden"] = width or _dimension(r, arch, arch.ffn)
    return fields


def _mlp(activation: str, gated: bool) -> str:
    if gated:
        return "geglu" if "gelu" in activation else "swiglu"
    return {"relu2": "squared-relu", "relu": "relu"}.get(activation, "gelu")


def _shared(r: _Reader, rule: str, width: int) -> int:
    if rule == "one":
        return width
    kind, _, field = rule.partition(":")
    value = r.count(field, least=0) if field else 0
    if value is None and field in r.config:
        value = 0  # written as null: none
    if value is None:
        raise DesignError(
            r.prefix + field, problem="missing", allowed="0 or more; it is not guessed"
        )
    return value * width if kind == "count" else value


def _moe_layers(r: _Reader, arch: Architecture, layers: int) -> int:
    moe = arch.moe
    kinds = r.get("mlp_layer_types")
    if isinstance(kinds, list):
        return sum(k == "sparse" for k in kinds[:layers])
    if moe.where == "all":
        return layers
    if moe.where == "first-k":
        if r.count("moe_layer_freq") not in (None, 1):
            raise DesignError(
                r.prefix + "moe_layer_freq", r.config["moe_layer_freq"], 1, problem="is not read"
            )
        if r.config.get(moe.experts[0], 0) is None:
            return 0
        first = r.count("first_k_dense_replace", least=0)
        if first is None:
            first = r.assume(
                "first_k_dense_replace",
                moe.first_k,
                f"the {arch.model_type} class's value; not in the file",
            )
        return layers - min(first, layers)
    if moe.where == "sparse-step":
        step, dense = r.count("decoder_sparse_step") or 1, set(r.numbers("mlp_only_layers"))
        return sum((i + 1) % step == 0 and i not in dense for i in range(layers))
    if moe.where == "interleave":
        listed = r.numbers("moe_layers")
        if listed:
            return len({i for i in listed if 0 <= i < layers})
        return len(range((step := r.count("interleave_moe_layer_step") or 1) - 1, layers, step))
    start, last = (
        r.count("moe_layer_start_index", least=0),
        r.count("moe_layer_end_index", least=-1),
    )
    interval = r.count("moe_layer_interval") or 1
    start = (
        r.assume(
            "moe_layer_start_index", 1, f"the {arch.model_type} class's value; not in the file"
        )
        if start is None
        else start
    )
    last = layers - 1 if last in (None, -1) else last
    return sum((i + 1) % interval == 0 and start <= i <= last for i in range(layers))


def _layout(r: _Reader, arch: Architecture) -> str:
    step = {
        "sparse-step": "decoder_sparse_step",
        "interleave": "interleave_moe_layer_step",
        "start-interval": "moe_layer_interval",
    }.get(arch.moe.where, "")
    return "interleaved" if step and (r.count(step) or 1) > 1 else "dense-first"


def _window(r: _Reader, arch: Architecture, layers: int) -> dict[str, int]:
    kinds = r.config.get("layer_types")
    if not arch.window:
        return {}
    width = r.count(arch.window_field)
    if width is None and arch.window_field not in r.config:
        width = arch.window_class or None
    if width is None:
        return {}
    if isinstance(kinds, list) and arch.window != "all":
        sliding = sum(str(k).startswith(("sliding", "chunked")) for k in kinds[:layers])
    elif arch.window == "all":
        sliding = layers
    elif arch.window == "qwen":
        first = r.count("max_window_layers", least=0)
        sliding = layers - min(first or 0, layers) if r.flag(Flag("use_sliding_window")) else 0
    elif arch.window == "chunk":
        listed, every = r.numbers("no_rope_layers"), r.count("no_rope_layer_interval") or 4
        full = sum(not used for used in listed[:layers]) if listed else layers // every
        sliding = layers - full
    else:
        every = r.config.get("sliding_window_pattern", r.config.get("_sliding_window_pattern"))
        every = (
            len(every) if isinstance(every, str) else every
        )  # "LLLG": every fourth layer attends to everything
        every = every if isinstance(every, int) and every > 0 else int(arch.window.split("-")[1])
        sliding = layers if every == 1 else layers - layers // every
    return dict(window=width, windowed_layers=sliding) if sliding else {}


def _falcon_norms(r: _Reader) -> int:
    if not r.flag(Flag("parallel_attn", True)):
        return 2
    if not r.flag(Flag("new_decoder_architecture")):
        return 1
    return r.count("num_ln_in_parallel_attn") or 2
