"""The fields of a plan that a design pins."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

Degree = Literal["tp", "cp", "pp", "vpp", "dp", "ep", "etp"]
Number = Degree | Literal["micro_batch", "grad_accum"]


class Pins(TypedDict, total=False):
    """Field of the plan -> the value that it is pinned to (`design.schema.PlanSpec`); what is not
    there is searched."""

    tp: int
    cp: int
    pp: int
    vpp: int
    dp: int
    ep: int
    etp: int
    sp: bool
    sharding: str
    shard_group: int  # ranks
    schedule: str
    micro_batch: int  # sequences
    grad_accum: int  # micro-batches of a step
    recompute: str
    recompute_modules: list[str]
    recompute_layers: int  # of a stage
    layer_split: str
    layout: list[list[int]]
    cp_type: str
    offload: str
    precision: str


def pins_from(fields: Mapping[str, Any]) -> Pins:
    """Pins by name, of values that the section of the design has checked. Raises KeyError for a
    name that is no field of a plan."""
    unknown = fields.keys() - Pins.__annotations__.keys()
    if unknown:
        raise KeyError(f"no field of a plan: {', '.join(sorted(unknown))}")
    return cast(Pins, dict(fields))


def pin(pins: Pins, field: str) -> Any:
    """The pin of a field by name; None where it is open."""
    values: Mapping[str, Any] = {**pins}
    return values.get(field)
