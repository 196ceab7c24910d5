"""What the memory model knows about software: sourced priors, facts of each stack, and the fitted
values that ship beside them.

A fitted value is prior x exp(offset); offsets by stack live in catalogue/memory_calibration.json,
made by `python -m scantling.evidence.calibrate.memory`. A stack that is not there has its priors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ...catalogue.stacks import stack as stack_of

PRIORS: dict[
    str, tuple[float, float, float, str, str]
] = {  # value, sd of the global and of a stack's log offset, unit, source
    "activation": (
        1.0,
        0.05,
        0.10,
        "of the listed tensors",
        "Korthikanti et al. 2022, section 4; saved-tensor hooks on the blocks of transformers",
    ),
    "logit_bytes": (
        8.0,
        0.10,
        0.30,
        "bytes per logit of one micro-batch",
        (
            "16-bit logits, fp32 copy, gradient; a fused cross entropy keeps 6, an eager "
            "one 12 or more"
        ),
    ),
    "working": (
        0.4,
        0.10,
        0.0,
        "of one layer's saved activations",
        "gradients of the largest tensors while one layer runs backward",
    ),
    "framework_bytes": (
        2.0e9,
        0.10,
        0.70,
        "bytes",
        (
            "CUDA context, NCCL channels, cuBLAS and attention workspaces: 1 to 2.5 GB; "
            "bucketing engines more"
        ),
    ),
    "step_bytes": (
        4.0,
        0.10,
        0.30,
        "bytes per locally updated parameter",
        "fp32 copies of 16-bit gradients while the optimizer steps",
    ),
    "imbalance": (
        1.05,
        0.03,
        0.0,
        "rows of the fullest expert rank over the mean",
        "dropless routing with an auxiliary loss",
    ),
    "pair_bytes": (
        4.0,
        0.10,
        2.0,
        "bytes per pair of tokens of a sequence, stacks with dense masks",
        "dense masks over packed sequences, in fp32; nothing where attention is fused",
    ),
}
FRAGMENTATION = {
    "allocated": 0.0,
    "reserved": 0.04,
    "device": 0.04,
    "planned": 0.0,
}  # of what the program allocates; reserved over allocated, published PyTorch runs
# of the memory held back for a stack without data: what eager code takes above the list nobody can
# tell beforehand; a compiler that plans all memory has no such rest
UNKNOWN_SHARE = 0.05
CONTEXT_BYTES = 1.0e9  # CUDA context, code and NCCL: outside the allocator's figures
# Facts of each stack's code and of what its published figures count stand in its file of
# catalogue/stacks, under `memory`; not fitted.
#   dropout: masks kept
#   fp32_shards: the sharded fp32 weight is the only copy
#   bf16_gradients: bytes of a gradient under bf16, the 16-bit one and the fp32 one it is added to
#   dense_masks: masks built in full, pair by pair
# low_weights: no 16-bit weight beside the 8-bit ones and the fp32 master (DeepSeek-V3, section 3.3;
# fp8_param_gather of NeMo and Megatron-Bridge)
# per_op: `selective` keeps listed matrix products and attention alone, every other output is
# repeated
# layers_gathered: layers in full at once under ZeRO-3; a compiler that plans the gathers needs one
# logit_bytes, framework_bytes: priors of their own (a cross entropy whose backward overwrites the
# 16-bit logits; no CUDA context)
# ran: no peaks are printed, but a run is that filled its devices (DeepSeek-V3 on 80 GB): nothing is
# held back
# figures: what the numbers count; "planned": a compiler lays all memory out beforehand, nothing is
# left over between blocks


@dataclass(frozen=True)
class MemoryConstants:
    """One value or column per constant of PRIORS, then the facts of the stack (0 or 1, bytes,
    shares)."""

    activation: Any = PRIORS["activation"][0]
    logit_bytes: Any = PRIORS["logit_bytes"][0]
    working: Any = PRIORS["working"][0]
    framework_bytes: Any = PRIORS["framework_bytes"][0]
    step_bytes: Any = PRIORS["step_bytes"][0]
    imbalance: Any = PRIORS["imbalance"][0]
    pair_bytes: Any = PRIORS["pair_bytes"][0]
    dropout: Any = 0.0
    fp32_shards: Any = 0.0
    bf16_gradients: Any = 0.0
    dense_masks: Any = 0.0
    low_weights: Any = 0.0
    per_op: Any = 0.0
    layers_gathered: Any = 2.0
    fragmentation: Any = FRAGMENTATION["device"]
    unseen_bytes: Any = 0.0  # context, where the figures leave it out
    # fragmentation, where the figures leave it out; and what an unknown stack may take
    unseen_share: Any = UNKNOWN_SHARE


GENERIC = MemoryConstants()


@cache
def calibration() -> dict:
    """The fitted offsets that ship with the kit; empty where none were made."""
    path = files("scantling.catalogue") / "memory_calibration.json"
    return json.loads(path.read_text()) if path.is_file() else {"offsets": {}}


def gather(stacks, offsets: dict | None = None) -> MemoryConstants:
    """Constants of each case from the name of its stack (str, None or array of str); scalars give
    scalars."""
    offsets = calibration()["offsets"] if offsets is None else offsets
    if stacks is None or isinstance(stacks, str):
        return _of(stacks or "", offsets)
    unique, inverse = np.unique(np.asarray(stacks, dtype=str), return_inverse=True)
    rows = [_of(name, offsets) for name in unique]
    columns = {
        f.name: np.array([getattr(r, f.name) for r in rows]) for f in fields(MemoryConstants)
    }
    return MemoryConstants(
        **{k: float(v[0]) if np.all(v == v[0]) else v[inverse] for k, v in columns.items()}
    )


def _of(stack: str, offsets: dict) -> MemoryConstants:
    values = {}
    for name, (prior, *_) in PRIORS.items():
        fitted = offsets.get(name, {})
        values[name] = float(
            prior * np.exp(fitted.get("global", 0.0) + fitted.get("stack", {}).get(stack, 0.0))
        )
    # a stack that is named but unmeasured may take more than the pooled constants say; where none
    # is named the estimate is the pooled one
    known = not stack or any(stack in fitted.get("stack", {}) for fitted in offsets.values())
    facts = dict(stack_of(stack).memory)
    known |= bool(facts.pop("ran", 0.0))
    for name in facts.keys() & PRIORS.keys():
        values[name] *= facts.pop(name) / PRIORS[name][0]
    figures = facts.pop("figures", "device")
    seen = FRAGMENTATION[figures]
    return MemoryConstants(
        **values,
        **facts,
        fragmentation=seen,
        unseen_bytes=CONTEXT_BYTES if figures in ("allocated", "reserved") else 0.0,
        unseen_share=(FRAGMENTATION["device"] if figures == "allocated" else 0.0)
        + (0.0 if known or figures == "planned" else UNKNOWN_SHARE),
    )
