"""What an assessment is: a plain record of the verdict, the plan and the numbers."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..base.records import Assumed, Known, Lines, record
from ..base.show import percent
from ..catalogue.stacks import Switch, software_switches
from ..design.design import Design
from ..design.resolved import Phase, Resolved
from ..endure.cost import Cost
from ..endure.life import Gang
from ..endure.reliability import Endurance
from ..physics.cases import Cases
from ..physics.memory.peak import Memory
from ..physics.step import Step
from ..plans.evaluate import Search
from ..plans.plan_names import PlanRow, short
from .likely import DrawnRuns, Likely, likely
from .result import Fastest, FigureName, Promise, Result
from .verdicts import met

REFUSAL = "Hardware constraints insufficient for model parameters"
# the figures of an impossible design, which has no plan: whoever reads one asks `phases` first
NO_PLAN: Any = None


class Alternative(NamedTuple):
    """Another plan of the same search in words, and the share by which its step is longer."""

    plan: str
    longer: float

    @property
    def apart(self) -> str:
        """The step beside the chosen plan's: a step 6.2 % longer, or shorter."""
        return f"a step {percent(abs(self.longer))} {'shorter' if self.longer < 0 else 'longer'}"


@record
class Chosen:
    """One phase of the run with its plan."""

    phase: Phase
    search: Search  # the search that the plan comes from
    row: int  # of the plan in that search
    plan: PlanRow  # the plan as plain values, in the keys of `design --json`
    case: Cases
    gang: Gang  # what an elastic run of the plan drops at once
    memory: Memory
    step: Step  # as computed
    fits: bool
    oom_probability: float  # chance that the peak exceeds the capacity
    step_s: float  # seconds a step: measured where the design says so, else computed
    step_s_low: float  # 80 % band of the step [s]; no width where the step was measured
    step_s_high: float

    __eq__ = object.__eq__  # a choice is equal to itself alone
    __hash__ = object.__hash__

    def alternative(self, row: int) -> Alternative:
        """The plan in another row of the same search."""
        steps = self.search.step_s
        longer = float(steps[row] / steps[self.row] - 1)
        return Alternative(plan=short(self.search.row(row)), longer=longer)


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
        if isinstance(self.limit, str) or isinstance(self.value, str):
            return 1.0
        if self.limit == 0 or self.value == 0:
            return 1.0
        return max(self.limit / self.value, self.value / self.limit)


@dataclass(frozen=True)
class Reason:
    """Why a verdict is no plain `feasible`: the verdict that it asks for, the field or threshold it
    concerns, a line."""

    verdict: str
    field: str
    text: str


@record
class Numbers:
    """Headline numbers of the main phase, days and bands of the whole run; None where the design
    is impossible. The names are the keys of `design --json`."""

    plan: PlanRow = NO_PLAN
    devices_used: int = NO_PLAN
    params: float = NO_PLAN
    active_params: float = NO_PLAN
    mtp_params: float = NO_PLAN
    flops_per_token: float = NO_PLAN
    step_s: float = NO_PLAN
    step_s_low: float = NO_PLAN
    step_s_high: float = NO_PLAN
    tokens_per_s_per_device: float = NO_PLAN
    model_tflops_per_device: float = NO_PLAN
    mfu: float = NO_PLAN
    mfu_causal: float = NO_PLAN
    mfu_bf16_peak: float = NO_PLAN
    hfu: float = NO_PLAN
    mfu_low: float = NO_PLAN
    mfu_high: float = NO_PLAN
    mfu_shown: float = NO_PLAN
    mfu_shown_low: float = NO_PLAN
    mfu_shown_high: float = NO_PLAN
    mfu_basis: str = NO_PLAN
    mfu_denominator: str = NO_PLAN
    band_tier: str = NO_PLAN
    bubble_fraction: float = NO_PLAN
    memory_bytes: dict[str, float] = NO_PLAN
    oom_probability: float = NO_PLAN
    step_breakdown_s: dict[str, float] = NO_PLAN
    days: Known = None  # of days and dollars: None without tokens, of dollars also without a price
    days_low: Known = None
    days_high: Known = None
    goodput: float = NO_PLAN
    mtbf_s: float = NO_PLAN
    checkpoint_interval_s: float = NO_PLAN
    checkpoint_bytes: float = NO_PLAN
    checkpoint_overhead: float = NO_PLAN
    spares: int = NO_PLAN
    spares_recommended: int = NO_PLAN
    cost_usd: Known = None
    cost_usd_low: Known = None
    cost_usd_high: Known = None
    cost_at_risk_usd: Known = None
    energy_kwh: Known = None
    fastest: Fastest | None = None

    def headline(self) -> Result:
        """The headline numbers in the keys of `design --json`."""
        return {
            "plan": self.plan,
            "devices_used": self.devices_used,
            "params": self.params,
            "active_params": self.active_params,
            "mtp_params": self.mtp_params,
            "flops_per_token": self.flops_per_token,
            "step_s": self.step_s,
            "step_s_low": self.step_s_low,
            "step_s_high": self.step_s_high,
            "tokens_per_s_per_device": self.tokens_per_s_per_device,
            "model_tflops_per_device": self.model_tflops_per_device,
            "mfu": self.mfu,
            "mfu_causal": self.mfu_causal,
            "mfu_bf16_peak": self.mfu_bf16_peak,
            "hfu": self.hfu,
            "mfu_low": self.mfu_low,
            "mfu_high": self.mfu_high,
            "mfu_shown": self.mfu_shown,
            "mfu_shown_low": self.mfu_shown_low,
            "mfu_shown_high": self.mfu_shown_high,
            "mfu_basis": self.mfu_basis,
            "mfu_denominator": self.mfu_denominator,
            "band_tier": self.band_tier,
            "bubble_fraction": self.bubble_fraction,
            "memory_bytes": self.memory_bytes,
            "oom_probability": self.oom_probability,
            "step_breakdown_s": self.step_breakdown_s,
            "days": self.days,
            "days_low": self.days_low,
            "days_high": self.days_high,
            "goodput": self.goodput,
            "mtbf_s": self.mtbf_s,
            "checkpoint_interval_s": self.checkpoint_interval_s,
            "checkpoint_bytes": self.checkpoint_bytes,
            "checkpoint_overhead": self.checkpoint_overhead,
            "spares": self.spares,
            "spares_recommended": self.spares_recommended,
            "cost_usd": self.cost_usd,
            "cost_usd_low": self.cost_usd_low,
            "cost_usd_high": self.cost_usd_high,
            "cost_at_risk_usd": self.cost_at_risk_usd,
            "energy_kwh": self.energy_kwh,
            "fastest": self.fastest,
        }


