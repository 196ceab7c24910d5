"""What nobody has published: plans of a kind, a size or a promise beyond every known run, and state
that goes to NVMe; each widens the band."""

from collections.abc import Iterator

import numpy as np

from ..base.show import bytes_per_s, percent, size
from ..catalogue.published import ROOM, Best, best_published, beyond
from ..catalogue.words import CP_TYPES, Sharding
from ..physics.cases import devices
from ..physics.step import rates, step_time
from ..plans.evaluate import skipped
from ..plans.fit import HOST_SHARE, disk_bytes_per_s, host_of, on_disk
from ..plans.laws import exchange_splits_heads
from ..plans.plan_names import short
from ..plans.space import SHORT_CHUNK
from .assessment import Assessment, Chosen

WORTH = 0.05  # share of a step from which an exchange that was not taken is named
WIDER = "; the band is wider for it"


def record_of(chosen: Chosen) -> Best | None:
    """The best published MFU of the device, precision and kind of model of a phase; None where
    there is none."""
    resolved = chosen.search.situation.resolved
    return best_published(
        resolved.cluster.accelerator.id,
        chosen.phase.precision,
        resolved.model.is_moe,
        chosen.phase.seq_len,
    )


def _over_record(chosen: Chosen, record: Best) -> float:
    """How many times the MFU of a record the plan comes to."""
    return float(rates(chosen.case, chosen.step.total).mfu / record.mfu)


def untried(chosen: Chosen) -> bool:
    """True where the plan is of a kind or a size that nobody has published, or its MFU well above
    any published one: the band is wider."""
    if not chosen.fits:
        return False
    if not chosen.search.practised[chosen.row] or to_disk(chosen) > 0:
        return True
    if beyond(chosen.plan, int(devices(chosen.case.plan))):
        return True
    record = record_of(chosen)
    return record is not None and _over_record(chosen, record) > ROOM


def unpublished(assessment: Assessment) -> Iterator[str]:
    """Lines on plans of a kind that nobody has published: the chosen one, or one that would beat it
    on paper."""
    chosen = assessment.chosen
    if not chosen.fits:
        return
    search = chosen.search
    plan = chosen.plan
    record = record_of(chosen)
    if record is not None:
        yield from _beyond_record(chosen, record)
    for line in beyond(plan, int(devices(chosen.case.plan))):
        yield f"untried: {line}{WIDER}"
    domain = search.situation.link.domain
    if plan["tp"] > domain:
        yield (
            f"untried: tp {plan['tp']} crosses the scale-up domain of {domain:.0f}; no large run "
            "has been published with such a plan, and the band is wider for it"
        )
        return
    tokens = chosen.phase.seq_len // plan["cp"]
    if plan["cp"] > 1 and tokens < SHORT_CHUNK:
        yield (
            f"untried: cp {plan['cp']} leaves a rank {tokens:,} tokens of a sequence; no run has "
            f"been published with fewer than {SHORT_CHUNK}, and the band is wider for it"
        )
        return
    yield from exchanged(chosen)
    better = skipped(search)
    if better is not None:
        row, ratio = better
        yield (
            f"untried: {short(search.row(row))} is {percent(1 - ratio)} faster on paper; no large "
            "run has been published with tp above the scale-up domain, so it is not chosen"
        )


def _beyond_record(chosen: Chosen, record: Best) -> Iterator[str]:
    """A line on a plan whose MFU would be more than anybody has published."""
    times = _over_record(chosen, record)
    if times > 1:
        line = (
            f"untried: MFU {percent(times * record.mfu)} (attention in full) would be more than "
            "anybody has published for this device, precision and kind of model: "
            f"{percent(record.mfu)} ({record.run}; {record.source})"
        )
        yield line + WIDER if times > ROOM else line


def exchanges(chosen: Chosen) -> dict[str, float]:
    """Step time over today's of the same plan with other exchanges of keys and values that its
    heads allow, by cp_type; of plans with cp above 1."""
    model = chosen.search.situation.resolved.model
    plan = chosen.plan
    if plan["cp"] == 1:
        return {}
    kv_heads = model.heads if model.attention == "mla" else model.kv_heads
    others = [
        code
        for code, name in enumerate(CP_TYPES)
        if name != plan["cp_type"]
        and exchange_splits_heads(model.heads, kv_heads, tp=plan["tp"], cp=plan["cp"], cp_type=code)
    ]
    times = step_time(chosen.case.with_plan(cp_type=np.array(others, int))).total
    ratios = np.asarray(times / chosen.step.total).tolist()
    return {CP_TYPES[code]: ratio for code, ratio in zip(others, ratios)}


