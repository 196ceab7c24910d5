"""The numbers of an assessment: from memory and step to MFU, days, goodput and cost, and the tables
that panels show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import exp, hypot, log
from typing import Any, NamedTuple

from ..base.json import clean
from ..base.plugins import FUNCTIONS, entries, function
from ..base.records import Known
from ..base.units import DAY_S, GB, TERA
from ..catalogue.models.shape import flops_per_token
from ..catalogue.stacks import GENERIC, stack
from ..catalogue.words import MEMORY_PARTS, STEP_PARTS
from ..design.resolved import Resolved
from ..endure.checkpoint import contents
from ..endure.cost import Cost, expected, figures as cost_figures, price
from ..endure.reliability import Endurance, as_logged, endure, figures as endurance_figures
from ..physics import bands, layout
from ..physics.block_kinds import by_kind
from ..physics.cases import WEIGHT_BYTES, Cases, devices
from ..physics.communication import communication
from ..physics.memory.chance import MEASURED_SPREAD, oom_probability
from ..physics.memory.peak import memory_by_stage
from ..physics.step import causal_share, counted_share, hardware_share, mfu_basis, rates
from ..plans.evaluate import Search
from ..plans.leaderboard import listed
from ..plans.plan_names import PlanRow
from .assessment import Assessment, Chosen
from .likely import DrawnRuns
from .result import PhaseRow, Promise, Result
from .unpublished import untried

CANDIDATES = 200
# factor on both half widths of the band for a plan of a kind that nobody has published
UNTRIED = 1.5
MEASURED_SPEEDS = {"step_s", "mfu", "tokens_per_s_per_device"}
# columns of a search that its candidates go without
NOT_LISTED = (
    "devices_used",
    "tokens_per_s_per_device",
    "oom_probability",
    "practised",
    "zone",
    "precision",
)
Measured = Mapping[str, float]  # measured values of a design by field of `measured`


class Utilisation(NamedTuple):
    """MFU under four conventions, and the rates of one device."""

    tokens_per_s_per_device: float
    model_tflops_per_device: float
    mfu: float  # attention in full, the peak of the job's precision
    mfu_causal: float  # attention that the mask leaves
    mfu_bf16_peak: float  # over the dense peak of 16 bit
    hfu: float  # with what is computed again
    flops_per_token: float


class HeadlineMfu(NamedTuple):
    """The MFU that leads, its band, its count of attention and its denominator."""

    mfu_shown: float
    mfu_shown_low: float
    mfu_shown_high: float
    mfu_basis: str  # full or causal
    mfu_denominator: str


class Speeds(NamedTuple):
    """The headline numbers of one phase's step, by the keys of `design --json`."""

    plan: PlanRow
    devices_used: int
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
    bubble_fraction: float
    step_breakdown_s: dict[str, float]


class CostBand(NamedTuple):
    """The 80 % band of the cost [USD]; None without days or a price."""

    cost_usd_low: Known
    cost_usd_high: Known


class DaysBand(NamedTuple):
    """Days of the whole run and their 80 % band; None without tokens."""

    days: Known
    days_low: Known
    days_high: Known


def measured_step_s(measured: Measured, case: Cases, computed: float) -> Known:
    """Seconds of a step that a measured step, MFU or rate of tokens says; None where none is
    given."""
    if "step_s" in measured:
        return float(measured["step_s"])
    tokens, _, mfu = rates(case, computed)
    if "mfu" in measured:
        return float(computed * mfu / measured["mfu"])
    if "tokens_per_s_per_device" in measured:
        return float(computed * tokens / measured["tokens_per_s_per_device"])
    return None


def with_step(chosen: Chosen, measured: Measured) -> Chosen:
    """The phase with its step and 80 % band [s]: measured, without width, or computed."""
    step_s = measured_step_s(measured, chosen.case, chosen.step_s)
    low, high = 1.0, 1.0
    if step_s is None:
        step_s = chosen.step_s * measured.get("step_ratio", 1.0)
        low, high = band_factors(chosen, widening(chosen))
    return replace(chosen, step_s=step_s, step_s_low=step_s * low, step_s_high=step_s * high)


