"""What a result hangs on: each input a realistic step down and up, the plan searched again for
each; the largest swing first."""

from functools import reduce

from ..base.errors import DesignError
from ..base.records import get, record
from ..base.words import table
from ..verdict.assess import changed
from ..verdict.record import Assessment
from .moves import scale_out_steps

NONE = (None, "")  # no step to this side


@record
class Input:
    """One input with a step down and up: fields of the design to set (None: no such side), words
    for both, and why so far."""

    what: str
    low: dict | None
    low_says: str
    high: dict | None
    high_says: str
    why: str


def inputs(assessment) -> list:
    """The inputs of a design, rows of sensitivity.yaml, and how far each may realistically lie from
    what was said."""
    own = _own_sides(assessment)
    out = []
    for row in table(__file__, "sensitivity"):
        what = row["what"]
        field = row["field"].format(job=assessment.resolved.job_path)
        sides = _scaled(assessment, row) if "value" in row else own.get(what)
        if sides:
            (low, low_says), (high, high_says) = sides
            out.append(
                Input(
                    what=what,
                    low=None if low is None else {field: low},
                    low_says="" if low is None else low_says,
                    high=None if high is None else {field: high},
                    high_says="" if high is None else high_says,
                    why=row["why"],
                )
            )
    return out


def _scaled(assessment, row: dict) -> list[tuple] | None:
    """Both sides of a number as (value, words): factors on it; None where it is not known."""
    factors = (row["low"], row["high"])
    unit = row["unit"]
    value = reduce(get, row["value"].split("."), assessment)
    if not value:
        return None
    if "whole" in row:
        cluster = assessment.resolved.cluster
        step = 1
        if row["whole"] == "nodes" and cluster.devices >= 2 * cluster.devices_per_node:
            step = cluster.devices_per_node
        sides = [max(step, round(value * x / step) * step) for x in factors]
        return [(None if side == value else side, f"{side:,} {unit}") for side in sides]
    sides = [float(value) / row.get("scale", 1.0) * x for x in factors]
    return [(x, f"{x:,.0f} {unit}" if x >= 1000 else f"{x:.3g} {unit}") for x in sides]


def _own_sides(assessment) -> dict:
    """Both sides, as (value, words), of what is no factor on a number."""
    r = assessment.resolved
    cluster = r.cluster
    out = {
        "Interconnect": tuple((f.id, f.name) if f else NONE for f in scale_out_steps(cluster)),
        "Oversubscription": (NONE, (2 * max(cluster.oversubscription, 1.0), "twice")),
    }
    if r.main_phase.precision in ("bf16", "fp16") and cluster.accelerator.fp8_flops > 0:
        out["Precision"] = NONE, ("fp8", "fp8")
    if not assessment.phases:
        return out
    if not r.measured:
        ends = assessment.step_s_high, assessment.step_s_low
        out["Efficiency"] = tuple((end, f"step {end:.3g} s") for end in ends)
    pins = assessment.design.plan.given()
    now = assessment.chosen.plan
    for field, what in (("micro_batch", "Micro-batch"), ("tp", "TP")):
        if field not in pins:
            half = now[field] // 2
            twice = now[field] * 2
            out[what] = (half or None, f"{field} {half}"), (twice, f"{field} {twice}")
    return out


def tornado(assessment: Assessment, key: str = "step_s", over: list[Input] | None = None) -> list:
    """Rows {what, low, high, low_says, high_says, swing, why} of a headline quantity (a key of the
    assessment), the largest swing first.

    low and high are the quantity with the input a step down and up, None where the design does not
    allow the step or nothing fits.
    swing is the larger distance from today's value as a share of it. What moves nothing is left
    out.
    Raises DesignError for a key that the assessment does not have.
    """
    figures = assessment.headline()
    if key not in figures:
        raise DesignError("key", key, figures)
    now = figures[key]
    rows = []
    for one in inputs(assessment) if over is None else over:
        ends = {}
        for end in ("low", "high"):
            fields = getattr(one, end)
            a = changed(assessment.design, fields, like=assessment) if fields else None
            ends[end] = a.headline()[key] if a and a.fits else None
        swing = max((abs(v / now - 1) for v in ends.values() if now and v is not None), default=0)
        if swing > 1e-4:
            rows.append({**vars(one), **ends, "swing": swing})
    return sorted(rows, key=lambda row: -row["swing"])
