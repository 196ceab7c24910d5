"""Lightning attention: linear attention with a fixed decay a head (MiniMax-01, arXiv 2501.08313).

p = heads x d; C tokens of a chunk.
"""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class Lightning(Recurrent):
    """q, k, v and an output gate of p each; a norm of p."""

    kind = "lightning"
    step_flops = 4  # 4 p d: the state is written and read

    heads: Column
    head_dim: Column

    @property
    def inner(self) -> Column:
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> Column:
        return 0

    @property
    def inputs(self) -> Column:
        return 4 * self.inner

    @property
    def mixer_norms(self) -> Column:
        return self.inner

    @property
    def state(self) -> Column:
        return self.inner * self.head_dim

    def scan_flops(self) -> Column:
        """4 C p of the pairs in a chunk, and the state."""
        return 4 * self.chunk * self.inner + self.recurrence()

    @property
    def saved_width(self) -> Column:
        return 6 * self.inner
