"""Attention over the keys that an indexer picks: multi-head latent attention with the lightning
indexer (DeepSeek-V3.2, arXiv 2512.02556).

Hi heads of width di score every earlier key; attention reads the best `topk`.
"""

from dataclasses import replace

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Exchange, Time
from .kernels import Device
from .mla import Mla


def mean_keys(keys: Column, most: Column) -> Column:
    """Mean keys of causal queries over up to `keys`, `most` of them at most: m - m^2 / 2 n."""
    most = np.minimum(most, keys)
    return most - most * most / (2 * keys)


def scores_of(index_heads: Column, index_dim: Column, keys: Column) -> Column:
    """FLOP a token of an indexer's forward scores of causal `keys`: Hi (di + 1) each."""
    return index_heads * (index_dim + 1) * keys


@record
class IndexedMla(Mla):
    """`indexed` 0: the choice of an earlier layer is used again, without an indexer of its own."""

    kind = "mla_dsa"
    gathered = True

    index_heads: Column
    index_dim: Column
    index_topk: Column
    indexed: Column = 1

    def indexer(self) -> Column:
        """qr Hi di + h di + h Hi. [count]"""
        queries = self.q_lora * self.index_heads * self.index_dim
        return self.indexed * (queries + self.hidden * (self.index_dim + self.index_heads))

    def other_parameters(self) -> Column:
        return self.indexer() + self.indexed * 2 * self.index_dim

    def causal_share(self, seq_len: Column) -> Column:
        """The scores stand for both halves."""
        return 0.5

    def keys_seen(self, seq_len: Column) -> Column:
        return mean_keys(seq_len, self.index_topk)

    @property
    def absorbed_width(self) -> Column:
        """Kernels score latents: heads x (2 kv_lora + rope)."""
        return self.heads * (2 * self.kv_lora + self.qk_rope)

    @property
    def score_width(self) -> Column:
        return 2 * self.kv_lora + self.qk_rope

    def flops(self, seq_len: Column) -> dict[str, Column]:
        """Absorbed scores of the chosen keys; the indexer is projected and scored forward alone, as
        without its own loss (Megatron-Bridge, flop_utils.py)."""
        chosen = 2 * self.keys_seen(seq_len)
        scored = self.indexed * 2 * scores_of(self.index_heads, self.index_dim, seq_len)
        return {
            "attention_linear": 6 * self.weights() + 2 * self.indexer(),
            "attention_scores": 6 * chosen * self.absorbed_width + scored,
        }

    def kernel_s(self, on: Device) -> Time:
        """The core over the chosen keys, and scores of every causal key on the tensor cores."""
        time = super().kernel_s(on)  # every tensor-parallel rank repeats the indexer
        flops = 2 * self.indexer() + self.indexed * scores_of(
            self.index_heads, self.index_dim, on.seq_len
        )
        return replace(
            time,
            attention=time.attention + on.tokens * flops / (on.bf16_flops * on.constants.attention),
        )

    def exchanges(self) -> Exchange:
        """Over cp the latents and the indexer's keys are gathered."""
        return replace(
            super().exchanges(),
            kv=0.0,
            kv_head=self.kv_lora + self.qk_rope + self.indexed * self.index_dim,
        )
