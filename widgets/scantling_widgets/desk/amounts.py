"""A number as it is typed into a box of the form, in the unit of its field."""

import re

from scantling.base import typed
from scantling.base.errors import DesignError
from scantling.base.units import DAY_S, HOUR_S, MINUTE_S

from .control import facts_of

# words that may stand behind a typed number, by the unit of its field: how many of that one is
_BEHIND = {
    "days": {
        "d": 1.0,
        "day": 1.0,
        "days": 1.0,
        "h": 1 / 24,
        "hours": 1 / 24,
        "week": 7.0,
        "weeks": 7.0,
        "month": 30.0,
        "months": 30.0,
        "year": 365.0,
        "years": 365.0,
    },
    "s": {
        "s": 1.0,
        "sec": 1.0,
        "ms": 0.001,
        "min": MINUTE_S,
        "h": HOUR_S,
        "hours": HOUR_S,
        "d": DAY_S,
        "days": DAY_S,
    },
    "h": {"h": 1.0, "hours": 1.0, "min": 1 / 60, "d": 24.0, "days": 24.0},
    "ms": {"ms": 1.0, "us": 0.001, "s": 1000.0},
    "years": {"y": 1.0, "year": 1.0, "years": 1.0, "months": 1 / 12},
    "bytes": {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15},
    "USD/year": {"usd": 1.0, "dollars": 1.0},
    "tokens": {"tokens": 1.0, "tok": 1.0},
    "sequences": {"sequences": 1.0, "seq": 1.0},
    "parameters": {"params": 1.0},
    "USD": {"usd": 1.0, "dollars": 1.0},
    "USD/h": {"usd": 1.0, "dollars": 1.0},
    "MW": {"mw": 1.0, "kw": 0.001, "gw": 1000.0},
    "GB": {"gb": 1.0, "mb": 0.001, "tb": 1000.0, "pb": 1e6},
    "GB/s": {"gb": 1.0},
    "devices": {"devices": 1.0, "gpus": 1.0},
    "nodes": {"node": 1.0, "nodes": 1.0},
    "sites": {"site": 1.0, "sites": 1.0},
}


def number(field: str, text: str) -> float | int:
    """A typed number (7,5, 1,024, 50M, 90 d, 2 TB; 40% of a share) in the unit of its field, or a
    DesignError that says what was typed."""
    facts = facts_of(field)
    unit = facts.unit if facts else ""
    amount = text.strip().removeprefix("$")
    word = re.fullmatch(r"(.*?\d.*?)\s*([^\W\d_]{1,7})", amount)
    factor = _BEHIND.get(unit, {}).get(word[2].lower()) if word else None
    if word and factor:
        read = typed.number(word[1])
    else:
        read = typed.number(amount if unit == "USD" else text.strip())
    value, in_percent = read or (0.0, False)
    if read is None or (in_percent and unit != "share"):
        raise DesignError(field, text, _readable(unit), problem="is not a number")
    value *= factor or 1
    return int(value) if abs(value) < 1e15 and value == int(value) else value


def _readable(unit: str) -> str:
    """What could be typed for a field of this unit."""
    if unit == "share":
        return "a number, such as 7.5, 1,024, 50M or 40%"
    of = f" of {unit}" if unit else ""
    words = ", ".join(_BEHIND.get(unit, ()))
    behind = f"; units read: {words}" if words else ""
    return f"a number{of}, such as 7.5, 1,024, 50M{behind}"
