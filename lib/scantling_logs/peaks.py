"""What measured peaks of memory tell of the constants of the memory model.

ln(measured / estimated peak) is the site's own factor plus the scatter of single runs, as of steps
(`posterior`). A constant c takes of it what it may move (s, of the fit on published peaks) and what
the estimate owes to it (j = d ln peak / d ln c): ln factor x s^2 j / sum of (s j)^2.
"""

from math import exp, hypot, log

import numpy as np
from scantling.physics.calibration_file import MEMORY, SPEAKS, times
from scantling.physics.cases import Cases
from scantling.physics.memory.constants import PRIORS
from scantling.physics.memory.peak import memory

from .rows import spoken

MOVED = tuple(name for name in SPEAKS if name.startswith(MEMORY))
STEP = 1.01  # by which a constant is moved for its slope


def peak_bytes(case: Cases, factors=()) -> float:
    """Memory of the fullest device [bytes], with constants of its memory times `factors`."""
    return float(np.ravel(memory(times(case, dict(factors))).total)[0])


def spreads() -> np.ndarray:
    """How far a site may move ln of each constant of MOVED, before a peak is seen."""
    told = spoken("site")["peaks"]["sd"]
    priors = [PRIORS.get(name.removeprefix(MEMORY)) for name in MOVED]
    return np.array([hypot(p.sd, p.stack_sd) if p else told for p in priors])


def entry(value: float, was: float, sd_ln: float) -> dict:
    """A constant of a calibration file: after, before, and what is left open of its ln."""
    return {"value": round(value, 6), "was": round(float(was), 6), "sd_ln": round(sd_ln, 4)}


def moved(case: Cases, factor: float, known: float) -> dict:
    """{constant: value as times its own, was, what is left open of its ln} that give the estimate
    of a case an ln `factor`, `known`: the share of its variance that was seen."""
    usual = peak_bytes(case)
    slope = np.array([log(peak_bytes(case, {n: STEP}) / usual) for n in MOVED])
    slope /= log(STEP)
    part = spreads() ** 2 * slope / np.sum((spreads() * slope) ** 2)
    left = spreads() * np.sqrt(1 - known * part * slope)
    most = np.log([SPEAKS[name] for name in MOVED])  # that a calibration file may say
    told = np.clip(factor * part, -most, most)
    return {
        name: entry(exp(share), 1.0, float(open_)) for name, share, open_ in zip(MOVED, told, left)
    }
