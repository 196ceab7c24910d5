"""What every number of an assessment means and how it is shown: label, unit, formula, inputs,
source, convention.

The one place for such texts: tooltips, the glossary, the report's appendix and the command line
read it. Keys are those of
`scantling design --json`, dotted below a mapping (`memory_bytes.weights`); a column of a list
stands under the list (`candidates.mfu`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from numbers import Number

_SCALES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_COUNTS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


@dataclass(frozen=True)
class Quantity:
    """One number of an assessment. `kind` says how it is shown; `unit` is the unit inside and in
    JSON, `formula` plain notation over `inputs`."""

    key: str
    label: str
    kind: str
    unit: str
    formula: str
    inputs: tuple[str, ...] = ()
    source: str = ""
    convention: str = ""
    function: str = ""  # dotted path, under scantling, of the function that computes it

    @property
    def shown_unit(self) -> str:
        """The unit on a chart's axis, where all values of this quantity share one."""
        return {
            "bytes": "GB",
            "share": "%",
            "bytes_per_s": "GB/s",
            "flops": "TFLOP/s",
            "params": "B",
            "usd": "USD",
            "kwh": "MWh",
            "watts": "MW",
            "mass": "t",
        }.get(self.kind, self.unit)

    @property
    def scale(self) -> float:
        """Divide a value by this to have it in `shown_unit`."""
        return {
            "bytes": 1e9,
            "share": 0.01,
            "bytes_per_s": 1e9,
            "flops": 1e12,
            "params": 1e9,
            "kwh": 1e3,
            "watts": 1e6,
            "mass": 1e3,
        }.get(self.kind, 1.0)


@cache
def table() -> dict[str, Quantity]:
    """All quantities by key, in the order of the contract."""
    from .rows import ROWS
    from .rows_decide import ROWS as DECIDE
    from .rows_site import ROWS as SITE

    return {q.key: q for q in (*ROWS, *DECIDE, *SITE)}


def quantity(key: str) -> Quantity:
    """The quantity of that key; list positions are ignored (`candidates[3].mfu` is
    `candidates.mfu`). Raises KeyError for an unknown one."""
    key = re.sub(r"\[\d+\]", "", key)
    try:
        return table()[key]
    except KeyError:
        from ..errors import closest

        near = closest(key, table())
        raise KeyError(f"no quantity {key!r}" + (f"; nearest: {near}" if near else "")) from None


def show(key: str, value) -> str:
    """`value` of quantity `key` as people read it, unit included: show("mfu", 0.413) is "41.3 %". A
    dash where there is none."""
    return shown(value, quantity(key).kind, quantity(key).unit)


def shown(value, kind: str, unit: str = "") -> str:
    """`value` in the manner of `kind`; see `Quantity`."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, Number):
        return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _MANNERS.get(kind, _plain)(value, unit)


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands grouped, no exponent between 1e-4 and 1e15."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e+", "e").replace("e-0", "e-")
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:,.{places}f}".replace("-", "−")


def _scaled(value, unit, steps, base=""):
    for size, prefix in steps:
        if abs(value) >= size * 0.9995:
            return f"{number(value / size)} {prefix}{unit}"
    return f"{number(value)} {base}{unit}".rstrip()


def _seconds(value, unit=""):
    size = abs(value)
    for limit, divisor, name in (
        (1e-6, 1e-9, "ns"),
        (1e-3, 1e-6, "µs"),
        (1.0, 1e-3, "ms"),
        (600.0, 1.0, "s"),
        (7200.0, 60.0, "min"),
        (172800.0, 3600.0, "h"),
        (math.inf, 86400.0, "days"),
    ):
        if size < limit:
            return f"{number(value / divisor)} {name}" if value else "0 s"
    return ""


def _plain(value, unit=""):
    return f"{number(value)} {unit}".rstrip()


def _whole(value, unit=""):
    one = unit.removesuffix("es" if unit.endswith("ches") else "s")
    return f"{value:,.0f} {one if value == 1 else unit}".rstrip()


def _share(value, unit=""):
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{number(value * 100) if abs(value) >= 0.01 or value == 0 else f'{value * 100:.2f}'} %"


def _usd(value, unit=""):
    for size, suffix in ((1e9, "B"), (1e6, "M")):
        if abs(value) >= size * 0.9995:
            return f"${number(value / size)}{suffix}"
    return (
        f"${value:.3f}"
        if 0 < abs(value) < 1
        else f"${value:,.2f}"
        if abs(value) < 100
        else f"${value:,.0f}"
    )


_MANNERS = {
    "share": _share,
    "chance": lambda v, u: (
        "<1 %" if 0 < v < 0.005 else ">99 %" if 0.995 <= v < 1 else f"{v:.0%}".replace("%", " %")
    ),
    "seconds": _seconds,
    "days": lambda v, u: (
        f"{number(v / 365.25)} years"
        if v >= 20_000
        else f"{number(v)} days"
        if v >= 1 or v == 0
        else _seconds(v * 86400)
    ),
    "bytes": lambda v, u: (
        f"{number(v / 1e9)} GB" if 1e8 <= abs(v) < 1e12 or v == 0 else _scaled(v, "B", _SCALES)
    ),
    "bytes_per_s": lambda v, u: _scaled(v, "B/s", _SCALES),
    "flops": lambda v, u: f"{number(v / 1e12)} TFLOP/s",
    "flop": lambda v, u: _scaled(v, "FLOP", _SCALES),
    "params": lambda v, u: _scaled(v, "", _COUNTS).strip(),
    "count": _whole,
    "rate": _plain,
    "ratio": lambda v, u: number(v),
    "usd": _usd,
    "kwh": lambda v, u: _scaled(v * 1e3, "Wh", _SCALES),
    "watts": lambda v, u: _scaled(v, "W", _SCALES),
    "mass": lambda v, u: f"{number(v / 1e3)} t" if abs(v) >= 1e3 else f"{number(v)} kg",
    "hours": lambda v, u: f"{number(v / 1e6)} M h" if abs(v) >= 1e6 else f"{v:,.0f} h",
}


def band(key: str, low, high) -> str:
    """A band as people read it: band("mfu", 0.38, 0.43) is "38.0 to 43.0 %"; the unit once where
    both ends share it."""
    a, b = show(key, low), show(key, high)
    head, _, unit = a.rpartition(" ")
    return f"{head} to {b}" if head and b.endswith(" " + unit) else f"{a} to {b}"


def tooltip(key: str) -> str:
    """Label, formula and convention of a quantity in plain lines."""
    q = quantity(key)
    return "\n".join(
        t
        for t in (
            f"{q.label} [{q.unit}]" if q.unit else q.label,
            q.formula,
            q.convention,
            f"Source: {q.source}" if q.source else "",
        )
        if t
    )
