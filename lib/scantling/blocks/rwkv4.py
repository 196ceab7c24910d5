"""The time mixing of RWKV-4 (Peng et al. 2023, arXiv 2305.13048): receptance, key and value of the
token mixed with the one before, and an average of values whose weights decay by channel.

a its width. The receptance of the channel mixing behind it, h x h, is counted here; its key and
value are a plain MLP of a layer.
"""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class Rwkv4(Recurrent):
    """Three projections h x a, one a x h, one h x h."""

    kind = "rwkv4"
    # of a channel: forward_kernel of BlinkDL/RWKV-LM, wkv_cuda.cu, counted line by line
    step_flops = 23

    width: Column

    @property
    def inner(self) -> Column:
        return self.width

    @property
    def inputs(self) -> Column:
        return 3 * self.inner + self.hidden

    @property
    def conv_width(self) -> Column:
        return 0

    @property
    def extras(self) -> Column:
        """Decay and first weight of a channel, shares of the token before: three of the time
        mixing, two of the channel mixing."""
        return 2 * self.inner + 5 * self.hidden

    @property
    def state(self) -> Column:
        """A channel, whose sum, its weight and their exponent a sequence carries."""
        return self.inner
