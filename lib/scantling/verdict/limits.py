"""What binds a design: constraints missed and by how much, the memory zone, idle devices, the
largest loss of the step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..base.errors import DesignError
from ..base.quantities.table import show
from ..base.show import percent
from ..physics.cases import devices
from ..physics.memory.peak import SAFE_SHARE, ZONES, zone
from ..plans import space as planning
from ..plans.run import find
from ..plans.words import short
from .numbers import MEMORY_PARTS
from .record import Assessment, Chosen
from .unpublished import offloaded, unpublished

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
    m = one.memory
    parts = " + ".join(
        f"{k} {show('memory_bytes.total', float(getattr(m, k)))}" for k in MEMORY_PARTS
    )
    return (
        f"memory: the pinned plan needs {show('memory_bytes.total', float(m.total))} of "
        f"{show('memory_bytes.capacity', float(m.capacity))} per device ({parts})"
    )


def stopped(assessment: Assessment) -> list[str]:
    """A line on a run that failures keep from getting on."""
    if assessment.goodput >= HALF:
        return []
    recovery = show("endurance.recovery_s", float(assessment.endurance.recovery_s))
    return [
        f"failures: one every {show('mtbf_s', assessment.mtbf_s)} and {recovery} to recover from "
        f"it leave a goodput of {show('goodput', assessment.goodput)}: as one job that restarts "
        f"whole, the run does not get on"
    ]


def replaced(assessment: Assessment) -> list[str]:
    """A line on measured figures, with what is computed in their place."""
    measured, chosen = assessment.resolved.measured, assessment.chosen
    if not measured:
        return []
    said = ", ".join(f"{k} {v:g}" for k, v in measured.items())
    return [
        f"measured: {said} in the place of what is computed: "
        f"{show('step_s', float(chosen.step.total))} a step, "
        f"{show('memory_bytes.total', float(chosen.memory.total))} a device"
    ]


def largest_loss(assessment: Assessment) -> str:
    """A line on the part of the step that goes to anything but the model's own arithmetic."""
    parts, chosen = assessment.step_breakdown_s, assessment.chosen
    loss = max((k for k in parts if k not in USEFUL), key=lambda k: parts[k])
    name = AWAY.get((loss, chosen.plan["offload"]), LOSSES.get(loss, loss))
    line = (
        f"step: beside the model's own arithmetic the most goes to {name}, "
        f"{percent(parts[loss] / assessment.step_s)} of {show('step_s', assessment.step_s)}"
    )
    if loss != "bubble" or not guessed(assessment, "global_batch"):
        return line
    return line + (
        f"; more micro-batches shrink it, and the global batch of "
        f"{chosen.phase.global_batch:,} was assumed"
    )


def tight(assessment) -> list[str]:
    """A line on a fit above SAFE_SHARE of the memory: of the fullest phase, with what its fastest
    safe plan costs."""
    memory, fullest = (
        assessment.memory_bytes,
        max(assessment.phases, key=lambda c: float(c.memory.total)),
    )
    share, found = memory["total"] / memory["capacity"], fullest.found
    if ZONES[zone(memory["total"], memory["capacity"])] != "tight":
        return []
    phase = f" in {fullest.phase.name}" if len(assessment.phases) > 1 and fullest.phase.name else ""
    line = (
        f"tight: {show('memory_bytes.total', memory['total'])} is {percent(share, 0)} of the "
        f"usable memory{phase}; above {percent(SAFE_SHARE, 0)} some runs fail"
    )
    if not fullest.fits:
        return [line]
    safe = found.best_safe()
    if safe is None:
        return [line + "; no plan of the space stays below it"]
    return [
        line
        + (
            f"; the fastest plan below {percent(SAFE_SHARE, 0)} ({short(found.row(safe))}) takes "
            f"{percent(found.step_s[safe] / found.step_s[fullest.row] - 1)} longer a step"
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
    line = (
        f"idle: the plan uses {used:,} of {have:,} devices; dp x micro-batch has to divide "
        f"the global batch of {batch:,}"
    )
    line += rounder(chosen)
    if not len(rows):
        return [
            line
            + "; no plan that fits uses more"
            + ("" if not chosen.found.situation.phase.pins else " under the pins")
        ]
    row = rows[np.argmin(found.step_s[rows])]
    return [
        line
        + (
            f"; the fastest plan that uses more ({short(found.row(int(row)))}: "
            f"{int(every[row]):,} devices) takes "
            f"{percent(found.step_s[row] / found.step_s[chosen.row] - 1)} longer a step"
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
        ("nodes", nodes, {"units": nodes, "what": whole}),
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
        (
            f"; a batch of {best[1]:,} would keep {best[2]:,} at work and take "
            f"{percent(best[0], 0)} less time a token"
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
        f"sharding: zero2 over {m} micro-batches is counted with sharded gradients "
        f"reduced once a step, as for Llama 3; a framework that reduces after every "
        f"micro-batch adds up to "
        f"{show('step_s', once * (m - 1))} of traffic to a step of "
        f"{show('step_s', float(chosen.step.total))}, one that keeps them whole until "
        f"the last needs zero1's memory"
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
