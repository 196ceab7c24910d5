"""Mamba-2, the state-space dual (Dao & Gu 2024, arXiv 2405.21060).

H heads of width P, d = H P, state N, G groups, C tokens of a chunk.
"""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class Mamba2(Recurrent):
    """`gated_norm` 0: no norm before the output projection (Falcon-H1)."""

    kind = "mamba2"
    step_flops = 7  # 7 d N (Megatron-LM, training.py)

    heads: Column
    head_dim: Column
    state_size: Column
    groups: Column
    gated_norm: Column = 1

    @property
    def inner(self) -> Column:
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> Column:
        """d + 2 G N: x, B and C."""
        return self.inner + 2 * self.groups * self.state_size

    @property
    def inputs(self) -> Column:
        """z beside x, B, C, and one step size a head."""
        return self.inner + self.conv_width + self.heads

    @property
    def extras(self) -> Column:
        """A, D and the bias of the step size."""
        return 3 * self.heads

    @property
    def mixer_norms(self) -> Column:
        return self.gated_norm * self.inner

    @property
    def state(self) -> Column:
        return self.inner * self.state_size

    def scan_flops(self) -> Column:
        """G 2 C N + H (2 C P + 4 P N): scores by group, scores x values, states in and out."""
        pairs = 2 * self.chunk * (self.groups * self.state_size + self.inner)
        return pairs + 4 * self.state

    @property
    def saved_width(self) -> Column:
        """The fused kernel keeps the projection's output, the scan's and the gated output."""
        return self.inputs + 2 * self.inner + 2 * self.groups
