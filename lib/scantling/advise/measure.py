"""What to find out first: the measurement, or the setting still open, that narrows days and dollars
most. Rows stand in measure.yaml."""

from math import log

import numpy as np

from ..base.words import table
from ..verdict.numbers import MEASURED_SPEEDS, cost_band, held, widened
from ..verdict.record import Assessment

WORTH = 0.02  # of the width of days or dollars that a row has to take away


def measure_first(assessment: Assessment) -> list:
    """What is still open, the one that narrows days or dollars most first: [{what, narrows,
    days_low, days_high, cost_usd_low, cost_usd_high}].

    narrows : share of the width of the band (ln high / low) of days, or of dollars where that is
    more, that knowing it takes away; the ends are those of the bands then. Empty without tokens.
    """
    a = assessment
    if a.days is None or not a.fits:
        return []
    known = [_known(a, row) for row in table(__file__, "measure") if OPEN[row["when"]](a)]
    return sorted((k for k in known if k["narrows"] >= WORTH), key=lambda k: -k["narrows"])


# whether a row of measure.yaml is still open
OPEN = {
    "no stack": lambda a: a.resolved.stack is None,
    "no step": lambda a: not MEASURED_SPEEDS & a.resolved.measured.keys(),
    "no calibration": lambda a: a.resolved.calibration is None and OPEN["no step"](a),
    "price open": lambda a: a.cost_usd is not None and a.cost.cost_usd_low < a.cost.cost_usd_high,
}


def _known(a: Assessment, row: dict) -> dict:
    """The bands of days and dollars once the thing of a row is known."""
    holds = held(a.chosen)
    settled = row.get("settles", ())
    after = {k: v & (settled != "all" and k not in settled) for k, v in holds.items()}
    whole, then = (np.log(widened(a.chosen, h)) for h in (holds, after))
    left = row.get("left", 1.0) * then / np.where(whole == 0, 1.0, whole)
    ends = a.figures("days_low", "days_high").items()
    days = {k: a.days * (v / a.days) ** float(x) for (k, v), x in zip(ends, left)}
    money = cost_band(a.cost, {"days": a.days, **days}, priced=row.get("price", False))
    return {"what": row["what"], "narrows": max(_taken(a, days), _taken(a, money)), **days, **money}


def _taken(a: Assessment, ends: dict) -> float:
    """Share of the width of a band of the assessment that another leaves out; 0 where there is
    none."""
    (low, high) = ends.values()
    (low_now, high_now) = a.figures(*ends).values()
    if None in (low, high, low_now, high_now) or not high_now > low_now:
        return 0.0
    return 1 - log(high / low) / log(high_now / low_now)
