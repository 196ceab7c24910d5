"""What a planner would try on a design that misses something: changes with how much they ask, not
yet assessed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .. import catalogue
from ..base.quantities.table import show
from ..base.show import shown
from ..catalogue.families import family
from ..design.constraints import CONSTRAINTS
from ..plans.run import skipped
from ..verdict.limits import batches_nearby

OWN_OF_CHIP = (
    "cluster.scale_out",
    "cluster.devices_per_node",
    "cluster.scale_up_domain",
    "cluster.nics_per_node",
)


@dataclass(frozen=True)
class Change:
    """One change: effort orders them (1 a setting, 3 another machine, 5 giving way), text for the
    reader, dotted paths and values."""

    effort: float
    text: str
    set: dict = field(hash=False)
    kind: str = ""

    @property
    def gives_way(self) -> bool:
        """True where only what is asked for changes."""
        return self.kind == "less" or all(path.startswith("constraints.") for path in self.set)


def _state(assessment):
    fits = bool(assessment.phases) and all(c.fits for c in assessment.phases)
    missed = {m.field: m for m in assessment.missed} if assessment.phases else {}
    speed = bool(missed.keys() & {"deadline_days", "budget_usd", "min_mfu"})
    return fits, missed, speed


def plan_changes(assessment):
    """Pins let go or changed, sharding, recompute, micro-batch, a faster kind of plan that nobody
    has published."""
    fits, _, speed = _state(assessment)
    plan = assessment.design.plan.given()
    better = skipped(assessment.chosen.found) if fits and speed and "tp" not in plan else None
    if better is not None:
        tp = assessment.chosen.found.row(better[0])["tp"]
        yield Change(
            2.7,
            (
                f"tp {tp}, across scale-up domains (no large run has been published so: "
                f"measure it first)"
            ),
            {"plan.tp": tp},
        )
    if (
        fits
        and speed
        and assessment.plan["cp"] > 1
        and "cp_type" not in plan
        and assessment.plan["cp_type"] != "all-gather"
    ):
        yield Change(
            2.6,
            (
                "keys and values gathered at once instead of in a ring (little is "
                "published: measure it first)"
            ),
            {"plan.cp_type": "all-gather"},
        )
    if not plan or (fits and not speed and assessment.verdict != "feasible"):
        return
    if not fits:
        if plan.get("sharding") == "none":
            yield Change(1.0, "shard the optimizer states (zero1)", {"plan.sharding": "zero1"})
        if plan.get("sharding") in ("none", "zero1", "zero2"):
            yield Change(
                1.4, "shard states, gradients and weights (zero3)", {"plan.sharding": "zero3"}
            )
        if plan.get("recompute", "full") != "full":
            yield Change(
                1.2,
                "recompute everything",
                {"plan.recompute": "full", "plan.recompute_layers": None},
            )
        for what, words in (
            ("optimizer", "optimizer states"),
            ("optimizer+params", "weights, gradients and optimizer states"),
        ):
            if plan.get("offload") is None:
                yield Change(2.2, f"offload {words} to host memory", {"plan.offload": what})
        if plan.get("micro_batch", 1) > 1:
            yield Change(1.1, "micro-batch 1", {"plan.micro_batch": 1, "plan.grad_accum": None})
    for name in plan:
        yield Change(1.3, f"leave plan.{name} open (now {plan[name]})", {f"plan.{name}": None})
    if len(plan) > 1:
        yield Change(2.0, "leave the whole plan open", {f"plan.{name}": None for name in plan})


def site_changes(assessment):
    """Precision, batch, sequence, fabric, chip, host memory, a leaner optimizer."""
    fits, missed, speed = _state(assessment)
    if fits and not speed and assessment.verdict != "feasible":
        return
    r, job = assessment.resolved, assessment.resolved.job_path
    phase = r.main_phase
    chip = r.cluster.accelerator
    if phase.precision in ("bf16", "fp16") and chip.fp8_flops > 0:
        yield Change(
            3.2,
            "fp8 matrix products (to be confirmed by an ML specialist)",
            {"job.precision": "fp8"},
            "precision",
        )
    if (
        "min_mfu" in missed
        and phase.precision not in ("bf16", "fp16", "fp32")
        and not math.isnan(chip.bf16_flops)
    ):
        yield Change(
            3.2,
            "bf16 throughout, whose peak is easier to reach",
            {"job.precision": "bf16"},
            "precision",
        )
    for effort, batch, words in batches_nearby(assessment.chosen) if fits else ():
        yield Change(
            effort + abs(math.log2(batch / phase.global_batch)),
            (
                f"a global batch of {batch:,} sequences, which {words} (to be confirmed by "
                f"an ML specialist)"
            ),
            {f"{job}.global_batch": batch, f"{job}.global_batch_tokens": None},
            "whole batch",
        )
    if fits:
        for times in (2, 4, 8) if _bubbles(assessment) else (2,):
            yield Change(
                3.3 + math.log2(times) / 10,
                (
                    f"a global batch of {times * phase.global_batch:,} sequences (to be "
                    f"confirmed by an ML specialist)"
                ),
                {
                    f"{job}.global_batch": times * phase.global_batch,
                    f"{job}.global_batch_tokens": None,
                },
                "batch",
            )
    elif phase.seq_len >= 4096:
        yield Change(
            4.5,
            f"sequences of {phase.seq_len // 2:,} tokens",
            {f"{job}.seq_len": phase.seq_len // 2},
            "sequence",
        )
    if not fits and phase.optimizer == "adamw":
        yield Change(
            3.8,
            "optimizer states in 8 bit (to be confirmed by an ML specialist)",
            {"job.optimizer": "adamw-8bit"},
            "optimizer",
        )
    if not fits and r.cluster.host_memory_bytes < 2e12:
        yield Change(
            3.0, "2 TB of host memory a node, for offload", {"cluster.host_memory_gb": 2048}, "host"
        )
    if fits:
        for row in faster_fabrics(r.cluster)[:2]:
            yield Change(3.3, f"{row.name} between nodes", {"cluster.scale_out": row.id}, "fabric")
    for other in family(chip.family).instead:
        if other != chip.id and other in catalogue.accelerators():
            yield Change(
                3.6,
                f"{other} instead of {chip.id}",
                {"cluster.accelerator": other} | {path: None for path in OWN_OF_CHIP},
                "chip",
            )


def _bubbles(assessment) -> bool:
    return float(assessment.chosen.step.bubble / assessment.chosen.step.total) > 0.1


def fabrics_by_rate() -> list:
    """One scale-out fabric of the catalogue for each rate, from slow to fast."""
    rows = {}
    for row in catalogue.fabrics("scale-out").values():
        if row.device_bytes_per_s > 0:
            rows.setdefault(row.device_bytes_per_s, row)
    return [rows[rate] for rate in sorted(rows)]


def faster_fabrics(cluster) -> list:
    """Fabrics at least a fifth faster than the cluster's own, slowest first."""
    return [
        f for f in fabrics_by_rate() if f.device_bytes_per_s > 1.2 * cluster.scale_out_bytes_per_s
    ]