def exchanged(chosen: Chosen) -> Iterator[str]:
    """A line where another exchange of keys and values would be WORTH faster, and neither the
    design nor its stack has settled it."""
    ways = exchanges(chosen)
    if not ways or chosen.phase.pins.get("cp_type") or chosen.search.situation.stack.cp_type:
        return
    name, ratio = min(ways.items(), key=lambda way: way[1])
    if ratio <= 1 - WORTH:
        yield (
            f"untried: cp_type {name} instead of {chosen.plan['cp_type']} is {percent(1 - ratio)} "
            "faster on paper; little is published of it, so it is taken only where it is pinned"
        )


def to_disk(chosen: Chosen) -> float:
    """State of a device that its share of the host's memory does not hold. [bytes]"""
    cluster = chosen.search.situation.resolved.cluster
    return float(on_disk(host_of(cluster), chosen.memory))


def host_state(chosen: Chosen) -> str:
    """Where the state that leaves a device goes, in words."""
    text = f"with {size(chosen.memory.host)} of state a device in host memory"
    return f"{text} and on NVMe" if to_disk(chosen) else text


def offloaded(assessment: Assessment) -> Iterator[str]:
    """A line on state that leaves the device: how much, and where it goes."""
    rate = disk_bytes_per_s(assessment.resolved.cluster)
    for one in assessment.phases:
        waiting = float(one.memory.away)
        if one.fits and waiting > 0:
            yield _activations_away(one, waiting)
        state = float(one.memory.host) - waiting
        if not one.fits or state <= 1.0:
            continue
        disk = to_disk(one)
        without = _all_on_device(one)
        why = ", since no plan that keeps it there has the headroom"
        if without or one.phase.pins.get("offload"):
            why = ""
        place = f"host memory holds all of it{_buffers_beside(one, state)}"
        if disk:
            place = (
                f"host memory holds {size(state - disk)} of it, the other {size(disk)} go to "
                f"NVMe, counted at {bytes_per_s(rate)} a device{WIDER}"
            )
        yield f"offload: {size(state)} of state per device is offloaded{why}; {place}{without}"


def _buffers_beside(chosen: Chosen, state: float) -> str:
    """A word where the buffers that a stack's own estimate adds to the state of ZeRO-3 would not
    fit beside it. Published runs need both: 17.6 bytes a parameter while training, 23 to 25 with
    loading and saving, where 18 are state."""
    host = host_of(chosen.search.situation.resolved.cluster)
    estimate = state * float(chosen.case.constants.memory.host_factor)
    there = host.memory_bytes / HOST_SHARE
    if chosen.plan["sharding"] != Sharding.ZERO3 or estimate <= there:
        return ""
    return (
        f"; with the buffers of loading and saving it may take {size(estimate)} (the stack's own "
        f"estimate), more than the {size(there)} that a device has there"
    )


def _activations_away(chosen: Chosen, waiting: float) -> str:
    """What of the activations waits in host memory, and what its way costs."""
    phase = chosen.phase
    what = ", ".join(phase.offloaded_modules) or "all that is kept"
    return (
        f"activations: {size(waiting)} a device wait in host memory ({what}, of "
        f"{phase.offloaded_layers:.0f} layers), on a link of "
        f"{bytes_per_s(float(chosen.case.chip.host_bytes_per_s))} each way; what compute does not "
        "cover of their way stands under host and launches"
    )


def _all_on_device(chosen: Chosen) -> str:
    """What the fastest plan with as much headroom takes that keeps all state on the device."""
    search = chosen.search
    row = search.fastest((search.column("offload") == 0) & search.practised)
    if row is None or not search.roomy[row]:
        return ""
    other = chosen.alternative(row)
    return (
        f"; {other.plan}, with all of it on the device, has as much headroom and {other.apart} "
        "(plan.offload none takes it)"
    )
