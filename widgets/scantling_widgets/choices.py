"""What a control offers: round steps on a log scale, and the rows of the catalogue. Ladders of
values, no physics."""

from __future__ import annotations

import math
from functools import cache

from scantling import catalogue
from scantling.cli.listing import listing

from . import resources
from .words import quantities

_QUARTERS = (1.0, 1.25, 1.5, 1.75)
_DECADE = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)


def whole(value) -> str:
    return f"{value:,.0f}"


def with_value(ladder, value) -> list:
    """The ladder in order, with the value that stands in the design among its steps."""
    return sorted({*ladder, value}) if value is not None else sorted(ladder)


def octaves(
    low: int,
    high: int,
    unit: int = 1,
    steps=_QUARTERS,
) -> list[int]:
    """Whole multiples of `unit` from low to high: powers of two and the quarters between them."""
    out = set()
    for power in range(0, 40):
        for step in steps:
            n = 2**power * step
            if n == int(n) and low <= int(n) * unit <= high:
                out.add(int(n) * unit)
    return sorted(out)


def decades(low: float, high: float) -> list[float]:
    """Ten round steps to the decade, from low to high."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [
        float(f"{step}e{e}")
        for e in range(first, last + 1)
        for step in _DECADE
        if low <= step * 10.0**e <= high
    ]


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def options(
    ladder,
    say=whole,
    long=None,
) -> list[dict]:
    rows = [(v, say(v)) for v in ladder]
    return [
        {
            "value": v,
            "text": text,
            "long": long(v) if long else text,
        }
        for v, text in rows
    ]


@cache
def accelerators() -> tuple[dict, ...]:
    """Accelerators of the catalogue, grouped by vendor; the hint carries the figures that
    decide."""
    return tuple(
        {
            "value": a.id,
            "text": a.name,
            "group": a.vendor,
        }
        for a in catalogue.accelerators().values()
    )


@cache
def fabrics() -> tuple[dict, ...]:
    """Scale-out fabrics from slow to fast, for a slider."""
    rows = [f for f in catalogue.fabrics("scale-out").values() if f.device_bytes_per_s > 0]
    rows.sort(key=lambda f: (f.device_bytes_per_s, f.name))
    return tuple(
        {
            "value": f.id,
            "text": f.name,
            "rate": quantities.shown(f.device_bytes_per_s, "bytes_per_s"),
        }
        for f in rows
    )


@cache
def models() -> tuple[dict, ...]:
    """Models of the catalogue, smallest family names first as the catalogue orders them."""
    return tuple(
        {
            "value": row["id"],
            "text": row.get("name") or row["id"],
        }
        for row in listing("models")
    )


@cache
def examples() -> tuple[dict, ...]:
    """Designs of the gallery, by file name."""
    return tuple(
        {
            "value": str(path),
            "text": path.stem,
        }
        for path in sorted(resources.example().parent.glob("*.yaml"))
    )


def around(value, whole: bool = False) -> tuple[list, int]:
    """Round multiples of a value from a quarter to four times, and the place of the value itself;
    nothing where there is none."""
    if not value:
        return (
            (
                [
                    0,
                    1,
                    2,
                    4,
                    8,
                    16,
                    32,
                ],
                0,
            )
            if whole and value == 0
            else ([], -1)
        )
    factors = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
    ladder = [round(value * f) if whole else value * f for f in factors]
    ladder = sorted(set(ladder)) if whole else ladder
    return ladder, ladder.index(value) if value in ladder else -1
