"""Nearest fixes: the smallest changes to a design that meet what it asks for, each assessed before it is shown."""
from __future__ import annotations

import math

from .errors import DesignError

MOST = 6
SCALES = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64)


def nearest_fixes(assessment, most: int = MOST) -> list[dict]:
    """Changes with their verdict, feasible ones first, in the order of how little they change: [{change, set, verdict, days, cost_usd, mfu}].

    `set` are dotted paths and values for `Design.change`; applying it gives the verdict shown.
    """
    from .verdict import assess

    shown = []
    for effort, text, changes in _candidates(assessment):
        try:
            other = assess(assessment.design.change(changes))
        except DesignError:
            continue
        if other.verdict == "impossible" or (other.verdict != "feasible" and not _better(other, assessment)):
            continue
        f = other.figures
        shown.append((other.verdict != "feasible", effort, dict(change=text, set=changes, verdict=other.verdict, days=f["days"], cost_usd=f["cost_usd"], mfu=f["mfu"],
                                                               devices=other.resolved.cluster.devices)))
    shown.sort(key=lambda s: s[:2])
    return [s[2] for s in shown[:most]]


def _better(other, than) -> bool:
    """Fewer constraints missed than before, or now it fits."""
    if not than.phases or not all(c.fits for c in than.phases):
        return all(c.fits for c in other.phases)
    return len(other.missed) < len(than.missed)


def _candidates(assessment):
    """(effort, text, changes): what a planner would try for what is missed here; effort orders them."""
    design, r = assessment.design, assessment.resolved
    missed = {m.field: m for m in assessment.missed} if assessment.phases else {}
    fits = bool(assessment.phases) and all(c.fits for c in assessment.phases)
    plan = design.plan.given()
    if not fits and plan:
        for field in plan:
            yield 1, f"leave plan.{field} open (now {plan[field]})", {f"plan.{field}": None}
        yield 2, "leave the whole plan open", {f"plan.{field}": None for field in plan}
        if "recompute" in plan and plan["recompute"] != "full":
            yield 1.5, "recompute everything", {"plan.recompute": "full"}
        if plan.get("micro_batch", 1) > 1:
            yield 1.5, "micro-batch 1", {"plan.micro_batch": 1}
        if plan.get("sharding") in ("none",):
            yield 1.2, "shard the optimizer states (zero1)", {"plan.sharding": "zero1"}
    elif plan and missed.keys() & {"deadline_days", "budget_usd", "min_mfu"}:
        yield 2, "leave the whole plan open", {f"plan.{field}": None for field in plan}
    if missed.keys() & {"deadline_days", "min_mfu", "budget_usd"} or not fits:
        yield from _machines(assessment, fits, missed)
    if "deadline_days" in missed:
        yield 4, f"deadline of {math.ceil(missed['deadline_days'].value):,} days", {"constraints.deadline_days": float(math.ceil(missed["deadline_days"].value))}
    if "budget_usd" in missed:
        new = float(f"{missed['budget_usd'].value * 1.005:.3g}")
        yield 4, f"budget of {new:,.0f} USD", {"constraints.budget_usd": new}
    if "min_mfu" in missed:
        floor = math.floor(missed["min_mfu"].value * 1000) / 1000
        yield 5, f"an MFU floor of {floor:.1%}", {"constraints.min_mfu": floor}
    for field, text, key in (("max_checkpoint_stall_s", "save into host memory, asynchronously: a stall of {v:g} s", "reliability.checkpoint_stall_s"),
                             ("max_recovery_s", "restart in place within {v:g} s", "reliability.restart_s")):
        if field in missed:
            value = missed[field].limit if "stall" in field else max(missed[field].limit - float(assessment.endurance.detect_s), 1.0)
            yield 3, text.format(v=value), {key: value}
    for field in ("max_checkpoint_overhead", "max_lost_work_s", "min_goodput"):
        if field in missed:
            for stall in (1.0, 0.2):
                yield 3, f"asynchronous saves that stall {stall:g} s and are durable in 60 s", {"reliability.checkpoint_stall_s": stall, "reliability.checkpoint_durable_s": 60.0}
            yield 3.5, "in-place restart within 60 s", {"reliability.restart_s": 60.0, "reliability.detect_s": 30.0}
            yield 3.8, "saves that stall 0.2 s, durable in 30 s, and in-place restart within 60 s", {
                "reliability.checkpoint_stall_s": 0.2, "reliability.checkpoint_durable_s": 30.0, "reliability.restart_s": 60.0, "reliability.detect_s": 30.0}
    if "survive" in missed:
        need = int(assessment.endurance.spares_recommended)
        yield 2, f"{need} spare nodes", {"reliability.spares": max(need, 1)}


def _machines(assessment, fits, missed):
    """More devices, a faster or larger chip, a lower precision, a faster network."""
    r = assessment.resolved
    cluster, design = r.cluster, assessment.design
    chip = cluster.accelerator
    pins = design.plan.given()
    step = max(cluster.devices_per_node, 1)
    need = missed["deadline_days"].value / missed["deadline_days"].limit if "deadline_days" in missed else 1.0
    scales = [s for s in SCALES if s >= need * 0.9] if fits else SCALES
    if fits and "deadline_days" not in missed:
        scales = (0.5, 0.25)
    if not pins.keys() & {"dp"}:
        for scale in scales[:4] if fits else scales:
            count = max(step, int(round(cluster.devices * scale / step)) * step)
            if count != cluster.devices and count <= 4_000_000:
                yield 3 + abs(math.log2(scale)), f"{count:,} devices", {"cluster.devices": count}
    phase = r.phases[0]
    if phase.precision in ("bf16", "fp16") and chip.fp8_flops > 0 and "precision" not in pins and "min_mfu" not in missed:
        yield 3.2, "fp8 matrix products (to be confirmed by an ML specialist)", {"job.precision": "fp8"}
    for other in BIGGER.get(chip.family, ()):
        if other != chip.id:
            yield 3.6, f"{other} instead of {chip.id}", {"cluster.accelerator": other, "cluster.scale_out": None, "cluster.devices_per_node": None, "cluster.scale_up_domain": None}


BIGGER = {"volta": ("a100-80-sxm", "h100-sxm"), "ampere": ("h100-sxm", "h200-sxm"), "hopper": ("h200-sxm", "b200-sxm", "gb200-nvl72"), "blackwell": ("gb300-nvl72",),
          "cdna2": ("mi300x",), "cdna3": ("mi355x",), "tpu": ("tpu-v7x",)}
