"""From a measured run back to its losses: which defect, how bad, would make this plan as slow as it
was, and what to measure to tell.

Every cause is one change to the case (a rate, a switch, the plan that was really in force), put
through the same models. A cause with a
size is solved for the size that explains the measurement; one without is compared with it. The
order is prior x likelihood, a guide to
what to look at first and not a probability to act on: causes combine, and the priors below are
judgement.
"""

from bisect import bisect_left
from dataclasses import field, replace
from functools import partial
from math import erfc, exp, log, sqrt

import numpy as np

from ..base.records import Known, Lines, record
from ..base.words import table
from ..catalogue.words import RECOMPUTES
from ..physics.cases import Cases
from ..physics.memory.peak import memory
from ..physics.step import rates, step_time
from ..plans.words import pins_of, short
from ..verdict.assess import assess
from ..verdict.constraints import Z80
from ..verdict.numbers import MEASURED_SPEEDS, utilisation
from .words import say

FINE = 2**24  # steps from a sound size to the worst, by ratio, among which one is solved for
ENOUGH = 0.8  # share of the gap below which a cause does not explain it alone
MEMORY_SD = (
    0.10  # of ln(measured / predicted memory), the spread of the memory model over published peaks
)


@record
class Cause:
    """One defect, a row of diagnose.yaml: prior weight, what it changes of a case at a size from 1
    (sound) to `worst`, sd of ln(size); worst None: it is there or not."""

    name: str
    prior: float
    part: str
    measure: str
    set: dict = field(default_factory=dict, hash=False)
    times: dict = field(default_factory=dict, hash=False)
    added: Lines = ()
    worst: Known = None
    sd: float = 0.0
    says: str = ""

    def change(self, case: Cases, size: float) -> Cases:
        """The case with the defect at a size."""
        of = getattr(case, self.part)
        to = self.set | {name: getattr(of, name) * size**by for name, by in self.times.items()}
        to |= {name: getattr(of, name) + ADDED[name](case) * (size - 1) for name in self.added}
        if self.part == "plan":
            codes = {k: RECOMPUTES.index(v) for k, v in to.items() if k == "recompute"}
            return case.with_plan(**to | codes)
        return replace(case, **{self.part: replace(of, **to)})


@record
class Diagnosis:
    """measured and predicted step [s], the band [s], whether the measurement lies in it, the chance
    of a run as slow, and the causes in order."""

    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    inside: bool
    chance: float  # that a sound run is as slow (or, where it was faster, as fast)
    causes: list  # [{cause, weight, size, step_s, memory_bytes, explains, measure}]
    lines: list  # for the reader


def _step_s(c: Cases) -> float:
    return float(step_time(c).total)


def _of_straggler(c: Cases) -> float:
    """What a node once more as slow adds to the constant, which counts doublings of nodes of 8."""
    plan = c.plan
    return 1 / np.log2(max(float(plan.tp * plan.pp * plan.dp * plan.cp) / 8, 2.0))


ADDED = {"straggler": _of_straggler, "step_host_s": _step_s}


def _causes(name: str) -> tuple:
    return tuple(Cause(**row) for row in table(__file__, "diagnose")[name])


SLOWER = _causes("slower")
FASTER = _causes("faster")


def diagnose(design) -> Diagnosis:
    """The likely losses of a measured run, most likely first. `design` carries `measured` (step_s,
    mfu or tokens_per_s_per_device; memory_gb too
    where known) and, best, the plan that ran, pinned.

    Raises ValueError where nothing that tells the step time was measured.
    """
    a = assess(design)
    if not a.phases:
        raise ValueError(
            "no plan of this design fits: there is nothing to compare a measurement with"
        )
    said = a.resolved.measured
    if not said.keys() & MEASURED_SPEEDS:
        raise ValueError(
            "measured.step_s, measured.mfu or measured.tokens_per_s_per_device is needed"
        )
    sound = assess(
        design.change({"measured": None, **{f"plan.{k}": v for k, v in pins_of(a.plan).items()}})
    ).chosen
    measured = a.step_s
    predicted = float(sound.step.total)
    low = sound.step_s_low
    high = sound.step_s_high
    slower = measured > predicted
    spread = max(log(high / predicted if slower else predicted / low) / Z80, 0.02)
    chance = 0.5 * erfc(abs(log(measured / predicted)) / spread / sqrt(2))
    peak = said.get("memory_gb")
    rows = [
        row
        for cause in (SLOWER if slower else FASTER)
        if (row := _row(cause, sound.case, measured, predicted, spread, peak))
        and row["weight"] > 1e-6
    ]
    total = sum(r["weight"] for r in rows)
    rows = [r | {"weight": r["weight"] / total} for r in rows]
    rows.sort(key=lambda r: -r["weight"])
    lines = _lines(sound, measured, chance, rows, peak)
    if not design.plan.given():
        lines.insert(1, say("not-pinned", plan=short(a.plan)))
    return Diagnosis(
        measured_s=measured,
        predicted_s=predicted,
        low_s=low,
        high_s=high,
        inside=low <= measured <= high,
        chance=chance,
        causes=[{k: v for k, v in r.items() if k != "_changed"} for r in rows],
        lines=lines,
    )


