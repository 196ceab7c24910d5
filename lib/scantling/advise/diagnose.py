"""From a measured run back to its losses: which defect, how bad, would make this plan as slow as it
was, and what to measure to tell.

Every cause is one change to the case (a rate, a switch, the plan that was really in force), put
through the same models. A cause with a size is solved for the size that explains the measurement;
one without is compared with it. What explains all of the loss leads, in the order of prior x
likelihood; the others follow by what they explain. It is a guide to what to look at first and not a
probability to act on: causes combine, and the priors are judgement. What the plan or the stack has
by itself, and the prediction with it, is named apart.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import erfc, exp, log, sqrt
from typing import NamedTuple, TypedDict

from ..base.records import record
from ..base.show import percent, share
from ..design.design import Design
from ..endure.cost import Z80
from ..physics.cases import Cases
from ..physics.memory.peak import memory
from ..plans.plan_names import pins_of, short
from ..verdict.assess import assess
from ..verdict.assessment import Chosen
from ..verdict.numbers import MEASURED_SPEEDS, utilisation
from .defects import BUILT_IN, FASTER, SLOWER, Cause, step_s
from .other_peaks import counted_anew

FINE = 2**24  # steps from a sound size to the worst, by ratio, among which one is solved for
ENOUGH = 0.8  # share of the gap below which a cause does not explain it alone
FULL_SHARE = 0.9  # of the device's memory, above which allocator retries alone can cost
# of ln(measured / predicted memory), the spread of the memory model over published peaks
MEMORY_SD = 0.10
LEAST_SPREAD = 0.02  # of ln(step): no model tells better
LEAST_WEIGHT = 1e-6  # of a cause that is named
NAMED = 5  # causes in the lines
WHOLE = 0.95  # share of the gap from which a cause explains all of it
# share of the predicted step above which something that the plan itself has is named
BUILT_IN_SHARE = 0.25


class CauseRow(TypedDict):
    """A cause with its weight among all, the size that explains the measurement in words, the step
    and the memory that it makes, the share of the gap that it explains, what to measure."""

    cause: str
    weight: float
    size: str | None
    step_s: float
    memory_bytes: float
    explains: float
    measure: str


@record
class Diagnosis:
    """What is behind a measured step."""

    measured_s: float
    predicted_s: float
    low_s: float  # the band
    high_s: float
    inside: bool  # whether the measurement lies in it
    chance: float  # that a sound run is as slow (or, where it was faster, as fast)
    causes: list[CauseRow]  # those that explain all of it first
    built_in: list[CauseRow]  # what the prediction itself has, by its share of the step
    lines: list[str]  # for the reader


@record
class Measurement:
    """A measured run beside what is predicted of it. Seconds a step, GB at the peak."""

    sound: Chosen  # the plan that ran, as computed
    measured_s: float
    peak_gb: float | None

    @property
    def predicted_s(self) -> float:
        """The step as computed."""
        return float(self.sound.step.total)

    @property
    def slower(self) -> bool:
        """Whether the run was slower than predicted."""
        return self.measured_s > self.predicted_s

    @property
    def gap_s(self) -> float:
        """Seconds of a step that are to be explained."""
        return self.measured_s - self.predicted_s

    @property
    def inside(self) -> bool:
        """Whether the measurement lies inside the band."""
        return self.sound.step_s_low <= self.measured_s <= self.sound.step_s_high

    @property
    def spread(self) -> float:
        """Standard deviation of ln(step) of a sound run, to the side of the measurement."""
        high, low = self.sound.step_s_high, self.sound.step_s_low
        width = high / self.predicted_s if self.slower else self.predicted_s / low
        return max(log(width) / Z80, LEAST_SPREAD)

    @property
    def chance(self) -> float:
        """Chance that a sound run is as slow, or as fast."""
        return 0.5 * erfc(abs(log(self.measured_s / self.predicted_s)) / self.spread / sqrt(2))


class Suspect(NamedTuple):
    """A cause at the size that explains the measurement."""

    cause: Cause
    size: float
    row: CauseRow


def diagnose(design: Design) -> Diagnosis:
    """The likely losses of a measured run, most likely first. `design` carries `measured` (step_s,
    mfu or tokens_per_s_per_device; memory_gb too where known) and, best, the plan that ran, pinned.

    Raises ValueError where nothing that tells the step time was measured.
    """
    assessment = assess(design)
    if not assessment.phases:
        raise ValueError(
            "no plan of this design fits: there is nothing to compare a measurement with"
        )
    measured = assessment.resolved.measured
    if not measured.keys() & MEASURED_SPEEDS:
        raise ValueError(
            "measured.step_s, measured.mfu or measured.tokens_per_s_per_device is needed"
        )
    pins = {f"plan.{name}": value for name, value in pins_of(assessment.plan).items()}
    sound = assess(design.change({"measured": None, **pins})).chosen
    run = Measurement(sound=sound, measured_s=assessment.step_s, peak_gb=measured.get("memory_gb"))
    suspects = _suspects(run)
    already = built_in(run)
    lines = _lines(run, suspects, already)
    if "mfu" in measured and not run.inside:
        lines[1:1] = _other_peak_lines(run, measured["mfu"])
    if not design.plan.stated():
        lines.insert(
            1,
            "the plan that ran is not in the design: the prediction is of the search's own "
            f"({short(assessment.plan)}); pin what ran before trusting the order below",
        )
    return Diagnosis(
        measured_s=run.measured_s,
        predicted_s=run.predicted_s,
        low_s=sound.step_s_low,
        high_s=sound.step_s_high,
        inside=run.inside,
        chance=run.chance,
        causes=[suspect.row for suspect in suspects],
        built_in=already,
        lines=lines,
    )


def _suspects(run: Measurement) -> list[Suspect]:
    """The causes that may explain a measurement, their weights summing to one: first those that
    explain all of it, the likeliest first, then the others by what they explain."""
    if abs(run.gap_s) < LEAST_SPREAD * run.predicted_s:
        return []
    candidates = [_suspect(cause, run) for cause in (SLOWER if run.slower else FASTER)]
    suspects = [s for s in candidates if s is not None and s.row["weight"] > LEAST_WEIGHT]
    total = sum(suspect.row["weight"] for suspect in suspects)
    for suspect in suspects:
        suspect.row["weight"] /= total
    return sorted(suspects, key=_order)


def _order(suspect: Suspect) -> tuple[float, float]:
    explains = suspect.row["explains"]
    return -min(explains, WHOLE), -suspect.row["weight"]


def built_in(run: Measurement) -> list[CauseRow]:
    """What the plan or its stack has by itself and the predicted step with it: each with the step
    without it and, as `explains`, the share of the predicted step that it takes."""
    case = run.sound.case
    rows = []
    for cause in BUILT_IN:
        if cause.possible is not None and not cause.possible(case):
            continue
        without = cause.change(case, 1.0)
        seconds = step_s(without)
        share_of_step = 1 - seconds / run.predicted_s
        if share_of_step < BUILT_IN_SHARE:
            continue
        rows.append(
            CauseRow(
                cause=cause.name,
                weight=share_of_step,
                size=None,
                step_s=seconds,
                memory_bytes=float(memory(without).total),
                explains=share_of_step,
                measure=cause.measure,
            )
        )
    return sorted(rows, key=lambda row: -row["explains"])


def _suspect(cause: Cause, run: Measurement) -> Suspect | None:
    """A cause at the size that explains the measurement best; None where it moves the step hardly
    or the other way."""
    case = run.sound.case
    if cause.possible is not None and not cause.possible(case):
        return None
    size = 1.0
    penalty = 0.0
    moved = step_s(cause.change(case, cause.worst or size)) / run.predicted_s - 1
    if abs(moved) < 0.01 or moved * run.gap_s < 0:
        return None
    if cause.worst:
        size = _solved(cause, cause.worst, run)
        penalty = (log(size / cause.usual) / cause.sd) ** 2
    defect = cause.change(case, size)
    seconds = step_s(defect)
    used = float(memory(defect).total)
    penalty += (log(run.measured_s / seconds) / run.spread) ** 2
    if run.peak_gb is not None:
        penalty += (log(run.peak_gb * 1e9 / used) / MEMORY_SD) ** 2
    more_s = seconds - run.predicted_s
    row = CauseRow(
        cause=cause.name,
        weight=cause.prior * exp(-penalty / 2),
        size=cause.says(size, more_s) if cause.says else None,
        step_s=seconds,
        memory_bytes=used,
        explains=min(more_s / run.gap_s, 1.0),
        measure=cause.measure,
    )
    return Suspect(cause, size, row)


def _solved(cause: Cause, worst: float, run: Measurement) -> float:
    """The size of a defect from which the step is as long as measured, at most the worst."""
    case = run.sound.case
    exponents = range(FINE)
    steps = bisect_left(
        exponents, run.measured_s, key=lambda k: step_s(cause.change(case, worst ** (k / FINE)))
    )
    return float(worst ** (steps / FINE))


def _lines(run: Measurement, suspects: Sequence[Suspect], already: Sequence[CauseRow]) -> list[str]:
    """What is measured and predicted, what the plan itself costs, the first causes, in words."""
    lines = [_measured_line(run)]
    if run.peak_gb is not None:
        lines.append(_peak_line(run, run.peak_gb))
    lines += [_built_in_line(row, run) for row in already]
    for i, (_, _, row) in enumerate(suspects[:NAMED], 1):
        size = f" ({row['size']})" if row["size"] else ""
        explained = percent(row["explains"], 0)
        lines.append(
            f"{i}. {row['cause']}{size}: explains {explained} of it; measure {row['measure']}"
        )
    if not suspects and not run.inside:
        lines.append(
            "no single cause that the kit knows explains it; pin the plan that ran and check the "
            "measurement's own arithmetic (tokens, devices, peak)"
        )
    elif max((s.row["explains"] for s in suspects), default=1.0) < ENOUGH:
        if len(suspects) > 1:
            lines.append(_at_once(suspects[:NAMED], run))
        else:
            lines.append(
                "it does not explain all of it: check the measurement's own arithmetic too"
            )
    return lines


def _built_in_line(row: CauseRow, run: Measurement) -> str:
    """What the predicted step has by itself, and what would take it away."""
    return (
        f"predicted with it: {row['cause']}, {percent(row['explains'], 0)} of the predicted step "
        f"({run.predicted_s:.4g} s; without it {row['step_s']:.4g} s); what helps: {row['measure']}"
    )


def _measured_line(run: Measurement) -> str:
    """The measured step against the predicted one."""
    sound = run.sound
    word = "slower" if run.measured_s > sound.step_s else "faster"
    mfu = percent(utilisation(sound, run.measured_s).mfu)
    apart = percent(abs(run.measured_s / sound.step_s - 1), 0)
    line = (
        f"measured {run.measured_s:.4g} s a step (MFU {mfu}), predicted {sound.step_s:.4g} s "
        f"({sound.step_s_low:.4g} to {sound.step_s_high:.4g}): {apart} {word}; "
    )
    if run.inside:
        return f"{line}inside the band, so it may be nothing but what the model cannot tell"
    slow = word.removesuffix("er")
    return f"{line}outside the band; a sound run is as {slow} in {share(run.chance)} of cases"


def _other_peak_lines(run: Measurement, stated: float) -> list[str]:
    """The stated MFU counted anew, where another peak than the dense one explains it."""
    resolved = run.sound.search.situation.resolved
    chip, precision = resolved.cluster.accelerator, run.sound.search.situation.phase.precision
    line = counted_anew(chip, precision, stated, utilisation(run.sound, run.predicted_s).mfu)
    return [line] if line else []


def _peak_line(run: Measurement, peak_gb: float) -> str:
    """The measured peak of the memory against the predicted one."""
    used_gb = float(run.sound.memory.total) / 1e9
    more = percent(peak_gb / used_gb - 1, 0, "+")
    line = f"measured {peak_gb:.4g} GB at the peak, predicted {used_gb:.4g} GB: {more}"
    if peak_gb * 1e9 > FULL_SHARE * run.sound.memory.capacity:
        line += (
            "; above nine tenths of the device, allocator retries alone can cost several per cent"
        )
    return line


def _at_once(suspects: Sequence[Suspect], run: Measurement) -> str:
    """The first causes together, as many as it takes."""
    case: Cases = run.sound.case
    together = 0
    seconds, explained = run.predicted_s, 0.0
    for cause, size, _ in suspects:
        case = cause.change(case, size)
        together += 1
        seconds = step_s(case)
        explained = (seconds - run.predicted_s) / run.gap_s
        if explained >= ENOUGH:
            break
    return (
        f"none of these alone explains it; the first {together} at once would make "
        f"{seconds:.4g} s, {percent(explained, 0)} of it"
    )
