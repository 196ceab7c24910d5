"""A measured step beside what is believed possible, part by part, and beside published runs: what
differs, and how much of the ratio each part of the step explains.

Rates are compared as shares of the peak (MFU), so that other models and chips can stand beside.
With u_p the seconds of a part over those of the model's arithmetic at the peak, 1 / MFU = sum of
u_p, and a part explains (u_p - u_p') / (sum u - sum u') of ln(MFU' / MFU).

A difference of settings explains the factor by which the foretold MFU moves as it is taken over
from one run to the other, the mean of one order of taking them over and the reverse. The factors,
that of what is left unexplained among them, multiply to the measured ratio.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.endure.cost import Z80
from scantling.physics.bands import nearest_runs
from scantling.physics.cases import Cases
from scantling.physics.learned import priors, variance_before
from scantling.physics.step import PARTS, rates, step_time
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs

from .log_reading import Believed, Nearby, Reading
from .point import Point
from .step_parts import one, seconds_of

NEAREST = 3
LEAST = 0.01  # shares of a step that are told
SAME = 1e-3  # of a factor: no difference


class Parts(NamedTuple):
    """Seconds of each part of a step over those of the arithmetic at the peak, and its MFU."""

    shares: Array
    mfu: float


def parts_of(case: Cases) -> Parts:
    """The parts of the step of one case."""
    step = step_time(case)
    mfu = one(rates(case, step.total).mfu)
    seconds = np.array([*seconds_of(step).values()])
    return Parts(seconds / one(step.total) / mfu, mfu)


# What may differ between two runs: each function gives a case with the settings of another.


def with_model(case: Cases, other: Cases) -> Cases:
    """With the model of another."""
    return replace(case, shape=other.shape)


def with_machine(case: Cases, other: Cases) -> Cases:
    """With the accelerator, the links, the precision and the software of another."""
    job = replace(
        case.job,
        precision=other.job.precision,
        optimizer_bytes=other.job.optimizer_bytes,
        master_bytes=other.job.master_bytes,
        grad_bytes=other.job.grad_bytes,
    )
    return replace(
        case,
        chip=other.chip,
        link=other.link,
        software=other.software,
        constants=other.constants,
        job=job,
    )


def with_seq_len(case: Cases, other: Cases) -> Cases:
    """With the sequence length of another."""
    return replace(case, job=replace(case.job, seq_len=other.job.seq_len))


def with_devices(case: Cases, other: Cases) -> Cases:
    """With the replicas and the batch of another."""
    case = replace(case, job=replace(case.job, global_batch=other.job.global_batch))
    return replace(case, plan=replace(case.plan, dp=other.plan.dp))


def with_tp(case: Cases, other: Cases) -> Cases:
    """With the tensor parallelism of another."""
    return replace(case, plan=replace(case.plan, tp=other.plan.tp, sp=other.plan.sp))


def with_pp(case: Cases, other: Cases) -> Cases:
    """With the pipeline of another."""
    plan = other.plan
    case = replace(case, layout=other.layout)
    return replace(
        case,
        plan=replace(
            case.plan,
            pp=plan.pp,
            vpp=plan.vpp,
            schedule=plan.schedule,
            layer_split=plan.layer_split,
        ),
    )


def with_cp(case: Cases, other: Cases) -> Cases:
    """With the context parallelism of another."""
    return replace(case, plan=replace(case.plan, cp=other.plan.cp, cp_type=other.plan.cp_type))


def with_ep(case: Cases, other: Cases) -> Cases:
    """With the expert parallelism of another."""
    return replace(case, plan=replace(case.plan, ep=other.plan.ep, etp=other.plan.etp))


def with_micro_batch(case: Cases, other: Cases) -> Cases:
    """With the micro-batch of another."""
    return replace(case, plan=replace(case.plan, micro_batch=other.plan.micro_batch))


def with_recompute(case: Cases, other: Cases) -> Cases:
    """With the recompute and offloading of another."""
    plan = other.plan
    return replace(
        case,
        plan=replace(
            case.plan,
            recompute=plan.recompute,
            recompute_share=plan.recompute_share,
            offload=plan.offload,
        ),
    )


def with_sharding(case: Cases, other: Cases) -> Cases:
    """With the sharding of another."""
    return replace(
        case,
        plan=replace(case.plan, sharding=other.plan.sharding, shard_group=other.plan.shard_group),
    )


SETTINGS: Mapping[str, Callable[[Cases, Cases], Cases]] = {
    "model": with_model,
    "accelerator, precision, software": with_machine,
    "sequence length": with_seq_len,
    "devices and batch": with_devices,
    "tp": with_tp,
    "pp": with_pp,
    "cp": with_cp,
    "ep": with_ep,
    "micro-batch": with_micro_batch,
    "recompute": with_recompute,
    "sharding": with_sharding,
}


def factors(here: Cases, there: Cases, ratio: float) -> dict[str, float]:
    """{setting: factor on the foretold MFU} of what differs between two runs, "unexplained" among
    them: together they are the `ratio` of the MFU here to that there."""
    by_setting = dict.fromkeys(SETTINGS, 1.0)
    names = list(SETTINGS)
    for order in (names, names[::-1]):
        case = there
        last = parts_of(case).mfu
        for name in order:
            case = SETTINGS[name](case, here)
            mfu = parts_of(case).mfu
            by_setting[name] *= float(mfu / last) ** 0.5
            last = mfu
    different = {name: f for name, f in by_setting.items() if abs(f - 1) > SAME}
    return different | {"unexplained": ratio / prod(different.values())}


def nearest(point: Point) -> list[Nearby]:
    """The published runs nearest to a measured step: my MFU over theirs, measured and as foretold,
    what differs, and the share of the foretold ratio that each part explains."""
    if point.measured_s is None:
        return []
    here = parts_of(point.case)
    chip = catalogue.accelerator(point.accelerator)
    rows = {r["id"]: r for r in nearest_runs(point.case, NEAREST, chip=chip.id, family=chip.family)}
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    runs = to_runs(frame[frame.id.isin(list(rows))].reset_index(drop=True))
    near: list[Nearby] = []
    if runs.cases is None:
        return near
    for i, run in enumerate(runs.ids[runs.ready]):
        row = rows[run]
        case = runs.cases.take(slice(i, i + 1))
        there = parts_of(case)
        gap = here.shares - there.shares
        ratio = here.mfu * point.foretold_s / point.measured_s / row["mfu"]
        nearby = Nearby(
            id=row["id"],
            source=row["source"],
            differs=row["differs"],
            distance=row["distance"],
            ratio=ratio,
            factors=factors(point.case, case, ratio),
            ratio_foretold=here.mfu / there.mfu,
            explains={
                part: round(float(g / gap.sum()), 3)
                for part, g in zip(PARTS, gap)
                if abs(g) > LEAST * here.shares.sum()
            },
        )
        near.append(nearby)
    return sorted(near, key=lambda run: run["distance"])


def diagnosed(reading: Reading, point: Point) -> Reading:
    """A reading with `believed`: the step that published runs make possible, with its 80 % range
    for a strange site and the seconds of its parts; and `published`: the nearest runs."""
    reading = replace(reading, planned=point.planned)
    if not point.measured_s:
        return reading
    foretold_s = point.foretold_s
    sd = np.array([*priors().constants.values()])
    spread = float(np.exp(Z80 * np.sqrt(variance_before(point.marks, sd)[0])))
    parts_s = seconds_of(step_time(point.case))
    return replace(
        reading,
        believed=Believed(
            step_s=foretold_s,
            low_s=foretold_s / spread,
            high_s=foretold_s * spread,
            unexplained_s=point.measured_s - foretold_s,
            parts_s={part: s for part, s in parts_s.items() if s > LEAST * foretold_s},
        ),
        published=tuple(nearest(point)),
    )
