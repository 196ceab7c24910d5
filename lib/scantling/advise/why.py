"""Why this plan: one line an axis, from plans that the design's own search evaluated."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np

from ..base.errors import DesignError
from ..base.show import percent, seconds, several, size
from ..catalogue.words import SHARDINGS, STEP_PARTS, Axis, StepPart
from ..physics.cases import devices
from ..physics.communication import communication
from ..physics.step import Step, step_time
from ..plans.evaluate import Search
from ..plans.plan_names import degrees_of, sharding_word, short
from ..verdict.assessment import Assessment, Chosen
from ..verdict.overheads import OWN_COMPUTATION
from ..verdict.result import Line
from ..verdict.texts import PINNED, loss_name
from ..verdict.unpublished import exchanges
from .alternatives import alternatives, best_among, longer, unpinned_but

WORTH_SAYING = 0.005  # share of a step
LARGE_LOSS = 0.1  # share of a step that pins cost from which they lead the verdict
NAMED = 4  # pins that a line names; more are counted
NEARLY_ALL = 0.9  # share of today's devices that a neighbouring value has to keep at work
AXES = (Axis.TP, Axis.CP, Axis.PP, Axis.DP)


class Distance(TypedDict):
    """How far a pinned plan is from the best one that the same model finds without the pins."""

    plan: str
    step_s: float
    oom_probability: float
    best: str  # that plan
    best_step_s: float
    gain: float  # share of the step that it saves
    saves: str  # of the step, by where it goes
    adds: str


def why(assessment: Assessment) -> list[Line]:
    """One line per axis in use (and the next value of the others): tier, traffic, exposed time,
    cost of the neighbouring values."""
    if not assessment.phases:
        return []
    chosen = assessment.chosen
    search = alternatives(assessment) or chosen.search
    traffic = {row["axis"]: row for row in communication(chosen.case, chosen.step)}
    axes = (*AXES, Axis.EP) if assessment.resolved.model.experts else AXES
    texts = {axis.value: _axis(search, chosen, axis, traffic.get(axis)) for axis in axes}
    texts["pins"] = _pins(assessment)
    texts["sharding"] = _sharding(search, chosen)
    return [Line(axis=axis, text=text) for axis, text in texts.items() if text]


def _axis(search: Search, chosen: Chosen, axis: Axis, traffic: Mapping[str, Any] | None) -> str:
    """An axis: where its traffic goes, and its neighbouring values."""
    value = degrees_of(chosen.plan)[axis]
    text = f"{axis} {value}"
    if traffic:
        text += (
            f" on the {traffic['tier']} tier: {traffic['what']}, {size(traffic['bytes'])} a device "
            f"and step, {seconds(traffic['exposed_s'])} of {seconds(traffic['time_s'])} exposed"
        )
    elif value == 1:
        text += ": not used"
    ways = exchanges(chosen) if axis == Axis.CP else {}
    if ways:
        times = ", ".join(f"{name} {percent(ratio - 1, 1, '+')}" for name, ratio in ways.items())
        text += f"; by {chosen.plan['cp_type']} ({times} step time on paper)"
    higher = _neighbour(search, chosen, axis, above=True)
    lower = _neighbour(search, chosen, axis, above=False)
    return "; ".join(part for part in (text, higher, lower) if part)


def _neighbour(search: Search, chosen: Chosen, axis: Axis, above: bool) -> str:
    """What the next value of an axis, above or below today's, that leaves hardly a device idle
    would cost (else the next at all), at the best setting of everything else."""
    values = search.column(axis)
    today = degrees_of(chosen.plan)[axis]
    side = values > today if above else values < today
    if not side.any() or not chosen.fits:
        return ""
    by_plan = np.asarray(devices(search.plan))
    now = devices(chosen.case.plan)
    busy = side & search.fits & (by_plan >= NEARLY_ALL * now)
    side = busy if busy.any() else side
    other = values[side].min() if above else values[side].max()
    row = best_among(search, side & (values == other))
    if row is None:
        return f"{axis} {other:.0f} does not fit"
    text = f"{axis} {other:.0f} {percent(longer(search, chosen, row), 1, '+')} step time"
    if by_plan[row] != now:
        text += f" on {by_plan[row]:,.0f} devices"
    return text if search.practised[row] else f"{text} on paper (untried)"


def _sharding(search: Search, chosen: Chosen) -> str:
    """The sharding, and the step of the best plan with each other one."""
    today = chosen.plan["sharding"]
    costs = []
    if chosen.fits:
        shared = search.column("dp") * search.column("cp") > 1
        for code, name in enumerate(SHARDINGS):
            if name == today:
                continue
            row = best_among(search, shared & (search.column("sharding") == code))
            if row is not None:
                more = percent(longer(search, chosen, row), 1, "+")
                accumulated = several(search.row(row)["grad_accum"], "micro-batch", "micro-batches")
                costs.append(f"{sharding_word(name)} ({accumulated}) {more}")
    text = f"sharding {today}"
    return f"{text}: step time of the best plan with {', '.join(costs)}" if costs else text


def distance(assessment: Assessment) -> Distance | None:
    """How far a pinned plan is from the best plan that the same model finds without the pins; None
    where nothing is pinned or the plan does not fit. Of a published plan it is what the search
    thinks that its authors left.
    """
    chosen = assessment.chosen
    search = alternatives(assessment)
    best = None if search is None else search.best()
    if search is None or best is None or not chosen.search.situation.phase.pins:
        return None
    other = step_time(search.case(best))
    return Distance(
        plan=short(chosen.plan),
        step_s=float(chosen.step.total),
        oom_probability=chosen.oom_probability,
        best=short(search.row(best)),
        best_step_s=float(search.step_s[best]),
        gain=-longer(search, chosen, best),
        saves=_moved(chosen.step, chosen.step, other),
        adds=_moved(chosen.step, other, chosen.step),
    )


def pinned_loss(assessment: Assessment) -> str | None:
    """A line on pins that make a step longer by LARGE_LOSS or more than the open search's best;
    None where they do not."""
    if not assessment.fits or not assessment.design.plan.stated():
        return None
    far = distance(assessment)
    if far is None or far["gain"] < LARGE_LOSS:
        return None
    stated = assessment.design.plan.stated()
    pins = f"the {len(stated)} fields of the plan that the design file fixes"
    if len(stated) <= NAMED:
        pins = ", ".join(f"{name} {value}" for name, value in stated.items())
    times = 1 / (1 - far["gain"])
    return (
        f"{PINNED}with {pins} a step takes {times:.2f} times as long as with {far['best']}; "
        f"saved there: {far['saves']} of the step"
    )


@lru_cache(maxsize=2)
def _pins(assessment: Assessment) -> str:
    """What the pins cost: the open search's best plan, and what letting go of each pin alone
    gains."""
    pinned = assessment.chosen.search.situation.phase.pins
    pins = [name for name, value in pinned.items() if value is not None]
    far = distance(assessment) if pins and assessment.chosen.fits else None
    if far is None:
        return ""
    if far["gain"] < WORTH_SAYING:
        least = percent(WORTH_SAYING)
        return f"fixed plan: nothing that is {least} faster was found with its fields left open"
    gains = sorted(_gains_alone(assessment, pins), key=lambda pair: -pair[1])
    alone = ", ".join(f"{pin} {percent(gain)}" for pin, gain in gains) or "nothing"
    spent = f" and adds {far['adds']}" if far["adds"] else ""
    return (
        f"fixed plan: with its fields left open the best ({far['best']}) takes "
        f"{percent(far['gain'])} less: of today's step it saves {far['saves']}{spent}; with one "
        f"field alone left open the gain is: {alone}"
    )


def _gains_alone(assessment: Assessment, pins: Sequence[str]) -> Iterator[tuple[str, float]]:
    """(pin, gain) of letting go of each pin alone, where that gains something."""
    for pin in pins:
        with suppress(DesignError):
            search = unpinned_but(assessment, *(other for other in pins if other != pin))
            best = search.best()
            gain = 0.0 if best is None else -longer(search, assessment.chosen, best)
            if gain >= WORTH_SAYING:
                yield pin, gain


def _moved(today: Step, longer_step: Step, shorter_step: Step) -> str:
    """What one step spends more than another, as shares of today's, in words, the largest first."""

    def excess(*parts: StepPart | str) -> float:
        more = sum(vars(longer_step)[part] - vars(shorter_step)[part] for part in parts)
        return float(more / today.total)

    # which stage is the fullest depends on where the head is
    shares = [(excess(*OWN_COMPUTATION), "work of the fullest stage")]
    shares += [
        (excess(part), loss_name(part)) for part in STEP_PARTS if part not in OWN_COMPUTATION
    ]
    shares.sort(reverse=True)
    return ", ".join(f"{name} {percent(x)}" for x, name in shares if x >= WORTH_SAYING)
