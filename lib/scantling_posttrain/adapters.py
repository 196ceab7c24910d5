"""Adapters: low-rank updates of chosen projections, and what they cost beside the frozen weights.

Hu et al. 2021 (arXiv 2106.09685): W x + B A x, A of r x inputs and B of outputs x r; W is frozen.
"""

from collections.abc import Iterable
from typing import NamedTuple

from scantling.base.columns import Column
from scantling.blocks.attention import Softmax
from scantling.blocks.block_table import Shape
from scantling.blocks.mlp import Mlp
from scantling.blocks.moe import Moe

RANK = 16  # where nobody says one: the usual one of recipes (judgement)


class Adapted(NamedTuple):
    """The projections of an average layer that have an adapter."""

    modules: Column  # [count a layer]
    inputs: Column  # summed widths that they read [elements a layer]
    outputs: Column  # summed widths that they write [elements a layer]


class Targets(NamedTuple):
    """Which projections have adapters: shares of 0 or 1."""

    qkv: Column  # queries, keys and values
    out: Column  # attention's output
    mlp: Column  # gate, up and down
    fused: Column  # queries, keys and values are one projection, with one adapter


def attention_adapted(shape: Shape, targets: Targets) -> Iterable[Adapted]:
    """The attention projections: q, k, v (or one of all three) and the output. Under latent
    attention the down-projections stand for q, k and v."""
    for block in shape.of(Softmax):
        share = block.count / shape.layers
        first = targets.qkv * (3 - 2 * targets.fused)
        yield Adapted(
            share * (first + targets.out),
            share * (first * block.hidden + targets.out * block.out_width),
            share * (targets.qkv * block.qkv_outputs + targets.out * block.hidden),
        )


def feed_adapted(shape: Shape, targets: Targets) -> Iterable[Adapted]:
    """The projections of feed-forwards, those of every routed expert too: a token passes the
    adapters of the experts that it visits."""
    for block in shape.of(Mlp):
        share = block.count / shape.layers * targets.mlp
        up = block.matrices - 1
        yield Adapted(
            share * block.matrices,
            share * (up * block.hidden + block.width),
            share * (up * block.width + block.hidden),
        )
    for experts in shape.of(Moe):
        share = experts.count / shape.layers * targets.mlp
        up, visited = experts.matrices - 1, experts.top_k
        yield Adapted(
            share * experts.matrices,
            share * visited * (up * experts.hidden + experts.width),
            share * visited * (up * experts.width + experts.hidden),
        )


def adapted(shape: Shape, targets: Targets) -> Adapted:
    """The adapted projections of an average layer, as one token passes them."""
    parts = [*attention_adapted(shape, targets), *feed_adapted(shape, targets)]
    return Adapted(*(sum(column) for column in zip(*parts, strict=True)))


def expert_copies(shape: Shape, targets: Targets) -> Column:
    """Adapters of routed experts beyond those that one token passes, as inputs and outputs summed
    over an average layer. [elements]"""
    total: Column = 0.0
    for experts in shape.of(Moe):
        share = experts.count / shape.layers * targets.mlp
        unused = experts.experts - experts.top_k
        total = total + share * unused * experts.matrices * (experts.hidden + experts.width)
    return total


def adapter_parameters(shape: Shape, targets: Targets, rank: Column) -> Column:
    """r (inputs + outputs) of every adapted projection. [count] Hu et al. 2021, section 4.1."""
    one = adapted(shape, targets)
    return shape.layers * rank * (one.inputs + one.outputs + expert_copies(shape, targets))


def adapter_flops(shape: Shape, targets: Targets, rank: Column) -> Column:
    """2 r (inputs + outputs) of a token's forward, all layers. [FLOP]"""
    one = adapted(shape, targets)
    return 2 * shape.layers * rank * (one.inputs + one.outputs)
