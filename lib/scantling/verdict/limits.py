"""What binds a design: constraints missed and by how much, the memory zone, idle devices, the
largest loss of the step."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import gcd, log2

import numpy as np

from ..base.errors import DesignError
from ..base.words import table
from ..physics.cases import devices
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import SAFE_SHARE, ZONES, zone
from ..plans import space as planning
from ..plans.evaluate import find, spread_of
from ..plans.fit import host_bytes
from .numbers import MEMORY_PARTS
from .record import Assessment
from .sensible import smallest
from .unpublished import WORTH, offloaded, unpublished
from .words import say

LARGE_BUBBLE = 0.1  # share of the step from which more micro-batches are tried
HALF = 0.5  # goodput below which failures are said to bind
WORTH_A_BATCH = 0.02  # of the time of a token, from which a rounder batch is named


def limits(assessment: Assessment, advice: bool = True) -> list:
    """Lines on what binds, the worst first: memory, constraints, a tight fit with what the best
    safe plan costs, idle devices, the largest loss; the refusal's arithmetic where impossible.
    `advice=False` leaves out what takes searches: the devices on which a design makes sense, and
    the batch that would use idle ones."""
    if assessment.verdict == "impossible":
        return list(assessment.refusal)
    rules = RULES if assessment.fits else (unfit, judged)
    more = {} if advice else dict.fromkeys((smallest, idle), {"advice": False})
    return [line for rule in rules for line in rule(assessment, **more.get(rule, {}))]


def unfit(assessment: Assessment) -> Iterator:
    """Lines on a pinned plan that does not fit: its memory part by part; what it offloads."""
    host = host_bytes(assessment.resolved.cluster)
    for one in assessment.phases:
        plan = "pinned plan" if one.phase.pins else "leanest plan of the software"
        if one.memory.host > host:
            yield say("unfit-host", plan=plan, m=one.memory, host=host)
        if one.memory.total > one.memory.capacity:
            parts = (say("piece", name=k, size=getattr(one.memory, k)) for k in MEMORY_PARTS)
            yield say("unfit", plan=plan, m=one.memory, parts=" + ".join(parts))


def judged(assessment: Assessment) -> Iterator:
    """Lines on constraints that are missed, and on the other reasons of the verdict."""
    return (found.text for found in (*assessment.missed, *assessment.reasons))


def stopped(assessment: Assessment) -> Iterator:
    """A line on a run that failures keep from getting on."""
    if assessment.goodput < HALF:
        yield say("stopped", a=assessment)


def replaced(assessment: Assessment) -> Iterator:
    """A line on measured figures, with what is computed in their place."""
    measured = assessment.resolved.measured
    if "step_ratio" in measured:
        yield say("calibrated", ratio=measured["step_ratio"])
    elif measured:
        yield say(
            "replaced",
            said=", ".join(f"{k} {v:g}" for k, v in measured.items()),
            chosen=assessment.chosen,
        )


def largest_loss(assessment: Assessment) -> Iterator:
    """A line on the part of the step that goes to anything but the model's own arithmetic."""
    parts = assessment.step_breakdown_s
    chosen = assessment.chosen
    loss = max(parts.keys() - USEFUL, key=parts.get)
    line = say(
        "loss",
        name=LOSSES.get(f"{loss} {chosen.plan['offload']}", LOSSES[loss]),
        share=parts[loss] / assessment.step_s,
        step_s=assessment.step_s,
    )
    if loss == "bubble" and guessed_batch(assessment):
        line += say("loss-bubble", batch=chosen.phase.global_batch)
    yield line


def tight(assessment: Assessment) -> Iterator:
    """A line on a fit above SAFE_SHARE of the memory: of the fullest phase, with what its fastest
    safe plan costs."""
    fullest = max(assessment.phases, key=lambda c: c.memory.total)
    name = fullest.phase.name
    held = assessment.memory_bytes
    if ZONES[zone(held["total"], held["capacity"])] != "tight":
        return
    line = say("tight", a=assessment, phase=f" in {name}" if name else "", safe=SAFE_SHARE)
    if fullest.fits:
        safe = fullest.found.best_safe()
        line += (
            say("tight-none", pins=under_pins(fullest))
            if safe is None
            else say("tight-safe", safe=SAFE_SHARE, **fullest.beside(safe))
        )
    yield line


def under_pins(chosen) -> str:
    """Words for what holds only as long as the pinned fields stay."""
    return " under the pins" if chosen.phase.pins else ""


def bolder(assessment: Assessment) -> Iterator:
    """A line on the fastest plan that fits on paper, of equals the leanest, where the headroom that
    was kept costs WORTH of a step."""
    chosen = assessment.chosen
    found = chosen.found
    allowed = found.situation.resolved.max_oom_probability
    rows = np.flatnonzero(found.fits & found.practised)
    if not chosen.fits or chosen.oom_probability > allowed or not len(rows):
        return
    row = rows[np.lexsort((found.total_bytes[rows], found.step_s[rows].round(9)))[0]]
    gain = 1 - found.step_s[row] / chosen.step.total
    if gain >= WORTH:
        yield say(
            "bolder",
            **chosen.beside(row),
            gain=gain,
            chance=oom_probability(
                found.total_bytes[row], found.capacity, spread_of(found.situation)
            ),
        )


