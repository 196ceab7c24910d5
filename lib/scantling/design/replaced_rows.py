"""Rows of the catalogue with figures that a design replaces: `{like: h100-sxm, hbm_gb: 96}`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from math import nan
from statistics import median
from typing import Any

from .. import catalogue
from ..base.errors import DesignError, closest, plain
from ..catalogue.hardware import Accelerator, Fabric
from ..catalogue.load import field_of, of_rows
from .checks import as_number

# figure of the file -> (field of the record, factor)
ACCELERATOR_OVERRIDES = {
    name: field_of(name)
    for name in (
        "hbm_gb",
        "hbm_usable_gb",
        "hbm_gbytes_per_s",
        "link_gbytes_per_s",
        "p2p_gbytes_per_s",
        "host_link_gbytes_per_s",
        "bf16_tflops",
        "fp16_tflops",
        "fp8_tflops",
        "fp4_tflops",
        "tf32_tflops",
        "fp32_tflops",
        "tdp_w",
        "scale_up_domain",
    )
}
FABRIC_OVERRIDES = {
    name: field_of(name)
    for name in (
        "device_gbytes_per_s",
        "port_gbits_per_s",
        "latency_us",
        "efficiency",
        "in_network_gain",
    )
}
# a changed figure -> the one that moves by the same ratio, unless it is given too
CARRIED = {
    "hbm_bytes": "hbm_usable_bytes",
    "link_bytes_per_s": "p2p_bytes_per_s",
    "port_bytes_per_s": "device_bytes_per_s",
}
REPLACES = 1e6  # a figure may be so many times its row's, or so small a part of it


def _replaced(path: str, value: Any, usual: float, whole: bool) -> float:
    """A figure in the place of a row's: within a million times of it, up and down."""
    low = usual / REPLACES
    high = usual * REPLACES
    allowed = f"from {low:.4g} to {high:.4g}: the catalogue has {usual:.4g}"
    try:
        number = as_number(value, allowed)
    except DesignError as error:
        raise error.at(path) from None
    if not low <= number <= high or whole and number % 1:
        raise DesignError(path, number, allowed)
    return int(number) if whole else float(number)


def _median(rows: Iterable[Accelerator | Fabric], field: str) -> float:
    """What the rows have that have this figure."""
    values = [vars(row)[field] for row in rows]
    return float(median(value for value in values if value > 0))


@of_rows
@cache
def _usual_accelerator(field: str) -> float:
    return _median(catalogue.accelerators().values(), field)


@of_rows
@cache
def _usual_fabric(field: str) -> float:
    return _median(catalogue.fabrics().values(), field)


def _changes(
    row: Accelerator | Fabric,
    spec: Mapping[str, Any],
    overrides: Mapping[str, tuple[str, float]],
    path: str,
    usual_of: Callable[[str], float],
) -> dict[str, Any]:
    """The fields of a row that the figures of `spec` change; `usual_of` a field: what stands in for
    a figure that the row has not."""
    figures = vars(row)
    changes: dict[str, Any] = {"name": plain(spec.get("name", f"{row.name}, changed"))}
    for key in (name for name in spec if name in overrides):
        field, factor = overrides[key]
        usual = figures[field] if figures[field] > 0 else usual_of(field)
        whole = key == "scale_up_domain"
        changes[field] = _replaced(f"{path}.{key}", spec[key], usual / factor, whole) * factor
    for field, carried in CARRIED.items():
        ratio = changes.get(field, nan) / figures.get(field, nan)
        if ratio > 0:
            changes.setdefault(carried, ratio * figures[carried])
    return changes


def _known_only(spec: Mapping[str, Any], names: tuple[str, ...], path: str) -> None:
    """Raises DesignError for a figure that may not be replaced."""
    for key in spec:
        if key not in names:
            nearest = closest(key, names)
            raise DesignError(
                f"{path}.{key}", problem="is not a field", allowed=names, nearest=nearest
            )


def resolve_accelerator(what: str | Mapping[str, Any]) -> Accelerator:
    """An Accelerator from a catalogue id, an alias, or `{like: id, hbm_gb: 96, …}`.

    Overrides are those of ACCELERATOR_OVERRIDES (decimal GB, GB/s one way, dense TFLOP/s). A
    changed `hbm_gb` moves the usable capacity by the same ratio unless `hbm_usable_gb` is given
    too, a changed link that of a pair: faster links make no mesh of what is none. Raises
    DesignError for an unknown id, name or value.
    """
    path = "cluster.accelerator"
    if isinstance(what, str):
        return catalogue.accelerator(what, path)
    _known_only(what, ("like", "name", *ACCELERATOR_OVERRIDES), path)
    row = catalogue.accelerator(what["like"], f"{path}.like")
    changes = _changes(row, what, ACCELERATOR_OVERRIDES, path, _usual_accelerator)
    if "scale_up_domain" in changes:
        changes["scale_up_domain_max"] = max(row.scale_up_domain_max, changes["scale_up_domain"])
    return replace(row, **changes)


def resolve_fabric(what: str | Mapping[str, Any]) -> Fabric:
    """A Fabric from a catalogue id, an alias, or `{like: id, latency_us: 3, …}` (names:
    FABRIC_OVERRIDES and in_network_reduction); a changed port moves the rate of a device by the
    same ratio."""
    path = "cluster.scale_out"
    if isinstance(what, str):
        return catalogue.fabric(what, path)
    flag = "in_network_reduction"
    _known_only(what, ("like", "name", flag, *FABRIC_OVERRIDES), path)
    row = catalogue.fabric(what["like"], f"{path}.like")
    changes = _changes(row, what, FABRIC_OVERRIDES, path, _usual_fabric)
    if flag in what:
        changes[flag] = bool(what[flag])
    if changes.get("efficiency", 0) > 1:
        raise DesignError(
            f"{path}.efficiency", what["efficiency"], "a share of the rate, above 0 and at most 1"
        )
    return replace(row, **changes)
