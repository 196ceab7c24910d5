"""An attention and MLP layer whose weights run at several places (Zamba2, arXiv 2411.15242).

It reads the stream and the embedding side by side, a = 2 h wide; every place has its own linear
layer and, beside the MLP and where asked the projections, a low-rank adapter.
"""

from ..base.columns import Column
from ..base.records import record
from .answers import Gemm
from .attention import Attention
from .block import Block
from .kernels import Device


@record
class SharedWeights(Block):
    """The weights: 3 a^2 + a h + 3 h i + a + h of each of `count` sets."""

    kind = "shared_weights"

    width: Column
    matrices: Column

    def parameters(self) -> dict[str, Column]:
        h, a = self.hidden, 2 * self.hidden
        return {
            "attention": 3 * a * a + a * h,
            "mlp_dense": self.matrices * h * self.width,
            "norms": a + h,
        }


@record
class SharedUse(Attention):
    """One place where the weights run; `rank` of its adapters."""

    kind = "shared"

    width: Column
    matrices: Column
    rank: Column = 0
    attention_adapter: Column = 0

    def adapters(self) -> Column:
        """h h, r (h + 2 i), and 6 a r of adapters at the projections. [count]"""
        h, r = self.hidden, self.rank
        return h * h + r * (h + 2 * self.width) + self.attention_adapter * 12 * h * r

    def parameters(self) -> dict[str, Column]:
        return {"attention": self.adapters(), "norms": self.norms}

    def weights(self) -> Column:
        """All that runs there. [count]"""
        h, a = self.hidden, 2 * self.hidden
        return 3 * a * a + a * h + self.matrices * h * self.width + self.adapters()

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        wide = (8 * self.hidden + self.matrices * self.width) / on.plan.tp
        return self.products(on, 4 * self.hidden + wide, "shared layer")