def guessed_batch(assessment) -> bool:
    """Whether the global batch was left open and filled in by a rule."""
    return any(a.field.endswith(".global_batch") for a in assessment.resolved.assumed)


def idle(assessment: Assessment, advice: bool = True) -> Iterator:
    """A line on devices that stand idle: how many the plan uses, and what using the most that any
    plan can would cost."""
    chosen = assessment.chosen
    found = chosen.found
    used = devices(chosen.case.plan)
    have = assessment.resolved.cluster.devices
    if used >= have or not chosen.fits:
        return
    every = devices(found.plan)
    row = found.fastest(found.practised & (every > used))
    line = say("idle", used=used, have=have, phase=chosen.phase)
    if advice:
        line += rounder(chosen)
    if row is None:
        yield line + say("idle-none", pins=under_pins(chosen))
    else:
        yield line + say("idle-more", **chosen.beside(row), devices=every[row])


def racks(assessment: Assessment) -> Iterator:
    """A line where the devices are no whole racks of what is bought or rented by the rack: as 64 of
    each 72, with the trays that stay spare, or the whole racks above."""
    cluster = assessment.resolved.cluster
    rack = cluster.unit
    node = cluster.devices_per_node
    have = cluster.devices
    if rack <= node or have % rack == 0:
        return
    used = 2 ** int(log2(rack))
    whole = -(-have // rack)
    yield (
        say("racks", cluster=cluster, share=have / rack, whole=whole, all=whole * rack)
        if have % used
        else say(
            "racks-round",
            racks=have // used,
            used=used,
            trays=(rack - used) // node,
            cluster=cluster,
        )
    )


def bubbles(chosen) -> bool:
    """Whether more micro-batches would help: the bubble is a large share of the step."""
    return chosen.step.bubble / chosen.step.total > LARGE_BUBBLE


def batches_nearby(chosen) -> Iterator:
    """(units, batch, facts) of rounder batches near a phase's own, where devices stand idle for it
    or the bubble is large: the nearest multiples of its nodes, of the replicas that today's tp, pp
    and cp leave room for, and of a power of two."""
    plan = chosen.plan
    batch = chosen.phase.global_batch
    cluster = chosen.found.situation.resolved.cluster
    have = cluster.devices
    replicas = have // (plan["tp"] * plan["cp"] * plan["pp"])
    if chosen.phase.pins.get("dp") or (replicas <= plan["dp"] and not bubbles(chosen)):
        return
    nodes = have // gcd(have, cluster.devices_per_node)
    what = {"units": nodes, "what": "nodes" if nodes < have else "devices"}
    for id, unit, facts in (
        ("nodes", nodes, what),
        ("replicas", replicas * plan["micro_batch"], {"units": replicas}),
        ("powers", 2 ** max(int(log2(batch)) - 5, 0), {}),
        ("power", 2 ** round(log2(batch)), {}),
    ):
        near = max(round(batch / unit), 1) * unit
        if unit <= 2 * batch and near != batch:
            yield id, near, facts


def rounder(chosen) -> str:
    """The nearby batch that wastes least, with what it saves a token: by a coarse search."""
    where = chosen.found.situation
    batch = chosen.phase.global_batch
    coarse = planning.offered(planning.COARSE, where.resolved)
    have = where.resolved.cluster.devices
    options = []
    near_enough = 0.05 if devices(chosen.case.plan) > 0.95 * have else 0.5
    for _, near, _ in batches_nearby(chosen):
        if abs(near / batch - 1) > near_enough:
            continue
        with suppress(DesignError):  # a pin that this batch has no plan for
            other = find(
                replace(
                    where,
                    phase=replace(where.phase, global_batch=near),
                    job=replace(where.job, global_batch=float(near)),
                ),
                coarse,
            )
            i = other.best()
            if i is not None:
                saved = 1 - other.step_s[i] / chosen.step.total * batch / near
                options.append((saved, near, devices(other.case(i).plan)))
    saved, near, used = max(options, default=(0.0, batch, 0.0))
    if saved <= WORTH_A_BATCH:
        return ""
    return say("rounder", saved=saved, batch=near, devices=used)


def accumulated(assessment: Assessment) -> Iterator:
    """A line on zero2 with several micro-batches a step: how its gradients are counted, and what
    reducing them each time could add."""
    chosen = assessment.chosen
    m = chosen.plan["grad_accum"]
    step = chosen.step
    if chosen.plan["sharding"] == "zero2" and m > 1:
        grads = chosen.case.job.grad_bytes
        once = (step.dp + step.axes["dp"].hidden_s) * grads / (grads + 2.0)
        yield say("accumulated", m=m, more=once * (m - 1), step=step)


RULES = (
    unfit,
    judged,
    smallest,
    idle,
    racks,
    stopped,
    tight,
    bolder,
    unpublished,
    accumulated,
    offloaded,
    replaced,
    largest_loss,
)

USEFUL = ("gemm", "attention", "logits")
LOSSES = table(__file__, "losses")
