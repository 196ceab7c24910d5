"""What a control offers: round steps on a log scale, and the rows of the catalogue. Ladders of
values, no physics."""

from collections.abc import Mapping
from functools import cache
from math import ceil, floor, log10

from scantling import catalogue
from scantling.base.records import Rows
from scantling.base.show import shown
from scantling.catalogue.models.entries import entries

from .. import resources

_QUARTERS = (1.0, 1.25, 1.5, 1.75)
_DECADE = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)


def whole(value) -> str:
    return f"{value:,.0f}"


def with_value(ladder, value) -> list:
    """The ladder in order, with the value that stands in the design among its steps."""
    return sorted({*ladder, value}) if value is not None else sorted(ladder)


@cache
def octaves(low: int, high: int, unit: int = 1, steps=_QUARTERS) -> list[int]:
    """Whole multiples of `unit` from low to high: powers of two and the quarters between them."""
    found = {2**power * step for power in range(40) for step in steps}
    return sorted(int(n) * unit for n in found if n == int(n) and low <= n * unit <= high)


@cache
def decades(low: float, high: float) -> list[float]:
    """Ten round steps to the decade, from low to high."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [
        float(f"{step}e{e}") for e in powers for step in _DECADE if low <= step * 10.0**e <= high
    ]


def ladder(about: Mapping, node: int = 1) -> list:
    """The values of a control: listed, by the ends of decades or octaves, or whole `node`s up to
    a number of devices."""
    if "steps" in about:
        return about["steps"]
    if "nodes" in about:
        return octaves(node, about["nodes"], node)
    return decades(*about["decades"]) if "decades" in about else octaves(*about["octaves"])


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def choice(value, text: str, **more) -> dict:
    """One of the values that a control offers, and how it is said."""
    return {"value": value, "text": text, **more}


@cache
def accelerators() -> Rows:
    """Accelerators of the catalogue, grouped by vendor."""
    return tuple(choice(a.id, a.name, group=a.vendor) for a in catalogue.accelerators().values())


@cache
def fabrics() -> Rows:
    """Scale-out fabrics from slow to fast, for a slider."""
    rows = [f for f in catalogue.fabrics("scale-out").values() if f.device_bytes_per_s > 0]
    return tuple(
        choice(
            f.id, f.id, long=f"{f.name}, {shown(f.device_bytes_per_s, 'bytes_per_s')} per device"
        )
        for f in sorted(rows, key=lambda f: (f.device_bytes_per_s, f.name))
    )


@cache
def models() -> Rows:
    """Models of the catalogue, smallest family names first as the catalogue orders them."""
    return tuple(choice(id, entry.name or id) for id, entry in entries().items())


@cache
def examples() -> Rows:
    """Designs of the gallery, by file name."""
    paths = sorted(resources.example().parent.glob("*.yaml"))
    return tuple(choice(str(path), path.stem) for path in paths)


def around(value, whole: bool = False) -> tuple[list, int]:
    """Round multiples of a value from a quarter to four times, and the place of the value itself;
    nothing where there is none."""
    if not value:
        return ([0, 1, 2, 4, 8, 16, 32], 0) if whole and value == 0 else ([], -1)
    multiples = [value * f for f in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)]
    ladder = sorted(set(map(round, multiples))) if whole else multiples
    return ladder, ladder.index(value) if value in ladder else -1
