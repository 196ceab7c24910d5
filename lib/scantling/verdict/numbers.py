"""The numbers of an assessment: from memory and step to MFU, days, goodput and cost, and the tables
that panels show."""

from __future__ import annotations

import numpy as np

from ..base.records import take
from ..base.units import DAY_S
from ..catalogue.models.shape import flops_per_token
from ..endure.checkpoint import contents
from ..endure.cost import price
from ..endure.reliability import endure
from ..physics import bands
from ..physics.cases import devices
from ..physics.communication import communication
from ..physics.compute import keys_seen
from ..physics.memory.peak import memory_by_stage
from ..physics.step import PARTS, hardware_share, layers_per_stage, rates
from ..plans.search import columns_of

CANDIDATES = 200
UNTRIED = (
    1.5  # factor on both half widths of the band for a plan of a kind that nobody has published
)
MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "other")


def step_s(assessment, chosen) -> float:
    """Seconds of a step of one phase: measured where the design says so (its main phase), else
    computed."""
    measured, computed = assessment.resolved.measured, float(chosen.step.total)
    if chosen is not assessment.chosen or not measured:
        return computed
    if "step_s" in measured:
        return float(measured["step_s"])
    tokens, _, mfu = (float(x) for x in rates(chosen.case, computed))
    if "mfu" in measured:
        return computed * mfu / measured["mfu"]
    if "tokens_per_s_per_device" in measured:
        return computed * tokens / measured["tokens_per_s_per_device"]
    return computed


def step_band(assessment, chosen) -> tuple[float, float]:
    """80 % band of the step [s]; no width where the step was measured."""
    known = assessment.__dict__.setdefault("_bands", {})
    if id(chosen) not in known:
        known[id(chosen)] = _step_band(assessment, chosen)
    return known[id(chosen)]


def _step_band(assessment, chosen) -> tuple[float, float]:
    seconds = step_s(assessment, chosen)
    if chosen is assessment.chosen and set(assessment.resolved.measured) & {
        "step_s",
        "mfu",
        "tokens_per_s_per_device",
    }:
        return seconds, seconds
    stack, chip = assessment.resolved.stack, assessment.resolved.cluster.accelerator.id
    low, high = bands.band(
        chosen.case,
        bands.known_stack(stack),
        bands.known_chip(chip),
        False,
        bands.single_source(stack),
        float(chosen.memory.total / chosen.memory.capacity),
        bands.known_family(assessment.resolved.cluster.accelerator.family),
    )
    from ..advise.beyond import untried

    wider = UNTRIED if untried(chosen) else 1.0
    low, high = low**wider, high**wider
    return seconds * float(low), seconds * float(high)


def checkpoint_bytes(assessment) -> float:
    """One whole copy of weights, master weights, moments, random state and dataloader position.
    [bytes]"""
    chosen = assessment.chosen
    n = assessment.resolved.params
    return contents(
        n.total + n.mtp,
        optimizer=chosen.phase.optimizer,
        ranks=int(devices(chosen.case.plan)),
        readers=int(chosen.case.plan.dp),
    ).total


def endurance(assessment):
    """reliability.endure of the design's cluster with this plan's checkpoint and step."""
    r = assessment.resolved
    size = checkpoint_bytes(assessment)
    return endure(
        r.cluster,
        r.reliability,
        checkpoint_bytes=size,
        state_bytes_per_device=size / devices(assessment.chosen.case.plan),
        step_s=step_s(assessment, assessment.chosen),
        params=r.params.total,
        constraints=r.constraints,
    )


def goodput(assessment) -> float:
    """Productive share of the wall time: measured where the design says so, else that of
    `endurance`."""
    return float(assessment.resolved.measured.get("goodput", assessment.endurance.goodput))


def useful_s(assessment, which: int = 0) -> float | None:
    """Seconds of undisturbed training: tokens / rate over all phases; None without tokens. which: 0
    the estimate, -1 and 1 the band's ends."""
    total = 0.0
    for chosen in assessment.phases:
        if chosen.phase.tokens is None:
            return None
        seconds = (
            step_s(assessment, chosen)
            if which == 0
            else step_band(assessment, chosen)[0 if which < 0 else 1]
        )
        total += chosen.phase.tokens / (chosen.phase.global_batch * chosen.phase.seq_len) * seconds
    return total


def days(assessment, which: int = 0) -> float | None:
    """Days of the whole run: useful time / goodput."""
    seconds = useful_s(assessment, which)
    return None if seconds is None else seconds / goodput(assessment) / DAY_S


