"""Numbers of the step of one case."""

import numpy as np
from scantling.base.columns import Column
from scantling.physics.step import PARTS, Step


def one(value: Column) -> float:
    """The number in a column of one row."""
    return float(np.ravel(value)[0])


def seconds_of(step: Step) -> dict[str, float]:
    """The seconds of each part of a step."""
    seconds = vars(step)
    return {part: one(seconds[part]) for part in PARTS}
