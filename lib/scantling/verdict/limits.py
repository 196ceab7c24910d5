"""What binds a design: constraints missed and by how much, the memory zone, idle devices, the
largest loss of the step."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import gcd, log2
from typing import NamedTuple

import numpy as np

from ..base.errors import DesignError
from ..base.show import days, percent, seconds, several, share, size
from ..catalogue.stacks import stack
from ..catalogue.words import MEMORY_PARTS, StepPart
from ..endure.reliability import GOES_ON
from ..physics.cases import devices
from ..physics.gather import Situation
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import SAFE_SHARE, ZONES, zone
from ..plans import space as planning
from ..plans.batch import WORTH_A_BATCH, suited
from ..plans.evaluate import Search, find
from ..plans.fit import host_bytes
from ..plans.ran import run_of, spread_of
from ..plans.stack_laws import runs_on
from .assessment import Assessment, Chosen
from .host_peaks import loading, saving
from .overheads import overheads
from .result import LimitKind
from .sensible import smallest
from .spot import spot, spot_line
from .texts import loss_name
from .unpublished import WORTH, offloaded, unpublished

MOST_FIXED = 4  # fields of a plan that a line names; more are said together
LARGE_BUBBLE = 0.1  # share of the step from which more micro-batches are tried
DISTURBED = 1.1  # times the undisturbed days from which a line says why
HALF = 0.5  # goodput below which failures are said to bind


class NearbyBatch(NamedTuple):
    """A rounder global batch near a phase's own, and what it is rounder in."""

    kind: str  # nodes, replicas, plan or power
    batch: int  # sequences
    units: int  # nodes, devices or replicas that can share it; 0 for a plan and a power of two
    noun: str  # what the units are


class Limit(NamedTuple):
    """A line on what binds, and what it is about."""

    kind: LimitKind
    text: str


def limits(assessment: Assessment, advice: bool = True) -> list[str]:
    """The lines of `binding`."""
    return [line.text for line in binding(assessment, advice)]


def binding(assessment: Assessment, advice: bool = True) -> list[Limit]:
    """Lines on what binds, the worst first: memory, constraints, a tight fit with what the best
    safe plan costs, idle devices, the largest loss; the refusal's arithmetic where impossible.
    `advice=False` leaves out what takes searches: the devices on which a design makes sense, and
    the batch that would use idle ones."""
    if assessment.verdict == "impossible":
        return [Limit("refusal", text) for text in assessment.refusal]
    lines = [Limit("memory", text) for text in unfit(assessment)]
    lines += [Limit("missed", text) for text in violations(assessment)]
    if not assessment.fits:
        return lines
    if advice:
        lines += [Limit("devices", text) for text in smallest(assessment)]
    lines += [Limit("devices", text) for text in idle(assessment, advice)]
    rules: tuple[tuple[LimitKind, Callable[[Assessment], Iterable[str]]], ...] = (
        ("devices", racks),
        ("devices", in_parts),
        ("failures", stopped),
        ("risks", disturbed),
        ("headroom", tight),
        ("headroom", bolder),
        ("practice", unpublished),
        ("practice", offloaded),
        ("practice", loading),
        ("practice", saving),
        ("measured", replaced),
        ("spot", on_spot),
        ("stack", which_stack),
        ("loss", largest_loss),
    )
    for kind, rule in rules:
        lines += [Limit(kind, text) for text in rule(assessment)]
    return lines


def unfit(assessment: Assessment) -> Iterator[str]:
    """Lines on a pinned plan that does not fit: its memory part by part; what it offloads."""
    host = host_bytes(assessment.resolved.cluster)
    for one in assessment.phases:
        memory = one.memory
        plan = "pinned plan" if one.phase.pins else "leanest plan of the software"
        if memory.host > host:
            yield (
                f"memory: the {plan} offloads {size(memory.host)} per device; "
                f"a device's share of host memory and NVMe is {size(host)}"
            )
        if memory.total > memory.capacity:
            parts = (f"{part} {size(vars(memory)[part])}" for part in MEMORY_PARTS)
            yield (
                f"memory: the {plan} needs {size(memory.total)} per device; "
                f"{size(memory.capacity)} are available ({' + '.join(parts)})"
            )


