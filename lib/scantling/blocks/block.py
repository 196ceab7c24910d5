"""What every kind of block answers."""

from typing import ClassVar

from ..base.columns import Column
from ..base.records import record
from .answers import Exchange, Gemm, Saved, Time
from .kernels import Device
from .saved_tensors import Keeping


@record
class Block:
    """`count` blocks of one kind in a model; every field one number or a column over models.

    A column of models that has a kind in some rows only has count 0 in the others. The answers are
    those of one block: what a kind does not do it leaves at nothing.
    """

    kind: ClassVar[str] = ""
    place: ClassVar[str] = "end"  # mixer and feed: one of each makes a layer; end: outside
    family: ClassVar[str] = ""  # softmax: attention with scores of queries and keys

    count: Column
    hidden: Column

    @property
    def active_bytes(self) -> Column:
        """Bytes that the activation of a feed-forward moves for a token."""
        return 0.0

    def parameters(self) -> dict[str, Column]:
        """Parameters by part of `Params`; `unused` of them a token leaves out."""
        return {}

    def flops(self, seq_len: Column) -> dict[str, Column]:
        """Training FLOP a token by part of `Flops`: 6 a weight, scores in full."""
        return {}

    def causal_share(self, seq_len: Column) -> Column:
        """Of the scores of all pairs, those of keys that are attended to."""
        return 1.0

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        """Matrix products of a micro-batch on a device."""
        return ()

    def kernel_s(self, on: Device) -> Time:
        """Kernel time of a micro-batch on a device. [s]"""
        return Time()

    def saved_bytes(self, keep: Keeping) -> Saved:
        """What a token leaves for the backward pass. [bytes]"""
        return Saved()

    def exchanges(self) -> Exchange:
        """What a token sends over tp, cp and ep."""
        return Exchange()
