"""What binds a design: constraints missed and by how much, the memory zone, idle devices, the
largest loss of the step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..base.errors import DesignError
from ..physics.cases import devices
from ..physics.memory.peak import SAFE_SHARE, ZONES, zone
from ..plans import space as planning
from ..plans.run import find
from ..plans.words import short
from .numbers import MEMORY_PARTS
from .record import Assessment, Chosen
from .unpublished import offloaded, unpublished
from .words import say

LARGE_BUBBLE = 0.1  # share of the step from which more micro-batches are tried
HALF = 0.5  # goodput below which failures are said to bind


def limits(assessment: Assessment) -> list[str]:
    """Lines on what binds, the worst first: memory, constraints, a tight fit with what the best
    safe plan costs, idle devices, the largest loss; the refusal's arithmetic where impossible."""
    if assessment.verdict == "impossible":
        return list(assessment.refusal)
    chosen = assessment.chosen
    return [
        *(unfit(one) for one in assessment.phases if not one.fits),
        *(m.text for m in assessment.missed),
        *stopped(assessment),
        *tight(assessment),
        *unpublished(chosen),
        *accumulated(chosen),
        *idle(chosen),
        *offloaded(assessment),
        *replaced(assessment),
        largest_loss(assessment),
    ]


def unfit(one: Chosen) -> str:
    """A line on a pinned plan that does not fit: its memory part by part."""
    parts = (
        say(
            "piece",
            name=k,
            size=getattr(one.memory, k),
        )
        for k in MEMORY_PARTS
    )
    return say(
        "unfit",
        m=one.memory,
        parts=" + ".join(parts),
    )


def stopped(assessment: Assessment) -> list[str]:
    """A line on a run that failures keep from getting on."""
    return [say("stopped", a=assessment)] if assessment.goodput < HALF else []


def replaced(assessment: Assessment) -> list[str]:
    """A line on measured figures, with what is computed in their place."""
    said = ", ".join(f"{k} {v:g}" for k, v in assessment.resolved.measured.items())
    return (
        [
            say(
                "replaced",
                said=said,
                chosen=assessment.chosen,
            )
        ]
        if said
        else []
    )


def largest_loss(assessment: Assessment) -> str:
    """A line on the part of the step that goes to anything but the model's own arithmetic."""
    parts, chosen = assessment.step_breakdown_s, assessment.chosen
    loss = max((k for k in parts if k not in USEFUL), key=lambda k: parts[k])
    name = AWAY.get((loss, chosen.plan["offload"]), LOSSES.get(loss, loss))
    step_s = assessment.step_s
    line = say(
        "loss",
        name=name,
        share=parts[loss] / step_s,
        step_s=step_s,
    )
    if loss != "bubble" or not guessed(assessment, "global_batch"):
        return line
    return line + say("loss-bubble", batch=chosen.phase.global_batch)


def tight(assessment) -> list[str]:
    """A line on a fit above SAFE_SHARE of the memory: of the fullest phase, with what its fastest
    safe plan costs."""
    memory = assessment.memory_bytes
    fullest = max(assessment.phases, key=lambda c: float(c.memory.total))
    total, capacity, found = memory["total"], memory["capacity"], fullest.found
    if ZONES[zone(total, capacity)] != "tight":
        return []
    phase = f" in {fullest.phase.name}" if len(assessment.phases) > 1 and fullest.phase.name else ""
    line = say(
        "tight",
        total=total,
        share=total / capacity,
        phase=phase,
        safe=SAFE_SHARE,
    )
    if not fullest.fits:
        return [line]
    safe = found.best_safe()
    if safe is None:
        return [line + say("tight-none")]
    longer = found.step_s[safe] / found.step_s[fullest.row] - 1
    return [
        line
        + say(
            "tight-safe",
            safe=SAFE_SHARE,
            plan=short(found.row(safe)),
            longer=longer,
        )
    ]


def guessed(assessment, field: str) -> bool:
    """Whether a field of the job was left open and filled in by a rule."""
    return any(a.field.rpartition(".")[2] == field for a in assessment.resolved.assumed)


