"""Reading plain words from left to right: rules match where the scanner stands, the longest wins,
and every word that no rule uses is listed. Rules, words without meaning and units stand in
phrases.yaml."""

import re
from dataclasses import dataclass, field
from functools import cache
from math import isfinite

from scantling.base.errors import DesignError
from scantling.base.records import Assumed, record
from scantling.base.typed import with_points
from scantling.base.units import DAY_S
from scantling.base.words import table as read_yaml
from scantling.catalogue.models.entries import entries
from scantling.catalogue.stacks import Stack, stacks
from scantling.design.reading import Read

_GAP = re.compile(r"[\s,.;:()\[\]\"'“”’/&+|*@•·–—~≈?!-]+")
_CLAUSE = re.compile(r"[,;:?!\n]|\.\s")  # where the reach of a negation ends
# up to a size that a name ends in, as in MPT-30B
_WORD = re.compile(r"(?:(?!-\d+(?:\.\d+)?[bB]\b)[^\s,;()\[\]\"“”|?!])+")


@cache
def phrases() -> dict:
    """The tables of phrases.yaml."""
    return read_yaml(__file__, "phrases")


@cache
def fillers() -> frozenset:
    """Words that carry no meaning here; never a negation or a bound."""
    return frozenset(phrases()["fillers"].split())


@cache
def turning() -> frozenset:
    """Words that turn round or bound what follows: alone they take it out of the reading."""
    return frozenset(phrases()["turning"].split())


