"""Numbers and dates as people type them, by one rule wherever somebody types one: the form, the
walkthroughs, a line of text for `init`, and the nearest value that a refusal names."""

import re
from datetime import date

from .units import DAY_S, HOUR_S, MINUTE_S

SCALES = {
    "": 1.0,
    "k": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "g": 1e9,
    "b": 1e9,
    "bn": 1e9,
    "t": 1e12,
    "tn": 1e12,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
# words that may stand behind a typed number, by the unit of its field: how many of that one is. A
# word in small letters is read in any; bits and bytes differ by a letter's size alone
BEHIND: dict[str, dict[str, float]] = {
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
        "m": MINUTE_S,
        "min": MINUTE_S,
        "h": HOUR_S,
        "hours": HOUR_S,
        "d": DAY_S,
        "days": DAY_S,
    },
    "h": {"h": 1.0, "hours": 1.0, "m": 1 / 60, "min": 1 / 60, "d": 24.0, "days": 24.0},
    "ms": {"ms": 1.0, "us": 0.001, "s": 1000.0},
    "years": {"y": 1.0, "year": 1.0, "years": 1.0, "months": 1 / 12},
    "bytes": {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15},
    "USD/year": {"usd": 1.0, "dollars": 1.0, "usd/year": 1.0},
    "USD/kWh": {"usd": 1.0, "dollars": 1.0, "usd/kwh": 1.0},
    "tokens": {"tokens": 1.0, "tok": 1.0},
    "sequences": {"sequences": 1.0, "seq": 1.0},
    "parameters": {"params": 1.0},
    "USD": {"usd": 1.0, "dollars": 1.0},
    "USD/h": {"usd": 1.0, "dollars": 1.0, "usd/h": 1.0},
    "MW": {"mw": 1.0, "kw": 0.001, "gw": 1000.0},
    "GB": {"gb": 1.0, "mb": 0.001, "tb": 1000.0, "pb": 1e6},
    "GB/s": {
        "GB": 1.0,
        "GB/s": 1.0,
        "MB/s": 1e-3,
        "TB/s": 1e3,
        "Gb/s": 1 / 8,
        "Gbit/s": 1 / 8,
        "Gbps": 1 / 8,
    },
    "MB/s": {"MB/s": 1.0, "GB/s": 1e3},
    "Gbit/s": {"Gbit/s": 1.0, "Gb/s": 1.0, "Gbps": 1.0, "Tbit/s": 1e3, "Tb/s": 1e3, "GB/s": 8.0},
    "devices": {"devices": 1.0, "gpus": 1.0},
    "nodes": {"node": 1.0, "nodes": 1.0},
    "sites": {"site": 1.0, "sites": 1.0},
}
# of money that is no dollar of the United States: words and signs, as patterns
CURRENCIES = (
    r"euros?|eur|gbp|(?:british\s+)?pounds?(?:\s+sterling)?|quid|yen|jpy|yuan|cny|rmb|renminbi"
    r"|rupees?|inr|crores?|lakhs?|francs?|chf|won|krw|sek|nok|dkk|kroner|kronor|cad|aud|sgd|hkd"
    r"|nzd|twd|aed|dirhams?|sar|riyals?|rub|roubles?|rubles?|pesos?|mxn|rand|zar|reais|brl|zloty|pln"
)
CURRENCY_SIGNS = r"€|£|¥|₹|₩|₽|(?<![a-z])(?:[cas]|(?:hk|nz|au|ca|nt)\s?)\$"
_MONEY = rf"(?<![a-z])[kmb]?(?:{CURRENCIES})(?![a-z])|{CURRENCY_SIGNS}"
_DOLLARS = re.compile(r"\s*(?:us\s?\$|\$|usd|dollars?)\s*", re.IGNORECASE)
_SPACES = "\u00a0\u2009\u202f"  # no-break, thin, narrow no-break: they stand in numbers alone
_BETWEEN = rf",.'_\u2019{_SPACES}"
_GROUPS = re.compile(r"[1-9]\d{0,2}(?P<s>[,.'_ \u2019])\d{3}(?:(?P=s)\d{3})*", re.ASCII)
_ENGLISH = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII)
# in a sentence a plain space ends a number; digits behind a letter are part of a name
_IN_TEXT = re.compile(rf"(?<![\w.,-])(?>\d(?:[\d{_BETWEEN}]*\d)?)", re.ASCII)
_WHOLE = re.compile(
    rf"\s*(?P<sign>[-+\u2212]?)\s*(?P<digits>\.\d+|\d(?:[\d{_BETWEEN} ]*\d)?)"
    r"(?P<power>e[-+]?\d{1,4})?\s*(?P<scale>[a-z]*)\s*(?P<share>%?)\s*",
    re.ASCII | re.IGNORECASE,
)


