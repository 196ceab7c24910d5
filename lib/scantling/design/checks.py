"""What a value of a design file must be: a count, an amount, a share, a word, text. Each check
takes a value and returns it as the design holds it, or raises a DesignError of one line."""

import sys
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

from pydantic import BeforeValidator

from ..base.errors import DesignError
from ..base.show import is_number, scalar
from ..base.typed import amount, currency, dollars, number

Check = Callable[[Any], Any]  # the value of a file -> the value of the design

_SCALES = ("k", "K", "M", "G", "B", "T")
_BINARY = tuple(2.0**i for i in range(10))
# what frameworks call a choice that is spelt least like it here
_OTHER_NAMES = {"fsdp": "zero3", "fsdp2": "zero3", "full_shard": "zero3", "ddp": "none"}
_MEANT = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}


def validator(check: Check) -> BeforeValidator:
    """A check as pydantic's validator; nothing stays nothing."""

    def validated(value: Any) -> Any:
        return None if value is None else check(value)

    return BeforeValidator(validated)


def as_number(
    value: Any,
    allowed: str,
    whole: bool = False,
    *,
    unit: str = "",
    low: float = -inf,
    high: float = inf,
) -> int | float:
    """A Python int or float from `value`, 15T with its scale read; DesignError for other text,
    truth values, lists, nan and infinity. whole : K after a power of two is 1,024, as the field
    says it: 8k tokens of a sequence are 8,192. What a text seems to mean in `unit` is named as the
    nearest where it lies from `low` to `high`."""
    value = scalar(value)
    if isinstance(value, str) and value.endswith(_SCALES) and (typed := number(value)):
        value = typed[0]
        if whole and value / 1000 in _BINARY:
            value *= 1.024
    if not is_number(value):
        nearest = None
        problem = "is not a number"
        if isinstance(value, str):
            problem = "is text, not a number"
            if money := currency(value):
                problem = f"is in {money}, and dollars are planned with: say how many"
            meant = amount(value, unit)
            meant = dollars(value) if meant is None else meant
            if meant is not None and low <= meant <= high and not (whole and meant % 1):
                nearest = f"{meant:.12g}".replace("e+", "e")
        raise DesignError("", value, allowed, nearest, problem=problem)
    if isinstance(value, float) and not isfinite(value) or abs(value) > sys.float_info.max:
        raise DesignError("", value, allowed, problem="is not a finite number")
    plain: int | float = value
    return plain


def _short(value: float) -> str:
    """A bound as a message says it: 10,000 or 1e7."""
    if isinstance(value, int) and value < 10**7:
        return f"{value:,}"
    return f"{value:g}".replace("e+0", "e").replace("e+", "e")


def _within(value: Any, low: float, high: float, allowed: str) -> None:
    if value < low:
        raise DesignError("", value, allowed, _short(low), problem="is too small")
    if value > high:
        raise DesignError("", value, allowed, _short(high), problem="is too large")


def number_from(low: float, high: float, unit: str = "") -> Check:
    """A finite number from `low` to `high`, in `unit`."""
    allowed = f"a number from {_short(low)} to {_short(high)}"

    def check(value: Any) -> float:
        value = as_number(value, allowed, unit=unit, low=low, high=high)
        _within(value, low, high, allowed)
        return float(value)

    return check


def whole_from(low: int, high: int, unit: str = "") -> Check:
    """A whole number from `low` to `high`, in `unit`: 1.6e4 is one, 1.5 is not."""
    allowed = f"a whole number from {_short(low)} to {_short(high)}"

    def check(value: Any) -> int:
        value = as_number(value, allowed, whole=True, unit=unit, low=low, high=high)
        if value % 1:
            nearest = _short(max(low, round(value)))
            raise DesignError("", value, allowed, nearest, problem="is not a whole number")
        _within(value, low, high, allowed)
        return int(value)

    return check


def share_from(low: float, high: float) -> Check:
    """A share between 0 and 1; 35 gets 0.35 as the nearest."""
    allowed = f"a share from {low:g} to {high:g} (0.35 for 35 %)"

    def check(value: Any) -> float:
        value = as_number(value, allowed, unit="share", low=low, high=high)
        if low <= value <= high:
            return float(value)
        if 1 < value <= 100 and low <= value / 100 <= high:
            nearest = value / 100
        else:
            nearest = min(max(value, low), high)
        raise DesignError("", value, allowed, f"{nearest:g}", problem="is not a share")

    return check


def word_of(choices: Sequence[str]) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise DesignError("", value, choices, problem="is not a word")
        if value not in choices:
            other = _OTHER_NAMES.get(value.lower())
            nearest = other if other in choices else None
            raise DesignError("", value, choices, nearest, problem="is not one of the choices")
        return value

    return check


def words_of(choices: Sequence[str], empty: bool = False) -> Check:
    """A list of some of a few words, each once; an empty one, as a plan prints where there are
    none, leaves the field open, or is kept where it says something (`empty`)."""

    def check(value: Any) -> list[str] | None:
        if not isinstance(value, (list, tuple)):
            raise DesignError("", value, choices, problem="is not a list of words")
        for word in value:
            if word not in choices:
                raise DesignError("", word, choices, problem="is not one of the choices")
        return list(dict.fromkeys(value)) or ([] if empty else None)

    return check


def runs_from(low: int, high: int) -> Check:
    """Runs of layers that follow one another: pairs of the first layer and the one after the last,
    from layer `low`, `high` at most. Equal ends are a run without a layer; an empty list leaves the
    field open."""
    allowed = "runs of layers in order, such as [[0, 7], [7, 16], [16, 24]]"

    def check(value: Any) -> list[list[int]] | None:
        if not isinstance(value, (list, tuple)):
            raise DesignError("", value, allowed, problem="is not a list of pairs")
        at = low
        for pair in value:
            if not isinstance(pair, list) or [type(layer) for layer in pair] != [int, int]:
                raise DesignError("", pair, allowed, problem="is not a pair of whole numbers")
            first, end = pair
            if first != at or not at <= end <= high:
                problem = f"does not begin at layer {at} and end after it"
                nearest = [at, min(max(at, end), high)]
                raise DesignError("", pair, allowed, nearest, problem=problem)
            at = end
        return list(value) or None

    return check


def text_up_to(high: int = 200, lines: bool = False) -> Check:
    """Text of at most `high` printable characters: one line, or several where `lines`."""
    allowed = f"text of at most {high:,} printable characters" + ("" if lines else " on one line")

    def check(value: Any) -> str:
        problem = ""
        if not isinstance(value, str):
            problem = "is not text (in quotes where it looks like a number)"
        elif len(value) > high:
            problem = f"has {len(value):,} characters"
        elif not all(c.isprintable() or lines and c in "\n\t" for c in value):
            problem = "holds a control character"
        elif not value.strip():
            problem = "is empty"
        if problem:
            raise DesignError("", value, allowed, problem=problem)
        return str(value)

    return check


def true_or_false(value: Any) -> bool:
    """True or false; yes and no get them as the nearest."""
    value = scalar(value)
    if not isinstance(value, bool):
        nearest = _MEANT.get(str(value).lower())
        problem = "is not true or false"
        raise DesignError("", value, ("true", "false"), nearest, problem=problem)
    return value


def list_of(what: str, most: int, least: int = 1) -> Check:
    """A list of `least` to `most` of `what`; each of them is checked by the type."""

    def check(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and least <= len(value) <= most:
            return value
        allowed = f"a list of {least} to {most:,} {what}"
        raise DesignError("", value, allowed, problem="is not such a list")

    return check
