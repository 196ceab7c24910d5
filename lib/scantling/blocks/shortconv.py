"""The gated short convolution of LFM2: h -> 3 h, a depthwise convolution between two gates, h ->
h."""

from ..base.records import record
from .recurrent import Recurrent
from .table import Exchange


@record
class ShortConv(Recurrent):
    """No state but the last taps."""

    kind = "shortconv"

    @property
    def inner(self):
        return self.hidden

    @property
    def inputs(self):
        return 3 * self.hidden

    def exchanges(self):
        """Over cp the last taps of a neighbour alone, which is next to nothing."""
        return Exchange(tensor=1.0)