def violations(assessment: Assessment) -> Iterator[str]:
    """Lines on constraints that are missed, and on the other reasons of the verdict."""
    for missed in assessment.missed:
        yield missed.text
    for reason in assessment.reasons:
        yield reason.text


def stopped(assessment: Assessment) -> Iterator[str]:
    """A line on a run that failures keep from getting on."""
    if assessment.goodput < HALF:
        whole = "as one job that stops whole at every failure, the run does not get on"
        if assessment.endurance.recovery in GOES_ON:
            whole = "the run does not get on"
        yield (
            f"failures: one every {seconds(assessment.mtbf_s)} and "
            f"{seconds(assessment.endurance.recovery_s)} to recover from it leave a goodput of "
            f"{share(assessment.goodput)}: {whole}"
        )


def disturbed(assessment: Assessment) -> Iterator[str]:
    """A line on a run that is likely to take DISTURBED times as long as its steps and failures
    alone, with the largest of the risks."""
    usual, likely, promise = assessment.days, assessment.likely.days, assessment.promise
    if usual is None or likely is None or promise is None or likely < DISTURBED * usual:
        return
    most = max(promise["by"], key=lambda risk: risk["days"])
    yield (
        f"risks: {days(usual)} without them, {days(likely)} likely; the largest, {most['what']}, "
        f"adds {days(most['days'])} on average"
    )


def replaced(assessment: Assessment) -> Iterator[str]:
    """A line on measured figures, with what is computed in their place."""
    measured = assessment.resolved.measured
    chosen = assessment.chosen
    if "step_ratio" in measured:
        yield (
            f"calibrated: the step is {measured['step_ratio']:.3g} times what is computed, as it "
            "was measured on the design that this one varies; the band is that of a computed one"
        )
    elif measured:
        values = ", ".join(f"{name} {value:g}" for name, value in measured.items())
        yield (
            f"measured: {values} in the place of what is computed: {seconds(chosen.step.total)} "
            f"a step, {size(chosen.memory.total)} a device"
        )


def on_spot(assessment: Assessment) -> Iterator[str]:
    """A line on the run on devices that their owner may take back."""
    row = spot(assessment)
    if row is not None:
        yield spot_line(row)


def largest_loss(assessment: Assessment) -> Iterator[str]:
    """A line on the largest overhead of the step."""
    chosen = assessment.chosen
    part, exposed_s = overheads(assessment.step_breakdown_s)[0]
    line = (
        f"step: the largest overhead is {loss_name(part, chosen.plan['offload'])}, "
        f"{percent(exposed_s / assessment.step_s)} of {seconds(assessment.step_s)}"
    )
    batch = chosen.phase.global_batch
    have = assessment.resolved.cluster.devices
    if part == StepPart.BUBBLE and max(batch, have) % min(batch, have):
        line += f"; {batch:,} sequences do not divide over {have:,} devices"
    if part == StepPart.BUBBLE and guessed_batch(assessment):
        line += (
            f"; more micro-batches shrink it, and the global batch of "
            f"{chosen.phase.global_batch:,} was assumed"
        )
    yield line


def tight(assessment: Assessment) -> Iterator[str]:
    """A line on a fit above SAFE_SHARE of the memory: of the fullest phase, with what its fastest
    safe plan costs."""
    total = assessment.memory_bytes["total"]
    if ZONES[int(zone(total, assessment.memory_bytes["capacity"]))] != "tight":
        return
    fullest = max(assessment.phases, key=lambda one: one.memory.total)
    phase = f" in {fullest.phase.name}" if fullest.phase.name else ""
    safe = percent(SAFE_SHARE, 0)
    line = (
        f"tight: {size(total)} is {percent(assessment.memory_share, 0)} of the usable memory"
        f"{phase}; above {safe} some runs fail"
    )
    run = run_of(fullest.search.situation, fullest.case.plan)
    if run is not None:
        line += f"; a plan that needs no less has run: {run.run} ({run.source}, {run.date})"
    if fullest.fits:
        row = fullest.search.best_safe()
        if row is None:
            line += f"; none of {plans_tried(fullest)} stays below {safe}"
        else:
            other = fullest.alternative(row)
            line += f"; the fastest plan below {safe} ({other.plan}) has {other.apart}"
            by_none = fullest.search.run_by_none(np.array([row, fullest.row]))
            if other.longer < 0:
                line += f"; not chosen: {fullest.search.why_passed_over(row, fullest.row)}"
            elif by_none[0] > by_none[1]:
                line += ", and no framework with a launch kit runs it"
    yield line


