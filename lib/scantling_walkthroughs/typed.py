"""What people type into an answer: numbers with units and small sums, keys of options, plans."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from math import isfinite

from scantling.base.files import table
from scantling.base.records import Lines
from scantling.base.typed import digits

_WORDS = table(__file__, "typed")
_PREFIX, _ALSO, _NAMED = (_WORDS[k] for k in ("prefixes", "also", "named"))
# (pattern of a unit, what it counts); (factor, said too high, said too low)
DIMENSIONS = tuple(_WORDS["dimensions"].items())
FACTORS = tuple(map(tuple, _WORDS["factors"]))
_TIME = {name: size for names, size in _WORDS["times"].items() for name in names.split()}
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
_FAMILIES = (_TIME, _BYTES, _RATES, _MONEY, _SHARE, _PREFIX)
_NEAR = 1.05
_SIGNS = str.maketrans(dict(zip("x×·÷−^_", ("*", "*", "*", "/", "-", "**", ""))))
_SUM = re.compile(r"(?:[\d.,_'’\s()eE+\-*/×·÷^−]|(?<=\d)\s*x\s*(?=\d))+")
_SUM_WITHOUT_E = re.compile(r"[\d.,_\s()+\-*/×·÷^−]+")
_TERM = re.compile(r"\d(?:[\d.,_'’]*\d)?")
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


# ---------------------------------------------------------------- numbers
@cache
def factors(unit: str) -> dict[str, float]:
    """{what may stand behind a number: how many of the unit asked for one of it makes}; no spaces,
    first as typed, then in small letters."""
    family = next((f for f in _FAMILIES if unit in f), {})
    one = family[unit] if family and family is not _TIME else 1.0
    own = {unit, unit.rstrip("s"), *_ALSO.get(unit, ())} - {""}
    exact = {p: size / one for p, size in _PREFIX.items()}
    exact |= {f"{p}{name}".replace(" ", ""): size for p, size in _PREFIX.items() for name in own}
    exact |= {name: size / family[unit] for name, size in family.items()}
    exact |= dict.fromkeys(own, 1.0)
    return (
        {name.lower(): size for name, size in exact.items()}
        | {name.lower(): 1.0 for name in own}
        | exact
    )


@cache
def confusions(unit: str) -> tuple[tuple[float, float, str], ...]:
    """(factor to the unit asked for, ratio up to which it counts, what to say) of the ways in which
    a right number stands in a wrong unit."""
    asked = _NAMED.get(unit, unit) or "a plain number"
    if unit in _TIME:
        return tuple(
            (
                _TIME[other] / _TIME[unit],
                _NEAR,
                f"Right as {_NAMED.get(other, other)}, but {asked} are asked.",
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
            (1 / 8, _NEAR, f"Those are bits; {asked} are asked, eight times fewer."),
            (1.024**binary, 1.01, f"Those are powers of two, {unit[0]}iB; {asked} are asked."),
        ]
    out += [
        (
            ten,
            _NEAR,
            f"The digits are right, the power of ten is not: the answer is wanted in {asked}.",
        )
        for p in (3, 6, 9, 12)
        for ten in (10.0**p, 10.0**-p)
    ]
    return tuple(out)


def dimension(unit: str) -> str:
    """What a unit counts; nothing where it is unknown."""
    letters = unit.strip().lower().replace(" ", "")
    return next((name for form, name in DIMENSIONS if re.fullmatch(form, letters)), "")


def misfit(typed: str, unit: str) -> str:
    """Why an answer in the unit `typed` is none in `unit`."""
    asked = _NAMED.get(unit, unit) or "plain numbers"
    given = dimension(typed)
    if given and given != dimension(unit):
        return f"{typed} is {given}, the answer is wanted in {asked}"
    return f"the answer is wanted in {asked}, not in {typed!r}"


def read_number(text, unit: str = "") -> float:
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
        return worth(ast.parse(plain, mode="eval").body, constant=float)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, KeyError, TypeError):
        return None


def worth(node, names: Callable = {}.__getitem__, constant: Callable = lambda value: value):
    """What a parsed expression comes to: `names` gives what a name stands for, `constant` what a
    number does; attributes, parts and calls of what a name stands for. Raises ValueError for
    anything else."""
    of = partial(worth, names=names, constant=constant)
    match node:
        case ast.Constant(value):
            return constant(value)
        case ast.Name(name):
            return names(name)
        case ast.Attribute(holder, name):
            return getattr(of(holder), name)
        case ast.Subscript(holder, key):
            return of(holder)[of(key)]
        case ast.Call(function, given, named):
            return of(function)(*map(of, given), **{k.arg: of(k.value) for k in named})
        case ast.BinOp(left, sign, right):
            return _OPERATORS[type(sign)](of(left), of(right))
        case ast.UnaryOp(sign, value):
            return _OPERATORS[type(sign)](of(value))
    raise ValueError("no sum of numbers")


# ---------------------------------------------------------------- keys of options
def read_keys(answer, options) -> list[str] | None:
    """The keys of options that somebody named: "b", "(B)", "a, c", "I think a and c", "ac", ["a",
    "c"], or an option's own words or their start; None where they are none, or more is said."""
    if not isinstance(answer, str):
        several = isinstance(answer, Iterable) and not isinstance(answer, bytes)
        parts = [read_keys(a, options) for a in answer] if several else [None]
        return None if None in parts else sum(parts, [])
    keys = [o.key for o in options]
    text = answer.strip().lower()
    named = [
        o.key
        for o in options
        if text == o.text.strip().lower()
        or len(text) > 7
        and o.text.lower().startswith(text)
        or re.match(rf"\(?{re.escape(o.key)}(\s*[).:]\s+\S\S|, (because|since|as) )", text)
    ]
    if len(named) == 1:
        return named
    words = re.findall(r"[^\s,;.:?!()+&/'\"]+", re.sub(_WORDS["beside"], " ", text))
    if len(words) == 1 and {*words[0]} <= {*keys}:
        words = list(words[0])
    return words if words and {*words} <= {*keys} else None


# ---------------------------------------------------------------- plans
def read_plan(answer, names: Lines) -> dict | None:
    """A plan as it is typed: "tp 8, pp 16", "tp=8 pp=16", "TP8 PP16", a mapping, or as many numbers
    as there are names to set; None for anything else."""
    if isinstance(answer, str):
        named = r"([a-z_]+)['\"]?(?:\s*[:=]\s*|\s+|(?=\d))([a-z0-9_]+)"
        bare = re.fullmatch(r"[\d\s,;x×·*/()]+", answer.strip())
        answer = re.findall(r"\d+", answer) if bare else dict(re.findall(named, answer.lower()))
    if isinstance(answer, list | tuple) and len(answer) == len(names):
        answer = dict(zip(names, answer))
    return {str(k): _whole(v) for k, v in answer.items()} if isinstance(answer, Mapping) else None


def _whole(value):
    """A count as an int, whatever it came as."""
    if isinstance(value, str) and re.fullmatch(r"\d+", value.strip()):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
