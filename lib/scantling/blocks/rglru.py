"""The real-gated linear recurrent unit (De et al. 2024, Griffin, arXiv 2402.19427). w its width."""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class RgLru(Recurrent):
    """Two branches of w with biases, block-diagonal gates of `heads` blocks."""

    kind = "rglru"
    step_flops = 10  # 10 w, element by element

    lru_width: Column
    heads: Column

    @property
    def inner(self) -> Column:
        return self.lru_width

    @property
    def inputs(self) -> Column:
        return 2 * self.inner

    @property
    def low_rank(self) -> Column:
        """Two gates of w^2 / heads; models without such a layer have no heads."""
        return 2 * self.inner * (self.inner // (self.heads + (self.heads < 1)))

    @property
    def low_rank_width(self) -> Column:
        return 2 * self.inner

    @property
    def extras(self) -> Column:
        """Biases of the branches, the output and the gates; one decay a channel."""
        return 2 * self.inner + self.hidden + 3 * self.inner

    @property
    def state(self) -> Column:
        return self.inner
