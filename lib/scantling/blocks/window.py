"""Attention over a sliding window: the projections of its kind, a core that sees fewer keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .attention import Attention
from .mla import Mla
from .table import Column


@dataclass(
    frozen=True,
    kw_only=True,
)
class Sliding:
    """`window` tokens are attended to; 0 or more than a sequence: all of it."""

    window: Column

    def keys_seen(self, seq_len):
        """w - w^2 / 2s of s tokens: the window slides over all but its first w."""
        w = np.where(self.window > 0, np.minimum(self.window, seq_len), seq_len)
        return w - w * w / (2 * seq_len)


@dataclass(
    frozen=True,
    kw_only=True,
)
class Window(Sliding, Attention):
    """Grouped-query attention over a window."""

    kind = "window"


@dataclass(
    frozen=True,
    kw_only=True,
)
class WindowMla(Sliding, Mla):
    """Multi-head latent attention over a window."""

    kind = "window-mla"
