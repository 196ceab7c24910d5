"""What nobody has published: plans of a kind, a size or a promise beyond every known run, and state
that goes to NVMe; each widens the band."""

from __future__ import annotations

from ..base.quantities.table import show
from ..base.show import percent, shown
from ..catalogue.published import ROOM, best_published, beyond
from ..catalogue.words import CP_TYPES
from ..physics.cases import devices
from ..physics.step import rates, step_time
from ..plans import laws
from ..plans.fit import disk_bytes_per_s, on_disk
from ..plans.run import skipped
from ..plans.words import short

WORTH = 0.05  # share of a step from which an exchange that was not taken is named


def record_of(chosen):
    """The best published MFU of the device, precision and kind of model of a phase; None where
    there is none."""
    r = chosen.found.situation.resolved
    return best_published(
        r.cluster.accelerator.id, chosen.phase.precision, r.model.is_moe, chosen.phase.seq_len
    )


def untried(chosen) -> bool:
    """True where the plan is of a kind or a size that nobody has published, or its MFU well above
    any published one: the band is wider."""
    if not chosen.fits:
        return False
    record = record_of(chosen)
    return (
        not chosen.found.practised[chosen.row]
        or to_disk(chosen) > 0
        or bool(beyond(chosen.plan, int(devices(chosen.case.plan))))
        or (
            record is not None
            and float(rates(chosen.case, chosen.step.total)[2]) > ROOM * record.mfu
        )
    )


def unpublished(chosen) -> list[str]:
    """Lines on plans of a kind that nobody has published: the chosen one, or one that would beat it
    on paper."""
    found, out = chosen.found, []
    if not chosen.fits:
        return []
    record, mfu = record_of(chosen), float(rates(chosen.case, chosen.step.total)[2])
    if record is not None and mfu > record.mfu:
        out.append(
            (
                f"untried: {percent(mfu)} of the peak would be more than anybody has "
                f"published for this device, precision and kind of model: "
                f"{percent(record.mfu)} ({record.run}; {record.source})"
            )
            + ("; the band is wider for it" if mfu > ROOM * record.mfu else "")
        )
    out += [
        f"untried: {line}; the band is wider for it"
        for line in beyond(chosen.plan, int(devices(chosen.case.plan)))
    ]
    if not found.practised[chosen.row]:
        return [
            *out,
            (
                f"untried: tp {chosen.plan['tp']} crosses the scale-up domain of "
                f"{int(found.situation.link.domain)}; no large run has been published with "
                f"such a plan, and the band is wider for it"
            ),
        ]
    out += exchanged(chosen)
    better = skipped(found)
    if better is None:
        return out
    row, ratio = better
    return [
        *out,
        (
            f"untried: {short(found.row(row))} is {percent(1 - ratio)} faster on paper; no "
            f"large run has been published with tp above the scale-up domain, so it is not "
            f"chosen"
        ),
    ]


def exchanges(chosen) -> dict[str, float]:
    """Step time over today's of the same plan with other exchanges of keys and values that its
    heads allow, by cp_type; of plans with cp above 1."""
    model, p = chosen.found.situation.resolved.model, chosen.plan
    if p["cp"] == 1:
        return {}
    legal = [
        i
        for i, name in enumerate(CP_TYPES)
        if name != p["cp_type"]
        and all(
            law.kept({"tp": p["tp"], "cp": p["cp"], "cp_type": i}, model, None, None)
            for law in laws.of("exchange")
        )
    ]
    return {
        CP_TYPES[i]: float(step_time(chosen.case.with_plan(cp_type=i)).total / chosen.step.total)
        for i in legal
    }


def exchanged(chosen) -> list[str]:
    """A line where another exchange of keys and values would be WORTH faster, and neither the
    design nor its stack has settled it."""
    ways = exchanges(chosen)
    if not ways or chosen.phase.pins.get("cp_type") or chosen.found.situation.stack.cp_type:
        return []
    name, ratio = min(ways.items(), key=lambda kv: kv[1])
    if ratio > 1 - WORTH:
        return []
    return [
        (
            f"untried: cp_type {name} instead of {chosen.plan['cp_type']} is "
            f"{percent(1 - ratio)} faster on paper; little is published of it, so it is "
            f"taken only where it is pinned"
        )
    ]


def to_disk(chosen) -> float:
    """State of a device that its share of the host's memory does not hold. [bytes]"""
    return float(on_disk(chosen.found.situation.resolved.cluster, chosen.memory))


def gone(chosen) -> str:
    """Where the state that leaves a device goes, in words."""
    size, disk = float(chosen.memory.host), to_disk(chosen)
    return f"with {show('memory_bytes.total', size)} of state a device in host memory" + (
        " and on NVMe" if disk else ""
    )


def offloaded(assessment) -> list[str]:
    """A line on state that leaves the device: how much, and where it goes."""
    out = []
    for one in assessment.phases:
        size, disk = float(one.memory.host), to_disk(one)
        if one.fits and size > 0:
            gb = lambda x: show("memory_bytes.total", x)  # noqa: E731
            why = "" if one.phase.pins.get("offload") else ", because nothing fits without"
            out.append(
                f"offload: {gb(size)} of state a device leave it{why}; "
                + (
                    (
                        f"host memory holds {gb(size - disk)} of it, the other {gb(disk)} go "
                        f"to NVMe, counted at "
                        f"{shown(disk_bytes_per_s(assessment.resolved.cluster), 'bytes_per_s')} "
                        f"a device; the band is wider for it"
                    )
                    if disk
                    else "host memory holds all of it"
                )
            )
    return out
