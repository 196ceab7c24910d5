"""Words as other languages and hasty fingers write them, made the words that the rules know."""

import re
from difflib import SequenceMatcher, get_close_matches
from functools import cache

from scantling.base.files import table

_LETTERS = re.compile(r"(?<![\w.-])[^\W\d_]{3,}(?![\w-])")
_UNITS = re.compile(r"(?<=\d)\s?(?:Go|[Gg]igs?|[Gg]igabytes?)(?!\w)")
_ALIKE = 0.87  # of two words that differ by one letter
_TURNED = 0.8  # of two words of the same letters, two of them turned
_SHORTEST = 5  # letters of a word that is mended


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
    return frozenset((*_mended(), *table(__file__, "words")["fillers"].split()))


def in_english(text: str) -> str:
    """`text` with words of other languages in English, misspelt words of weight mended, and
    gigabytes as GB."""
    return _LETTERS.sub(_word, _UNITS.sub(" GB", text))


def _word(match: re.Match[str]) -> str:
    """One word: English where it is another language's, mended where it is one letter off."""
    word = match[0].lower()
    if word in _other():
        return _other()[word]
    if len(word) < _SHORTEST or word in _well_spelt():
        return match[0]
    for close in get_close_matches(word, _mended(), 3, _TURNED):
        near = SequenceMatcher(None, word, close).ratio() >= _ALIKE
        if near and abs(len(close) - len(word)) <= 1 or sorted(close) == sorted(word):
            return close
    return match[0]
