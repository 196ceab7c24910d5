"""A module of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): a layer of the
last kind, a 2h x h projection and three norms; embedding and head are the model's. Nemotron 3 runs
one module for two depths: its weights once, its work twice."""

from ..base.records import record
from .head import Head
from .kernels import Device
from .saving import Keeping
from .table import Block, Column, Saved, Time, fold


@record
class Mtp(Block):
    """`layer`: the blocks of one module, each with count 1 or, in other models of a column, 0;
    `repeats` of each module.

    Its kernels are those of `head` once more; the step times the layer as one of the model's.
    """

    kind = "mtp"

    layer: tuple[Block, ...]
    head: Head
    norms: Column
    repeats: Column = 1

    def parameters(self):
        inside = sum(weighted_sum(b, b.parameters(), "unused") for b in self.layer)
        return {"mtp": inside + 2 * self.hidden * self.hidden + 3 * self.norms}

    def flops(self, seq_len):
        inside = sum(weighted_sum(b, b.flops(seq_len)) for b in (*self.layer, self.head))
        return {"mtp": self.repeats * (inside + 12 * self.hidden * self.hidden)}

    def kernel_s(self, on: Device) -> Time:
        return fold(Time, [(self.repeats, self.head.kernel_s(on))])

    def saved_bytes(self, keep: Keeping) -> Saved:
        return fold(Saved, [(self.repeats, self.head.saved_bytes(keep))])


def weighted_sum(block: Block, parts: dict, but: str = ""):
    """Count x the sum of the parts."""
    return block.count * sum(value for name, value in parts.items() if name != but)
