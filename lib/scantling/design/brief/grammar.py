"""Reading plain words from left to right: rules match where the scanner stands, the longest wins,
and every word must be used by one.

A rule sets fields, or is understood and sets nothing, saying why. Words that carry no meaning here
are listed one by one (FILLERS);
a negation or a bound is never among them, so it cannot be dropped. What no rule uses is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "million": 1e6,
    "millions": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
    "billions": 1e9,
    "t": 1e12,
    "tn": 1e12,
    "trillion": 1e12,
    "trillions": 1e12,
}
_SCALE = "k|mn|m|bn|b|tn|t|thousand|millions?|billions?|trillions?"
_DAYS = {
    "s": 1 / 86400,
    "sec": 1 / 86400,
    "second": 1 / 86400,
    "m": 1 / 1440,
    "min": 1 / 1440,
    "minute": 1 / 1440,
    "h": 1 / 24,
    "hr": 1 / 24,
    "hour": 1 / 24,
    "d": 1.0,
    "day": 1.0,
    "week": 7.0,
    "wk": 7.0,
    "month": 30.0,
    "year": 365.0,
    "yr": 365.0,
}
_UNIT = "seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|years?|yrs?|s|h|d"

MOST = (
    r"(?:(?:at|a) most|no more than|not more than|not (?:to )?exceed(?:ing)?|(?:a "
    r")?max(?:imum|\.)?(?: of)?|up to|under|below|less than|within|<=|<|≤|(?:is )?limited "
    r"to|limit(?: of)?|capped at|cap of)"
)
LEAST = (
    r"(?:at least|(?:a )?min(?:imum|\.)?(?: of)?|more than|above|over|>=|>|≥|no(?:t)? less "
    r"than|not below|exceeding|(?:a )?target(?:ing)?(?: of)?)"
)
BE = (
    r"(?:\s*(?::|=|is|are|be|of|to|at|must be|should be|has to be|must "
    r"stay|must|should|may|shall|stay|stays|kept|reach|reaching))*"
)


def num(name: str) -> str:
    """Pattern of a number, with a scale (175B, 1.5 trillion, 1e12); its value is `Match.num(name)`.
    Atomic: no scale is given up to fit a rule."""
    return rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d{{1,3}})?|\.\d+)(?:[\s-]?(?P<{name}_s>{_SCALE})(?![a-z0-9]))?)"


def whole(name: str) -> str:
    """Pattern of a whole number, plain, grouped, or in thousands (4096, 16,384, 16K)."""
    return rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+|\d+)(?:(?P<{name}_s>k)(?![a-z0-9]))?)"


def percent(name: str) -> str:
    """Pattern of a share: 60%, 60 percent, 0.6."""
    return rf"(?>(?P<{name}>\d+(?:\.\d+)?)\s*(?P<{name}_p>%|percent|per cent))"


def time(name: str) -> str:
    """Pattern of a duration: 30 days, 2 weeks, 90s."""
    return rf"(?P<{name}>\d+(?:\.\d+)?)[\s-]?(?P<{name}_u>{_UNIT})(?![a-z0-9])"


class Match:
    """A match of a rule, with readers of its numbers."""

    def __init__(self, match: re.Match):
        self.match, self.said = match, match.group(0).strip(" \t\n,.;:")

    def __getitem__(self, name):
        return self.match.groupdict().get(name)

    def num(self, name, k=1e3) -> float:
        scale = (self[name + "_s"] or "").lower()
        value = float(self[name].replace(",", "")) * (k if scale == "k" else SCALES.get(scale, 1.0))
        return (
            round(value) if value == round(value) and abs(value) < 1e18 else float(f"{value:.15g}")
        )

    def whole(self, name, k=1000) -> int:
        return int(self.num(name, k))

    def amount(self, name) -> float:
        return float(self.num(name))

    def plain(self, name) -> float:
        return float(self[name])

    def share(self, name) -> float:
        return float(f"{float(self[name]) / 100:.12g}")

    def days(self, name) -> float:
        return float(f"{self._time(name):.12g}")

    def seconds(self, name) -> float:
        return float(f"{self._time(name) * 86400:.12g}")

    def _time(self, name):
        unit = self[name + "_u"].lower()
        return float(self[name]) * _DAYS[unit if unit in _DAYS else unit.rstrip("s")]


@dataclass(frozen=True)
class Rule:
    pattern: re.Pattern
    act: Callable


class Rules(list):
    """Rules of one subject, in the order in which they were given."""

    def rule(self, *patterns, flags=re.IGNORECASE):
        """Register a function of (notes, match) for patterns; they end at a word's end."""

        def add(act):
            self.extend(Rule(re.compile(rf"(?:{p})(?![A-Za-z0-9])", flags), act) for p in patterns)
            return act

        return add

    def simple(self, path, *patterns, value=None, read=None, why=""):
        """A rule that sets one field to a fixed value, or to what `read` makes of the match: a
        function, or a reader of Match for the group `v`."""
        of = (lambda m: getattr(m, read)("v")) if isinstance(read, str) else read
        self.rule(*patterns)(lambda n, m: n.set(path, of(m) if of else value, m, why))

    def aside(self, why, *patterns):
        """A rule for what is understood and sets nothing."""
        self.rule(*patterns)(lambda n, m: n.nothing(m, why))


