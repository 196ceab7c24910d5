"""Words as other languages and hasty fingers write them, made the words that the rules know."""

import re
from difflib import SequenceMatcher, get_close_matches
from functools import cache

from scantling.base.files import table

from .idle import idle

_LETTERS = re.compile(r"(?<![\w.-])[^\W\d_]{3,}(?![\w-])")
_UNITS = re.compile(r"(?<=\d)\s?(?:Go|[Gg]igs?|[Gg]igabytes?)(?!\w)")
_USD_BEFORE = re.compile(r"\b(?:US\s?\$|USD\s?\$?)\s*(?=\d)", re.IGNORECASE)
_USD_BEHIND = re.compile(
    r"(?<![\w.,$€£¥])(\d(?:[\d.,]*\d)?(?:\s?(?:[km]|mn|bn|mio\.?|thousand|millions?|billions?))?)\s*"
    r"(?:US\s?\$|\$(?![^\S\n]*\d)|(?:USD|US\s+dollars?|dollars?)\b)",
    re.IGNORECASE,
)
_ALIKE = 0.87  # of two words that differ by one letter
_TURNED = 0.8  # of two words of the same letters, two of them turned
_SHORTEST = 5  # letters of a word that is mended
_SHORTEST_TURNED = 4  # where two of its letters have changed places
# numbers by ten thousands: 700亿, 2 万亿, 1.2万
_MYRIADS = {"万亿": 1e12, "千亿": 1e11, "百亿": 1e10, "亿": 1e8, "万": 1e4, "千": 1e3}
_IN_MYRIADS = re.compile(r"(\d+(?:\.\d+)?)\s?(万亿|千亿|百亿|亿|万|千)")
# of what money does not buy: 5 lakh samples, and not 10 lakh of a budget
_IN_LAKHS = re.compile(
    r"(\d+(?:\.\d+)?)\s?(lakh|crore)s?(?=\s+(?:[a-z-]+\s+)?(?:samples|examples|rows|pairs|records"
    r"|prompts|conversations|documents|tokens|steps|parameters|params))",
    re.IGNORECASE,
)
_LAKHS = {"lakh": 1e5, "crore": 1e7}
_ELIDED = re.compile(r"\b[ldqn]['’](?=[^\W\d])", re.IGNORECASE)  # l'entraînement d'un
HAN = re.compile(r"[\u3400-\u9fff]+")
_HOW_MANY_DE = re.compile(r"\b(how many) de\s+(?=\w)")  # combien de
# one digit before what it counts: 两台, 三个月
_DIGITS = dict(zip("一二两三四五六七八九十", (1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10), strict=True))
_DIGIT = re.compile(
    rf"(?<![{''.join(_DIGITS)}百千万\d])([{''.join(_DIGITS)}])(?=台|张|块|卡|机|周|天|层|轮|节点|个(?:月|星期|节点|机))"
)
_MACHINES = re.compile(r"(?<=\d)\s?机(?!器)")  # 4机32卡
_PRO = re.compile(r"\bpro(?=\s+[A-ZÄÖÜ])")  # pro Parameter
_JE = re.compile(r"\bje(?=\s+\d)")  # mit je 8 H100
_IN_COMPOUND = re.compile(r"(?<=\w-)(?:Stunden?|Tagen?|Wochen?|Monaten?)\b", re.IGNORECASE)
_GERMAN_BILLION = re.compile(r"(?<=\d)\s?Billion\b")


@cache
def _other() -> dict[str, str]:
    """Words of other languages and what they are in English."""
    words: dict[str, str] = table(__file__, "words")["other_languages"]
    return words


@cache
def _mended() -> tuple[str, ...]:
    """Words of weight that are mended where they are misspelt, one and many."""
    words = table(__file__, "words")["mended"].split()
    return tuple(dict.fromkeys(form for word in words for form in (word, f"{word}s")))


@cache
def _well_spelt() -> frozenset[str]:
    """Words that are left as they are."""
    return frozenset((*_mended(), *idle()))


def in_english(text: str) -> str:
    """`text` with words of other languages in English, misspelt words of weight mended, and
    gigabytes as GB. A Billion between German words is no English one: it is asked about."""
    text = _IN_LAKHS.sub(_lakhs, _from_chinese(text))
    if _german() & {word.lower() for word in _LETTERS.findall(text)}:
        text = _IN_COMPOUND.sub(_word, _PRO.sub("per", text))
        text = _JE.sub("each", _GERMAN_BILLION.sub(" Bio", text))
    return _HOW_MANY_DE.sub(r"\1 ", _LETTERS.sub(_word, _UNITS.sub(" GB", _ELIDED.sub("", text))))


def in_dollars(text: str) -> str:
    """`text` with every sum in dollars as $5M: USD 5M, US$ 5M, 5 million dollars, 2.5 $."""
    return _USD_BEHIND.sub(r"$\1", _USD_BEFORE.sub("$", text))


@cache
def _chinese() -> dict[str, str]:
    """Chinese words and marks and what they are in English, the longest first."""
    words: dict[str, str] = table(__file__, "words")["chinese"]
    return dict(sorted(words.items(), key=lambda item: -len(item[0])))


@cache
def _german() -> frozenset[str]:
    """Words by which a line is German."""
    return frozenset(table(__file__, "words")["german"].split())


def _from_chinese(text: str) -> str:
    """`text` with its Chinese numbers, words and marks in English; other words stay."""
    for mark, english in table(__file__, "words")["chinese_marks"].items():
        text = text.replace(mark, english)
    if not HAN.search(text):
        return text
    text = _DIGIT.sub(lambda match: str(_DIGITS[match[1]]), text)
    text = _MACHINES.sub(" machines ", _IN_MYRIADS.sub(_myriads, text))
    for word, english in _chinese().items():
        text = text.replace(word, f" {english} ")
    return " ".join(text.split())


def _myriads(match: re.Match[str]) -> str:
    """A number as English scales it."""
    value = float(f"{float(match[1]) * _MYRIADS[match[2]]:.12g}")
    for scale, letter in ((1e12, "T"), (1e9, "B")):
        if value >= scale:
            return f"{value / scale:.12g}{letter} "
    return f"{value:.12g} "


def _lakhs(match: re.Match[str]) -> str:
    """A number of Indian English, written out."""
    return f"{float(match[1]) * _LAKHS[match[2].lower()]:.0f}"


def _word(match: re.Match[str]) -> str:
    """One word: English where it is another language's, mended where it is one letter off."""
    word = match[0].lower()
    if word in _other():
        return _other()[word]
    if len(word) < _SHORTEST_TURNED or word in _well_spelt():
        return match[0]
    for close in get_close_matches(word, _mended(), 3, _TURNED if len(word) > 4 else _TURNED - 0.1):
        if len(word) < _SHORTEST and sorted(close) != sorted(word):
            continue
        near = SequenceMatcher(None, word, close).ratio() >= _ALIKE
        if near and abs(len(close) - len(word)) <= 1 or sorted(close) == sorted(word):
            return close
    return match[0]
