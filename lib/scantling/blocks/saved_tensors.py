"""What a stack's recompute and number formats leave of the tensors that a block saves."""

from ..base.columns import Column
from ..base.records import record
from .answers import Saved


@record
class Keeping:
    """How one device keeps the tensors of one micro-batch; numbers or columns over plans.

    `gemm`, `scores`, `up`, `norm`, `act` and `moe` are the shares that `selective` recompute keeps
    of GEMM outputs, materialised scores, what up-projections of latents give, outputs of norms, of
    activations, and of whole MoE blocks.
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
    up: Column
    norm: Column
    act: Column
    moe: Column
    core: Column  # of the attention output, where the stack lists what it keeps
    narrow: Column  # of a repeated activation's inputs, kept in 8 bit
    imbalance: Column  # rows of the fullest expert rank over the mean
    # of a value that an expert reads or gives back, kept for the weights of the rows
    expert_bytes: Column
    eager_experts: Column  # 1 where the activation of experts runs one operation at a time
    chunked_loss: Column  # 1: the loss never holds all logits
    logit_bytes: Column


def stream_bytes(hidden: Column, keep: Keeping, input_width: Column = 2.0) -> Saved:
    """What a sub-layer keeps of the stream: its input, `input_width` bytes a value, and its norm's
    output."""
    stream = hidden * keep.wide
    return Saved(
        outer=(input_width + keep.norm_bytes) * stream,
        outer_selective=(input_width + keep.norm * keep.norm_bytes) * stream,
    )
