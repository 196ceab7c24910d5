"""What a reader of a walkthrough sees of its questions."""

from __future__ import annotations

import string


def texts(q) -> list[str]:
    """Every text of a question: its own, and those of its options, slips and points."""
    inside = [
        each for name in ("options", "slips", "points") for each in getattr(q, name, ()) or ()
    ]
    own = [q.ask, *q.hints, q.worked, q.takeaway, getattr(q, "model", "")]
    return own + [getattr(each, name, "") for each in inside for name in ("text", "says")]


def bare(text: str) -> str:
    """The text without its placeholders: what was typed, not computed."""
    return "".join(literal for literal, *_ in string.Formatter().parse(text))