def idle(chosen) -> list[str]:
    """A line on devices that stand idle: how many the plan uses, and what using the most that any
    plan can would cost."""
    found, used = chosen.found, int(devices(chosen.case.plan))
    have, batch = found.situation.resolved.cluster.devices, chosen.phase.global_batch
    if used >= have or not chosen.fits:
        return []
    every = np.broadcast_to(devices(found.plan), found.fits.shape)
    rows = np.flatnonzero(found.fits & found.practised & (every > used))
    line = say(
        "idle",
        used=used,
        have=have,
        batch=batch,
    ) + rounder(chosen)
    if not len(rows):
        pins = " under the pins" if found.situation.phase.pins else ""
        return [line + say("idle-none", pins=pins)]
    row = int(rows[np.argmin(found.step_s[rows])])
    longer = found.step_s[row] / found.step_s[chosen.row] - 1
    plan = short(found.row(row))
    return [
        line
        + say(
            "idle-more",
            plan=plan,
            devices=int(every[row]),
            longer=longer,
        )
    ]


def bubbles(chosen) -> bool:
    """Whether more micro-batches would help: the bubble is a large share of the step."""
    return float(chosen.step.bubble / chosen.step.total) > LARGE_BUBBLE


def batches_nearby(chosen) -> Iterator[tuple[str, int, dict]]:
    """(units, batch, facts) of rounder batches near a phase's own, where devices stand idle for it
    or the bubble is large: the nearest multiples of its nodes, of the replicas that today's tp, pp
    and cp leave room for, and of a power of two."""
    plan, batch = chosen.plan, chosen.phase.global_batch
    cluster = chosen.found.situation.resolved.cluster
    replicas = cluster.devices // (plan["tp"] * plan["cp"] * plan["pp"])
    if chosen.phase.pins.get("dp") or (replicas <= plan["dp"] and not bubbles(chosen)):
        return
    nodes = cluster.devices // math.gcd(cluster.devices, cluster.devices_per_node)
    whole = "nodes" if nodes < cluster.devices else "devices"
    for id, unit, facts in (
        (
            "nodes",
            nodes,
            {
                "units": nodes,
                "what": whole,
            },
        ),
        ("replicas", replicas * plan["micro_batch"], {"units": replicas}),
        ("powers", 2 ** max(int(math.log2(batch)) - 5, 0), {}),
    ):
        near = max(round(batch / unit), 1) * unit
        if unit <= 2 * batch and near != batch:
            yield id, near, facts


def rounder(chosen) -> str:
    """The nearby batch that wastes least, with what it saves a token: by a coarse search."""

    where, batch, best = chosen.found.situation, chosen.phase.global_batch, None
    for _, near, _ in batches_nearby(chosen):
        if abs(near / batch - 1) <= 0.05:
            try:
                other = find(
                    replace(
                        where,
                        phase=replace(where.phase, global_batch=near),
                        job=replace(where.job, global_batch=float(near)),
                    ),
                    planning.offered(planning.COARSE, where.resolved.stack),
                )
            except DesignError:  # a pin that this batch has no plan for
                continue
            i = other.best()
            saved = (
                0.0 if i is None else 1 - float(other.step_s[i] / chosen.step.total) * batch / near
            )
            if saved > 0.02 and (best is None or saved > best[0]):
                best = saved, near, int(devices(other.case(i).plan))
    return (
        say(
            "rounder",
            saved=best[0],
            batch=best[1],
            devices=best[2],
        )
        if best
        else ""
    )


def accumulated(chosen) -> list[str]:
    """A line on zero2 with several micro-batches a step: how its gradients are counted, and what
    reducing them each time could add."""
    plan, m = chosen.plan, chosen.plan["grad_accum"]
    if plan["sharding"] != "zero2" or m == 1:
        return []
    grads, weights = float(chosen.case.job.grad_bytes), 2.0
    once = float(chosen.step.dp + chosen.step.axes["dp"].hidden_s) * grads / (grads + weights)
    return [
        say(
            "accumulated",
            m=m,
            more=once * (m - 1),
            step=chosen.step.total,
        )
    ]


AWAY = {
    ("host", "optimizer+params"): "weights and gradients over the host link",
    ("optimizer", "optimizer"): "the optimizer's states on the host",
    ("optimizer", "optimizer+params"): "the optimizer's states on the host",
}
USEFUL = ("gemm", "attention", "logits")
LOSSES = {
    "elementwise": "element-wise traffic",
    "recompute": "recomputation",
    "tp": "exposed tensor-parallel traffic",
    "cp": "exposed context-parallel traffic",
    "ep": "exposed expert-parallel traffic",
    "dp": "exposed data-parallel traffic",
    "pp": "stage-to-stage sends",
    "bubble": "the pipeline bubble",
    "optimizer": "the optimizer",
    "host": "launch and host time",
    "straggler": "waiting for the slowest node",
    "data": "data stalls",
}
