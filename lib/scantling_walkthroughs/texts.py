"""Texts with computed numbers in them: `fill_text("lasts {mtbf:seconds}", facts)`."""

from scantling.base.show import MANNERS, number, shown
from scantling.base.words import Filler


class _TextFiller(Filler):
    """`{name:kind}`: a fact by name, shown in the manner of `quantities` (seconds, bytes, share,
    usd, params …), else as a `Filler` does."""

    def format_field(self, value, spec):
        if spec == "sci":
            mantissa, power = f"{float(value):.2e}".split("e")
            return f"{mantissa}e{int(power)}"
        if spec == "bytes" and 1e3 <= abs(value) < 0.9995e9:
            size, unit = (1e6, "MB") if abs(value) >= 0.9995e6 else (1e3, "KB")
            return f"{number(value / size)} {unit}"
        if spec in MANNERS or spec in ("count", "rate"):
            return shown(value, spec)
        if not spec and isinstance(value, float):
            return number(value)
        if not spec and type(value) is int:
            return f"{value:,}"
        return super().format_field(value, spec)


def fill_text(text: str, facts, **more) -> str:
    """`text` with its {placeholders} filled: attributes of `facts`, then of `more`; dots and
    [indices] reach inside."""
    return _TextFiller(facts).vformat(text, (), more)
