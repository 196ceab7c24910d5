"""Numbers as people read them: three significant digits, the unit that suits.

Each manner is a function of one number: `seconds(91.2)`, `size(80e9)`, `usd(1.5e6)`. A number that
is not known (None, nan) is a dash. Sentences call these; tables of quantities, whose manner is
data, call `shown`.
"""

from collections.abc import Callable, Mapping
from math import floor, inf, isinf, isnan, log10
from numbers import Number
from typing import Any

from .units import DAY_S, HOUR_S, MINUTE_S

NONE = "—"
_SCALES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_COUNTS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def scalar(value: Any) -> Any:
    """A NumPy scalar as the Python value that it holds; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def is_number(value: Any) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands grouped, no exponent between 1e-4 and 1e15."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e+", "e").replace("e-0", "e-")
    places = max(0, digits - 1 - floor(log10(size)))
    return f"{value:,.{places}f}".replace("-", "−")


def _no_number(value: Any) -> str | None:
    """What stands for a value that is no finite number; None for one that is."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, Number):
        return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)
    if isinstance(value, float) and isinf(value):
        return "∞" if value > 0 else "−∞"
    return None


def _manner(of: Callable[[float], str]) -> Callable[[Any], str]:
    """The manner of finite numbers, for whatever may stand in their place."""

    def shown(value: Any) -> str:
        value = scalar(value)
        text = _no_number(value)
        return of(value) if text is None else text

    shown.__doc__ = of.__doc__
    return shown


def _scaled(value: float, unit: str, steps: tuple[tuple[float, str], ...]) -> str:
    for size, prefix in steps:
        if abs(value) >= size * 0.9995:
            return f"{number(value / size)} {prefix}{unit}"
    return f"{number(value)} {unit}".rstrip()


@_manner
def seconds(value: float) -> str:
    """A span given in seconds: 35.0 ms, 91.2 s, 3.50 h, 12.0 days."""
    size = abs(value)
    for limit, divisor, name in (
        (1e-6, 1e-9, "ns"),
        (1e-3, 1e-6, "µs"),
        (1.0, 1e-3, "ms"),
        (600.0, 1.0, "s"),
        (2 * HOUR_S, MINUTE_S, "min"),
        (2 * DAY_S, HOUR_S, "h"),
        (inf, DAY_S, "days"),
    ):
        if size < limit:
            return f"{number(value / divisor)} {name}" if value else "0 s"
    return ""


