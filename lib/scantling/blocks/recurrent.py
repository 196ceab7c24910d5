"""What mixers with a state have in common: projections into and out of a scan along the sequence.

h hidden, d inner width. Forward of one token: 2 FLOP a weight, the short convolution, the scan.
Model FLOPs count the scan as a recurrence, as the published counters do; kernels run it in chunks
(`scan_flops`), which costs more products and fewer steps (Dao & Gu 2024, arXiv 2405.21060).
"""

from __future__ import annotations

import numpy as np

from ..base.records import record
from .kernels import STREAM_BYTES, Device
from .saving import Keeping
from .table import Block, Column, Exchange, Gemm, Saved, Time

LONG_CHUNK = 2048  # tokens between states that an element-wise scan keeps (mamba_ssm)


@record
class Recurrent(Block):
    """`conv` taps of the depthwise convolution, `chunk` tokens of a scan's chunk.

    A kind says: `inputs` (outputs of the projections into the scan), `inner` (input of the output
    projection), `conv_width`, `extras` (parameters beside matrices), `state` (numbers a sequence).
    """

    place = "mixer"
    family = "recurrent"

    norms: Column = 0
    conv: Column = 0
    conv_bias: Column = 0
    proj_bias: Column = 0
    chunk: Column = 0

    conv_width = 0
    extras = 0
    own_norms = 0  # weights of norms inside the mixer
    low_rank = 0  # weights and widths of projections between the scan's inputs
    low_rank_width = 0
    state = 0

    def weights(self):
        """h x inputs + d x h, and what a kind projects between. [count]"""
        return self.hidden * (self.inputs + self.inner) + self.low_rank

    def parameters(self):
        convolution = self.conv_width * (self.conv + self.conv_bias)
        bias = self.proj_bias * (self.inputs + self.hidden)
        return {
            "attention": self.weights() + convolution + self.extras + bias,
            "norms": self.norms + self.own_norms,
        }

    def recurrence(self):
        """Forward FLOPs of a token's scan, step by step."""
        return 0

    def scan_flops(self):
        """Forward FLOPs of a token's scan as kernels run it."""
        return self.recurrence()

    def scan_bytes(self):
        """Bytes a token's scan moves forward: five inputs and outputs of 16 bit, the convolution's
        channels, and fp32 states of chunks written, passed on and read."""
        chunk = np.where(self.chunk > 0, self.chunk, LONG_CHUNK)
        return 2 * (5 * self.inner + self.conv_width) + 16 * self.state / chunk

    def flops(self, seq_len):
        return {
            "attention_linear": 6 * self.weights()
            + 3 * (2 * self.conv * self.conv_width + self.recurrence()),
        }

    def gemms(self, on: Device):
        t, h, tp = on.tokens, self.hidden, on.plan.tp
        wide = (self.inputs + self.inner + self.low_rank_width) / tp
        weights = self.weights() / tp
        return (
            Gemm(
                "projections",
                flops=2 * t * weights,
                elements=2 * t * h + t * wide + weights,
                kernels=2.0,
            ),
        )

    @property
    def moved_width(self):
        """16-bit values a token that convolution, scan and gate read and write."""
        return 2 * self.conv_width + 2 * self.inputs + 4 * self.inner

    def kernel_s(self, on: Device):
        """Products, the scan at its share of the peak, and the bytes of the chain around it."""
        t, tp, k = on.tokens, on.plan.tp, on.constants
        chain = STREAM_BYTES * self.hidden / on.shards + 2 * self.moved_width / tp
        products = self.scan_flops() / (on.bf16_flops * k.scan_gemm)
        scan = t / tp * (products + self.scan_bytes() / (on.bytes_per_s * k.scan))
        return Time(
            gemm=sum(on.gemm_s(product) for product in self.gemms(on)),
            attention=scan + k.gemm_launch_s,
            attention_backward=k.scan_backward * scan + k.gemm_launch_s,
            elementwise=on.chain_s * t * chain,
            cast=on.cast_s * t * (2 * self.hidden / on.cast_shards + 2 * self.inner / tp),
            host=k.layer_host_s * on.host_share,
            accumulate=on.gradient_s * self.weights() / tp,
        )

    @property
    def kept_width(self):
        """16-bit values a token inside the mixer that its kernels keep for the backward pass."""
        return self.inputs + 2 * self.inner

    def saved_bytes(self, keep: Keeping):
        """Norm input and output; what projections and scan keep; `selective` repeats none of it."""
        wide, stream = keep.wide, self.hidden * keep.wide
        inner = 2.0 * self.kept_width * wide
        return Saved(
            outer=(2.0 + keep.norm_bytes) * stream,
            outer_selective=(2.0 + keep.norm * keep.norm_bytes) * stream,
            inner=inner,
            inner_selective=inner,
        )

    def exchanges(self):
        """Over cp all-to-alls from sequence to heads and back: the whole sequence passes a scan."""
        return Exchange(
            tensor=1.0,
            swapped=self.inputs + self.inner,
        )
