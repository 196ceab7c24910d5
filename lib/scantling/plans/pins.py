"""Pinned fields of a plan against the laws of plans, before any search: the field, the law it
breaks and the nearest legal value."""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import DesignError
from ..catalogue.words import SHARDINGS
from .enumerate import divisors
from .laws import LAWS

_DEGREES = ("tp", "pp", "cp", "dp")


def check_pins(pins: dict, model, phase, cluster, at: str = "plan") -> None:
    """Raise a DesignError for the first pin that no plan can hold, alone or with the other pins.

    A law is tried as soon as every field that it needs is pinned; the nearest value is the one
    closest to the pin that keeps all laws which the
    pin breaks. What depends on fields that are still open is left to the search.
    """
    _devices(pins, cluster.devices, at)
    _needs(pins, model, at)
    _batch(pins, phase.global_batch, at)
    _laws(pins, model, phase, cluster, at)


def _devices(pins, devices, at):
    ways = {k: pins[k] for k in _DEGREES if k in pins}
    product = math.prod(ways.values())
    if product > devices:
        name = max(ways, key=ways.get)
        rest = product // ways[name]
        raise DesignError(
            f"{at}.{name}",
            ways[name],
            f"{' x '.join(ways)} of at most cluster.devices {devices:,}",
            max(1, devices // rest),
            problem=f"makes {' x '.join(ways)} = {product:,} devices, more than there are",
        )


def _needs(pins, model, at):
    """Pins that another field has to allow."""
    for name in ("ep", "etp"):
        if pins.get(name, 1) > 1 and not model.is_moe:
            raise DesignError(
                f"{at}.{name}",
                pins[name],
                "1: the model has no experts",
                1,
                problem="needs a mixture of experts",
            )
    if "shard_group" in pins and "sharding" not in pins:
        raise DesignError(
            f"{at}.shard_group",
            pins["shard_group"],
            "sharding: hsdp beside it",
            problem="is given without sharding",
        )
    if pins.get("sp") and pins.get("tp") == 1:
        raise DesignError(
            f"{at}.sp",
            True,
            "false: sequence parallelism splits over tp, which is 1",
            "false",
            problem="needs tp above 1",
        )
    some = pins.get("recompute_layers", 0)
    if some and pins.get("recompute") == "none":
        raise DesignError(
            f"{at}.recompute_layers",
            some,
            "0, or recompute: full or selective",
            0,
            problem="contradicts recompute: none",
        )
    if some > model.layers:
        raise DesignError(
            f"{at}.recompute_layers",
            some,
            f"at most the {model.layers} layers",
            model.layers,
            problem="is more than there are",
        )
    if "layer_split" in pins and "pp" in pins:
        split = "even" if model.layers % pins["pp"] == 0 else "balanced"
        if pins["layer_split"] != split:
            raise DesignError(
                f"{at}.layer_split",
                pins["layer_split"],
                f"{split}: {model.layers} layers on pp {pins['pp']} stages",
                split,
                problem="cannot be kept",
            )


def _batch(pins, batch, at):
    given = [k for k in ("dp", "micro_batch", "grad_accum") if k in pins]
    product = math.prod(pins[k] for k in given)
    if not given or batch % product == 0 and (len(given) < 3 or product == batch):
        return
    name = max(given, key=lambda k: pins[k])
    rest = product // pins[name]
    what = " x ".join(given)
    if len(given) == 3 or batch % rest:
        fitting = [batch // rest] if batch % rest == 0 else []
    else:
        fitting = [d for d in divisors(batch).tolist() if batch % (d * rest) == 0]
    law = f"{what} {'equal to' if len(given) == 3 else 'that divides'} global_batch {batch:,}"
    nearest = min(fitting, key=lambda d: abs(d - pins[name])) if fitting else None
    raise DesignError(
        f"{at}.{name}",
        pins[name],
        law,
        nearest,
        problem=f"makes {what} = {product:,}"
        if len(given) > 1
        else f"does not divide global_batch {batch:,}",
    )


def _laws(pins, model, phase, cluster, at):
    known = _columns(pins)
    if not known:
        return
    broken = [rule for rule in LAWS if not _kept(rule, known, model, phase, cluster)]
    if not broken:
        return
    first = broken[0]
    field = (
        first.field
        if first.field in pins
        else max((f for f in _DEGREES if f in pins), key=pins.get)
    )
    value = pins[field]
    nearest = None
    if isinstance(value, int):
        tried = np.arange(1, min(2 * value, value + 4096) + 1)
        columns = {k: np.full(len(tried), v[0]) for k, v in known.items()} | {field: tried}
        good = np.ones(len(tried), bool)
        for rule in broken:
            good &= np.broadcast_to(rule.kept(columns, model, phase, cluster), good.shape)
        if good.any():
            nearest = int(tried[good][np.argmin(np.abs(tried[good] - value))])
    raise DesignError(
        f"{at}.{field}",
        value,
        f"{first.text} ({first.source})",
        nearest,
        problem="breaks a law of plans",
    )


def _columns(pins):
    columns = {
        k: np.array([v]) for k, v in pins.items() if isinstance(v, int) and not isinstance(v, bool)
    }
    if "sharding" in pins:
        columns["sharding"] = np.array([SHARDINGS.index(pins["sharding"])])
    return columns


def _kept(rule, columns, model, phase, cluster) -> bool:
    try:
        return bool(np.all(rule.kept(columns, model, phase, cluster)))
    except KeyError:  # a field that the law needs is not pinned
        return True