def scale_out_steps(cluster):
    """(next slower, next faster) fabric of the catalogue, None at an end."""
    slower = [
        f for f in fabrics_by_rate() if f.device_bytes_per_s < cluster.scale_out_bytes_per_s / 1.2
    ]
    faster = faster_fabrics(cluster)
    return slower[-1] if slower else None, faster[0] if faster else None


def recovery_changes(assessment):
    """Saves, restarts and spares, where the run loses too much to failures, or where what it loses
    is all that a deadline or budget lacks."""
    fits, missed, _ = _state(assessment)
    if not missed:
        return
    e = assessment.endurance
    late = [missed[field] for field in ("deadline_days", "budget_usd") if field in missed]
    lost = bool(late) and fits and all(m.value * assessment.goodput <= m.limit for m in late)
    quick = {"reliability.checkpoint_stall_s": 0.2, "reliability.checkpoint_durable_s": 30.0}
    soon = {"reliability.restart_s": 60.0, "reliability.detect_s": 30.0}
    if "max_checkpoint_stall_s" in missed:
        limit = missed["max_checkpoint_stall_s"].limit
        yield Change(
            2.2,
            f"save into host memory, asynchronously: a stall of {shown(limit, 'seconds')}",
            {"reliability.checkpoint_stall_s": limit},
        )
    if "max_recovery_s" in missed:
        limit = missed["max_recovery_s"].limit
        detect = min(float(e.detect_s), limit / 2)
        yield Change(
            2.4,
            (
                f"restart in place: detected in {shown(detect, 'seconds')}, running again "
                f"{shown(limit - detect, 'seconds')} later"
            ),
            {"reliability.restart_s": limit - detect, "reliability.detect_s": detect},
        )
    if lost or missed.keys() & {
        "max_checkpoint_overhead",
        "max_lost_work_s",
        "min_goodput",
        "reliability.checkpoint_interval_s",
    }:
        for stall in (1.0, 0.2):
            yield Change(
                3.0,
                f"asynchronous saves that stall {stall:g} s and are durable in 60 s",
                {"reliability.checkpoint_stall_s": stall, "reliability.checkpoint_durable_s": 60.0},
            )
        yield Change(3.5, "in-place restart within 60 s, failures seen in 30 s", soon)
        yield Change(
            3.8,
            "saves that stall 0.2 s, durable in 30 s, and in-place restart within 60 s",
            {**quick, **soon},
        )
    need = max(int(e.spares_recommended), int(e.spares) + lost)
    if (lost or missed.keys() & {"survive", "min_goodput", "max_recovery_s"}) and need > int(
        e.spares
    ):
        yield Change(2.0, _spares(need), {"reliability.spares": need})
    if "survive" in missed:
        rack = max((int(v) for v in e.domain_nodes.values()), default=1)
        for spares in sorted({1, need, rack} - {0}):
            if spares > int(e.spares):
                yield Change(2.1, _spares(spares), {"reliability.spares": spares})


