"""What mixers with a state have in common: projections into and out of a scan along the sequence.

h hidden, d inner width. Forward of one token: 2 FLOP a weight, the short convolution, the scan.
Model FLOPs count the scan as a recurrence, as the published counters do; kernels run it in chunks
(`scan_flops`), which costs more products and fewer steps (Dao & Gu 2024, arXiv 2405.21060).
"""

from typing import ClassVar

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Exchange, Gemm, Saved
from .kernels import Device
from .mixer import Mixer
from .saved_tensors import Keeping

LONG_CHUNK = 2048  # tokens between states that an element-wise scan keeps (mamba_ssm)


@record
class Recurrent(Mixer):
    """`conv` taps of the depthwise convolution, `chunk` tokens of a scan's chunk.

    A kind says its widths and its state, and what it has beside its projections.
    """

    family = "recurrent"
    # forward FLOPs of a token's scan, step by step, a number of the state
    step_flops: ClassVar[float] = 0

    norms: Column = 0
    conv: Column = 0
    conv_bias: Column = 0
    proj_bias: Column = 0
    chunk: Column = 0

    @property
    def inputs(self) -> Column:
        """Outputs of the projections into the scan."""
        raise NotImplementedError

    @property
    def inner(self) -> Column:
        """Inputs of the output projection."""
        raise NotImplementedError

    @property
    def extras(self) -> Column:
        """Parameters beside matrices."""
        return 0

    @property
    def mixer_norms(self) -> Column:
        """Weights of norms inside the mixer."""
        return 0

    @property
    def low_rank(self) -> Column:
        """Weights of projections between the scan's inputs."""
        return 0

    @property
    def low_rank_width(self) -> Column:
        """Widths of those projections."""
        return 0

    @property
    def state(self) -> Column:
        """Numbers a sequence carries."""
        return 0

    def weights(self) -> Column:
        """h x inputs + d x h, and what a kind projects between. [count]"""
        return self.hidden * (self.inputs + self.inner) + self.low_rank

    def parameters(self) -> dict[str, Column]:
        convolution = self.conv_width * (self.conv + self.conv_bias)
        return {
            "attention": self.weights()
            + convolution
            + self.extras
            + self.proj_bias * (self.inputs + self.hidden),
            "norms": self.norms + self.mixer_norms,
        }

    def recurrence(self) -> Column:
        """Forward FLOPs of a token's scan, step by step."""
        return self.step_flops * self.state

    def scan_flops(self) -> Column:
        """Forward FLOPs of a token's scan as kernels run it."""
        return self.recurrence()

    def scan_bytes(self) -> Column:
        """Bytes a token's scan moves forward: five inputs and outputs of 16 bit, the convolution's
        channels, and fp32 states of chunks written, passed on and read."""
        chunk = np.where(self.chunk > 0, self.chunk, LONG_CHUNK)
        return 2 * (5 * self.inner + self.conv_width) + 16 * self.state / chunk

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {
            "attention_linear": 6 * self.weights()
            + 3 * (2 * self.conv * self.conv_width + self.recurrence())
        }

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        wide = (self.inputs + self.inner + self.low_rank_width) / on.plan.tp
        return self.products(on, 2 * self.hidden + wide, kernels=2.0)

    @property
    def conv_width(self) -> Column:
        """Channels of the convolution."""
        return self.inner

    @property
    def chain_width(self) -> Column:
        """16-bit values a token that convolution, scan and gate read, and again write."""
        return self.conv_width + self.inputs + 2 * self.inner

    @property
    def cast_width(self) -> Column:
        return self.inner

    def core_s(self, on: Device) -> tuple[Column, Column]:
        """(forward, backward) seconds of the scan at its share of the peak."""
        k = on.constants
        products = self.scan_flops() / (on.bf16_flops * k.scan_gemm)
        scan = products + self.scan_bytes() / (on.bytes_per_s * k.scan)
        scan = on.tokens / on.plan.tp * scan
        return scan + k.gemm_launch_s, k.scan_backward * scan + k.gemm_launch_s

    @property
    def saved_width(self) -> Column:
        """16-bit values a token inside the mixer that its kernels keep for the backward pass."""
        return self.inputs + 2 * self.inner

    def core_bytes(self, keep: Keeping) -> Saved:
        """What projections and scan keep; `selective` repeats none of it."""
        inner = 2.0 * self.saved_width * keep.wide
        return Saved(inner=inner, inner_selective=inner)

    def exchanges(self) -> Exchange:
        """Over cp all-to-alls from sequence to heads and back: the whole sequence passes a scan."""
        return Exchange(tensor=1.0, swapped=self.inputs + self.inner)
