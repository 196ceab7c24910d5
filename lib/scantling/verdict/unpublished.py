"""What nobody has published: plans of a kind, a size or a promise beyond every known run, and state
that goes to NVMe; each widens the band."""

from collections.abc import Iterator

import numpy as np

from ..catalogue.published import ROOM, best_published, beyond
from ..catalogue.words import CP_TYPES
from ..physics.cases import devices
from ..physics.step import rates, step_time
from ..plans import laws
from ..plans.evaluate import skipped
from ..plans.fit import disk_bytes_per_s, on_disk
from ..plans.words import short
from .words import say

WORTH = 0.05  # share of a step from which an exchange that was not taken is named


def record_of(chosen):
    """The best published MFU of the device, precision and kind of model of a phase; None where
    there is none."""
    r = chosen.found.situation.resolved
    return best_published(
        r.cluster.accelerator.id, chosen.phase.precision, r.model.is_moe, chosen.phase.seq_len
    )


def _of_record(chosen) -> tuple:
    """(the best published run, how many times its MFU the plan comes to); (None, 0) where there is
    none."""
    record = record_of(chosen)
    mfu = rates(chosen.case, chosen.step.total)[2]
    return (record, mfu / record.mfu) if record else (None, 0.0)


def untried(chosen) -> bool:
    """True where the plan is of a kind or a size that nobody has published, or its MFU well above
    any published one: the band is wider."""
    return chosen.fits and bool(
        not chosen.found.practised[chosen.row]
        or to_disk(chosen) > 0
        or beyond(chosen.plan, int(devices(chosen.case.plan)))
        or _of_record(chosen)[1] > ROOM
    )


def unpublished(assessment) -> Iterator[str]:
    """Lines on plans of a kind that nobody has published: the chosen one, or one that would beat it
    on paper."""
    chosen = assessment.chosen
    if not chosen.fits:
        return
    found = chosen.found
    plan = chosen.plan
    wider = say("wider")
    record, times = _of_record(chosen)
    if times > 1:
        line = say("beyond-record", mfu=times * record.mfu, record=record)
        yield line + wider if times > ROOM else line
    for line in beyond(plan, int(devices(chosen.case.plan))):
        yield say("beyond", line=line) + wider
    domain = found.situation.link.domain
    if plan["tp"] > domain:
        yield say("tp-across", tp=plan["tp"], domain=domain)
        return
    yield from exchanged(chosen)
    better = skipped(found)
    if better is not None:
        yield say("skipped", plan=short(found.row(better[0])), gain=1 - better[1])


def exchanges(chosen) -> dict[str, float]:
    """Step time over today's of the same plan with other exchanges of keys and values that its
    heads allow, by cp_type; of plans with cp above 1."""
    model = chosen.found.situation.resolved.model
    p = chosen.plan
    if p["cp"] == 1:
        return {}
    others = [
        i
        for i, name in enumerate(CP_TYPES)
        if name != p["cp_type"]
        and all(law.kept(model, None, None, **p | {"cp_type": i}) for law in laws.of("exchange"))
    ]
    times = step_time(chosen.case.with_plan(cp_type=np.array(others, int))).total
    return {CP_TYPES[i]: t for i, t in zip(others, times / chosen.step.total)}


def exchanged(chosen) -> Iterator[str]:
    """A line where another exchange of keys and values would be WORTH faster, and neither the
    design nor its stack has settled it."""
    ways = exchanges(chosen)
    if not ways or chosen.phase.pins.get("cp_type") or chosen.found.situation.stack.cp_type:
        return
    name = min(ways, key=ways.get)
    if ways[name] <= 1 - WORTH:
        yield say("exchange", name=name, now=chosen.plan["cp_type"], gain=1 - ways[name])


def to_disk(chosen) -> float:
    """State of a device that its share of the host's memory does not hold. [bytes]"""
    return on_disk(chosen.found.situation.resolved.cluster, chosen.memory)


def gone(chosen) -> str:
    """Where the state that leaves a device goes, in words."""
    return say("gone", size=chosen.memory.host) + (say("gone-disk") if to_disk(chosen) else "")


def offloaded(assessment) -> Iterator[str]:
    """A line on state that leaves the device: how much, and where it goes."""
    rate = disk_bytes_per_s(assessment.resolved.cluster)
    for one in assessment.phases:
        size = one.memory.host
        disk = to_disk(one)
        if one.fits and size > 0:
            without = _kept_on_device(one)
            why = "" if without or one.phase.pins.get("offload") else say("offload-why")
            where = "offload-disk" if disk else "offload-host"
            yield (
                say("offload", size=size, why=why)
                + say(where, kept=size - disk, disk=disk, rate=rate)
                + without
            )


def _kept_on_device(one) -> str:
    """What the fastest plan with as much headroom takes that keeps all state on the device."""
    found = one.found
    row = found.fastest((found.column("offload") == 0) & found.practised)
    if row is None or not found.roomy[row]:
        return ""
    return say("offload-without", **one.beside(row))
