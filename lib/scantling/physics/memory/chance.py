"""The chance that a run goes out of memory: the estimate against the capacity, and how far
estimates of families of runs that no fit had seen have lain from what was measured.

ln(peak / estimate) is taken to be Student's t with four degrees of freedom, the estimate as its
median: a family of runs has settings of its own that nobody prints, so tails are heavy, and no
chance is nearer to 0 or 1 than they bear.
"""

from math import acos, cos, sqrt
from statistics import NormalDist

import numpy as np

from ...base.columns import Array, Column
from .constants import calibration

NORMAL = NormalDist()
LEAST = 1e-12  # chance that stands for none
MEASURED_SPREAD = 0.02  # of a peak that was measured here: batches and fragmentation; judgement


def spread() -> float:
    """Scale of ln(measured / estimated peak): that of families left out of the fit. A stack that
    other families measured is no nearer than another (0.12 and 0.115)."""
    return float(calibration()["spread"])


def student(t: Column) -> Array:
    """Distribution function of Student's t with four degrees of freedom:
    1/2 + 3/8 u (1 - u^2 / 12), u = t / sqrt(1 + t^2 / 4)."""
    u = np.asarray(t) / np.sqrt(1 + np.square(t) / 4)
    return np.asarray(0.5 + 0.375 * u * (1 - np.square(u) / 12))


def student_quantile(probability: float) -> float:
    """Quantile of Student's t with four degrees of freedom: +-2 sqrt(cos(acos(sqrt(a)) / 3) /
    sqrt(a) - 1), a = 4 p (1 - p) (Shaw 2006, Journal of Computational Finance 9(4))."""
    root = sqrt(4 * probability * (1 - probability))
    size = 2 * sqrt(max(cos(acos(min(root, 1.0)) / 3) / root - 1, 0.0))
    return size if probability > 0.5 else -size


def oom_probability(total_bytes: Column, capacity_bytes: Column, spread: Column) -> Column:
    """Chance that the peak of the fullest device exceeds what a program can have of its memory.

    total_bytes, capacity_bytes : [bytes], scalars or columns.  spread : scale of ln(peak /
    estimate).
    Formula: F4(ln(total / capacity) / spread), F4 Student's t with four degrees of freedom; 0.5
    where the estimate is the capacity. Of one estimate: it knows no correlation between plans.
    """
    z = np.log(np.maximum(total_bytes, 1.0) / capacity_bytes) / spread
    chance: Column = student(z)[()]
    return chance


def most_bytes(capacity_bytes: float, probability: float, spread: Column) -> Column:
    """The largest estimate whose `oom_probability` is at most `probability`: capacity x exp(t x
    spread), t the quantile of Student's t; no more than the capacity. [bytes]"""
    allowed = min(max(probability, LEAST), 0.5)
    most: Column = capacity_bytes * np.exp(student_quantile(allowed) * spread)
    return most