class Match:
    """A match of a rule, with readers of its numbers and words; those of a field are the group
    v."""

    def __init__(self, match: re.Match):
        self.match = match
        self.said = match.group(0).strip(" \t\n,.;:")

    def __getitem__(self, name: str) -> str | None:
        return self.match.groupdict().get(name)

    def read(self, how: str):
        """What a reader and its arguments make of the match; None where its group said nothing."""
        reader, *details = how.split()
        return getattr(self, reader)(*details)

    def num(self, name="v", k=1e3) -> float | None:
        """A number with its scale: 175B, 1.5 trillion, 1e12."""
        if not self[name]:
            return None
        scale = (self[name + "_s"] or "").strip().lower()
        times = float(k) if scale == "k" else phrases()["scales"].get(scale, 1.0)
        value = float(self[name].replace(",", "")) * times
        if not isfinite(value):
            raise DesignError(
                "text", self.said, "a number such as 1.5e12", problem="is not a finite number"
            )
        exact = value == round(value) and abs(value) < 1e18
        return round(value) if exact else float(f"{value:.15g}")

    def whole(self, name="v", k=1000) -> int | None:
        value = self.num(name, k)
        if value is not None and value != int(value):
            raise DesignError("text", self.said, "a whole number", problem="is not a whole number")
        return None if value is None else int(value)

    def devices(self, name="v") -> int:
        """16K devices are 16,384, as the field says it; 100K are 100,000."""
        said = int(self[name].replace(",", ""))
        return self.whole(name, 1024 if said & (said - 1) == 0 else 1000)

    def slice(self, name="v") -> int:
        """Chips of a TPU slice: generations 2 to 5p are named by their cores, two a chip; the
        efficient ones by chips."""
        return max(1, self.whole(name) // (1 if self["acc"].lower().endswith("e") else 2))

    def product(self, groups, each) -> int:
        return self.whole(groups) * self.devices(each)

    def amount(self) -> float:
        return float(self.num())

    def plain(self) -> float:
        return float(self["v"])

    def share(self) -> float:
        return float(f"{self.plain() / 100:.12g}")

    def scaled(self, table, unit="u", of=1) -> float:
        """A number in the unit of a table."""
        return float(f"{self.plain() * phrases()[table][self[unit].lower()] / of:.12g}")

    def days(self) -> float:
        return self.scaled("seconds", "v_u", DAY_S)

    def gigabits(self) -> float:
        """A rate in Gb/s."""
        unit = self["u"]
        return self.plain() * (8 if "B" in unit else 1) * (1000 if unit[0] in "Tt" else 1)

    def word(self) -> str:
        return self["v"].lower()

    def named(self, kind, name) -> str:
        return kind + self[name].lower()

    def meant(self, table, name="v") -> str | None:
        """What a word stands for."""
        word = (self[name] or "").lower()
        return phrases()[table].get(word, word) or None

    def accelerator(self) -> tuple | None:
        """(family, memory in GB, form) of an accelerator as it is written."""
        if not self["acc"]:
            return None
        more = ((self["pre"] or "") + (self["more"] or "")).lower()
        memory = re.search(r"(\d+)(?=\s?gb)|(?<=-)\d+$", more)
        chip = re.sub(r"[\s-]", "", self["acc"].lower())
        form = re.search(phrases()["fragments"]["form"].lower(), more)
        return (
            phrases()["chips"].get(chip, chip),
            int(memory[0]) if memory else None,
            form[0].replace("-", "") if form else None,
        )


@record
class Rule:
    """One way to say something: `field` becomes `value` or what `read` makes of the match, so do
    those in `sets`; what is refused says what is allowed; a rule with none of these is understood
    and sets nothing, saying `why`."""

    pattern: re.Pattern
    field: str = ""
    value: object = None
    read: str = ""
    sets: dict | None = None
    why: str = ""
    refuse: str = ""


def _expanded(pattern: str) -> str:
    """A pattern with its fragments, {name} or {name:group}, put in."""

    def put(m):
        text = phrases()["fragments"][m[1]]
        return _expanded(re.sub(r"<_(_\w)?>", rf"<{m[2]}\1>", text) if m[2] else text)

    return re.sub(r"\{([a-z_]+)(?::(\w+))?\}", put, pattern)


def _rule(pattern: str, case: bool = False, **rest) -> Rule:
    """A rule of one pattern, which ends at a word's end."""
    return Rule(
        pattern=re.compile(
            rf"(?:{_expanded(pattern)})(?![A-Za-z0-9])", 0 if case else re.IGNORECASE
        ),
        **rest,
    )


@cache
def rules() -> tuple:
    """Catalogue models by their ids, written with spaces, dots or dashes; the rules of
    phrases.yaml; software stacks."""
    models = [
        _rule(r"[\s_-]*".join(map(re.escape, name.split("-"))), field="model", value=entry.id)
        for entry in entries().values()
        for name in (entry.id, *entry.aliases)
    ]
    written = [
        _rule(pattern, **{k: v for k, v in row.items() if k != "say"})
        for row in phrases()["rules"]
        for pattern in row["say"]
    ]
    named = [
        _rule(rf"{_of_stack(stack)}(?:\s+(?:framework|stack))?", field="stack", value=stack.name)
        for stack in stacks().values()
        if stack.names
    ]
    return (*models, *written, *named)


def _of_stack(stack: Stack) -> str:
    """The pattern of a stack's names, the longest first."""
    names = sorted(stack.names, key=len, reverse=True)
    words = (r"[\s-]".join(map(re.escape, name.split())) for name in names)
    return f"(?:{'|'.join(words)})"


# what fields are worked out from when all has been read
FACTS = (
    "accelerator",
    "nodes",
    "racks",
    "nvlink",
    "rdma",
    "fabric",
    "rate",
    "rate_of",
    "examples",
    "epochs",
    "tokens_per_param",
    "device_hours",
    "hours_of",
)


@dataclass
class Notes:
    """What the rules have gathered so far: fields, facts that need each other, what was read, and
    what was assumed."""

    fields: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    said: dict = field(default_factory=dict)
    read: list = field(default_factory=list)
    ignored: list = field(default_factory=list)
    assumed: list = field(default_factory=list)
    clashes: list = field(default_factory=list)

    def note(self, said: str, path: str = "", value=None, why: str = "") -> None:
        """What some words were taken to mean."""
        self.read.append(Read(said, path, value, why))

    def ignore(self, said: str, why: str) -> None:
        """Words that set nothing, and why."""
        left = Read(said, "", None, why)
        if left not in self.ignored:
            self.ignored.append(left)

    def assume(self, path: str, value, why: str) -> None:
        self.assumed.append(Assumed(path, value, why))

    def set(self, path: str, value, said: str, why: str = "") -> None:
        """A field or fact is `value`; a second, different value is a clash. InfiniBand and its
        generation may be said apart."""
        kept = self.facts if path in FACTS else self.fields
        old = kept.get(path, value)
        if path == "fabric" and "ib" in (old, value) and old[:2] == value[:2]:
            old = value = max(old, value, key=len)
        if old != value:
            self.clashes.append((path, old, value, said))
        kept[path] = value
        self.said[path] = said
        if kept is self.fields:
            self.note(said, path, value, why)

    def follow(self, rule: Rule, m: Match) -> None:
        """Do what a rule says with its match."""
        if rule.refuse:
            self.ignore(m.said, rule.refuse)
            return
        if rule.field:
            value = m.read(rule.read) if rule.read else rule.value
            self.set(rule.field, value, m.said, rule.why)
        for path, how in (rule.sets or {}).items():
            value = m.read(how)
            if value is not None:
                self.set(path, value, m.said)
        if not rule.field and not rule.sets:
            self.note(m.said, why=rule.why)


def in_digits(text: str) -> str:
    """`text` with one to twelve, "a" before a scale or a time and "single" before a machine, in
    digits where they count something."""
    p = phrases()
    digits = {word: str(i) for i, word in enumerate(p["numbers"], 1)}
    words = rf"\b({'|'.join(digits)})(?={p['counted']})|\ba(?={p['counted_after_a']})"
    words += rf"|\bsingle(?={p['counted_after_single']})"
    return re.sub(words, lambda m: digits.get(m[0].lower(), "1"), text, flags=re.IGNORECASE)


def scan(text: str) -> Notes:
    """What the rules make of a text; words that none of them uses are ignored, and so is what
    follows a negation or a bound that is part of no rule."""
    text = in_digits(with_points(text))
    notes = Notes()
    at = 0
    turned = None  # start of a negation or bound whose object has not come yet
    while at < len(text):
        if gap := _GAP.match(text, at):
            at = gap.end()
            if turned is not None and _CLAUSE.search(gap[0]):
                _leave(notes, text[turned : gap.start()], TURNED)
                turned = None
            continue
        found = [(m, rule) for rule in rules() if (m := rule.pattern.match(text, at))]
        m, rule = max(found, key=lambda f: f[0].end(), default=(None, None))
        if m and m.end() > at:
            if turned is None:
                notes.follow(rule, Match(m))
            else:
                _leave(notes, text[turned : m.end()], TURNED)
            at = m.end()
            turned = None
            continue
        word = _WORD.match(text, at)[0]
        bare = word.strip(".:'’/-–—").lower()
        if bare in turning():
            turned = at if turned is None else turned
        elif not _filler(bare):
            if turned is None:
                _leave(notes, word, UNUSED)
            else:
                _leave(notes, text[turned : at + len(word)], TURNED)
            turned = None
        at += len(word)
    if turned is not None:
        _leave(notes, text[turned:], TURNED)
    return notes


UNUSED = "no rule reads it"
TURNED = "a negation or bound that no rule reads"


def _filler(bare: str) -> bool:
    """Whether a word, or each part of a compound, carries no meaning here."""
    return bare in fillers() or fillers().issuperset(filter(None, re.split("[/–—-]", bare)))


def _leave(notes: Notes, words: str, why: str) -> None:
    """Words that are ignored; unread words in a row are one entry."""
    said = " ".join(words.split()).rstrip(".:,;")
    last = notes.ignored[-1] if notes.ignored else None
    if last and last.why == why == UNUSED and len(last.said) + len(said) < 60:
        notes.ignored[-1] = Read(f"{last.said} {said}", "", None, why)
    else:
        notes.ignore(said, why)
