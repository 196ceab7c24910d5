"""The dense MLP: gate, up and down, or up and down. h hidden, f its width."""

from dataclasses import replace

from ..base.columns import Column, some
from ..base.records import record
from .answers import Exchange, Gemm, Saved, Time
from .block import Block
from .kernels import STREAM_BYTES, Device
from .saved_tensors import Keeping, stream_bytes


@record
class Mlp(Block):
    """`matrices` 3 gated, 2 plain; `parallel` 1: attention and MLP read the same input."""

    kind = "mlp"
    place = "feed"

    width: Column
    matrices: Column
    bias: Column = 0
    parallel: Column = 0

    @property
    def active_bytes(self) -> Column:
        return chain_bytes(self.matrices) * self.width

    def parameters(self) -> dict[str, Column]:
        return {"mlp_dense": mlp_parameters(self.matrices, self.hidden, self.width, self.bias)}

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {"mlp_dense": 6 * self.matrices * self.hidden * self.width}

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        h, f = self.hidden, self.width / on.plan.tp
        up = f * (self.matrices - 1)
        idle = on.idle_flops(h, (up, up), (f, f))
        return (mlp_gemm("mlp", self.matrices, h, f, on, idle),)

    def kernel_s(self, on: Device) -> Time:
        t, h, f = on.tokens, self.hidden, self.width / on.plan.tp
        (product,) = self.gemms(on)
        tail: Column = 0.0
        if some(on.software.lazy_recompute):
            tail = on.gemm_s(Gemm("down", 2 * t * h * f, t * (h + f) + h * f, 1.0))
        return Time(
            gemm=on.gemm_s(product),
            elementwise=on.chain_s
            * t
            * (STREAM_BYTES * h / on.shards + chain_bytes(self.matrices) * f),
            cast=on.cast_s * t * (2 * h / on.cast_shards + 3 * f),
            accumulate=on.gradient_s * self.matrices * h * f,
            tail=tail,
        )

    def saved_bytes(self, keep: Keeping) -> Saved:
        """Norm input, attention's where both read one, and output; gate and up, or up; the input of
        the down-projection."""
        stream, wide = stream_bytes(self.hidden, keep, 2.0 - 2.0 * self.parallel), keep.wide
        up = 2.0 * (self.matrices - 1) * wide
        first = (up + 2 * wide * keep.eager * (self.matrices - 2)) * self.width
        second = keep.linear_bytes * wide * self.width
        return replace(
            stream,
            inner=first + second,
            inner_selective=keep.gemm * first * keep.narrow + keep.act * second,
        )

    def exchanges(self) -> Exchange:
        return Exchange(tensor=1.0)


@record
class DenseMlpOfMoe(Mlp):
    """A dense MLP in a layer that has experts too: every layer's, as a mixer's."""

    place = "mixer"


@record
class Bare(Block):
    """A layer without a feed-forward block."""

    kind = "bare"
    place = "feed"


@record
class Still(Bare):
    """A layer without a mixer."""

    kind = "still"
    place = "mixer"


def mlp_parameters(matrices: Column, hidden: Column, width: Column, bias: Column) -> Column:
    """Weights and biases of one MLP of a width. [count]"""
    return matrices * hidden * width + bias * ((matrices - 1) * width + hidden)


def mlp_gemm(
    name: str, matrices: Column, hidden: Column, f: Column, on: Device, idle: Column = 0.0
) -> Gemm:
    """The products of an MLP that is `f` wide on one rank, for all its tokens."""
    t, h, n = on.tokens, hidden, matrices
    stream = 2 * h * t
    return Gemm(name, stream * (n * f), stream + n * f * (t + h), 2.0, None, idle)


def chain_bytes(matrices: Column) -> Column:
    """Bytes that the activation moves for a value of the MLP's width: Korthikanti et al. 2022,
    section 4; gate and up are read."""
    return 4.0 + 2.0 * (matrices > 2)
