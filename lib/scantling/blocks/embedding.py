"""The token embedding, with learned positions, its norm, and what else stands once in a model."""

from ..base.columns import Column
from ..base.records import record
from .block import Block


@record
class Embedding(Block):
    """`positions` rows of a learned table; `norms` weights of a norm behind it; `extras` weights
    of the model that no other block has, `extra_products` of them that multiply every token. The
    time of these is not counted: gates of Gemma 4's tables are 2 % of its products."""

    kind = "embedding"

    vocab: Column
    positions: Column = 0
    norms: Column = 0
    extras: Column = 0
    extra_products: Column = 0

    def parameters(self) -> dict[str, Column]:
        return {
            "embedding": (self.vocab + self.positions) * self.hidden + self.extras,
            "norms": self.norms,
        }

    def flops(self, seq_len: Column) -> dict[str, Column]:
        return {"mlp_dense": 6 * self.extra_products}
