"""A plausible shape from a size alone: "175B MoE, 96 layers" becomes a `Model`, every derived field
listed with its rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import DesignError
from ...base.records import Assumed
from .shape import GATED, Model, check_model, make_shape, parameters

SMALLEST, LARGEST = 2e7, 1e15  # parameters: below, a vocabulary alone is the model
TOLERANCE = 0.01
ASPECT = 128  # hidden / layers: GPT-3 175B 128, Llama 3.1 405B 130, Llama 3.1 8B 128
_HEAD, _KV_HEADS = 128, 8
_MLA = dict(q_lora=1536, kv_lora=512, qk_nope=128, qk_rope=64, v_head_dim=128)
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
    gated MLP; vocabulary
    128,256 untied, below 4B parameters 32,768 tied; hidden = 128 x layers when neither is given
    (GPT-3 and Llama 3.1
    have 128 to 130), layers in steps of 16 (8 below 88, 4 below 48) so that pipeline stages come
    out even; hidden a multiple of 1,024 (512, 128 for smaller ones) from
    the parameter equation; heads of 128 (64 below hidden 1,024); 8 key-value heads; the MLP width
    then takes what
    is left. MoE by size alone: 16 experts, top-2, every layer, the experts a token visits together
    as wide as a dense
    MLP (8/3 hidden). With `active`, the experts' width follows from size - active and a shared
    expert takes what the
    active count leaves; where 16 experts would be more than `active` allows, top-8 of as many as it
    takes.
    The total is within 1 % of `size`, the active count within 2 % of `active`. Real models of one
    size differ by a factor
    in depth and sparsity: give what is known. Raises DesignError where what is given contradicts
    the size.
    """
    return _Sizing(
        float(size), active, moe, name, {k: v for k, v in given.items() if v is not None}
    ).model()


