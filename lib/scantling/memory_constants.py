"""What the memory model knows about software: sourced priors, facts of each stack, and the fitted values that ship beside them.

A fitted value is prior x exp(offset); offsets by stack live in catalogue/memory_calibration.json, made by
`python -m scantling.calibrate_memory`. A stack that is not there has its priors.
"""
from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

PRIORS: dict[str, tuple[float, str, str]] = {
    "activation": (1.0, "of the listed tensors", "Korthikanti et al. 2022, section 4; saved-tensor hooks on fused blocks"),
    "logit_bytes": (10.0, "bytes per logit of one micro-batch", "bf16 logits, fp32 copy and gradient; fused cross entropy keeps less"),
    "working": (0.4, "of one layer's saved activations", "gradients of the largest tensors while one layer runs backward"),
    "framework_bytes": (2.5e9, "bytes", "CUDA context, NCCL channels, cuBLAS and attention workspaces; 1 to 2.5 GB in allocator figures"),
    "fragmentation": (0.04, "of what the program allocates", "reserved over allocated in published PyTorch runs"),
    "imbalance": (1.1, "rows of the fullest expert rank over the mean", "dropless routing with an auxiliary loss"),
}
# facts of the code, not fitted: dropout masks kept; sharded weights kept in fp32 alone, which serves as the master copy
FACTS: dict[str, dict[str, float]] = {
    "megatron-lm": {"dropout": 1.0},
    "megatron-deepspeed": {"dropout": 1.0},
    "zero-bubble": {"dropout": 1.0},
    "torchtitan": {"fp32_shards": 1.0},
    "pytorch-fsdp": {"fp32_shards": 1.0},
    "maxtext": {"fp32_shards": 1.0},
}


@dataclass(frozen=True)
class MemoryConstants:
    """One value or column per constant of PRIORS, then the facts of the stack (0 or 1)."""

    activation: Any = PRIORS["activation"][0]
    logit_bytes: Any = PRIORS["logit_bytes"][0]
    working: Any = PRIORS["working"][0]
    framework_bytes: Any = PRIORS["framework_bytes"][0]
    fragmentation: Any = PRIORS["fragmentation"][0]
    imbalance: Any = PRIORS["imbalance"][0]
    dropout: Any = 0.0
    fp32_shards: Any = 0.0


GENERIC = MemoryConstants()


@cache
def calibration() -> dict:
    """The fitted offsets that ship with the kit; empty where none were made."""
    path = files("scantling.catalogue") / "memory_calibration.json"
    return json.loads(path.read_text()) if path.is_file() else {"offsets": {}}


def gather(stacks, offsets: dict | None = None) -> MemoryConstants:
    """Constants of each case from the name of its stack (str, None or array of str); scalars give scalars."""
    offsets = calibration()["offsets"] if offsets is None else offsets
    if stacks is None or isinstance(stacks, str):
        return _of(stacks or "", offsets)
    unique, inverse = np.unique(np.asarray(stacks, dtype=str), return_inverse=True)
    rows = [_of(name, offsets) for name in unique]
    columns = {f.name: np.array([getattr(r, f.name) for r in rows]) for f in fields(MemoryConstants)}
    return MemoryConstants(**{k: float(v[0]) if np.all(v == v[0]) else v[inverse] for k, v in columns.items()})


def _of(stack: str, offsets: dict) -> MemoryConstants:
    values = {}
    for name, (prior, _, _) in PRIORS.items():
        fitted = offsets.get(name, {})
        values[name] = float(prior * np.exp(fitted.get("global", 0.0) + fitted.get("stack", {}).get(stack, 0.0)))
    return MemoryConstants(**values, **FACTS.get(stack, {}))
