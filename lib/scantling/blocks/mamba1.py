"""Mamba, the selective scan (Gu & Dao 2023, arXiv 2312.00752). d inner, state N, R step rank."""

from ..base.records import record
from .recurrent import Recurrent
from .table import Column


@record
class Mamba1(Recurrent):
    """`inner_norms` 1: norms on step size, B and C (Jamba)."""

    kind = "mamba1"
    step_flops = 9  # 9 d N, element by element

    inner: Column
    state_size: Column
    dt_rank: Column
    inner_norms: Column = 0

    @property
    def inputs(self):
        return 2 * self.inner

    @property
    def low_rank_width(self):
        return self.dt_rank + 2 * self.state_size

    @property
    def low_rank(self):
        """d (R + 2 N) + R d."""
        return self.inner * (self.low_rank_width + self.dt_rank)

    @property
    def extras(self):
        """The step's bias, A and D."""
        return self.inner * (self.state_size + 2)

    @property
    def own_norms(self):
        return self.inner_norms * self.low_rank_width

    @property
    def state(self):
        return self.inner * self.state_size

    def core_s(self, on):
        """The scan multiplies no matrices: it runs at a vector unit's rate."""
        slow = 1 / on.constants.scan_vector
        return tuple(seconds * slow for seconds in super().core_s(on))

    @property
    def kept_width(self):
        """Both halves of the projection, the convolution's output, step sizes, outputs."""
        return 6 * self.inner + self.low_rank_width