def cost(assessment):
    """cost.price of the whole run, spares paid for; None without tokens."""
    r, wall = assessment.resolved, days(assessment)
    if wall is None:
        return None
    paid = r.cluster.devices + float(assessment.endurance.spares) * r.cluster.devices_per_node
    return price(
        r.cluster, r.prices, wall_s=wall * DAY_S, devices_paid=paid, goodput=goodput(assessment)
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


def figures(assessment) -> dict:
    """The scalar keys of the contract, by name."""
    chosen, r = assessment.chosen, assessment.resolved
    seconds, (low, high) = step_s(assessment, chosen), step_band(assessment, chosen)
    scale = seconds / float(chosen.step.total)
    parts = {k: float(getattr(chosen.step, k)) * scale for k in PARTS}
    use = utilisation(chosen, seconds)
    fullest = max(assessment.phases, key=lambda x: float(x.memory.total))
    memory = {k: float(getattr(fullest.memory, k)) for k in MEMORY_PARTS}
    if "memory_gb" in r.measured:
        factor = r.measured["memory_gb"] * 1e9 / sum(memory.values())
        memory = {k: v * factor for k, v in memory.items()}
    memory |= {"total": sum(memory.values()), "capacity": float(fullest.memory.capacity)}
    e, money = assessment.endurance, assessment.cost
    run_days = [days(assessment, w) for w in (0, -1, 1)]
    return dict(
        plan=chosen.plan,
        devices_used=int(devices(chosen.case.plan)),
        params=int(r.params.total),
        active_params=int(r.params.active),
        mtp_params=int(r.params.mtp),
        flops_per_token=use.pop("flops_per_token"),
        step_s=seconds,
        step_s_low=low,
        step_s_high=high,
        **use,
        mfu_low=use["mfu"] * seconds / high,
        mfu_high=min(use["mfu"] * seconds / low, max(use["mfu"], 0.999)),
        bubble_fraction=parts["bubble"] / seconds,
        memory_bytes=memory,
        step_breakdown_s=parts,
        days=run_days[0],
        days_low=run_days[1],
        days_high=run_days[2],
        goodput=goodput(assessment),
        mtbf_s=float(e.mtbf_s),
        checkpoint_interval_s=float(e.checkpoint_interval_s),
        checkpoint_bytes=float(e.checkpoint_bytes),
        checkpoint_overhead=float(e.checkpoint_overhead),
        spares=int(e.spares),
        spares_recommended=int(e.spares_recommended),
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
        why=assessment.why,
        missed=[
            dict(field=m.field, limit=m.limit, value=m.value, text=m.text, chance=m.chance)
            for m in assessment.missed
        ],
        phases=[
            dict(
                name=c.phase.name,
                tokens=c.phase.tokens,
                seq_len=c.phase.seq_len,
                global_batch=c.phase.global_batch,
                plan=c.plan,
                step_s=step_s(assessment, c),
                memory_bytes=float(c.memory.total),
                mfu=utilisation(c, step_s(assessment, c))["mfu"],
            )
            for c in assessment.phases
        ],
        layers_by_stage=[int(np.max(x)) for x in layers_per_stage(chosen.case)],
        measured=dict(r.measured),
        without_single_source=lone(assessment),
        assumed=[dict(field=a.field, value=a.value, why=a.why) for a in said],
    )


def lone(assessment) -> dict | None:
    """The headline without the constants that one source alone supports; None where every constant
    has several."""
    accelerator = assessment.resolved.cluster.accelerator
    return bands.without_single_source(
        assessment.chosen.case,
        chip=accelerator.id,
        family=accelerator.family,
        stack=assessment.resolved.stack or "",
    )


def nearest(assessment) -> list[dict]:
    """Published runs most like this one, as plain rows."""
    finder = getattr(bands, "nearest_runs", None)
    return finder(assessment.chosen.case, assessment.resolved) if finder else []


def candidates(found, most: int = CANDIDATES) -> list[dict]:
    """The best plans of a search with step [s], MFU and memory [bytes], fastest first."""
    rows = found.order[:most]
    plan = take(found.plan, rows)
    if not len(rows):
        return []
    _, _, mfu = rates(found.situation.cases(plan), found.step_s[rows])
    table = columns_of(found, plan, len(rows)) | dict(
        step_s=found.step_s[rows],
        mfu=np.broadcast_to(mfu, len(rows)),
        memory_bytes=found.total_bytes[rows],
    )
    return [dict(zip(table, row)) for row in zip(*(column.tolist() for column in table.values()))]
