"""Which assumptions the days and the dollars of a design hang on most."""

from collections.abc import Iterable
from typing import NamedTuple

from scantling.advise.sensitivity import Input, inputs
from scantling.base.records import Assumed, Known
from scantling.base.show import percent
from scantling.design.design import Design
from scantling.plans.space import COARSE
from scantling.verdict.assess import assess, changed
from scantling.verdict.assessment import Assessment

SHOWN = 5


class Weighed(NamedTuple):
    """An assumption, and the share by which days (time for a token, where the run names none) and
    dollars move over its realistic range; None where that is not known."""

    assumed: Assumed
    days: float | None
    dollars: float | None


def weightiest(design: Design, assumptions: Iterable[Assumed]) -> list[Weighed]:
    """The assumptions that days and dollars hang on most, the heaviest first, by a coarse search
    at the ends of each one's realistic range; those without a range follow in their order."""
    by_field = {assumed.field: assumed for assumed in assumptions}
    assessment = assess(design, space=COARSE)
    weighed: dict[str, Weighed] = {}
    if assessment.phases:
        for one in [*inputs(assessment), *_lengths(assessment)]:
            field = next(iter(one.low or one.high or {}))
            if field in by_field:
                weighed[field] = _weighed(by_field[field], assessment, one)
    ranked = sorted(weighed.values(), key=_weight, reverse=True)
    rest = [Weighed(assumed, None, None) for field, assumed in by_field.items() if field in LEADING]
    rest = [one for one in rest if one.assumed.field not in weighed]
    heavy = [one for one in ranked if _weight(one) >= LEAST]
    return [*_unranged(rest), *heavy][:SHOWN]


def moves(one: Weighed) -> str:
    """By how much days and dollars move over the range of an assumption, in brackets."""
    parts = [] if one.days is None else [f"days ±{percent(one.days, 0)}"]
    parts += [] if one.dollars is None else [f"dollars ±{percent(one.dollars, 0)}"]
    return f" ({', '.join(parts)})" if parts else ""


# what no range is known of and everything hangs on: it is said first
LEADING = ("model", "model.size", "cluster.accelerator", "cluster.devices", "job.tokens")
LEAST = 0.0005  # share of days or dollars that is worth a line


def _unranged(rows: list[Weighed]) -> list[Weighed]:
    return sorted(rows, key=lambda one: LEADING.index(one.assumed.field))


def _lengths(assessment: Assessment) -> list[Input]:
    """The length of a sequence, half and twice of it."""
    resolved = assessment.resolved
    seq_len = resolved.main_phase.seq_len
    field = f"{resolved.job_path}.seq_len"
    return [
        Input(
            what="Sequence",
            low={field: max(1, seq_len // 2)},
            low_says="half",
            high={field: 2 * seq_len},
            high_says="twice",
            why="half or twice as long",
        )
    ]


def _weighed(assumed: Assumed, now: Assessment, one: Input) -> Weighed:
    days: list[float] = []
    dollars: list[float] = []
    for fields in (one.low, one.high):
        after = changed(now.design, fields, space=COARSE, like=now) if fields else None
        if after is None or not after.fits:
            continue
        days += _moved(now.days, after.days) or _moved(_a_token_s(now), _a_token_s(after))
        dollars += _moved(now.cost_usd, after.cost_usd)
    return Weighed(assumed, max(days, default=None), max(dollars, default=None))


def _a_token_s(assessment: Assessment) -> float:
    """Seconds of the cluster for a token."""
    return 1 / (assessment.tokens_per_s_per_device * assessment.devices_used)


def _moved(now: Known, then: Known) -> list[float]:
    """The share by which a figure moves; nothing where it is not known."""
    return [abs(then / now - 1)] if now and then is not None else []


def _weight(one: Weighed) -> float:
    return max(one.days or 0.0, one.dollars or 0.0)
