"""Numbers as text, through the table of quantities: the widgets never choose a unit or a number of
digits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from scantling.base.quantities import table as quantities
from scantling.base.quantities.table import band

PERCENT = (
    "format(datum.value * 100, '~r') + ' %'"  # the ticks of an axis of shares, in Vega's words
)

MORE_IS_BETTER = ("mfu", "goodput", "tokens_per_s_per_device")

__all__ = [
    "MORE_IS_BETTER",
    "PERCENT",
    "at",
    "axis",
    "band",
    "explain",
    "in_text",
    "label",
    "quantity",
    "share",
    "show",
    "split",
    "titled",
]


@cache
def quantity(key: str) -> quantities.Quantity:
    """The row of the table of quantities; a desk asks for the same ones at every move."""
    return quantities.quantity(key)


def show(key: str, value) -> str:
    """`scantling.base.quantities.table.show`."""
    q = quantity(key)
    return quantities.shown(value, q.kind, q.unit)


def share(value) -> str:
    """A part of one, as a percentage."""
    return quantities.shown(value, "share")


def label(key: str) -> str:
    return quantity(key).label


def axis(key: str) -> tuple[str, str]:
    """Unit of an axis that shows a quantity, and the Vega expression that labels its ticks in that
    unit."""
    q = quantity(key)
    return q.shown_unit, f"format(datum.value / {q.scale:g}, ',~r')"


def titled(key: str) -> str:
    """Title of an axis that shows a quantity: its name and, where the name does not say it, the
    unit."""
    unit = quantity(key).shown_unit
    return label(key) if not unit or unit.lower() == label(key).lower() else f"{label(key)}, {unit}"


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


def explain(
    key: str,
    given: Mapping,
    resolved: Mapping,
    facts: Mapping | None = None,
) -> dict:
    """What a number opens to: formula, the values in it, source, convention, band.

    `facts` are those of the row that a number of a table stands in; `resolved` holds inputs of the
    design by plain name, for those
    that an assessment does not repeat. A quantity that is "as" another is explained by the other's
    formula.
    """
    q = quantity(key)
    base = _base(q)
    own = facts or {}
    said = own.get(key.rsplit(".", 1)[-1], at(own, base.key)) if facts else at(given, key)
    lines = [("Formula", f"{base.label} = {base.formula}" if base.formula else "")]
    lines.append(
        (
            "With these values",
            values_in(
                base.inputs,
                given,
                resolved,
                own,
            ),
        )
    )
    low, high = (at(own or given, base.key + end) for end in ("_low", "_high"))
    if low is not None and high is not None:
        lines.append(("Band", f"{band(base.key, low, high)}: {band_of(base.key)}"))
    lines += [
        ("Convention", q.convention or base.convention),
        ("Source", q.source or base.source),
        ("Computed by", f"scantling.{base.function}" if base.function else ""),
    ]
    return {
        "title": q.label,
        "value": show(key, said),
        "lines": [(term, text) for term, text in lines if text],
    }


def band_of(key: str) -> str:
    """What the two ends of a band are."""
    low, high = quantity(key + "_low"), quantity(key + "_high")
    return (
        "four of five published runs lie inside"
        if low.convention.startswith("80 % band")
        else f"{low.formula}, {high.formula}"
    )


def _base(q: quantities.Quantity) -> quantities.Quantity:
    """The quantity whose formula explains this one: itself, or the one that it is "as"."""
    found = re.match(r"as ([a-z_][\w.]*)", q.formula)
    if not found:
        return q
    try:
        base = quantity(found[1].rstrip("."))
    except KeyError:
        return q
    try:
        return quantity(f"{base.key}.{q.key.rsplit('.', 1)[-1]}")  # of a part of it
    except KeyError:
        return base


def values_in(
    inputs,
    given: Mapping,
    resolved: Mapping,
    facts: Mapping = {},
) -> str:
    """`name = value` for every input that is a number or a word."""
    said = []
    for name in inputs:
        value = found(
            name,
            given,
            resolved,
            facts,
        )
        if value is None or isinstance(value, (list, tuple)):
            continue
        if isinstance(value, Mapping):
            said += [
                f"{label_or(f'{name}.{part}', part)} {show_or(f'{name}.{part}', amount)}"
                for part, amount in value.items()
                if isinstance(amount, (int, float)) and not isinstance(amount, bool) and amount
            ]
            continue
        short = name.rsplit(".", 1)[-1] if name.startswith("blueprint.") else name
        said.append(f"{short} = {show_or(name, value)}")
    return "; ".join(said)


def found(
    name: str,
    given: Mapping,
    resolved: Mapping,
    facts: Mapping = {},
):
    """The value of one input of a formula: of the row first, then of the assessment, then of the
    design."""
    last = name.rsplit(".", 1)[-1]
    places = (
        *(at(facts, name), facts.get(last), at(given, name)),
        *(resolved.get(name), resolved.get(last), at(given, f"plan.{name}")),
    )
    return next((value for value in places if value is not None), None)


def label_or(key: str, fallback: str) -> str:
    try:
        return quantity(key).label
    except KeyError:
        return fallback


@cache
def _endings() -> list[list[str]]:
    """Rows of endings.yaml: the ending of a name, and the kind and unit of its values."""
    file = Path(__file__).with_name("endings.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def named(name: str, value) -> str:
    """A value of a record shown by the unit that its name carries: `loss_s` in seconds, `usd_lost`
    in dollars."""
    value = value.item() if getattr(value, "ndim", 1) == 0 else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return quantities.shown(value, "text")
    for ending, kind, unit in _endings():
        if name.endswith(ending) or (
            kind in ("usd", "days", "share") and name.startswith(ending + "_")
        ):
            return f"0 {unit}" if value == 0 and unit else quantities.shown(value, kind, unit)
    return (
        plain(float(value)) if isinstance(value, float) and value != int(value) else f"{value:,.0f}"
    )


def explain_row(
    key: str,
    text: str,
    given: Mapping,
    resolved: Mapping,
    row: Mapping,
    own: Mapping[str, str] = {},
) -> dict:
    """What a number of a record of the blueprint opens to; `text` as its cell says it, `own`:
    {term: field of the record} said below it."""
    out = {
        **explain(
            key,
            given,
            resolved,
            row,
        ),
        "value": text,
    }
    out["lines"] += [
        (term, named(field, row[field]))
        for term, field in own.items()
        if row.get(field) not in (None, "")
    ]
    return out


def plain(value) -> str:
    """A number without a unit, or the word itself."""
    if isinstance(value, float):
        return quantities.shown(value, "ratio")
    return f"{value:,}" if type(value) is int else str(value)


def show_or(key: str, value) -> str:
    """`show`, or for an input that is no output of the kit a plain number."""
    for known in (key, f"endurance.{key}", f"cost.{key}"):
        try:
            return show(known, value)
        except KeyError:
            continue
    return plain(value)
