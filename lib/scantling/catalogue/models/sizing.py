"""A plausible shape from a size alone: "175B MoE, 96 layers" becomes a `Model`, every derived field
listed with its rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.errors import DesignError
from ...base.records import Assumed
from .shape import GATED, Model, attention_kind, check_model, make_shape, parameters

SMALLEST, LARGEST = 2e7, 1e15  # parameters: below, a vocabulary alone is the model
TOLERANCE = 0.01
ASPECT = 128  # hidden / layers: GPT-3 175B 128, Llama 3.1 405B 130, Llama 3.1 8B 128
_HEAD, _KV_HEADS = 128, 8
MLA = dict(
    q_lora=1536,
    kv_lora=512,
    qk_nope=128,
    qk_rope=64,
    v_head_dim=128,
)
_SPARSE = ("experts", "top_k", "expert_ffn_hidden", "shared_ffn_hidden", "moe_layers")
_WIDTH_STEPS = (256, 128, 64, 32, 16, 8, 4, 2, 1)


def from_size(
    size: float,
    *,
    active: float | None = None,
    moe: bool | None = None,
    name: str | None = None,
    **given: Any,
) -> tuple[Model, tuple[Assumed, ...]]:
    """A plausible `Model` of `size` parameters, and every derived field with the rule that chose
    it.

    `size` and `active` [parameters], `moe`; any field of `Model` may be given and is kept. Rules:
    gated MLP; vocabulary 128,256 untied, below 4B parameters 32,768 tied; hidden = 128 x layers
    when neither is given (GPT-3 and Llama 3.1 have 128 to 130), layers in steps of 16 (8 below 88,
    4 below 48) so that pipeline stages come out even; hidden a multiple of 1,024 (512, 128 for
    smaller ones) from the parameter equation; heads of 128 (64 below hidden 1,024); 8 key-value
    heads; the MLP width then takes what is left. MoE by size alone: 16 experts, top-2, every layer,
    the experts a token visits together as wide as a dense MLP (8/3 hidden). With `active`, the
    experts' width follows from size - active and a shared expert takes what the active count
    leaves; where 16 experts would be more than `active` allows, top-8 of as many as it takes. The
    total is within 1 % of `size`, the active count within 2 % of `active`. Real models of one size
    differ by a factor in depth and sparsity: give what is known. Raises DesignError where what is
    given contradicts the size.
    """
    known = {k: v for k, v in given.items() if v is not None}
    return _Sizing(
        float(size),
        active,
        moe,
        known,
    ).model(name)


class Derived:
    """Fields of a model: those given, and those derived with the rule that chose each."""

    def __init__(self, given: Mapping[str, Any]):
        self.fields: dict[str, Any] = dict(given)
        self.assumed: list[Assumed] = []

    def take(
        self,
        field: str,
        value: Any,
        why: str,
    ) -> Any:
        """The field as it is, or the derived value with its rule."""
        if field not in self.fields:
            self.fields[field] = value
            self.assumed.append(Assumed(f"model.{field}", value, why))
        return self.fields[field]


class _Sizing(Derived):
    """The derivation in progress: what was given, what has been derived."""

    def __init__(
        self,
        size: float,
        active: float | None,
        moe: bool | None,
        given: Mapping[str, Any],
    ):
        self.size, self.active, self.given = size, active, given
        self._check_given()
        sparse = [f for f in _SPARSE if given.get(f)]
        self._check_active()
        if moe is False and (sparse or self.active):
            field = sparse[0] if sparse else "active"
            raise DesignError(
                field,
                given.get(field, self.active),
                "leave it out, or moe: true",
                problem="contradicts moe: false",
            )
        self.moe = bool(moe or sparse or self.active)
        if not self.moe:  # written as 0: none
            self.given = {k: v for k, v in given.items() if k not in _SPARSE}
        elif given.get("moe_layers") == 0:
            raise DesignError("moe_layers", 0, "1 or more in a mixture of experts")
        super().__init__(self.given)

    def model(self, name: str | None) -> tuple[Model, tuple[Assumed, ...]]:
        if self.moe:
            self._experts()
        small = self.size < 4e9
        why = "32,768 below 4B parameters, 128,256 from there (Llama 3)"
        self.take("vocab", 32768 if small else 128256, why)
        self.take("tied_embeddings", small, "tied below 4B parameters")
        self.take("mlp", "swiglu", "gated, as most models since Llama")
        self._depth()
        self._width_of_stream()
        self._attention()
        self._width_of_mlp()
        self._hold()
        kind = f"{_short(self.size)}-A{_short(self.active)}" if self.active else _short(self.size)
        self.fields.setdefault("ffn_hidden", 0)
        fields = {
            **self.fields,
            "name": name or f"{kind} {'MoE' if self.moe else 'dense'}",
        }
        return check_model(
            Model(
                source="from its size",
                **fields,
            )
        ), tuple(self.assumed)

    def _check_given(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            sizes = f"{SMALLEST:.0e} to {LARGEST:.0e} parameters; a smaller model by its shape"
            raise DesignError("size", self.size, sizes)
        known = [f for f in Model.__dataclass_fields__ if f not in ("name", "source")]
        for field, value in self.given.items():
            if field not in known:
                raise DesignError(
                    field,
                    value,
                    known,
                    problem="is unknown",
                )

    def _check_active(self) -> None:
        if self.active is None:
            return
        self.active = float(self.active)
        if not 0 < self.active <= self.size:
            raise DesignError(
                "active",
                self.active,
                f"at most size {self.size:g}",
                problem=f"is not between 0 and size {self.size:g}",
            )
        if self.active == self.size:
            self.active = None

    def _experts(self) -> None:
        given, experts, top_k = self.given, 16, 2
        why = why_k = "a mixture of experts by size alone: 16 experts, top-2"
        if "experts" in given:
            experts = given["experts"]
            top_k, why_k = min(2, experts), "top-2 below 64 experts"
            if experts >= 64:
                top_k, why_k = 8, "top-8 from 64 experts"
        elif self.active:
            top_k, experts, why = self._experts_for_active(given.get("top_k"))
            why_k = why
        elif "top_k" in given:
            experts = max(16, 8 * given["top_k"])
        experts, top_k = self.take("experts", experts, why), self.take("top_k", top_k, why_k)
        if not 1 <= top_k <= experts:
            raise DesignError("top_k", top_k, f"1 to experts {experts}")
        if self.active and top_k == experts:
            raise DesignError(
                "active",
                self.active,
                f"the size, or more experts than top_k {top_k}",
                problem="is less than size though every expert is used",
            )

    def _experts_for_active(self, top_k: int | None) -> tuple[int, int, str]:
        # routed experts in use take at most three quarters of the active count, the rest is
        # attention and embedding
        ratio = (self.size - self.active) / (0.75 * self.active)
        if top_k is None and 2 * (1 + ratio) <= 16:
            return 2, 16, "a mixture of experts by size alone: 16 experts, top-2"
        k = top_k or 8
        experts = max(2 ** int(np.ceil(np.log2(k * (1 + ratio)))), 2 * k)
        why = f"top-{k} of as many experts as keep them within three quarters of the active count"
        return k, experts, why

    def _depth(self) -> None:
        if "layers" in self.given or "hidden" in self.given:
            return
        f = self.fields
        per_layer = 2.25 + 8 * (f["experts"] / f["top_k"] if self.moe else 1)
        layers = (self.size / (per_layer * ASPECT**2)) ** (1 / 3)
        step = next(step for least, step in _LAYER_STEPS if layers >= least)
        why = f"hidden / layers about {ASPECT}, in steps of {step}"
        self.take("layers", max(1, step * round(layers / step)), why)

    def _candidate(
        self,
        hidden: Any,
        layers: Any,
    ) -> dict[str, Any]:
        """Fields of a model of this hidden [n] and the usual proportions."""
        f, given = (
            {
                "attention": "gqa",
                **self.fields,
            },
            self.given,
        )
        f |= dict(
            hidden=hidden,
            layers=layers,
        )
        mla = f["attention"] == "mla"
        f["head_dim"] = given.get("head_dim", np.where(hidden < 1024, 64, _HEAD))
        many = np.maximum(hidden // (64 if mla else f["head_dim"]), 1)
        heads = f["heads"] = given.get("heads", many)
        usual = {
            "mha": heads,
            "mla": heads,
            "mqa": 1,
        }
        kv_heads = usual.get(f["attention"], np.minimum(_KV_HEADS, heads))
        f["kv_heads"] = given.get("kv_heads", kv_heads)
        if mla:
            f = {
                **MLA,
                **f,
            }
        natural = 8 / 3 * hidden if f["mlp"] in GATED else 4.0 * hidden
        f["ffn_hidden"] = given.get("ffn_hidden", natural)
        if self.moe:
            f["moe_layers"] = given.get("moe_layers", layers)
            f["expert_ffn_hidden"] = given.get("expert_ffn_hidden", natural / f["top_k"])
        return f

    def _width_of_stream(self) -> None:
        f, given = self.fields, self.given
        if given.get("moe_layers", 0) > f.get("layers", np.inf):
            raise DesignError("moe_layers", given["moe_layers"], f"at most layers {f['layers']}")
        for field in ("layers", "hidden"):
            if given.get(field, 1) < 1:
                raise DesignError(field, given[field], "a whole number of at least 1")
        if "hidden" not in given:
            why = "from the parameter equation, a multiple of 1,024 (512 below 4,096, 128 below "
            self.take("hidden", self._solve_hidden(), why + "1,024)")
            return
        hidden = f["hidden"] = int(f["hidden"])
        if "layers" not in given:
            one, two = (parameters(make_shape(**self._candidate(hidden, n))).total for n in (1, 2))
            layers = max(1, round((self.size - one) / (two - one)) + 1)
            self.take("layers", layers, "from the parameter equation at this hidden")

    def _solve_hidden(self) -> int:
        steps = [np.arange(1, 9) * 128, np.arange(2, 9) * 512, np.arange(4, 1025) * 1024]
        layers, grid = self.fields["layers"], np.unique(np.concatenate(steps))
        f = self._candidate(grid, layers)
        if not self.active:
            total = parameters(make_shape(**f)).total
            return int(grid[np.argmin(np.abs(np.log(total / self.size)))])
        # the experts' width is free: hidden is bounded by what the active count leaves for
        # attention and embedding
        idle = (self.size - self.active) * f["top_k"] / (f["experts"] - f["top_k"])
        f |= dict(
            expert_ffn_hidden=0,
            shared_ffn_hidden=0,
        )
        fits = grid[parameters(make_shape(**f)).total <= self.active - idle]
        wanted = grid[np.argmin(np.abs(np.log(grid / (ASPECT * layers))))]
        return int(min(wanted, fits[-1])) if len(fits) else int(grid[0])

    def _attention(self) -> None:
        layers, hidden = self.fields["layers"], self.fields["hidden"]
        c, attention = self._candidate(hidden, layers), self.given.get("attention", "gqa")
        mla = attention == "mla"
        head_dim = _HEAD if mla else int(c["head_dim"])
        self.take("head_dim", head_dim, f"{_HEAD}, 64 below hidden 1,024")
        rule = "hidden / 64" if mla else "hidden / head_dim"
        heads, kv = self.take("heads", int(c["heads"]), rule), int(c["kv_heads"])
        while heads % kv:
            kv = kv // 2
        usual = f"{_KV_HEADS}, or the largest power of two that divides heads"
        self.take("kv_heads", kv, _KV_RULES.get(attention, usual))
        self.take("attention", attention_kind(heads, kv), "grouped queries")
        if mla:
            for field, value in MLA.items():
                self.take(field, value, "as DeepSeek-V3")
        if self.moe:
            self.take("moe_layers", layers, "every layer")

    def _width_of_mlp(self) -> None:
        f = self.fields
        if self.moe and f["moe_layers"] < f["layers"]:
            width = 256 * round(f["hidden"] * 8 / 3 / 256)
            self.take("ffn_hidden", width, "8/3 hidden in the dense layers")
        if not self.active:
            field, what = (
                ("expert_ffn_hidden", "one expert") if self.moe else ("ffn_hidden", "the MLP")
            )
            slope = self._per_width(field)
            width = (self.size - self._params(**{field: 0}).total) / slope
            width = max(0, _rounded(width, slope, self.size))
            self.take(field, width, "what the parameter equation leaves to " + what)
            return
        idle = f["moe_layers"] * (f["experts"] - f["top_k"])
        per_width = idle * self._per_width("expert_ffn_hidden") / (f["moe_layers"] * f["experts"])
        width = (self.size - self.active) / per_width if per_width else 0
        width = _rounded(width, per_width, self.size)
        self.take("expert_ffn_hidden", width, "from size - active: the experts a token leaves out")
        slope = self._per_width("shared_ffn_hidden")
        shared = max(0.0, (self.active - self._params(shared_ffn_hidden=0).active) / slope)
        shared = _rounded(shared, slope, self.active)
        why = "a shared expert takes what the active count leaves"
        self.take("shared_ffn_hidden", shared, why)

    def _params(self, **changes: Any):
        return parameters(
            make_shape(
                **{
                    "expert_ffn_hidden": 0,
                    "ffn_hidden": 0,
                    **self.fields,
                    **changes,
                }
            )
        )

    def _per_width(self, field: str) -> float:
        return self._params(**{field: 1}).total - self._params(**{field: 0}).total

    def _hold(self) -> None:
        p, f = self._params(), self.fields
        width = "expert_ffn_hidden" if self.moe else "ffn_hidden"
        sparse = ("experts", "top_k", "moe_layers") if self.moe else ()
        fixed = ("layers", "hidden", "heads", "vocab", width, *sparse)
        said = ", ".join(f"{k} {f[k]}" for k in fixed if k in self.given) or "these rules"
        if self.active and abs(p.active / self.active - 1) > 2 * TOLERANCE:
            used = f"experts {f['experts']}, top_k {f['top_k']}; these use {_short(p.active)}"
            raise DesignError(
                "active",
                self.active,
                "more experts, a smaller top_k, or another active count",
                problem=f"cannot be met with {used}",
            )
        if abs(p.total / self.size - 1) > TOLERANCE or f[width] < 1:
            about = f"about {_short(p.total)} with these"
            raise DesignError(
                "size",
                self.size,
                about,
                problem=f"cannot be met with {said}",
            )


# layers from which the next step goes, the step
_LAYER_STEPS = ((256, 32), (88, 16), (48, 8), (8, 4), (0, 1))
_KV_RULES = {
    "mha": "as many as heads",
    "mqa": "multi-query",
    "mla": "as many as heads",
}


def _rounded(
    width: float,
    per_width: float,
    size: float,
) -> int:
    """The width in the largest usual step that keeps the count within 0.3 % of `size`."""
    for step in _WIDTH_STEPS:
        rounded = step * round(width / step)
        if abs(rounded - width) * per_width <= 0.003 * size:
            return int(rounded)
    return round(width)


def _short(n: float) -> str:
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if n >= scale:
            return f"{n / scale:.4g}{unit}"
    return f"{n:.4g}"
