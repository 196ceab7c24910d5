"""What the dimensions of a model have to be: whole numbers, parts that go into wholes, the fields
that its blocks ask for."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from ...base.errors import DesignError, Rule, refuse
from ..words import ATTENTIONS, GATES, MLPS
from .pattern_words import ATTENDING, WORDS
from .patterns import MOST_LAYERS, counts_of, layers_of
from .shape import Model, mixers_of

CHOICES = {
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
_COUNTS = (
    *(f.name for f in fields(Model) if type(f.default) is int and f.name != "norms_per_layer"),
    "ffn_hidden",
)


class Part(NamedTuple):
    """A dimension that is part of another: has to divide it, or is no more than it."""

    field: str
    whole: str
    divides: bool


PARTS = (
    Part("kv_heads", "heads", divides=True),
    Part("top_k", "experts", divides=False),
    Part("moe_layers", "layers", divides=False),
    Part("windowed_layers", "layers", divides=False),
    Part("groups", "ssm_heads", divides=True),
    Part("lin_k_heads", "lin_v_heads", divides=True),
)


def check_fields(values: Mapping[str, Any]) -> None:
    """Refuses fields that `Model` does not have."""
    known = sorted(f.name for f in fields(Model))
    for field, value in values.items():
        if field not in known:
            raise DesignError(field, value, known, problem="is unknown")


def check_model(model: Model, read_as: Mapping[str, str] | None = None) -> Model:
    """The same model, or one DesignError naming the dimension that cannot be, by the name in
    `read_as` where it has one."""
    names = read_as or {}
    refuse(_rules(model, names), vars(model), names)
    mixers_of(model.mixers, model.hidden, model.layers, model.windowed_layers)
    return model


def rules_of_part(
    part: Part, values: Mapping[str, Any], names: Mapping[str, str], besides: str = ""
) -> Iterator[Rule]:
    """The rule of a part of a whole, where the values have both; `besides`: what else would do."""
    value = values.get(part.field)
    whole = values.get(part.whole)
    if not value or whole is None:
        return
    stated = f"{names.get(part.whole, part.whole)} {whole:g}"
    if not part.divides:
        problem = f"is more than {stated}"
        yield Rule(part.field, value <= whole, f"at most {stated}", problem)
    elif whole % value:
        divisors = (d for d in range(1, min(whole, 10**5) + 1) if whole % d == 0)
        nearest = min(divisors, key=lambda d: abs(d - value))
        allowed = f"a divisor of {stated}{besides}"
        yield Rule(part.field, False, allowed, f"does not divide {stated}", nearest)


def rules_of_parts(values: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules of all PARTS."""
    for part in PARTS:
        yield from rules_of_part(part, values, names)


def _rules(m: Model, names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules of a model, in turn."""
    values = vars(m)
    counts = counts_of(m.pattern)
    for field, choices in CHOICES.items():
        yield Rule(field, values[field] in choices, choices)
    yield Rule("layers", m.layers <= MOST_LAYERS, f"at most {MOST_LAYERS:,}")
    experts = f"{names.get('experts', 'experts')} {m.experts}"
    yield Rule(
        "moe_layers",
        bool(m.experts) == bool(m.moe_layers),
        "as many as there are layers with experts",
        f"does not go with {experts}",
    )
    for block in counts:
        absent = [f for f in WORDS[block].needs if values[f] == 0] if block in WORDS else []
        if len(absent) > 1:
            allowed = f"at least 1; {block} asks for {', '.join(absent)}"
            yield Rule(absent[0], False, allowed)
    for field, purpose in _needed(m, counts):
        allowed = f"a whole number of at least 1 {purpose}".strip()
        yield Rule(field, values[field] >= 1, allowed, "", 1)
    for field in _COUNTS:
        yield Rule(field, values[field] >= 0, "a whole number of at least 0")
    yield from rules_of_parts(values, names)
    yield Rule(
        "window",
        bool(counts) or bool(m.window) == bool(m.windowed_layers),
        f"a width where windowed_layers ({m.windowed_layers}) says how many",
    )
    if counts:
        layers, moe = counts["layers"], counts.get("moe", 0)
        yield Rule("layers", m.layers == layers, f"{layers}, as the pattern has them")
        yield Rule("moe_layers", m.moe_layers == moe, f"{moe}, as the pattern has them")
    try:
        layers_of(m.mtp_pattern)
    except DesignError as e:
        e.field = "model.mtp_pattern"
        raise


def _needed(m: Model, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The fields that a model has to have, each with what for."""
    for name in counts:
        if name in WORDS:
            yield from ((field, f"for {name}") for field in WORDS[name].needs)
    if m.experts > 0:
        yield from ((field, "in a mixture of experts") for field in _OF_MOE)
    if m.attention == "mla":
        yield from ((field, "in multi-head latent attention") for field in _LATENT)
    yield from ((field, "") for field in _SIZES)
    if not counts or ATTENDING & counts.keys():
        yield from ((field, "") for field in _HEADS)
    dense = m.dense_layers
    if counts:
        dense = counts.get("mlp", 0) + counts.get("beside", 0)
    if dense > 0:
        yield "ffn_hidden", f"in the {dense} dense layers"
