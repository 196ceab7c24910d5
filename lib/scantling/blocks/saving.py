"""What a stack's recompute and number formats leave of the tensors that a block saves."""

from __future__ import annotations

from dataclasses import dataclass

from .table import Column


@dataclass(
    frozen=True,
    kw_only=True,
)
class Keeping:
    """How one device keeps the tensors of one micro-batch; numbers or columns over plans.

    `gemm`, `scores` and `chain` are the shares that `selective`
    recompute keeps of GEMM outputs, materialised scores and element-wise outputs.
    """

    seq_len: Column
    wide: Column  # 2 in fp32, 1 in 16 bit: of 2 bytes
    linear_bytes: Column  # of a linear layer's saved input value
    low: Column  # bytes of a value in 8 or 4 bit, 0 in 16 bit
    eager: Column  # 1 where chains run one operation at a time
    norm_bytes: Column  # of a sub-layer's norm, per value of the stream
    dropout: Column  # masks kept
    flash: Column  # 0: scores are materialised
    gemm: Column
    scores: Column
    chain: Column
    core: Column  # of the attention output, where the stack lists what it keeps
    narrow: Column  # of a repeated activation's inputs, kept in 8 bit
    imbalance: Column  # rows of the fullest expert rank over the mean
    chunked_loss: Column  # 1: the loss never holds all logits
    logit_bytes: Column
