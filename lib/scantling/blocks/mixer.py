"""What every mixer does around its core, attention or a scan: products into and out of it, the
chain of the sub-layer, what is kept of the stream."""

from dataclasses import replace

from ..base.columns import Column
from ..base.records import record
from .answers import Gemm, Saved, Time
from .block import Block
from .kernels import STREAM_BYTES, Device
from .saved_tensors import Keeping, stream_bytes


@record
class Mixer(Block):
    """A block that mixes tokens: what a kind says of itself, and what follows from it."""

    place = "mixer"

    def weights(self) -> Column:
        """Parameters of its projections. [count]"""
        raise NotImplementedError

    def core_s(self, on: Device) -> tuple[Column, Column]:
        """(forward, backward) seconds of the core."""
        raise NotImplementedError

    @property
    def chain_width(self) -> Column:
        """Values a token beside the stream's that its chain moves twice in 16 bit."""
        raise NotImplementedError

    @property
    def cast_width(self) -> Column:
        """Values a token beside the stream's that are cast."""
        raise NotImplementedError

    def core_bytes(self, keep: Keeping) -> Saved:
        """What the core keeps."""
        raise NotImplementedError

    def products(
        self, on: Device, moved: Column, name: str = "projections", kernels: float = 4.0
    ) -> tuple[Gemm, ...]:
        """All weights as one kind of products that reads and writes `moved` values a token."""
        weights = self.weights() / on.plan.tp
        return (
            Gemm(
                name,
                flops=2 * on.tokens * weights,
                elements=on.tokens * moved + weights,
                kernels=kernels,
            ),
        )

    def kernel_s(self, on: Device) -> Time:
        """Products, the core, and the bytes of the chain around it."""
        h, tp = self.hidden, on.plan.tp
        forward, backward = self.core_s(on)
        chain = STREAM_BYTES * h / on.shards + 4 * self.chain_width / tp
        return Time(
            gemm=sum(on.gemm_s(product) for product in self.gemms(on)),
            attention=forward,
            attention_backward=backward,
            elementwise=on.chain_s * on.tokens * chain,
            cast=on.cast_s * on.tokens * (2 * h / on.cast_shards + 2 * self.cast_width / tp),
            host=on.constants.layer_host_s * on.host_share,
            accumulate=on.gradient_s * self.weights() / tp,
        )

    def saved_bytes(self, keep: Keeping) -> Saved:
        """Norm input and output, and what the core keeps."""
        stream = stream_bytes(self.hidden, keep)
        return replace(
            self.core_bytes(keep), outer=stream.outer, outer_selective=stream.outer_selective
        )
