"""The numbers of an assessment: from memory and step to MFU, days, goodput and cost, and the tables
that panels show."""

from dataclasses import replace
from functools import partial
from math import exp, hypot, log

import numpy as np

from ..base.json import clean
from ..base.records import Known
from ..base.units import DAY_S
from ..catalogue.models.shape import flops_per_token
from ..endure.checkpoint import contents
from ..endure.cost import Cost, expected, price
from ..endure.reliability import Endurance, Gang, as_logged, endure
from ..physics import bands, layout
from ..physics.cases import Cases, devices
from ..physics.communication import communication
from ..physics.compute import keys_seen
from ..physics.kinds import by_kind
from ..physics.memory.chance import MEASURED_SPREAD, oom_probability
from ..physics.memory.peak import memory, memory_by_stage
from ..physics.step import PARTS, hardware_share, rates, step_time
from ..plans.leaderboard import listed
from .record import Chosen
from .unpublished import untried

CANDIDATES = 200
MOST_MFU = 0.999  # the upper end of a band lies below the peak
CAUSAL_FROM = 0.1  # share of the full count by which the causal one differs where it leads
UNTRIED = (
    1.5  # factor on both half widths of the band for a plan of a kind that nobody has published
)
MEASURED_SPEEDS = {"step_s", "mfu", "tokens_per_s_per_device"}
OF_ENDURANCE = (
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_bytes",
    "checkpoint_overhead",
    "spares",
    "spares_recommended",
)
# columns of a search that its candidates go without
NOT_LISTED = (
    "devices_used",
    "tokens_per_s_per_device",
    "oom_probability",
    "practised",
    "zone",
    "precision",
)
MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "other")


def measured_step_s(measured: dict, case: Cases, computed: float) -> Known:
    """Seconds of a step that a measured step, MFU or rate of tokens says; None where none is
    given."""
    if "step_s" in measured:
        return float(measured["step_s"])
    tokens, _, mfu = rates(case, computed)
    if "mfu" in measured:
        return computed * mfu / measured["mfu"]
    if "tokens_per_s_per_device" in measured:
        return computed * tokens / measured["tokens_per_s_per_device"]
    return None


def with_step(chosen: Chosen, measured: dict) -> Chosen:
    """The phase with its step and 80 % band [s]: measured, without width, or computed."""
    seconds = measured_step_s(measured, chosen.case, chosen.step_s)
    ends = (1.0, 1.0)
    if seconds is None:
        seconds = chosen.step_s * measured.get("step_ratio", 1.0)
        ends = widened(chosen, held(chosen))
    low, high = (seconds * end for end in ends)
    return replace(chosen, step_s=seconds, step_s_low=low, step_s_high=high)


def held(chosen: Chosen) -> dict:
    """What widens the band of a phase, by the names of `bands.WIDER`."""
    resolved = chosen.found.situation.resolved
    return bands.wider(
        chosen.case,
        known=bands.known_stack(resolved.stack),
        seen_chip=bands.known_chip(resolved.cluster.accelerator.id),
        seen_family=bands.known_family(resolved.cluster.accelerator.family),
        step_s=chosen.step_s,
    )


def widened(chosen: Chosen, holds: dict) -> tuple:
    """Both ends of the band as factors on a phase's step, where these of `bands.WIDER` hold."""
    ends = bands.ends(holds)
    calibration = chosen.found.situation.resolved.calibration
    if calibration is not None:
        ends = calibration.narrowed(*ends, chosen.case)
    power = UNTRIED if untried(chosen) else 1.0
    return tuple(end**power for end in ends)


