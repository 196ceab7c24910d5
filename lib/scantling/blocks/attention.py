"""Grouped-query attention; with as many key-value heads as heads multi-head, with one multi-query
attention.

h hidden, q = heads x head_dim, kv = kv_heads x head_dim.
"""

from typing import ClassVar

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Exchange, Gemm, Saved
from .kernels import Core, Device, attention_core_s
from .mixer import Mixer
from .saved_tensors import Keeping


@record
class Softmax(Mixer):
    """What every attention does around its projections; `norms` are the layer's. Flags 0 or 1."""

    family = "softmax"
    gathered: ClassVar[bool] = False  # whether each query reads keys of its own
    latent: ClassVar[bool] = False  # whether queries, keys and values come back from latents

    heads: Column
    norms: Column  # weights of the layer's norms
    head_norm: Column = 0  # one weight per value of a head for q and k
    width_norm: Column = 0  # over the whole projections
    qkv_bias: Column = 0
    out_bias: Column = 0
    sinks: Column = 0  # one learned attention sink a head
    head_gate: Column = 0  # an output gate: one number a head
    width_gate: Column = 0  # an output gate as wide as the heads' outputs
    relative_positions: Column = 0  # one more hidden x q projection (Transformer-XL)

    @property
    def q_head(self) -> Column:
        """Width of a head's queries and keys."""
        raise NotImplementedError

    @property
    def v_head(self) -> Column:
        """Width of a head's values."""
        raise NotImplementedError

    @property
    def kv_width(self) -> Column:
        """Of all keys, and again of all values; the mean where they differ."""
        raise NotImplementedError

    @property
    def saved_heads(self) -> Column:
        """Heads of keys and values that the core reads."""
        raise NotImplementedError

    @property
    def qkv_outputs(self) -> Column:
        """Outputs of the projections of queries, keys and values, each of which may have a bias."""
        raise NotImplementedError

    @property
    def latent_norms(self) -> Column:
        """Weights of norms of latents."""
        return 0

    @property
    def latent_bytes(self) -> Column:
        """Saved beside q, k and v, per token."""
        return 0.0

    @property
    def up_weights(self) -> Column:
        """Of the projections that bring queries, keys and values back from latents."""
        return 0.0

    @property
    def score_width(self) -> Column:
        """Query-key plus value width of one head."""
        return self.q_head + self.v_head

    @property
    def q_width(self) -> Column:
        return self.heads * self.q_head

    @property
    def out_width(self) -> Column:
        """Input width of the output projection."""
        return self.heads * self.v_head

    @property
    def gate_width(self) -> Column:
        """Outputs of the projection of the output gate."""
        return self.heads * (self.head_gate + self.width_gate * self.v_head)

    def parameters(self) -> dict[str, Column]:
        return {
            "attention": self.weights()
            + self.qkv_bias * self.qkv_outputs
            + self.out_bias * self.hidden
            + self.sinks * self.heads
            + self.other_parameters()
            + self.relative_positions * self.hidden * self.q_width,
            "norms": self.norms
            + self.head_norm * (self.q_head + self.v_head)
            + self.width_norm * (self.q_width + self.kv_width)
            + self.latent_norms,
        }

    def other_parameters(self) -> Column:
        """Parameters beside the projections: an indexer's. [count]"""
        return 0

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {
            "attention_linear": 6 * self.weights(),
            "attention_scores": 6 * seq_len * (self.q_width + self.out_width),
        }

    def keys_seen(self, seq_len: Column) -> Column:
        """Mean keys that a query attends to under the causal mask."""
        return seq_len / 2

    def causal_share(self, seq_len: Column) -> Column:
        """Of the scores of all pairs, those of keys that are attended to."""
        return self.keys_seen(seq_len) / seq_len

    def core_s(self, on: Device) -> tuple[Column, Column]:
        keys = self.keys_seen(on.seq_len)
        core = Core(self.heads, self.score_width, self.v_head, keys, self.gathered)
        return attention_core_s(core, on)

    @property
    def cast_width(self) -> Column:
        return self.q_width + self.kv_width

    def core_bytes(self, keep: Keeping) -> Saved:
        """q, k, v; the output, with its log-sum-exps; materialised scores 2 seq heads, 5 with
        dropout; latents."""
        wide, flash = keep.wide, keep.flash > 0
        core = (2.0 * self.q_width + 4.0 * self.kv_width) * wide
        lse = 4.0 * self.heads * flash * wide
        out, chosen = (
            (2.0 + keep.low * cast) * self.out_width * wide + lse for cast in (1.0, keep.norm)
        )
        scores = (
            (2.0 + 3.0 * keep.dropout + 4.0 * keep.eager * (2.0 - wide))
            * self.heads
            * keep.seq_len
            * wide
        )
        scores = scores * np.logical_not(flash)
        return Saved(
            inner=core + out + scores,
            inner_selective=keep.gemm * (keep.up if self.latent else 1.0) * core
            + chosen * keep.core
            + keep.scores * scores,
            latent=self.latent_bytes * wide,
        )

    def exchanges(self) -> Exchange:
        kv, head = self.kv_width, np.minimum(self.v_head, self.kv_width)
        return Exchange(tensor=1.0, kv=2 * kv, kv_head=2 * head, relaid=2 * (self.q_width + kv))


@record
class Attention(Softmax):
    """Projections h x q, h x kv twice and q x h."""

    kind = "attention"

    kv_heads: Column
    head_dim: Column
    v_dim: Column = 0  # of a value head; 0: as head_dim
    shared_kv: Column = 0  # 1: keys are the values

    @property
    def q_head(self) -> Column:
        return self.head_dim

    @property
    def v_head(self) -> Column:
        return self.head_dim + (self.v_dim > 0) * (self.v_dim - self.head_dim)

    @property
    def saved_heads(self) -> Column:
        return self.kv_heads

    @property
    def kv_width(self) -> Column:
        return self.kv_heads * (self.head_dim + self.v_head) // 2

    @property
    def qkv_outputs(self) -> Column:
        return self.q_width + 2 * self.kv_width

    @property
    def chain_width(self) -> Column:
        return self.cast_width

    def weights(self) -> Column:
        """h q + 2 h kv + q h, and h x the gate. [count]"""
        kv = (2 - self.shared_kv) * self.kv_width
        return self.hidden * (self.q_width + kv + self.out_width + self.gate_width)

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        t, h, tp = on.tokens, self.hidden, on.plan.tp
        q = self.q_width / tp
        kv = np.maximum(self.kv_width / tp, np.minimum(self.head_dim, self.kv_width))
        out = q + 2 * kv + (self.out_width + self.gate_width) / tp
        stream = 2 * h * t
        across = q + 2 * self.kv_width / tp
        return (
            Gemm(
                "projections",
                flops=stream * out,
                elements=stream + out * (t + h),
                kernels=2.0,
                idle=on.idle_flops(h, (q, q), (across, across)),
            ),
        )
