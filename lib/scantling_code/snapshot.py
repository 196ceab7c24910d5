"""What is said of one design at one moment, in short: what is locked, compared and checked."""

from collections.abc import Mapping
from dataclasses import field
from math import isfinite
from typing import Any

from scantling.base.quantities.quantity import quantity
from scantling.base.records import Known, record
from scantling.design.design import Design
from scantling.plans.plan_names import PlanRow
from scantling.verdict.assessment import Assessment
from scantling.verdict.result import NumberKey, Result, figure

from .answers import Answer, Tuned

KEYS: tuple[NumberKey, ...] = (
    "likely.days",
    "likely.cost_usd",
    "goodput",
    "memory_bytes.total",
    "mfu_shown",
    "step_s",
    "devices_used",
    "oom_probability",
    "checkpoint_interval_s",
    "days",
    "cost_usd",
)
BANDS: dict[NumberKey, tuple[NumberKey, NumberKey]] = {
    "likely.days": ("likely.days_low", "likely.days_high"),
    "mfu_shown": ("mfu_shown_low", "mfu_shown_high"),
    "step_s": ("step_s_low", "step_s_high"),
}
# fields of a policy's engine that stand beside those of a plan
OF_ENGINE = "rollout."
ENGINE = ("colocated", "devices", "tp", "dp", "lag", "weight_sync", "kv_fraction")
NOISE = 1e-6  # share up to which a figure that is computed again elsewhere is the same
SHORT = {
    "likely.days": "days",
    "likely.cost_usd": "dollars",
    "goodput": "goodput",
    "memory_bytes.total": "memory",
    "mfu_shown": "MFU",
    "step_s": "step",
    "devices_used": "devices",
    "oom_probability": "chance of running out of memory",
    "checkpoint_interval_s": "checkpoint interval",
}


@record
class Figure:
    """A figure with its 80 % band; None where there is none."""

    value: Known
    low: Known = None
    high: Known = None


@record
class State:
    """Verdict, plan and figures of a design, as they are now or as a lock has them."""

    name: str
    design: Design
    verdict: str
    plan: Mapping[str, Any] | None  # of the main phase; None where none holds the model
    figures: Mapping[str, Figure]  # by key of `design --json`
    missed: tuple[str, ...] = ()  # constraints that are not met, in words
    # of a step [s]; none of a lock
    step_parts: Mapping[str, float] = field(default_factory=dict)

    def value(self, key: str) -> Known:
        """A figure; None where it has none."""
        one = self.figures.get(key)
        return None if one is None else one.value


def state(answer: Answer) -> State:
    """The state of an answered design."""
    if isinstance(answer, Assessment):
        plan: PlanRow | None = answer.plan
        return State(
            name=answer.resolved.name,
            design=answer.design,
            verdict=answer.verdict,
            plan=None if plan is None else dict(plan),
            figures=_figures(_result(answer)) if answer.phases else {},
            missed=tuple(one.text for one in answer.missed),
            step_parts=answer.step_breakdown_s if answer.phases else {},
        )
    return State(
        name=answer.name,
        design=answer.design,
        verdict=answer.verdict,
        plan=None if answer.plan is None else answer.plan | _rollout(answer),
        figures={} if answer.plan is None else _figures(answer.as_dict()),
        missed=answer.limits,
    )


def _rollout(answer: Tuned) -> dict[str, Any]:
    """Of a policy, the plan of its engine by column."""
    rollout = answer.rollout or {}
    return {f"{OF_ENGINE}{name}": rollout[name] for name in ENGINE if name in rollout}


def _result(assessment: Assessment) -> Result:
    return {
        "verdict": assessment.verdict,
        **assessment.headline(),
        "likely": assessment.likely.row(),
    }


def _figures(result: Result) -> dict[str, Figure]:
    """The figures of a result with their bands."""
    figures: dict[str, Figure] = {}
    likely = result["likely"]
    for key in KEYS:
        value = figure(result, key)
        if value is None or not isfinite(value):
            continue
        low: Known = None
        high: Known = None
        if key in BANDS:
            low, high = (figure(result, end) for end in BANDS[key])
        elif key == "likely.cost_usd":
            low, high = likely["cost_usd_low"], likely["cost_usd_high"]
        figures[key] = Figure(value=float(value), low=_plain(low), high=_plain(high))
    return figures


def _plain(value: Known) -> Known:
    return None if value is None else float(value)


def same(one: float, other: float, tolerance: float = 0.0) -> bool:
    """Whether two values of a figure are one, but for a share of the larger."""
    return abs(other - one) <= max(tolerance, NOISE) * max(abs(one), abs(other))


def label(key: str) -> str:
    """What a figure is called."""
    return SHORT[key] if key in SHORT else quantity(key).label
