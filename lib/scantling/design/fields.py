"""The kinds of value a design file holds: counts, amounts, shares, words, text; each refuses what
it is not, in one line."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ..base.errors import DesignError

_SUFFIX = re.compile(
    r"\s*([0-9][0-9_,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*([kKmMbBgGtT]?)[a-zA-Z/ ]*\s*$"
)
_TIMES = {
    "": 1,
    "k": 1e3,
    "m": 1e6,
    "b": 1e9,
    "g": 1e9,
    "t": 1e12,
}


class Section(BaseModel):
    """A mapping of the design file: frozen, and a field it does not know is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        protected_namespaces=(),
        allow_inf_nan=False,
    )

    def given(self) -> dict[str, Any]:
        """The fields that were given, as plain data."""
        return self.model_dump(
            exclude_unset=True,
            exclude_none=True,
        )


def as_number(value, allowed: str):
    """A Python int or float from `value`; DesignError for text, truth values, lists, nan and
    infinity."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # a numpy scalar
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        nearest, problem = None, "is not a number"
        if isinstance(value, str):
            problem = "is text, not a number"
            m = _SUFFIX.match(value)
            if m:
                number = float(m[1].replace("_", "").replace(",", "")) * _TIMES[m[2].lower()]
                nearest = f"{number:.12g}" if number < 1e6 else f"{number:g}".replace("e+", "e")
                problem += " (unit suffixes are not read)" if m[2] else ""
        raise DesignError(
            "",
            value,
            allowed,
            nearest,
            problem=problem,
        )
    try:
        if not math.isfinite(value):
            raise OverflowError
    except OverflowError:
        raise DesignError(
            "",
            value,
            allowed,
            problem="is not a finite number",
        ) from None
    return value


def _bounded(
    value,
    low,
    high,
    above,
    allowed,
):
    if value < low or value > high or (above and value == low):
        nearest = None if above and value <= low else low if value < low else high
        raise DesignError(
            "",
            value,
            allowed,
            _short(nearest) if nearest is not None else None,
            problem="is too small" if value <= low else "is too large",
        )
    return value


def _short(number) -> str:
    return (
        f"{number:,}"
        if isinstance(number, int) and number < 10**7
        else f"{number:g}".replace("e+0", "e").replace("e+", "e")
    )


def count(low: int = 1, high: int = 10**9):
    """Validator of a whole number from `low` to `high`; 1.6e4 is one, 1.5 is not."""
    allowed = f"a whole number from {_short(low)} to {_short(high)}"

    def check(value):
        if value is None:
            return None
        value = as_number(value, allowed)
        if value != int(value):
            raise DesignError(
                "",
                value,
                allowed,
                _short(max(low, round(value))),
                problem="is not a whole number",
            )
        return int(
            _bounded(
                value,
                low,
                high,
                False,
                allowed,
            )
        )

    return BeforeValidator(check)


def amount(
    low: float = 0.0,
    high: float = 1e30,
    above: bool = True,
):
    """Validator of a finite number above `low` (or from `low`, where `above` is false) up to
    `high`."""
    allowed = f"a number {'above' if above else 'from'} {_short(low)}" + (
        f" up to {_short(high)}" if high < 1e30 else ""
    )
    return BeforeValidator(
        lambda value: (
            None
            if value is None
            else float(
                _bounded(
                    as_number(value, allowed),
                    low,
                    high,
                    above,
                    allowed,
                )
            )
        )
    )


def share(low: float = 0.0, high: float = 1.0):
    """Validator of a share between 0 and 1; 35 gets 0.35 as the nearest."""
    allowed = f"a share from {low:g} to {high:g} (0.35 for 35 %)"

    def check(value):
        if value is None:
            return None
        value = as_number(value, allowed)
        if not low <= value <= high:
            nearest = (
                value / 100
                if 1 < value <= 100 and low <= value / 100 <= high
                else min(max(value, low), high)
            )
            raise DesignError(
                "",
                value,
                allowed,
                f"{nearest:g}",
                problem="is not a share",
            )
        return float(value)

    return BeforeValidator(check)


def word(*choices: str):
    """Validator of one of a few words."""

    def check(value):
        if value is None or (isinstance(value, str) and value in choices):
            return value
        raise DesignError(
            "",
            value,
            choices,
            problem="is not one of the choices" if isinstance(value, str) else "is not a word",
        )

    return BeforeValidator(check)


def text(longest: int = 200, lines: bool = False):
    """Validator of text: one printable line, or several where `lines`."""

    def check(value):
        if value is None:
            return None
        if not isinstance(value, str):
            raise DesignError(
                "",
                value,
                "text (in quotes where it looks like a number)",
                problem="is not text",
            )
        if len(value) > longest:
            raise DesignError(
                "",
                value,
                f"at most {longest:,} characters",
                problem=f"has {len(value):,} characters",
            )
        if not value.strip():
            raise DesignError(
                "",
                value,
                "text",
                problem="is empty",
            )
        bad = next((c for c in value if not c.isprintable() and not (lines and c in "\n\t")), None)
        if bad is not None:
            raise DesignError(
                "",
                value,
                "printable characters" + ("" if lines else " on one line"),
                problem="holds a control character",
            )
        return value

    return BeforeValidator(check)


def flag():
    """Validator of true or false."""

    def check(value):
        if hasattr(value, "item"):
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        nearest = {
            "yes": "true",
            "on": "true",
            "no": "false",
            "off": "false",
            "1": "true",
            "0": "false",
        }.get(str(value).lower())
        raise DesignError(
            "",
            value,
            ("true", "false"),
            nearest,
            problem="is not true or false",
        )

    return BeforeValidator(check)


def about(
    description: str,
    unit: str = "",
    example: Any = None,
    choices: tuple = (),
    default=None,
    **bounds,
):
    """What the published schema, the comments of `init` and the desk say about a field."""
    extra = {"unit": unit} if unit else {}
    if choices:
        extra["enum"] = [*choices, None]
    return Field(
        default=default,
        description=description + (f" [{unit}]" if unit else ""),
        examples=None if example is None else [example],
        json_schema_extra=extra or None,
        **bounds,
    )


class Like(BaseModel):
    """A catalogue row with some of its figures replaced: `{like: h100-sxm, hbm_gb: 96}`."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        protected_namespaces=(),
    )
    like: Annotated[str, text()] = Field(
        description="the catalogue id to start from",
        examples=["h100-sxm"],
    )

    def given(self) -> dict[str, Any]:
        return self.model_dump()
