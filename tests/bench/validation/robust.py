"""The loss that all fits share."""

import numpy as np


def robust(z):
    """sign(z) sqrt(2 (sqrt(1 + z^2) - 1)): the residual whose square is the soft-L1 loss of z."""
    return np.sign(z) * np.sqrt(2 * (np.sqrt(1 + z**2) - 1))