def widening(chosen: Chosen) -> dict[str, Any]:
    """What widens the band of a phase, by the names of `bands.WIDER`."""
    resolved = chosen.search.situation.resolved
    cluster = resolved.cluster
    mechanisms = bands.mechanisms(chosen.case, [cluster.accelerator.family], [cluster.scale_out])
    return bands.wider(
        chosen.case,
        measured=bool(bands.measured_mechanisms(mechanisms)[0]),
        known=bands.known_stack(resolved.stack),
        seen_chip=bands.known_chip(resolved.cluster.accelerator.id),
        seen_family=bands.known_family(resolved.cluster.accelerator.family),
        step_s=chosen.step_s,
    )


def band_factors(chosen: Chosen, holds: dict[str, Any]) -> tuple[float, float]:
    """Both ends of the band as factors on a phase's step, where these of `bands.WIDER` hold."""
    low, high = bands.ends(holds)
    calibration = chosen.search.situation.resolved.calibration
    if calibration is not None:
        low, high = calibration.narrowed(low, high, chosen.case)
    power = UNTRIED if untried(chosen) else 1.0
    return float(low**power), float(high**power)


def endurance(resolved: Resolved, chosen: Chosen) -> Endurance:
    """reliability.endure of the design's cluster with this plan's checkpoint and step. The
    checkpoint is one whole copy of weights, master weights, moments, random state and dataloader
    position."""
    ranks = int(devices(chosen.case.plan))
    sync = resolved.cluster.sync
    size = contents(
        float(resolved.params.total + resolved.params.mtp),
        optimizer=chosen.phase.optimizer,
        weight_bytes=saved_weight_bytes(chosen),
        ranks=ranks,
        readers=chosen.plan["dp"],
        copies=resolved.cluster.sites if sync.apart else 1,
        outer_bytes=sync.outer_bytes if resolved.cluster.sites > 1 else 0.0,
    ).total
    software = stack(resolved.stack or GENERIC)
    return endure(
        resolved.cluster,
        resolved.reliability,
        saves=resolved.checkpoint,
        checkpoint_bytes=size,
        state_bytes_per_device=size / ranks,
        step_s=chosen.step_s,
        constraints=resolved.constraints,
        devices=ranks,
        idle_nodes=(resolved.cluster.devices - ranks) // resolved.cluster.devices_per_node,
        recovers=software.recovers,
        waits_for_saves=software.waits_for_saves,
        gang=chosen.gang,
        watchdog_s=chosen.search.situation.stack.collective_timeout_s,
    )


def saved_weight_bytes(chosen: Chosen) -> float:
    """Bytes of a working weight that a save holds beside the fp32 one: none where sharded fp32
    weights are the only copy (FSDP: torch.distributed.checkpoint writes 12 bytes a parameter)."""
    case = chosen.case
    alone = case.constants.memory.fp32_shards > 0 and case.job.master_bytes > 0
    return 0.0 if alone else WEIGHT_BYTES


def useful_s(
    phases: Sequence[Chosen], step_s: Callable[[Chosen], float] = lambda one: one.step_s
) -> Known:
    """Seconds of undisturbed training, tokens / (tokens a step) x step over all phases; None
    without tokens. step_s: the step of a phase [s], the estimate or an end of its band."""
    total = 0.0
    for one in phases:
        if one.phase.tokens is None:
            return None
        total += one.phase.tokens / (one.phase.global_batch * one.phase.seq_len) * step_s(one)
    return total


def days(
    phases: Sequence[Chosen],
    goodput: float,
    step_s: Callable[[Chosen], float] = lambda one: one.step_s,
) -> Known:
    """Days of the whole run: useful time / goodput."""
    useful = useful_s(phases, step_s)
    return None if useful is None else useful / goodput / DAY_S


def days_band(phases: Sequence[Chosen], goodput: float) -> DaysBand:
    """Days of the whole run at the estimated step and at both ends of its band."""
    return DaysBand(
        days=days(phases, goodput),
        days_low=days(phases, goodput, lambda one: one.step_s_low),
        days_high=days(phases, goodput, lambda one: one.step_s_high),
    )


def cost(resolved: Resolved, endurance: Endurance, run_days: Known, goodput: float) -> Cost | None:
    """cost.price of the whole run, spares paid for; None without tokens."""
    if run_days is None:
        return None
    cluster = resolved.cluster
    return price(
        cluster,
        resolved.prices,
        wall_s=run_days * DAY_S,
        devices_paid=cluster.devices + endurance.spares * cluster.devices_per_node,
        goodput=goodput,
    )


