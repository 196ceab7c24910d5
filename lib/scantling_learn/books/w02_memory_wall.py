"""Beat the memory wall: a 70B model on 64 devices, byte by byte: state, sharding, activations, what
is in flight, logits, what a card really has."""

from __future__ import annotations

from types import SimpleNamespace

from scantling import assess
from scantling.physics import pipeline

MIB = 2**20


def _zero(params, ways):
    """ZeRO's own count, 16 bytes a parameter."""
    return SimpleNamespace(
        zero1=4 * params + 12 * params / ways,
        zero2=2 * params + 14 * params / ways,
        zero3=16 * params / ways,
    )


def _layer_bytes(
    shape,
    scores=True,
    batch=1,
):
    """Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h)."""
    s, h, a = shape.seq_len, shape.hidden, shape.heads
    return s * batch * h * (34 + (5 * a * s / h if scores else 0))


def zero():
    return _zero


def layer_bytes():
    return _layer_bytes


# ---- what a card has


def smi_bytes(smi_mib):
    return smi_mib * MIB


# ---- state


def sharded(params):
    """Bytes per device of 18 bytes a parameter, 64 ways: zero1, zero2, zero3."""
    n = params
    return SimpleNamespace(
        zero1=6 * n + 12 * n / 64,
        zero2=2 * n + 16 * n / 64,
        zero3=18 * n / 64,
    )


def first_half_free(sharded, half):
    """Key of the first sharding that leaves half a device free."""
    return next((key for key, held in zip("abc", vars(sharded).values()) if held < half), "d")


# ---- in flight


def first_stage_ratio():
    """Activations of the first stage at pp 8 over those at pp 4, the layers the same in all."""
    eight, four = (
        pipeline.in_flight(
            "1f1b",
            p,
            1,
            128,
            stage=0,
        )
        / p
        for p in (8, 4)
    )
    return eight / four


def first_stage_answer(first_stage_ratio):
    return "b" if abs(first_stage_ratio - 1) < 0.01 else "a" if first_stage_ratio < 1 else "c"


def interleaved_more():
    held = pipeline.in_flight(
        "interleaved",
        8,
        10,
        128,
    )
    return (
        held
        / pipeline.in_flight(
            "1f1b",
            8,
            1,
            128,
        )
        - 1
    )


# ---- plans


def contexts(
    everything_again,
    seq_len,
    global_batch,
):
    """(sequence length, memory of the fullest device by part) for the plan with everything
    recomputed, the tokens of a batch kept."""
    return [
        (
            seq_len * times,
            assess(
                everything_again.change(
                    job={
                        "seq_len": seq_len * times,
                        "global_batch": global_batch // times,
                    }
                )
            ),
        )
        for times in (1, 2, 4, 8, 16)
    ]


def context_parts(contexts):
    (_, first), *_, (_, last) = contexts
    first, last = first.memory_bytes, last.memory_bytes
    return {k: last[k] / first[k] for k in ("weights", "gradients", "optimizer", "activations")}


def context_answer(context_parts):
    return {
        "activations": "b",
        "optimizer": "c",
        "weights": "d",
    }.get(max(context_parts, key=context_parts.get), "a")