@dataclass(frozen=True)
class Read:
    """What was made of some words: the field it set and the value, or why there was nothing to
    set."""

    said: str
    field: str
    value: object = None
    why: str = ""


@dataclass
class Notes:
    """What the rules have gathered so far: fields, facts that need each other, and what was
    read."""

    fields: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    read: list = field(default_factory=list)
    clashes: list = field(default_factory=list)

    def set(self, path: str, value, m: Match, why: str = "") -> None:
        """Field `path` is `value`; a second, different value is a clash."""
        if path in self.fields and self.fields[path] != value:
            self.clashes.append((path, self.fields[path], value, m.said))
        self.fields[path] = value
        self.read.append(Read(m.said, path, value, why))

    def fact(self, name: str, value, m: Match) -> None:
        """Something that a field is worked out from when all has been read."""
        if name in self.facts and self.facts[name][0] != value:
            self.clashes.append((name, self.facts[name][0], value, m.said))
        self.facts[name] = (value, m.said)

    def nothing(self, m: Match, why: str) -> None:
        """Understood, and there is no field to set for it."""
        self.read.append(Read(m.said, "", None, why))


_COUNTED = r"(?=[\s-]+(?:thousand|million|billion|trillion|seconds?|minutes?|hours?|days?|weeks?|months?|years?|nodes?|gpus?|devices?|servers?|racks?|sites?|data\s?cent(?:er|re)s?|pods?|(?:hot\s+)?spare|layers|experts|[a-z]+\d+[a-z]*)\b)"
_WORDS = {
    w: str(i + 1)
    for i, w in enumerate(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
}
_WORD_NUMBER = re.compile(
    rf"\b({'|'.join(_WORDS)}){_COUNTED}|\ba(?=\s+(?:thousand|million|billion|trillion|week|month|year|day)\b)",
    re.IGNORECASE,
)


def in_digits(text: str) -> str:
    """`text` with one to twelve, and "a" before a scale or a time, in digits where they count
    something."""
    return _WORD_NUMBER.sub(lambda m: _WORDS.get(m.group(0).lower(), "1"), text)


def scan(text: str, rules: list[Rule], fillers: frozenset) -> tuple[Notes, list[str]]:
    """(notes, words that no rule used)."""
    text = in_digits(text)
    notes, unused, at = Notes(), [], 0
    skip = re.compile(r"[\s,.;:()\[\]\"'“”’/&+|*•·–—-]+")
    word = re.compile(r"[^\s,;()\[\]\"“”|]+")
    while at < len(text):
        gap = skip.match(text, at)
        if gap:
            at = gap.end()
            continue
        best = None
        for rule in rules:
            m = rule.pattern.match(text, at)
            if m and m.end() > at and (best is None or m.end() > best[0].end()):
                best = (m, rule)
        if best:
            best[1].act(notes, Match(best[0]))
            at = best[0].end()
            continue
        w = word.match(text, at).group(0)
        bare = w.strip(".:'’/-–—").lower()
        part = re.split(r"[/–—-]", bare)
        if bare in fillers or all(p in fillers for p in part if p):
            at += len(w)
            continue
        unused.append(w.rstrip(".:"))
        at += len(w)
    return notes, unused
