"""Published models by id, and the design file's `model` field in all its forms.

One row of models.csv per model: its shape, what its library code adds (`details`: biases, norms,
positions, windows, as
fields of `Model`), and the published parameter counts that the row is held to by a test.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ...base.errors import DesignError, closest
from ...base.records import Assumed
from .hf import from_hf
from .shape import GATED, Model, check_model
from .sizing import from_size

_FILE = Path(__file__).parents[1] / "models.csv"
_TYPES = {f.name: f.type for f in fields(Model)}
_FLAGS = {name for name, kind in _TYPES.items() if kind == "bool"}
_WORDS = {name for name, kind in _TYPES.items() if kind == "str"}
_MLA = dict(q_lora=1536, kv_lora=512, qk_nope=128, qk_rope=64, v_head_dim=128)


@dataclass(frozen=True)
class Entry:
    """A catalogue row: the model, and the published counts it is held to."""

    id: str
    aliases: tuple[str, ...]
    publisher: str
    model: Model
    published_params: int
    params_tolerance: float  # 0: exact
    published_active: int | None
    active_tolerance: float | None
    counted: str  # what the published number counts
    source: str
    date: str
    verified: str  # text, secondary, memory
    notes: str


@cache
def entries() -> dict[str, Entry]:
    """All catalogue rows by id, in file order."""
    with _FILE.open(newline="", encoding="utf-8") as file:
        return {row["id"]: _entry(row) for row in csv.DictReader(file)}


def models() -> dict[str, Model]:
    """All catalogue models by id."""
    return {key: entry.model for key, entry in entries().items()}


def entry(key: Any, field: str = "model") -> Entry:
    """The row of an id or alias, case ignored. Raises DesignError with the nearest id."""
    rows = entries()
    if isinstance(key, str):
        found = rows.get(key.strip().lower()) or rows.get(_aliases().get(key.strip().lower(), ""))
        if found is not None:
            return found
        near = closest(key, [*rows, *_aliases()])
        raise DesignError(
            field,
            key,
            list(rows),
            nearest=_aliases().get(near, near) if near else None,
            problem="is not a model of the catalogue",
        )
    raise DesignError(field, key, "the id of a model, or a mapping")


def model(key: str) -> Model:
    """The catalogue model of an id or alias, e.g. `model("llama-3.1-405b")`. Raises DesignError
    with the nearest id."""
    return entry(key).model


@cache
def _aliases() -> dict[str, str]:
    return {alias: row.id for row in entries().values() for alias in row.aliases}


def _entry(row: dict[str, str]) -> Entry:
    given = {k: _value(k, row[k]) for k in row.keys() & _TYPES.keys() if row[k] and k != "source"}
    for pair in row["details"].split():
        field, _, value = pair.partition("=")
        given[field] = _value(field, value)
    made = check_model(Model(source=row["source"], **given))
    return Entry(
        row["id"],
        tuple(row["aliases"].split()),
        row["publisher"],
        made,
        int(row["published_params"]),
        float(row["params_tolerance"]),
        int(row["published_active"]) if row["published_active"] else None,
        float(row["active_tolerance"]) if row["active_tolerance"] else None,
        row["counted"],
        row["source"],
        row["date"],
        row["verified"],
        row["notes"],
    )


def _value(field: str, text: str) -> Any:
    if field in _WORDS:
        return text
    return bool(int(text)) if field in _FLAGS else int(text)


def build_model(
    spec: str | Mapping[str, Any], folder: str | Path = "."
) -> tuple[Model, tuple[Assumed, ...]]:
    """The `Model` of a design file's `model` field, and what was assumed.

    `spec`: a catalogue id; or a mapping with `like` (an id; other fields replace the row's),
    `hf_config` (the path of a
    config.json, relative to `folder`; other fields replace its own), `size` (parameters; see
    `sizing.from_size`), or
    the shape itself. Raises DesignError.
    """
    if isinstance(spec, str):
        return model(spec), ()
    if not isinstance(spec, Mapping):
        raise DesignError("model", spec, "the id of a model, or a mapping")
    spec = {k: v for k, v in spec.items() if v is not None}
    starts = [k for k in ("like", "hf_config", "size") if k in spec]
    if len(starts) > 1:
        raise DesignError(
            starts[1],
            spec[starts[1]],
            f"one of like, hf_config, size ({starts[0]} is given already)",
        )
    changes = {k: v for k, v in spec.items() if k not in ("like", "hf_config")}
    if "size" in spec:
        return from_size(changes.pop("size"), **changes)
    for field in ("active", "moe"):
        if field in changes:
            raise DesignError(
                field,
                changes[field],
                "only with size; give experts, top_k and expert_ffn_hidden instead",
            )
    _known(changes)
    if "like" in spec:
        return _changed(entry(spec["like"], "like").model, changes)
    if "hf_config" in spec:
        made, _, assumed = from_hf(Path(folder) / str(spec["hf_config"]))
        made, more = _changed(made, changes)
        return made, assumed + more
    return _explicit(changes)


def _known(changes: Mapping[str, Any]) -> None:
    for field in changes:
        if field not in _TYPES:
            raise DesignError(field, changes[field], sorted(_TYPES), problem="is unknown")


def _changed(base: Model, changes: Mapping[str, Any]) -> tuple[Model, tuple[Assumed, ...]]:
    """`base` with fields replaced, and those that follow from them."""
    if not changes:
        return base, ()
    follow: dict[str, tuple[Any, str]] = {}
    new = dict(changes)
    layers = new.get("layers", base.layers)
    if base.is_moe and layers != base.layers and "moe_layers" not in new:
        kept = (
            layers - base.dense_layers
            if base.moe_layout == "dense-first"
            else layers * base.moe_layers // base.layers
        )
        follow["moe_layers"] = max(kept, 0), "as the row's, for this many layers"
    if not base.is_moe and new.get("experts"):
        follow["moe_layers"] = layers, "every layer"
        follow["top_k"] = min(2, new["experts"]), "top-2"
        follow["expert_ffn_hidden"] = (
            new.get("ffn_hidden", base.ffn_hidden),
            "an expert as wide as the row's MLP",
        )
    if base.is_moe and new.get("experts") == 0:
        follow |= {
            k: (0, "no experts")
            for k in ("moe_layers", "top_k", "expert_ffn_hidden", "shared_ffn_hidden")
        }
        follow["ffn_hidden"] = (
            base.ffn_hidden or base.top_k * base.expert_ffn_hidden + base.shared_ffn_hidden,
            "as wide as what a token uses",
        )
    if base.windowed_layers and layers != base.layers:
        follow["windowed_layers"] = (
            round(layers * base.windowed_layers / base.layers),
            "the row's share of the layers",
        )
    heads = new.get("heads", base.heads)
    if base.kv_heads == base.heads and heads != base.heads:
        follow["kv_heads"] = heads, "as many as heads, as in the row"
    if (
        ("heads" in new or "hidden" in new)
        and "head_dim" not in new
        and base.heads * base.head_dim == base.hidden
    ):
        hidden = new.get("hidden", base.hidden)
        if hidden % heads == 0:
            follow["head_dim"] = hidden // heads, "hidden / heads, as in the row"
    kv_heads = new.get("kv_heads", follow.get("kv_heads", (base.kv_heads,))[0])
    if (
        base.attention != "mla"
        and "attention" not in new
        and (heads, kv_heads) != (base.heads, base.kv_heads)
    ):
        new["attention"] = _kind(heads, kv_heads)
    derived = {k: v for k, (v, _) in follow.items() if k not in changes}
    said = ", ".join(f"{k} {v}" for k, v in changes.items() if k != "name")
    new.setdefault("name", f"{base.name} with {said}" if said else base.name)
    made = check_model(replace(base, **{**new, **derived}))
    return made, tuple(Assumed(f"model.{k}", v, follow[k][1]) for k, v in derived.items())


def _kind(heads: int, kv_heads: int) -> str:
    return "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"


def _explicit(given: Mapping[str, Any]) -> tuple[Model, tuple[Assumed, ...]]:
    """A shape as written; what follows from the rest is filled in and listed."""
    f, assumed = dict(given), []

    def fill(field: str, value: Any, why: str) -> None:
        if field not in f:
            f[field] = value
            assumed.append(Assumed(f"model.{field}", value, why))

    for field in ("layers", "hidden", "heads"):
        if field not in f:
            raise DesignError(
                field,
                problem="is missing",
                allowed="a catalogue id, or a mapping with like, hf_config, size or the shape",
            )
    hidden, heads = f["hidden"], f["heads"]
    if f.get("attention") == "mla" or f.get("kv_lora"):
        fill("attention", "mla", "kv_lora is given")
        for field, value in _MLA.items():
            fill(field, value, "as DeepSeek-V3")
        fill("kv_heads", heads, "as many as heads")
        fill("head_dim", f["v_head_dim"], "the value size")
    elif "head_dim" not in f:
        if hidden % heads:
            raise DesignError(
                "heads",
                heads,
                f"a divisor of hidden {hidden}, or head_dim given",
                _divisor(hidden, heads),
                problem=f"does not divide hidden {hidden} and head_dim is not given",
            )
        fill("head_dim", hidden // heads, "hidden / heads")
    kind = f.get("attention")
    if kind == "gqa" and "kv_heads" not in f:
        raise DesignError(
            "kv_heads",
            problem="is missing",
            allowed=f"a divisor of heads {heads}, as attention is gqa",
        )
    fill(
        "kv_heads",
        1 if kind == "mqa" else heads,
        "multi-query attention" if kind == "mqa" else "as many as heads",
    )
    fill("attention", _kind(heads, f["kv_heads"]), "from heads and kv_heads")
    if kind in ("mha", "mqa") and f["kv_heads"] != (heads if kind == "mha" else 1):
        raise DesignError(
            "kv_heads",
            f["kv_heads"],
            f"{heads if kind == 'mha' else 1} with attention {kind}, or attention gqa",
        )
    if "mlp" not in f:
        plain = f.get("ffn_hidden") == 4 * hidden and not f.get("experts")
        fill(
            "mlp",
            "gelu" if plain else "swiglu",
            "4 x hidden wide: not gated" if plain else "gated, as most models since Llama",
        )
    gated = f["mlp"] in GATED
    if f.get("experts") or f.get("moe_layers") or f.get("expert_ffn_hidden"):
        fill("experts", 16, "16 experts where none are given")
        fill("top_k", min(2, f["experts"]), "top-2")
        fill("moe_layers", f["layers"], "every layer")
        if "expert_ffn_hidden" not in f and f.get("ffn_hidden"):
            fill("expert_ffn_hidden", f["ffn_hidden"], "an expert as wide as ffn_hidden")
    if f.get("moe_layers", 0) == f["layers"]:
        f.setdefault("ffn_hidden", 0)
    fill(
        "ffn_hidden",
        256 * round(hidden * 8 / 3 / 256) if gated else 4 * hidden,
        "8/3 hidden, to 256" if gated else "4 x hidden",
    )
    fill("vocab", 128256, "Llama 3's vocabulary")
    fill("tied_embeddings", False, "untied")
    f.setdefault("name", f"{f['layers']} layers of {hidden}")
    return check_model(Model(**f)), tuple(assumed)


def _divisor(hidden: int, heads: int) -> int:
    return min((d for d in range(1, hidden + 1) if hidden % d == 0), key=lambda d: abs(d - heads))
