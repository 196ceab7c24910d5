"""What stands in a layer beside its blocks: norms that no block has, and hyper-connections, a
residual stream `copies` times as wide (DeepSeek-V4; Zhu et al. 2024, arXiv 2409.19606)."""

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Saved, Time
from .block import Block
from .kernels import Device
from .saved_tensors import Keeping


@record
class Stream(Block):
    """`norms` weights of a layer's norms; `copies` of the residual stream, 0 or 1: one; `mixed` 0:
    each is read and written with a weight of its own alone (Hunyuan 4)."""

    kind = "stream"

    norms: Column = 0
    copies: Column = 0
    mixed: Column = 1
    ends: Column = 0  # 1: what gathers the copies before the head

    @property
    def gates(self) -> Column:
        """m of one mixing: n (2 + n), or 2 n where copies are not mixed."""
        return self.copies * (2 + self.mixed * self.copies)

    def mixing(self) -> Column:
        """Weights of the two mixings of a layer: m n h; of the end n n h. [count]"""
        n = self.copies
        return n * self.hidden * (self.ends * n + (1 - self.ends) * 2 * self.gates)

    def parameters(self) -> dict[str, Column]:
        n = self.copies
        scales = self.ends * (n + 1) + (1 - self.ends) * 2 * (self.gates + 2 + self.mixed)
        return {"norms": self.norms, "other": (n > 0) * (self.mixing() + scales)}

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {"attention_linear": 6 * self.mixing()}

    def saved_bytes(self, keep: Keeping) -> Saved:
        """The inputs of two sub-layers are kept for every copy."""
        more = 4.0 * self.hidden * keep.wide * np.maximum(self.copies - 1, 0) * (1 - self.ends)
        return Saved(outer=more, outer_selective=more)

    def kernel_s(self, on: Device) -> Time:
        """Around each of two sub-layers (3 n + 1) h values are read and (n + 1) h written: for the
        mappings n h, for the input n h and h, and with the output n h + h and n h (mHC, arXiv
        2512.24880, Table 2, less what section 4.3.1 fuses); at the end n h and h."""
        n, end = self.copies, self.ends
        wide = (n > 1) * 2 * self.hidden * (end * (n + 1) + (1 - end) * 2 * (4 * n + 2))
        return Time(elementwise=on.chain_s * on.tokens * wide / on.shards)
