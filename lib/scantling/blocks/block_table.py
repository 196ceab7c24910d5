"""The table of blocks that a model is."""

from collections.abc import Callable
from typing import TypeVar, overload

import numpy as np

from ..base.columns import Array, Column, some
from ..base.records import record
from .answers import weighted
from .attention import Softmax
from .block import Block
from .moe import Moe
from .mtp import Mtp

Kind = TypeVar("Kind", bound=Block)


@record
class Shape:
    """A model as counts of block kinds, or a column of models [n].

    Its blocks are asked for by a word, which is a place (mixer, feed, end), a family or a kind, or
    by the class of a kind, whose own dimensions can then be read.
    """

    layers: Column
    hidden: Column
    blocks: tuple[Block, ...]
    order: tuple[tuple[int, ...], ...] = ()  # of one model with a pattern: blocks of each layer

    @overload
    def of(self, place: str) -> tuple[Block, ...]: ...
    @overload
    def of(self, place: type[Kind]) -> tuple[Kind, ...]: ...
    def of(self, place: str | type[Kind]) -> tuple[Block, ...] | tuple[Kind, ...]:
        """The blocks of a place, a family or a kind that some model has."""
        if isinstance(place, str):
            return tuple(
                b for b in self.blocks if place in (b.place, b.family, b.kind) and some(b.count)
            )
        return tuple(b for b in self.blocks if isinstance(b, place) and some(b.count))

    def count(self, place: str | type[Block]) -> Column:
        """How many blocks there are of a place or a kind."""
        return sum(b.count for b in self.of(place))

    @overload
    def mean(self, place: str, value: Callable[[Block], Column]) -> Column: ...
    @overload
    def mean(self, place: type[Kind], value: Callable[[Kind], Column]) -> Column: ...
    def mean(self, place: str | type[Block], value: Callable[..., Column]) -> Column:
        """`value(block)` over the layers' blocks of a place, in the model's own proportion."""
        return weighted((b.count / self.layers, value(b)) for b in self.of(place))

    @property
    def moe_layers(self) -> Column:
        return self.count(Moe)

    @property
    def mtp_layers(self) -> Column:
        return self.count(Mtp)

    @property
    def mtp_passes(self) -> Column:
        """How often MTP modules run for a token, heads with them."""
        return weighted((b.count, b.repeats) for b in self.of(Mtp))

    @property
    def mtp_experts(self) -> Column:
        """Parameters of the routed experts in all MTP modules."""
        inside = ((b.count * x.count, x) for b in self.of(Mtp) for x in b.layer)
        return weighted((n, x.parameters().get("routed_experts", 0)) for n, x in inside)

    @property
    def mtp_depth(self) -> Column:
        """The layers of the model that all passes of MTP modules stand for, by their blocks."""
        blocks = self.count("mixer") + self.count("feed")
        inside = (sum(x.count for x in b.layer if x.place != "end") for b in self.of(Mtp))
        return self.mtp_passes * weighted((self.layers / blocks, x) for x in inside)


def dense_before(shape: Shape, ahead: Column, layers: Column) -> Array:
    """Layers with a dense MLP among so many `layers` that follow `ahead` others: a quarter or fewer
    of them come first (DeepSeek-V3), more are spread evenly (Llama 4)."""
    dense = shape.layers - shape.moe_layers
    return np.where(
        few_dense(shape), np.clip(dense - ahead, 0, layers), layers * (dense / shape.layers)
    )


def plain_share(shape: Shape, feed: Block) -> Column:
    """Of the layers without experts, the share that has this feed-forward."""
    if sum(not isinstance(b, Moe) for b in shape.of("feed")) == 1:
        return 1.0
    return feed.count / np.maximum(shape.layers - shape.moe_layers, 1)


def few_dense(shape: Shape) -> bool | Array:
    """Whether the layers with a dense MLP are few enough to stand first: a quarter of all."""
    return 4 * (shape.layers - shape.moe_layers) <= shape.layers


def mean_heads(shape: Shape) -> Column:
    """Attention heads of a layer, over the layers of a model."""
    return shape.mean(Softmax, lambda b: b.heads)
