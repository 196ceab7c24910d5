"""A measured step beside what is believed possible, part by part, and beside published runs: what
differs, and how much of the ratio each part of the step explains.

Rates are compared as shares of the peak (MFU), so that other models and chips can stand beside.
With u_p the seconds of a part over those of the model's arithmetic at the peak, 1 / MFU = sum of
u_p, and a part explains (u_p - u_p') / (sum u - sum u') of ln(MFU' / MFU).
"""

from dataclasses import replace

import numpy as np

from .. import catalogue
from ..base.records import fields_of
from ..evidence.runs import read_runs, to_runs
from ..physics.bands import nearest_runs
from ..physics.cases import Cases
from ..physics.step import PARTS, rates, step_time
from .reading import Reading
from .rows import spoken
from .site import Point, one, seconds_of

NEAREST = 3
LEAST = 0.01  # shares of a step that are told


def parts_of(case: Cases) -> tuple[np.ndarray, float]:
    """(seconds of each part over those of the arithmetic at the peak, MFU) of one case."""
    step = step_time(case)
    mfu = one(rates(case, step.total)[2])
    return np.array([*seconds_of(step).values()]) / one(step.total) / mfu, mfu


def nearest(point: Point) -> list[dict]:
    """The published runs nearest to a measured step: my MFU over theirs, measured and as foretold,
    what differs, and the share of the foretold ratio that each part explains."""
    own, mfu = parts_of(point.case)
    chip = catalogue.accelerator(point.accelerator)
    near = {
        r["id"]: r
        for r in nearest_runs(
            point.case,
            NEAREST,
            chip=chip.id,
            family=chip.family,
        )
    }
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    runs = to_runs(frame[frame.id.isin(list(near))].reset_index(drop=True))
    out = []
    for i, run in enumerate(runs.ids[runs.ready]):
        parts, there = parts_of(runs.cases.take(slice(i, i + 1)))
        gap = own - parts
        out.append(
            fields_of(near[run], ("id", "source", "differs", "distance"))
            | {
                "ratio": mfu * point.foretold_s / point.measured_s / near[run]["mfu"],
                "ratio_foretold": mfu / there,
                "explains": {
                    name: round(float(g / gap.sum()), 3)
                    for name, g in zip(PARTS, gap)
                    if abs(g) > LEAST * own.sum()
                },
            }
        )
    return sorted(out, key=lambda run: run["distance"])


def diagnosed(reading: Reading, point: Point) -> Reading:
    """A reading with `believed`: the step that published runs make possible, with its 80 % range
    for a strange site and the seconds of its parts; and `published`: the nearest runs."""
    if not point.measured_s:
        return reading
    step = step_time(point.case)
    spread = spoken("site")
    wide = np.exp(spread["z80"] * np.hypot(spread["between"], spread["within"]))
    return replace(
        reading,
        believed={
            "step_s": point.foretold_s,
            "low_s": point.foretold_s / wide,
            "high_s": point.foretold_s * wide,
            "unexplained_s": point.measured_s - point.foretold_s,
            "parts_s": {n: s for n, s in seconds_of(step).items() if s > LEAST * point.foretold_s},
        },
        published=nearest(point),
    )
