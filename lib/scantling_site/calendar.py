"""From the first rack to the last token: delivery in parts, bring-up, the corpus, each phase on the
devices there are, what lies between phases."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple, TypedDict

from scantling.base import show
from scantling.base.errors import DesignError
from scantling.base.records import Known, Lines, Record, record
from scantling.base.units import DAY_S
from scantling.catalogue.words import DEGREES
from scantling.endure.first_step import BY_RECOVERY
from scantling.plans.plan_names import fields_of_plan
from scantling.verdict.assess import assess
from scantling.verdict.numbers import useful_s

from .corpus_stages import pipeline
from .evolution.change import RESIZED, unsaid
from .job_site import Site, site_of
from .rollout.first_week import rollout

MOMENT = 1e-9  # days: what is left by rounding
AXES = (*DEGREES, "sharding")
PART = ("delivery", "sites", "pod_devices", "scale_up_domain")  # that a part need not fill


class Entry(TypedDict):
    """One stretch of the calendar."""

    what: str
    start_day: float
    days: float
    devices: int
    why: str


class Passage(TypedDict):
    """What lies between two phases: changes of the plan, parts in seconds; of seconds and dollars
    what another layout alone costs."""

    phase: str
    changes: dict[str, str]
    compatible: bool
    why: Lines
    parts: dict[str, float]
    seconds: float
    usd: Known
    layout_s: float
    layout_usd: Known


class Demand(TypedDict):
    """What a phase asks of the site."""

    phase: str
    network_share: float
    read_bytes_per_s: float


@record
class Calendar(Record):
    """The run by days from the first delivery; `last_token_day` is None where no tokens are
    named."""

    entries: tuple[Entry, ...]
    passages: tuple[Passage, ...]
    demands: tuple[Demand, ...]
    first_step_day: float
    last_token_day: Known
    lines: Lines


class Pace(NamedTuple):
    """How fast a phase trains on the devices of a day."""

    devices: int  # at work
    speed: float  # over that of the whole machine


NOTHING = Pace(devices=0, speed=0.0)


@record
class Window:
    """Days on which so many devices are ready, and the pace of each phase on them."""

    since: float
    until: float
    devices: int
    paces: tuple[Pace, ...]


def calendar(s: Site) -> Calendar:
    """The calendar of a design.

    A part of the machine trains once it is delivered and brought up (`rollout.calendar`), under the
    best plan of each phase that the devices of that day hold, the batch unchanged; where they hold
    none it waits for more. Between phases: one save, processes started anew, the load under the
    next plan; after each its evaluation. The first start takes `endure.first_step`.
    """
    bring_up = _bring_up(s)
    windows = _windows(s, bring_up)
    corpus = Entry(
        what="corpus",
        start_day=0.0,
        days=pipeline(s, s.tokens).days if s.tokens else 0.0,
        devices=0,
        why="raw bytes to shards",
    )
    start = _first_start(s, windows, corpus["days"])
    passages = tuple(_passage(before, after) for before, after in zip(s.by_phase, s.by_phase[1:]))
    training, last = _training(s, windows, passages, start)
    entries = [*bring_up, corpus, start, *training]
    return Calendar(
        entries=tuple(sorted(entries, key=lambda entry: entry["start_day"])),
        passages=passages,
        demands=tuple(
            Demand(
                phase=one.phase.name,
                network_share=one.network_share,
                read_bytes_per_s=one.read_bytes_per_s,
            )
            for one in s.by_phase
        ),
        first_step_day=_end(start),
        last_token_day=last,
        lines=tuple(_lines(s, windows, _end(start), last)),
    )


def _end(entry: Entry) -> float:
    return entry["start_day"] + entry["days"]


def _bring_up(s: Site) -> list[Entry]:
    """The parts of the machine as they are handed over, each burnt in."""
    days = sum(span["days"] for span in rollout(s).calendar)
    return [
        Entry(
            what=f"bring-up of part {i}",
            start_day=part.day,
            days=days,
            devices=part.devices,
            why="burn-in",
        )
        for i, part in enumerate(s.cluster.delivery, 1)
    ]


def _windows(s: Site, bring_up: Sequence[Entry]) -> list[Window]:
    """The days by the devices that are ready on them."""
    ready: dict[float, int] = {}  # day -> devices that are ready from then on
    devices = 0
    for entry in bring_up:
        devices += entry["devices"]
        ready[_end(entry)] = devices
    ends = (*list(ready)[1:], inf)
    return [
        Window(since=since, until=until, devices=n, paces=_paces(s, n))
        for (since, n), until in zip(ready.items(), ends)
    ]


def _paces(s: Site, devices: int) -> tuple[Pace, ...]:
    """The pace of each phase on so many devices; none where no plan fits there."""
    if devices == s.cluster.devices:
        return tuple(Pace(devices=one.used, speed=1.0) for one in s.by_phase)
    part = {"cluster.devices": devices, "constraints": None, "reliability.spares": None}
    part |= unsaid("cluster", PART) | unsaid("plan", RESIZED)
    try:
        assessment = assess(s.a.design.change(part))
    except DesignError:
        return (NOTHING,) * len(s.phases)
    if not assessment.fits:
        return (NOTHING,) * len(s.phases)
    there = site_of(assessment)
    goodput = there.e.goodput / s.e.goodput
    return tuple(
        Pace(devices=one.used, speed=whole.step_s / one.step_s * goodput)
        for whole, one in zip(s.by_phase, there.by_phase)
    )


def _first_start(s: Site, windows: Sequence[Window], corpus_day: float) -> Entry:
    """The first start, once the corpus is made and the devices hold the first phase."""
    first = next(window for window in windows if window.paces[0].speed)
    return Entry(
        what="first start",
        start_day=max(corpus_day, first.since),
        days=sum(s.e.first_step_s.values()) / DAY_S,
        devices=first.paces[0].devices,
        why=" + ".join(s.e.first_step_s),
    )


def _training(
    s: Site, windows: Sequence[Window], passages: Sequence[Passage], start: Entry
) -> tuple[list[Entry], Known]:
    """(the phases with what lies between them and their evaluations, the day of the last token);
    None where a phase names no tokens: nothing is known from there on."""
    entries: list[Entry] = []
    day = last = _end(start)
    devices = start["devices"]
    for i, one in enumerate(s.by_phase):
        name = one.phase.name or "training"
        if i:
            days = passages[i - 1]["seconds"] / DAY_S
            entries.append(
                Entry(
                    what=f"to {name}",
                    start_day=day,
                    days=days,
                    devices=devices,
                    why="save, restart, load",
                )
            )
            day = _end(entries[-1])
        left = useful_s([one.chosen])
        if left is None:
            return entries, None
        for stretch in _stretches(name, day, left / s.e.goodput / DAY_S, windows, i):
            entries.append(stretch)
            day = last = _end(stretch)
            devices = stretch["devices"]
        entries.append(
            Entry(
                what=f"evaluation after {name}",
                start_day=day,
                days=one.phase.evaluation_hours / 24,
                devices=0,
                why="before the next phase",
            )
        )
        day = _end(entries[-1])
    return entries, last


def _stretches(
    name: str, day: float, left: float, windows: Sequence[Window], phase: int
) -> Iterator[Entry]:
    """The training of a phase that the whole machine trains in `left` days, from a day on, over the
    windows."""
    for window in windows:
        pace = window.paces[phase]
        start = max(day, window.since)
        days = min(left / pace.speed, window.until - start) if pace.speed else 0.0
        if days > MOMENT:
            left -= days * pace.speed
            day = start + days
            yield Entry(what=name, start_day=start, days=days, devices=pace.devices, why="training")


def _lines(s: Site, windows: Sequence[Window], first: float, last: Known) -> Iterator[str]:
    """The calendar in a few sentences."""
    yield f"the first step on day {first:,.1f}"
    if last:
        yield f"the last token on day {last:,.1f}"
    if len(s.phases) > 1:
        network = s.most(lambda one: one.network_share)
        store = s.most(lambda one: one.read_bytes_per_s)
        yield (
            f"{network.phase.name} waits most for the network ({network.network_share:.1%} of its "
            f"step), {store.phase.name} reads most ({show.bytes_per_s(store.read_bytes_per_s)}): "
            "network and stores are judged by them"
        )
    if not windows[0].paces[0].speed:
        yield (
            f"{windows[0].devices} of {s.cluster.devices:,} devices hold no plan of the first "
            "phase: training waits for more"
        )


@record
class Differences:
    """What a phase changes of the one before it."""

    plan: dict[str, str]  # axis -> "8 to 16"
    optimizer: bool
    precision: bool
    seq_len: bool
    global_batch: bool

    @property
    def anew(self) -> bool:
        """Whether a job has to start anew whatever its layout; another batch is more or fewer
        micro-batches."""
        return self.optimizer or self.precision or self.seq_len


def differences(before: Site, after: Site) -> Differences:
    """What the phase of one site changes of that of another."""
    old, new = (fields_of_plan(site.plan, AXES) for site in (before, after))
    plans = [(axis, old[axis], new[axis]) for axis in AXES]
    return Differences(
        plan={axis: f"{was} to {becomes}" for axis, was, becomes in plans if was != becomes},
        optimizer=before.phase.optimizer != after.phase.optimizer,
        precision=before.phase.precision != after.phase.precision,
        seq_len=before.phase.seq_len != after.phase.seq_len,
        global_batch=before.phase.global_batch != after.phase.global_batch,
    )


def _passage(before: Site, after: Site) -> Passage:
    """What lies between two phases: nothing where the job goes on under its layout; else a save,
    processes started anew and the load, and for another layout what its devices fetch from each
    other, as each reads its share of a replica's state. `layout_s`: of it, what the layout alone
    costs: all of it where nothing else asks for a start."""
    other = differences(before, after)
    parts: dict[str, float] = {}
    if other.plan or other.anew:
        restart = {n: after.e.first_step_s[n] for n in BY_RECOVERY["in-place"] if n != "load"}
        parts = {"save": before.save_s, **restart, "read": after.e.first_step_s["load"]}
    if other.plan:
        memory = after.chosen.memory
        state = float(memory.weights + memory.optimizer)
        parts["exchange"] = state / float(after.case.link.out_bytes_per_s)
    seconds = sum(parts.values())
    layout_s = parts.get("exchange", 0.0) if other.anew else seconds
    return Passage(
        phase=after.phase.name,
        changes=other.plan,
        compatible=not other.optimizer,
        why=tuple(_why(before, after, other, parts)),
        parts=parts,
        seconds=seconds,
        usd=before.run.usd(seconds / DAY_S),
        layout_s=layout_s,
        layout_usd=before.run.usd(layout_s / DAY_S),
    )


def _why(before: Site, after: Site, other: Differences, parts: dict[str, float]) -> Iterator[str]:
    """What a passage does, and why."""
    if other.plan:
        yield (
            "another layout: saved by parameter; each device reads its share in the "
            f"{parts['read']:.0f} s of a load and fetches the rest of what it holds from the others"
        )
    elif other.anew:
        yield "the same layout, read as it was written"
    else:
        yield (
            "the same job goes on: its learning rate, its data and its micro-batches change on the "
            "way"
        )
    if other.optimizer:
        yield (
            f"the moments of {before.phase.optimizer} do not serve {after.phase.optimizer}: they "
            "start from nothing, with a warm-up of their own"
        )
    if other.precision:
        yield (
            f"{after.phase.precision} in place of {before.phase.precision}: weights are cast anew "
            "from their fp32 copy"
        )
    if other.seq_len:
        yield (
            f"sequences of {after.phase.seq_len:,} in place of {before.phase.seq_len:,}: the "
            "loader builds another index and starts it at its first sample"
        )
    if other.global_batch:
        yield (
            "another batch: positions count samples, not steps, so that none is read twice or left "
            "out"
        )
