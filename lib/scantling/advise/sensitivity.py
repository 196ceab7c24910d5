"""What a result hangs on: each input a realistic step down and up, the largest swing first. Rates
of memory and network leave the plan of each phase as it was chosen: the plainest of those near the
fastest is chosen, and another one would hide what the rate does. For all else the plan is searched
again.

Rates: what large runs measure against the rated figure. Failure rates and repair: the spread of
published fleets. Prices: contract against on-demand. Counts and batch: the next round number that a
planner would consider.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Known, record
from ..base.show import seconds
from ..base.units import GB
from ..catalogue.words import Precision
from ..plans.plan_names import pins_of
from ..verdict.assessment import Assessment
from .candidates import scale_out_steps
from .trials import Trials

MOVES = 1e-4  # share by which an input has to move a figure to be listed


class Side(NamedTuple):
    """A step of an input to one side: the value that its field takes, and words for it."""

    value: Any
    text: str


@record
class Input:
    """One input with a step down and up: fields of the design to set (None: no such side), words
    for both, and why so far."""

    what: str
    low: dict[str, Any] | None
    low_says: str
    high: dict[str, Any] | None
    high_says: str
    why: str


class Swing(TypedDict):
    """What an input does to a figure: the figure with it a step down and up, None where the design
    does not allow the step or nothing fits; swing: the larger distance from today's value as a
    share of it."""

    what: str
    low: Known
    low_says: str
    high: Known
    high_says: str
    why: str
    swing: float


def _input(what: str, field: str, low: Side | None, high: Side | None, why: str) -> Input:
    """An input that stands in one field of the design."""
    return Input(
        what=what,
        low=None if low is None else {field: low.value},
        low_says="" if low is None else low.text,
        high=None if high is None else {field: high.value},
        high_says="" if high is None else high.text,
        why=why,
    )


def _scaled(
    what: str, field: str, value: Known, factors: tuple[float, float], unit: str, why: str
) -> Input | None:
    """An input that is a number, in the unit of its field, and factors on it; None where it is not
    known."""
    if not value:
        return None
    low, high = (_side(float(value) * factor, unit) for factor in factors)
    return _input(what, field, low, high, why)


def _side(value: float, unit: str) -> Side:
    return Side(value, f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}")


def _halved(what: str, field: str, value: int, step: int, unit: str, why: str) -> Input:
    """An input that is a count: half and twice of it in whole steps, neither where it is the count
    itself."""
    low, high = (max(step, round(value * factor / step) * step) for factor in (0.5, 2))
    return _input(
        what,
        field,
        None if low == value else Side(low, f"{low:,} {unit}"),
        None if high == value else Side(high, f"{high:,} {unit}"),
        why,
    )


def inputs(assessment: Assessment) -> list[Input]:
    """The inputs of a design, and how far each may realistically lie from what was said."""
    return [*stated_inputs(assessment), *_of_the_plan(assessment)]


def stated_inputs(assessment: Assessment) -> list[Input]:
    """Those of them that are no choice of the plan: another plan is no uncertainty."""
    rows = [
        *_of_the_cluster(assessment),
        *_of_the_job(assessment),
        *(_with_plan(assessment, one) for one in _of_recovery(assessment)),
        *_precisions(assessment),
    ]
    return [row for row in rows if row is not None]


def _of_the_cluster(assessment: Assessment) -> Iterator[Input | None]:
    """Devices, rates and network, and the step that they allow."""
    resolved = assessment.resolved
    cluster = resolved.cluster
    node = cluster.devices_per_node
    yield _halved(
        "Devices",
        "cluster.devices",
        cluster.devices,
        node if cluster.devices >= 2 * node else 1,
        "devices",
        "half or twice the allocation",
    )
    if assessment.phases and not resolved.measured:
        slow, fast = assessment.step_s_high, assessment.step_s_low
        yield _input(
            "Efficiency",
            "measured.step_s",
            Side(slow, f"step {seconds(slow)}"),
            Side(fast, f"step {seconds(fast)}"),
            "the 80 % band of the step: what kernels and network are known to reach",
        )
    yield from (_with_plan(assessment, one) for one in _rates(assessment))


def _rates(assessment: Assessment) -> Iterator[Input | None]:
    """What memory and network reach, and the next fabrics."""
    cluster = assessment.resolved.cluster
    yield _scaled(
        "HBM bandwidth",
        "cluster.accelerator.hbm_gbytes_per_s",
        cluster.accelerator.hbm_bytes_per_s / GB,
        (0.9, 1.1),
        "GB/s",
        "achieved shares of the rate differ by a tenth between chips and kernels",
    )
    yield _scaled(
        "Scale-up bandwidth",
        "cluster.accelerator.link_gbytes_per_s",
        cluster.scale_up_bytes_per_s / GB,
        (0.75, 1.25),
        "GB/s",
        "achieved shares of NVLink's rate in nccl-tests span a quarter",
    )
    slower, faster = scale_out_steps(cluster)
    if slower or faster:
        yield _input(
            "Interconnect",
            "cluster.scale_out",
            Side(slower.id, slower.name) if slower else None,
            Side(faster.id, faster.name) if faster else None,
            "the next slower and faster fabric of the catalogue",
        )
    else:
        yield _scaled(
            "Interconnect",
            "cluster.scale_out_gbytes_per_s_per_device",
            cluster.scale_out_bytes_per_s / GB,
            (0.75, 1.25),
            "GB/s",
            "its nodes are sold with one network; shares of a rate that are reached span a quarter",
        )
    yield _input(
        "Oversubscription",
        "cluster.oversubscription",
        None,
        Side(2 * max(cluster.oversubscription, 1.0), "twice"),
        "a thinner top of the fabric",
    )


def _with_plan(assessment: Assessment, one: Input | None) -> Input | None:
    """The input with the plan of each phase held as it was chosen."""
    if one is None or not assessment.phases:
        return one
    job = assessment.design.job.stated()
    plans = {
        f"job.phases.{i}.plan" if job.get("phases") else "plan": pins_of(phase.plan)
        for i, phase in enumerate(assessment.phases)
    }
    held = {f"{path}.{name}": value for path, pins in plans.items() for name, value in pins.items()}
    low, high = ({**side, **held} if side else None for side in (one.low, one.high))
    return replace(one, low=low, high=high)


def _of_the_job(assessment: Assessment) -> Iterator[Input | None]:
    """The global batch."""
    resolved = assessment.resolved
    yield _halved(
        "Global batch",
        f"{resolved.job_path}.global_batch",
        resolved.main_phase.global_batch,
        1,
        "sequences",
        "the critical batch is known to a factor of two",
    )


def _of_recovery(assessment: Assessment) -> Iterator[Input | None]:
    """Failures, restarts and saves, and the price."""
    endurance = assessment.endurance
    if assessment.phases:
        yield _scaled(
            "Failure rate",
            "reliability.failures_per_1000_node_days",
            float(endurance.failures_per_1000_node_days),
            (0.5, 2),
            "per 1,000 node-days",
            "published fleets differ by more than twice either way",
        )
        yield _scaled(
            "Restart",
            "reliability.restart_s",
            float(endurance.restart_s),
            (0.5, 2),
            "s",
            "from warm processes to a cold start of the job",
        )
        yield _scaled(
            "Stall of a save",
            "reliability.checkpoint_stall_s",
            float(endurance.checkpoint_stall_s),
            (0.2, 3),
            "s",
            "asynchronous against blocking saves",
        )
    yield _scaled(
        "Price",
        "prices.usd_per_device_hour",
        assessment.cost.usd_per_device_hour if assessment.cost else None,
        (0.75, 1.3),
        "USD",
        "contract against on-demand",
    )


def _precisions(assessment: Assessment) -> Iterator[Input]:
    """A faster precision, where the chip has one."""
    resolved = assessment.resolved
    wide = resolved.main_phase.precision in (Precision.BF16, Precision.FP16)
    every = catalogue.eight_bit(resolved.cluster.accelerator)
    if wide and every:
        why = "to be confirmed by an ML specialist"
        eight = every[-1].value
        yield _input("Precision", "job.precision", None, Side(eight, eight), why)


def _of_the_plan(assessment: Assessment) -> Iterator[Input]:
    """The plan's own values where they are not pinned."""
    if not assessment.phases:
        return
    pins = assessment.design.plan.stated()
    plan = assessment.chosen.plan
    for field, what, now in (
        ("micro_batch", "Micro-batch", plan["micro_batch"]),
        ("tp", "TP", plan["tp"]),
    ):
        if field not in pins:
            half, twice, name = now // 2, now * 2, field.replace("_", "-")
            yield _input(
                what,
                f"plan.{field}",
                Side(half, f"{name} {half}") if half else None,
                Side(twice, f"{name} {twice}"),
                "the plan's next value, all else searched again",
            )


