"""Nearest fixes: the smallest changes to a design that meet what it asks for, each assessed before
it is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.errors import DesignError
from ..base.quantities.table import show
from ..design.constraints import CONSTRAINTS
from ..verdict.assess import assess
from ..verdict.record import Assessment
from ..verdict.unpublished import gone
from .moves import (
    Change,
    misses,
    move,
    moves,
    plan_changes,
    recovery_changes,
    relaxation,
    relaxations,
    site_changes,
)

MOST = 8
LARGE = 6.0  # effort above which pairs of changes are tried too: ten times the devices
CLOSEST = 2  # changes shown that help and do not suffice, where no real change suffices
WORTH_SHOWING = 0.2  # share of the gap that such a change closes, where there is one that does
HARDLY = 1.05  # times the gap of before within which a constraint is missed by hardly more
CLOSER = 0.005  # least that a gap shrinks by
MORE_DEVICES = (1.125, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
FEWER_DEVICES = (7 / 8, 3 / 4, 1 / 2, 1 / 4)
STEPS = 7  # of the ladder where a plan fits already
HALVINGS = 5
LARGEST = 2_000_000  # devices: more is no fix
FEWER_HELPS = {
    "budget_usd",
    "min_mfu",
    "max_power_mw",
    "min_goodput",
    "max_checkpoint_overhead",
}


@dataclass(
    frozen=True,
    kw_only=True,
)
class Tried:
    """A change and the assessment after it, None where the design does not allow it."""

    change: Change
    after: Assessment | None

    @property
    def fits(self) -> bool:
        return self.after is not None and self.after.fits

    @property
    def feasible(self) -> bool:
        return self.after is not None and self.after.verdict == "feasible"

    @property
    def counts_devices(self) -> bool:
        """True where nothing but the number of devices changes."""
        return set(self.change.set) == {"cluster.devices"}

    def row(self) -> dict:
        """Change, verdict, MFU, days, dollars and devices as plain values."""
        change, after = self.change, self.after
        text = change.text
        if "job.precision" in change.set:  # a share of another peak: say it of the common one too
            peak = show("mfu", after.mfu_bf16_peak)
            text = text.replace("(", f"({peak} of the bf16 peak; ", 1)
        if after.plan["offload"] != "none" and "plan.offload" not in change.set:
            text += f", {gone(after.chosen)}"
        return dict(
            change=text,
            verdict=after.verdict,
            mfu=after.mfu,
            days=after.days,
            cost_usd=after.cost_usd,
            devices=after.resolved.cluster.devices,
        )

    def fix(self) -> dict:
        """The row with the fields that are set and what is still missed."""
        return self.row() | dict(
            set=self.change.set,
            missed=[m.text for m in self.after.missed],
        )


def fixes(
    assessment: Assessment,
    most: int = MOST,
    tried: Iterable[Tried] | None = None,
) -> list[dict]:
    """Changes with their verdict, feasible ones first, in the order of how little they change:
    [{change, set, verdict, missed, days, cost_usd, mfu, devices}].

    `set` are dotted paths and values for `Design.change`; applying it gives the verdict shown.
    `missed` lists what such a design still misses. Where nothing but giving way on a constraint
    makes the design feasible, the changes that come closest are listed too. Empty where the design
    is feasible. tried : `tries(assessment)`, where it is at hand.
    """
    tried = tries(assessment) if tried is None else tried
    kept = [t for t in tried if _helps(assessment, t)]
    feasible = _one_each(_worth(sorted((t for t in kept if t.feasible), key=_effort)))
    misses = [t for t in kept if not t.feasible and not t.change.gives_way]
    rest = _one_each(sorted(misses, key=lambda t: _distance(assessment, t)))
    rest = [t for t in rest if _nearer(assessment, t)] or rest[:1]
    if any(not t.change.gives_way for t in feasible):
        rest = []
    elif feasible:
        feasible, rest = feasible[: max(most - CLOSEST, 1)], rest[:CLOSEST]
    return [t.fix() for t in (feasible + rest)[:most]]


def singles(tried: Iterable[Tried]) -> list[dict]:
    """What every single change that was tried and fits comes to: [{change, verdict, mfu, days,
    cost_usd, devices}]."""
    return [
        t.row()
        for t in tried
        if t.fits
        and not t.change.gives_way
        and not (t.change.kind and "cluster.devices" in t.change.set)
    ]


def cheaper(assessment: Assessment, most: int = 5) -> list[dict]:
    """Changes to a feasible design that cost less and take no longer (or stay within its deadline):
    same rows as `fixes`, cheapest first.

    Empty without tokens or a price.
    """
    if assessment.verdict != "feasible" or assessment.cost_usd is None:
        return []
    deadline = assessment.resolved.constraints.deadline_days
    latest = assessment.days * 1.0001 if deadline is None else deadline
    seen: dict[str, Tried] = {}
    now = assessment.resolved.cluster.devices
    for change in (*plan_changes(assessment), *site_changes(assessment)):
        _try(assessment, change, seen)
    for scale in FEWER_DEVICES:
        _try_devices(assessment, _whole(assessment, now * scale), seen)
    less = [
        t
        for t in seen.values()
        if t.feasible
        and t.after.days <= latest
        and t.after.cost_usd is not None
        and t.after.cost_usd < assessment.cost_usd * 0.995
    ]
    return [t.fix() for t in sorted(less, key=lambda t: t.after.cost_usd)[:most]]


def tries(assessment: Assessment) -> list[Tried]:
    """Every change that is tried on a design that is not feasible, each once: real changes alone,
    device counts, pairs where no small change suffices, one change for each missed constraint
    together, and giving way."""
    seen: dict[str, Tried] = {}
    if assessment.verdict == "feasible":
        return []
    for changes in (plan_changes, site_changes, recovery_changes):
        for change in changes(assessment):
            _try(assessment, change, seen)
    _ladder(assessment, seen)
    if not any(
        t.feasible and t.change.effort < LARGE and not t.change.gives_way for t in seen.values()
    ):
        _pairs(assessment, seen)
    both = _together(assessment, list(seen.values()))
    for change in ([both] if both else []) + list(relaxations(assessment)):
        _try(assessment, change, seen)
    return list(seen.values())


def _try(
    assessment,
    change: Change,
    seen: dict[str, Tried],
) -> Tried:
    """The assessment after one change; what is in `seen` is not tried twice."""
    key = json.dumps(change.set, sort_keys=True)
    if key not in seen:
        seen[key] = Tried(
            change=change,
            after=_after(assessment, change.set),
        )
    return seen[key]


def _after(assessment, changes: dict) -> Assessment | None:
    try:
        return assess(assessment.design.change(changes))
    except DesignError:
        return None


def _whole(assessment, devices: float) -> int:
    """About so many devices, in whole nodes."""
    node = max(assessment.resolved.cluster.devices_per_node, 1)
    return max(node, round(devices / node) * node)


def _try_devices(
    assessment,
    count: int,
    seen,
) -> bool:
    """Whether so many devices are feasible."""
    now = assessment.resolved.cluster.devices
    if count == now or count > LARGEST:
        return False
    change = move(
        "devices",
        {"cluster.devices": count},
        abs(math.log2(count / now)),
        devices=count,
        ratio=count / now,
    )
    return _try(assessment, change, seen).feasible


def _ladder(assessment, seen) -> None:
    """The fewest more, or the least fewer, devices that are feasible: a ladder, then halving
    between the last miss and the first hit."""
    missed, now = misses(assessment), assessment.resolved.cluster.devices
    late = missed.get("deadline_days")
    if "dp" in assessment.design.plan.given():
        return
    if not assessment.fits:
        scales = MORE_DEVICES
    elif late:
        scales = [s for s in MORE_DEVICES if s >= 0.8 * late.value / late.limit][:STEPS]
    else:
        scales = FEWER_DEVICES if missed.keys() & FEWER_HELPS else ()
    last = now
    for hit in (_whole(assessment, now * scale) for scale in scales):
        if _try_devices(assessment, hit, seen):
            break
        last = hit
    else:
        return
    for _ in range(HALVINGS):
        middle = _whole(assessment, (last + hit) / 2)
        if middle in (last, hit):
            break
        if _try_devices(assessment, middle, seen):
            hit = middle
        else:
            last = middle


def _pairs(assessment, seen) -> None:
    """Another chip or precision together with more devices, where no single change suffices."""
    if "dp" in assessment.design.plan.given():
        return
    single = [c for c in site_changes(assessment) if c.kind in ("chip", "precision")]
    for change in single[:3]:
        for scale in (1.5, 2, 4) if assessment.fits else (2, 4, 16, 64):
            devices = _whole(assessment, assessment.resolved.cluster.devices * scale)
            if devices > LARGEST:
                break
            pair = Change(
                effort=change.effort + moves()["devices"]["effort"] + math.log2(scale),
                text=f"{change.text}, and {devices:,} devices",
                set={
                    **change.set,
                    "cluster.devices": devices,
                },
                kind=change.kind,
            )
            if _try(assessment, pair, seen).feasible:
                break


def _together(assessment, tried: list[Tried]) -> Change | None:
    """Where several constraints are missed: the smallest change that meets each of them alone, all
    of these at once, and giving way on what is left; None where there is no such change."""
    missed = misses(assessment)
    if not assessment.fits or len(missed) < 2:
        return None
    merged, texts, effort = {}, [], 0.0
    for name in missed:
        for change in _cures(assessment, name, tried)[:1]:
            if not change.set.keys() & merged.keys():
                merged, effort = (
                    {
                        **merged,
                        **change.set,
                    },
                    effort + change.effort,
                )
                texts.append(change.text)
    after = _after(assessment, merged) if merged else None
    if after is None or not after.phases or not _hardly_worse(missed, misses(after)):
        return None
    ways = [relaxation(after, name) for name in misses(after)]
    if None in ways:
        return None
    for way in ways:
        merged |= way.set
    return Change(
        effort=effort + sum(way.effort for way in ways),
        text="; ".join([*texts, *(way.text for way in ways)]),
        set=merged,
    )


def _cures(
    assessment,
    name: str,
    tried: list[Tried],
) -> list[Change]:
    """Changes tried that meet one of the missed constraints without missing a new one, the smallest
    first; fewer devices where they were not tried."""
    missed = misses(assessment)
    found = [
        t
        for t in tried
        if t.fits
        and not t.change.gives_way
        and name not in misses(t.after)
        and misses(t.after).keys() <= missed.keys()
    ]
    if not found and name in ("max_power_mw", "budget_usd"):
        others = {f"constraints.{other}": None for other in missed if other != name}
        alone: dict[str, Tried] = {}
        _ladder(assess(assessment.design.change(others)), alone)
        found = [t for t in alone.values() if t.fits and t.feasible]
    return [t.change for t in sorted(found, key=_effort)]


def _hardly_worse(before: dict, after: dict) -> bool:
    """Nothing new is missed, and nothing by more than hardly more."""
    return after.keys() <= before.keys() and all(
        after[k].gap <= HARDLY * before[k].gap for k in after
    )


def _helps(assessment, t: Tried) -> bool:
    """It is feasible now, or fits now; or nothing new is missed, and what is missed is fewer (and
    hardly farther) or nearer to its limit."""
    if t.feasible or not t.fits:
        return t.feasible
    if not assessment.fits:
        return True
    before, after = misses(assessment), misses(t.after)
    if not after.keys() <= before.keys():
        return False
    fewer = len(after) < len(before) and _hardly_worse(before, after)
    return fewer or all(after[k].gap < before[k].gap - CLOSER for k in after)


def _nearer(assessment, t: Tried) -> bool:
    """Whether a change that does not suffice meets one constraint more, or closes a share
    WORTH_SHOWING of the gap to an MFU floor, deadline or budget."""
    missed = misses(assessment)
    if not assessment.fits or len(t.after.missed) < len(missed):
        return True
    return any(
        math.log(getattr(t.after, CONSTRAINTS[name].figure) / m.value) / math.log(m.limit / m.value)
        >= WORTH_SHOWING
        for name, m in missed.items()
        if name in CONSTRAINTS and CONSTRAINTS[name].band
    )


def _effort(t: Tried) -> float:
    return t.change.effort


def _distance(assessment, t: Tried) -> tuple:
    """Fewest constraints missed, then the best MFU (or the fewest days or dollars), then the least
    effort."""
    missed, after = misses(assessment), t.after
    if "min_mfu" in missed or after.days is None:
        by = -after.mfu
    else:
        by = after.cost_usd or 0 if "budget_usd" in missed else after.days
    return len(after.missed), by, t.change.effort


def _one_each(tried: list[Tried]) -> list[Tried]:
    """The first of each kind: device counts, chips, fabrics; what is of no kind stays."""
    seen, out = set(), []
    for t in tried:
        kind = t.change.kind or ("devices" if t.counts_devices else None)
        if kind not in seen:
            out.append(t)
        if kind:
            seen.add(kind)
    return out


def _worth(tried: list[Tried]) -> list[Tried]:
    """Without more devices that finish no sooner than a smaller change on the devices there are."""
    best, out = math.inf, []
    for t in tried:
        days = t.after.days
        if not t.counts_devices or days is None or days < best:
            out.append(t)
        if not t.counts_devices and not t.change.gives_way and days is not None:
            best = min(best, days)
    return out
