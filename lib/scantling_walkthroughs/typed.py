"""What people type into an answer: numbers with units and small sums, keys of options, plans."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any, NamedTuple

from scantling.base.records import Lines
from scantling.base.typed import digits
from scantling.base.units import DAY_S

from .question import FLEET, KEPT, SENT, WORK, Number, Option

_PREFIX = {
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "B": 1e9,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Z": 1e21,
    "Y": 1e24,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
# other names of a unit that is asked for
_ALSO = {
    "%": ("percent",),
    "parameters": ("params",),
    "devices": ("gpus", "gpu"),
    "times": ("x", "×", "fold"),
    "FLOP": ("flops",),
    "device-hours": ("gpu-hours", "h", "hours"),
    "h": ("device-hours", "gpu-hours"),
    "micro-batches": ("microbatches",),
}
# units as they are said to the reader
_NAMES = {
    "%": "per cent",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "$": "dollars",
    "k$": "thousand dollars",
    "M$": "million dollars",
    "T": "trillions",
}
# (pattern of a unit's letters, what it counts): what is counted behind a unit not asked for
DIMENSIONS = (
    (r"[kmgtpez]?i?b(it)?s?/s|[kmgt]?i?b(it)?ps|[kmgt]?bytes/s", "a rate of bytes"),
    (r"[kmgtpez]?flops?/(s|device)|[kmgtpez]?flops/s", "FLOP per second"),
    (r"tokens?/.*", "a rate of tokens"),
    (r"[kmgtpez]?flops?", "FLOP"),
    (r"[kmgtpez]?i?b|bytes?|bits?", "bytes"),
    (
        r"us|µs|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hrs?|hours?|days?|d|weeks?|months?|years?",
        "time",
    ),
    (r"[kmb]?[$€]|[kmb]?usd|dollars?|eur|euros?", "money"),
    (r"%|percent|pct|points?", "a share"),
    (
        r"devices?|gpus?|nodes?|layers?|params?|parameters?|tokens?|heads?|experts?|stages?|steps?"
        r"|sequences?",
        "a count",
    ),
)


class Factor(NamedTuple):
    """What a wrong factor usually is: how it is said of an answer that much too high, and too low
    (nothing where no usual slip leads there); the ratio up to which it counts is 1.02. `of`: the
    units and the `Number.made_of` that can have it."""

    times: float
    high: str
    low: str
    of: tuple[str, ...]


_NODES = "devices of a node (eight) taken for one, or the reverse"
_SIXTY = "a step of sixty between seconds, minutes and hours"
FACTORS = (
    Factor(2, "multiply and add counted twice over", "a multiply-add counted as one", ("FLOP",)),
    Factor(
        2,
        "both ways counted, or twice the bytes of a value",
        "one way only, or half the bytes of a value",
        (SENT,),
    ),
    Factor(2, "twice the bytes of a value", "half the bytes of a value", (KEPT,)),
    Factor(
        3,
        "forward and backward counted where one of them is meant",
        "the forward pass alone, without the backward that costs twice as much",
        (WORK,),
    ),
    Factor(4 / 3, "a recomputed forward is in it", "", (WORK,)),
    Factor(8, "bits for bytes", "bytes for bits", (KEPT, SENT)),
    Factor(8, _NODES, _NODES, (FLEET,)),
    Factor(24, "hours for days", "days for hours", ("h", "days", "device-hours", "M$")),
    Factor(60, _SIXTY, _SIXTY, ("s", "min", "h", "days", "tokens/s")),
    Factor(3600, "seconds for hours", "hours for seconds", ("h", "days", "M$", "tokens/s")),
    Factor(DAY_S, "seconds for days", "days for seconds", ("days", "M$", "tokens/s")),
    Factor(100, "per cent for a share", "a share for per cent", ("%",)),
)
_SECONDS = {
    **dict.fromkeys(("us", "µs"), 1e-6),
    "ms": 1e-3,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "m"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("days", "day", "d"), DAY_S),
    **dict.fromkeys(("weeks", "week"), 604800.0),
}
# words beside the key of an option that say nothing more of it
_FILLING = (
    r"\b(and|option|answer|my|the|is|it is|i think|i would say|i guess|maybe|perhaps|probably"
    r"|only)\b"
)
_DECIMAL = {"": 1.0} | {p: _PREFIX[p] for p in "kKMGTP"}
_BYTES = {
    **{f"{p}{b}": size / 8 for p, size in _DECIMAL.items() for b in ("b", "bit", "bits")},
    **{f"{p}{b}": size for p, size in _DECIMAL.items() for b in ("B", "byte", "bytes")},
    **{f"{p}iB": 1024.0**i for i, p in enumerate("KMGT", 1)},
}
_RATES = {f"{name}{per}": size for name, size in _BYTES.items() for per in ("/s", "ps")}
_MONEY = {
    f"{p}{d}": size
    for p, size in ({"": 1.0} | _PREFIX).items()
    for d in ("$", "usd", "dollars", "dollar")
}
_SHARE = dict.fromkeys(("%", "percent", "pct"), 1.0)
_FAMILIES = (_SECONDS, _BYTES, _RATES, _MONEY, _SHARE, _PREFIX)
_NEAR = 1.05
_SIGNS = str.maketrans({"x": "*", "×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "_": ""})
_SUM = re.compile(r"(?:[\d.,_'’\s()eE+\-*/×·÷^−]|(?<=\d)\s*x\s*(?=\d))+")
_SUM_WITHOUT_E = re.compile(r"[\d.,_\s()+\-*/×·÷^−]+")
_TERM = re.compile(r"\d(?:[\d.,_'’]*\d)?")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


# ---------------------------------------------------------------- numbers
@cache
def factors(unit: str) -> dict[str, float]:
    """{what may stand behind a number: how many of the unit asked for one of it makes}; no spaces,
    first as typed, then in small letters."""
    family = next((f for f in _FAMILIES if unit in f), {})
    one = family[unit] if family and family is not _SECONDS else 1.0
    names = {unit, unit.rstrip("s"), *_ALSO.get(unit, ())} - {""}
    exact = {p: size / one for p, size in _PREFIX.items()}
    exact |= {f"{p}{name}".replace(" ", ""): size for p, size in _PREFIX.items() for name in names}
    exact |= {name: size / family[unit] for name, size in family.items()}
    exact |= dict.fromkeys(names, 1.0)
    return (
        {name.lower(): size for name, size in exact.items()}
        | {name.lower(): 1.0 for name in names}
        | exact
    )


@cache
def confusions(unit: str) -> tuple[tuple[float, float, str], ...]:
    """(factor to the unit asked for, ratio up to which it counts, what to say) of the ways in which
    a right number stands in a wrong unit."""
    unit_name = _NAMES.get(unit, unit) or "a plain number"
    if unit in _SECONDS:
        return tuple(
            (
                _SECONDS[other] / _SECONDS[unit],
                _NEAR,
                f"Right as {_NAMES.get(other, other)}, but {unit_name} are asked.",
            )
            for other in ("ms", "s", "min", "h", "days")
            if other != unit
        )
    if unit == "%":
        return (
            (
                100.0,
                _NEAR,
                "That is the share itself; it is asked in per cent, a hundred times as much.",
            ),
        )
    out = []
    if unit in _BYTES or unit in _RATES:
        binary = max(0, " KMGT".find(unit[0]))
        out = [
            (1 / 8, _NEAR, f"Those are bits; {unit_name} are asked, eight times fewer."),
            (1.024**binary, 1.01, f"Those are powers of two, {unit[0]}iB; {unit_name} are asked."),
        ]
        if binary:
            says = f"Too high by the step from {unit[0]}iB to {unit_name}: it was in {unit_name}."
            out.append((1.024**-binary, 1.01, says))
    out += [
        (
            ten,
            _NEAR,
            f"The digits are right, the power of ten is not: the answer is wanted in {unit_name}.",
        )
        for p in (3, 6, 9, 12)
        for ten in (10.0**p, 10.0**-p)
    ]
    return tuple(out)


def dimension(unit: str) -> str:
    """What a unit counts; nothing where it is unknown."""
    letters = unit.strip().lower().replace(" ", "")
    return next((name for form, name in DIMENSIONS if re.fullmatch(form, letters)), "")


def likely_factors(q: Number) -> tuple[tuple[float, str, str], ...]:
    """(factor, of an answer too high, too low) of the usual slips that this number can have."""
    has = {q.unit, *q.made_of}
    return tuple((f.times, f.high, f.low) for f in FACTORS if has.intersection(f.of))


def misfit(typed: str, unit: str) -> str:
    """Why an answer in the unit `typed` is none in `unit`."""
    unit_name = _NAMES.get(unit, unit) or "plain numbers"
    typed_dimension = dimension(typed)
    if typed_dimension and typed_dimension != dimension(unit):
        return f"{typed} is {typed_dimension}, the answer is wanted in {unit_name}"
    return f"the answer is wanted in {unit_name}, not in {typed!r}"


def read_number(text: Any, unit: str = "") -> float:
    """The number that a person typed, in the unit asked for: 1.2e3, 1,200, 405B, 41 %, $3.5M, "186
    min" where hours are asked, 6 * 405e9 * 15.6e12.

    Raises ValueError for anything else.
    """
    if isinstance(text, bool):
        raise ValueError("a number is wanted")
    if hasattr(text, "__float__") and not isinstance(text, str):
        return _finite(float(text))
    typed = re.sub("[\u00a0\u2009\u202f]", " ", str(text)).strip().lstrip("~≈$ ")
    # the second for an e that is none of an exponent: "5 exabytes"
    leads = filter(None, (form.match(typed) for form in (_SUM, _SUM_WITHOUT_E)))
    values = ((_leading(lead[0]), lead.end()) for lead in leads)
    value, end = next((pair for pair in values if pair[0] is not None), (None, 0))
    if value is None:
        raise ValueError(f"{str(text).strip()[:40]!r} is not a number")
    rest = typed[end:].replace(" ", "").rstrip(".")
    known = factors(unit)
    factor = 1.0 if not rest else known.get(rest, known.get(rest.lower()))
    if factor is None:
        raise ValueError(misfit(rest[:20], unit))
    return _finite(value * factor)


def _finite(value: float) -> float:
    if not isfinite(value):
        raise ValueError("a finite number is wanted")
    return value


def _leading(text: str) -> float | None:
    """The value of a number or a sum of numbers; None where it is neither."""
    joined = re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "", text)
    plain = _TERM.sub(lambda m: digits(m[0]) or m[0], joined).translate(_SIGNS).strip()
    try:
        return _worth(ast.parse(plain, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, KeyError, TypeError):
        return None


def _worth(node: ast.expr) -> float:
    """What a sum of numbers comes to. Raises ValueError for anything else."""
    match node:
        case ast.Constant(int() | float() as value):
            return float(value)
        case ast.BinOp(left, sign, right):
            return _OPERATORS[type(sign)](_worth(left), _worth(right))
        case ast.UnaryOp(ast.USub(), value):
            return -_worth(value)
        case ast.UnaryOp(ast.UAdd(), value):
            return _worth(value)
    raise ValueError("no sum of numbers")


# ---------------------------------------------------------------- keys of options
def read_keys(answer: Any, options: Sequence[Option]) -> list[str] | None:
    """The keys of options that somebody named: "b", "(B)", "a, c", "I think a and c", "ac", ["a",
    "c"], or an option's own words or their start; None where they are none, or more is said."""
    if isinstance(answer, str):
        return _keys_of_text(answer, options)
    if not isinstance(answer, Iterable) or isinstance(answer, bytes):
        return None
    keys: list[str] = []
    for part in answer:
        named = read_keys(part, options)
        if named is None:
            return None
        keys += named
    return keys


