"""The numbers of an assessment: from memory and step to MFU, days, goodput and cost, and the tables
that panels show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.records import take
from ..base.units import DAY_S
from ..catalogue.models.shape import flops_per_token
from ..endure.checkpoint import contents
from ..endure.cost import Cost, price
from ..endure.reliability import Endurance, endure
from ..physics import bands
from ..physics.cases import Cases, devices
from ..physics.communication import communication
from ..physics.compute import keys_seen
from ..physics.memory.peak import memory_by_stage
from ..physics.step import PARTS, hardware_share, layers_per_stage, rates
from ..plans.words import named
from .record import Chosen
from .unpublished import untried

CANDIDATES = 200
UNTRIED = (
    1.5  # factor on both half widths of the band for a plan of a kind that nobody has published
)
OF_ENDURANCE = ("mtbf_s", "checkpoint_interval_s", "checkpoint_bytes", "checkpoint_overhead")
MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "other")


def measured_step_s(
    measured: dict,
    case: Cases,
    computed: float,
) -> float | None:
    """Seconds of a step that a measured step, MFU or rate of tokens says; None where none is
    given."""
    if "step_s" in measured:
        return float(measured["step_s"])
    tokens, _, mfu = (float(x) for x in rates(case, computed))
    if "mfu" in measured:
        return computed * mfu / measured["mfu"]
    if "tokens_per_s_per_device" in measured:
        return computed * tokens / measured["tokens_per_s_per_device"]
    return None


def with_step(chosen: Chosen, measured: dict) -> Chosen:
    """The phase with its step and 80 % band [s]: measured, without width, or computed."""
    seconds = measured_step_s(measured, chosen.case, chosen.step_s)
    if seconds is not None:
        return replace(
            chosen,
            step_s=seconds,
            step_s_low=seconds,
            step_s_high=seconds,
        )
    resolved = chosen.found.situation.resolved
    ends = bands.band(
        chosen.case,
        bands.known_stack(resolved.stack),
        bands.known_chip(resolved.cluster.accelerator.id),
        False,
        bands.single_source(resolved.stack),
        float(chosen.memory.total / chosen.memory.capacity),
        bands.known_family(resolved.cluster.accelerator.family),
    )
    wider = UNTRIED if untried(chosen) else 1.0
    low, high = (chosen.step_s * float(end**wider) for end in ends)
    return replace(
        chosen,
        step_s_low=low,
        step_s_high=high,
    )


def endurance(resolved, chosen: Chosen) -> Endurance:
    """reliability.endure of the design's cluster with this plan's checkpoint and step. The
    checkpoint is one whole copy of weights, master weights, moments, random state and dataloader
    position."""
    ranks = int(devices(chosen.case.plan))
    size = contents(
        resolved.params.total + resolved.params.mtp,
        optimizer=chosen.phase.optimizer,
        ranks=ranks,
        readers=int(chosen.case.plan.dp),
    ).total
    return endure(
        resolved.cluster,
        resolved.reliability,
        checkpoint_bytes=size,
        state_bytes_per_device=size / ranks,
        step_s=chosen.step_s,
        params=resolved.params.total,
        constraints=resolved.constraints,
    )


def useful_s(phases, which: str = "step_s") -> float | None:
    """Seconds of undisturbed training, tokens / (tokens a step) x step over all phases; None
    without tokens. which: step_s, step_s_low or step_s_high."""
    if any(one.phase.tokens is None for one in phases):
        return None
    return sum(
        one.phase.tokens / (one.phase.global_batch * one.phase.seq_len) * getattr(one, which)
        for one in phases
    )


def days(
    phases,
    goodput: float,
    which: str = "step_s",
) -> float | None:
    """Days of the whole run: useful time / goodput."""
    seconds = useful_s(phases, which)
    return None if seconds is None else seconds / goodput / DAY_S


def cost(
    resolved,
    endurance: Endurance,
    run_days: float | None,
    goodput: float,
) -> Cost | None:
    """cost.price of the whole run, spares paid for; None without tokens."""
    if run_days is None:
        return None
    cluster = resolved.cluster
    return price(
        cluster,
        resolved.prices,
        wall_s=run_days * DAY_S,
        devices_paid=cluster.devices + float(endurance.spares) * cluster.devices_per_node,
        goodput=goodput,
    )


def utilisation(chosen, seconds: float) -> dict:
    """MFU under four conventions, tokens/s and FLOP/s per device of one phase at `seconds` a
    step."""
    c = chosen.case
    tokens, flops, mfu = (float(x) for x in rates(c, seconds))
    f = flops_per_token(c.shape, c.job.seq_len)
    causal = keys_seen(c) / c.job.seq_len
    chip = chosen.found.situation.resolved.cluster.accelerator
    half = next(x for x in (chip.bf16_flops, chip.fp16_flops, chip.fp32_flops) if not np.isnan(x))
    total = f.total + f.mtp
    return dict(
        tokens_per_s_per_device=tokens,
        model_tflops_per_device=flops / 1e12,
        mfu=mfu,
        mfu_causal=float(mfu * (total - f.attention_scores * (1 - causal)) / total),
        mfu_bf16_peak=flops / half,
        hfu=float(mfu * hardware_share(c)),
        flops_per_token=float(total),
    )


def memory_bytes(resolved, phases) -> dict[str, float]:
    """Parts, total and capacity of the fullest phase's memory, scaled to what was measured. [bytes
    a device]"""
    fullest = max(phases, key=lambda one: float(one.memory.total)).memory
    parts = {k: float(getattr(fullest, k)) for k in MEMORY_PARTS}
    if "memory_gb" in resolved.measured:
        factor = resolved.measured["memory_gb"] * 1e9 / sum(parts.values())
        parts = {k: v * factor for k, v in parts.items()}
    return parts | {
        "total": sum(parts.values()),
        "capacity": float(fullest.capacity),
    }


def numbers(resolved, phases) -> dict:
    """Headline numbers by the names of `record.Numbers`, with `endurance` and `cost`."""
    chosen = phases[resolved.main]
    seconds = chosen.step_s
    scale = seconds / float(chosen.step.total)
    parts = {k: float(getattr(chosen.step, k)) * scale for k in PARTS}
    use = utilisation(chosen, seconds)
    e = endurance(resolved, chosen)
    good = float(resolved.measured.get("goodput", e.goodput))
    run_days = [days(phases, good, f"step_s{end}") for end in ("", "_low", "_high")]
    money = cost(
        resolved,
        e,
        run_days[0],
        good,
    )
    return dict(
        endurance=e,
        cost=money,
        plan=dict(chosen.plan),
        devices_used=int(devices(chosen.case.plan)),
        params=int(resolved.params.total),
        active_params=int(resolved.params.active),
        mtp_params=int(resolved.params.mtp),
        step_s=seconds,
        step_s_low=chosen.step_s_low,
        step_s_high=chosen.step_s_high,
        **use,
        mfu_low=use["mfu"] * seconds / chosen.step_s_high,
        mfu_high=min(use["mfu"] * seconds / chosen.step_s_low, max(use["mfu"], 0.999)),
        bubble_fraction=parts["bubble"] / seconds,
        memory_bytes=memory_bytes(resolved, phases),
        step_breakdown_s=parts,
        days=run_days[0],
        days_low=run_days[1],
        days_high=run_days[2],
        goodput=good,
        **{name: float(getattr(e, name)) for name in OF_ENDURANCE},
        **{name: int(getattr(e, name)) for name in ("spares", "spares_recommended")},
        cost_usd=_known(money and money.cost_usd),
        energy_kwh=_known(money and money.energy_kwh),
    )


def _known(value) -> float | None:
    """The number, None where it is missing or not finite."""
    return None if value is None or not np.isfinite(value) else float(value)


def tables(assessment) -> dict:
    """What panels and the report show beside the headline: stages, hidden communication, traffic,
    candidates, endurance, cost, runs, assumptions."""
    chosen, r = assessment.chosen, assessment.resolved
    found = chosen.found
    said = [
        *r.assumed,
        *assessment.endurance.assumed,
        *(assessment.cost.assumed if assessment.cost else ()),
    ]
    return dict(
        memory_by_stage=[dict(row) for row in memory_by_stage(chosen.case)],
        hidden_s={k: float(axis.hidden_s) for k, axis in chosen.step.axes.items()},
        communication=communication(chosen.case, chosen.step),
        candidates=candidates(found),
        legal=found.legal,
        evaluated=found.fitting,
        rejected=found.rejected,
        search_seconds=found.seconds,
        endurance=assessment.endurance.as_dict(),
        cost=assessment.cost.as_dict() if assessment.cost else None,
        nearest_runs=nearest(assessment),
        missed=[
            {k: getattr(m, k) for k in ("field", "limit", "value", "text", "chance")}
            for m in assessment.missed
        ],
        phases=[
            dict(
                **{k: getattr(c.phase, k) for k in ("name", "tokens", "seq_len", "global_batch")},
                plan=c.plan,
                step_s=c.step_s,
                memory_bytes=float(c.memory.total),
                mfu=utilisation(c, c.step_s)["mfu"],
            )
            for c in assessment.phases
        ],
        layers_by_stage=[int(np.max(x)) for x in layers_per_stage(chosen.case)],
        measured=dict(r.measured),
        without_single_source=lone(assessment),
        assumed=[
            dict(
                field=a.field,
                value=a.value,
                why=a.why,
            )
            for a in said
        ],
    )


def lone(assessment) -> dict | None:
    """The headline without the constants that one source alone supports; None where every constant
    has several."""
    return bands.without_single_source(assessment.chosen.case, **_site(assessment))


def nearest(assessment) -> list[dict]:
    """Published runs most like this one, as plain rows."""
    return bands.nearest_runs(assessment.chosen.case, **_site(assessment))


def _site(assessment) -> dict:
    resolved = assessment.resolved
    chip = resolved.cluster.accelerator
    return {
        "chip": chip.id,
        "family": chip.family,
        "stack": resolved.stack or "",
    }


def candidates(found, most: int = CANDIDATES) -> list[dict]:
    """The best plans of a search with step [s], MFU and memory [bytes], fastest first."""
    rows = found.order[:most]
    plan = take(found.plan, rows)
    if not len(rows):
        return []
    _, _, mfu = rates(found.situation.cases(plan), found.step_s[rows])
    table = named(plan, len(rows), found.situation.phase.global_batch) | dict(
        step_s=found.step_s[rows],
        mfu=np.broadcast_to(mfu, len(rows)),
        memory_bytes=found.total_bytes[rows],
    )
    return [dict(zip(table, row)) for row in zip(*(column.tolist() for column in table.values()))]