def utilisation(chosen: Chosen, step_s: float) -> Utilisation:
    """MFU under four conventions, tokens/s and FLOP/s per device of one phase at so many seconds a
    step."""
    case = chosen.case
    tokens, flops, mfu = rates(case, step_s)
    per_token = flops_per_token(case.shape, case.attended)
    chip = chosen.search.situation.resolved.cluster.accelerator
    total = per_token.total + per_token.mtp
    return Utilisation(
        tokens_per_s_per_device=float(tokens),
        model_tflops_per_device=float(flops / TERA),
        mfu=float(mfu),
        mfu_causal=float(mfu * causal_share(case)),
        mfu_bf16_peak=float(flops / chip.half_flops),
        hfu=float(mfu * hardware_share(case)),
        flops_per_token=float(total),
    )


def speeds(chosen: Chosen) -> Speeds:
    """The headline numbers of a phase's step: rates, MFU and their bands, the step by part."""
    step_s = chosen.step_s
    slow, fast = step_s / chosen.step_s_high, step_s / chosen.step_s_low
    scale = step_s / chosen.step.total
    parts = {part: vars(chosen.step)[part] * scale for part in STEP_PARTS}
    use = utilisation(chosen, step_s)
    leading = headline_mfu(chosen, use, slow, fast)
    return Speeds(
        plan=clean(chosen.plan),
        devices_used=int(devices(chosen.case.plan)),
        flops_per_token=clean(use.flops_per_token),
        step_s=clean(step_s),
        step_s_low=clean(chosen.step_s_low),
        step_s_high=clean(chosen.step_s_high),
        tokens_per_s_per_device=clean(use.tokens_per_s_per_device),
        model_tflops_per_device=clean(use.model_tflops_per_device),
        mfu=clean(use.mfu),
        mfu_causal=clean(use.mfu_causal),
        mfu_bf16_peak=clean(use.mfu_bf16_peak),
        hfu=clean(use.hfu),
        mfu_low=clean(use.mfu * slow),
        mfu_high=clean(_upper_end(use.mfu, fast)),
        mfu_shown=clean(leading.mfu_shown),
        mfu_shown_low=clean(leading.mfu_shown_low),
        mfu_shown_high=clean(leading.mfu_shown_high),
        mfu_basis=leading.mfu_basis,
        mfu_denominator=leading.mfu_denominator,
        bubble_fraction=clean(parts["bubble"] / step_s),
        step_breakdown_s=clean(parts),
    )


def memory_bytes(resolved: Resolved, phases: Sequence[Chosen]) -> dict[str, float]:
    """Parts, total and capacity of the fullest phase's memory, scaled to what was measured. [bytes
    a device]"""
    fullest = max(phases, key=lambda one: one.memory.total).memory
    parts = {part: vars(fullest)[part] for part in MEMORY_PARTS}
    factor = resolved.measured.get("memory_ratio", 1.0)
    if "memory_gb" in resolved.measured:
        factor = resolved.measured["memory_gb"] * GB / sum(parts.values())
    if factor != 1.0:
        parts = {part: value * factor for part, value in parts.items()}
    return parts | {"total": sum(parts.values()), "capacity": fullest.capacity}


def numbers(resolved: Resolved, phases: tuple[Chosen, ...]) -> Assessment:
    """The assessment of one plan a phase, its headline numbers worked out, not judged yet."""
    chosen = phases[resolved.main]
    measured = resolved.measured
    lived = endurance(resolved, chosen)
    lost = (1 - lived.goodput) * measured.get("lost_ratio", 1.0)
    goodput = float(measured.get("goodput", max(1 - lost, 1e-3)))
    run = days_band(phases, goodput)
    money = cost(resolved, lived, run.days, goodput)
    ends = cost_band(money, run)
    assessment = Assessment(
        design=resolved.design,
        resolved=resolved,
        verdict="feasible",
        phases=phases,
        endurance=lived,
        cost=money,
        **speeds(chosen)._asdict(),
        params=clean(resolved.params.total),
        active_params=clean(resolved.params.active),
        mtp_params=clean(resolved.params.mtp),
        band_tier=band_tier(resolved),
        memory_bytes=clean(memory_bytes(resolved, phases)),
        oom_probability=clean(oom_chance(resolved, phases)),
        days=clean(run.days),
        days_low=clean(run.days_low),
        days_high=clean(run.days_high),
        goodput=clean(goodput),
        mtbf_s=clean(lived.mtbf_s),
        checkpoint_interval_s=clean(lived.checkpoint_interval_s),
        checkpoint_bytes=clean(lived.checkpoint_bytes),
        checkpoint_overhead=clean(lived.checkpoint_overhead),
        spares=clean(lived.spares),
        spares_recommended=clean(lived.spares_recommended),
        cost_usd=clean(money and money.cost_usd),
        cost_usd_low=clean(ends.cost_usd_low),
        cost_usd_high=clean(ends.cost_usd_high),
        cost_at_risk_usd=clean(at_risk(money, ends)),
        energy_kwh=clean(money and money.energy_kwh),
    )
    return drawn(assessment)


