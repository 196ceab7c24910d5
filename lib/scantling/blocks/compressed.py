"""DeepSeek-V4's attention: one key-value head of width d over a window, and beside it keys of which
each stands for `ratio` tokens; at a small ratio an indexer picks the best of them.

q low rank, o in groups: h qr + qr H d + h d + d; H d o_lora, then groups x o_lora x h.
"""

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Gemm
from .attention import Softmax
from .indexed import mean_keys, scores_of
from .kernels import Device


@record
class Compressed(Softmax):
    """`ratio` 0: the window alone; `picked` 1: an indexer chooses `index_topk` compressed keys."""

    kind = "compressed"
    gathered = True

    head_dim: Column
    q_lora: Column
    o_lora: Column
    o_groups: Column
    window: Column
    ratio: Column = 0
    picked: Column = 0
    index_heads: Column = 0
    index_dim: Column = 0
    index_topk: Column = 0

    @property
    def q_head(self) -> Column:
        return self.head_dim

    @property
    def v_head(self) -> Column:
        return self.head_dim

    @property
    def kv_width(self) -> Column:
        return self.head_dim

    @property
    def saved_heads(self) -> Column:
        return 1

    @property
    def chain_width(self) -> Column:
        return self.q_width + self.head_dim

    @property
    def qkv_outputs(self) -> Column:
        return self.chain_width

    def streams(self) -> Column:
        """Compressed keys are made from one stream of the tokens, from two where they overlap."""
        return (self.ratio > 0) * (1 + self.picked)

    def indexer(self) -> Column:
        """2 h di twice, qr Hi di and h Hi. [count]"""
        compress = 4 * self.hidden * self.index_dim
        queries = self.q_lora * self.index_heads * self.index_dim
        return self.picked * (compress + queries + self.hidden * self.index_heads)

    def weights(self) -> Column:
        h, d = self.hidden, self.head_dim
        query = self.q_lora * (h + self.q_width)
        out = self.q_width * self.o_lora + self.o_groups * self.o_lora * h
        return query + h * d + out + self.streams() * 2 * h * d + self.indexer()

    def other_parameters(self) -> Column:
        """Positions of compressed keys, the indexer's, and norms. [count]"""
        d = self.head_dim
        position = self.ratio * d * self.streams() + (self.ratio > 0) * d
        return position + self.picked * self.index_dim * (2 * self.ratio + 1) + self.q_lora + d

    def causal_share(self, seq_len: Column) -> Column:
        """The scores stand for both halves."""
        return 0.5

    def keys_seen(self, seq_len: Column) -> Column:
        """The window's, and s / 2 ratio compressed ones, `index_topk` at most where picked."""
        window = mean_keys(seq_len, self.window)
        compressed = seq_len / np.maximum(self.ratio, 1)
        best = mean_keys(compressed, np.where(self.picked > 0, self.index_topk, compressed))
        return window + (self.ratio > 0) * np.where(self.picked > 0, best, compressed / 2)

    def flops(self, seq_len: Column) -> dict[str, Column]:
        """The indexer's scores of compressed keys are counted in full, as Megatron-Bridge does."""
        scored = (
            self.picked
            * 6
            * scores_of(self.index_heads, self.index_dim, seq_len / np.maximum(self.ratio, 1))
        )
        return {
            "attention_linear": 6 * self.weights() + scored,
            "attention_scores": 12 * self.keys_seen(seq_len) * (self.q_width + self.out_width),
        }

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        return self.products(on, 2 * self.hidden + 2 * self.q_width / on.plan.tp)
