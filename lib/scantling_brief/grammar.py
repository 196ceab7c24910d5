"""Reading plain words from left to right: rules match where the scanner stands, the longest wins,
and every word that no rule uses is listed."""

import re
from functools import cache

from scantling.base.files import table
from scantling.base.typed import with_points
from scantling.catalogue.models.entries import entries
from scantling.catalogue.stacks import Stack, stacks

from .match import Match
from .notes import Notes
from .readers import always
from .rule import Rule, sets
from .rules_limits import LIMITS
from .rules_machine import MACHINE
from .rules_model import MODEL

UNUSED = "no rule reads it"
TURNED = "a negation or bound that no rule reads"

_GAP = re.compile(r"[\s,.;:()\[\]\"'“”’/&+|*@•·–—~≈?!-]+")
_CLAUSE = re.compile(r"[,;:?!\n]|\.\s")  # where the reach of a negation ends
# up to a size that a name ends in, as in MPT-30B
_WORD = re.compile(r"(?:(?!-\d+(?:\.\d+)?[bB]\b)[^\s,;()\[\]\"“”|?!])+")
_COMPOUND = re.compile("[/–—-]")

_NUMBERS = (
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
)
_COUNTED = (
    r"[\s-]+(?:thousand|million|billion|trillion|seconds?|minutes?|hours?|days?|weeks?|months?"
    r"|years?|nodes?|gpus?|devices?|servers?|racks?|sites?|data\s?cent(?:er|re)s?|pods?"
    r"|(?:hot\s+)?spare|layers|experts|dgx|hgx|epochs?|[a-z]+\d+[a-z]*)\b"
)
_COUNTED_AFTER_SINGLE = (
    r"[\s-]+(?:(?:dgx|hgx)\s+)?(?:\d+\s?x\s?[a-z]+\d+|[a-z]+\d+[a-z]*|gpu|rack"
    r"|(?:node|server|machine)(?!s?\s+(?:fail|loss|outage)))\b"
)
_COUNTED_AFTER_A = r"\s+(?:thousand|million|billion|trillion|week|month|year|day)\b"
_COUNT = re.compile(
    rf"\b({'|'.join(_NUMBERS)})(?={_COUNTED})|\ba(?={_COUNTED_AFTER_A})"
    rf"|\bsingle(?={_COUNTED_AFTER_SINGLE})",
    re.IGNORECASE,
)


@cache
def fillers() -> frozenset[str]:
    """Words that carry no meaning here; never a negation or a bound."""
    return frozenset(table(__file__, "words")["fillers"].split())


@cache
def turning() -> frozenset[str]:
    """Words that turn round or bound what follows: alone they take it out of the reading."""
    return frozenset(table(__file__, "words")["turning"].split())


@cache
def rules() -> tuple[Rule, ...]:
    """Catalogue models by their ids, written with spaces, dots or dashes; the sentences; software
    stacks. Of rules that match as much the first one counts."""
    named: list[Rule] = []
    for entry in entries().values():
        for name in (entry.id, *entry.aliases):
            pattern = r"[\s_-]*".join(re.escape(part) for part in name.split("-"))
            named += sets({"model": always(entry.id)}, pattern)
    stated: list[Rule] = []
    for stack in stacks().values():
        if stack.names:
            pattern = rf"{_of_stack(stack)}(?:\s+(?:framework|stack))?"
            stated += sets({"stack": always(stack.name)}, pattern)
    return (*named, *MACHINE, *MODEL, *LIMITS, *stated)


def _of_stack(stack: Stack) -> str:
    """The pattern of a stack's names, the longest first."""
    names = sorted(stack.names, key=len, reverse=True)
    words = (r"[\s-]".join(re.escape(part) for part in name.split()) for name in names)
    return f"(?:{'|'.join(words)})"


def in_digits(text: str) -> str:
    """`text` with one to twelve, "a" before a scale or a time and "single" before a machine, in
    digits where they count something."""
    digits = {word: str(i) for i, word in enumerate(_NUMBERS, 1)}
    return _COUNT.sub(lambda match: digits.get(match[0].lower(), "1"), text)


def scan(text: str) -> Notes:
    """What the rules make of a text; words that none of them uses are ignored, and so is what
    follows a negation or a bound that is part of no rule."""
    return _Scanner(in_digits(with_points(text))).read()


class _Scanner:
    """A place in a text, and what has been read up to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes = Notes()
        self.place = 0
        self.turned: int | None = None  # start of a negation or bound whose object has not come

    def read(self) -> Notes:
        while self.place < len(self.text):
            gap = _GAP.match(self.text, self.place)
            if gap:
                self._skip(gap)
            elif not self._follow():
                self._word()
        if self.turned is not None:
            self._leave(self.text[self.turned :], TURNED)
        return self.notes

    def _skip(self, gap: re.Match[str]) -> None:
        """Over what stands between words; the end of a clause ends the reach of a negation."""
        if self.turned is not None and _CLAUSE.search(gap[0]):
            self._leave(self.text[self.turned : gap.start()], TURNED)
            self.turned = None
        self.place = gap.end()

    def _follow(self) -> bool:
        """Do what the rule says that reads the most from here; False where none reads anything."""
        longest: re.Match[str] | None = None
        best: Rule | None = None
        for rule in rules():
            match = rule.pattern.match(self.text, self.place)
            if match and (longest is None or match.end() > longest.end()):
                longest = match
                best = rule
        if longest is None or best is None or longest.end() <= self.place:
            return False
        if self.turned is None:
            self.notes.follow(best, Match(longest))
        else:
            self._leave(self.text[self.turned : longest.end()], TURNED)
            self.turned = None
        self.place = longest.end()
        return True

    def _word(self) -> None:
        """A word that no rule reads: it turns what follows, means nothing here, or is ignored."""
        match = _WORD.match(self.text, self.place)
        word = match[0] if match else self.text[self.place]
        end = self.place + len(word)
        bare = word.strip(".:'’/-–—").lower()
        if bare in turning():
            if self.turned is None:
                self.turned = self.place
        elif not _filler(bare):
            if self.turned is None:
                self._leave(word, UNUSED)
            else:
                self._leave(self.text[self.turned : end], TURNED)
            self.turned = None
        self.place = end

    def _leave(self, words: str, why: str) -> None:
        """Words that are ignored; unread words in a row are one entry."""
        words = " ".join(words.split()).rstrip(".:,;")
        if why == UNUSED:
            self.notes.ignore_more(words, why)
        else:
            self.notes.ignore(words, why)


def _filler(bare: str) -> bool:
    """Whether a word, or each part of a compound, carries no meaning here."""
    if bare in fillers():
        return True
    return fillers().issuperset(part for part in _COMPOUND.split(bare) if part)
