"""Questions of a line that no rule takes: each is a clause that begins as English questions do, or
a sentence with a question mark."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SENTENCE = re.compile(r"[?!;\n]|\.(?=\s|$)")
_BEGIN = r"(?:^|(?<=[,:;(?!.–—-])|\b(?:and|but|or|so|then|also|plus|because)\b)\s*"
_OPENER = re.compile(
    rf"\b(?:how|what(?!\s+about)|why|whether)\b|(?:^|(?<=[?!.]))\s*which\b|{_BEGIN}(?P<opener>which|when|where|who|is|are|was|does|do|did|should"
    r"|shall|must|am|can|could|will|would|may|might)\b(?!\s+(?:you|any(?:one|body)|some(?:one|body))\b)",
    re.IGNORECASE,
)
_TURNED = re.compile(r"\s+(?:i|we|it|this|that|there|my|our)\b", re.IGNORECASE)  # should we ...
# whether a plan can be carried out: the assessment says it
_FEASIBLE = ("can", "could", "will", "would", "may", "might")


_STATED = re.compile(
    r"whether\b[^,;?]*\d", re.IGNORECASE
)  # whether 96 B300 do a run that is stated


class Asking(NamedTuple):
    """A question without a rule: its words, and whether they ask only if a plan can be carried
    out."""

    words: str
    feasible: bool


def asked_without_answer(text: str, answered: Sequence[tuple[int, int]]) -> Iterator[Asking]:
    """The questions of a text outside the spans that rules took as questions or as alternatives."""
    start = 0
    for end in _ends(text):
        sentence = text[start:end]
        spans = [span for span in answered if start <= span[0] < end]
        marked = text[end : end + 1] == "?"
        openers = [
            match
            for match in _OPENER.finditer(text, start, end)
            if (marked or not match["opener"] or _TURNED.match(text, match.end()))
            and not any(first < match.end() <= last for first, last in answered)
        ]
        if not openers and not spans and marked:
            yield Asking(" ".join(sentence.split()), True)
        stops = [*(match.start() for match in openers[1:]), end]
        for match, stop in zip(openers, stops, strict=False):
            if not any(match.start() <= first < stop for first, _ in spans):
                words = " ".join(text[match.start() : stop].split()).strip(",:; ")
                feasible = (match["opener"] or "").lower() in _FEASIBLE
                yield Asking(words, feasible or _STATED.match(words) is not None)
        start = end + 1


def _ends(text: str) -> Iterator[int]:
    for match in _SENTENCE.finditer(text):
        yield match.start()
    yield len(text)
