"""Numbers as text, through the table of quantities: the widgets never choose a unit or a number of
digits."""

import re
from collections.abc import Mapping
from re import fullmatch
from typing import Any, NamedTuple

from scantling.advise.explanation import plain
from scantling.base.quantities.quantity import quantity, show
from scantling.base.records import at
from scantling.base.show import is_number, scalar, share, shown
from scantling.verdict.result import FigureKey, HeadlineKey

# figures of a run, which a plan that does not fit has none of
OF_A_RUN: tuple[FigureKey, ...] = (
    "days",
    "cost_usd",
    "likely.days",
    "likely.cost_usd",
    "goodput",
    "checkpoint_interval_s",
)
MORE_IS_BETTER: tuple[HeadlineKey, ...] = ("mfu", "mfu_shown", "goodput", "tokens_per_s_per_device")


class Ending(NamedTuple):
    """What the end of a field's name says of its value: how it is shown, and its unit."""

    text: str
    kind: str
    unit: str = ""


# the first that fits counts; usd, days and share may also begin a name
_ENDINGS = (
    Ending("_gbytes_per_s_per_device", "rate", "GB/s"),
    Ending("_gb", "rate", "GB"),
    Ending("_bytes_per_s", "bytes_per_s"),
    Ending("_per_s", "rate", "/s"),
    Ending("usd_per_day", "usd", "/day"),
    Ending("usd", "usd"),
    Ending("_bytes", "bytes"),
    Ending("_s", "seconds"),
    Ending("days", "days", "days"),
    Ending("days_between", "days", "days"),
    Ending("_cost", "share"),
    Ending("likelihood", "share"),
    Ending("goodput", "share"),
    Ending("share", "share"),
    Ending("_w", "watts", "W"),
    Ending("_mw", "rate", "MW"),
    Ending("per_run", "ratio"),
)
_ALSO_IN_FRONT = ("usd", "days", "share")


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan in one line; ways of one are left out."""
    words = [
        f"{axis} {plan[axis]}"
        for axis in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")
        if (plan.get(axis) or 1) != 1
    ]
    unset = (None, 0, "none")
    if plan.get("sharding") not in unset:
        words.append(str(plan["sharding"]))
    if plan.get("micro_batch") not in unset:
        words.append(f"micro-batch {plan['micro_batch']}")
    if plan.get("recompute") not in unset:
        part = plan.get("recompute_share") or 1
        of = f" of {share(part)} of the layers" if part < 1 else ""
        words.append(f"{plan['recompute']} recompute{of}")
    if plan.get("offload") not in unset:
        words.append(f"offload {plan['offload']}")
    return ", ".join(words) or "one device"


def label(key: str) -> str:
    """What a quantity is called."""
    return quantity(key).label


def axis(key: str) -> tuple[str, str]:
    """Unit of an axis that shows a quantity, and the Vega expression that labels its ticks in that
    unit."""
    q = quantity(key)
    return q.axis_unit, f"format(datum.value / {q.scale:g}, ',~r')"


def titled(key: str) -> str:
    """Title of an axis that shows a quantity: its name and, where the name does not say it, the
    unit."""
    name, unit = label(key), quantity(key).axis_unit
    says_it = bool(unit) and re.search(rf"\b{re.escape(unit)}\b", name, re.IGNORECASE)
    return name if not unit or says_it else f"{name}, {unit}"


def split(text: str) -> tuple[str, str]:
    """A shown number as (number, unit), so that the two can be set apart in type."""
    match = fullmatch(r"([−<$~]*[\d,.]+[A-Z]?|[\d,.]+e−?\d+)\s*(.*)", text)
    return (match[1], match[2]) if match else (text, "")


def fits(figures: Mapping[str, Any]) -> bool:
    """Whether there is a plan, and memory for it."""
    memory = figures.get("memory_bytes")
    return bool(memory and memory["total"] <= memory["capacity"])


def withheld(figures: Mapping[str, Any], key: str) -> bool:
    """Whether a figure is one of a run, and the plan, which does not fit, has none."""
    return key in OF_A_RUN and bool(figures.get("plan")) and not fits(figures)


def in_text(figures: Mapping[str, Any], key: str) -> str:
    """The value at a dotted key, shown."""
    return show(key, at(figures, key))


def named(name: str, value: Any) -> str:
    """A value of a record shown by the unit that its name carries: `loss_s` in seconds, `usd_lost`
    in dollars."""
    value = scalar(value)
    if not is_number(value):
        return shown(value, "text")
    for ending in _ENDINGS:
        in_front = ending.kind in _ALSO_IN_FRONT and name.startswith(f"{ending.text}_")
        if name.endswith(ending.text) or in_front:
            zero = value == 0 and ending.unit
            return f"0 {ending.unit}" if zero else shown(value, ending.kind, ending.unit)
    return plain(float(value)) if value != int(value) else f"{value:,.0f}"
