"""What nobody has published: plans of a kind, a size or a promise beyond every known run, and state
that goes to NVMe; each widens the band."""

from __future__ import annotations

from ..catalogue.published import ROOM, best_published, beyond
from ..catalogue.words import CP_TYPES
from ..physics.cases import devices
from ..physics.step import rates, step_time
from ..plans import laws
from ..plans.fit import disk_bytes_per_s, on_disk
from ..plans.run import skipped
from ..plans.words import short
from .words import say

WORTH = 0.05  # share of a step from which an exchange that was not taken is named


def record_of(chosen):
    """The best published MFU of the device, precision and kind of model of a phase; None where
    there is none."""
    r = chosen.found.situation.resolved
    return best_published(
        r.cluster.accelerator.id,
        chosen.phase.precision,
        r.model.is_moe,
        chosen.phase.seq_len,
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
    wider = say("wider")
    if record is not None and mfu > record.mfu:
        line = say(
            "beyond-record",
            mfu=mfu,
            record=record,
        )
        out.append(line + wider if mfu > ROOM * record.mfu else line)
    lines = beyond(chosen.plan, int(devices(chosen.case.plan)))
    out += [say("beyond", line=line) + wider for line in lines]
    if not found.practised[chosen.row]:
        domain = found.situation.link.domain
        return [
            *out,
            say(
                "tp-across",
                tp=chosen.plan["tp"],
                domain=domain,
            ),
        ]
    out += exchanged(chosen)
    better = skipped(found)
    if better is None:
        return out
    row, ratio = better
    return [
        *out,
        say(
            "skipped",
            plan=short(found.row(row)),
            gain=1 - ratio,
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
            law.kept(
                {
                    "tp": p["tp"],
                    "cp": p["cp"],
                    "cp_type": i,
                },
                model,
                None,
                None,
            )
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
        say(
            "exchange",
            name=name,
            now=chosen.plan["cp_type"],
            gain=1 - ratio,
        )
    ]


def to_disk(chosen) -> float:
    """State of a device that its share of the host's memory does not hold. [bytes]"""
    return float(on_disk(chosen.found.situation.resolved.cluster, chosen.memory))


def gone(chosen) -> str:
    """Where the state that leaves a device goes, in words."""
    disk = say("gone-disk") if to_disk(chosen) else ""
    return say("gone", size=chosen.memory.host) + disk


def offloaded(assessment) -> list[str]:
    """A line on state that leaves the device: how much, and where it goes."""
    out = []
    rate = disk_bytes_per_s(assessment.resolved.cluster)
    for one in assessment.phases:
        size, disk = float(one.memory.host), to_disk(one)
        if one.fits and size > 0:
            why = "" if one.phase.pins.get("offload") else ", because nothing fits without"
            where = say(
                f"offload-{'disk' if disk else 'host'}",
                kept=size - disk,
                disk=disk,
                rate=rate,
            )
            out.append(
                say(
                    "offload",
                    size=size,
                    why=why,
                )
                + where
            )
    return out