@_manner
def span(value: float) -> str:
    """A span given in seconds, to a tenth from a minute on: 0.35 s, 41.2 s, 1.5 h, 12.0 days."""
    for size, unit in ((DAY_S, "days"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.2g} s" if value < 1 else f"{value:.3g} s"


@_manner
def days(value: float) -> str:
    """A span given in days: 3.50 h, 54.2 days, 60.1 years."""
    if value >= 20_000:
        return f"{number(value / 365.25)} years"
    return f"{number(value)} days" if value >= 1 or value == 0 else seconds(value * DAY_S)


@_manner
def hours(value: float) -> str:
    """Device-hours: 8,100 h, 2.79 M h."""
    return f"{number(value / 1e6)} M h" if abs(value) >= 1e6 else f"{value:,.0f} h"


@_manner
def share(value: float) -> str:
    """A share of one in per cent: 41.3 %."""
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{number(value * 100) if abs(value) >= 0.01 or value == 0 else f'{value * 100:.2f}'} %"


@_manner
def chance(value: float) -> str:
    """A probability in whole per cent, never quite none or all: <1 %, 35 %."""
    if 0 < value < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= value < 1 else f"{100 * value:.0f} %"


@_manner
def size(value: float) -> str:
    """Bytes: 61.2 GB up to a thousand of them, 4.10 TB, 512 kB."""
    if 1e8 <= abs(value) < 1e12 or value == 0:
        return f"{number(value / 1e9)} GB"
    return _scaled(value, "B", _SCALES)


@_manner
def gigabytes(value: float) -> str:
    """Bytes in GB whatever their number, so that rows compare: 0.5 GB, 1,234.0 GB."""
    return f"{value / 1e9:,.1f} GB"


@_manner
def bytes_per_s(value: float) -> str:
    """A rate of bytes: 400 GB/s."""
    return _scaled(value, "B/s", _SCALES)


@_manner
def flop(value: float) -> str:
    """Floating-point operations: 3.8 YFLOP is 3.80e6 EFLOP."""
    return _scaled(value, "FLOP", _SCALES)


@_manner
def flops(value: float) -> str:
    """A rate of floating-point operations in TFLOP/s."""
    return f"{number(value / 1e12)} TFLOP/s"


@_manner
def energy(value: float) -> str:
    """Energy given in kWh: 1.20 MWh, 11.0 GWh."""
    return _scaled(value * 1e3, "Wh", _SCALES)


@_manner
def watts(value: float) -> str:
    """Power: 700 W, 24.0 MW."""
    return _scaled(value, "W", _SCALES)


@_manner
def params(value: float) -> str:
    """A count of parameters or tokens: 405 B, 15.6 T."""
    return _scaled(value, "", _COUNTS).strip()


@_manner
def usd(value: float) -> str:
    """Dollars: $2.50, $1,230, $41.2M."""
    for size, suffix in ((1e9, "B"), (1e6, "M")):
        if abs(value) >= size * 0.9995:
            return f"${number(value / size)}{suffix}"
    if abs(value) >= 1e3:  # three digits, as above
        return f"${round(value, 2 - int(log10(abs(value)))):,.0f}"
    digits = 3 if 0 < abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f"${value:,.{digits}f}"


@_manner
def mass(value: float) -> str:
    """Mass given in kg: 950 kg, 12.0 t."""
    return f"{number(value / 1e3)} t" if abs(value) >= 1e3 else f"{number(value)} kg"


@_manner
def ratio(value: float) -> str:
    """A bare number of three digits."""
    return number(value)


def count(value: Any, unit: str) -> str:
    """So many of a unit, which is given in the plural: 1 node, 2 nodes."""
    value = scalar(value)
    text = _no_number(value)
    if text is not None:
        return text
    one = unit.removesuffix("es" if unit.endswith("ches") else "s")
    return f"{value:,.0f} {one if value == 1 else unit}".rstrip()


def rate(value: Any, unit: str) -> str:
    """A number of three digits with its unit."""
    value = scalar(value)
    text = _no_number(value)
    return f"{number(value)} {unit}".rstrip() if text is None else text


MANNERS: dict[str, Callable[[Any], str]] = {
    "share": share,
    "chance": chance,
    "seconds": seconds,
    "days": days,
    "bytes": size,
    "bytes_per_s": bytes_per_s,
    "flop": flop,
    "kwh": energy,
    "watts": watts,
    "flops": flops,
    "params": params,
    "ratio": ratio,
    "usd": usd,
    "mass": mass,
    "hours": hours,
}


def shown(value: Any, kind: str, unit: str = "") -> str:
    """`value` in the manner of `kind`, a quantity's; see `Quantity`."""
    if kind in MANNERS:
        return MANNERS[kind](value)
    return count(value, unit) if kind == "count" else rate(value, unit)


def value_text(value: Any) -> str:
    """A value of a design file as text, its parts where it has several."""
    value = scalar(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_text(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(map(value_text, value))
    if is_number(value):
        return format(value, ",.6g" if abs(value) < 1e6 else ",.0f")
    return "none" if value is None else shown(value, "text")


def percent(share: float | None, digits: int = 1, sign: str = "") -> str:
    """A share in the manner of the tables: 11.2 %; with sign "+", +7.8 % and −3.1 %; a dash where
    there is none."""
    if share is None or share != share:
        return "–"
    return f"{100 * share:{sign},.{digits}f} %".replace("-", "−")


def named_size(parameters: float) -> str:
    """Parameters as models are named by them: 70B, 1.5B, 1T."""
    size = parameters / 1e9
    return f"{size / 1e3:.3g}T" if size >= 1e3 else f"{size:.3g}B"


def several(n: float, noun: str, more: str = "") -> str:
    """'1 node', '2 nodes'; `more` is the plural where it is not noun + s."""
    return f"{n:,} {noun if n == 1 else more or noun + 's'}"


def largest(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """Parts of a whole, the largest first."""
    return sorted(parts.items(), key=lambda part: -part[1])
