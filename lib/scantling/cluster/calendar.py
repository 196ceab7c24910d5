"""From the first rack to the last token: delivery in parts, bring-up, the corpus, each phase on the
devices there are, what lies between phases."""

from math import inf

from ..base.records import Known, Lines, Record, Rows, record
from ..base.units import DAY_S
from ..physics.ingest import token_bytes
from ..verdict.numbers import useful_s
from .corpus import pipeline
from .rollout.rollout import rollout
from .site import Site

AXES = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sharding")
ENTRY = ("what", "start_day", "days", "devices", "why")
EXCHANGES = ("tp", "cp", "ep", "dp", "pp")


@record
class Calendar(Record):
    """The run by days from the first delivery; `last_token_day` is None where no tokens are
    named."""

    entries: Rows  # {what, start_day, days, devices, why}
    passages: Rows  # between phases: {phase, changes of the plan, compatible, why, seconds}
    demands: Rows  # of each phase: {phase, exposed_share, read_bytes_per_s}
    most_network: str  # the phase that waits most for the network
    most_store: str  # and the one that reads most
    first_step_day: float
    last_token_day: Known
    lines: Lines


def calendar(s: Site) -> Calendar:
    """The calendar of a design.

    A part of the machine trains once it is delivered and brought up (`rollout.calendar`). On a part
    of the devices the replicas that fit train, at their share of the speed: an upper bound, since
    the batch is then accumulated in more steps. Between phases: one save, a restart, the load under
    the next plan; after each its evaluation.
    """
    up = sum(row["days"] for row in rollout(s).calendar)
    entries = []

    def enter(*entry) -> float:
        entries.append(dict(zip(ENTRY, entry)))
        return entry[1] + entry[2]

    ready = [
        (
            enter(
                f"bring-up of part {i}",
                part["day"],
                up,
                n,
                "burn-in",
            ),
            n,
        )
        for i, part in enumerate(s.cluster.delivery, 1)
        for n in [part["devices"]]
    ]
    text = token_bytes(s.model.vocab)
    prepared = pipeline(s, s.tokens, text).days if s.tokens else 0.0
    enter(
        "corpus",
        0.0,
        prepared,
        0,
        "raw bytes to shards",
    )
    first = next((day for day, _ in ready if _ready(ready, day) >= s.replica), ready[-1][0])
    day = start = max(prepared, first)
    passages = []
    last = 0.0
    for before, chosen in zip((None, *s.phases), s.phases):
        name = chosen.phase.name or "training"
        plan = chosen.plan
        replica = plan["tp"] * plan["cp"] * plan["pp"]
        if before:
            passages.append(_passage(s, before, chosen))
            day = enter(
                f"to {name}",
                day,
                passages[-1]["seconds"] / DAY_S,
                s.cluster.devices,
                "save, restart, load",
            )
        left = useful_s([chosen])
        whole = replica * plan["dp"]
        if left is None:
            last = None
            break
        left = left / s.e.goodput / DAY_S
        for end in (*sorted(when for when, _ in ready if when > day), inf):
            used = min(whole, _ready(ready, day) // replica * replica)
            days = min(left * whole / max(used, 1e-9), end - day)
            if days > 0:
                left -= days * used / whole
                day = enter(
                    name,
                    day,
                    days,
                    used,
                    "training",
                )
        last = day
        day = enter(
            f"evaluation after {name}",
            day,
            chosen.phase.evaluation_hours / 24,
            0,
            "before the next phase",
        )
    demands = tuple(_demand(chosen, text) for chosen in s.phases)
    said = (f"the first step on day {start:,.1f}",)
    return Calendar(
        entries=tuple(sorted(entries, key=lambda entry: entry["start_day"])),
        passages=tuple(passages),
        demands=demands,
        most_network=max(demands, key=lambda d: d["exposed_share"])["phase"],
        most_store=max(demands, key=lambda d: d["read_bytes_per_s"])["phase"],
        first_step_day=start,
        last_token_day=last,
        lines=(*said, f"the last token on day {last:,.1f}") if last else said,
    )


def _ready(ready, day: float) -> int:
    """Devices that are ready on a day."""
    return sum(devices for when, devices in ready if when <= day)


def _passage(
    s: Site,
    before,
    after,
) -> dict:
    """What lies between two phases."""
    axes = {a: (before.plan[a], after.plan[a]) for a in AXES if before.plan[a] != after.plan[a]}
    old = before.phase.optimizer
    new = after.phase.optimizer
    why = "another layout: saved by parameter, read under the next plan" if axes else "as written"
    return {
        "phase": after.phase.name,
        "changes": {axis: f"{was} to {becomes}" for axis, (was, becomes) in axes.items()},
        "compatible": old == new,
        "why": why if old == new else f"the moments of {old} do not serve {new}",
        "seconds": s.save_s + s.e.restart_s,
    }


def _demand(chosen, text: int) -> dict:
    """What one phase asks of network and store."""
    phase = chosen.phase
    return {
        "phase": phase.name,
        "exposed_share": sum(getattr(chosen.step, axis) for axis in EXCHANGES) / chosen.step.total,
        "read_bytes_per_s": phase.global_batch * phase.seq_len * text / chosen.step_s,
    }
