"""Mamba, the selective scan (Gu & Dao 2023, arXiv 2312.00752). d inner, state N, R step rank."""

from ..base.columns import Column
from ..base.records import record
from .kernels import Device
from .recurrent import Recurrent


@record
class Mamba1(Recurrent):
    """`inner_norms` 1: norms on step size, B and C (Jamba)."""

    kind = "mamba1"
    step_flops = 9  # 9 d N, element by element

    d_inner: Column
    state_size: Column
    dt_rank: Column
    inner_norms: Column = 0

    @property
    def inner(self) -> Column:
        return self.d_inner

    @property
    def inputs(self) -> Column:
        return 2 * self.inner

    @property
    def low_rank_width(self) -> Column:
        return self.dt_rank + 2 * self.state_size

    @property
    def low_rank(self) -> Column:
        """d (R + 2 N) + R d."""
        return self.inner * (self.low_rank_width + self.dt_rank)

    @property
    def extras(self) -> Column:
        """The step's bias, A and D."""
        return self.inner * (self.state_size + 2)

    @property
    def mixer_norms(self) -> Column:
        return self.inner_norms * self.low_rank_width

    @property
    def state(self) -> Column:
        return self.inner * self.state_size

    def core_s(self, on: Device) -> tuple[Column, Column]:
        """The scan multiplies no matrices: it runs at a vector unit's rate."""
        forward, backward = super().core_s(on)
        slow = 1 / on.constants.scan_vector
        return forward * slow, backward * slow

    @property
    def saved_width(self) -> Column:
        """Both halves of the projection, the convolution's output, step sizes, outputs."""
        return 6 * self.inner + self.low_rank_width