def tornado(
    assessment: Assessment,
    key: str = "step_s",
    over: Iterable[Input] | None = None,
    others: Trials | None = None,
) -> list[Swing]:
    """What each input does to a headline quantity (a key of the assessment), the largest swing
    first. What moves nothing is left out. `others`: as of `Trials`.

    Raises DesignError for a key that the assessment does not have.
    """
    figures = quantities(assessment)
    if key not in figures:
        raise DesignError("key", key, figures)
    now = figures[key]
    rows = []
    trials = Trials(assessment, others)
    for one in inputs(assessment) if over is None else over:
        low = _figure(trials, one.low, key)
        high = _figure(trials, one.high, key)
        ends = [end for end in (low, high) if now and end is not None]
        swing = max((abs(end / now - 1) for end in ends), default=0)
        if swing > MOVES:
            rows.append(
                Swing(
                    what=one.what,
                    low=low,
                    low_says=one.low_says,
                    high=high,
                    high_says=one.high_says,
                    why=one.why,
                    swing=swing,
                )
            )
    return sorted(rows, key=lambda row: -row["swing"])


def _figure(trials: Trials, fields: dict[str, Any] | None, key: str) -> Known:
    """A headline quantity of the design with these fields; None where nothing fits them."""
    after = trials.whole(fields) if fields else None
    if after is None or not after.fits:
        return None
    value: Known = quantities(after)[key]
    return value


def quantities(assessment: Assessment) -> Mapping[str, Any]:
    """The headline quantities by key, likely days and dollars among them."""
    likely = assessment.likely
    return {**assessment.headline(), "likely.days": likely.days, "likely.cost_usd": likely.cost_usd}
