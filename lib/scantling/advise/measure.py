"""What to find out first: the measurement, or the setting still open, that narrows days and dollars
most."""

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np

from ..base.records import Known, Lines, record
from ..endure.cost import at_one_price
from ..verdict.assessment import Assessment
from ..verdict.numbers import MEASURED_SPEEDS, DaysBand, band_factors, widening, with_bands
from ..verdict.result import Narrowed

WORTH = 0.02  # of the width of days or dollars that a row has to take away
# of the width that stays after a step timed on a few nodes (judgement: other nodes and later weeks)
LEFT_BY_A_STEP = 0.2
TIMED_STEPS = 20  # "twenty steps" of its sentence, and of the risk that they answer


@record
class Unknown:
    """Something that is worth knowing: what to do, and what is then known. `settles`: names of what
    widens a band (physics.bands.WIDER); `left`: share of the width that stays; `prices`: it settles
    the price of a device-hour."""

    what: str
    settles: Lines = ()
    left: float = 1.0
    prices: bool = False


def measure_first(assessment: Assessment) -> list[Narrowed]:
    """What is still open, the one that narrows days or dollars most first: [{what, narrows,
    days_low, days_high, cost_usd_low, cost_usd_high}].

    narrows : share of the width (ln high / low) of the likely days, or of the dollars where that is
    more, that knowing it takes away; the ends are those of the likely figures then. Empty without
    tokens.
    """
    if assessment.days is None or not assessment.fits:
        return []
    widens = widening(assessment.chosen)
    rows = [_narrowed(assessment, unknown, widens) for unknown in _unknowns(assessment, widens)]
    rows = [row for row in rows if row["narrows"] >= WORTH]
    return sorted(rows, key=lambda row: -row["narrows"])


def _unknowns(assessment: Assessment, widens: dict[str, Any]) -> Iterator[Unknown]:
    """What is still open of a design, in the order in which it is cheap to find out."""
    resolved = assessment.resolved
    untimed = not MEASURED_SPEEDS & resolved.measured.keys()
    if resolved.stack is None:
        yield Unknown(what="name the software (stack:), and its release", settles=("unseen stack",))
    if _price_open(assessment):
        yield Unknown(
            what="take an offer for these devices: prices.usd_per_device_hour", prices=True
        )
    if resolved.calibration is None and untimed:
        yield Unknown(
            what="time matrix products, an all-reduce and an all-to-all on one node and between "
            "two: scantling measure, calibration",
            settles=("unseen chip", "unseen family", "unseen stack"),
        )
    if untimed:
        yield Unknown(
            what="time twenty steps of this very model and plan, on as few replicas as hold it: "
            "measured.step_s",
            settles=tuple(widens),
            left=LEFT_BY_A_STEP,
        )


def _price_open(assessment: Assessment) -> bool:
    """Whether the price of a device-hour is known as a range alone."""
    money = assessment.cost
    if assessment.cost_usd is None or money is None:
        return False
    low, high = money.cost_usd_low, money.cost_usd_high
    return low is not None and high is not None and bool(low < high)


def _narrowed(assessment: Assessment, unknown: Unknown, widens: dict[str, Any]) -> Narrowed:
    """The likely days and dollars once a thing is known: the runs drawn again with the band of the
    step, or of the price, that is left. Failures and risks stay what they are."""
    after = {name: holds & (name not in unknown.settles) for name, holds in widens.items()}
    whole = np.log(band_factors(assessment.chosen, widens))
    left = np.log(band_factors(assessment.chosen, after))
    low, high = unknown.left * left / np.where(whole == 0, 1.0, whole)
    days = assessment.days or 0.0
    run = DaysBand(
        days=days,
        days_low=days * ((assessment.days_low or 0.0) / days) ** float(low),
        days_high=days * ((assessment.days_high or 0.0) / days) ** float(high),
    )
    money = assessment.cost
    if unknown.prices and money is not None:
        money = at_one_price(money)
    now, then = assessment.likely, with_bands(assessment, run, money).likely
    of_days = _narrowing((now.days_low, now.days_high), (then.days_low, then.days_high))
    of_dollars = _narrowing(
        (now.cost_usd_low, now.cost_usd_high), (then.cost_usd_low, then.cost_usd_high)
    )
    return Narrowed(
        what=unknown.what,
        narrows=max(of_days, of_dollars),
        band="days" if of_days >= of_dollars else "dollars",
        days_low=then.days_low,
        days_high=then.days_high,
        cost_usd_low=then.cost_usd_low,
        cost_usd_high=then.cost_usd_high,
    )


def _narrowing(now: tuple[Known, Known], then: tuple[Known, Known]) -> float:
    """Share of the width of a band that another leaves out; 0 where there is none."""
    (low_now, high_now), (low, high) = now, then
    if low is None or high is None or low_now is None or high_now is None:
        return 0.0
    if not (high_now > low_now > 0 and high >= low > 0):
        return 0.0
    return 1 - log(high / low) / log(high_now / low_now)
