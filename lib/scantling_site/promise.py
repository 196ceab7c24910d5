"""The date and the cost to promise: the band of the step, failures and the register of risks drawn
together."""

from functools import cache
from math import log
from zlib import crc32

import numpy as np
from scantling.advise import recovery
from scantling.advise.design_json import as_dict
from scantling.advise.trials import Trials
from scantling.base.columns import Array
from scantling.base.displayed import Figures
from scantling.base.records import Known
from scantling.base.stats import quantile_of
from scantling.base.units import DAY_S
from scantling.endure.cost import Z80, to_plan_for
from scantling.verdict.assessment import Assessment
from scantling.verdict.result import Contribution, Promise, Result

from .job_site import Site, site_of
from .risks.register import Risk, adds, risks

DRAWS = 8192
SEED = 0
# what the draws hold by themselves: the band of the step, the spread of the price
DRAWN = ("slow-step", "price")


def promise(assessment: Assessment) -> Promise | None:
    """The days and dollars to promise; None without tokens.

    Monte-Carlo of DRAWS runs. Days = useful time x step / estimate / goodput, the step log-normal
    with its 80 % band on either side; + failures, Poisson, each losing detection, restart, the time
    until durable and a uniform part of a period, less their mean, which is in the goodput; + every
    risk that the headline does not contain, by its chance, with its days; + the first start. What
    delays the start itself (a site delivered late) is no part of it. Cost = those days but the
    risks' x dollars a day, the price log-normal within its spread, + each risk's own dollars, so
    that no delay is paid twice. by : days and dollars that each adds on average. Risks are
    independent here; a common cause would lengthen the tail.
    """
    a = assessment
    if not a.phases or a.days is None or a.days_low is None or a.days_high is None:
        return None
    s = site_of(a)
    days = a.days * _between("step", a.days_low, a.days, a.days_high)
    lost = _failures(s, _stream("failures")) / DAY_S
    start = sum(s.e.first_step_s.values()) / DAY_S
    run = days + lost - lost.mean() + start
    drawn = [x for x in risks(s).rows if adds(x) and x.id not in DRAWN]
    struck = [_uniform(x.id) < x.likelihood for x in drawn]
    late = np.zeros(DRAWS)
    for hit, risk in zip(struck, drawn):
        late += hit * risk.impact_days
    total = run + late
    cost = _cost(s, run, struck, drawn)
    constraints = a.resolved.constraints
    days_mean, days_p10, days_p50, days_p90 = _spread(total)
    cost_mean, cost_p10, cost_p50, cost_p90 = _spread(cost)
    band = Contribution(
        what="a step that may be faster or slower",
        days=float(days.mean()) - a.days,
        usd=s.run.usd(float(days.mean()) - a.days),
    )
    first = Contribution(what="the first start", days=start, usd=s.run.usd(start))
    of_risks = [Contribution(what=x.risk, days=x.expected_days, usd=x.expected_usd) for x in drawn]
    return Promise(
        days_mean=days_mean,
        days_p10=days_p10,
        days_p50=days_p50,
        days_p90=days_p90,
        cost_mean=cost_mean,
        cost_p10=cost_p10,
        cost_p50=cost_p50,
        cost_p90=cost_p90,
        deadline_kept=_chance(total, constraints.deadline_days),
        budget_kept=_chance(cost, constraints.budget_usd),
        by=sorted([band, first, *of_risks], key=lambda row: -row["days"]),
        draws=DRAWS,
        seed=SEED,
    )


def _stream(name: str) -> np.random.Generator:
    """The random numbers of one thing that is drawn: the same in every design, whatever else is
    drawn, so that two designs differ by what they are and not by their draws."""
    return np.random.default_rng([SEED, crc32(name.encode())])


@cache
def _uniform(name: str) -> Array:
    """The uniform draws of one risk: the same in every design."""
    return _stream(name).random(DRAWS)


@cache
def _normal(name: str) -> Array:
    """The standard normal draws of one thing: the same in every design."""
    return _stream(name).standard_normal(DRAWS)


def _cost(s: Site, days: Array, struck: list[Array], drawn: list[Risk]) -> Array | None:
    """Dollars of each drawn run: its days at a drawn price, and the dollars of the risks that
    struck; None without a price."""
    cost = s.cost
    if s.run.usd_per_day is None or cost is None:
        return None
    low, mid, high = (
        cost.usd_per_device_hour_low,
        cost.usd_per_device_hour,
        cost.usd_per_device_hour_high,
    )
    dollars: Array = days * s.run.usd_per_day * _between("price", low, mid, high)
    of_risks = np.zeros(DRAWS)
    for hit, risk in zip(struck, drawn):
        of_risks += hit * (risk.impact_usd or 0.0)
    return dollars + of_risks


def _spread(drawn: Array | None) -> tuple[Known, Known, Known, Known]:
    """Mean, P10, median and P90 of a drawn figure; None where it is not known."""
    if drawn is None:
        return None, None, None, None
    ascending = np.sort(drawn)
    p10, p50, p90 = (quantile_of(ascending, share) for share in (0.1, 0.5, 0.9))
    return float(drawn.mean()), p10, p50, p90


def _chance(drawn: Array | None, most: Known) -> Known:
    """Chance of a value at most so large, (k + 1) / (n + 2) where k of n draws are (Laplace's rule
    of succession: no number of draws shows that none ever is); None where either is not known."""
    if drawn is None or most is None:
        return None
    return float((np.sum(drawn <= most) + 1) / (len(drawn) + 2))


def _between(name: str, low: Known, middle: Known, high: Known) -> Array:
    """Draws of value / middle, log-normal on each side, 80 % of them from low to high."""
    z = _normal(name) / Z80
    return np.exp(z * np.where(z < 0, _side(middle, low), _side(high, middle)))


def _side(above: Known, below: Known) -> float:
    """Log-width of one side of a band; none where an end is not known."""
    return log(max(above / below, 1.0)) if above and below else 0.0


def _failures(s: Site, rng: np.random.Generator) -> Array:
    """Seconds that failures cost in each drawn run: a compound Poisson sum, what one loses uniform
    over a period (the sum of n of them normal)."""
    n = rng.poisson(min(s.failures_per_day * s.run.days, 1e9), DRAWS)
    return n * s.failure_s + rng.standard_normal(DRAWS) * np.sqrt(n / 12) * s.period_s


def assessment_json(
    assessment: Assessment, advice: bool = True, others: Trials | None = None
) -> Result:
    """The keys of `design --json`: `advise.design_json.as_dict`, the promise, which takes the
    register of risks, and the cost to plan for; `advice=False` leaves what takes long empty, under
    the same keys. `others`: trials of the same assessment, from which what both ask is taken."""
    out = as_dict(assessment, advice, others)
    if not assessment.phases:
        return out
    promised = assessment.promise
    mean = promised["cost_mean"] if promised else None
    usd = out["cost_usd"]
    planned = None if mean is None or usd is None else to_plan_for(usd, mean)
    return {**out, "to_plan_for": planned, "promise": promised}


def goodput(assessment: Assessment) -> Figures:
    """The keys of `goodput --json`: `advise.recovery.goodput` and the promise."""
    likely = assessment.likely.row()
    return Figures(recovery.goodput(assessment), likely=likely, promise=assessment.promise)
