"""Numbers as text, through the table of quantities: the widgets never choose a unit or a number of digits."""
from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from scantling import quantities
from scantling.quantities import band

__all__ = ["at", "axis", "band", "explain", "in_text", "label", "quantity", "share", "show", "split"]


@cache
def quantity(key: str) -> quantities.Quantity:
    """The row of the table of quantities; a desk asks for the same ones at every move."""
    return quantities.quantity(key)


def show(key: str, value) -> str:
    """`scantling.quantities.show`."""
    q = quantity(key)
    return quantities.shown(value, q.kind, q.unit)


def share(value) -> str:
    """A part of one, as a percentage."""
    return quantities.shown(value, "share")


def label(key: str) -> str:
    return quantity(key).label


def axis(key: str) -> tuple[str, str]:
    """Unit of an axis that shows a quantity, and the Vega expression that labels its ticks in that unit."""
    q = quantity(key)
    return q.shown_unit, f"format(datum.value / {q.scale:g}, ',~r')"


def split(text: str) -> tuple[str, str]:
    """A shown number as (number, unit), so that the two can be set apart in type."""
    found = re.fullmatch(r"([−<$~]*[\d,.]+[A-Z]?|[\d,.]+e−?\d+)\s*(.*)", text)
    return (found[1], found[2]) if found else (text, "")


def at(given: Mapping, key: str):
    """The value at a dotted key of an assessment; None where it has none."""
    here = given
    for step in key.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def in_text(given: Mapping, key: str) -> str:
    """The value at a dotted key, shown."""
    return show(key, at(given, key))


def explain(key: str, given: Mapping, resolved: Mapping) -> dict:
    """What a number opens to: formula, the values in it, source, convention, band.

    `resolved` holds inputs of the design by plain name, for those that an assessment does not repeat.
    """
    q = quantity(key)
    lines = [("Formula", f"{q.label} = {q.formula}" if q.formula else "")]
    lines.append(("With these values", values_in(q.inputs, given, resolved)))
    low, high = at(given, key + "_low"), at(given, key + "_high")
    if low is not None and high is not None:
        lines.append(("Band", f"{band(key, low, high)}: four of five published runs lie inside"))
    lines += [("Convention", q.convention), ("Source", q.source), ("Computed by", f"scantling.{q.function}" if q.function else "")]
    return {"title": q.label, "value": in_text(given, key), "lines": [(term, text) for term, text in lines if text]}


def values_in(inputs, given: Mapping, resolved: Mapping) -> str:
    """`name = value` for every input that is a number or a word."""
    said = []
    for name in inputs:
        value = at(given, name)
        if value is None:
            value = resolved.get(name)
        if value is None or isinstance(value, (Mapping, list, tuple)):
            if isinstance(value, Mapping):
                said += [f"{label_or(f'{name}.{part}', part)} {show_or(f'{name}.{part}', amount)}" for part, amount in value.items()
                         if isinstance(amount, (int, float)) and not isinstance(amount, bool) and amount]
            continue
        said.append(f"{name} = {show_or(name, value)}")
    return "; ".join(said)


def label_or(key: str, fallback: str) -> str:
    try:
        return quantity(key).label
    except KeyError:
        return fallback


def show_or(key: str, value) -> str:
    """`show`, or for an input that is no output of the kit a plain number."""
    try:
        return show(key, value)
    except KeyError:
        return quantities.shown(value, "ratio") if isinstance(value, float) else quantities.shown(value, "count") if isinstance(value, int) else str(value)
