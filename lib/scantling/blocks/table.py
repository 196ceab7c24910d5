"""The table of blocks that a model is, and what every kind of block answers."""

from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base.records import record

Column = Any  # float, int or numpy array of shape (n,)


@record
class Time:
    """Forward seconds of kernels on one device and micro-batch; `attention_backward` where the
    backward is not twice the forward."""

    gemm: Column = 0.0
    attention: Column = 0.0
    attention_backward: Column = 0.0
    elementwise: Column = 0.0
    cast: Column = 0.0  # once per micro-batch, forward and backward together
    host: Column = 0.0
    accumulate: Column = 0.0  # adding weight gradients to their buffer, once per micro-batch
    tail: Column = 0.0  # of gemm: the down-projection, whose output the backward never reads
    logits: Column = 0.0  # output head and loss, forward and backward


@record
class Saved:
    """What a block leaves for the backward pass: bytes a token with nothing repeated, and what
    `selective` recompute leaves of them."""

    outer: Column = 0.0  # outside the tensor-parallel products, divided with the sequence alone
    outer_selective: Column = 0.0
    inner: Column = 0.0  # divided by tp
    inner_selective: Column = 0.0
    routed: Column = 0.0  # divided by tp, once for each of the etp ranks of an expert
    routed_selective: Column = 0.0
    latent: Column = 0.0  # on every rank, never repeated
    copies: Column = 0.0  # token copies that experts receive: of the fullest rank [count]
    logits: Column = 0.0  # divided by tp


@record
class Exchange:
    """What one block sends forward, per token."""

    tensor: Column = 0.0  # pairs of all-gather and reduce-scatter of the stream over tp [count]
    kv: Column = 0.0  # values that go round over cp: keys and values, divided by tp
    kv_head: Column = 0.0  # but no fewer than a rank's one head of each
    relaid: Column = 0.0  # values from sequence to heads and back over cp, divided by tp
    swapped: Column = 0.0  # the same for a scan, whatever way attention takes over cp
    copies: Column = 0.0  # experts that a token is sent to over ep [count]
    narrow: Column = 0.0  # of them, the share of the stream's width that is not sent


class Gemm(NamedTuple):
    """Matrix products of one kind in one block: what they execute and touch on one device."""

    name: str
    flops: Column
    elements: Column  # of operands, each once
    kernels: Column
    rate: Column = None  # FLOP/s; None: that of large plain products
    idle: Column = 0.0  # FLOPs that part-filled last waves leave out


@record
class Block:
    """`count` blocks of one kind in a model; every field one number or a column over models.

    A column of models that has a kind in some rows only has count 0 in the others. The answers are
    those of one block: what a kind does not do it leaves at nothing.
    """

    kind: ClassVar[str] = ""
    place: ClassVar[str] = "end"  # mixer and feed: one of each makes a layer; end: outside
    family: ClassVar[str] = ""  # softmax: attention with scores of queries and keys
    active_bytes = 0.0  # that the activation of a feed-forward moves for a token

    count: Column
    hidden: Column

    def parameters(self) -> dict[str, Column]:
        """Parameters by part of `Params`; `unused` of them a token leaves out."""
        return {}

    def flops(self, seq_len) -> dict[str, Column]:
        """Training FLOP a token by part of `Flops`: 6 a weight, scores in full."""
        return {}

    def gemms(self, on) -> tuple[Gemm, ...]:
        """Matrix products of a micro-batch on a device."""
        return ()

    def kernel_s(self, on) -> Time:
        """Kernel time of a micro-batch on a device. [s]"""
        return Time()

    def saved_bytes(self, keep) -> Saved:
        """What a token leaves for the backward pass. [bytes]"""
        return Saved()

    def exchanges(self) -> Exchange:
        """What a token sends over tp, cp and ep."""
        return Exchange()


@record
class Shape:
    """A model as counts of block kinds, or a column of models [n]."""

    layers: Column
    hidden: Column
    blocks: tuple[Block, ...]
    order: tuple[tuple[int, ...], ...] = ()  # of one model with a pattern: blocks of each layer

    def of(self, place: str) -> tuple[Block, ...]:
        """The blocks of a place (mixer, feed, end), a family or a kind that some model has."""
        return tuple(
            b for b in self.blocks if place in (b.place, b.family, b.kind) and some(b.count)
        )

    def count(self, place: str) -> Column:
        """How many blocks there are of a place or a kind."""
        return sum(b.count for b in self.of(place))

    @property
    def moe_layers(self) -> Column:
        return self.count("moe")

    @property
    def mtp_layers(self) -> Column:
        return self.count("mtp")

    @property
    def mtp_passes(self) -> Column:
        """How often MTP modules run for a token, heads with them."""
        return weighted((b.count, b.repeats) for b in self.of("mtp"))

    @property
    def mtp_experts(self) -> Column:
        """Parameters of the routed experts in all MTP modules."""
        inside = ((b.count * x.count, x) for b in self.of("mtp") for x in b.layer)
        return weighted((n, x.parameters().get("routed_experts", 0)) for n, x in inside)

    @property
    def mtp_depth(self) -> Column:
        """The layers of the model that all passes of MTP modules stand for, by their blocks."""
        blocks = self.count("mixer") + self.count("feed")
        inside = (sum(x.count * (x.place != "end") for x in b.layer) for b in self.of("mtp"))
        return self.mtp_passes * weighted((self.layers / blocks, x) for x in inside)

    def mean(self, place: str, value) -> Column:
        """`value(block)` over the layers' blocks of a place, in the model's own proportion."""
        return weighted((b.count / self.layers, value(b)) for b in self.of(place))


def weighted(terms) -> Column:
    """Sum of weight x value; numbers of 0 and 1 cost nothing."""
    total = None
    for weight, value in terms:
        if isinstance(weight, np.ndarray):  # as floats: whole numbers may have 32 bits only
            value = np.multiply(weight, value, dtype=float)
        elif weight and weight != 1:
            value = weight * value
        elif not weight:
            continue
        total = value if total is None else total + value
    return 0 if total is None else total


def some(count: Column) -> bool:
    """Whether any model has a block."""
    return bool(count.any() if isinstance(count, np.ndarray) else count)


def fold(kind: type, terms):
    """Records of one `kind` summed field by field with their weights."""
    terms = [(w, r) for w, r in terms if some(w)]
    return kind(
        **{f.name: weighted((w, getattr(r, f.name)) for w, r in terms) for f in fields(kind)}
    )


def dense_before(shape: Shape, ahead, held):
    """Layers with a dense MLP among the `held` that follow `ahead` others: a quarter or fewer of
    them come first (DeepSeek-V3), more are spread evenly (Llama 4)."""
    dense = shape.layers - shape.moe_layers
    return np.where(
        few_dense(shape), np.clip(dense - ahead, 0, held), held * (dense / shape.layers)
    )


def plain_share(shape: Shape, feed: Block):
    """Of the layers without experts, the share that has this feed-forward."""
    if sum(b.kind != "moe" for b in shape.of("feed")) == 1:
        return 1.0
    return feed.count / np.maximum(shape.layers - shape.moe_layers, 1)


def few_dense(shape: Shape):
    """Whether the layers with a dense MLP are few enough to stand first: a quarter of all."""
    return 4 * (shape.layers - shape.moe_layers) <= shape.layers


def mean_heads(shape: Shape):
    """Attention heads of a layer, over the layers of a model."""
    return shape.mean("softmax", lambda b: b.heads)
