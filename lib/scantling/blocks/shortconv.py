"""The gated short convolution of LFM2: h -> 3 h, a depthwise convolution between two gates, h ->
h."""

from ..base.columns import Column
from ..base.records import record
from .answers import Exchange
from .recurrent import Recurrent


@record
class ShortConv(Recurrent):
    """No state but the last taps."""

    kind = "shortconv"

    @property
    def inner(self) -> Column:
        return self.hidden

    @property
    def inputs(self) -> Column:
        return 3 * self.hidden

    def exchanges(self) -> Exchange:
        """Over cp the last taps of a neighbour alone, which is next to nothing."""
        return Exchange(tensor=1.0)
