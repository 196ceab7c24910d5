"""What every mixer does around its core, attention or a scan: products into and out of it, the
chain of the sub-layer, what is kept of the stream."""

from dataclasses import replace

from ..base.records import record
from .kernels import STREAM_BYTES, Device
from .saving import Keeping, stream_bytes
from .table import Block, Gemm, Saved, Time


@record
class Mixer(Block):
    """A kind says `weights()` (parameters of its projections), `core_s(on)` ((forward, backward)
    seconds of the core), `chain_width` and `cast_width` (values a token beside the stream's that
    its chain moves twice in 16 bit, and that are cast), `core_bytes(keep)` (`Saved` of the core).
    """

    place = "mixer"

    def products(
        self, on: Device, moved, name: str = "projections", kernels: float = 4.0
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
        stream = stream_bytes(self, keep)
        return replace(
            self.core_bytes(keep), outer=stream.outer, outer_selective=stream.outer_selective
        )
