"""A plausible shape from a size alone: "175B MoE, 96 layers" becomes a `Model`, every derived field
listed with its rule."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.errors import DesignError
from ...base.records import Assumed, Derived
from .dimension_checks import check_fields, check_model
from .dimensions import GATED
from .shape import Model, Params, attention_kind, make_shape, parameters

Made = tuple[Model, tuple[Assumed, ...]]  # a model, and what was assumed of it
SMALLEST = 2e7  # parameters: below, a vocabulary alone is the model
LARGEST = 1e15
TOLERANCE = 0.01
ASPECT = 128  # hidden / layers: GPT-3 175B 128, Llama 3.1 405B 130, Llama 3.1 8B 128
_HEAD = 128
_KV_HEADS = 8
MLA = {"q_lora": 1536, "kv_lora": 512, "qk_nope": 128, "qk_rope": 64, "v_head_dim": 128}
_SPARSE = ("experts", "top_k", "expert_ffn_hidden", "shared_ffn_hidden", "moe_layers")
_WIDTH_STEPS = (256, 128, 64, 32, 16, 8, 4, 2, 1)


def from_size(
    size: float,
    *,
    active: float | None = None,
    moe: bool | None = None,
    name: str | None = None,
    **fields: Any,
) -> Made:
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
    stated = {k: v for k, v in fields.items() if v is not None}
    return _Sizing(float(size), active, moe, stated).model(name)


class _Sizing(Derived):
    """The derivation in progress: what was given, what has been derived."""

    def __init__(
        self, size: float, active: float | None, moe: bool | None, fields: dict[str, Any]
    ) -> None:
        if not SMALLEST <= size <= LARGEST:
            raise DesignError(
                "size",
                size,
                f"{SMALLEST:.0e} to {LARGEST:.0e} parameters; a smaller model by its shape",
            )
        check_fields(fields)
        if active is not None and not 0 < active <= size:
            raise DesignError(
                "active",
                float(active),
                f"at most size {size:g}",
                problem=f"is not between 0 and size {size:g}",
            )
        self.size = size
        self.active = active if active != size else None
        sparse = [f for f in _SPARSE if fields.get(f)]
        if moe is False and (sparse or self.active):
            field = [*sparse, "active"][0]
            raise DesignError(
                field,
                fields.get(field, self.active),
                "leave it out, or moe: true",
                problem="contradicts moe: false",
            )
        self.moe = bool(moe or sparse or self.active)
        if not self.moe:  # written as 0: none
            fields = {k: v for k, v in fields.items() if k not in _SPARSE}
        elif fields.get("moe_layers") == 0:
            raise DesignError("moe_layers", 0, "1 or more in a mixture of experts")
        super().__init__(fields, "model")

    def model(self, name: str | None) -> Made:
        if self.moe:
            self._experts()
        small = self.size < 4e9
        self.take(
            "vocab",
            32768 if small else 128256,
            "32,768 below 4B parameters, 128,256 from there (Llama 3)",
        )
        self.take("tied_embeddings", small, "tied below 4B parameters")
        self.take("mlp", "swiglu", "gated, as most models since Llama")
        self._stream()
        self._attention()
        self._width_of_mlp()
        self._hold()
        kind = f"{_short(self.size)}-A{_short(self.active)}" if self.active else _short(self.size)
        fields = {
            "source": "from its size",
            "ffn_hidden": 0,
            **self.fields,
            "name": name or f"{kind} {'MoE' if self.moe else 'dense'}",
        }
        return check_model(Model(**fields)), tuple(self.assumed)

    def _experts(self) -> None:
        stated = self.fields
        experts = 16
        top_k = 2
        why = why_k = "a mixture of experts by size alone: 16 experts, top-2"
        if "experts" in stated:
            experts = stated["experts"]
            top_k = min(2, experts)
            why_k = "top-2 below 64 experts"
            if experts >= 64:
                top_k = 8
                why_k = "top-8 from 64 experts"
        elif self.active:
            # routed experts in use take at most three quarters of the active count, the rest is
            # attention and embedding
            copies = 1 + (self.size - self.active) / (0.75 * self.active)
            if "top_k" in stated or 2 * copies > 16:
                top_k = stated.get("top_k") or 8
                experts = max(2 ** int(np.ceil(np.log2(top_k * copies))), 2 * top_k)
                experts = min(experts, 8192)  # the largest power of two that a design may state
                why = f"top-{top_k} of as many experts as keep them within three quarters of the "
                why_k = why = why + "active count"
        elif "top_k" in stated:
            experts = max(16, 8 * stated["top_k"])
        experts = self.take("experts", experts, why)
        top_k = self.take("top_k", top_k, why_k)
        if not 1 <= top_k <= experts:
            raise DesignError("top_k", top_k, f"1 to experts {experts}")
        if self.active and top_k == experts:
            raise DesignError(
                "active",
                self.active,
                f"the size, or more experts than top_k {top_k}",
                problem="is less than size though every expert is used",
            )

    def _shape(self, **changes: Any) -> dict[str, Any]:
        """The fields so far with `changes`, the rest in the usual proportions in floating point (a
        count of parameters overflows 64 bits); hidden may be a column [n]."""
        f = {"attention": "gqa", **self.fields, **changes}
        hidden = f["hidden"] * 1.0
        mla = f["attention"] == "mla"
        head_dim = f.setdefault("head_dim", np.where(hidden < 1024, 64.0, _HEAD))
        heads = f.setdefault("heads", np.maximum(hidden // (64 if mla else head_dim), 1))
        usual = {"mha": heads, "mla": heads, "mqa": 1}
        f.setdefault("kv_heads", usual.get(f["attention"], np.minimum(_KV_HEADS, heads)))
        natural = hidden * (8 / 3 if f["mlp"] in GATED else 4.0)
        f.setdefault("ffn_hidden", natural)
        if self.moe:
            f.setdefault("moe_layers", f["layers"])
            f.setdefault("expert_ffn_hidden", natural / f["top_k"])
        return MLA | f if mla else f

    def _params(self, **changes: Any) -> Params:
        return parameters(make_shape(**self._shape(**changes)))

    def _solve(
        self,
        field: str,
        target: float,
        why: str,
        count: Callable[[Params], Any] = lambda p: p.total,
        steps: tuple[int, ...] = (1,),
    ) -> None:
        """Takes the value at which a count of parameters, linear in the field, meets the target: in
        the largest step that keeps the count within 0.3 %."""
        one, two = (count(self._params(**{field: n})) for n in (1, 2))
        exact = max(0.0, (target - one) / (two - one) + 1)
        values = [step * round(exact / step) for step in steps]
        near = [v for v in values if abs(v - exact) * (two - one) <= 0.003 * target]
        self.take(field, int((near or values[-1:])[0]), why)

    def _stream(self) -> None:
        f = self.fields
        for field in ("layers", "hidden"):
            if f.get(field, 1) < 1:
                raise DesignError(field, f[field], "a whole number of at least 1")
        if "hidden" in f and "layers" not in f:
            self._solve("layers", self.size, "from the parameter equation at this hidden")
            f["layers"] = max(1, f["layers"])
        elif "layers" not in f:
            per_layer = 2.25 + 8 * (f["experts"] / f["top_k"] if self.moe else 1)
            layers = (self.size / (per_layer * ASPECT**2)) ** (1 / 3)
            step = next(step for least, step in _LAYER_STEPS if layers >= least)
            why = f"hidden / layers about {ASPECT}, in steps of {step}"
            self.take("layers", max(1, step * round(layers / step)), why)
        if f.get("moe_layers", 0) > f["layers"]:
            raise DesignError("moe_layers", f["moe_layers"], f"at most layers {f['layers']}")
        if "hidden" not in f:
            why = "from the parameter equation, a multiple of 1,024 (512 below 4,096, 128 below "
            self.take("hidden", self._solve_hidden(), why + "1,024)")

    def _solve_hidden(self) -> int:
        # in floating point: a count of parameters in whole numbers wraps at 64 bits, or at 32
        steps = [
            np.arange(128.0, 1025, 128),
            np.arange(1024, 4097, 512),
            np.arange(4096, 1_048_577, 1024),
        ]
        f = self.fields
        grid = np.concatenate(steps)
        if not self.active:
            return int(grid[np.argmin(abs(np.log(self._params(hidden=grid).total / self.size)))])
        # the experts' width is free: hidden is bounded by what the active count leaves for
        # attention and embedding
        idle = (self.size - self.active) * f["top_k"] / (f["experts"] - f["top_k"])
        least = self._params(hidden=grid, expert_ffn_hidden=0, shared_ffn_hidden=0).total
        fits = grid[least <= self.active - idle]
        wanted = grid[np.argmin(abs(np.log(grid / (ASPECT * f["layers"]))))]
        return int(min(wanted, fits[-1])) if len(fits) else int(grid[0])

    def _attention(self) -> None:
        usual = self._shape()
        kind = self.fields.get("attention", "gqa")
        mla = kind == "mla"
        head_dim = _HEAD if mla else int(usual["head_dim"])
        self.take("head_dim", head_dim, f"{_HEAD}, 64 below hidden 1,024")
        heads = self.take(
            "heads", int(usual["heads"]), "hidden / 64" if mla else "hidden / head_dim"
        )
        kv = int(usual["kv_heads"])
        while heads % kv:
            kv //= 2
        self.take(
            "kv_heads",
            kv,
            _KV_RULES.get(kind, f"{_KV_HEADS}, or the largest power of two that divides heads"),
        )
        self.take("attention", attention_kind(heads, kv), "grouped queries")
        if mla:
            self.take_all(MLA, "as DeepSeek-V3")
        if self.moe:
            self.take("moe_layers", usual["moe_layers"], "every layer")

    def _width_of_mlp(self) -> None:
        f = self.fields
        active = self.active
        # a layer that shares its weights has an MLP of its own beside a mixture in every layer
        if self.moe and f["moe_layers"] < f["layers"] + f.get("memory_blocks", 0):
            self.take(
                "ffn_hidden",
                256 * round(f["hidden"] * 8 / 3 / 256),
                "8/3 hidden in the dense layers",
            )
        if active:
            why = "from size - active: the experts a token leaves out"
            self._solve(
                "expert_ffn_hidden",
                self.size,
                why,
                lambda p: p.total - p.active + active,
                _WIDTH_STEPS,
            )
            why = "a shared expert takes what the active count leaves"
            self._solve("shared_ffn_hidden", active, why, lambda p: p.active, _WIDTH_STEPS)
            return
        field, what = ("expert_ffn_hidden", "one expert") if self.moe else ("ffn_hidden", "the MLP")
        why = "what the parameter equation leaves to " + what
        self._solve(field, self.size, why, steps=_WIDTH_STEPS)

    def _hold(self) -> None:
        count = self._params()
        total, used = float(count.total), float(count.active)
        f = self.fields
        active = self.active
        width = "expert_ffn_hidden" if self.moe else "ffn_hidden"
        sparse = ("experts", "top_k", "moe_layers") if self.moe else ()
        fixed = ("layers", "hidden", "heads", "vocab", width, *sparse)
        said = ", ".join(f"{k} {f[k]}" for k in fixed if k in self.stated) or "these rules"
        if active and abs(used / active - 1) > 2 * TOLERANCE:
            these = f"experts {f['experts']}, top_k {f['top_k']}; these use {_short(used)}"
            raise DesignError(
                "active",
                active,
                "more experts, a smaller top_k, or another active count",
                problem=f"cannot be met with {these}",
            )
        if abs(total / self.size - 1) > TOLERANCE or f[width] < 1:
            raise DesignError(
                "size",
                self.size,
                f"about {_short(total)} with these",
                problem=f"cannot be met with {said}",
            )


# layers from which the next step goes, the step
_LAYER_STEPS = ((256, 32), (88, 16), (48, 8), (8, 4), (0, 1))
_KV_RULES = {"mha": "as many as heads", "mqa": "multi-query", "mla": "as many as heads"}


def _short(n: float) -> str:
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if n >= scale:
            return f"{n / scale:.4g}{unit}"
    return f"{n:.4g}"
