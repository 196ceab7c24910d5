"""Why this plan: one line an axis, from plans that the design's own search evaluated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.errors import DesignError
from ..base.quantities.table import show
from ..base.show import percent
from ..catalogue.words import SHARDINGS
from ..physics.cases import devices
from ..physics.communication import communication
from ..physics.step import PARTS, step_time
from ..plans.run import Found
from ..plans.words import short
from ..verdict.limits import LOSSES
from ..verdict.record import Assessment, Chosen
from ..verdict.unpublished import exchanges
from .alternatives import alternatives, best_where, column, unpinned_but

WORTH_SAYING = 0.005  # share of a step
NEARLY_ALL = 0.9  # share of today's devices that a neighbouring value has to keep at work
# what the fullest stage does itself: which of them it is depends on where the head is
OWN = ("gemm", "attention", "elementwise", "logits")
AXES = ("tp", "cp", "pp", "dp", "ep")


def why(assessment: Assessment, others: Found | None = None) -> list[dict]:
    """One line per axis in use (and the next value of the others): tier, traffic, exposed time,
    cost of the neighbouring values: [{axis, text}].

    others : `alternatives(assessment)`, where it is at hand."""
    if not assessment.phases:
        return []
    chosen = assessment.chosen
    found = others or alternatives(assessment) or chosen.found
    rows = {r["axis"]: r for r in communication(chosen.case, chosen.step)}
    texts = {
        axis: _axis(
            found,
            chosen,
            axis,
            rows.get(axis),
        )
        for axis in AXES
        if axis != "ep" or assessment.resolved.model.experts
    }
    texts |= {
        "pins": _pins(assessment, found),
        "sharding": _sharding(found, chosen),
    }
    return [
        dict(
            axis=axis,
            text=text,
        )
        for axis, text in texts.items()
        if text
    ]


def _axis(
    found: Found,
    chosen: Chosen,
    axis: str,
    row: dict | None,
) -> str:
    """An axis: where its traffic goes, and its neighbouring values."""
    value = chosen.plan[axis]
    text = f"{axis} {value}"
    if row:
        text += (
            f" on the {row['tier']} tier: {row['what']}, "
            f"{show('communication.bytes', row['bytes'])} a device and step, "
            f"{show('communication.exposed_s', row['exposed_s'])} of "
            f"{show('communication.time_s', row['time_s'])} exposed"
        )
    elif value == 1:
        text += ": not used"
    if axis == "cp" and value > 1:
        text += _exchanges(chosen)
    sides = (
        _neighbour(
            found,
            chosen,
            axis,
            up,
        )
        for up in (True, False)
    )
    return "; ".join([text, *(side for side in sides if side)])


def _exchanges(chosen: Chosen) -> str:
    """The other ways of exchanging keys and values, by the same plan."""
    ways = ", ".join(f"{name} {_more(ratio)}" for name, ratio in exchanges(chosen).items())
    return f"; by {chosen.plan['cp_type']} ({ways} step time on paper)" if ways else ""


def _more(ratio) -> str:
    return percent(ratio - 1, sign="+")


def _neighbour(
    found: Found,
    chosen: Chosen,
    axis: str,
    up: bool,
) -> str:
    """What the next value of an axis that leaves hardly a device idle would cost (else the next at
    all), at the best setting of everything else."""
    values, value = column(found, axis), chosen.plan[axis]
    side = values > value if up else values < value
    if not side.any() or not chosen.fits:
        return ""
    every, now = np.broadcast_to(devices(found.plan), values.shape), int(devices(chosen.case.plan))
    busy = side & found.fits & (every >= NEARLY_ALL * now)
    side = busy if busy.any() else side
    other = int(values[side].min() if up else values[side].max())
    row = best_where(found, side & (values == other))
    if row is None:
        return f"{axis} {other} does not fit"
    return (
        f"{axis} {other} {_more(found.step_s[row] / float(chosen.step.total))} step time"
        + (f" on {int(every[row]):,} devices" if every[row] != now else "")
        + ("" if found.practised[row] else " on paper (untried)")
    )


def _sharding(found: Found, chosen: Chosen) -> str:
    """The sharding, and the step of the best plan with each other one."""
    shared, costs = (column(found, "dp") * column(found, "cp")) > 1, []
    for i, name in enumerate(SHARDINGS if chosen.fits else ()):
        row = best_where(found, shared & (column(found, "sharding") == i))
        if name != chosen.plan["sharding"] and row is not None:
            once = " at one micro-batch a step" if name == "zero2" else ""
            costs.append(f"{name}{once} {_more(found.step_s[row] / float(chosen.step.total))}")
    return f"sharding {chosen.plan['sharding']}" + (
        ": step time of the best plan with " + ", ".join(costs) if costs else ""
    )


def _pins(assessment: Assessment, found: Found) -> str:
    """What the pins cost: the open search's best plan, and what letting go of each pin alone
    gains."""
    chosen, best = assessment.chosen, found.best()
    pins = [k for k, v in chosen.found.situation.phase.pins.items() if v is not None]
    if not pins or not chosen.fits or best is None:
        return ""
    gain = _gain(chosen, found)
    if gain < WORTH_SAYING:
        return (
            f"pins: the open search finds nothing that is {percent(WORTH_SAYING)} faster than the "
            f"pinned plan"
        )
    alone = sorted(_alone(assessment, pins), key=lambda pair: -pair[1])
    saved, spent = _moved(chosen, step_time(found.case(best)))
    return (
        f"pins: the open search's best ({short(found.row(best))}) takes {percent(gain)} less: of "
        f"today's step it saves {saved}"
        + (f" and adds {spent}" if spent else "")
        + "; letting go of one pin alone gains "
        + (", ".join(f"{pin} {percent(gained)}" for pin, gained in alone) or "nothing")
    )


def _gain(chosen: Chosen, found: Found) -> float:
    """Share of today's step that a search's best plan saves."""
    return 1 - float(found.step_s[found.best()]) / float(chosen.step.total)


def _alone(assessment: Assessment, pins: list[str]) -> Iterator[tuple[str, float]]:
    """(pin, gain) of letting go of each pin alone, where that gains something."""
    for pin in pins:
        try:
            found = unpinned_but(assessment, *(p for p in pins if p != pin))
        except DesignError:
            continue
        if found.best() is not None and _gain(assessment.chosen, found) >= WORTH_SAYING:
            yield pin, _gain(assessment.chosen, found)


def _moved(chosen: Chosen, other) -> tuple[str, str]:
    """(what another step saves, what it adds) of today's, in words."""

    def less(part: str) -> float:
        moved = float(getattr(chosen.step, part)) - float(getattr(other, part))
        return moved / float(chosen.step.total)

    shares = [(sum(less(part) for part in OWN), "work of the fullest stage")]
    shares += [(less(part), LOSSES.get(part, part)) for part in PARTS if part not in OWN]
    shares.sort()
    saved = [f"{name} {percent(x)}" for x, name in reversed(shares) if x >= WORTH_SAYING]
    spent = [f"{name} {percent(-x)}" for x, name in shares if x <= -WORTH_SAYING]
    return ", ".join(saved), ", ".join(spent)
