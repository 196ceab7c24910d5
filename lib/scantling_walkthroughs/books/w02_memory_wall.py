"""Beat the memory wall: a 70B model on 64 devices, byte by byte: state, sharding, activations, what
is in flight, logits, what a card really has."""

from types import SimpleNamespace

from scantling import assess


def _zero(params, ways, gradients=2):
    """Bytes per device of 16-bit weights, gradients of 2 or 4 bytes and 12 bytes of Adam and
    master: zero1, zero2, zero3; ZeRO's own count has 16 bytes a parameter."""
    return SimpleNamespace(
        zero1=(2 + gradients) * params + 12 * params / ways,
        zero2=2 * params + (gradients + 12) * params / ways,
        zero3=(2 + gradients + 12) * params / ways,
    )


def _layer_bytes(shape, scores=True, batch=1):
    """Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h)."""
    s = shape.seq_len
    h = shape.hidden
    a = shape.heads
    return s * batch * h * (34 + (5 * a * s / h if scores else 0))


def zero():
    return _zero


def layer_bytes():
    return _layer_bytes


# ---- state


def first_half_free(sharded, half):
    """Key of the first sharding that leaves half a device free."""
    return next((key for key, held in zip("abc", vars(sharded).values()) if held < half), "d")


# ---- in flight


def first_stage_answer(first_stage_ratio):
    return "b" if abs(first_stage_ratio - 1) < 0.01 else "a" if first_stage_ratio < 1 else "c"


# ---- plans


def contexts(everything_again, seq_len, global_batch):
    """(sequence length, memory of the fullest device by part) for the plan with everything
    recomputed, the tokens of a batch kept."""
    return [
        (
            seq_len * times,
            assess(
                everything_again.change(
                    job={"seq_len": seq_len * times, "global_batch": global_batch // times}
                )
            ),
        )
        for times in (1, 2, 4, 8, 16)
    ]


def context_parts(contexts):
    (_, first), *_, (_, last) = contexts
    first = first.memory_bytes
    last = last.memory_bytes
    return {k: last[k] / first[k] for k in ("weights", "gradients", "optimizer", "activations")}
