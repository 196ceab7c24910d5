"""Numbers as text, through the table of quantities: the widgets never choose a unit or a number of
digits."""

from collections.abc import Mapping
from pathlib import Path
from re import fullmatch

from scantling.advise.explanation import (
    band_of as band_of,
    label_or as label_or,
    opened as opened,
    plain as plain,
    show_or as show_or,
)
from scantling.base.files import table
from scantling.base.quantities import table as quantities
from scantling.base.quantities.table import band as band, quantity, show as show
from scantling.base.records import at as at
from scantling.base.show import is_number, scalar

# figures of a run, which a plan that does not fit has none of
OF_A_RUN = table(Path(__file__).parent / "desk" / "x", "headline")["of_a_run"]

MORE_IS_BETTER = ("mfu", "mfu_shown", "goodput", "tokens_per_s_per_device")


def share(value) -> str:
    """A part of one, as a percentage."""
    return quantities.shown(value, "share")


def plan_text(plan: Mapping) -> str:
    """A plan in one line; ways of one are left out."""
    words = [
        f"{axis} {plan[axis]}"
        for axis in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")
        if (plan.get(axis) or 1) != 1
    ]
    part = plan.get("recompute_share") or 1
    of = f" of {share(part)} of the layers" if part < 1 else ""
    for key, said in (
        ("sharding", "{}"),
        ("micro_batch", "micro-batch {}"),
        ("recompute", "{} recompute" + of),
        ("offload", "offload {}"),
    ):
        if plan.get(key) not in (None, 0, "none"):
            words.append(said.format(plan[key]))
    return ", ".join(words) or "one device"


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
    found = fullmatch(r"([−<$~]*[\d,.]+[A-Z]?|[\d,.]+e−?\d+)\s*(.*)", text)
    return (found[1], found[2]) if found else (text, "")


def fits(given: Mapping) -> bool:
    """Whether there is a plan, and memory for it."""
    memory = given.get("memory_bytes")
    return bool(memory) and memory["total"] <= memory["capacity"]


def withheld(given: Mapping, key: str) -> bool:
    """Whether a figure is one of a run, and the plan, which does not fit, has none."""
    return key in OF_A_RUN and bool(given.get("plan")) and not fits(given)


def in_text(given: Mapping, key: str) -> str:
    """The value at a dotted key, shown."""
    return show(key, at(given, key))


def named(name: str, value) -> str:
    """A value of a record shown by the unit that its name carries: `loss_s` in seconds, `usd_lost`
    in dollars."""
    value = scalar(value)
    if not is_number(value):
        return quantities.shown(value, "text")
    for ending, kind, unit in table(__file__, "endings"):
        if name.endswith(ending) or (
            kind in ("usd", "days", "share") and name.startswith(ending + "_")
        ):
            return f"0 {unit}" if value == 0 and unit else quantities.shown(value, kind, unit)
    return plain(float(value)) if value != int(value) else f"{value:,.0f}"
