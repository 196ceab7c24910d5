"""Why this plan: one line an axis, from plans that the design's own search evaluated."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

import numpy as np

from ..base.errors import DesignError
from ..base.show import percent
from ..catalogue.words import SHARDINGS
from ..physics.cases import devices
from ..physics.communication import communication
from ..physics.step import PARTS, step_time
from ..plans.evaluate import Found
from ..plans.words import short
from ..verdict.limits import LOSSES
from ..verdict.record import Assessment, Chosen
from ..verdict.unpublished import exchanges
from .alternatives import alternatives, best_where, unpinned_but
from .words import say

WORTH_SAYING = 0.005  # share of a step
NEARLY_ALL = 0.9  # share of today's devices that a neighbouring value has to keep at work
# what the fullest stage does itself: which of them it is depends on where the head is
OWN = ("gemm", "attention", "elementwise", "logits")
AXES = ("tp", "cp", "pp", "dp", "ep")


def why(assessment: Assessment) -> list:
    """One line per axis in use (and the next value of the others): tier, traffic, exposed time,
    cost of the neighbouring values: [{axis, text}]."""
    if not assessment.phases:
        return []
    chosen = assessment.chosen
    found = alternatives(assessment) or chosen.found
    rows = {r["axis"]: r for r in communication(chosen.case, chosen.step)}
    axes = AXES if assessment.resolved.model.experts else AXES[:-1]
    texts = {axis: _axis(found, chosen, axis, rows.get(axis)) for axis in axes} | {
        "pins": _pins(assessment),
        "sharding": _sharding(found, chosen),
    }
    return [{"axis": axis, "text": text} for axis, text in texts.items() if text]


def _axis(found: Found, chosen: Chosen, axis: str, row: dict | None) -> str:
    """An axis: where its traffic goes, and its neighbouring values."""
    value = chosen.plan[axis]
    text = f"{axis} {value}"
    if row:
        text += say("traffic", row=row)
    elif value == 1:
        text += ": not used"
    ways = exchanges(chosen) if axis == "cp" else {}
    if ways:
        said = (say("times", what=name, ratio=ratio - 1) for name, ratio in ways.items())
        text += say("exchanges", plan=chosen.plan, ways=", ".join(said))
    sides = (_neighbour(found, chosen, axis, side) for side in (np.greater, np.less))
    return "; ".join([text, *filter(None, sides)])


def _neighbour(found: Found, chosen: Chosen, axis: str, beside) -> str:
    """What the next value of an axis that leaves hardly a device idle would cost (else the next at
    all), at the best setting of everything else; beside: greater or less."""
    values = found.column(axis)
    side = beside(values, chosen.plan[axis])
    if not side.any() or not chosen.fits:
        return ""
    every = devices(found.plan)
    now = devices(chosen.case.plan)
    busy = side & found.fits & (every >= NEARLY_ALL * now)
    side = busy if busy.any() else side
    other = values[side].min() if beside is np.greater else values[side].max()
    row = best_where(found, side & (values == other))
    what = f"{axis} {other:.0f}"
    if row is None:
        return f"{what} does not fit"
    return (
        say("neighbour", what=what, ratio=longer(found, chosen, row))
        + (f" on {every[row]:,.0f} devices" if every[row] != now else "")
        + ("" if found.practised[row] else " on paper (untried)")
    )


def longer(found: Found, chosen: Chosen, row: int) -> float:
    """Share by which a plan's step is longer than today's."""
    return found.step_s[row] / chosen.step.total - 1


def _sharding(found: Found, chosen: Chosen) -> str:
    """The sharding, and the step of the best plan with each other one."""
    shared = found.column("dp") * found.column("cp") > 1
    costs = [
        say(
            "times",
            what=say("sharded", name=name, plan=found.row(row)),
            ratio=longer(found, chosen, row),
        )
        for i, name in enumerate(SHARDINGS if chosen.fits else ())
        if name != chosen.plan["sharding"]
        and (row := best_where(found, shared & (found.column("sharding") == i))) is not None
    ]
    text = f"sharding {chosen.plan['sharding']}"
    return f"{text}: step time of the best plan with {', '.join(costs)}" if costs else text


def distance(assessment: Assessment) -> dict | None:
    """How far a pinned plan is from the best plan that the same model finds without the pins:
    {plan, step_s, oom_probability, best (that plan), best_step_s, gain (share of the step that it
    saves), saves, adds (of the step, by where it goes, in words)}; None where nothing is pinned or
    the plan does not fit. Of a published plan it is what the search thinks that its authors left.
    """
    chosen = assessment.chosen
    found = alternatives(assessment)
    best = found and found.best()
    if best is None or not chosen.found.situation.phase.pins:
        return None
    saved, spent = _moved(chosen, step_time(found.case(best)))
    return {
        "plan": short(chosen.plan),
        "step_s": float(chosen.step.total),
        "oom_probability": chosen.oom_probability,
        "best": short(found.row(best)),
        "best_step_s": float(found.step_s[best]),
        "gain": -float(longer(found, chosen, best)),
        "saves": saved,
        "adds": spent,
    }


@lru_cache(maxsize=2)
def _pins(assessment: Assessment) -> str:
    """What the pins cost: the open search's best plan, and what letting go of each pin alone
    gains."""
    pins = [k for k, v in assessment.chosen.found.situation.phase.pins.items() if v is not None]
    far = distance(assessment) if pins and assessment.chosen.fits else None
    if far is None:
        return ""
    if far["gain"] < WORTH_SAYING:
        return say("pins-cost-nothing", least=WORTH_SAYING)
    alone = sorted(_alone(assessment, pins), key=lambda pair: -pair[1])
    return say(
        "pins-cost",
        plan=far["best"],
        gain=far["gain"],
        saved=far["saves"],
        spent=f" and adds {far['adds']}" if far["adds"] else "",
        alone=", ".join(f"{pin} {percent(gained)}" for pin, gained in alone) or "nothing",
    )


def _alone(assessment: Assessment, pins: list) -> Iterator:
    """(pin, gain) of letting go of each pin alone, where that gains something."""
    for pin in pins:
        with suppress(DesignError):
            found = unpinned_but(assessment, *(p for p in pins if p != pin))
            best = found.best()
            gain = 0.0 if best is None else -longer(found, assessment.chosen, best)
            if gain >= WORTH_SAYING:
                yield pin, gain


def _moved(chosen: Chosen, other) -> tuple:
    """(what another step saves, what it adds) of today's, in words."""

    def saved(*parts: str):
        moved = sum(getattr(chosen.step, part) - getattr(other, part) for part in parts)
        return moved / chosen.step.total

    shares = [(saved(*OWN), "work of the fullest stage")]
    shares += [(saved(part), LOSSES.get(part, part)) for part in PARTS if part not in OWN]

    def said(way):
        moved = sorted(((way * x, name) for x, name in shares), reverse=True)
        return ", ".join(f"{name} {percent(x)}" for x, name in moved if x >= WORTH_SAYING)

    return said(1), said(-1)
