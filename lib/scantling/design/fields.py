"""The kinds of value a design file holds: counts, amounts, shares, words, text; each refuses what
it is not, in one line."""

import sys
from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ..base.errors import DesignError
from ..base.records import Lines
from ..base.show import is_number, scalar
from ..base.typed import number

_SCALES = tuple("kKMGBT")
_BINARY = [2.0**i for i in range(10)]


class Section(BaseModel):
    """A mapping of the design file: frozen, and a field it does not know is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False
    )

    alone: ClassVar[Mapping[Lines, str]] = {}  # fields of which one may be given: what to write

    @model_validator(mode="after")
    def _one_of_each(self):
        for fields, allowed in self.alone.items():
            first, *more = [f for f in fields if getattr(self, f) is not None] or [""]
            if more:
                raise DesignError(
                    more[0], getattr(self, more[0]), allowed, problem=f"is given beside {first}"
                )
        return self

    def given(self) -> dict:
        """The fields that were given, as plain data."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


def as_number(value, allowed: str, whole: bool = False):
    """A Python int or float from `value`, 15T with its scale read; DesignError for other text,
    truth values, lists, nan and infinity. whole : K after a power of two is 1,024, as the field
    says it: 8k tokens of a sequence are 8,192."""
    value = scalar(value)
    if isinstance(value, str) and value.endswith(_SCALES) and (found := number(value)):
        value = found[0]
        if whole and value / 1000 in _BINARY:
            value *= 1.024
    if not is_number(value):
        nearest = None
        problem = "is not a number"
        if isinstance(value, str):
            problem = "is text, not a number"
            if found := number(value):
                nearest = f"{found[0]:.12g}".replace("e+", "e")
        raise DesignError("", value, allowed, nearest, problem=problem)
    if isinstance(value, float) and not isfinite(value) or abs(value) > sys.float_info.max:
        raise DesignError("", value, allowed, problem="is not a finite number")
    return value


def _short(number) -> str:
    return (
        f"{number:,}"
        if isinstance(number, int) and number < 10**7
        else f"{number:g}".replace("e+0", "e").replace("e+", "e")
    )


def checked(allowed, check):
    """A validator that takes nothing as nothing; `check` gives (value, what is wrong with it, the
    nearest)."""

    def validated(value):
        if value is None:
            return None
        found, problem, *nearest = check(value)
        if problem:
            raise DesignError("", found, allowed, *nearest, problem=problem)
        return found

    return BeforeValidator(validated)


def amount(low: float, high: float, of: type = float, what: str = "a number"):
    """Validator of a finite number from `low` to `high`."""
    allowed = f"{what} from {_short(low)} to {_short(high)}"

    def check(value):
        value = as_number(value, allowed, of is int)
        if of is int and value % 1:
            return value, "is not a whole number", _short(max(low, round(value)))
        if value < low:
            return value, "is too small", _short(low)
        return (value, "is too large", _short(high)) if value > high else (of(value), "")

    return checked(allowed, check)


# 1.6e4 is one, 1.5 is not
count = partial(amount, of=int, what="a whole number")


def share(low: float, high: float):
    """Validator of a share between 0 and 1; 35 gets 0.35 as the nearest."""
    allowed = f"a share from {low:g} to {high:g} (0.35 for 35 %)"

    def check(value):
        value = as_number(value, allowed)
        if low <= value <= high:
            return float(value), ""
        percent = 1 < value <= 100 and low <= value / 100 <= high
        nearest = value / 100 if percent else min(max(value, low), high)
        return value, "is not a share", f"{nearest:g}"

    return checked(allowed, check)


def word(*choices: str):
    """Validator of one of a few words."""

    def check(value):
        if not isinstance(value, str):
            return value, "is not a word"
        return value, "" if value in choices else "is not one of the choices"

    return checked(choices, check)


def listed(*choices: str):
    """Validator of a list of some of a few words, each once; an empty one, as a plan prints where
    there are none, leaves the field open."""

    def check(value):
        if not isinstance(value, (list, tuple)):
            return value, "is not a list of words"
        if not value:
            return None, ""
        odd = [v for v in value if v not in choices]
        return (odd[0], "is not one of the choices") if odd else (list(dict.fromkeys(value)), "")

    return checked(choices, check)


def runs(low: int = 0, high: int = 10_000):
    """Validator of runs of layers that follow one another: pairs of the first layer and the one
    after the last, from layer `low`, `high` at most. Equal ends are a run without a layer; an empty
    list leaves the field open."""

    def check(value):
        if not isinstance(value, (list, tuple)):
            return value, "is not a list of pairs"
        at = low
        for pair in value:
            if not isinstance(pair, list) or [*map(type, pair)] != [int, int]:
                return pair, "is not a pair of whole numbers"
            first, end = pair
            if first != at or not at <= end <= high:
                return (
                    pair,
                    f"does not begin at layer {at} and end after it",
                    [at, min(max(at, end), high)],
                )
            at = end
        return value or None, ""

    return checked("runs of layers in order, such as [[0, 7], [7, 16], [16, 24]]", check)


def text(high: int = 200, lines: bool = False):
    """Validator of text: one printable line, or several where `lines`."""
    allowed = f"text of at most {high:,} printable characters" + ("" if lines else " on one line")

    def check(value):
        if not isinstance(value, str):
            return value, "is not text (in quotes where it looks like a number)"
        problem = "" if value.strip() else "is empty"
        if not all(c.isprintable() or lines and c in "\n\t" for c in value):
            problem = "holds a control character"
        return value, f"has {len(value):,} characters" if len(value) > high else problem

    return checked(allowed, check)


_MEANT = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}


def flag():
    """Validator of true or false."""

    def check(value):
        value = scalar(value)
        if isinstance(value, bool):
            return value, ""
        return value, "is not true or false", _MEANT.get(str(value).lower())

    return checked(("true", "false"), check)


def about(
    description: str,
    unit: str = "",
    example: Any = None,
    choices: tuple = (),
    default=None,
    bounds: Mapping | None = None,
    usual=None,
):
    """What the published schema, the comments of `init` and the desk say about a field."""
    extra = {"unit": unit} if unit else {}
    if choices:
        extra["enum"] = [*choices, None]
    if usual is not None:
        extra["default"] = usual
    if bounds:
        extra |= {"minimum": bounds["low"], "maximum": bounds["high"]}
    return Field(
        default=default,
        description=description + (f" [{unit}]" if unit else ""),
        examples=None if example is None else [example],
        json_schema_extra=extra or None,
    )


class Like(BaseModel):
    """A catalogue row with some of its figures replaced: `{like: h100-sxm, hbm_gb: 96}`."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())
    like: Annotated[str, text()] = Field(
        description="the catalogue id to start from", examples=["h100-sxm"]
    )

    def given(self) -> dict:
        return self.model_dump()
