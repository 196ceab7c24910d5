"""What a control offers: round steps on a log scale, and the rows of the catalogue. Ladders of
values, no physics."""

from collections.abc import Iterable
from functools import cache, lru_cache
from math import ceil, floor, log10
from typing import Any, Required, TypedDict

from scantling import catalogue
from scantling.base.show import params, ratio
from scantling.base.units import GB
from scantling.catalogue.hardware import Fabric
from scantling.catalogue.models.entries import entries

from .. import shipped_files

_QUARTERS = (1.0, 1.25, 1.5, 1.75)
_DECADE = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)


def whole(value: float) -> str:
    """A whole number."""
    return f"{value:,.0f}"


@lru_cache(maxsize=1024)  # ladders are written anew at every move of a control
def params_text(value: float) -> str:
    """A number of parameters or of tokens."""
    return params(value)


@lru_cache(maxsize=1024)
def ratio_text(value: float) -> str:
    """A number without a unit."""
    return ratio(value)


def with_value(ladder: Iterable[Any], value: Any) -> list[Any]:
    """The ladder in order, with the value that stands in the design among its steps."""
    return sorted({*ladder, value}) if value is not None else sorted(ladder)


@cache
def octaves(low: int, high: int, unit: int = 1, steps: tuple[float, ...] = _QUARTERS) -> list[int]:
    """Whole multiples of `unit` from low to high: powers of two and the quarters between them."""
    multiples = {2**power * step for power in range(40) for step in steps}
    return sorted(int(n) * unit for n in multiples if n == int(n) and low <= n * unit <= high)


@cache
def decades(low: float, high: float) -> list[float]:
    """Ten round steps to the decade, from low to high."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [
        float(f"{step}e{e}") for e in powers for step in _DECADE if low <= step * 10.0**e <= high
    ]


class Option(TypedDict, total=False):
    """One of the values that a control offers, as it travels to the page."""

    value: Required[Any]
    text: Required[str]
    long: str  # as it is read aloud
    group: str  # under which it stands in a list
    reason: str  # why the design cannot take it


def choice(value: Any, text: str, *, long: str = "", group: str = "") -> Option:
    """One of the values that a control offers, and how it is said."""
    option = Option(value=value, text=text)
    if long:
        option["long"] = long
    if group:
        option["group"] = group
    return option


@cache
def accelerators() -> tuple[Option, ...]:
    """Accelerators of the catalogue, grouped by vendor."""
    return tuple(choice(a.id, a.name, group=a.vendor) for a in catalogue.accelerators().values())


@cache
def fabrics(accelerator: str) -> tuple[Option, ...]:
    """Scale-out fabrics from slow to fast: those of the nodes in which an accelerator is sold, then
    those of no provider."""
    rows = [f for f in catalogue.fabrics("scale-out").values() if f.device_bytes_per_s > 0]
    rows.sort(key=lambda f: (f.device_bytes_per_s, f.name))
    nodes = [node for node in catalogue.nodes().values() if node.accelerator == accelerator]
    sold = {node.scale_out for node in nodes}
    usual = [f for f in rows if f.id in sold]
    # what has no name but its own is part of one product
    free = [f for f in rows if f.id not in sold and f.aliases and not f.provider]
    return (
        *(choice(f.id, _fabric_text(f), group="in nodes of this chip") for f in usual),
        *(choice(f.id, _fabric_text(f), group="any cluster") for f in free),
    )


def _fabric_text(fabric: Fabric) -> str:
    return f"{fabric.name}, {gbits(fabric.device_bytes_per_s / GB)}"


# rates of a device that are built: 25 Gbit/s to 1.6 Tbit/s
NETWORK_GBYTES_PER_S = (3.125, 6.25, 12.5, 25.0, 50.0, 100.0, 200.0)


def gbits(gbytes_per_s: float) -> str:
    """A rate as networks are called."""
    return f"{8 * gbytes_per_s:,.0f} Gbit/s"


def network_rate(gbytes_per_s: float) -> Option:
    """A rate of one device on the slider."""
    text = gbits(gbytes_per_s)
    return choice(gbytes_per_s, text, long=f"{text} per device")


@cache
def models() -> tuple[Option, ...]:
    """Models of the catalogue, smallest family names first as the catalogue orders them."""
    return tuple(choice(id, entry.name or id) for id, entry in entries().items())


@cache
def examples() -> tuple[Option, ...]:
    """Designs of the gallery, by file name."""
    paths = sorted(shipped_files.example().parent.rglob("*.yaml"))
    return tuple(choice(str(path), path.stem) for path in paths)


def around(value: Any, whole: bool = False) -> tuple[list[Any], int]:
    """Round multiples of a value from a quarter to four times, and the place of the value itself;
    nothing where there is none."""
    if not value:
        return ([0, 1, 2, 4, 8, 16, 32], 0) if whole and value == 0 else ([], -1)
    multiples = [value * f for f in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)]
    ladder = sorted(set(map(round, multiples))) if whole else multiples
    return ladder, ladder.index(value) if value in ladder else -1
