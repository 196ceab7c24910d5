"""The key of a picture as a small table: colour, name, amount. It is also how the picture reads without eyes."""
from __future__ import annotations

from collections.abc import Mapping

from .palette import MEMORY, STEP
from .theme import escape
from .words import share, show


def key(entries) -> str:
    """Markup of (colour, name, text, nothing?) entries."""
    return '<div class="sd-parts" role="list">' + "".join(
        f'<div role="listitem"{" class=sd-nil" if nil else ""}><i style="background:{colour}"></i><span>{escape(name)}</span><b>{escape(text)}</b></div>'
        for colour, name, text, nil in entries) + "</div>"


def memory(row: Mapping) -> str:
    """The parts of one stage's memory."""
    return key((colour, name, show(f"memory_bytes.{part}", row[part]), not row[part]) for part, (name, colour) in MEMORY.items())


def step(given: Mapping) -> str:
    """The exposed parts of the step with their shares."""
    total = given["step_s"]
    entries = []
    for part, (name, colour) in STEP.items():
        value = given["step_breakdown_s"].get(part) or 0.0
        entries.append((colour, name, share(value / total) if value else "none", not value))
    return key(entries)
