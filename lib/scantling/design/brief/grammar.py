"""Reading plain words from left to right: rules match where the scanner stands, the longest wins,
and every word must be used by one. Rules, words without meaning and units stand in phrases.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from ...base.units import DAY_S
from ...catalogue.models.entries import entries
from ...catalogue.stacks import stacks

_GAP = re.compile(r"[\s,.;:()\[\]\"'“”’/&+|*•·–—-]+")
_WORD = re.compile(r"[^\s,;()\[\]\"“”|]+")


@cache
def phrases() -> dict:
    """The tables of phrases.yaml."""
    text = Path(__file__).with_name("phrases.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@cache
def fillers() -> frozenset:
    """Words that carry no meaning here; never a negation or a bound."""
    return frozenset(phrases()["fillers"].split())


class Match:
    """A match of a rule, with readers of its numbers; the number of a field is the group v."""

    def __init__(self, match: re.Match):
        self.match, self.said = match, match.group(0).strip(" \t\n,.;:")

    def __getitem__(self, name: str) -> str | None:
        return self.match.groupdict().get(name)

    def num(
        self,
        name="v",
        k=1e3,
    ) -> float:
        """A number with its scale: 175B, 1.5 trillion, 1e12."""
        scale = (self[name + "_s"] or "").lower()
        times = k if scale == "k" else phrases()["scales"].get(scale, 1.0)
        value = float(self[name].replace(",", "")) * times
        exact = value == round(value) and abs(value) < 1e18
        return round(value) if exact else float(f"{value:.15g}")

    def whole(
        self,
        name="v",
        k=1000,
    ) -> int:
        return int(self.num(name, k))

    def whole_1024(self) -> int:
        return self.whole(k=1024)

    def devices(self, name="v") -> int:
        """16K devices are 16,384, as the field says it; 100K are 100,000."""
        plain = int(self[name].replace(",", ""))
        return self.whole(name, 1024 if plain & (plain - 1) == 0 else 1000)

    def amount(self) -> float:
        return float(self.num())

    def plain(self) -> float:
        return float(self["v"])

    def share(self) -> float:
        return float(f"{self.plain() / 100:.12g}")

    def seconds(self) -> float:
        table, unit = phrases()["seconds"], self["v_u"].lower()
        return float(f"{self.plain() * table[unit if unit in table else unit.rstrip('s')]:.12g}")

    def days(self) -> float:
        return float(f"{self.seconds() / DAY_S:.12g}")

    def gigabytes(self) -> float:
        return self.plain() * (1000 if self["u"].upper() == "TB" else 1)

    def megawatts(self) -> float:
        return (
            self.plain()
            * {
                "kw": 1e-3,
                "mw": 1.0,
                "gw": 1e3,
            }[self["u"].lower()]
        )

    def word(self) -> str:
        return self["v"].lower()

    def domain(self) -> str:
        return self.word() if self.word() in ("rack", "pod") else "node"

    def zero(self) -> str:
        return f"zero{self['v']}"


@dataclass(
    frozen=True,
    kw_only=True,
)
class Rule:
    """One way to say something: `field` becomes `value` or what `read` makes of the match; `do` is
    an action of several steps; a rule with neither is understood and sets nothing, saying `why`."""

    pattern: re.Pattern
    field: str = ""
    value: object = None
    read: str = ""
    why: str = ""
    do: str = ""


def _expanded(pattern: str) -> str:
    """A pattern with its fragments, {name} or {name:group}, put in."""

    def put(m):
        text = phrases()["fragments"][m[1]]
        return _expanded(re.sub(r"<_(_\w)?>", rf"<{m[2]}\1>", text) if m[2] else text)

    return re.sub(r"\{([a-z_]+)(?::(\w+))?\}", put, pattern)


def _rule(pattern: str, case: bool = False, **rest) -> Rule:
    """A rule of one pattern, which ends at a word's end."""
    flags = 0 if case else re.IGNORECASE
    return Rule(
        pattern=re.compile(rf"(?:{_expanded(pattern)})(?![A-Za-z0-9])", flags),
        **rest,
    )


@cache
def rules() -> tuple[Rule, ...]:
    """Catalogue models by their ids, written with spaces, dots or dashes; the rules of
    phrases.yaml; software stacks."""
    models = [
        _rule(
            r"[\s_-]*".join(map(re.escape, name.split("-"))),
            field="model",
            value=entry.id,
        )
        for entry in entries().values()
        for name in (entry.id, *entry.aliases)
    ]
    written = [
        _rule(pattern, **{k: v for k, v in row.items() if k != "say"})
        for row in phrases()["rules"]
        for pattern in row["say"]
    ]
    named = [
        _rule(
            rf"(?:{stack.brief})(?:\s+(?:framework|stack))?",
            field="stack",
            value=stack.name,
        )
        for stack in stacks().values()
        if stack.brief
    ]
    return (*models, *written, *named)


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

    def set(
        self,
        path: str,
        value,
        m: Match,
        why: str = "",
    ) -> None:
        """Field `path` is `value`; a second, different value is a clash."""
        if path in self.fields and self.fields[path] != value:
            self.clashes.append((path, self.fields[path], value, m.said))
        self.fields[path] = value
        self.read.append(
            Read(
                m.said,
                path,
                value,
                why,
            )
        )

    def fact(
        self,
        name: str,
        value,
        m: Match,
    ) -> None:
        """Something that a field is worked out from when all has been read."""
        if name in self.facts and self.facts[name][0] != value:
            self.clashes.append((name, self.facts[name][0], value, m.said))
        self.facts[name] = (value, m.said)

    def follow(
        self,
        rule: Rule,
        m: Match,
        actions: dict,
    ) -> None:
        """Do what a rule says with its match."""
        if rule.do:
            actions[rule.do](self, m, rule.value)
        elif rule.field:
            value = getattr(m, rule.read)() if rule.read else rule.value
            self.set(
                rule.field,
                value,
                m,
                rule.why,
            )
        else:
            self.read.append(
                Read(
                    m.said,
                    "",
                    None,
                    rule.why,
                )
            )


def in_digits(text: str) -> str:
    """`text` with one to twelve, and "a" before a scale or a time, in digits where they count
    something."""
    p = phrases()
    digits = {word: str(i) for i, word in enumerate(p["numbers"], 1)}
    words = rf"\b({'|'.join(digits)})(?={p['counted']})|\ba(?={p['counted_after_a']})"
    return re.sub(
        words,
        lambda m: digits.get(m[0].lower(), "1"),
        text,
        flags=re.IGNORECASE,
    )


def scan(text: str, actions: dict) -> tuple[Notes, list[str]]:
    """(notes, words that no rule used)."""
    text = in_digits(text)
    notes, unused, at = Notes(), [], 0
    while at < len(text):
        if gap := _GAP.match(text, at):
            at = gap.end()
            continue
        found = [(m, rule) for rule in rules() if (m := rule.pattern.match(text, at))]
        m, rule = max(
            found,
            key=lambda f: f[0].end(),
            default=(None, None),
        )
        if m and m.end() > at:
            notes.follow(rule, Match(m), actions)
            at = m.end()
            continue
        word = _WORD.match(text, at)[0]
        bare = word.strip(".:'’/-–—").lower()
        if bare not in fillers() and not fillers().issuperset(
            filter(None, re.split("[/–—-]", bare))
        ):
            unused.append(word.rstrip(".:"))
        at += len(word)
    return notes, unused
