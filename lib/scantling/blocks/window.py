"""Attention over a sliding window: the projections of its kind, a core that sees fewer keys."""

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .attention import Attention
from .mla import Mla


def sliding_keys(window: Column, seq_len: Column) -> Column:
    """w - w^2 / 2s of s tokens: the window slides over all but its first w; 0 or more than a
    sequence: all of it."""
    w = np.where(window > 0, np.minimum(window, seq_len), seq_len)
    return w - w * w / (2 * seq_len)


@record
class Window(Attention):
    """Grouped-query attention over a window: `window` tokens are attended to."""

    kind = "window"

    window: Column

    def keys_seen(self, seq_len: Column) -> Column:
        return sliding_keys(self.window, seq_len)


@record
class WindowMla(Mla):
    """Multi-head latent attention over a window."""

    kind = "window-mla"

    window: Column

    def keys_seen(self, seq_len: Column) -> Column:
        return sliding_keys(self.window, seq_len)


@record
class Chunk(Window):
    """Grouped-query attention inside chunks of `window` tokens (Llama 4)."""

    kind = "chunk"

    def keys_seen(self, seq_len: Column) -> Column:
        """(a + 1) / 2 of a chunk of a tokens."""
        return (np.minimum(self.window, seq_len) + 1) / 2


@record
class IndexedWindow(Window):
    """Grouped-query attention over the blocks of keys that an indexer picks (MiniMax-M3).

    Its heads score every key; `window` tokens are chosen.
    """

    kind = "attn_blocksparse"

    index_heads: Column
    index_dim: Column

    def indexer(self) -> Column:
        """h Hi di + h di. [count]"""
        return self.hidden * self.index_dim * (self.index_heads + 1)

    def other_parameters(self) -> Column:
        return self.indexer() + 2 * self.index_dim

    def flops(self, seq_len: Column) -> dict[str, Column]:
        parts = super().flops(seq_len)
        parts["attention_linear"] = parts["attention_linear"] + 6 * self.indexer()
        return parts
