"""What a result hangs on: each input a realistic step down and up, the plan searched again for
each; the largest swing first."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import DesignError
from ..verdict.assess import assess
from .moves import scale_out_steps

HBM = "cluster.accelerator.hbm_gbytes_per_s"
LINK = "cluster.accelerator.link_gbytes_per_s"


@dataclass(frozen=True)
class Input:
    """One input with a step down and up: fields of the design to set (None: no such side), words
    for both, and why so far."""

    what: str
    low: dict | None
    low_says: str
    high: dict | None
    high_says: str
    why: str


def inputs(assessment) -> list[Input]:
    """The inputs of a design and how far each may realistically lie from what was said.

    Rates: what large runs measure against the rated figure. Failure rates and repair: the spread of
    published fleets. Prices: contract
    against on-demand. Counts and batch: the next round number that a planner would consider.
    """
    r, e = assessment.resolved, assessment.endurance
    cluster, job, phase = r.cluster, r.job_path, r.main_phase
    node = cluster.devices_per_node
    out = [
        _whole(
            "Devices",
            "cluster.devices",
            cluster.devices,
            0.5,
            2,
            node if cluster.devices >= 2 * node else 1,
            "devices",
            "half or twice the allocation",
        ),
        _rate(
            "HBM bandwidth",
            HBM,
            cluster.accelerator.hbm_bytes_per_s,
            0.9,
            1.1,
            "GB/s",
            "achieved shares of the rate differ by a tenth between chips and kernels",
        ),
        _rate(
            "Scale-up bandwidth",
            LINK,
            cluster.scale_up_bytes_per_s,
            0.75,
            1.25,
            "GB/s",
            "achieved shares of NVLink's rate in nccl-tests span a quarter",
        ),
        _scale_out(cluster),
        Input(
            "Oversubscription",
            None,
            "",
            {"cluster.oversubscription": 2 * max(cluster.oversubscription, 1.0)},
            "twice",
            "a thinner top of the fabric",
        ),
        _whole(
            "Global batch",
            f"{job}.global_batch",
            phase.global_batch,
            0.5,
            2,
            1,
            "sequences",
            "the critical batch is known to a factor of two",
        ),
    ]
    if not r.measured and assessment.phases:
        low, high = assessment.step_s_low, assessment.step_s_high
        out.insert(
            1,
            Input(
                "Efficiency",
                {"measured.step_s": high},
                f"step {high:.3g} s",
                {"measured.step_s": low},
                f"step {low:.3g} s",
                "the 80 % band of the step: what kernels and network are known to reach",
            ),
        )
    rate = float(getattr(e, "failures_per_1000_node_days", 0) or 0)
    if rate > 0:
        out.append(
            _number(
                "Failure rate",
                "reliability.failures_per_1000_node_days",
                rate,
                0.5,
                2,
                "per 1,000 node-days",
                "published fleets differ by more than twice either way",
            )
        )
    out.append(
        _number(
            "Restart",
            "reliability.restart_s",
            float(e.restart_s),
            0.5,
            2,
            "s",
            "from warm processes to a cold start of the job",
        )
    )
    out.append(
        _number(
            "Stall of a save",
            "reliability.checkpoint_stall_s",
            float(e.checkpoint_stall_s),
            0.2,
            3,
            "s",
            "asynchronous against blocking saves",
        )
    )
    if assessment.cost is not None and assessment.cost.usd_per_device_hour:
        out.append(
            _number(
                "Price",
                "prices.usd_per_device_hour",
                float(assessment.cost.usd_per_device_hour),
                0.75,
                1.3,
                "USD",
                "contract against on-demand",
            )
        )
    if phase.precision in ("bf16", "fp16") and cluster.accelerator.fp8_flops > 0:
        out.append(
            Input(
                "Precision",
                None,
                "",
                {"job.precision": "fp8"},
                "fp8",
                "to be confirmed by an ML specialist",
            )
        )
    pins = assessment.design.plan.given()
    now = assessment.chosen.plan if assessment.phases else {}
    for field, name in (("micro_batch", "Micro-batch"), ("tp", "TP")):
        value = now.get(field)
        if value and field not in pins:
            out.append(
                Input(
                    name,
                    {f"plan.{field}": value // 2} if value > 1 else None,
                    f"{field} {value // 2}",
                    {f"plan.{field}": value * 2},
                    f"{field} {value * 2}",
                    "the plan's next value, all else searched again",
                )
            )
    return out


def tornado(assessment, key: str = "step_s", progress=None, over=None) -> list[dict]:
    """Rows {what, low, high, low_says, high_says, swing, why} of a headline quantity (a key of the
    assessment), the largest swing first.

    low and high are the quantity with the input a step down and up, None where the design does not
    allow the step or nothing fits.
    swing is the larger distance from today's value as a share of it. What moves nothing is left
    out.
    Raises KeyError for a key that the assessment does not have.
    """
    now = assessment.headline()[key]
    rows = []
    todo = list(inputs(assessment) if over is None else over)
    for i, one in enumerate(todo):
        low, high = (_value(assessment.design, fields, key) for fields in (one.low, one.high))
        if now and any(v is not None and abs(v / now - 1) > 1e-4 for v in (low, high)):
            swing = max(abs(v / now - 1) for v in (low, high) if v is not None)
            rows.append(
                dict(
                    what=one.what,
                    low=low,
                    high=high,
                    low_says=one.low_says if one.low else "",
                    high_says=one.high_says if one.high else "",
                    swing=swing,
                    why=one.why,
                )
            )
        if progress:
            progress(i + 1, len(todo))
    return sorted(rows, key=lambda row: -row["swing"])


def _value(design, fields, key):
    if not fields:
        return None
    try:
        a = assess(design.change(fields))
    except DesignError:
        return None
    return a.headline()[key] if a.fits else None


def _whole(what, field, value, low, high, step, unit, why) -> Input:
    sides = [max(step, int(round(value * x / step)) * step) for x in (low, high)]
    return Input(
        what,
        {field: sides[0]} if sides[0] != value else None,
        f"{sides[0]:,} {unit}",
        {field: sides[1]},
        f"{sides[1]:,} {unit}",
        why,
    )


def _number(what, field, value, low, high, unit, why) -> Input:
    says = lambda x: f"{x:,.0f} {unit}" if x >= 1000 else f"{x:.3g} {unit}"  # noqa: E731
    return Input(
        what,
        {field: value * low},
        says(value * low),
        {field: value * high},
        says(value * high),
        why,
    )


def _rate(what, field, value, low, high, unit, why) -> Input:
    return _number(what, field, value / 1e9, low, high, unit, why)


def _scale_out(cluster) -> Input:
    slower, faster = scale_out_steps(cluster)
    return Input(
        "Interconnect",
        {"cluster.scale_out": slower.id} if slower else None,
        slower.name if slower else "",
        {"cluster.scale_out": faster.id} if faster else None,
        faster.name if faster else "",
        "the next slower and faster fabric of the catalogue",
    )
