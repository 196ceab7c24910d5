"""Published models by id, and the design file's `model` field in all its forms.

One row of models.csv per model: its shape, and the published parameter counts that the row is held
to by a test; what its library code adds (biases, norms, positions, windows, as fields of `Model`)
are rows of model_details.csv.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ...base.errors import CatalogueError, DesignError, refuse
from ...base.files import csv_rows
from ...base.records import Assumed, Derived, Lines, fields_of, record
from ..load import HERE, by_id, filled, find, indexed
from ..rows import Sourced
from .dimension_checks import Part, check_fields, check_model, rules_of_part, rules_of_parts
from .dimensions import GATED
from .hf import from_hf
from .pattern_words import SLIDING
from .patterns import attending_every, counts_of, layers_of
from .shape import Model, attention_kind
from .sizing import MLA, Made, from_size

SAME = {"layers", "hidden", "heads", "ffn_hidden"}  # of two models of one shape
MIXED = {"layers", "hidden", "heads", "experts", "top_k"}
PADDED = 0.01  # of a vocabulary, at most


@record
class Entry(Sourced):
    """A catalogue row: the published counts that its model is held to, and the model."""

    id: str
    aliases: Lines
    name: str
    publisher: str
    published_params: int
    params_tolerance: float  # 0: exact
    published_active: int | None = None
    active_tolerance: float | None = None
    counted: str  # what the published number counts

    @property
    def model(self) -> Model:
        """The model, built when it is first asked for."""
        return _model(self.id)


@cache
def _rows() -> dict[str, dict[str, str]]:
    """The rows of models.csv by id, with the fields that model_details.csv gives some of them."""
    details: dict[str, dict[str, str]] = {}
    for row in csv_rows(HERE / "model_details.csv"):
        details.setdefault(row["model"], {})[row["field"]] = row["value"]
    models = csv_rows(HERE / "models.csv")
    return {row["id"]: row | details.get(row["id"], {}) for row in models}


def _of(kind: type[Entry] | type[Model], row: dict[str, str]) -> dict[str, str]:
    """The cells of a row that are fields of a record."""
    names = {f.name for f in fields(kind)}
    return {column: cell for column, cell in row.items() if column in names}


@cache
def _model(id: str) -> Model:
    (model,) = filled(Model, [_of(Model, _rows()[id])])
    return check_model(model)


@cache
def _table() -> dict[str, Entry]:
    """All catalogue rows by id and by alias."""
    known = {f.name for kind in (Entry, Model) for f in fields(kind)}
    for row in _rows().values():
        for column in row.keys() - known:
            raise CatalogueError(f"models.csv: no field for {column} of {row['id']}")
    return indexed(filled(Entry, [_of(Entry, row) for row in _rows().values()]))


def entries() -> dict[str, Entry]:
    """All catalogue rows by id, in file order."""
    return by_id(_table())


def models() -> dict[str, Model]:
    """All catalogue models by id."""
    return {key: entry.model for key, entry in entries().items()}


def entry(key: Any, field: str = "model") -> Entry:
    """The row of an id or alias, case ignored. Raises DesignError with the nearest id."""
    return find(_table(), key, field, "a model")


def model(key: str) -> Model:
    """The catalogue model of an id or alias, e.g. `model("llama-3.1-405b")`. Raises DesignError
    with the nearest id."""
    return entry(key).model


def id_of(name: str) -> str:
    """The id of a model by id or alias, case ignored; "" where none is called so."""
    known = _table().get(name.lower())
    return known.id if known else ""


def of_shape(shape: Mapping[str, Any]) -> str:
    """The id of the first catalogue model with exactly these dimensions, "" where none has them or
    fewer than SAME (with experts, MIXED) are given; heads that no kv_heads group are not grouped,
    vocabularies are padded by up to 1 %. What `ffn_hidden` is beside experts differs by library."""
    needed = MIXED if shape.get("experts") else SAME
    exact = {"kv_heads": shape.get("heads")} | {n: v for n, v in shape.items() if n != "vocab"}
    if not exact.keys() >= needed:
        return ""
    for key, m in models().items():
        padded = shape.get("vocab", m.vocab) / m.vocab
        if 1 <= padded < 1 + PADDED and fields_of(m, exact) == exact:
            return key
    return ""


def check_spec(spec: Mapping[str, Any]) -> None:
    """Refuses a mapping that contradicts itself: two models to start from, none and no shape,
    dimensions that do not divide or exceed one another. Raises DesignError."""
    starts = [k for k in ("like", "hf_config", "size") if k in spec]
    if len(starts) > 1:
        first, second, *_ = starts
        allowed = f"one of like, hf_config and size ({first} is given already)"
        raise DesignError(second, spec[second], allowed, problem=f"contradicts {first}")
    needed = ("hidden", "vocab") if spec.get("pattern") else ("layers", "hidden", "heads")
    for field in () if starts else needed:
        if field not in spec:
            allowed = "a catalogue id, or a mapping with like, hf_config, size or the shape"
            raise DesignError(field, problem="is missing", allowed=allowed)
    latent = "kv_lora" in spec or spec.get("attention") == "mla"
    refuse(rules_of_parts(spec, {}), spec)
    if not latent and "head_dim" not in spec:
        head = Part("heads", "hidden", divides=True)
        refuse(rules_of_part(head, spec, {}, ", or give head_dim"), spec)
    if spec.get("moe") is False and spec.get("experts"):
        raise DesignError(
            "experts", spec["experts"], "0, or moe: true", 0, problem="contradicts moe: false"
        )


def build_model(spec: str | Mapping[str, Any], folder: str | Path = ".") -> Made:
    """The `Model` of a design file's `model` field, and what was assumed.

    `spec`: a catalogue id; or a mapping with `like` (an id; other fields replace the row's),
    `hf_config` (the path of a config.json, relative to `folder`; other fields replace its own),
    `size` (parameters; see `sizing.from_size`), or the shape itself. Raises DesignError.
    """
    if isinstance(spec, str):
        return model(spec), ()
    if not isinstance(spec, Mapping):
        raise DesignError("model", spec, "the id of a model, or a mapping")
    spec = {k: v for k, v in spec.items() if v is not None}
    check_spec(spec)
    changes = {k: v for k, v in spec.items() if k not in ("like", "hf_config", "attention_every")}
    every = spec.get("attention_every", 0)
    if "size" in spec:
        return from_size(changes.pop("size"), **changes)
    for field in [f for f in ("active", "moe") if f in changes]:
        raise DesignError(
            field,
            changes[field],
            "only with size; give experts, top_k and expert_ffn_hidden instead",
        )
    check_fields(changes)
    assumed: tuple[Assumed, ...] = ()
    if "like" in spec:
        base = entry(spec["like"], "like").model
    elif "hf_config" in spec:
        base, _, assumed = from_hf(Path(folder) / str(spec["hf_config"]))
    else:
        base, assumed = _explicit(changes)
        changes = {}
    made, more = _changed(base, changes, every)
    return made, assumed + more


def _changed(base: Model, changes: Mapping[str, Any], every: int = 0) -> Made:
    """`base` with fields replaced, and those that follow from them; where `every` is given, with
    attention to everything in one of so many layers."""
    if every:
        pattern = attending_every(changes.get("pattern", base.pattern), every)
        changes = {"mtp_pattern": base.mtp_pattern, **changes, "pattern": pattern}
    if not changes:
        return base, ()
    new = Derived(changes, "model")
    if "pattern" in changes:
        _pattern_follows(new)
    _experts_follow(base, new)
    layers, heads, hidden = ({**vars(base), **changes}[k] for k in ("layers", "heads", "hidden"))
    if base.windowed_layers and layers != base.layers:
        new.take(
            "windowed_layers",
            round(layers * base.windowed_layers / base.layers),
            "the row's share of the layers",
        )
    if base.kv_heads == base.heads != heads:
        new.take("kv_heads", heads, "as many as heads, as in the row")
    square = base.heads * base.head_dim == base.hidden and not hidden % heads
    if square and ("heads" in changes or "hidden" in changes):
        new.take("head_dim", hidden // heads, "hidden / heads, as in the row")
    kv_heads = new.fields.get("kv_heads", base.kv_heads)
    fields = dict(new.fields)
    if base.attention != "mla" and (heads, kv_heads) != (base.heads, base.kv_heads):
        fields.setdefault("attention", attention_kind(heads, kv_heads))
    changed = ", ".join(f"{k} {v}" for k, v in changes.items() if k != "name")
    fields.setdefault("name", f"{base.name} with {changed}" if changed else base.name)
    return check_model(replace(base, **fields)), tuple(new.assumed)


def _experts_follow(base: Model, new: Derived) -> None:
    """What follows for the experts from the layers and experts of a changed row."""
    layers = new.fields.get("layers", base.layers)
    experts = new.fields.get("experts")
    if base.is_moe and experts == 0:
        gone = ("moe_layers", "top_k", "expert_ffn_hidden", "shared_ffn_hidden")
        new.take_all(dict.fromkeys(gone, 0), "no experts")
        used = base.top_k * base.expert_ffn_hidden + base.shared_ffn_hidden
        new.take("ffn_hidden", base.ffn_hidden or used, "as wide as what a token uses")
    elif base.is_moe and layers != base.layers:
        kept = layers * base.moe_layers // base.layers
        if base.moe_layout == "dense-first":
            kept = layers - base.dense_layers
        new.take("moe_layers", max(kept, 0), "as the row's, for this many layers")
    elif not base.is_moe and experts:
        new.take("moe_layers", layers, "every layer")
        new.take("top_k", min(2, experts), "top-2")
        width = new.fields.get("ffn_hidden", base.ffn_hidden)
        new.take("expert_ffn_hidden", width, "an expert as wide as the row's MLP")


def _explicit(shape: Mapping[str, Any]) -> Made:
    """A shape as written; what follows from the rest is filled in and listed."""
    new = Derived(shape, "model")
    if shape.get("pattern"):
        _pattern_follows(new)
    if new.fields.get("heads"):
        _heads_follow(new)
    else:
        new.fields |= dict.fromkeys(("heads", "kv_heads", "head_dim"), 0)
    _feeds_follow(new)
    new.take("vocab", 128256, "Llama 3's vocabulary")
    new.take("tied_embeddings", False, "untied")
    f = new.fields
    name = f"{f['layers']} layers of {f['hidden']}"
    return check_model(Model(**{"name": name} | f)), tuple(new.assumed)


def _pattern_follows(new: Derived) -> None:
    """What a pattern says of layers, experts and windows, and the chunk of its scans."""
    counts = counts_of(new.fields["pattern"])
    of_pattern = {
        "layers": counts["layers"],
        "moe_layers": counts.get("moe", 0),
        "windowed_layers": sum(counts.get(word, 0) for word in SLIDING),
    }
    new.take_all(of_pattern, "the layers of the pattern")
    new.take(
        "mtp_pattern", "+".join(layers_of(new.fields["pattern"])[-1]), "a layer of the last kind"
    )
    if {"gdn", "kda"} & counts.keys():
        new.take("chunk", 64, "the delta rule's kernels")
    elif "mlstm" in counts:
        new.take("chunk", 64, "xLSTM 7B's kernels")
    elif {"mamba2", "lightning"} & counts.keys():
        new.take("chunk", 128, "Megatron-LM's Mamba-2")
    if {"mamba2", "mamba1", "gdn", "kda", "rglru"} & counts.keys():
        new.take("conv", 4, "taps of all published models")
    if not {"mlp", "beside", "shared"} & counts.keys():
        new.fields.setdefault("ffn_hidden", 0)


def _heads_follow(new: Derived) -> None:
    """The attention of a shape as written."""
    f = new.fields
    hidden = f["hidden"]
    heads = f["heads"]
    if f.get("attention") == "mla" or f.get("kv_lora"):
        new.take("attention", "mla", "kv_lora is given")
        new.take_all(MLA, "as DeepSeek-V3")
        new.take("kv_heads", heads, "as many as heads")
        new.take("head_dim", f["v_head_dim"], "the value size")
    elif "head_dim" not in f:
        new.take("head_dim", hidden // heads, "hidden / heads")
    kind = f.get("attention")
    usual = heads
    why = "as many as heads"
    if kind == "gqa" and "kv_heads" not in f:
        allowed = f"a divisor of heads {heads}, as attention is gqa"
        raise DesignError("kv_heads", problem="is missing", allowed=allowed)
    if kind == "mqa":
        usual = 1
        why = "multi-query attention"
    kv_heads = new.take("kv_heads", usual, why)
    new.take("attention", attention_kind(heads, kv_heads), "from heads and kv_heads")
    if kind in ("mha", "mqa") and kv_heads != usual:
        allowed = f"{usual} with attention {kind}, or attention gqa"
        raise DesignError("kv_heads", kv_heads, allowed)


def _feeds_follow(new: Derived) -> None:
    """The MLP and the experts of a shape as written."""
    take = new.take
    f = new.fields
    hidden = f["hidden"]
    if f.get("ffn_hidden") == 4 * hidden and not f.get("experts"):
        gated = take("mlp", "gelu", "4 x hidden wide: not gated") in GATED
    else:
        gated = take("mlp", "swiglu", "gated, as most models since Llama") in GATED
    if f.get("experts") or f.get("moe_layers") or f.get("expert_ffn_hidden"):
        experts = take("experts", 16, "16 experts where none are given")
        take("top_k", min(2, experts), "top-2")
        take("moe_layers", f["layers"], "every layer")
        if f.get("ffn_hidden"):
            take("expert_ffn_hidden", f["ffn_hidden"], "an expert as wide as ffn_hidden")
        elif not f.get("expert_ffn_hidden"):
            allowed = "the width of an expert, or ffn_hidden, or the model's size"
            raise DesignError("expert_ffn_hidden", problem="is missing", allowed=allowed)
    if f.get("moe_layers", 0) == f["layers"]:
        f.setdefault("ffn_hidden", 0)
    if gated:
        take("ffn_hidden", 256 * round(hidden * 8 / 3 / 256), "8/3 hidden, to 256")
    else:
        take("ffn_hidden", 4 * hidden, "4 x hidden")