def _spares(nodes: int) -> str:
    return "1 spare node" if nodes == 1 else f"{nodes:,} spare nodes"


SPENT = ("deadline_days", "budget_usd", "max_power_mw")  # what more of it can buy
RELAXED = 5.0  # effort of giving way on a constraint
RELAXED_LEAST = 4.0  # of what is spent, and one more for each doubling
LAST = 50.0  # effort of giving way on everything: no advice, but the truth


def relaxation(assessment, field: str) -> Change | None:
    """One missed constraint moved to what is predicted; None for what is no number."""
    miss = {m.field: m for m in assessment.missed}.get(field)
    row = CONSTRAINTS.get(field)
    if miss is None or row is None or not row.relaxed:
        return None
    effort = RELAXED
    if not row.ceiling:
        value = math.floor(miss.value * 1000) / 1000
    elif row.field in SPENT:
        value = float(_up(miss.value * 1.0005))
        effort = RELAXED_LEAST + math.log2(max(value / miss.limit, 1))
    else:
        value = float(f"{miss.value * 1.01:.3g}")
    text = row.relaxed.format(limit=show(row.figure, value * row.scale))
    return Change(effort, text, {f"constraints.{field}": value})


def relaxations(assessment):
    """The constraints themselves, moved to what is predicted; fewer tokens; and all constraints at
    once where several are missed."""
    _, missed, _ = _state(assessment)
    moved = [c for c in (relaxation(assessment, field) for field in missed) if c is not None]
    yield from moved
    phases = assessment.resolved.phases
    if missed and missed.keys() <= {"deadline_days", "budget_usd"} and len(phases) == 1:
        share = min(m.limit / m.value for m in missed.values())
        tokens = _down(phases[0].tokens * share * 0.9995)
        yield Change(
            4.9 - math.log2(share),
            (
                f"{show('params', tokens)} tokens, {tokens / phases[0].tokens:.2g} of what "
                f"is asked for (to be confirmed by an ML specialist)"
            ),
            {f"{assessment.resolved.job_path}.tokens": tokens},
            "less",
        )
    if len(moved) > 1:
        yield Change(
            LAST + sum(c.effort for c in moved),
            listed(c.text for c in moved),
            {k: v for c in moved for k, v in c.set.items()},
        )


def listed(words) -> str:
    """Words as a list: a, b and c."""
    *head, last = words
    return f"{', '.join(head)} and {last}" if head else last


def _down(value: float) -> float:
    """The next number of three digits below a value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.6g}")


def _up(value: float) -> float:
    """The next number of three digits above a value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit) * unit:.6g}")
