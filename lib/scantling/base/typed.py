"""Numbers as people type them, by one rule wherever somebody types one: the form, the walkthroughs,
a line of text for `init`, and the nearest value that a refusal names."""

import re

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
