"""What measured peaks of memory tell of the constants of the memory model.

ln(measured / estimated peak) is the site's own factor plus the scatter of single runs, as of steps
(`posterior`). A constant c takes of it what it may move (s, of the fit on published peaks) and what
the estimate owes to it (j = d ln peak / d ln c): ln factor x s^2 j / sum of (s j)^2.
"""

from collections.abc import Mapping
from math import exp, hypot, log

import numpy as np
from scantling.base.columns import Array
from scantling.physics.calibration_file import MEMORY, SPEAKS, times
from scantling.physics.cases import Cases
from scantling.physics.memory.constants import PRIORS
from scantling.physics.memory.peak import memory

from .constant import Moved, moved

# sd of ln(measured / estimated peak) of one run about its site's mean: with it 80 % of the other
# 818 published peaks of a model lie inside the 80 % range after one of them
WITHIN = 0.06
# sd of ln of fragmentation, reserved over allocated: judgement; the other constants have theirs in
# memory_priors.csv
FRAGMENTATION_SD = 0.5
MOVED = tuple(name for name in SPEAKS if name.startswith(MEMORY))
STEP = 1.01  # by which a constant is moved for its slope


def peak_bytes(case: Cases, factors: Mapping[str, float] | None = None) -> float:
    """Memory of the fullest device [bytes], with constants of its memory times `factors`."""
    return float(np.ravel(memory(times(case, factors or {})).total)[0])


def spreads() -> Array:
    """How far a site may move ln of each constant of MOVED, before a peak is seen."""
    priors = [PRIORS.get(name.removeprefix(MEMORY)) for name in MOVED]
    return np.array([hypot(p.sd, p.stack_sd) if p else FRAGMENTATION_SD for p in priors])


def moved_by_peaks(case: Cases, ln_factor: float, weight: float) -> dict[str, Moved]:
    """{constant: as times its own} that give the estimate of a case an ln factor, of whose variance
    a share `weight` was measured."""
    usual = peak_bytes(case)
    slope = np.array([log(peak_bytes(case, {name: STEP}) / usual) for name in MOVED])
    slope /= log(STEP)
    part = spreads() ** 2 * slope / np.sum((spreads() * slope) ** 2)
    sd_ln = spreads() * np.sqrt(1 - weight * part * slope)
    most = np.log([SPEAKS[name] for name in MOVED])  # that a calibration file may say
    share = np.clip(ln_factor * part, -most, most)
    return {name: moved(exp(ln), 1.0, float(sd)) for name, ln, sd in zip(MOVED, share, sd_ln)}