def endurance(resolved, chosen: Chosen) -> Endurance:
    """reliability.endure of the design's cluster with this plan's checkpoint and step. The
    checkpoint is one whole copy of weights, master weights, moments, random state and dataloader
    position."""
    ranks = int(devices(chosen.case.plan))
    sync = resolved.cluster.sync
    size = contents(
        resolved.params.total + resolved.params.mtp,
        optimizer=chosen.phase.optimizer,
        ranks=ranks,
        readers=chosen.plan["dp"],
        copies=resolved.cluster.sites if sync.apart else 1,
        outer_bytes=sync.outer_bytes if resolved.cluster.sites > 1 else 0.0,
    ).total
    return endure(
        resolved.cluster,
        resolved.reliability,
        saves=resolved.checkpoint,
        checkpoint_bytes=size,
        state_bytes_per_device=size / ranks,
        step_s=chosen.step_s,
        constraints=resolved.constraints,
        gang=gang_of(chosen, resolved.cluster.devices_per_node),
    )


def tied(plan: dict) -> int:
    """Data-parallel replicas that share a group of experts: they go and come together."""
    return min(plan["dp"], max(1, -(-plan["ep"] * plan["etp"] // (plan["tp"] * plan["cp"]))))


def gang_of(chosen: Chosen, per_node: int) -> Gang:
    """What an elastic run of the plan drops at once: the replicas that share a group of experts,
    their nodes, the micro-batches of each in a step, and the plan `reshaped` without them."""
    p = chosen.plan
    span = tied(p)
    return Gang(
        replicas=p["dp"] // span,
        nodes=-(-p["tp"] * p["cp"] * p["pp"] * span // per_node),
        micro_batches=max(p["grad_accum"], 1),
        reshape=partial(reshaped, chosen.case, span),
    )


def reshaped(case: Cases, span: int, gone) -> dict:
    """A plan without `gone` of its gangs of `span` replicas, the global batch kept by accumulation:
    {dp, micro_batches, ratio, memory_bytes, fits}, a column each. ratio : its step over the whole
    one; fits : within the capacity, or no more than the plan takes whole."""
    whole = case.plan.dp
    dp = np.maximum(whole - span * np.array([0, *gone]), 1)
    m = np.ceil(case.micro_batches * whole / dp - 1e-9)
    less = replace(
        case.with_plan(dp=dp), job=replace(case.job, global_batch=m * dp * case.plan.micro_batch)
    )
    held, step = memory(less), step_time(less).total
    columns = {
        "dp": dp,
        "micro_batches": m,
        "ratio": step / step[0],
        "memory_bytes": held.total,
        "fits": held.total <= np.maximum(held.capacity, held.total[0]),
    }
    return {name: column[1:] for name, column in columns.items()}


def useful_s(phases, which: str = "step_s") -> Known:
    """Seconds of undisturbed training, tokens / (tokens a step) x step over all phases; None
    without tokens. which: step_s, step_s_low or step_s_high."""
    if any(one.phase.tokens is None for one in phases):
        return None
    return sum(
        one.phase.tokens / (one.phase.global_batch * one.phase.seq_len) * getattr(one, which)
        for one in phases
    )


def days(phases, goodput: float, which: str = "step_s") -> Known:
    """Days of the whole run: useful time / goodput."""
    seconds = useful_s(phases, which)
    return None if seconds is None else seconds / goodput / DAY_S


def cost(resolved, endurance: Endurance, run_days: Known, goodput: float) -> Cost | None:
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


def utilisation(chosen, seconds: float) -> dict:
    """MFU under four conventions, tokens/s and FLOP/s per device of one phase at `seconds` a
    step."""
    c = chosen.case
    tokens, flops, mfu = rates(c, seconds)
    f = flops_per_token(c.shape, c.attended)
    masked = f.attention_scores * (1 - keys_seen(c) / c.attended)
    chip = chosen.found.situation.resolved.cluster.accelerator
    total = f.total + f.mtp
    return {
        "tokens_per_s_per_device": tokens,
        "model_tflops_per_device": flops / 1e12,
        "mfu": mfu,
        "mfu_causal": mfu * (total - masked) / total,
        "mfu_bf16_peak": flops / chip.half_flops,
        "hfu": mfu * hardware_share(c),
        "flops_per_token": total,
    }


def memory_bytes(resolved, phases) -> dict[str, float]:
    """Parts, total and capacity of the fullest phase's memory, scaled to what was measured. [bytes
    a device]"""
    fullest = max(phases, key=lambda one: one.memory.total).memory
    parts = {k: getattr(fullest, k) for k in MEMORY_PARTS}
    factor = resolved.measured.get("memory_ratio", 1.0)
    if "memory_gb" in resolved.measured:
        factor = resolved.measured["memory_gb"] * 1e9 / sum(parts.values())
    if factor != 1.0:
        parts = {k: v * factor for k, v in parts.items()}
    return parts | {"total": sum(parts.values()), "capacity": fullest.capacity}


def numbers(resolved, phases) -> dict:
    """Headline numbers by the names of `record.Numbers`, with `endurance` and `cost`."""
    chosen = phases[resolved.main]
    params = resolved.params
    seconds = chosen.step_s
    low = chosen.step_s_low
    high = chosen.step_s_high
    slow = seconds / high
    fast = seconds / low
    scale = seconds / chosen.step.total
    parts = {k: getattr(chosen.step, k) * scale for k in PARTS}
    use = utilisation(chosen, seconds)
    mfu = use["mfu"]
    e = endurance(resolved, chosen)
    lost = (1 - e.goodput) * resolved.measured.get("lost_ratio", 1.0)
    good = resolved.measured.get("goodput", max(1 - lost, 1e-3))
    run_days = {f"days{end}": days(phases, good, f"step_s{end}") for end in ("", "_low", "_high")}
    money = cost(resolved, e, run_days["days"], good)
    said = {
        "plan": dict(chosen.plan),
        "devices_used": int(devices(chosen.case.plan)),
        "params": params.total,
        "active_params": params.active,
        "mtp_params": params.mtp,
        "step_s": seconds,
        "step_s_low": low,
        "step_s_high": high,
        **use,
        **_mfu_band("mfu", mfu, slow, fast),
        **shown_mfu(chosen, use, slow, fast),
        "band_tier": bands.tier(
            resolved.stack,
            resolved.cluster.accelerator.id,
            measured=bool(MEASURED_SPEEDS & resolved.measured.keys())
            or resolved.calibration is not None,
        ),
        "bubble_fraction": parts["bubble"] / seconds,
        "memory_bytes": memory_bytes(resolved, phases),
        "oom_probability": oom_chance(resolved, phases),
        "step_breakdown_s": parts,
        **run_days,
        "goodput": good,
        **{name: getattr(e, name) for name in OF_ENDURANCE},
        "cost_usd": money and money.cost_usd,
        **(ends := cost_band(money, run_days)),
        "cost_at_risk_usd": at_risk(money, ends),
        "energy_kwh": money and money.energy_kwh,
    }
    return {"endurance": e, "cost": money} | clean(said)


def shown_mfu(chosen: Chosen, use: dict, slow: float, fast: float) -> dict:
    """The MFU that leads, its band, its count of attention ("full" or "causal") and its
    denominator; `slow` and `fast`: speed at the ends of the band over that of the estimate.

    Causal where the two differ by a tenth of the full count or more: under long or windowed
    contexts the full count holds work that nobody does and may pass 1.
    """
    basis = "causal" if use["mfu_causal"] <= (1 - CAUSAL_FROM) * use["mfu"] else "full"
    chip = chosen.found.situation.resolved.cluster.accelerator
    precision = chosen.phase.precision
    peak = chip.peak_flops(precision) / 1e12
    mfu = use["mfu_causal"] if basis == "causal" else use["mfu"]
    return {
        "mfu_shown": mfu,
        **_mfu_band("mfu_shown", mfu, slow, fast),
        "mfu_basis": basis,
        "mfu_denominator": f"{peak:,.0f} TFLOP/s, the dense {precision} peak of {chip.name}",
    }


def _mfu_band(name: str, mfu: float, slow: float, fast: float) -> dict:
    """Both ends of the band of an MFU, the upper one below the peak."""
    return {f"{name}_low": mfu * slow, f"{name}_high": min(mfu * fast, max(mfu, MOST_MFU))}


def oom_chance(resolved, phases) -> float:
    """The largest chance of any phase to go out of memory; by the measured peak where there is
    one."""
    if "memory_gb" in resolved.measured:
        return float(
            oom_probability(
                resolved.measured["memory_gb"] * 1e9,
                min(one.memory.capacity for one in phases),
                MEASURED_SPREAD,
            )
        )
    return max(one.oom_probability for one in phases)


def cost_band(money: Cost | None, run_days: dict, priced: bool = False) -> dict:
    """80 % band of the cost: the band of days and the spread of prices (none where `priced`),
    independent, their logs added in quadrature. {cost_usd_low, cost_usd_high}"""
    cost = clean(money and money.cost_usd)
    days = run_days["days"]
    if not cost or days is None:  # a device-hour that costs nothing has no spread
        return dict.fromkeys(("cost_usd_low", "cost_usd_high"), days and cost)
    out = {}
    for end in ("_low", "_high"):
        price = cost if priced else getattr(money, f"cost_usd{end}")
        width = hypot(log(run_days[f"days{end}"] / days), log(price / cost))
        out[f"cost_usd{end}"] = cost * exp(width if end == "_high" else -width)
    return out


def at_risk(money: Cost | None, ends: dict) -> float | None:
    """What the band of the cost, `ends`, adds to it on average; None without a cost."""
    known = (ends["cost_usd_low"], clean(money and money.cost_usd), ends["cost_usd_high"])
    return None if None in known else max(expected(*known) - known[1], 0.0)


def tables(assessment) -> dict:
    """What panels and the report show beside the headline: stages, hidden communication, traffic,
    candidates, endurance, cost, runs, assumptions."""
    chosen = assessment.chosen
    r = assessment.resolved
    e = assessment.endurance
    money = assessment.cost
    case = chosen.case
    step = chosen.step
    found = chosen.found
    missed = ("field", "limit", "value", "text", "chance")
    stages = [dict(row) for row in memory_by_stage(case)]
    layers = [row["layers"] for row in stages]
    chip = r.cluster.accelerator
    usual = [chosen.step_s * end for end in bands.ends(held(chosen))]  # its band unmeasured
    site = {"chip": chip.id, "family": chip.family, "stack": r.stack or ""}
    return {
        "memory_by_stage": stages,
        "hidden_s": {k: axis.hidden_s for k, axis in step.axes.items()},
        "communication": communication(case, step),
        "candidates": candidates(found),
        **{name: found.counts[name] for name in ("legal", "evaluated", "rejected")},
        "search_seconds": found.counts["seconds"],
        "endurance": e.as_dict(),
        "cost": money and money.as_dict(),
        "nearest_runs": bands.nearest_runs(case, **site),
        "measured_here": r.calibration
        and r.calibration.told() | {"usual_s": usual, "planned": as_logged(e.badput)},
        "missed": [{k: getattr(m, k) for k in missed} for m in assessment.missed],
        "phases": [
            {
                **{k: getattr(c.phase, k) for k in ("name", "tokens", "seq_len", "global_batch")},
                "plan": c.plan,
                "step_s": c.step_s,
                "memory_bytes": c.memory.total,
                "mfu": utilisation(c, c.step_s)["mfu"],
            }
            for c in assessment.phases
        ],
        "accelerator": chip.id,
        "devices": r.cluster.devices,
        "stack": r.stack,
        "layers_by_stage": [layers[0], max(layers[1:-1], default=0), layers[-1]],
        "stages": layout.stages_of(case),
        "blocks": by_kind(case),
        "measured": dict(r.measured),
        "without_single_source": bands.without_single_source(case, **site),
        "assumed": [vars(a) for a in assessment.assumed],
    }


def candidates(found) -> list[dict]:
    """The best plans of a search with step [s], MFU and memory [bytes], fastest first."""
    table = listed(found, found.order[:CANDIDATES])
    columns = {k: v.tolist() for k, v in table.items() if k not in NOT_LISTED}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]
