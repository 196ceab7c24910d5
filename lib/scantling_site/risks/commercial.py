"""Trouble with time and money: a step slower than estimated, a site delivered late, a dearer
price."""

from math import log

from scantling.advise.measure import TIMED_STEPS
from scantling.base.records import Known
from scantling.base.units import DAY_S
from scantling.endure.cost import Z80, Cost, power_w

from ..constants import CONSTANTS
from ..facts import number, source
from ..job_site import Site
from .trouble import (
    CAPACITY_LEAD,
    EVEN,
    PERFORMANCE_ENGINEER,
    SIGNING,
    Trouble,
    days_of_step,
    mean_excess,
)

QUARTILE = 0.6745  # standard deviations: half of a normal law lies within


def slower_than_estimated(s: Site) -> Trouble | None:
    """The step at the upper edge of its band."""
    a = s.a
    high = a.step_s_high / a.step_s
    if high <= 1:
        return None
    days = s.run.days * mean_excess(log(high) / Z80)
    return Trouble(
        id="slow-step",
        risk="the step is slower than estimated",
        likelihood=EVEN,
        likelihood_from="the estimate is the median of its band",
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"MFU {a.mfu_shown:.1%}, 80 % band {a.mfu_shown_low:.1%} to {a.mfu_shown_high:.1%}; at "
            f"the low edge the run takes {days_of_step(s, high):.1f} days longer"
        ),
        mitigation=(
            "time twenty steps of this plan on one replica before signing and put the mean into "
            "the design as measured"
        ),
        left=EVEN * s.run.days * mean_excess(CONSTANTS.scatter / QUARTILE),
        mitigation_usd=s.run.usd(TIMED_STEPS * s.step_s / DAY_S),
        owner=PERFORMANCE_ENGINEER,
        by=SIGNING,
    )


def late_delivery(s: Site) -> Trouble | None:
    """A site of its own that is handed over months later than promised."""
    watts = float(power_w(s.cluster, s.run.devices_paid))
    if not watts >= CONSTANTS.dedicated_w:
        return None
    months = number("R144")
    late = months * (365.25 / 12)
    usd = usd_at_the_highest_price(s, min(late, s.run.days))
    return Trouble(
        id="late",
        risk="devices, power or fabric are delivered late",
        likelihood=number("R143") / 100,
        likelihood_from=source("R143"),
        days=late,
        usd=usd,
        before_start=True,
        evidence=(
            f"{watts / 1e6:.0f} MW is a site of its own; large ones slip by {months:g} months or "
            f"more; dollars: {_late_dollars(s.cost, usd)}"
        ),
        mitigation=(
            "take the site over pod by pod and start on the first; an option on rented devices"
        ),
        owner=CAPACITY_LEAD,
        by=SIGNING,
    )


def _late_dollars(cost: Cost | None, usd: Known) -> str:
    """How the dollars of a late site are counted."""
    if cost is None or usd is None:
        return "no dated price"
    return (
        "the same devices for those days at the highest published price, "
        f"${cost.usd_per_device_hour_high:.3g} instead of ${cost.usd_per_device_hour:.3g} an hour"
    )


def usd_at_the_highest_price(s: Site, days: float) -> Known:
    """What the paid devices cost more on so many days at the highest published price."""
    if s.cost is None or not s.cost.usd_per_device_hour:
        return None
    mid = s.cost.usd_per_device_hour
    high = s.cost.usd_per_device_hour_high or mid
    return (high - mid) * s.run.devices_paid * 24 * days


def dearer(s: Site) -> Trouble | None:
    """Devices at the highest observed price."""
    dearest = usd_at_the_highest_price(s, s.run.days)
    cost = s.cost
    if cost is None or not dearest or dearest < 0:
        return None
    return Trouble(
        id="price",
        risk="the devices cost more than the middle price",
        likelihood=EVEN,
        likelihood_from="the middle is the median of the observations",
        days=0.0,
        usd=dearest / 2,
        evidence=(
            f"${cost.usd_per_device_hour:.3g} per device-hour assumed; observed up to "
            f"${cost.usd_per_device_hour_high:.3g} ({cost.price_date}); half of that on average "
            "where it is above"
        ),
        mitigation="sign a contract and put its price into the design",
        left=0.0,
        mitigation_usd=0.0,
        owner=CAPACITY_LEAD,
        by=SIGNING,
    )
