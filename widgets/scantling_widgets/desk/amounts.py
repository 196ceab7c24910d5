"""A number as it is typed into a box of the form, in the unit of its field."""

from scantling.base import typed
from scantling.base.errors import DesignError

from .control import facts_of


def number(field: str, text: str) -> float | int:
    """A typed number (7,5, 1,024, 50M, 90 d, 2 TB; 40% of a share) in the unit of its field, or a
    DesignError that says what was typed."""
    facts = facts_of(field)
    unit = facts.unit if facts else ""
    value = typed.amount(text, unit)
    if value is None:
        raise DesignError(field, text, _readable(unit), problem="is not a number")
    return int(value) if abs(value) < 1e15 and value == int(value) else value


def _readable(unit: str) -> str:
    """What could be typed for a field of this unit."""
    if unit == "share":
        return "a number, such as 7.5, 1,024, 50M or 40%"
    of = f" of {unit}" if unit else ""
    words = ", ".join(typed.BEHIND.get(unit, ()))
    behind = f"; units read: {words}" if words else ""
    return f"a number{of}, such as 7.5, 1,024, 50M{behind}"
