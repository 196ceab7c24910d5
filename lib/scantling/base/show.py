"""Numbers as people read them: three significant digits, the unit that suits."""

from math import floor, inf, isinf, isnan, log10
from numbers import Number

from .units import DAY_S, HOUR_S, MINUTE_S

_SCALES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


_COUNTS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def scalar(value):
    """A NumPy scalar as the Python value that it holds; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def is_number(value) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown(value, kind: str, unit: str = "") -> str:
    """`value` in the manner of `kind`; see `Quantity`."""
    value = scalar(value)
    if value is None or (isinstance(value, float) and isnan(value)):
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, Number):
        return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)
    if isinstance(value, float) and isinf(value):
        return "∞" if value > 0 else "−∞"
    return _MANNERS.get(kind, _plain)(value, unit)


def value_text(value) -> str:
    """A value of a design file as text, its parts where it has several."""
    value = scalar(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {value_text(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(map(value_text, value))
    if is_number(value):
        return format(value, ",.6g" if abs(value) < 1e6 else ",.0f")
    return "none" if value is None else shown(value, "text")


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands grouped, no exponent between 1e-4 and 1e15."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e+", "e").replace("e-0", "e-")
    places = max(0, digits - 1 - floor(log10(size)))
    return f"{value:,.{places}f}".replace("-", "−")


def _scaled(value, unit, steps):
    for size, prefix in steps:
        if abs(value) >= size * 0.9995:
            return f"{number(value / size)} {prefix}{unit}"
    return _plain(value, unit)


def _prefixed(unit, times=1):
    """The manner of a size with prefixes, given in so many of a unit."""
    return lambda value, _: _scaled(value * times, unit, _SCALES)


def _seconds(value, unit=""):
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


def _plain(value, unit=""):
    return f"{number(value)} {unit}".rstrip()


def _whole(value, unit):
    one = unit.removesuffix("es" if unit.endswith("ches") else "s")
    return f"{value:,.0f} {one if value == 1 else unit}".rstrip()


def _share(value, unit):
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{number(value * 100) if abs(value) >= 0.01 or value == 0 else f'{value * 100:.2f}'} %"


def _usd(value, unit):
    for size, suffix in ((1e9, "B"), (1e6, "M")):
        if abs(value) >= size * 0.9995:
            return f"${number(value / size)}{suffix}"
    if abs(value) >= 1e3:  # three digits, as above
        return f"${round(value, 2 - int(log10(abs(value)))):,.0f}"
    digits = 3 if 0 < abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f"${value:,.{digits}f}"


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
        else _seconds(v * DAY_S)
    ),
    "bytes": lambda v, u: (
        f"{number(v / 1e9)} GB" if 1e8 <= abs(v) < 1e12 or v == 0 else _scaled(v, "B", _SCALES)
    ),
    "bytes_per_s": _prefixed("B/s"),
    "flop": _prefixed("FLOP"),
    "kwh": _prefixed("Wh", 1e3),
    "watts": _prefixed("W"),
    "flops": lambda v, u: f"{number(v / 1e12)} TFLOP/s",
    "params": lambda v, u: _scaled(v, "", _COUNTS).strip(),
    "count": _whole,
    "rate": _plain,
    "ratio": lambda v, u: number(v),
    "usd": _usd,
    "mass": lambda v, u: f"{number(v / 1e3)} t" if abs(v) >= 1e3 else f"{number(v)} kg",
    "hours": lambda v, u: f"{number(v / 1e6)} M h" if abs(v) >= 1e6 else f"{v:,.0f} h",
}


def percent(share, digits: int = 1, sign: str = "") -> str:
    """A share in the manner of the tables: 11.2 %; with sign "+", +7.8 % and −3.1 %; a dash where
    there is none."""
    if share is None or share != share:
        return "–"
    return f"{100 * share:{sign},.{digits}f} %".replace("-", "−")


def named_size(parameters: float) -> str:
    """Parameters as models are named by them: 70B, 1.5B, 1T."""
    size = parameters / 1e9
    return f"{size / 1e3:.3g}T" if size >= 1e3 else f"{size:.3g}B"


def several(n: int, noun: str, more: str = "") -> str:
    """'1 node', '2 nodes'; `more` is the plural where it is not noun + s."""
    return f"{n:,} {noun if n == 1 else more or noun + 's'}"
