"""Texts with computed numbers in them: `tell("lasts {mtbf:seconds}", facts)`."""

from __future__ import annotations

import re
import string

from scantling.base.show import _MANNERS, number, shown


class _Teller(string.Formatter):
    """`{name:kind}`: a fact by name, shown in the manner of `quantities` (seconds, bytes, share,
    usd, params …) or by a format of Python's own."""

    def __init__(
        self,
        facts,
        more,
    ):
        self.facts, self.more = facts, more

    def get_value(
        self,
        key,
        args,
        kwargs,
    ):
        return self.more[key] if key in self.more else getattr(self.facts, str(key))

    def format_field(
        self,
        value,
        spec,
    ):
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
    """`text` with its {placeholders} filled: attributes of `facts`, then of `more`; dots and
    [indices] reach inside."""
    return _Teller(facts, more).vformat(text, (), {})


def names_in(text: str) -> set[str]:
    """First names of the placeholders of a text."""
    return {
        re.split(r"[.\[]", field)[0] for _, field, _, _ in string.Formatter().parse(text) if field
    }


def bare(text: str) -> str:
    """The text without its placeholders: what was typed, not computed."""
    return "".join(literal for literal, *_ in string.Formatter().parse(text))
