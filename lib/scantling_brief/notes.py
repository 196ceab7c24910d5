"""What has been read of a line so far."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scantling.base.records import Assumed
from scantling.design.reading import Read

from .match import Match
from .rule import Rule

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
LONGEST_ENTRY = 60  # characters of unread words in a row that make one entry


class Clash(NamedTuple):
    """Two values of one thing."""

    path: str
    one: Any
    two: Any
    words: str  # that gave the second


@dataclass
class Notes:
    """What the rules have gathered so far: fields, facts that need each other, the words that set
    each, what was read, and what was assumed."""

    fields: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)  # field or fact -> the words that set it
    read: list[Read] = field(default_factory=list)
    ignored: list[Read] = field(default_factory=list)
    assumed: list[Assumed] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)

    def note(self, words: str, path: str = "", value: Any = None, why: str = "") -> None:
        """What some words were taken to mean."""
        self.read.append(Read(words, path, value, why))

    def ignore(self, words: str, why: str) -> None:
        """Words that set nothing, and why."""
        entry = Read(words, "", None, why)
        if entry not in self.ignored:
            self.ignored.append(entry)

    def ignore_more(self, words: str, why: str) -> None:
        """Words that set nothing, added to those before them that set nothing for the same
        reason."""
        last = self.ignored[-1] if self.ignored else None
        if last and last.why == why and len(last.words) + len(words) < LONGEST_ENTRY:
            self.ignored[-1] = Read(f"{last.words} {words}", "", None, why)
        else:
            self.ignore(words, why)

    def assume(self, path: str, value: Any, why: str) -> None:
        """A reading that was a choice."""
        self.assumed.append(Assumed(path, value, why))

    def set(self, path: str, value: Any, words: str, why: str = "") -> None:
        """A field or fact is `value`; a second, different value is a clash. InfiniBand and its
        generation may be said apart."""
        is_fact = path in FACTS
        values = self.facts if is_fact else self.fields
        old = values.get(path, value)
        if path == "fabric" and "ib" in (old, value) and old[:2] == value[:2]:
            old = value = max(old, value, key=len)
        if old != value:
            self.clashes.append(Clash(path, old, value, words))
        values[path] = value
        self.words[path] = words
        if not is_fact:
            self.note(words, path, value, why)

    def follow(self, rule: Rule, match: Match) -> None:
        """Do what a rule says with its match."""
        if rule.refusal:
            self.ignore(match.words, rule.refusal)
            return
        for path, reader in rule.sets.items():
            value = reader(match)
            if value is not None:
                self.set(path, value, match.words, rule.why)
        if not rule.sets:
            self.note(match.words, why=rule.why)