def _names(text: str, option: Option) -> bool:
    """Whether a text in small letters is an option's own words, their start, or opens with its key
    and goes on."""
    words = option.text.strip().lower()
    if text == words or (len(text) > 7 and option.text.lower().startswith(text)):
        return True
    opening = rf"\(?{re.escape(option.key)}(\s*[).:]\s+\S\S|, (because|since|as) )"
    return re.match(opening, text) is not None


def _keys_of_text(answer: str, options: Sequence[Option]) -> list[str] | None:
    keys = [o.key for o in options]
    text = answer.strip().lower()
    named = [o.key for o in options if _names(text, o)]
    if len(named) == 1:
        return named
    words = re.findall(r"[^\s,;.:?!()+&/'\"]+", re.sub(_FILLING, " ", text))
    if len(words) == 1 and {*words[0]} <= {*keys}:
        words = list(words[0])
    return words if words and {*words} <= {*keys} else None


# ---------------------------------------------------------------- plans
def read_plan(answer: Any, names: Lines) -> dict[str, Any] | None:
    """A plan as it is typed: "tp 8, pp 16", "tp=8 pp=16", "TP8 PP16", a mapping, or as many numbers
    as there are names to set; None for anything else."""
    if isinstance(answer, str):
        named = r"([a-z_]+)['\"]?(?:\s*[:=]\s*|\s+|(?=\d))([a-z0-9_]+)"
        bare = re.fullmatch(r"[\d\s,;x×·*/()]+", answer.strip())
        answer = re.findall(r"\d+", answer) if bare else dict(re.findall(named, answer.lower()))
    if isinstance(answer, list | tuple) and len(answer) == len(names):
        answer = dict(zip(names, answer))
    if not isinstance(answer, Mapping):
        return None
    return {str(k): _whole(v) for k, v in answer.items()}


def _whole(value: Any) -> Any:
    """A count as an int, whatever it came as."""
    if isinstance(value, str) and re.fullmatch(r"\d+", value.strip()):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