@record
class Assessment(Numbers):
    """What the library says of one design. What follows from it (limits, fixes, what to avoid, the
    site around the job) are functions of it."""

    design: Design
    resolved: Resolved
    verdict: str
    phases: tuple[Chosen, ...] = ()  # empty where impossible
    endurance: Endurance = NO_PLAN
    cost: Cost | None = None  # None without tokens
    missed: tuple[Missed, ...] = ()  # constraints that are not met, the worst first
    reasons: tuple[Reason, ...] = ()  # beside what is missed, the gravest first
    refusal: Lines = ()  # the arithmetic, where impossible
    drawn: DrawnRuns | None = None  # None where impossible

    __eq__ = object.__eq__  # an assessment is equal to itself alone
    __hash__ = object.__hash__

    def figures(self, *names: FigureName) -> dict[str, Any]:
        """The verdict, some of the headline numbers and the share of the memory, by name."""
        values: dict[str, Any] = {
            "verdict": self.verdict,
            "memory_share": self.memory_share,
            **self.headline(),
        }
        if "likely" in names:
            values["likely"] = self.likely.row()
        return {name: values[name] for name in names}

    @property
    def promise(self) -> Promise | None:
        """Days, dollars and chances of the drawn runs (`scantling_site.promise`); None without
        tokens or a plan."""
        return None if self.drawn is None else self.drawn.promise

    @property
    def likely(self) -> Likely:
        """Days and dollars that the run is likely to take: what leads on every surface, and what
        deadline and budget are judged by; the undisturbed ones where no package draws runs."""
        if self.promise is not None:
            return likely(self.promise)
        return Likely(
            days=self.days,
            days_low=self.days_low,
            days_high=self.days_high,
            cost_usd=self.cost_usd,
            cost_usd_low=self.cost_usd_low,
            cost_usd_high=self.cost_usd_high,
        )

    @property
    def chosen(self) -> Chosen:
        """The phase that the headline is about."""
        return self.phases[self.resolved.main]

    @property
    def assumed(self) -> tuple[Assumed, ...]:
        """All that was filled in; of a switch what the step of the chosen plan counts on, by its
        release too, or the number of the fit that it goes by."""
        by_field = {switch.field: switch for switch in software_switches().values()}
        sources = (self.resolved, self.endurance, self.cost)
        out = []
        for assumed in (a for source in sources if source is not None for a in source.assumed):
            switch = by_field.get(assumed.field)
            if switch is not None:
                assumed = replace(assumed, value=_counted(switch, self.chosen.case))
            out.append(assumed)
        return tuple(out)

    @property
    def idle_nodes(self) -> int:
        """Whole nodes of the cluster that the plan does not use: they stand in for spares."""
        cluster = self.resolved.cluster
        return (cluster.devices - self.devices_used) // cluster.devices_per_node

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


def _counted(switch: Switch, case: Cases) -> Any:
    """What the step of a case counts on of a switch: its word, or the number of the fit."""
    word = switch.word(float(vars(case.software)[switch.name]))
    if word is None and switch.fitted:
        return float(vars(case.constants)[switch.fitted])
    return word
