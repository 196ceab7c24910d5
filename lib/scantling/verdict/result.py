"""What is said of one design as plain data, each key written once: the keys of `design --json`.

Who reads, lists or renames a figure by a name that is none is named by mypy.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, overload

from ..base.quantities.quantity import band, show
from ..base.records import AssumedRow, Known, at
from ..endure.cost import Budget, CostFigures
from ..endure.reliability import EnduranceFigures
from ..physics.bands import NearRun, WithoutLoneSources
from ..physics.block_kinds import Kind
from ..physics.communication import Traffic
from ..physics.layout import Run
from ..physics.sites import Report
from ..plans.plan_names import PlanRow


class Fastest(TypedDict):
    """The fastest plan with the allowed chance of going out of memory, where another is chosen: a
    plainer one within `evaluate.TIE`, or within HOST_TIE one that keeps more on the device or that
    a framework with a launch kit runs."""

    plan: PlanRow
    step_s: float
    days: Known
    cost_usd: Known
    why_not: str  # of the main phase; "" where it is the plan


class MissedRow(TypedDict):
    """A constraint that the estimate misses."""

    field: str
    limit: float | str
    value: float | str
    text: str
    chance: Known


class PhaseRow(TypedDict):
    """A phase of the run."""

    name: str
    tokens: Known
    seq_len: int
    global_batch: int
    plan: PlanRow
    step_s: float
    memory_bytes: float
    mfu: float
    mfu_shown: float


class Avoid(TypedDict):
    """A tempting plan that loses: what it is, why, and what it costs."""

    what: str
    why: str
    cost: str


class Narrowed(TypedDict):
    """A thing to find out, what it takes away of the width, and the bands once it is known."""

    what: str
    narrows: float  # share of the width of days, or of dollars where that is more
    band: Literal["days", "dollars"]  # the one of the two
    days_low: Known
    days_high: Known
    cost_usd_low: Known
    cost_usd_high: Known


class Line(TypedDict):
    """What is said of one axis."""

    axis: str
    text: str


class StatedConstraint(TypedDict):
    """A constraint that a design states, with the figure that answers it, as people read them."""

    field: str
    what: str
    limit: str
    value: str
    met: bool


class TrialRow(TypedDict):
    """A change of the design and what it comes to."""

    change: str
    verdict: str
    mfu: float
    mfu_shown: float
    days: Known
    cost_usd: Known
    devices: int


class LikelyRow(TypedDict):
    """Days and dollars that half of the drawn runs keep, and the 80 % interval of each; None
    without tokens, of dollars also without a price."""

    days: Known
    days_low: Known
    days_high: Known
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known


class FixRow(TrialRow):
    """A change of the design with the fields that it sets and what is still missed."""

    likely: LikelyRow
    set: dict[str, Any]
    missed: list[str]


class Saving(FixRow):
    """A change that touches nothing that was asked for, and what it saves."""

    share: float  # of the dollars, or of the days where these gain more
    saved_usd: Known  # None where no price is known


class LawRow(TypedDict):
    """Days to a loss by one published surface."""

    law: str
    title: str
    tokens: Known
    source: str
    verdict: str
    days: Known
    cost_usd: Known
    mfu: Known
    mfu_shown: Known
    plan: PlanRow | None


class ToLoss(TypedDict):
    """Days to a target loss by the published surfaces."""

    target_loss: float
    rows: list[LawRow]
    days_low: Known
    days_high: Known


class LargestActive(TypedDict):
    """The largest active count that meets the deadline."""

    active_params: float
    experts: int
    top_k: int
    days: Known


class Sites(Report):
    """What several sites exchange, and between what."""

    devices: list[int]
    gbits_per_s: float
    rtt_ms: float
    outer_bytes: float


class Contribution(TypedDict):
    """What adds to the run on average."""

    what: str
    days: float
    usd: Known


class Promise(TypedDict):
    """Days and dollars of the drawn runs: mean, P10, median, P90; dollars None without a price, the
    chances of keeping the deadline and the budget None where none is stated."""

    days_mean: Known
    days_p10: Known
    days_p50: Known
    days_p90: Known
    cost_mean: Known
    cost_p10: Known
    cost_p50: Known
    cost_p90: Known
    deadline_kept: Known
    budget_kept: Known
    by: list[Contribution]
    draws: int
    seed: int


class SpotRow(TypedDict):
    """A run on spot devices. Seconds, days, dollars and shares; days and dollars None without
    tokens."""

    usd_per_device_hour: float
    preemptions_per_day: float  # of all nodes of the job together
    notice_s: float
    replacement_s: float  # until another node stands in
    save_s: float  # that a save takes until it is safe
    saved_in_notice: bool
    goodput: float
    checkpoint_interval_s: float
    days: Known
    cost_usd: Known
    saved_usd: Known  # against the run as it is, None where that has no price
    assumed: list[AssumedRow]  # what of it was not given


LimitKind = Literal[
    "refusal",
    "memory",
    "missed",
    "pinned",
    "devices",
    "failures",
    "risks",
    "headroom",
    "practice",
    "measured",
    "spot",
    "stack",
    "loss",
]


class Result(TypedDict, total=False):
    """The keys of `design --json`. An impossible design has `name`, `verdict`, `error`, `limits`
    and `nearest_fixes` alone."""

    name: str
    verdict: str
    error: str | None
    # the headline
    plan: PlanRow
    devices_used: int
    params: float
    active_params: float
    mtp_params: float
    flops_per_token: float
    step_s: float
    step_s_low: float
    step_s_high: float
    tokens_per_s_per_device: float
    model_tflops_per_device: float
    mfu: float
    mfu_causal: float
    mfu_bf16_peak: float
    hfu: float
    mfu_low: float
    mfu_high: float
    mfu_shown: float
    mfu_shown_low: float
    mfu_shown_high: float
    mfu_basis: str
    mfu_denominator: str
    band_tier: str
    bubble_fraction: float
    memory_bytes: dict[str, float]
    oom_probability: float
    step_breakdown_s: dict[str, float]
    days: Known  # of days and dollars: None without tokens, of dollars also without a price
    days_low: Known
    days_high: Known
    goodput: float
    mtbf_s: float
    checkpoint_interval_s: float
    checkpoint_bytes: float
    checkpoint_overhead: float
    spares: int
    spares_recommended: int
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known
    cost_at_risk_usd: Known
    energy_kwh: Known
    fastest: Fastest | None
    likely: LikelyRow  # the days and dollars that lead, and that deadline and budget are judged by
    announced: str | None  # of a chip that does not ship
    # what the verdict rests on, and advice
    limits: list[str]
    limit_kinds: list[LimitKind]  # what each of these lines is about
    asked: list[StatedConstraint]
    saving: Saving | None
    unread: list[dict[str, Any]]  # words of a line, confirmed as they stand
    avoid: list[Avoid]
    to_loss: ToLoss | None
    batch: dict[str, Any]
    nearest_fixes: list[FixRow]
    can_do: list[FixRow]
    tried: list[TrialRow]
    not_tried: list[str]
    measure_first: list[Narrowed]
    sites: Sites | None
    kit: list[str] | None
    no_effect: list[str]
    why: list[Line]
    # what panels and the report show beside
    memory_by_stage: list[dict[str, float]]
    hidden_s: dict[str, float]
    communication: list[Traffic]
    candidates: list[dict[str, Any]]
    legal: int
    evaluated: int
    rejected: dict[str, int]
    search_seconds: float
    endurance: EnduranceFigures
    cost: CostFigures | None
    spot: SpotRow | None  # where the design states such devices
    nearest_runs: list[NearRun]
    measured_here: dict[str, Any] | None
    missed: list[MissedRow]
    phases: list[PhaseRow]
    accelerator: str
    devices: int
    stack: str | None
    layers_by_stage: list[float]
    stages: list[Run]
    blocks: list[Kind]
    measured: dict[str, float]
    without_single_source: WithoutLoneSources | None
    assumed: list[AssumedRow]
    # of the command, where the question arises
    largest_active: LargestActive | None
    # with the packages beside the core
    to_plan_for: Budget | None
    promise: Promise | None


# single figures of the headline, by which tables and tiles list what they show
HeadlineNumber = Literal[
    "devices_used",
    "params",
    "active_params",
    "mtp_params",
    "flops_per_token",
    "step_s",
    "step_s_low",
    "step_s_high",
    "tokens_per_s_per_device",
    "model_tflops_per_device",
    "mfu",
    "mfu_causal",
    "mfu_bf16_peak",
    "hfu",
    "mfu_low",
    "mfu_high",
    "mfu_shown",
    "mfu_shown_low",
    "mfu_shown_high",
    "bubble_fraction",
    "oom_probability",
    "days",
    "days_low",
    "days_high",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_bytes",
    "checkpoint_overhead",
    "spares",
    "spares_recommended",
    "cost_usd",
    "cost_usd_low",
    "cost_usd_high",
    "cost_at_risk_usd",
    "energy_kwh",
]
HeadlineText = Literal["mfu_basis", "mfu_denominator", "band_tier"]
HeadlineKey = Literal[HeadlineNumber, HeadlineText]
# what a row of advice, of a sweep or of an answer says of an assessment
FigureName = Literal[HeadlineKey, "verdict", "memory_share", "plan", "likely"]
# what tables and tiles list of a result: its headline figures, and parts of what is nested in it
NestedNumber = Literal[
    "memory_bytes.total",
    "memory_bytes.capacity",
    "cost.device_hours",
    "likely.days",
    "likely.days_low",
    "likely.days_high",
    "likely.cost_usd",
    "promise.days_p90",
    "promise.cost_p90",
]
NumberKey = Literal[HeadlineNumber, NestedNumber]
TextKey = Literal[HeadlineText, "verdict"]
FigureKey = Literal[NumberKey, TextKey]


@overload
def figure(result: Result, key: NumberKey) -> Known: ...
@overload
def figure(result: Result, key: TextKey) -> str | None: ...
@overload
def figure(result: Result, key: FigureKey) -> float | str | None: ...
def figure(result: Result, key: FigureKey) -> float | str | None:
    """A figure of a result; None where it has none."""
    if key == "memory_bytes.total" or key == "memory_bytes.capacity":
        memory = result.get("memory_bytes")
        return None if memory is None else memory[key.removeprefix("memory_bytes.")]
    if key == "cost.device_hours":
        cost = result.get("cost")
        return None if cost is None else cost["device_hours"]
    if key == "promise.days_p90" or key == "promise.cost_p90":
        promise = result.get("promise")
        if promise is None:
            return None
        return promise["days_p90"] if key == "promise.days_p90" else promise["cost_p90"]
    if (
        key == "likely.days"
        or key == "likely.days_low"
        or key == "likely.days_high"
        or key == "likely.cost_usd"
    ):
        likely = result.get("likely")
        return None if likely is None else _of_likely(likely, key)
    if key not in result:
        return None
    return result[key]


def _of_likely(likely: LikelyRow, key: FigureKey) -> Known:
    """A figure of the likely run."""
    match key:
        case "likely.days_low":
            return likely["days_low"]
        case "likely.days_high":
            return likely["days_high"]
        case "likely.cost_usd":
            return likely["cost_usd"]
    return likely["days"]


def in_one_convention(results: Sequence[Result]) -> list[Result]:
    """Results whose MFU is shown in one convention: that of all where they have one, else attention
    counted as causal masks leave it in each."""
    return [causal(result) for result in results] if bases_differ(results) else [*results]


def bases_differ(results: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the MFU that is shown counts attention in full in some results, and as causal masks
    leave it in others."""
    return len({result["mfu_basis"] for result in results if result.get("mfu_basis")}) > 1


