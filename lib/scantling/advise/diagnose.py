"""From a measured run back to its losses: which defect, how bad, would make this plan as slow as it
was, and what to measure to tell.

Every cause is one change to the case (a rate, a switch, the plan that was really in force), put
through the same models. A cause with a
size is solved for the size that explains the measurement; one without is compared with it. The
order is prior x likelihood, a guide to
what to look at first and not a probability to act on: causes combine, and the priors below are
judgement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.words import table
from ..catalogue.words import RECOMPUTES
from ..physics.cases import Cases
from ..physics.memory.peak import memory
from ..physics.step import rates, step_time
from ..plans.words import short
from ..verdict.assess import assess
from ..verdict.constraints import Z80
from ..verdict.numbers import utilisation
from .words import say

ENOUGH = 0.8  # share of the gap below which a cause does not explain it alone
MEMORY_SD = (
    0.10  # of ln(measured / predicted memory), the spread of the memory model over published peaks
)


@dataclass(
    frozen=True,
    kw_only=True,
)
class Cause:
    """One defect, a row of diagnose.yaml: prior weight, what it changes of a case at a size from 1
    (sound) to `worst`, sd of ln(size); worst None: it is there or not."""

    name: str
    prior: float
    part: str
    measure: str
    set: dict = field(
        default_factory=dict,
        hash=False,
    )
    divided: tuple[str, ...] = ()
    multiplied: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    worst: float | None = None
    sd: float = 0.0
    says: str = ""

    def change(
        self,
        case: Cases,
        size: float,
    ) -> Cases:
        """The case with the defect at a size."""
        of = getattr(case, self.part)
        to = self.set | {name: getattr(of, name) / size for name in self.divided}
        to |= {name: getattr(of, name) * size for name in self.multiplied}
        to |= {name: getattr(of, name) + ADDED[name](case) * (size - 1) for name in self.added}
        if self.part == "plan":
            codes = {k: RECOMPUTES.index(v) for k, v in to.items() if k == "recompute"}
            return case.with_plan(**to | codes)
        return replace(case, **{self.part: replace(of, **to)})


@dataclass(
    frozen=True,
    kw_only=True,
)
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


def _one_step(c: Cases) -> float:
    return float(step_time(c).total)


def _of_straggler(c: Cases) -> float:
    """What a node once more as slow adds to the constant, which counts doublings of nodes of 8."""
    plan = c.plan
    return 1 / np.log2(max(float(plan.tp * plan.pp * plan.dp * plan.cp) / 8, 2.0))


ADDED = {
    "straggler": _of_straggler,
    "step_host_s": _one_step,
}


def _causes(name: str) -> tuple[Cause, ...]:
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
    if not set(said) & {"step_s", "mfu", "tokens_per_s_per_device"}:
        raise ValueError(
            "measured.step_s, measured.mfu or measured.tokens_per_s_per_device is needed"
        )
    measured, chosen = a.step_s, a.chosen
    sound = assess(
        design.change(
            {
                "measured": None,
                **{f"plan.{k}": v for k, v in pins(chosen.plan).items()},
            }
        )
    )
    predicted = float(sound.chosen.step.total)
    low, high = sound.chosen.step_s_low, sound.chosen.step_s_high
    side = math.log(high / predicted) if measured > predicted else math.log(predicted / low)
    spread = max(side / Z80, 0.02)
    z = abs(math.log(measured / predicted)) / spread
    chance = 0.5 * math.erfc(z / math.sqrt(2))
    peak = said.get("memory_gb")
    rows = [
        _row(
            cause,
            sound.chosen.case,
            measured,
            predicted,
            spread,
            peak,
        )
        for cause in (SLOWER if measured > predicted else FASTER)
    ]
    rows = [r for r in rows if r and r["weight"] > 1e-6]
    total = sum(r["weight"] for r in rows) or 1.0
    rows = sorted(
        (
            {
                **r,
                "weight": r["weight"] / total,
            }
            for r in rows
        ),
        key=lambda r: -r["weight"],
    )
    lines = _lines(
        sound,
        measured,
        chance,
        rows,
        peak,
    )
    if not design.plan.given():
        lines.insert(1, say("not-pinned", plan=short(chosen.plan)))
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


def pins(plan: dict) -> dict:
    """The fields of a plan that a design file takes as pins."""
    out = {
        k: plan[k]
        for k in (
            "tp",
            "cp",
            "pp",
            "vpp",
            "dp",
            "sharding",
            "schedule",
            "micro_batch",
            "recompute",
            "offload",
            "sp",
        )
    }
    if plan["ep"] > 1 or plan["etp"] > 1:
        out |= {
            "ep": plan["ep"],
            "etp": plan["etp"],
        }
    if plan["sharding"] == "hsdp":
        out["shard_group"] = plan["shard_group"]
    if plan["recompute"] != "none":
        out["recompute_layers"] = plan["recompute_layers"]
    if plan["tp"] == 1:
        out.pop("sp")
    return out


def _row(
    cause: Cause,
    case: Cases,
    measured,
    predicted,
    spread,
    peak,
):
    at = lambda x: float(step_time(cause.change(case, x)).total)  # noqa: E731
    size, penalty = None, 0.0
    if cause.worst is None:
        seconds = at(1.0)
        if (
            abs(seconds / predicted - 1) < 0.01
            or (seconds - predicted) * (measured - predicted) < 0
        ):
            return None
    else:
        if at(cause.worst) / predicted - 1 < 0.01:
            return None
        lo, hi = 1.0, cause.worst
        for _ in range(30):
            mid = math.sqrt(lo * hi)
            lo, hi = (mid, hi) if at(mid) < measured else (lo, mid)
        size = math.sqrt(lo * hi)
        seconds = at(size)
        penalty = (math.log(size) / cause.sd) ** 2
    changed = cause.change(case, size or 1.0)
    again = lambda other: cause.change(other, size or 1.0)  # noqa: E731
    used = float(memory(changed).total)
    penalty += (math.log(measured / seconds) / spread) ** 2
    if peak is not None:
        penalty += (math.log(peak * 1e9 / used) / MEMORY_SD) ** 2
    return dict(
        cause=cause.name,
        weight=cause.prior * math.exp(-penalty / 2),
        size=None
        if size is None
        else cause.says.format(
            x=size,
            y=seconds - predicted,
        ),
        step_s=seconds,
        memory_bytes=used,
        explains=min((seconds - predicted) / (measured - predicted), 1.0),
        measure=cause.measure,
        _changed=again,
    )


def _lines(
    sound,
    measured: float,
    chance: float,
    rows: list[dict],
    peak: float | None,
):
    """What is measured and predicted, and the first causes, in words."""
    one = sound.chosen
    predicted, inside = one.step_s, one.step_s_low <= measured <= one.step_s_high
    word, apart = "slower" if measured > predicted else "faster", abs(measured / predicted - 1)
    mfu = utilisation(one, measured)["mfu"]
    out = [
        say(
            "measured",
            measured=measured,
            mfu=mfu,
            one=one,
            apart=apart,
            word=word,
        )
        + say(
            "measured-inside" if inside else "measured-outside",
            slow=word[:-2],
            chance=chance,
        )
    ]
    if peak is not None:
        used = float(one.memory.total) / 1e9
        full = peak * 1e9 > 0.9 * float(one.memory.capacity)
        out.append(
            say(
                "peak",
                peak=peak,
                used=used,
                more=peak / used - 1,
            )
            + (say("peak-full") if full else "")
        )
    for i, r in enumerate(rows[:5], 1):
        out.append(
            say(
                "cause",
                i=i,
                **r | {"size": f" ({r['size']})" if r["size"] else ""},
            )
        )
    if len(rows) > 1 and max(r["explains"] for r in rows) < ENOUGH:
        out.append(
            _at_once(
                rows[:5],
                one.case,
                measured,
                predicted,
            )
        )
    return out if rows else [*out, say("no-cause")]


def _at_once(
    rows,
    case,
    measured,
    predicted,
) -> str:
    """The first causes together, as many as it takes."""
    for row in rows:
        case = row["_changed"](case)
        seconds = _one_step(case)
        share = (seconds - predicted) / (measured - predicted)
        if share >= ENOUGH:
            break
    return say(
        "at-once",
        n=rows.index(row) + 1,
        seconds=seconds,
        share=share,
    )


def losses(assessment) -> list[dict]:
    """Where the step goes beside the matrix products, largest first: [{part, step_s, share, gain}];
    gain: MFU if that part were gone."""
    step_s = assessment.step_s
    _, _, mfu = rates(assessment.chosen.case, step_s)
    parts = [(k, v) for k, v in assessment.step_breakdown_s.items() if k != "gemm" and v > 0]
    return [
        dict(
            part=k,
            step_s=v,
            share=v / step_s,
            gain=float(mfu) * step_s / (step_s - v),
        )
        for k, v in sorted(parts, key=lambda part: -part[1])
    ]
