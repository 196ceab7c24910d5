"""The output head with the final norm and the loss."""

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Saved, Time
from .block import Block
from .kernels import Device
from .saved_tensors import Keeping


@record
class Head(Block):
    """`tied` 1: the embedding's weights again."""

    kind = "head"

    vocab: Column
    tied: Column
    bias: Column = 0
    norms: Column = 0

    def parameters(self) -> dict[str, Column]:
        return {
            "lm_head": (1 - self.tied) * self.vocab * self.hidden + self.bias * self.vocab,
            "norms": self.norms,
        }

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {"lm_head": 6 * self.vocab * self.hidden}

    def kernel_s(self, on: Device) -> Time:
        """Three products of t x h x vocab in 16 bit, and the bytes of the cross entropy."""
        k, t, v = on.constants, on.tokens, self.vocab / on.plan.tp
        rate = on.bf16_flops * k.gemm * np.where(self.hidden % 128 == 0, 1.0, k.unaligned)
        eager = np.where(on.software.fused_norm > 0, 1.0, k.logit_eager)
        gemms = 3 * 2 * t * v * self.hidden / rate + 3 * k.gemm_launch_s
        return Time(logits=gemms + k.logit_bytes * eager * t * v / on.bytes_per_s)

    def saved_bytes(self, keep: Keeping) -> Saved:
        """Logits in the numbers that the loss keeps; a chunked loss keeps the stream at most."""
        whole = np.where(keep.chunked_loss > 0, np.minimum(self.hidden, self.vocab), self.vocab)
        return Saved(logits=whole * keep.logit_bytes)
