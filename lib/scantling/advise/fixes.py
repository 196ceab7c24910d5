"""Nearest fixes: the smallest changes to a design that meet what it asks for, each assessed before
it is shown."""

from __future__ import annotations

import json
import math

from ..base.errors import DesignError
from ..base.quantities.table import show
from ..design.constraints import CONSTRAINTS
from ..verdict.assess import assess
from ..verdict.unpublished import gone
from .moves import Change, plan_changes, recovery_changes, relaxation, relaxations, site_changes

MOST = 8
LARGE = 6.0  # effort above which pairs of changes are tried too: ten times the devices
CLOSEST = 2  # changes shown that help and do not suffice, where no real change suffices
WORTH_SHOWING = 0.2  # share of the gap that such a change closes, where there is one that does
MORE_DEVICES = (1.125, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
FEWER_DEVICES = (7 / 8, 3 / 4, 1 / 2, 1 / 4)
LARGEST = 2_000_000  # devices: more is no fix


def fixes(assessment, most: int = MOST) -> list[dict]:
    """Changes with their verdict, feasible ones first, in the order of how little they change:
    [{change, set, verdict, missed, days, cost_usd, mfu, devices}].

    `set` are dotted paths and values for `Design.change`; applying it gives the verdict shown.
    `missed` lists what such a design still
    misses. Where nothing but giving way on a constraint makes the design feasible, the changes that
    come closest are listed too. Empty where the design is feasible.
    """
    return fixes_and_tried(assessment, most)[0]


def fixes_and_tried(assessment, most: int = MOST) -> tuple[list[dict], list[dict]]:
    """(`fixes`, what every single change that was tried comes to: [{change, verdict, mfu, days,
    cost_usd, devices}]), from one search; both empty where the design is feasible."""
    if assessment.verdict == "feasible":
        return [], []
    trial = Trial(assessment)
    trial.real()
    if not trial.near():
        trial.pairs()
    trial.together()
    for change in relaxations(assessment):
        trial.assess(change)
    looked = [
        _row(change, other)
        for change, other in trial.looked
        if not change.gives_way and not (change.kind and "cluster.devices" in change.set)
    ]
    return trial.answer(most), looked if assessment.phases else []


def _row(change, other) -> dict:
    text = change.text
    if "job.precision" in change.set:  # a share of another peak: say it of the common one too
        text = text.replace("(", f"({show('mfu', other.mfu_bf16_peak)} of the bf16 peak; ", 1)
    if other.plan["offload"] != "none" and "plan.offload" not in change.set:
        text += f", {gone(other.chosen)}"
    return dict(
        change=text,
        verdict=other.verdict,
        mfu=other.mfu,
        days=other.days,
        cost_usd=other.cost_usd,
        devices=other.resolved.cluster.devices,
    )


class Trial:
    """The changes tried so far on one design; nothing is tried twice."""

    def __init__(self, assessment):
        self.before, self.design = assessment, assessment.design
        self.fits = bool(assessment.phases) and all(c.fits for c in assessment.phases)
        self.missed = {m.field: m for m in assessment.missed} if assessment.phases else {}
        self.kept: list[tuple[float, dict]] = []
        self.looked: list[tuple] = []  # (change, assessment) of what fits
        self.seen: dict[str, object] = {}

    def assess(self, change: Change):
        """The assessment after one change, kept where it is feasible or closer; None where the
        design does not allow it."""
        key = json.dumps(change.set, sort_keys=True)
        if key in self.seen:
            return self.seen[key]
        try:
            other = assess(self.design.change(change.set))
        except DesignError:
            other = None
        self.seen[key] = other
        if other is not None and other.phases and all(c.fits for c in other.phases):
            self.looked.append((change, other))
        if (
            other is not None
            and other.verdict != "impossible"
            and (other.verdict == "feasible" or self.closer(other))
        ):
            row = _row(change, other)
            self.kept.append(
                (
                    change.effort,
                    dict(
                        change=row.pop("change"),
                        set=change.set,
                        verdict=row.pop("verdict"),
                        missed=[m.text for m in other.missed],
                        **row,
                        _change=change,
                    ),
                )
            )
        return other

    def real(self):
        """Every change but giving way, alone."""
        for change in (
            *plan_changes(self.before),
            *site_changes(self.before),
            *recovery_changes(self.before),
        ):
            self.assess(change)
        self.devices()

    def near(self) -> bool:
        """Whether a real change of little effort makes the design feasible."""
        return any(
            row["verdict"] == "feasible" and effort < LARGE and not row["_change"].gives_way
            for effort, row in self.kept
        )

    def together(self):
        """Where several constraints are missed: the smallest change that meets each of them alone,
        all of these at once, and giving way on what is left."""
        if not self.fits or len(self.missed) < 2:
            return
        merged, texts, effort = {}, [], 0.0
        for field in self.missed:
            for change in self.cures(field)[:1]:
                if not change.set.keys() & merged.keys():
                    merged, effort = {**merged, **change.set}, effort + change.effort
                    texts.append(change.text)
        if not merged:
            return
        try:
            after = assess(self.design.change(merged))
        except DesignError:
            return
        worse = [
            m
            for m in after.missed
            if m.field not in self.missed or m.gap > 1.05 * self.missed[m.field].gap
        ]
        ways = (
            [relaxation(after, m.field) for m in after.missed]
            if after.phases and not worse
            else [None]
        )
        if None not in ways:
            self.assess(
                Change(
                    effort + sum(w.effort for w in ways),
                    "; ".join([*texts, *(w.text for w in ways)]),
                    {**merged, **{k: v for w in ways for k, v in w.set.items()}},
                )
            )

    def cures(self, field) -> list:
        """Changes tried that meet one of the missed constraints without missing a new one, the
        smallest first; fewer devices where they were not tried."""
        found = [
            c
            for c, other in self.looked
            if not c.gives_way
            and field not in {m.field for m in other.missed}
            and {m.field for m in other.missed} <= self.missed.keys()
        ]
        if not found and field in ("max_power_mw", "budget_usd"):
            trial = Trial(
                assess(
                    self.design.change(
                        {f"constraints.{other}": None for other in self.missed if other != field}
                    )
                )
            )
            trial.devices()
            found = [c for c, other in trial.looked if other.verdict == "feasible"]
        return sorted(found, key=lambda c: c.effort)

    def closer(self, other) -> bool:
        """It fits now; or nothing new is missed, and what is missed is fewer (and hardly farther)
        or nearer to its limit."""
        if not all(c.fits for c in other.phases):
            return False
        if not self.fits:
            return True
        after = {m.field: m for m in other.missed}
        if not after.keys() <= self.missed.keys():
            return False
        fewer = len(after) < len(self.missed) and all(
            after[k].gap <= 1.05 * self.missed[k].gap for k in after
        )
        return fewer or all(after[k].gap < self.missed[k].gap - 0.005 for k in after)

    def devices(self):
        """The fewest more, or the least fewer, devices that are feasible: a ladder, then halving
        between the last miss and the first hit."""
        cluster = self.before.resolved.cluster
        if "dp" in self.design.plan.given():
            return
        sets = []
        if not self.fits or self.missed.keys() & {"deadline_days"}:
            start = (
                self.missed["deadline_days"].value / self.missed["deadline_days"].limit
                if "deadline_days" in self.missed and self.fits
                else 1.0
            )
            sets.append([s for s in MORE_DEVICES if s >= 0.8 * start])
        if (
            self.fits
            and self.missed.keys()
            & {"budget_usd", "min_mfu", "max_power_mw", "min_goodput", "max_checkpoint_overhead"}
            and not self.missed.keys() & {"deadline_days"}
        ):
            sets.append(list(FEWER_DEVICES))
        for scales in sets:
            last, hit = cluster.devices, None
            for scale in scales[:7] if self.fits else scales:
                count = self.whole(cluster.devices * scale)
                other = self.count(count)
                if other is not None and other.verdict == "feasible":
                    hit = count
                    break
                last = count
            for _ in range(5 if hit else 0):
                middle = self.whole((last + hit) / 2)
                if middle in (last, hit):
                    break
                other = self.count(middle)
                last, hit = (
                    (last, middle)
                    if other is not None and other.verdict == "feasible"
                    else (middle, hit)
                )

    def whole(self, devices: float) -> int:
        """A count of whole nodes."""
        node = max(self.before.resolved.cluster.devices_per_node, 1)
        return max(node, round(devices / node) * node)

    def count(self, devices: int):
        if devices == self.before.resolved.cluster.devices or devices > LARGEST:
            return None
        ratio = devices / self.before.resolved.cluster.devices
        return self.assess(
            Change(
                2.5 + abs(math.log2(ratio)),
                f"{devices:,} devices ({ratio:.3g} times)",
                {"cluster.devices": devices},
            )
        )

    def pairs(self):
        """Another chip or precision together with more devices, where no single change suffices."""
        singles = [c for c in site_changes(self.before) if c.kind in ("chip", "precision")]
        for change in singles[:3]:
            for scale in (2, 4, 16, 64) if not self.fits else (1.5, 2, 4):
                devices = self.whole(self.before.resolved.cluster.devices * scale)
                if devices > LARGEST or "dp" in self.design.plan.given():
                    break
                other = self.assess(
                    Change(
                        change.effort + 2.5 + math.log2(scale),
                        f"{change.text}, and {devices:,} devices",
                        {**change.set, "cluster.devices": devices},
                        change.kind,
                    )
                )
                if other is not None and other.verdict == "feasible":
                    break

    def answer(self, most: int) -> list[dict]:
        """Feasible first, smallest effort first; one row of each kind of change; the closest misses
        where no real change suffices."""
        feasible = _one_each(
            _worth(
                sorted((k for k in self.kept if k[1]["verdict"] == "feasible"), key=lambda k: k[0])
            )
        )
        real = any(not k[1]["_change"].gives_way for k in feasible)
        rest = _one_each(
            sorted(
                (
                    k
                    for k in self.kept
                    if k[1]["verdict"] != "feasible" and not k[1]["_change"].gives_way
                ),
                key=self.distance,
            )
        )
        rest = [k for k in rest if self.nearer(k[1])] or rest[:1]
        shown = feasible[:most] if real else feasible[: max(most - CLOSEST, 1)] + rest[:CLOSEST]
        if not shown:
            shown = rest[:most]
        return [{k: v for k, v in row.items() if k != "_change"} for _, row in shown]

    def nearer(self, row) -> bool:
        """Whether a change that does not suffice meets one constraint more, or closes a share
        WORTH_SHOWING of the gap to an MFU floor, deadline or budget."""
        if not self.fits or len(row["missed"]) < len(self.missed):
            return True
        return any(
            math.log(row[CONSTRAINTS[f].figure] / m.value) / math.log(m.limit / m.value)
            >= WORTH_SHOWING
            for f, m in self.missed.items()
            if f in CONSTRAINTS and CONSTRAINTS[f].band
        )

    def distance(self, kept) -> tuple:
        """Fewest constraints missed, then the best MFU (or the fewest days), then the least
        effort."""
        effort, row = kept
        by = (
            -row["mfu"]
            if "min_mfu" in self.missed or row["days"] is None
            else row["cost_usd"] or 0
            if "budget_usd" in self.missed
            else row["days"]
        )
        return len(row["missed"]), by, effort


def _one_each(kept) -> list:
    """The first row of each kind: device counts, chips, fabrics; what is of no kind stays."""
    seen, out = set(), []
    for row in kept:
        change = row[1]["_change"]
        kind = change.kind or ("devices" if set(change.set) == {"cluster.devices"} else None)
        if kind not in seen:
            out.append(row)
        if kind:
            seen.add(kind)
    return out


def _worth(kept) -> list:
    """Without more devices that finish no sooner than a smaller change on the devices there are."""
    best, out = math.inf, []
    for effort, row in kept:
        more = set(row["set"]) == {"cluster.devices"}
        if not more or row["days"] is None or row["days"] < best:
            out.append((effort, row))
        if not more and not row["_change"].gives_way and row["days"] is not None:
            best = min(best, row["days"])
    return out


def cheaper(assessment, most: int = 5) -> list[dict]:
    """Changes to a feasible design that cost less and take no longer (or stay within its deadline):
    same rows as `fixes`, cheapest first.

    Empty without tokens or a price.
    """
    if assessment.verdict != "feasible" or assessment.cost_usd is None:
        return []
    trial = Trial(assessment)
    wants = assessment.resolved.constraints
    most_days = wants.deadline_days if wants.deadline_days is not None else assessment.days * 1.0001
    for change in (*plan_changes(assessment), *site_changes(assessment)):
        trial.assess(change)
    for scale in FEWER_DEVICES:
        trial.count(trial.whole(assessment.resolved.cluster.devices * scale))
    rows = [
        row
        for _, row in trial.kept
        if row["verdict"] == "feasible"
        and row["days"] <= most_days
        and row["cost_usd"] is not None
        and row["cost_usd"] < assessment.cost_usd * 0.995
    ]
    rows.sort(key=lambda r: r["cost_usd"])
    return [{k: v for k, v in row.items() if k != "_change"} for row in rows[:most]]