def drawn(assessment: Assessment) -> Assessment:
    """The assessment with runs drawn from what stands in it."""
    return replace(assessment, drawn=DrawnRuns(partial(drawn_runs, assessment)))


def with_bands(assessment: Assessment, run: DaysBand, money: Cost | None) -> Assessment:
    """The assessment with other bands of days and price, and runs drawn from these."""
    ends = cost_band(money, run)
    return drawn(
        replace(
            assessment,
            days=run.days,
            days_low=run.days_low,
            days_high=run.days_high,
            cost=money,
            cost_usd_low=ends.cost_usd_low,
            cost_usd_high=ends.cost_usd_high,
        )
    )


def drawn_runs(assessment: Assessment) -> Promise | None:
    """Drawn runs of an assessment: step, price, failures and risks together
    (`scantling_site.promise`); None without tokens, and where no package brings it."""
    if "promise" not in entries(FUNCTIONS):
        return None
    promise: Promise | None = function("promise")(assessment)
    return promise


def band_tier(resolved: Resolved) -> str:
    """What the band of the step rests on (`bands.tier`)."""
    measured = bool(MEASURED_SPEEDS & resolved.measured.keys())
    return bands.tier(
        resolved.stack,
        resolved.cluster.accelerator.id,
        measured=measured or resolved.calibration is not None,
    )


def headline_mfu(chosen: Chosen, use: Utilisation, slow: float, fast: float) -> HeadlineMfu:
    """The MFU that leads, its band, its count of attention (`mfu_basis`) and its denominator;
    `slow` and `fast`: speed at the ends of the band over that of the estimate."""
    basis = mfu_basis(chosen.case)
    mfu = use.mfu_causal if basis == "causal" else use.mfu
    chip = chosen.search.situation.resolved.cluster.accelerator
    precision = chosen.phase.precision
    peak = chip.peak_flops(precision) / TERA
    return HeadlineMfu(
        mfu_shown=mfu,
        mfu_shown_low=mfu * slow,
        mfu_shown_high=_upper_end(mfu, fast),
        mfu_basis=basis,
        mfu_denominator=f"{peak:,.0f} TFLOP/s, the dense {precision} peak of {chip.name}",
    )


def _upper_end(mfu: float, fast: float) -> float:
    """The upper end of the band of an MFU, below the peak."""
    return min(mfu * fast, max(mfu, bands.MOST_MFU))


def oom_chance(resolved: Resolved, phases: Sequence[Chosen]) -> float:
    """The largest chance of any phase to go out of memory; by the measured peak where there is
    one."""
    if "memory_gb" in resolved.measured:
        capacity = min(one.memory.capacity for one in phases)
        peak = resolved.measured["memory_gb"] * GB
        return float(oom_probability(peak, capacity, MEASURED_SPREAD))
    return max(one.oom_probability for one in phases)


def cost_band(money: Cost | None, run: DaysBand) -> CostBand:
    """80 % band of the cost: the band of days and the spread of prices, independent, their logs
    added in quadrature."""
    cost_usd = clean(money and money.cost_usd)
    if money is None or run.days is None or run.days_low is None or run.days_high is None:
        return CostBand(None, None)
    if not cost_usd:  # a device-hour that costs nothing has no spread
        nothing = cost_usd if run.days else run.days
        return CostBand(nothing, nothing)
    low = hypot(log(run.days_low / run.days), log(money.cost_usd_low / cost_usd))
    high = hypot(log(run.days_high / run.days), log(money.cost_usd_high / cost_usd))
    return CostBand(cost_usd * exp(-low), cost_usd * exp(high))


