"""The matrix-memory cell of xLSTM (Beck et al. 2024, arXiv 2405.04517; xLSTM 7B, arXiv 2503.13427):
linear attention with an input and a forget gate a head.

H heads of keys dk and values dv wide; C tokens of a chunk.
"""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class Mlstm(Recurrent):
    """q and k of H dk, v and an output gate of H dv, two gates a head; a norm of H dv."""

    kind = "mlstm"
    step_flops = 5  # 5 H dk dv: the state decays, is written and read

    heads: Column
    k_dim: Column
    v_dim: Column

    @property
    def inner(self) -> Column:
        return self.heads * self.v_dim

    @property
    def conv_width(self) -> Column:
        return 0

    @property
    def inputs(self) -> Column:
        return 2 * self.heads * self.k_dim + 2 * self.inner + 2 * self.heads

    @property
    def extras(self) -> Column:
        """Biases of the gates."""
        return 2 * self.heads

    @property
    def mixer_norms(self) -> Column:
        return self.inner

    @property
    def state(self) -> Column:
        return self.inner * self.k_dim

    def scan_flops(self) -> Column:
        """2 C H (dk + dv) of the pairs in a chunk, and the state."""
        return 2 * self.chunk * self.heads * (self.k_dim + self.v_dim) + self.recurrence()