@dataclass
class _Sizing:
    """The derivation in progress: what was given, what has been derived."""

    size: float
    active: float | None
    moe: bool | None
    name: str | None
    given: dict[str, Any]

    def model(self) -> tuple[Model, tuple[Assumed, ...]]:
        self.assumed: list[Assumed] = []
        self.fields: dict[str, Any] = {}
        self._check()
        if self.moe:
            self._experts()
        self._fixed()
        self._depth()
        self._width_of_stream()
        self._width_of_mlp()
        kind = f"{_short(self.size)}-A{_short(self.active)}" if self.active else _short(self.size)
        model = Model(
            name=self.name or f"{kind} {'MoE' if self.moe else 'dense'}",
            source="from its size",
            **self.fields,
        )
        check_model(model)
        return model, tuple(self.assumed)

    def _check(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            raise DesignError(
                "size",
                self.size,
                f"{SMALLEST:.0e} to {LARGEST:.0e} parameters; a smaller model by its shape",
            )
        known = Model.__dataclass_fields__
        for field in self.given:
            if field not in known:
                raise DesignError(
                    field,
                    self.given[field],
                    [f for f in known if f not in ("name", "source")],
                    problem="is unknown",
                )
        sparse = [f for f in _SPARSE if self.given.get(f)]
        if self.active is not None:
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
        if self.moe is False and (sparse or self.active):
            field = sparse[0] if sparse else "active"
            raise DesignError(
                field,
                self.given.get(field, self.active),
                "leave it out, or moe: true",
                problem="contradicts moe: false",
            )
        self.moe = bool(self.moe or sparse or self.active)
        if not self.moe:
            for field in _SPARSE:
                self.given.pop(field, None)  # written as 0: none
        elif self.given.get("moe_layers") == 0:
            raise DesignError("moe_layers", 0, "1 or more in a mixture of experts")

    def take(self, field: str, value: Any, why: str) -> Any:
        """The given value, or the derived one with its rule."""
        if field in self.given:
            self.fields[field] = self.given[field]
        else:
            self.fields[field] = value
            self.assumed.append(Assumed(f"model.{field}", value, why))
        return self.fields[field]

    def _experts(self) -> None:
        given, experts, top_k = self.given, 16, 2
        why_k = "top-2"
        if "experts" in given:
            experts = given["experts"]
            top_k, why_k = (
                (8, "top-8 from 64 experts")
                if experts >= 64
                else (min(2, experts), "top-2 below 64 experts")
            )
        elif "top_k" in given:
            experts = max(16, 8 * given["top_k"])
        why = "a mixture of experts by size alone: 16 experts, top-2"
        if self.active and "experts" not in given:
            top_k, experts, why = self._experts_for_active(given.get("top_k"))
        self.take("experts", experts, why)
        self.take("top_k", top_k, why_k if "experts" in given else why)
        if not 1 <= self.fields["top_k"] <= self.fields["experts"]:
            raise DesignError(
                "top_k", self.fields["top_k"], f"1 to experts {self.fields['experts']}"
            )
        if self.active and self.fields["top_k"] == self.fields["experts"]:
            raise DesignError(
                "active",
                self.active,
                f"the size, or more experts than top_k {self.fields['top_k']}",
                problem="is less than size though every expert is used",
            )

    def _experts_for_active(self, top_k: int | None) -> tuple[int, int, str]:
        # routed experts in use take at most three quarters of the active count, the rest is
        # attention and embedding
        ratio = (self.size - self.active) / (0.75 * self.active)
        if top_k is None and 2 * (1 + ratio) <= 16:
            return 2, 16, "a mixture of experts by size alone: 16 experts, top-2"
        k = top_k or 8
        experts = 2 ** int(np.ceil(np.log2(k * (1 + ratio))))
        return (
            k,
            max(experts, 2 * k),
            f"top-{k} of as many experts as keep them within three quarters of the active count",
        )

    def _fixed(self) -> None:
        small = self.size < 4e9
        if self.moe:
            self.fields["ffn_hidden"] = self.given.get("ffn_hidden", 0)
        self.take(
            "vocab",
            32768 if small else 128256,
            "32,768 below 4B parameters, 128,256 from there (Llama 3)",
        )
        self.take("tied_embeddings", small, "tied below 4B parameters")
        self.take("mlp", "swiglu", "gated, as most models since Llama")
        for field, value in self.given.items():
            if field not in (
                "attention",
                "heads",
                "kv_heads",
                "head_dim",
                "hidden",
                "layers",
                "ffn_hidden",
            ):
                self.fields.setdefault(field, value)

    def _depth(self) -> None:
        if "layers" in self.given or "hidden" in self.given:
            if "layers" in self.given:
                self.fields["layers"] = self.given["layers"]
            return
        per_layer = 2.25 + 8 * (self.fields["experts"] / self.fields["top_k"] if self.moe else 1)
        layers = (self.size / (per_layer * ASPECT**2)) ** (1 / 3)
        step = (
            32
            if layers >= 256
            else 16
            if layers >= 88
            else 8
            if layers >= 48
            else 4
            if layers >= 8
            else 1
        )
        self.take(
            "layers",
            max(1, step * round(layers / step)),
            f"hidden / layers about {ASPECT}, in steps of {step}",
        )

    def _candidate(self, hidden: Any, layers: Any) -> dict[str, Any]:
        """Fields of a model of this hidden [n] and the usual proportions."""
        f = dict(
            self.fields, hidden=hidden, layers=layers, attention=self.given.get("attention", "gqa")
        )
        f["head_dim"] = self.given.get("head_dim", np.where(hidden < 1024, 64, _HEAD))
        mla = f["attention"] == "mla"
        f["heads"] = self.given.get(
            "heads", np.maximum(hidden // (64 if mla else f["head_dim"]), 1)
        )
        f["kv_heads"] = self.given.get(
            "kv_heads",
            f["heads"]
            if mla or f["attention"] == "mha"
            else 1
            if f["attention"] == "mqa"
            else np.minimum(_KV_HEADS, f["heads"]),
        )
        if mla:
            f.update({k: self.given.get(k, v) for k, v in _MLA.items()})
        natural = 8 / 3 * hidden if f["mlp"] in GATED else 4.0 * hidden
        if self.moe:
            f["moe_layers"] = self.given.get("moe_layers", layers)
            f["expert_ffn_hidden"] = self.given.get("expert_ffn_hidden", natural / f["top_k"])
            f["ffn_hidden"] = self.given.get("ffn_hidden", natural)
        else:
            f["ffn_hidden"] = self.given.get("ffn_hidden", natural)
        return f

    def _width_of_stream(self) -> None:
        if self.given.get("moe_layers", 0) > self.fields.get("layers", np.inf):
            raise DesignError(
                "moe_layers", self.given["moe_layers"], f"at most layers {self.fields['layers']}"
            )
        if "hidden" in self.given:
            hidden = self.fields["hidden"] = int(self.given["hidden"])
            if "layers" not in self.given:
                one, two = (
                    parameters(make_shape(**_shapes(self._candidate(hidden, n)))).total
                    for n in (1, 2)
                )
                self.take(
                    "layers",
                    max(1, round((self.size - one) / (two - one)) + 1),
                    "from the parameter equation at this hidden",
                )
        else:
            self.take(
                "hidden",
                self._solve_hidden(),
                (
                    "from the parameter equation, a multiple of 1,024 (512 below 4,096, 128 "
                    "below 1,024)"
                ),
            )
        layers, hidden = self.fields["layers"], self.fields["hidden"]
        c = {
            k: (v.item() if isinstance(v, (np.ndarray, np.generic)) else v)
            for k, v in self._candidate(hidden, layers).items()
        }
        attention = self.given.get("attention", "gqa")
        self.take(
            "head_dim",
            int(c["head_dim"]) if attention != "mla" else 128,
            f"{_HEAD}, 64 below hidden 1,024",
        )
        self.take(
            "heads", int(c["heads"]), "hidden / head_dim" if attention != "mla" else "hidden / 64"
        )
        kv = int(c["kv_heads"])
        while self.fields["heads"] % kv:
            kv = kv // 2
        self.take(
            "kv_heads",
            kv,
            {"mha": "as many as heads", "mqa": "multi-query", "mla": "as many as heads"}.get(
                attention, f"{_KV_HEADS}, or the largest power of two that divides heads"
            ),
        )
        kinds = "mha" if kv == self.fields["heads"] else "mqa" if kv == 1 else "gqa"
        self.take("attention", kinds, "grouped queries")
        if attention == "mla":
            for field, value in _MLA.items():
                self.take(field, value, "as DeepSeek-V3")
        if self.moe:
            self.take("moe_layers", layers, "every layer")

    def _solve_hidden(self) -> int:
        layers = self.fields["layers"]
        grid = np.unique(
            np.concatenate(
                [np.arange(1, 9) * 128, np.arange(2, 9) * 512, np.arange(4, 1025) * 1024]
            )
        )
        f = self._candidate(grid, layers)
        if self.active:
            # the experts' width is free: hidden is bounded by what the active count leaves for
            # attention and embedding
            rest = self.active - (self.size - self.active) * f["top_k"] / (
                f["experts"] - f["top_k"]
            )
            bare = parameters(
                make_shape(**_shapes({**f, "expert_ffn_hidden": 0, "shared_ffn_hidden": 0}))
            ).total
            fits = grid[bare <= rest]
            wanted = grid[np.argmin(np.abs(np.log(grid / (ASPECT * layers))))]
            return int(min(wanted, fits[-1])) if len(fits) else int(grid[0])
        total = parameters(make_shape(**_shapes(f))).total
        return int(grid[np.argmin(np.abs(np.log(total / self.size)))])

    def _width_of_mlp(self) -> None:
        f = self.fields
        if self.moe and f["moe_layers"] < f["layers"]:
            self.take(
                "ffn_hidden",
                256 * round(f["hidden"] * 8 / 3 / 256),
                "8/3 hidden in the dense layers",
            )
        if self.active:
            per_width = (
                f["moe_layers"]
                * (f["experts"] - f["top_k"])
                * self._per_width("expert_ffn_hidden")
                / (f["moe_layers"] * f["experts"])
            )
            width = (self.size - self.active) / per_width if per_width else 0
            self.take(
                "expert_ffn_hidden",
                _rounded(width, per_width, self.size),
                "from size - active: the experts a token leaves out",
            )
            base = self._params(shared_ffn_hidden=0).active
            slope = self._per_width("shared_ffn_hidden")
            shared = max(0.0, (self.active - base) / slope)
            self.take(
                "shared_ffn_hidden",
                _rounded(shared, slope, self.active),
                "a shared expert takes what the active count leaves",
            )
        else:
            field = "expert_ffn_hidden" if self.moe else "ffn_hidden"
            slope = self._per_width(field)
            width = (self.size - self._params(**{field: 0}).total) / slope
            self.take(
                field,
                max(0, _rounded(width, slope, self.size)),
                "what the parameter equation leaves to "
                + ("one expert" if self.moe else "the MLP"),
            )
        self._hold()

    def _params(self, **changes: Any):
        return parameters(
            make_shape(
                **_shapes({"expert_ffn_hidden": 0, "ffn_hidden": 0, **self.fields, **changes})
            )
        )

    def _per_width(self, field: str) -> float:
        return self._params(**{field: 1}).total - self._params(**{field: 0}).total

    def _hold(self) -> None:
        p, f = self._params(), self.fields
        widths = ["expert_ffn_hidden"] if self.moe else ["ffn_hidden"]
        fixed = [
            "layers",
            "hidden",
            "heads",
            "vocab",
            *widths,
            *(["experts", "top_k", "moe_layers"] if self.moe else []),
        ]
        said = ", ".join(f"{k} {f[k]}" for k in fixed if k in self.given) or "these rules"
        if self.active and abs(p.active / self.active - 1) > 2 * TOLERANCE:
            raise DesignError(
                "active",
                self.active,
                "more experts, a smaller top_k, or another active count",
                problem=(
                    f"cannot be met with experts {f['experts']}, top_k {f['top_k']}; these "
                    f"use {_short(p.active)}"
                ),
            )
        if abs(p.total / self.size - 1) > TOLERANCE or f[widths[0]] < 1:
            raise DesignError(
                "size",
                self.size,
                f"about {_short(p.total)} with these",
                problem=f"cannot be met with {said}",
            )


def _rounded(width: float, per_width: float, size: float) -> int:
    """The width in the largest usual step that keeps the count within 0.3 % of `size`."""
    for step in _WIDTH_STEPS:
        rounded = step * round(width / step)
        if abs(rounded - width) * per_width <= 0.003 * size:
            return int(rounded)
    return round(width)


def _shapes(fields: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if k not in ("seq_len", "name")}


def _short(n: float) -> str:
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if n >= scale:
            return f"{n / scale:.4g}{unit}"
    return f"{n:.4g}"
