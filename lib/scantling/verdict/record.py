"""What an assessment is: a plain record of the verdict, the plan and the numbers."""

from dataclasses import dataclass, fields, replace

from ..base.records import Assumed, Lines
from ..catalogue.stacks import switches
from ..design.design import Design
from ..design.resolved import Phase, Resolved
from ..endure.cost import Cost
from ..endure.reliability import Endurance
from ..physics.cases import Cases
from ..physics.memory.peak import Memory
from ..physics.step import Step
from ..plans.evaluate import Found
from ..plans.words import short
from .verdicts import met

Number = float | None
Count = int | None
REFUSAL = "Hardware constraints insufficient for model parameters"


@dataclass(frozen=True, kw_only=True, eq=False)
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
    oom_probability: float  # chance that the peak exceeds the capacity
    step_s: float  # seconds a step: measured where the design says so, else computed
    step_s_low: float  # 80 % band of the step [s]; no width where the step was measured
    step_s_high: float

    def beside(self, row: int) -> dict:
        """{plan, longer}: another plan of the same search in words, and the share by which its step
        is longer."""
        steps = self.found.step_s
        return {"plan": short(self.found.row(row)), "longer": steps[row] / steps[self.row] - 1}


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
    def banded(self) -> bool:
        """True where the band of the step decides the chance of meeting it."""
        return self.chance is not None

    @property
    def gap(self) -> float:
        """Value to limit, or limit to value, whichever is at least 1; 1 for what is no number."""
        try:
            return max(self.limit / self.value, self.value / self.limit)
        except (TypeError, ZeroDivisionError):
            return 1.0


@dataclass(frozen=True)
class Reason:
    """Why a verdict is no plain `feasible`: the verdict that it asks for, the field or threshold it
    concerns, a line."""

    verdict: str
    field: str
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Headline numbers of the main phase, days and bands of the whole run; None where the design
    is impossible. The names are the keys of `design --json`."""

    plan: dict | None = None
    devices_used: Count = None
    params: Count = None
    active_params: Count = None
    mtp_params: Count = None
    flops_per_token: Number = None
    step_s: Number = None
    step_s_low: Number = None
    step_s_high: Number = None
    tokens_per_s_per_device: Number = None
    model_tflops_per_device: Number = None
    mfu: Number = None
    mfu_causal: Number = None
    mfu_bf16_peak: Number = None
    hfu: Number = None
    mfu_low: Number = None
    mfu_high: Number = None
    mfu_shown: Number = None
    mfu_shown_low: Number = None
    mfu_shown_high: Number = None
    mfu_basis: str | None = None
    mfu_denominator: str | None = None
    band_tier: str | None = None
    bubble_fraction: Number = None
    memory_bytes: dict | None = None
    oom_probability: Number = None
    step_breakdown_s: dict | None = None
    days: Number = None
    days_low: Number = None
    days_high: Number = None
    goodput: Number = None
    mtbf_s: Number = None
    checkpoint_interval_s: Number = None
    checkpoint_bytes: Number = None
    checkpoint_overhead: Number = None
    spares: Count = None
    spares_recommended: Count = None
    cost_usd: Number = None
    cost_usd_low: Number = None
    cost_usd_high: Number = None
    cost_at_risk_usd: Number = None
    energy_kwh: Number = None
    fastest: dict | None = None

    def headline(self) -> dict:
        """The headline numbers by name."""
        return {f.name: getattr(self, f.name) for f in fields(Numbers)}


@dataclass(frozen=True, kw_only=True, eq=False)
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
    reasons: tuple[Reason, ...] = ()  # beside what is missed, the gravest first
    refusal: Lines = ()  # the arithmetic, where impossible

    def figures(self, *names: str) -> dict:
        """Some of the headline numbers by name."""
        return {name: getattr(self, name) for name in names}

    @property
    def chosen(self) -> Chosen:
        """The phase that the headline is about."""
        return self.phases[self.resolved.main]

    @property
    def assumed(self) -> tuple[Assumed, ...]:
        """All that was filled in; of a switch what the step of the chosen plan counts on, by its
        release too, or the number of the fit that it goes by."""
        by_field = {s.field: s for s in switches().values()}
        case = self.chosen.case

        def counted(a):
            if not (switch := by_field.get(a.field)):
                return a
            value = switch.word(float(getattr(case.software, switch.name)))
            if value is None and switch.fitted:
                value = float(getattr(case.constants, switch.fitted))
            return replace(a, value=value)

        told = filter(None, (self.resolved, self.endurance, self.cost))
        return tuple(counted(a) for said in told for a in said.assumed)

    @property
    def fits(self) -> bool:
        """True where the plan of every phase fits its memory."""
        return bool(self.phases) and all(one.fits for one in self.phases)

    @property
    def met(self) -> bool:
        """True where the plan fits and every stated constraint holds, at risk or not."""
        return met(self.verdict)

    @property
    def memory_share(self) -> float:
        """Memory of the fullest phase over what a device has for it."""
        return self.memory_bytes["total"] / self.memory_bytes["capacity"]

    @property
    def error(self) -> str | None:
        """The refusal, word for word, where the design is impossible."""
        return REFUSAL if self.verdict == "impossible" else None
