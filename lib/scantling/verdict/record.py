"""What an assessment is: a plain record of the verdict, the plan and the numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..design.design import Design
from ..design.resolve import Phase, Resolved
from ..endure.cost import Cost
from ..endure.reliability import Endurance
from ..physics.cases import Cases
from ..physics.memory.peak import Memory
from ..physics.step import Step
from ..plans.run import Found

REFUSAL = "Hardware constraints insufficient for model parameters"


@dataclass(
    frozen=True,
    kw_only=True,
    eq=False,
)
class Chosen:
    """One phase of the run with its plan."""

    phase: Phase
    found: Found  # the search that the plan comes from
    row: int  # of the plan in that search
    plan: dict  # the plan as plain values, in the keys of `design --json`
    case: Cases
    memory: Memory
    step: Step  # as computed
    fits: bool
    step_s: float  # seconds a step: measured where the design says so, else computed
    step_s_low: float  # 80 % band of the step [s]; no width where the step was measured
    step_s_high: float


@dataclass(frozen=True)
class Missed:
    """A constraint that the estimate misses: field, limit, value, the chance of meeting it within
    the band (None where no band applies), a line."""

    field: str
    limit: float | str
    value: float | str
    chance: float | None
    text: str

    @property
    def gap(self) -> float:
        """Value to limit, or limit to value, whichever is at least 1; 1 for what is no number."""
        try:
            return max(self.limit / self.value, self.value / self.limit)
        except (TypeError, ZeroDivisionError):
            return 1.0


@dataclass(
    frozen=True,
    kw_only=True,
    eq=False,
)
class Numbers:
    """Headline numbers of the main phase, days and bands of the whole run; None where the design
    is impossible. The names are the keys of `design --json`."""

    plan: dict | None = None
    devices_used: int | None = None
    params: int | None = None
    active_params: int | None = None
    mtp_params: int | None = None
    flops_per_token: float | None = None
    step_s: float | None = None
    step_s_low: float | None = None
    step_s_high: float | None = None
    tokens_per_s_per_device: float | None = None
    model_tflops_per_device: float | None = None
    mfu: float | None = None
    mfu_causal: float | None = None
    mfu_bf16_peak: float | None = None
    hfu: float | None = None
    mfu_low: float | None = None
    mfu_high: float | None = None
    bubble_fraction: float | None = None
    memory_bytes: dict | None = None
    step_breakdown_s: dict | None = None
    days: float | None = None
    days_low: float | None = None
    days_high: float | None = None
    goodput: float | None = None
    mtbf_s: float | None = None
    checkpoint_interval_s: float | None = None
    checkpoint_bytes: float | None = None
    checkpoint_overhead: float | None = None
    spares: int | None = None
    spares_recommended: int | None = None
    cost_usd: float | None = None
    energy_kwh: float | None = None

    def headline(self) -> dict:
        """The headline numbers by name."""
        return {f.name: getattr(self, f.name) for f in fields(Numbers)}


@dataclass(
    frozen=True,
    kw_only=True,
    eq=False,
)
class Assessment(Numbers):
    """What the library says of one design. What follows from it (limits, fixes, what to avoid, the
    site around the job) are functions of it."""

    design: Design
    resolved: Resolved
    verdict: str
    phases: tuple[Chosen, ...] = ()  # empty where impossible
    endurance: Endurance | None = None
    cost: Cost | None = None  # None without tokens
    missed: tuple[Missed, ...] = ()  # constraints that are not met, the worst first
    refusal: tuple[str, ...] = ()  # the arithmetic, where impossible

    @property
    def chosen(self) -> Chosen:
        """The phase that the headline is about."""
        return self.phases[self.resolved.main]

    @property
    def fits(self) -> bool:
        """True where the plan of every phase fits its memory."""
        return bool(self.phases) and all(one.fits for one in self.phases)

    @property
    def error(self) -> str | None:
        """The refusal, word for word, where the design is impossible."""
        return REFUSAL if self.verdict == "impossible" else None
