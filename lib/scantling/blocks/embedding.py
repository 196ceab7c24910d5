"""The token embedding, with learned positions and its norm."""

from ..base.columns import Column
from ..base.records import record
from .block import Block


@record
class Embedding(Block):
    """`positions` rows of a learned table; `norms` weights of a norm behind it."""

    kind = "embedding"

    vocab: Column
    positions: Column = 0
    norms: Column = 0

    def parameters(self) -> dict[str, Column]:
        return {
            "embedding": self.vocab * self.hidden + self.positions * self.hidden,
            "norms": self.norms,
        }
