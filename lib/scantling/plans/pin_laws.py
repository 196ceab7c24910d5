"""Pinned fields of a plan against the laws of plans, before any search: the field, the law it
breaks and the nearest legal value."""

from math import prod
from typing import NoReturn

import numpy as np

from ..base.columns import Array
from ..base.errors import DesignError
from ..catalogue.models.shape import Model
from ..catalogue.words import SHARDINGS, Recompute, RecomputeModule
from ..design.cluster import Cluster
from ..design.pins import Degree, Number, Pins, pin
from ..design.resolved import Phase
from ..physics.recompute import bits_of
from .enumerate import divisors
from .laws import LAWS, Law, Setting, all_hold, setting_of
from .plan_names import CODED
from .stack_laws import Run, laws_of_stack

_DEGREES: tuple[Degree, ...] = ("tp", "pp", "cp", "dp")
_BATCH: tuple[Number, ...] = ("dp", "micro_batch", "grad_accum")


def check_pins(
    pins: Pins, model: Model, phase: Phase, cluster: Cluster, stack: str | None = None
) -> None:
    """Raise a DesignError for the first pin that no plan can hold, alone or with the other pins, or
    none of the named stack.

    A law is tried as soon as every field that it needs is pinned; the nearest value is the one
    closest to the pin that keeps all laws which the pin breaks. What depends on fields that are
    still open is left to the search.
    """
    _check_devices(pins, cluster.devices)
    _check_experts(pins, model)
    _check_splits(pins)
    _check_recompute(pins, model)
    _check_layout(pins, model)
    _check_batch(pins, phase.global_batch)
    _check_laws(pins, setting_of(model, phase, cluster))
    _check_stack(pins, Run(model, phase, cluster), stack)


def _refuse(pins: Pins, field: str, allowed: str, nearest: object, problem: str) -> NoReturn:
    raise DesignError(f"plan.{field}", pin(pins, field), allowed, nearest, problem=problem)


