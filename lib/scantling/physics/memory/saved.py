"""Bytes that one transformer block keeps for its backward pass, on one device without parallelism:
fused kernels and plain eager code.

The memory model uses the fused list (`blocks.*.saved_bytes`). The eager list is that of the
transformers library's own modules, exact against saved-tensor hooks; it shows what fusing saves and
bounds what an unknown stack may keep.
"""

from __future__ import annotations

import numpy as np

KINDS = ("fused", "eager")
KERNELS = ("flash", "materialised")


def saved_bytes_per_layer(
    shape, tokens, seq_len, dtype_bytes=2, kind="fused", attention="flash", head_norm=False
):
    """Bytes of one dense block's saved tensors for `tokens` tokens in sequences of `seq_len`.
    [bytes]

    Parameters
    ----------
    shape : blocks.table.Shape
        Columns work. Expert layers are not counted here.
    tokens, seq_len : int or array
        Tokens in the micro-batch, and in one sequence.
    dtype_bytes : 2 or 4
        Of the activations; log-sum-exps, and under 2 the eager norms' copies, stay in 4.
    kind : "fused" or "eager"
        fused, per token: norms 4h in and out, 3h in parallel blocks; q, 2 kv and the output as kept
        by flash attention; gate, up and product, or up and its activation. eager: gated blocks as
        in the llama kind (RMSNorm upcast to fp32: 2h fp32 and 4h; silu kept: 4f), plain ones as in
        gpt2 (LayerNorm fused; five tensors of f for the tanh GELU written out).
    attention : "flash" or "materialised"
        flash keeps 4 bytes per head and token; materialised keeps the probabilities, and under the
        eager llama kind k and v repeated for every head, with an fp32 softmax beside a 16-bit one.
    head_norm : bool
        Norms over the heads of q and k (eager kind).

    Notes
    -----
    Dropout is off. With checkpointing a block keeps hidden x dtype_bytes a token, whatever the
    kind. Megatron's 34 s b h (Korthikanti
    et al. 2022) is the fused list of a GPT block plus two masks of one byte and h each.

    Raises
    ------
    ValueError
        For a kind, kernel or dtype that is not listed.

    References
    ----------
    torch.autograd.graph.saved_tensors_hooks around the blocks of transformers 5.23.0, torch 2.13.0,
    CPU.
    """
    for value, allowed in ((kind, KINDS), (attention, KERNELS), (dtype_bytes, (2, 4))):
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(map(str, allowed))}")
    (mixer,), (mlp,) = shape.of("mixer"), shape.of("feed")
    e, flash, half, gated = dtype_bytes, attention == "flash", dtype_bytes == 2, mlp.matrices == 3
    h, f, heads = shape.hidden, mlp.width, mixer.heads
    q, kv, out = mixer.q_width, mixer.kv_width, mixer.out_width
    if kind == "fused":
        core = 4 * heads if flash else e * heads * seq_len
        return tokens * (
            e * ((4 - mlp.parallel) * h + q + 2 * kv + out + np.where(gated, 3, 2) * f) + core
        )
    heads_kept = np.where(gated & (not flash), 2 * q, 2 * kv)
    norms = np.where(gated, (8 * h + 8 * h if half else 24 * h) + 8, e * (4 * h + 4))
    head_norms = (
        (((6 if half else 8) * (q + kv)) + 4 * (heads + mixer.kv_heads)) if head_norm else 0
    )
    probabilities = np.where(gated & half, 6, e) * heads * seq_len
    core = 4 * heads if flash else probabilities
    return (
        tokens
        * (norms + head_norms + e * (q + heads_kept + out + np.where(gated, 4, 5) * f) + core)
    )[()]
