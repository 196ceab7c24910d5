"""The gated delta rule: gated delta net (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next) and Kimi
delta attention, whose decay is one a channel (Kimi Linear, arXiv 2510.26692).

Hk heads of keys, Hv of values, widths dk and dv; a chunk has C tokens.
"""

from ..base.columns import Column
from ..base.records import record
from .recurrent import Recurrent


@record
class GatedDelta(Recurrent):
    """Queries, keys, values and an output gate; decay and step one a head."""

    kind = "gdn"
    step_flops = 8  # 8 Hv dk dv (Megatron-LM, training.py)

    k_heads: Column
    v_heads: Column
    k_dim: Column
    v_dim: Column

    @property
    def keys(self) -> Column:
        return self.k_heads * self.k_dim

    @property
    def inner(self) -> Column:
        return self.v_heads * self.v_dim

    @property
    def conv_width(self) -> Column:
        return 2 * self.keys + self.inner

    @property
    def inputs(self) -> Column:
        return 2 * self.keys + 2 * self.inner + 2 * self.v_heads

    @property
    def extras(self) -> Column:
        """Decays and step biases of heads."""
        return 2 * self.v_heads

    @property
    def mixer_norms(self) -> Column:
        return self.v_dim

    @property
    def state(self) -> Column:
        return self.v_heads * self.k_dim * self.v_dim

    def scan_flops(self) -> Column:
        """Hv (2 C (3 dk + 2 dv) + 6 dk dv)."""
        return self.v_heads * 2 * self.chunk * (3 * self.k_dim + 2 * self.v_dim) + 6 * self.state

    @property
    def saved_width(self) -> Column:
        """Projections; q and k repeated to the value heads, v; decays, steps, the chunk's triangle;
        outputs before and after the norm."""
        repeated = 2 * self.v_heads * self.k_dim + self.inner
        return self.inputs + repeated + self.v_heads * (7 + self.chunk) + 2 * self.inner


@record
class KimiDelta(GatedDelta):
    """`full_gates` 1: the decay and the output gate are h x p in place of low-rank (Kimi K3)."""

    kind = "kda"

    full_gates: Column = 0
    full_decay: Column = 0

    @property
    def conv_width(self) -> Column:
        return 3 * self.inner

    @property
    def inputs(self) -> Column:
        """q, k, v and a step size a head; the gates stand apart."""
        return 3 * self.inner + self.v_heads

    @property
    def low_rank_width(self) -> Column:
        return 2 * self.inner

    @property
    def low_rank(self) -> Column:
        """h d + d p each of the two gates, or h p."""
        small, full = (self.hidden + self.inner) * self.v_dim, self.hidden * self.inner
        gates = (self.full_gates, self.full_decay)
        return sum(whole * full + (1 - whole) * small for whole in gates)

    @property
    def extras(self) -> Column:
        """Decays of heads, their bias a channel."""
        return self.v_heads + self.inner