def _check_devices(pins: Pins, devices: int) -> None:
    """The pinned degrees need no more devices than there are."""
    ways = {field: pins[field] for field in _DEGREES if field in pins}
    product, names = prod(ways.values()), " x ".join(ways)
    if product > devices:
        field, value = max(ways.items(), key=lambda way: way[1])
        _refuse(
            pins,
            field,
            f"{names} of at most cluster.devices {devices:,}",
            max(1, devices * value // product),
            f"makes {names} = {product:,} devices, more than there are",
        )


def _check_experts(pins: Pins, model: Model) -> None:
    """Only a mixture of experts has experts to spread or to split."""
    experts: tuple[Degree, ...] = ("ep", "etp")
    for field in experts:
        if pins.get(field, 1) > 1 and not model.is_moe:
            allowed = "1: the model has no experts"
            _refuse(pins, field, allowed, 1, "needs a mixture of experts")


def _check_splits(pins: Pins) -> None:
    """What splits the ranks of another field needs that field."""
    if "shard_group" in pins and "sharding" not in pins:
        _refuse(pins, "shard_group", "sharding: hsdp beside it", None, "is given without sharding")
    if pins.get("sp") and pins.get("tp") == 1:
        allowed = "false: sequence parallelism splits over tp, which is 1"
        _refuse(pins, "sp", allowed, "false", "needs tp above 1")


def _check_recompute(pins: Pins, model: Model) -> None:
    """Layers and modules that are computed again are there, and the kind of recompute has them."""
    kind = pins.get("recompute")
    layers = pins.get("recompute_layers", 0)
    if layers and kind == Recompute.NONE:
        allowed = "0, or recompute: full or selective"
        _refuse(pins, "recompute_layers", allowed, 0, "contradicts recompute: none")
    if layers > model.layers:
        allowed = f"at most the {model.layers} layers"
        _refuse(pins, "recompute_layers", allowed, model.layers, "is more than there are")
    modules = pins.get("recompute_modules") or []
    whole = RecomputeModule.LAYERS in modules
    needed = Recompute.FULL if whole else Recompute.SELECTIVE
    if whole and len(modules) > 1:
        _refuse(
            pins,
            "recompute_modules",
            "layers alone, or modules of a layer",
            "[layers]",
            "names whole layers and parts of them",
        )
    if modules and kind != needed:
        _refuse(
            pins,
            "recompute_modules",
            f"recompute: {needed} beside it",
            None,
            f"contradicts recompute: {kind}",
        )
    if RecomputeModule.MLA_UP_PROJ in modules and model.attention != "mla":
        _refuse(
            pins,
            "recompute_modules",
            "core_attn, norm, mlp_act, moe or layers: the model has no latent attention",
            "[core_attn]",
            "names projections that are not there",
        )
    if RecomputeModule.MOE in modules and not model.is_moe:
        _refuse(
            pins,
            "recompute_modules",
            "core_attn, norm, mlp_act or layers: the model has no experts",
            "[mlp_act]",
            "names experts that are not there",
        )


def _check_layout(pins: Pins, model: Model) -> None:
    """Runs of layers end at the last layer, are as many as the stages have parts, and hold a layer
    each where the layers differ."""
    if "layout" not in pins:
        return
    layers = model.layers
    runs = pins["layout"] or [[0, layers]]
    first, last = runs[-1]
    if last != layers:
        _refuse(
            pins,
            "layout",
            f"runs that end at {layers}, the number of layers",
            [*runs[:-1], [min(first, layers - 1), layers]],
            f"ends at {last}",
        )
    parts = pins.get("pp", 1) * pins.get("vpp", 1)
    if len(runs) != parts:
        _refuse(pins, "layout", f"pp x vpp = {parts} runs", None, f"has {len(runs)}")
    if model.pattern and any(start == end for start, end in runs):
        allowed = "a layer of the pattern in every run"
        _refuse(pins, "layout", allowed, None, "leaves a run empty")


def _check_batch(pins: Pins, batch: int) -> None:
    """The pinned parts of the global batch divide it, or make it where all three are pinned."""
    fields = [field for field in _BATCH if field in pins]
    product = prod(pins[field] for field in fields)
    complete = len(fields) == len(_BATCH)
    divides = batch % product == 0
    if not fields or product == batch or (divides and not complete):
        return
    sizes = {field: pins[field] for field in fields}
    field = max(sizes, key=lambda name: sizes[name])
    names = " x ".join(fields)
    allowed = "equal to" if complete else "that divides"
    problem = f"does not divide global_batch {batch:,}"
    if len(fields) > 1:
        problem = f"makes {names} = {product:,}"
    _refuse(
        pins,
        field,
        f"{names} {allowed} global_batch {batch:,}",
        _nearest_part(pins[field], batch, product // pins[field], complete),
        problem,
    )


def _nearest_part(value: int, batch: int, others: int, complete: bool) -> int | None:
    """The part of a batch nearest to a pinned one, whose others make a product; None where those
    alone do not divide it."""
    left, over = divmod(batch, others)
    if over:
        return None
    if complete:
        return left
    parts: list[int] = divisors(left).tolist()
    return min(parts, key=lambda part: abs(part - value))


def _check_laws(pins: Pins, setting: Setting) -> None:
    """No law is broken whose columns are all pinned."""
    columns = _columns(pins)
    broken = [
        law
        for law in LAWS
        if law.reads <= columns.keys() and not np.all(law.holds(columns, setting))
    ]
    if not broken:
        return
    first = broken[0]
    field = first.field
    if field not in pins:
        degrees = {degree: pins[degree] for degree in _DEGREES if degree in pins}
        field = max(degrees, key=lambda degree: degrees[degree])
    nearest = _nearest_legal(pins, field, broken, columns, setting)
    allowed = f"{first.text} ({first.source})"
    _refuse(pins, field, allowed, nearest, "breaks a law of plans")


def _check_stack(pins: Pins, run: Run, stack: str | None) -> None:
    """No law of the named stack's own code is broken whose columns are all pinned."""
    columns = {field: np.asarray(value) for field, value in _columns(pins).items()}
    for field, words in CODED.items():
        if pin(pins, field) is not None:
            columns[field] = np.asarray(words.index(pin(pins, field)))
    if "sp" in pins:
        columns["sp"] = np.asarray(int(pins["sp"]))
    if "recompute_modules" in pins:
        columns["modules"] = np.asarray(bits_of(pins["recompute_modules"]))
    for law in laws_of_stack(stack):
        stated = law.reads <= columns.keys() and not law.of_kit
        if stated and not np.all(law.holds(columns, run)):
            problem = f"is refused by {stack}"
            _refuse(pins, law.field, f"{law.text} ({law.source})", None, problem)


def _nearest_legal(
    pins: Pins, field: str, broken: list[Law], columns: dict[str, Array], setting: Setting
) -> int | None:
    """The value of a field nearest to its pin that keeps these laws; None where none does."""
    value = pin(pins, field)
    if not isinstance(value, int):
        return None
    tried = np.arange(1, min(2 * value, value + 4096) + 1)
    good = tried[np.broadcast_to(all_hold(broken, columns | {field: tried}, setting), tried.shape)]
    legal: list[int] = good.tolist()
    return min(legal, key=lambda x: abs(x - value), default=None)


def _columns(pins: Pins) -> dict[str, Array]:
    """The pins that laws read, as columns of one plan."""
    columns = {
        field: np.asarray(value)
        for field, value in pins.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    if "sharding" in pins:
        columns["sharding"] = np.asarray(SHARDINGS.index(pins["sharding"]))
    return columns
