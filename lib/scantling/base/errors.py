"""The one way in which a wrong input is reported: a single line that names field, value, what is
allowed and the nearest valid choice."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

_LISTED_CHOICES = 8  # choices printed before the list is cut
_LINE = 900  # characters of all errors of a file
_WIDTH = 60  # characters of a foreign value that are repeated back


class DesignError(ValueError):
    """A wrong value in a design file or in a call: one printable line, never a traceback.

    Parameters
    ----------
    field : dotted path of the field, as it is spelt in the design file ("cluster.devices"); "" for
    the file as a whole.
    value : the offending value; shown shortened, control characters escaped. Leave out where there
    is none.
    allowed : what would be right: a sentence, or the collection of valid choices.
    nearest : the closest valid choice; worked out by spelling when `allowed` is a collection and
    `value` is text.
    problem : what is wrong, in a few words ("is unknown", "does not divide hidden 8192").

    The text of the error is one line whatever the value holds; `lines()` are those of all that is
    wrong with a file. `at(prefix)` gives the same error under a longer path.
    """

    exit = 2  # code with which a command ends that it stops
    others: "tuple[DesignError, ...]" = ()  # what else is wrong with the same file
    MISSING: Any = ...  # the value of a field that is not there; the same object everywhere

    def __init__(
        self,
        field: str = "",
        value: Any = MISSING,
        allowed: str | Iterable[Any] = "",
        nearest: Any = None,
        *,
        problem: str = "",
    ) -> None:
        self.allowed: str | tuple[str, ...] = ""
        if isinstance(allowed, str):
            self.allowed = allowed
        else:
            self.allowed = tuple(str(choice) for choice in allowed)
            if nearest is None and isinstance(value, str):
                nearest = closest(value, self.allowed)
        self.field = str(field)
        self.value = value
        self.problem = problem
        self.nearest = nearest
        super().__init__(field, value, allowed, nearest)

    def __str__(self) -> str:
        return self.line()

    def line(self) -> str:
        """The message: `field: value problem; allowed: …; nearest: …`."""
        what = self.problem
        field = plain(self.field, 120)
        if self.value is not self.MISSING:
            what = f"{show_value(self.value)} {what or 'is not allowed'}"
        parts = [f"{field}: {what}" if field and what else what or field]
        if isinstance(self.allowed, tuple):
            parts.append("allowed: " + _choices(self.allowed, self.value, self.nearest))
        elif self.allowed:
            parts.append("allowed: " + plain(self.allowed, 400))
        if self.nearest not in (None, ""):
            parts.append(f"nearest: {plain(self.nearest, 120)}")
        return "; ".join(parts)

    def lines(self) -> list[str]:
        """The message of this error, and of each that the same file has besides."""
        return [str(self), *map(str, self.others)]

    def one_line(self) -> str:
        """The message of this error, and in short of each that the same file has besides."""
        text = str(self)
        for i, other in enumerate(self.others):
            more = f"; also {other.brief()}"
            if len(text) + len(more) > _LINE:
                return f"{text}; and {len(self.others) - i} more"
            text += more
        return text

    def brief(self) -> str:
        """The message without what is allowed, where a choice is near."""
        short = copy(self)
        if self.nearest not in (None, ""):
            short.allowed = ""
        return short.line()

    def with_others(self, others: "Iterable[DesignError]") -> "DesignError":
        """This error with what else is wrong with the file: one error a field, not this one's."""
        by_field: dict[str, DesignError] = {}
        for error in (*self.others, *others):
            if error.field != self.field:
                by_field.setdefault(error.field, error)
        self.others = tuple(by_field.values())
        return self

    def at(self, prefix: str) -> "DesignError":
        """The same error, its field below `prefix` ("devices" at "cluster" becomes
        "cluster.devices")."""
        moved = copy(self)
        moved.field = f"{prefix}.{self.field}" if self.field else prefix
        return moved


class CatalogueError(ValueError):
    """A data file, shipped or a user's own, that breaks the rules of the catalogue."""


class Rule(NamedTuple):
    """What has to be true of one field, and what to say where it is not."""

    field: str
    holds: bool
    allowed: str | Iterable[str]
    problem: str = ""
    nearest: Any = None


def refuse(
    rules: Iterable[Rule], values: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> None:
    """One DesignError for the first of `rules` that does not hold, with the field's value and the
    name that it has in `names`."""
    for rule in rules:
        if not rule.holds:
            name = (names or {}).get(rule.field, rule.field)
            value = values[rule.field]
            raise DesignError(name, value, rule.allowed, rule.nearest, problem=rule.problem)


_OTHER_WORDS = re.compile(r"(?<![a-z])[gt]pu(?![a-z])")


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice spelt most like `word` (case ignored), or None when nothing is close."""
    by_lower = {c.lower(): c for c in choices}
    word = _OTHER_WORDS.sub("device", str(word).lower()[:200])
    matches = difflib.get_close_matches(word, by_lower, 1)
    if matches:
        return by_lower[matches[0]]
    inside = [c for c in by_lower if _begins(c, word)]
    return by_lower[min(inside, key=len)] if inside else None


def _begins(choice: str, word: str) -> bool:
    """Whether one of two words of at least three letters begins with the other."""
    if len(word) < 3:
        return False
    return choice.startswith(word) or (len(choice) >= 3 and word.startswith(choice))


def plain(text: Any, width: int = _WIDTH) -> str:
    """`text` on one line: control, bidirectional and other unprintable characters escaped, cut to
    `width` characters."""
    out = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in str(text)[: width + 1]
    )
    return out if len(out) <= width else out[: width - 1] + "…"


def show_value(value: Any) -> str:
    """A foreign value as one short printable word or phrase."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{plain(value)}'"
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, dict):
        pairs = [f"{k}: {show_value(v)}" for k, v in list(value.items())[:4]]
        return plain("{" + ", ".join(pairs) + ("…}" if len(value) > 4 else "}"))
    if isinstance(value, (list, tuple)):
        items = ", ".join(show_value(v) for v in value[:6])
        return plain(f"[{items}{', …' if len(value) > 6 else ''}]")
    return plain(repr(value))


def _choices(choices: tuple[str, ...], value: Any, nearest: Any) -> str:
    if len(choices) <= _LISTED_CHOICES + 4:
        return ", ".join(plain(c) for c in choices)
    near = [nearest] if nearest in choices else []
    if isinstance(value, str):
        near += difflib.get_close_matches(value.lower()[:200], choices, _LISTED_CHOICES, 0.3)
    return (
        ", ".join(map(plain, list(dict.fromkeys([*near, *choices]))[:_LISTED_CHOICES]))
        + f", … ({len(choices)} in all)"
    )


@contextmanager
def blamed_on(field: str) -> Iterator[None]:
    """Inside, what has no answer is said of this field."""
    try:
        yield
    except DesignError:
        raise
    except ValueError as e:
        raise DesignError(field, problem=str(e)) from None
