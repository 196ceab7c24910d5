"""From the first rack to the last token: delivery in parts, bring-up, the corpus, each phase on the
devices there are, what lies between phases."""

from math import inf

from scantling.base.errors import DesignError
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.base.units import DAY_S
from scantling.catalogue.words import DEGREES
from scantling.endure.first_step import BY_RECOVERY
from scantling.verdict.assess import assess
from scantling.verdict.numbers import useful_s

from .corpus import pipeline
from .evolution.changes import RESIZED, unsaid
from .rollout.rollout import rollout
from .site import Site, site_of
from .texts import lines, texts

MOMENT = 1e-9  # days: what is left by rounding
AXES = (*DEGREES, "sharding")
FIELDS = ("optimizer", "precision", "seq_len", "global_batch")  # of a phase
ANEW = FIELDS[:3]  # for which a job starts anew; another batch is more or fewer micro-batches
DEMANDS = ("network_share", "read_bytes_per_s")
ENTRY = ("what", "start_day", "days", "devices", "why")
PART = ("delivery", "sites", "pod_devices", "scale_up_domain")  # that a part need not fill


@record
class Calendar(Record):
    """The run by days from the first delivery; `last_token_day` is None where no tokens are
    named."""

    entries: Rows  # {what, start_day, days, devices, why}
    # between phases: {phase, changes of the plan, compatible, why, parts, seconds, usd, and of
    # these what another layout alone costs: layout_s, layout_usd}
    passages: Rows
    demands: Rows  # of each phase: {phase, network_share, read_bytes_per_s}
    first_step_day: float
    last_token_day: Known
    lines: Lines


def calendar(s: Site) -> Calendar:
    """The calendar of a design.

    A part of the machine trains once it is delivered and brought up (`rollout.calendar`), under the
    best plan of each phase that the devices of that day hold, the batch unchanged; where they hold
    none it waits for more. Between phases: one save, processes started anew, the load under the
    next plan; after each its evaluation. The first start takes `endure.first_step`.
    """
    up = sum(row["days"] for row in rollout(s).calendar)
    entries = []

    def enter(*entry):
        entries.append(dict(zip(ENTRY, entry)))
        return entry[1] + entry[2]

    ready, have = {}, 0  # day -> devices that are ready from then on
    for i, part in enumerate(s.cluster.delivery, 1):
        have += part.devices
        ready[enter(f"bring-up of part {i}", part.day, up, part.devices, "burn-in")] = have
    paces = [_pace(s, devices) for devices in ready.values()]
    tokens = s.tokens
    day = enter(
        "corpus", 0.0, pipeline(s, tokens).days if tokens else 0.0, 0, "raw bytes to shards"
    )
    begun, used = next((since, pace[0][0]) for since, pace in zip(ready, paces) if pace[0][1])
    begun, takes = max(day, begun), sum(s.e.first_step_s.values()) / DAY_S
    started = enter("first start", begun, takes, used, " + ".join(s.e.first_step_s))
    last = day = started
    passages = []
    for i, one in enumerate(s.by_phase):
        name = one.phase.name or "training"
        if i:
            passages.append(_passage(s.by_phase[i - 1], one))
            days = passages[-1]["seconds"] / DAY_S
            day = enter(f"to {name}", day, days, used, "save, restart, load")
        left = useful_s([one.chosen])
        if left is None:
            last = None
            break
        windows = zip(ready, (*list(ready)[1:], inf), (pace[i] for pace in paces))
        for start, days, used in _stretches(day, left / s.e.goodput / DAY_S, windows):
            last = day = enter(name, start, days, used, "training")
        day = enter(
            f"evaluation after {name}",
            day,
            one.phase.evaluation_hours / 24,
            0,
            "before the next phase",
        )
    return Calendar(
        entries=tuple(sorted(entries, key=lambda entry: entry["start_day"])),
        passages=tuple(passages),
        demands=tuple(
            {"phase": one.phase.name, **{k: getattr(one, k) for k in DEMANDS}} for one in s.by_phase
        ),
        first_step_day=started,
        last_token_day=last,
        lines=lines(
            texts("calendar", "lines"),
            s,
            first=started,
            last=last,
            several=len(s.phases) > 1,
            network=s.most(lambda one: one.network_share),
            store=s.most(lambda one: one.read_bytes_per_s),
            slow=not paces[0][0][1] and list(ready.values())[0],
        ),
    )


def _stretches(day: float, left: float, windows):
    """(start, days, devices) of the training of a phase that the whole machine trains in `left`
    days, over windows (from, to, (devices, speed))."""
    for since, until, (used, speed) in windows:
        start = max(day, since)
        days = min(left / speed, until - start) if speed else 0.0
        if days > MOMENT:
            left -= days * speed
            day = start + days
            yield start, days, used


def _pace(s: Site, devices: int) -> tuple:
    """(devices at work, speed over that of the whole machine) of each phase on so many devices;
    nothing where no plan fits there."""
    if devices == s.cluster.devices:
        return tuple((one.used, 1.0) for one in s.by_phase)
    part = {"cluster.devices": devices, "constraints": None, "reliability.spares": None}
    part |= unsaid("cluster", PART) | unsaid("plan", RESIZED)
    try:
        found = assess(s.a.design.change(part))
    except DesignError:
        found = None
    if not (found and found.fits):
        return ((0, 0.0),) * len(s.phases)
    there = site_of(found)
    kept = there.e.goodput / s.e.goodput
    pairs = zip(s.by_phase, there.by_phase)
    return tuple((one.used, whole.step_s / one.step_s * kept) for whole, one in pairs)


def _passage(before: Site, after: Site) -> dict:
    """What lies between two phases: nothing where the job goes on under its layout; else a save,
    processes started anew and the load, and for another layout what its devices fetch from each
    other, as each reads its share of a replica's state. `layout_s`: of it, what the layout alone
    costs: all of it where nothing else asks for a start."""
    plans = [(axis, before.plan[axis], after.plan[axis]) for axis in AXES]
    changes = {axis: f"{was} to {becomes}" for axis, was, becomes in plans if was != becomes}
    parts = {"save": before.save_s, **after.e.first_step_s}
    parts = {name: parts[name] for name in ("save", *BY_RECOVERY["in-place"])}
    parts["read"] = parts.pop("load")
    other = {f: getattr(before.phase, f) != getattr(after.phase, f) for f in FIELDS}
    anew = any(other[f] for f in ANEW)
    if changes:
        held, link = after.chosen.memory, after.case.link
        parts["exchange"] = (held.weights + held.optimizer) / link.out_bytes_per_s
    elif not anew:
        parts = {}
    seconds = sum(parts.values())
    layout_s = parts.get("exchange", 0.0) if anew else seconds
    said = lines(
        texts("calendar", "passage"),
        before=before,
        after=after,
        changes=changes,
        same=not changes and anew,
        goes_on=not parts,
        **parts,
        **other,
    )
    return {
        "phase": after.phase.name,
        "changes": changes,
        "compatible": not other["optimizer"],
        "why": said,
        "parts": parts,
        "seconds": seconds,
        "usd": before.run.usd(seconds / DAY_S),
        "layout_s": layout_s,
        "layout_usd": before.run.usd(layout_s / DAY_S),
    }
