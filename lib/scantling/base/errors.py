"""The one way in which a wrong input is reported: a single line that names field, value, what is
allowed and the nearest valid choice."""

import difflib
import re
from collections.abc import Iterable, Mapping
from copy import copy

_SHOWN = 8  # choices printed before the list is cut
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

    The text of the error is one line whatever the value holds. `at(prefix)` gives the same error
    under a longer path.
    """

    MISSING = ...  # the value of a field that is not there; the same object in every process

    def __init__(self, field="", value=MISSING, allowed="", nearest=None, *, problem=""):
        choices = None
        if not isinstance(allowed, str) and isinstance(allowed, Iterable):
            choices = [str(a) for a in allowed]
            if nearest is None and isinstance(value, str):
                nearest = closest(value, choices)
        self.field = str(field)
        self.value = value
        self.problem = problem
        self.allowed = allowed if choices is None else tuple(choices)
        self.nearest = nearest
        super().__init__(field, value, allowed, nearest)

    def __str__(self):
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

    def at(self, prefix: str) -> "DesignError":
        """The same error, its field below `prefix` ("devices" at "cluster" becomes
        "cluster.devices")."""
        moved = copy(self)
        moved.field = f"{prefix}.{self.field}" if self.field else prefix
        return moved


def refuse(rules, given: Mapping, names: Mapping[str, str] | None = None) -> None:
    """One DesignError for the first of `rules` (field, whether it holds, what is allowed, and if
    it has them what is wrong and the nearest) that does not hold."""
    for field, holds, allowed, *more in rules:
        if not holds:
            problem, nearest = (*more, "", None)[:2]
            raise DesignError(
                (names or {}).get(field, field), given[field], allowed, nearest, problem=problem
            )


_OTHER_WORDS = re.compile(r"(?<![a-z])[gt]pu(?![a-z])")


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice spelt most like `word` (case ignored), or None when nothing is close."""
    by_lower = {c.lower(): c for c in choices}
    word = _OTHER_WORDS.sub("device", str(word).lower()[:200])
    found = difflib.get_close_matches(word, by_lower, 1)
    if found:
        return by_lower[found[0]]
    inside = [
        c
        for c in by_lower
        if len(word) >= 3 and (c.startswith(word) or word.startswith(c) and len(c) >= 3)
    ]
    return by_lower[min(inside, key=len)] if inside else None


def plain(text: object, width: int = _WIDTH) -> str:
    """`text` on one line: control, bidirectional and other unprintable characters escaped, cut to
    `width` characters."""
    out = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in str(text)[: width + 1]
    )
    return out if len(out) <= width else out[: width - 1] + "…"


def show_value(value) -> str:
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


def _choices(choices, value, nearest) -> str:
    if len(choices) <= _SHOWN + 4:
        return ", ".join(plain(c) for c in choices)
    near = [nearest] if nearest in choices else []
    if isinstance(value, str):
        near += difflib.get_close_matches(value.lower()[:200], choices, _SHOWN, 0.3)
    return (
        ", ".join(map(plain, list(dict.fromkeys([*near, *choices]))[:_SHOWN]))
        + f", … ({len(choices)} in all)"
    )
