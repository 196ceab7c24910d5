"""Texts with computed numbers in them: `tell("lasts {mtbf:seconds}", facts)`; and reading the number that somebody typed."""
from __future__ import annotations

import re
import string
from functools import cache

from ..quantities import _MANNERS, number, shown

_SUFFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_NUMBER = re.compile(r"\s*~?\s*\$?\s*([-+−]?\d[\d,_ ]*(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+−]?\.\d+)\s*(.*)", re.S)


class _Teller(string.Formatter):
    """`{name:kind}`: a fact by name, shown in the manner of `quantities` (seconds, bytes, share, usd, params …) or by a format of Python's own."""

    def __init__(self, facts, more):
        self.facts, self.more = facts, more

    def get_value(self, key, args, kwargs):
        return self.more[key] if key in self.more else getattr(self.facts, str(key))

    def format_field(self, value, spec):
        if spec == "sci":
            mantissa, power = f"{float(value):.2e}".split("e")
            return f"{mantissa}e{int(power)}"
        if spec == "bytes" and 1e6 <= abs(value) < 0.9995e9:
            return f"{number(float(value) / 1e6)} MB"
        if spec == "bytes" and 1e3 <= abs(value) < 0.9995e6:
            return f"{number(float(value) / 1e3)} KB"
        if spec in _MANNERS:
            return shown(value, spec)
        if not spec and isinstance(value, float):
            return number(value)
        if not spec and isinstance(value, int) and not isinstance(value, bool):
            return f"{value:,}"
        return format(value, spec)


def tell(text: str, facts, **more) -> str:
    """`text` with its {placeholders} filled: attributes of `facts`, then of `more`; dots and [indices] reach inside."""
    return _Teller(facts, more).vformat(text, (), {})


def names_in(text: str) -> set[str]:
    """First names of the placeholders of a text."""
    return {re.split(r"[.\[]", field)[0] for _, field, _, _ in string.Formatter().parse(text) if field}


def bare(text: str) -> str:
    """The text without its placeholders: what was typed, not computed."""
    return "".join(literal for literal, *_ in string.Formatter().parse(text))


@cache
def _plain_unit(unit: str) -> str:
    return unit.replace(" ", "").lower()


def read_number(text, unit: str = "") -> float:
    """The number that a person typed: 1.2e3, 1,200, 405B, 41 %, $3.5M, "12 min" where the unit is min.

    A suffix k, M, B, G, T, P counts unless it belongs to the unit asked for. Raises ValueError for anything else.
    """
    if isinstance(text, bool):
        raise ValueError("a number is wanted")
    if hasattr(text, "__float__") and not isinstance(text, str):
        return float(text)
    match = _NUMBER.fullmatch(str(text))
    if not match:
        raise ValueError(f"{str(text).strip()[:40]!r} is not a number")
    value = float(re.sub(r"[,_ ]", "", match[1]).replace("−", "-"))
    rest = match[2].strip().rstrip(".")
    if not rest or _plain_unit(rest) in (_plain_unit(unit), _plain_unit(unit).rstrip("s")):
        return value
    if rest in _SUFFIX:
        return value * _SUFFIX[rest]
    head, tail = rest.split(None, 1) if " " in rest else (rest, "")
    if head in _SUFFIX and _plain_unit(tail) in ("", _plain_unit(unit)):
        return value * _SUFFIX[head]
    raise ValueError(f"the answer is wanted in {unit or 'plain numbers'}, not in {rest[:20]!r}")