def digits(text: str) -> str | None:
    """The digits of a number, with a decimal point and nothing between thousands; None for what
    is none.

    Of a comma and a point the last is the decimal sign and the other stands between thousands
    (1,024.5 and 1.024,5). A sign that stands alone is between thousands where it stands several
    times (1.024.000) and, of a comma, where three digits follow one to three that begin with no
    zero (1,024; 0,125 and 7,5 are decimals). A point that stands alone is the decimal point.
    Spaces, apostrophes and underscores stand between thousands only.
    """
    text = re.sub(f"[{_SPACES}]", " ", text)
    if re.fullmatch(r"\d*\.?\d+", text, re.ASCII):
        return text
    signs = re.findall(r"[,.]", text)
    whole = text
    sign = ""
    part = ""
    if len(set(signs)) == 2 and signs.count(signs[-1]) == 1:
        whole, sign, part = text.rpartition(signs[-1])
    elif len(signs) == 1 and (signs == ["."] or not _GROUPS.fullmatch(text)):
        whole, sign, part = text.partition(signs[0])
    if not (whole.isdigit() or _GROUPS.fullmatch(whole)) or sign and not part.isdigit():
        return None
    return re.sub(r"\D", "", whole) + ("." + part if part else "")


def number(text: str) -> tuple[float, bool] | None:
    """(value, whether it was typed in per cent) of a number with or without a scale: 7,5, 1,024,
    50M, 1.5 trillion, 40% (0.4); None for what is no number."""
    match = _WHOLE.fullmatch(text) if len(text) <= 500 else None
    if not match:
        return None
    plain = digits(match["digits"])
    scale = SCALES.get(match["scale"].lower())
    share = bool(match["share"])
    if plain is None or scale is None or (share and match["scale"]):
        return None
    value = float(plain + (match["power"] or "")) * scale
    if share:
        value = float(f"{value / 100:.15g}")
    if match["sign"] in ("-", "\u2212"):
        value = -value
    return value, share


def amount(text: str, unit: str) -> float | None:
    """A number in the unit of its field, as it is typed with or without one behind it: 90 d, 2 TB,
    400 Gb/s; 40% of a share. None for what is no number, or has another unit."""
    plain = text.strip()
    plain = plain.removeprefix("$") if unit.startswith("USD") else plain
    words = BEHIND.get(unit, {})
    found = re.fullmatch(r"(.*?\d.*?)\s*([^\W\d_][^\W\d_/]*(?:/[a-zA-Z]+)?)", plain[:500])
    factor = words.get(found[2], words.get(found[2].lower())) if found else None
    typed = number(found[1] if found and factor else plain)
    if typed is None or (typed[1] and unit != "share"):
        return None
    return typed[0] * (factor or 1)


def currency(text: str) -> str | None:
    """The word or sign of money in a text that is no dollar of the United States; None where there
    is none. Words of a name are told apart by _: budget_eur."""
    match = re.search(_MONEY, text.replace("_", " "), re.IGNORECASE)
    return match[0] if match else None


def dollars(text: str) -> float | None:
    """A number of dollars as it is typed with its sign: $2.5, 2.5 USD; None for anything else."""
    typed = number(_DOLLARS.sub("", text, count=1))
    return typed[0] if typed and _DOLLARS.search(text) else None


def with_points(text: str) -> str:
    """A sentence whose numbers have a decimal point; English thousands, and what is no number by
    the rule, such as a version, stay."""
    return _IN_TEXT.sub(_with_point, text)


def _with_point(match: re.Match[str]) -> str:
    text = match[0]
    if _ENGLISH.fullmatch(text):
        return text
    return digits(text) or text


DATES = "a date such as 2026, 2026-05 or 2026-05-07"


def is_date(text: str) -> bool:
    """Whether a text is a day, a month or a year of the calendar as ISO 8601 writes it."""
    if not re.fullmatch(r"\d{4}(-\d\d){0,2}", text, re.ASCII):
        return False
    try:
        date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return False
    return True
