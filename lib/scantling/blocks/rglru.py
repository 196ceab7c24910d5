"""The real-gated linear recurrent unit (De et al. 2024, Griffin, arXiv 2402.19427). w its width."""

import numpy as np

from ..base.records import record
from .recurrent import Recurrent
from .table import Column


@record
class RgLru(Recurrent):
    """Two branches of w with biases, block-diagonal gates of `heads` blocks."""

    kind = "rglru"
    step_flops = 10  # 10 w, element by element

    inner: Column
    heads: Column

    @property
    def inputs(self):
        return 2 * self.inner

    @property
    def low_rank(self):
        """Two gates of w^2 / heads."""
        return 2 * self.inner * (self.inner // np.maximum(self.heads, 1))

    @property
    def low_rank_width(self):
        return 2 * self.inner

    @property
    def extras(self):
        """Biases of the branches, the output and the gates; one decay a channel."""
        return 2 * self.inner + self.hidden + 3 * self.inner

    @property
    def state(self):
        return self.inner
