"""A measured step beside what is believed possible, part by part, and beside published runs: what
differs, and how much of the ratio each part of the step explains.

Rates are compared as shares of the peak (MFU), so that other models and chips can stand beside.
With u_p the seconds of a part over those of the model's arithmetic at the peak, 1 / MFU = sum of
u_p, and a part explains (u_p - u_p') / (sum u - sum u') of ln(MFU' / MFU).

A difference of settings explains the factor by which the foretold MFU moves as it is taken over
from one run to the other, the mean of one order of taking them over and the reverse. The factors,
that of what is left unexplained among them, multiply to the measured ratio.
"""

from dataclasses import replace
from math import prod

import numpy as np
from scantling import catalogue
from scantling.base.records import fields_of
from scantling.physics.bands import nearest_runs
from scantling.physics.cases import Cases
from scantling.physics.step import PARTS, rates, step_time
from scantling.runs.read import read_runs, to_runs

from .reading import Reading
from .rows import spoken
from .site import Point, one, seconds_of

NEAREST = 3
LEAST = 0.01  # shares of a step that are told
SAME = 1e-3  # of a factor: no difference


def parts_of(case: Cases) -> tuple:
    """(seconds of each part over those of the arithmetic at the peak, MFU) of one case."""
    step = step_time(case)
    mfu = one(rates(case, step.total)[2])
    return np.array([*seconds_of(step).values()]) / one(step.total) / mfu, mfu


def with_settings(case: Cases, other: Cases, paths: list) -> Cases:
    """A case with the settings at paths ("plan.tp", "shape") of another."""
    for path in paths:
        name, _, field = path.partition(".")
        own = getattr(other, name)
        if field:
            own = replace(getattr(case, name), **{field: getattr(own, field)})
        case = replace(case, **{name: own})
    return case


def factors(here: Cases, there: Cases, ratio: float) -> dict:
    """{setting: factor on the foretold MFU} of what differs between two runs, "unexplained" among
    them: together they are the `ratio` of the MFU here to that there."""
    settings = spoken("site")["settings"]
    told = dict.fromkeys(settings, 1.0)
    for order in (settings, reversed(settings)):
        case = there
        last = parts_of(case)[1]
        for name in order:
            case = with_settings(case, here, settings[name])
            mfu = parts_of(case)[1]
            told[name] *= float(mfu / last) ** 0.5
            last = mfu
    told = {name: factor for name, factor in told.items() if abs(factor - 1) > SAME}
    return told | {"unexplained": ratio / prod(told.values())}


def nearest(point: Point) -> list:
    """The published runs nearest to a measured step: my MFU over theirs, measured and as foretold,
    what differs, and the share of the foretold ratio that each part explains."""
    own, mfu = parts_of(point.case)
    chip = catalogue.accelerator(point.accelerator)
    near = {r["id"]: r for r in nearest_runs(point.case, NEAREST, chip=chip.id, family=chip.family)}
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    runs = to_runs(frame[frame.id.isin(list(near))].reset_index(drop=True))
    out = []
    for i, run in enumerate(runs.ids[runs.ready]):
        case = runs.cases.take(slice(i, i + 1))
        parts, there = parts_of(case)
        gap = own - parts
        ratio = mfu * point.foretold_s / point.measured_s / near[run]["mfu"]
        out.append(
            fields_of(near[run], ("id", "source", "differs", "distance"))
            | {
                "ratio": ratio,
                "factors": factors(point.case, case, ratio),
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
    reading = replace(reading, planned=point.planned)
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
