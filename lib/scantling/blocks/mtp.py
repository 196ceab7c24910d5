"""A module of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): a layer of the
last kind, a 2h x h projection and three norms; embedding and head are the model's. Nemotron 3 runs
one module for two depths: its weights once, its work twice."""

from ..base.columns import Column
from ..base.records import record
from .answers import Saved, Time, fold
from .block import Block
from .head import Head
from .kernels import Device
from .saved_tensors import Keeping


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

    def parameters(self) -> dict[str, Column]:
        inside = sum(b.count * total(b.parameters(), leaving="unused") for b in self.layer)
        return {"mtp": inside + 2 * self.hidden * self.hidden + 3 * self.norms}

    def flops(self, seq_len: Column) -> dict[str, Column]:
        inside = sum(b.count * total(b.flops(seq_len)) for b in (*self.layer, self.head))
        return {"mtp": self.repeats * (inside + 12 * self.hidden * self.hidden)}

    def kernel_s(self, on: Device) -> Time:
        return fold(Time, [(self.repeats, self.head.kernel_s(on))])

    def saved_bytes(self, keep: Keeping) -> Saved:
        return fold(Saved, [(self.repeats, self.head.saved_bytes(keep))])


def total(parts: dict[str, Column], leaving: str = "") -> Column:
    """The sum of the parts but one."""
    return sum(value for name, value in parts.items() if name != leaving)