def plans_tried(chosen: Chosen) -> str:
    """The plans that were compared, in words: those with the fields that the design fixes."""
    fixed = [f"{name} {value}" for name, value in chosen.phase.pins.items() if value is not None]
    count = f"the {several(chosen.search.legal, 'plan')}"
    if not fixed:
        return f"{count} that were compared"
    if len(fixed) > MOST_FIXED:
        return f"{count} that keep the fields of the plan that the design file fixes"
    return f"{count} with {', '.join(fixed)}, as the design file fixes"


def bolder(assessment: Assessment) -> Iterator[str]:
    """A line on the fastest plan that fits on paper, of equals the leanest, where the headroom that
    was kept costs WORTH of a step."""
    chosen = assessment.chosen
    search = chosen.search
    allowed = search.situation.resolved.max_oom_probability
    rows = np.flatnonzero(search.fits & search.practised)
    if not chosen.fits or chosen.oom_probability > allowed or not len(rows):
        return
    row = int(rows[np.lexsort((search.total_bytes[rows], search.step_s[rows].round(9)))[0]])
    gain = 1 - search.step_s[row] / chosen.step.total
    if gain >= WORTH:
        spread = spread_of(search.situation, search.case(row).plan)
        chance = oom_probability(search.total_bytes[row], search.capacity, spread)
        yield (
            f"headroom: {chosen.alternative(row).plan} takes {percent(gain, 0)} less time a step, "
            f"with a chance of {percent(float(chance), 0)} of going out of memory, above the "
            f"{percent(allowed, 0)} that constraints.max_oom_probability allows"
        )


def guessed_batch(assessment: Assessment) -> bool:
    """Whether the global batch was left open and filled in by a rule."""
    return any(a.field.endswith(".global_batch") for a in assessment.resolved.assumed)


def idle(assessment: Assessment, advice: bool = True) -> Iterator[str]:
    """A line on devices that stand idle: how many the plan uses, and what using the most that any
    plan can would cost."""
    chosen = assessment.chosen
    search = chosen.search
    used = devices(chosen.case.plan)
    have = assessment.resolved.cluster.devices
    if used >= have or not chosen.fits:
        return
    line = f"idle: the plan uses {used:,.0f} of {have:,} devices, and the others are paid for"
    if advice:
        line += rounder(chosen)
    line += f"; dp x micro-batch has to divide the batch of {chosen.phase.global_batch:,}"
    by_plan = np.asarray(devices(search.plan))
    row = search.fastest(search.practised & (by_plan > used))
    if row is None:
        yield f"{line}; of {plans_tried(chosen)} none that fits uses more"
    else:
        other = chosen.alternative(row)
        line += f"; the fastest plan on more ({by_plan[row]:,.0f}: {other.plan}) has {other.apart}"
        if other.longer < 0:
            line += f"; not chosen: {search.why_passed_over(row, chosen.row)}"
        yield line