def causal(result: Result) -> Result:
    """A result whose MFU is shown with attention as causal masks leave it."""
    mfu = result.get("mfu")
    if not mfu or result["mfu_basis"] == "causal":
        return result
    ratio = result["mfu_causal"] / mfu
    shown = result.copy()
    shown["mfu_shown"] = result["mfu_causal"]
    shown["mfu_shown_low"] = result["mfu_low"] * ratio
    shown["mfu_shown_high"] = result["mfu_high"] * ratio
    shown["mfu_basis"] = "causal"
    return shown


def band_of(result: Result, key: FigureKey) -> str:
    """The band of a figure as people read it; nothing where it has none, and where both ends are
    one."""
    low: Known = None
    high: Known = None
    match key:
        case "step_s":
            low, high = result.get("step_s_low"), result.get("step_s_high")
        case "mfu":
            low, high = result.get("mfu_low"), result.get("mfu_high")
        case "mfu_shown":
            low, high = result.get("mfu_shown_low"), result.get("mfu_shown_high")
        case "days":
            low, high = result.get("days_low"), result.get("days_high")
        case "cost_usd":
            low, high = result.get("cost_usd_low"), result.get("cost_usd_high")
        case "likely.days":
            if likely := result.get("likely"):
                low, high = likely["days_low"], likely["days_high"]
        case "likely.cost_usd":
            if likely := result.get("likely"):
                low, high = likely["cost_usd_low"], likely["cost_usd_high"]
    return "" if low is None or high is None or low == high else band(key, low, high)


def figure_texts(row: Mapping[str, Any], names: Mapping[FigureKey, str]) -> list[str]:
    """The figures of a row that it has, each behind what `names` puts before it:
    shown_figures({"days": 3.0, "mfu": 0.41}, {"mfu": "MFU ", "days": ""}) is ["MFU 41.0 %", "3.00
    days"]."""
    return [
        f"{before}{show(key, value)}"
        for key, before in names.items()
        if (value := row.get(key, at(row, key))) is not None
    ]
