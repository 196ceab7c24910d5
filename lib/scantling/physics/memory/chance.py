"""The chance that a run goes out of memory: the estimate against the capacity, and how far
estimates
have lain from what was measured."""

from math import exp
from statistics import NormalDist

import numpy as np

from ...base.columns import Column
from ...catalogue.stacks import stack as stack_of
from .constants import calibration

NORMAL = NormalDist()
Z90 = NORMAL.inv_cdf(0.95)  # within which 90 % of a standard normal lie
LEAST = 1e-12  # chance that stands for none
MEASURED_SPREAD = 0.02  # of a peak that was measured here: batches and fragmentation; judgement


def fitted_stack(name: str | None) -> bool:
    """Whether peaks or failures of this stack are behind the calibration of memory, or a run of it
    that filled its devices."""
    if not name:
        return False
    ran = float(stack_of(name).memory.get("ran", 0.0)) > 0
    return ran or any(name in row["stack"] for row in calibration()["offsets"].values())


def spread(stack: str | None) -> float:
    """Standard deviation of ln(measured / estimated peak): p90 of the absolute error over Z90, of
    folds left out where the stack is fitted, of stacks left out where it is not."""
    return (
        float(calibration()["folds" if fitted_stack(stack) else "stack_left_out"]["all"]["p90"])
        / Z90
    )


def oom_probability(total_bytes: Column, capacity_bytes: Column, spread: Column) -> Column:
    """Chance that the peak of the fullest device exceeds what a program can have of its memory.

    total_bytes, capacity_bytes : [bytes], scalars or columns.  spread : of ln(peak / estimate).
    Formula: Phi(ln(total / capacity) / spread), a log-normal peak with the estimate as its median;
    0.5 where the estimate is the capacity. Of one estimate: it knows no correlation between plans.
    """
    z = np.log(np.maximum(total_bytes, 1.0) / capacity_bytes) / spread
    chance: Column = np.vectorize(NORMAL.cdf, otypes=[float])(z)[()]
    return chance


def most_bytes(capacity_bytes: float, probability: float, spread: float) -> float:
    """The largest estimate whose `oom_probability` is at most `probability`: capacity x exp(z x
    spread), z the quantile of a standard normal; no more than the capacity. [bytes]"""
    return capacity_bytes * exp(NORMAL.inv_cdf(min(max(probability, LEAST), 0.5)) * spread)
