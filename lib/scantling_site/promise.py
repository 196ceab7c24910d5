"""The date and the cost to promise: the band of the step, failures and the register of risks drawn
together."""

from math import log

import numpy as np
from scantling.advise import recovery
from scantling.advise.design_json import as_dict
from scantling.base.displayed import Figures
from scantling.base.units import DAY_S
from scantling.endure.cost import Z80, to_plan_for
from scantling.verdict.record import Assessment

from .risks.register import adds, risks
from .site import Site, site_of
from .texts import columns

DRAWS = 8192
SEED = 0
# what the draws hold by themselves: the band of the step, the spread of the price
DRAWN = ("slow-step", "price")


def promise(assessment: Assessment) -> dict | None:
    """{days_mean, days_p10, days_p50, days_p90, cost_mean, cost_p10, cost_p50, cost_p90,
    deadline_kept, budget_kept, by, draws, seed}; dollars None without a price, the chances
    of keeping the deadline and the budget where none is stated, all of it None without tokens.

    Monte-Carlo of DRAWS runs. Days = useful time x step / estimate / goodput, the step log-normal
    with its 80 % band on either side; + failures, Poisson, each losing detection, restart, the time
    until durable and a uniform part of a period, less their mean, which is in the goodput; + every
    risk that the headline does not contain, by its chance, with its days; + the first start. What
    delays the start itself (a site delivered late) is no part of it. Cost =
    those days but the risks' x dollars a day, the price log-normal within its spread, + each risk's
    own dollars, so that no delay is paid twice. by : days and dollars that each adds on average.
    Risks are independent here; a common cause would lengthen the tail.
    """
    if not assessment.phases or assessment.days is None:
        return None
    s = site_of(assessment)
    rng = np.random.default_rng(SEED)
    ends = (assessment.days_low, assessment.days, assessment.days_high)
    days = assessment.days * _between(rng, *ends)
    lost = _failures(s, rng) / DAY_S
    start = sum(s.e.first_step_s.values()) / DAY_S
    run = days + lost - lost.mean() + start
    found = [x for x in risks(s).rows if adds(x) and x.id not in DRAWN]
    struck = [rng.random(DRAWS) < x.likelihood for x in found]
    late = sum(hit * x.impact_days for hit, x in zip(struck, found)) + np.zeros(DRAWS)
    own = {"the band of the step": float(days.mean()) - assessment.days, "the first start": start}
    by = columns(
        what=[*own, *(x.risk for x in found)],
        days=[*own.values(), *(x.expected_days for x in found)],
        usd=[*map(s.run.usd, own.values()), *(x.expected_usd for x in found)],
    )
    cost = None
    if s.run.usd_per_day is not None and s.cost is not None:
        price = [getattr(s.cost, f"usd_per_device_hour{end}") for end in ("_low", "", "_high")]
        cost = run * s.run.usd_per_day * _between(rng, *price)
        cost = cost + sum(hit * (x.impact_usd or 0.0) for hit, x in zip(struck, found))
    asked = assessment.resolved.constraints
    return {
        **_said("days", run + late),
        **_said("cost", cost),
        "deadline_kept": _kept(run + late, asked.deadline_days),
        "budget_kept": _kept(cost, asked.budget_usd),
        "by": sorted(by, key=lambda row: -row["days"]),
        "draws": DRAWS,
        "seed": SEED,
    }


def _said(key: str, drawn) -> dict:
    """Mean, P10, median and P90 of a drawn figure; None where it is not known."""
    names = (f"{key}_{end}" for end in ("mean", "p10", "p50", "p90"))
    if drawn is None:
        return dict.fromkeys(names)
    return dict(zip(names, (float(drawn.mean()), *np.quantile(drawn, (0.1, 0.5, 0.9)).tolist())))


def _kept(drawn, most: float | None) -> float | None:
    """Chance of a value at most so large, (k + 1) / (n + 2) where k of n draws are (Laplace's rule
    of succession: no number of draws shows that none ever is); None where either is not known."""
    if drawn is None or most is None:
        return None
    return float((np.sum(drawn <= most) + 1) / (len(drawn) + 2))


def _between(rng, low, middle, high):
    """Draws of value / middle, log-normal on each side, 80 % of them from low to high."""
    z = rng.standard_normal(DRAWS) / Z80
    down, up = (log(max(a / b, 1.0)) if b else 0.0 for a, b in ((middle, low), (high, middle)))
    side = np.where(z < 0, down, up)
    return np.exp(z * side)


def _failures(s: Site, rng):
    """Seconds that failures cost in each drawn run: a compound Poisson sum, what one loses uniform
    over a period (the sum of n of them normal)."""
    n = rng.poisson(min(s.failures_per_day * s.run.days, 1e9), DRAWS)
    return n * s.failure_s + rng.standard_normal(DRAWS) * np.sqrt(n / 12) * s.period_s


def said(assessment: Assessment, advice: bool = True) -> dict:
    """The keys of `design --json`: `advise.design_json.as_dict`, the promise, which takes the
    register of risks, and the cost to plan for; `advice=False` leaves what takes long empty, under
    the same keys."""
    out = as_dict(assessment, advice)
    if not assessment.phases:
        return out
    held = promise(assessment) if advice else None
    mean = held and held["cost_mean"]
    planned = None if mean is None else to_plan_for(out["cost_usd"], mean)
    return {**out, "to_plan_for": planned, "promise": held}


def goodput(assessment: Assessment) -> dict:
    """The keys of `goodput --json`: `advise.recovery.goodput` and the promise."""
    return Figures(recovery.goodput(assessment), promise=promise(assessment))