def racks(assessment: Assessment) -> Iterator[str]:
    """A line where the devices are no whole racks of what is bought or rented by the rack: as 64 of
    each 72, with the trays that stay spare, or the whole racks above."""
    cluster = assessment.resolved.cluster
    rack = cluster.unit
    node = cluster.devices_per_node
    have = cluster.devices
    if rack <= node or have % rack == 0:
        return
    used = cluster.at_work
    if used == rack:
        whole = -(-have // rack)
        yield (
            f"racks: {have:,} devices are {have / rack:.1f} racks of {rack}, which are bought and "
            f"rented whole: {whole:,} racks are {whole * rack:,}"
        )
    else:
        yield (
            f"racks: {have // used:,} racks of {rack}, {used} of each at work and "
            f"{(rack - used) // node} trays of {node} spare"
        )


def in_parts(assessment: Assessment) -> Iterator[str]:
    """A line where the machine comes in parts: what days and dollars are those of."""
    cluster = assessment.resolved.cluster
    waits = cluster.handed_over_in_days
    if waits and assessment.days is not None:
        first = cluster.delivery[0]
        yield (
            f"delivery: {first.devices:,} of {cluster.devices:,} devices come first, the last "
            f"{days(waits)} after them; days, dollars and deadline are those of the whole machine, "
            "and the site's calendar counts from the first part"
        )


def bubbles(chosen: Chosen) -> bool:
    """Whether more micro-batches would help: the bubble is a large share of the step."""
    return bool(chosen.step.bubble / chosen.step.total > LARGE_BUBBLE)


def batches_nearby(chosen: Chosen) -> Iterator[NearbyBatch]:
    """Rounder batches near a phase's own, where devices stand idle for it or the bubble is large:
    the nearest multiples of its nodes and of the replicas that today's tp, pp and cp leave room
    for, the one that suits its plans best, the nearest power of two."""
    plan = chosen.plan
    batch = chosen.phase.global_batch
    cluster = chosen.search.situation.resolved.cluster
    have = cluster.devices
    replicas = have // (plan["tp"] * plan["cp"] * plan["pp"])
    if chosen.phase.pins.get("dp") or (replicas <= plan["dp"] and not bubbles(chosen)):
        return
    nodes = have // gcd(have, cluster.devices_per_node)
    resolved = chosen.search.situation.resolved
    best = suited(resolved.design.of_a_step(), resolved.stack)[resolved.phases.index(chosen.phase)]
    for kind, multiple, units, noun in (
        ("nodes", nodes, nodes, "nodes" if nodes < have else "devices"),
        ("replicas", replicas * plan["micro_batch"], replicas, "replicas"),
        ("plan", best, 0, ""),
        ("power", 2 ** round(log2(batch)), 0, ""),
    ):
        near = max(round(batch / multiple), 1) * multiple
        if multiple <= 2 * batch and near != batch:
            yield NearbyBatch(kind, near, units, noun)


def rounder(chosen: Chosen) -> str:
    """The nearby batch that wastes least, with what it saves a token: by a coarse search."""
    situation = chosen.search.situation
    batch = chosen.phase.global_batch
    have = situation.resolved.cluster.devices
    near_enough = 0.05 if devices(chosen.case.plan) > 0.95 * have else 0.5
    best_saving, at_work, best_batch = 0.0, 0.0, batch
    near = [n.batch for n in batches_nearby(chosen) if abs(n.batch / batch - 1) <= near_enough]
    before = _coarsely(situation) if near else None
    if before is not None:
        for other in dict.fromkeys(near):
            option = _with_batch(before, other)
            if option is not None:
                best_saving, at_work, best_batch = max((best_saving, at_work, best_batch), option)
    if best_saving <= WORTH_A_BATCH:
        return ""
    return (
        f"; a batch of {best_batch:,} would keep {at_work:,.0f} at work and take "
        f"{percent(best_saving, 0)} less time a token"
    )


def _coarsely(situation: Situation) -> Search | None:
    """The coarse search of a situation; None where a pin has no plan or none fits."""
    with suppress(DesignError):
        search = find(situation, planning.offered(planning.COARSE, situation.resolved))
        return search if search.best() is not None else None
    return None


def _with_batch(before: Search, batch: int) -> tuple[float, float, int] | None:
    """(share of a token's time that it saves in whole per cent, devices at work, batch) of the best
    plan with another global batch, by a coarse search as `before` is one; None where no plan
    fits."""
    situation = before.situation
    search = _coarsely(situation.with_batch(batch))
    row, now = (None if one is None else one.best() for one in (search, before))
    if search is None or row is None or now is None:
        return None
    longer = search.step_s[row] / before.step_s[now]
    saving = 1 - longer * situation.phase.global_batch / batch
    return round(float(saving), 2), float(devices(search.case(row).plan)), batch


def which_stack(assessment: Assessment) -> Iterator[str]:
    """A line on the stacks that would take the plan of a design that names none, and on one whose
    name people give to its successor today."""
    name = assessment.resolved.stack
    if name:
        named = stack(name)
        if named.succeeded_by:
            yield f"stack: {name} is {named.title}; today's is {named.succeeded_by}"
        return
    chosen = assessment.chosen
    able = [one.title for one in runs_on(chosen.case.plan, chosen.search.situation)]
    if able:
        yield f"stack: none is named; {', '.join(able)} would run this plan"
    else:
        yield (
            "stack: none is named, and no framework with a launch kit here runs this plan as it "
            "is; name a stack, and the search keeps to what it offers"
        )
