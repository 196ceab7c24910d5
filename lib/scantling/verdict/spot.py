"""The run on spot devices, beside the run as it is: its goodput, days and dollars."""

from ..base.records import Assumed, get, value_or
from ..base.show import days as shown_days, percent, seconds, usd
from ..base.units import DAY_S
from ..endure.cost import price
from ..endure.spot import NOTICE_S, REPLACEMENT_S, preempted
from .assessment import Assessment
from .numbers import useful_s
from .result import SpotRow


def spot(assessment: Assessment) -> SpotRow | None:
    """The run on the devices of `prices.spot`; None where the design states none, or no plan
    fits."""
    stated = assessment.resolved.prices.spot
    if stated is None or not assessment.phases:
        return None
    cluster, endurance = assessment.resolved.cluster, assessment.endurance
    assumed: list[Assumed] = []
    notice_s = float(value_or(stated, "prices.spot.notice_s", *NOTICE_S, assumed))
    replacement_s = float(value_or(stated, "prices.spot.replacement_s", *REPLACEMENT_S, assumed))
    run = preempted(
        endurance.life,
        stated.preemptions_per_day,
        notice_s,
        replacement_s,
        max(one.step_s for one in assessment.phases),
    )
    good = assessment.goodput * run.goodput / float(endurance.goodput)
    work_s = useful_s(assessment.phases, lambda one: one.step_s)
    wall_s = None if work_s is None else work_s / good
    cost_usd = None
    if wall_s is not None:
        prices = assessment.resolved.prices
        money = price(
            cluster,
            {
                "usd_per_device_hour": stated.usd_per_device_hour,
                "pue": get(prices, "pue"),
                "usd_per_kwh": get(prices, "usd_per_kwh"),
            },
            wall_s=wall_s,
            devices_paid=cluster.devices + endurance.spares * cluster.devices_per_node,
            goodput=good,
        )
        cost_usd = None if money.cost_usd is None else float(money.cost_usd)
    usual = assessment.cost_usd
    return {
        "usd_per_device_hour": stated.usd_per_device_hour,
        "preemptions_per_day": stated.preemptions_per_day,
        "notice_s": notice_s,
        "replacement_s": replacement_s,
        "save_s": run.save_s,
        "saved_in_notice": run.saved,
        "goodput": good,
        "checkpoint_interval_s": run.interval_s,
        "days": None if wall_s is None else wall_s / DAY_S,
        "cost_usd": cost_usd,
        "saved_usd": None if cost_usd is None or usual is None else float(usual) - cost_usd,
        "assumed": [one.row() for one in assumed],
    }


def spot_line(row: SpotRow) -> str:
    """What spot devices make of the run, in a line."""
    line = f"spot: goodput {percent(row['goodput'])}"
    if row["days"] is not None:
        line += f", {shown_days(row['days'])}"
    if row["cost_usd"] is not None:
        line += f" and {usd(row['cost_usd'])} at {usd(row['usd_per_device_hour'])} a device-hour"
    if row["cost_usd"] is not None and row["saved_usd"] is not None:
        line += f", undisturbed, in place of {usd(row['cost_usd'] + row['saved_usd'])}"
    line += (
        f"; {row['preemptions_per_day']:.3g} preemptions a day, {seconds(row['notice_s'])} of "
        f"notice, {seconds(row['replacement_s'])} to another node: a save takes "
        f"{seconds(row['save_s'])}, so that "
    )
    if row["saved_in_notice"]:
        line += "no work is lost"
    else:
        line += "the work since the last save is lost"
    if row["assumed"]:
        line += f" (assumed: {', '.join(one['field'] for one in row['assumed'])})"
    return line