def _row(cause: Cause, case: Cases, measured, predicted, spread, peak):
    def at(size):
        return _step_s(cause.change(case, size))

    size = 1.0
    penalty = 0.0
    moved = at(cause.worst or size) / predicted - 1
    if abs(moved) < 0.01 or moved * (measured - predicted) < 0:
        return None
    if cause.worst:
        k = bisect_left(range(FINE), measured, key=lambda k: at(cause.worst ** (k / FINE)))
        size = cause.worst ** (k / FINE)
        penalty = (log(size) / cause.sd) ** 2
    seconds = at(size)
    used = float(memory(cause.change(case, size)).total)
    penalty += (log(measured / seconds) / spread) ** 2
    if peak is not None:
        penalty += (log(peak * 1e9 / used) / MEMORY_SD) ** 2
    more = seconds - predicted
    return {
        "cause": cause.name,
        "weight": cause.prior * exp(-penalty / 2),
        "size": cause.worst and cause.says.format(x=size, y=more),
        "step_s": seconds,
        "memory_bytes": used,
        "explains": min(more / (measured - predicted), 1.0),
        "measure": cause.measure,
        "_changed": partial(cause.change, size=size),
    }


def _lines(one, measured: float, chance: float, rows: list, peak: Known):
    """What is measured and predicted, and the first causes, in words."""
    predicted = one.step_s
    inside = one.step_s_low <= measured <= one.step_s_high
    word = "slower" if measured > predicted else "faster"
    out = [
        say(
            "measured",
            measured=measured,
            mfu=utilisation(one, measured)["mfu"],
            one=one,
            apart=abs(measured / predicted - 1),
            word=word,
        )
        + say("measured-inside" if inside else "measured-outside", slow=word[:-2], chance=chance)
    ]
    if peak is not None:
        used = float(one.memory.total) / 1e9
        line = say("peak", peak=peak, used=used, more=peak / used - 1)
        out.append(line + (say("peak-full") if peak * 1e9 > 0.9 * one.memory.capacity else ""))
    for i, r in enumerate(rows[:5], 1):
        out.append(say("cause", i=i, **r | {"size": f" ({r['size']})" if r["size"] else ""}))
    if not rows:
        return [*out, say("no-cause")]
    if len(rows) > 1 and max(r["explains"] for r in rows) < ENOUGH:
        out.append(_at_once(rows[:5], one.case, measured, predicted))
    return out


def _at_once(rows, case, measured, predicted) -> str:
    """The first causes together, as many as it takes."""
    for row in rows:
        case = row["_changed"](case)
        seconds = _step_s(case)
        share = (seconds - predicted) / (measured - predicted)
        if share >= ENOUGH:
            break
    return say("at-once", n=rows.index(row) + 1, seconds=seconds, share=share)


def losses(assessment) -> list:
    """Where the step goes beside the matrix products, largest first: [{part, step_s, share, gain}];
    gain: MFU if that part were gone."""
    total = assessment.step_s
    mfu = float(rates(assessment.chosen.case, total)[2])
    parts = [(k, v) for k, v in assessment.step_breakdown_s.items() if k != "gemm" and v > 0]
    return [
        {"part": k, "step_s": v, "share": v / total, "gain": mfu * total / (total - v)}
        for k, v in sorted(parts, key=lambda part: -part[1])
    ]
