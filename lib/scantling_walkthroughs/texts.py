"""Numbers as the walkthroughs print them, beside the manners of `scantling.base.show`; and the
texts of their notebooks, filled from the facts: `fill_text("lasts {mtbf_s:seconds}", facts)`."""

import string
from typing import Any

from scantling.base.show import MANNERS, number, scalar, shown, size


def small_size(value: float) -> str:
    """Bytes of a message or a layer: 512 KB, 66.1 MB; from a billion on as any size."""
    if not 1e3 <= abs(value) < 0.9995e9:
        return size(value)
    if abs(value) < 0.9995e6:
        return f"{number(value / 1e3)} KB"
    return f"{number(value / 1e6)} MB"


def scientific(value: float) -> str:
    """A large count with its power of ten: 3.79e25."""
    mantissa, power = f"{float(value):.2e}".split("e")
    return f"{mantissa}e{int(power)}"


class _TextFiller(string.Formatter):
    """Python's own format strings, with two additions for the texts of notebooks: `{name:kind}`
    shows a number in a manner of `scantling.base.show` (seconds, bytes, share, usd, params …), and
    a name is a fact of the book."""

    def __init__(self, facts: Any) -> None:
        self.facts = facts

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        return kwargs[key] if key in kwargs else getattr(self.facts, str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        value = scalar(value)
        if format_spec == "sci":
            return scientific(value)
        if format_spec == "bytes":
            return small_size(value)
        if format_spec in MANNERS or format_spec in ("count", "rate"):
            return shown(value, format_spec)
        if not format_spec and isinstance(value, float):
            return number(value)
        if not format_spec and type(value) is int:
            return f"{value:,}"
        return format(value, format_spec)


def fill_text(text: str, facts: Any, **more: Any) -> str:
    """`text` with its {placeholders} filled: attributes of `facts`, then of `more`; dots and
    [indices] reach inside."""
    return _TextFiller(facts).vformat(text, (), more)
