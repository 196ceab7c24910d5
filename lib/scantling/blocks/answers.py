"""What a block answers, and how answers are summed."""

from collections.abc import Iterable
from dataclasses import fields
from typing import NamedTuple, TypeVar

import numpy as np

from ..base.columns import Column, some
from ..base.records import record


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
    rate: Column | None = None  # FLOP/s; None: that of large plain products
    idle: Column = 0.0  # FLOPs that part-filled last waves leave out


Summed = TypeVar("Summed", Time, Saved, Exchange)


def weighted(terms: Iterable[tuple[Column, Column]]) -> Column:
    """Sum of weight x value; numbers of 0 and 1 cost nothing."""
    total: Column | None = None
    for weight, value in terms:
        if isinstance(weight, np.ndarray):  # as floats: whole numbers may have 32 bits only
            value = np.multiply(weight, value, dtype=float)
        elif weight and weight != 1:
            value = weight * value
        elif not weight:
            continue
        total = value if total is None else total + value
    return 0 if total is None else total


def fold(kind: type[Summed], terms: Iterable[tuple[Column, Summed]]) -> Summed:
    """Records of one `kind` summed field by field with their weights."""
    present = [(w, vars(r)) for w, r in terms if some(w)]
    return kind(**{f.name: weighted((w, r[f.name]) for w, r in present) for f in fields(kind)})
