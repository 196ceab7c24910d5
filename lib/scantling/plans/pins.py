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


def check_pins(
    pins: dict,
    model,
    phase,
    cluster,
    at: str = "plan",
) -> None:
    """Raise a DesignError for the first pin that no plan can hold, alone or with the other pins.

    A law is tried as soon as every field that it needs is pinned; the nearest value is the one
    closest to the pin that keeps all laws which the
    pin breaks. What depends on fields that are still open is left to the search.
    """
    _devices(pins, cluster.devices, at)
    _needs(pins, model, at)
    _batch(pins, phase.global_batch, at)
    _laws(
        pins,
        model,
        phase,
        cluster,
        at,
    )


def _devices(
    pins,
    devices,
    at,
):
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


def _needs(
    pins,
    model,
    at,
):
    """Pins that another field has to allow."""

    def refuse(
        name,
        allowed,
        nearest,
        problem,
    ):
        raise DesignError(
            f"{at}.{name}",
            pins[name],
            allowed,
            nearest,
            problem=problem,
        )

    some, layers, pp = pins.get("recompute_layers", 0), model.layers, pins.get("pp")
    for name in ("ep", "etp"):
        if pins.get(name, 1) > 1 and not model.is_moe:
            refuse(
                name,
                "1: the model has no experts",
                1,
                "needs a mixture of experts",
            )
    if "shard_group" in pins and "sharding" not in pins:
        refuse(
            "shard_group",
            "sharding: hsdp beside it",
            None,
            "is given without sharding",
        )
    if pins.get("sp") and pins.get("tp") == 1:
        why = "false: sequence parallelism splits over tp, which is 1"
        refuse(
            "sp",
            why,
            "false",
            "needs tp above 1",
        )
    if some and pins.get("recompute") == "none":
        both = "0, or recompute: full or selective"
        refuse(
            "recompute_layers",
            both,
            0,
            "contradicts recompute: none",
        )
    if some > layers:
        most = f"at most the {layers} layers"
        refuse(
            "recompute_layers",
            most,
            layers,
            "is more than there are",
        )
    split = pp and ("balanced" if layers % pp else "even")
    if split and pins.get("layer_split", split) != split:
        stages = f"{split}: {layers} layers on pp {pp} stages"
        refuse(
            "layer_split",
            stages,
            split,
            "cannot be kept",
        )


def _batch(
    pins,
    batch,
    at,
):
    given = [k for k in ("dp", "micro_batch", "grad_accum") if k in pins]
    product = math.prod(pins[k] for k in given)
    if not given or batch % product == 0 and (len(given) < 3 or product == batch):
        return
    name = max(given, key=pins.get)
    rest, all_three, what = product // pins[name], len(given) == 3, " x ".join(given)
    fitting = []
    if batch % rest == 0:
        fitting = [batch // rest] if all_three else divisors(batch // rest).tolist()
    raise DesignError(
        f"{at}.{name}",
        pins[name],
        f"{what} {'equal to' if all_three else 'that divides'} global_batch {batch:,}",
        min(
            fitting,
            key=lambda d: abs(d - pins[name]),
            default=None,
        ),
        problem=f"makes {what} = {product:,}"
        if len(given) > 1
        else f"does not divide global_batch {batch:,}",
    )


def _laws(
    pins,
    model,
    phase,
    cluster,
    at,
):
    known = _columns(pins)
    if not known:
        return
    broken = [
        rule
        for rule in LAWS
        if not _kept(
            rule,
            known,
            model,
            phase,
            cluster,
        )
    ]
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
            good &= np.broadcast_to(
                rule.kept(
                    columns,
                    model,
                    phase,
                    cluster,
                ),
                good.shape,
            )
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


def _kept(
    rule,
    columns,
    model,
    phase,
    cluster,
) -> bool:
    try:
        return bool(
            np.all(
                rule.kept(
                    columns,
                    model,
                    phase,
                    cluster,
                )
            )
        )
    except KeyError:  # a field that the law needs is not pinned
        return True
