"""Pinned fields of a plan against the laws of plans, before any search: the field, the law it
breaks and the nearest legal value."""

from math import prod

import numpy as np

from ..base.errors import DesignError
from ..catalogue.words import SHARDINGS
from .enumerate import divisors
from .laws import LAWS

_DEGREES = ("tp", "pp", "cp", "dp")


def check_pins(pins: dict, model, phase, cluster) -> None:
    """Raise a DesignError for the first pin that no plan can hold, alone or with the other pins.

    A law is tried as soon as every field that it needs is pinned; the nearest value is the one
    closest to the pin that keeps all laws which the
    pin breaks. What depends on fields that are still open is left to the search.
    """
    _devices(pins, cluster.devices)
    _needs(pins, model)
    _batch(pins, phase.global_batch)
    _laws(pins, (model, phase, cluster))


def _refuse(pins, name, allowed, nearest, problem):
    raise DesignError(f"plan.{name}", pins[name], allowed, nearest, problem=problem)


def _devices(pins, devices):
    ways = {k: pins[k] for k in _DEGREES if k in pins}
    product, said = prod(ways.values()), " x ".join(ways)
    if product > devices:
        name = max(ways, key=ways.get)
        _refuse(
            pins,
            name,
            f"{said} of at most cluster.devices {devices:,}",
            max(1, devices * ways[name] // product),
            f"makes {said} = {product:,} devices, more than there are",
        )


def _needs(pins, model):
    """Pins that another field has to allow."""
    pin = pins.get
    layers = model.layers
    some = pin("recompute_layers", 0)
    modules, kind = pin("recompute_modules") or [], pin("recompute")
    runs = pin("layout") or [[0, layers]]
    stages = pin("pp", 1) * pin("vpp", 1)
    whole, latent = "layers" in modules, model.attention == "mla"
    dense = "1: the model has no experts", 1, "needs a mixture of experts"
    for name, wrong, *said in (
        ("ep", pin("ep", 1) > 1 and not model.is_moe, *dense),
        ("etp", pin("etp", 1) > 1 and not model.is_moe, *dense),
        (
            "shard_group",
            "shard_group" in pins and "sharding" not in pins,
            "sharding: hsdp beside it",
            None,
            "is given without sharding",
        ),
        (
            "sp",
            pin("sp") and pin("tp") == 1,
            "false: sequence parallelism splits over tp, which is 1",
            "false",
            "needs tp above 1",
        ),
        (
            "recompute_layers",
            some and pin("recompute") == "none",
            "0, or recompute: full or selective",
            0,
            "contradicts recompute: none",
        ),
        (
            "recompute_layers",
            some > layers,
            f"at most the {layers} layers",
            layers,
            "is more than there are",
        ),
        (
            "recompute_modules",
            whole and len(modules) > 1,
            "layers alone, or modules of a layer",
            "[layers]",
            "names whole layers and parts of them",
        ),
        (
            "recompute_modules",
            modules and kind != ("full" if whole else "selective"),
            f"recompute: {'full' if whole else 'selective'} beside it",
            None,
            f"contradicts recompute: {kind}",
        ),
        (
            "recompute_modules",
            "mla_up_proj" in modules and not latent,
            "core_attn, norm, mlp_act, moe or layers: the model has no latent attention",
            "[core_attn]",
            "names projections that are not there",
        ),
        (
            "recompute_modules",
            "moe" in modules and not model.is_moe,
            "core_attn, norm, mlp_act or layers: the model has no experts",
            "[mlp_act]",
            "names experts that are not there",
        ),
        (
            "layout",
            runs[-1][1] != layers,
            f"runs that end at {layers}, the number of layers",
            [*runs[:-1], [min(runs[-1][0], layers - 1), layers]],
            f"ends at {runs[-1][1]}",
        ),
        (
            "layout",
            "layout" in pins and len(runs) != stages,
            f"pp x vpp = {stages} runs",
            None,
            f"has {len(runs)}",
        ),
        (
            "layout",
            model.pattern and any(first == end for first, end in runs),
            "a layer of the pattern in every run",
            None,
            "leaves a run empty",
        ),
    ):
        if wrong:
            _refuse(pins, name, *said)


def _batch(pins, batch):
    given = [k for k in ("dp", "micro_batch", "grad_accum") if k in pins]
    product, whole = prod(pins[k] for k in given), len(given) == 3
    if not given or batch % product == 0 and (not whole or product == batch):
        return
    name = max(given, key=pins.get)
    left, over = divmod(batch, product // pins[name])
    what = " x ".join(given)
    _refuse(
        pins,
        name,
        f"{what} {'equal to' if whole else 'that divides'} global_batch {batch:,}",
        min(
            [] if over else [left] if whole else divisors(left).tolist(),
            key=lambda d: abs(d - pins[name]),
            default=None,
        ),
        f"makes {what} = {product:,}"
        if len(given) > 1
        else f"does not divide global_batch {batch:,}",
    )


def _laws(pins, where):
    known = _columns(pins)
    told = (law for law in LAWS if law.needs <= known.keys())
    broken = [law for law in told if not np.all(law.kept(*where, **known))]
    if not broken:
        return
    first = broken[0]
    field = first.field
    if field not in pins:
        field = max((f for f in _DEGREES if f in pins), key=pins.get)
    value, nearest = pins[field], None
    if isinstance(value, int):
        tried = np.arange(1, min(2 * value, value + 4096) + 1)
        good = np.ones(len(tried), bool)
        for law in broken:
            good &= law.kept(*where, **known | {field: tried})
        if good.any():
            nearest = min(tried[good].tolist(), key=lambda x: abs(x - value))
    _refuse(pins, field, f"{first.text} ({first.source})", nearest, "breaks a law of plans")


def _columns(pins):
    columns = {k: v for k, v in pins.items() if isinstance(v, int) and not isinstance(v, bool)}
    if "sharding" in pins:
        columns["sharding"] = SHARDINGS.index(pins["sharding"])
    return columns