def at_risk(money: Cost | None, ends: CostBand) -> Known:
    """What the band of the cost, `ends`, adds to it on average; None without a cost."""
    cost_usd = clean(money and money.cost_usd)
    low, high = ends
    if cost_usd is None or low is None or high is None:
        return None
    return max(float(expected(low, cost_usd, high)) - float(cost_usd), 0.0)


def tables(assessment: Assessment) -> Result:
    """What panels and the report show beside the headline: stages, hidden communication, traffic,
    candidates, endurance, cost, runs, assumptions."""
    chosen = assessment.chosen
    resolved = assessment.resolved
    money = assessment.cost
    case = chosen.case
    search = chosen.search
    stages = [dict(row) for row in memory_by_stage(case)]
    layers = [row["layers"] for row in stages]
    chip = resolved.cluster.accelerator
    stack = resolved.stack or ""
    basis = assessment.mfu_basis
    return {
        "memory_by_stage": stages,
        "hidden_s": {name: float(axis.hidden_s) for name, axis in chosen.step.axes.items()},
        "communication": communication(case, chosen.step),
        "candidates": candidates(search),
        "legal": search.counts["legal"],
        "evaluated": search.counts["evaluated"],
        "rejected": search.counts["rejected"],
        "search_seconds": search.counts["seconds"],
        "endurance": endurance_figures(assessment.endurance),
        "cost": None if money is None else cost_figures(money),
        "nearest_runs": bands.nearest_runs(
            case, chip=chip.id, family=chip.family, stack=stack, basis=basis
        ),
        "measured_here": _measured_here(assessment),
        "missed": [
            {
                "field": m.field,
                "limit": m.limit,
                "value": m.value,
                "text": m.text,
                "chance": m.chance,
            }
            for m in assessment.missed
        ],
        "phases": [_phase(one, basis) for one in assessment.phases],
        "accelerator": chip.id,
        "devices": resolved.cluster.devices,
        "stack": resolved.stack,
        "layers_by_stage": [layers[0], max(layers[1:-1], default=0), layers[-1]],
        "stages": layout.stages_of(case),
        "blocks": by_kind(case),
        "measured": dict(resolved.measured),
        "without_single_source": bands.without_single_source(
            case, chip=chip.id, family=chip.family, stack=stack, basis=basis
        ),
        "assumed": [a.row() for a in assessment.assumed],
    }


def _measured_here(assessment: Assessment) -> dict[str, Any] | None:
    """What the calibration of the site says, its band without it, and what a plan loses by the
    causes that a log tells; None without one."""
    calibration = assessment.resolved.calibration
    if calibration is None:
        return None
    chosen = assessment.chosen
    unmeasured = [chosen.step_s * end for end in bands.ends(widening(chosen))]
    planned = as_logged(assessment.endurance.badput)
    here = calibration.as_json()
    points = here["steps"].get("points", [])
    steps = here["steps"] | {"points": [_shown(point, assessment) for point in points]}
    return here | {"steps": steps, "usual_s": unmeasured, "planned": planned}


def _shown(point: dict[str, Any], assessment: Assessment) -> dict[str, Any]:
    """A measured step with its MFU as the headline counts attention; a file that does not hold the
    causal one has it by the share of this design."""
    if assessment.mfu_basis == "full":
        return point | {"mfu_shown": point["mfu"]}
    share = assessment.mfu_causal / assessment.mfu
    return point | {"mfu_shown": point.get("mfu_causal", point["mfu"] * share)}


def _phase(one: Chosen, basis: str) -> PhaseRow:
    """A phase in a line of a table; its MFU also as the headline counts attention."""
    mfu = utilisation(one, one.step_s).mfu
    return {
        "name": one.phase.name,
        "tokens": one.phase.tokens,
        "seq_len": one.phase.seq_len,
        "global_batch": one.phase.global_batch,
        "plan": one.plan,
        "step_s": one.step_s,
        "memory_bytes": float(one.memory.total),
        "mfu": mfu,
        "mfu_shown": float(mfu * counted_share(one.case, basis)),
    }


def candidates(search: Search) -> list[dict[str, Any]]:
    """The best plans of a search with step [s], MFU and memory [bytes], fastest first."""
    table = listed(search, search.order[:CANDIDATES])
    columns = {k: v.tolist() for k, v in table.items() if k not in NOT_LISTED}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]
