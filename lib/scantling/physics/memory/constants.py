"""What the memory model knows about software: sourced priors, facts of each stack, and the fitted
values that ship beside them.

A fitted value is prior x exp(offset); offsets by stack live in catalogue/memory_calibration.json,
made by `make calibrate`. A stack that is not there has its priors.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import exp
from typing import Any, NamedTuple

import numpy as np

from ...base.columns import Column
from ...base.files import csv_rows
from ...base.records import record
from ...catalogue.load import HERE, fitted
from ...catalogue.stacks import stack as stack_of
from ..named import Names, Offsets, known_offsets, same_names


class Prior(NamedTuple):
    """A constant before any fit, and the standard deviations of its log offset, for all stacks
    alike and of one stack."""

    value: float
    sd: float
    stack_sd: float
    source: str


def _priors() -> dict[str, Prior]:
    """The rows of catalogue/memory_priors.csv by name."""
    rows = csv_rows(HERE / "memory_priors.csv")
    return {
        row["name"]: Prior(
            value=float(row["value"]),
            sd=float(row["sd"]),
            stack_sd=float(row["stack_sd"]),
            source=row["source"],
        )
        for row in rows
    }


PRIORS = _priors()
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
# catalogue/stacks, under `memory`; not fitted. What they mean: catalogue/memory_facts.csv. Beside
# them:
# logit_bytes, framework_bytes: priors of their own (a cross entropy whose backward overwrites the
# 16-bit logits; no CUDA context)
# ran: no peaks are printed, but a run is that filled its devices (DeepSeek-V3 on 80 GB): nothing is
# held back
# figures: what the numbers count; "planned": a compiler lays all memory out beforehand, nothing is
# left over between blocks


FACTS = {row["name"]: float(row["default"]) for row in csv_rows(HERE / "memory_facts.csv")} | {
    "fragmentation": FRAGMENTATION["device"],
    "unseen_bytes": 0.0,  # context, where the figures leave it out
    # fragmentation, where the figures leave it out; and what an unknown stack may take
    "unseen_share": UNKNOWN_SHARE,
}


@record
class MemoryConstants:
    """One value or column a constant (catalogue/memory_priors.csv), then the facts of the stack: 0
    or 1, bytes, shares (catalogue/memory_facts.csv)."""

    activation: Column  # of the listed tensors
    logit_bytes: Column  # bytes per logit of one micro-batch
    working: Column  # of one layer's saved activations
    framework_bytes: Column  # bytes
    step_bytes: Column  # bytes per locally updated parameter
    imbalance: Column  # rows of the fullest expert rank over the mean
    pair_bytes: Column  # bytes per pair of tokens of a sequence, stacks with dense masks
    dropout: Column  # 1: masks of dropout are kept
    fp32_shards: Column  # 1: the sharded fp32 weight is the only copy
    # bytes of a gradient under bf16: the 16-bit one and the fp32 one that it is added to
    bf16_gradients: Column
    engine_gradients: Column  # the same where a pipeline engine drives the step
    plain_gradients: Column  # most bytes of a gradient where no pipeline engine drives the step
    # most bytes of a gradient that stand a second time in the buckets of the exchange, where there
    # are replicas
    bucket_bytes: Column
    host_gradient_bytes: Column  # least bytes of the gradient that stays with offloaded states
    # of offloaded states under ZeRO-1 and ZeRO-2: buffers and the rounding of pinned memory
    host_factor: Column
    # 1: under ZeRO-1 and ZeRO-2 gradients of several micro-batches are added on the host, whole
    # and in 16 bit
    host_accumulates: Column
    # 1: gradients are None between steps; with one micro-batch a step they take the place of
    # the activations that the backward frees
    fresh_gradients: Column
    # bytes of a sharded gradient that is summed whole, in the format that computes or wider, over
    # the micro-batches of a step and reduced once (no_sync); 0: it is reduced after each
    whole_gradients: Column
    step_parameters: Column  # most of a device that the optimizer steps over at once under ZeRO-3
    # 1: the optimizer steps over all tensors at once, with a copy of the second moments for
    # their roots (torch.optim's foreach)
    foreach: Column
    # 1: norms and activations keep what each of their operations reads, but for kernels that chunk
    # the loss too (Liger)
    eager: Column
    dense_masks: Column  # 1: masks are built in full, pair by pair
    # 1: experts weight a row before their second product, whose output nothing keeps
    weighted_inside: Column
    # 1: experts weight rows in fp32 before their products; that copy is kept, their output is not
    weighted_fp32: Column
    # 1: the activation of experts keeps what each of its operations reads
    eager_experts: Column
    whole_logits: Column  # 1: the head's result is gathered over tp before the loss
    # 1: no 16-bit weight beside the 8-bit ones and the fp32 master (DeepSeek-V3, section 3.3;
    # fp8_param_gather of NeMo and Megatron-Bridge)
    low_weights: Column
    # 1: `selective` keeps listed matrix products and attention alone, every other output is
    # repeated
    per_op: Column
    # layers in full at once under ZeRO-3; a compiler that plans the gathers needs one
    layers_gathered: Column
    fragmentation: Column  # of what the program allocates
    unseen_bytes: Column  # context, where the figures leave it out
    # fragmentation, where the figures leave it out; and what an unknown stack may take
    unseen_share: Column


same_names(MemoryConstants, (*PRIORS, *FACTS), "memory_priors.csv and memory_facts.csv")
GENERIC = MemoryConstants(**{name: prior.value for name, prior in PRIORS.items()}, **FACTS)


def calibration() -> Mapping[str, Any]:
    """The fitted offsets that ship with the kit."""
    return fitted("memory_calibration")


@cache
def shipped_offsets() -> Offsets:
    """The offsets of catalogue/memory_calibration.json, each of a constant of PRIORS."""
    offsets = calibration()["offsets"]
    return known_offsets(offsets, PRIORS, ("stack",), "memory_calibration.json")


def gather(stacks: Names | None, offsets: Offsets | None = None) -> MemoryConstants:
    """Constants of each case from the name of its stack (str, None or array of str); scalars give
    scalars."""
    offsets = shipped_offsets() if offsets is None else offsets
    if stacks is None or isinstance(stacks, str):
        return _of(stacks or "", offsets)
    unique, inverse = np.unique(np.asarray(stacks, dtype=str), return_inverse=True)
    rows = [_of(name, offsets) for name in unique]
    columns = {name: np.array([vars(row)[name] for row in rows], float) for name in vars(GENERIC)}
    return MemoryConstants(
        **{
            name: float(values[0]) if np.all(values == values[0]) else values[inverse]
            for name, values in columns.items()
        }
    )


def _of(stack: str, offsets: Offsets) -> MemoryConstants:
    by_stack = {name: offsets.get(name, {}).get("stack", {}) for name in PRIORS}
    values = {
        name: prior.value
        * exp(offsets.get(name, {}).get("global", 0.0) + by_stack[name].get(stack, 0.0))
        for name, prior in PRIORS.items()
    }
    stated = dict(stack_of(stack).memory)
    # a stack that is named but unmeasured may take more than the pooled constants say; where none
    # is named the estimate is the pooled one
    known = not stack or any(stack in fitted for fitted in by_stack.values())
    known |= bool(stated.pop("ran", 0.0))
    figures = str(stated.pop("figures", "device"))
    facts = {name: float(value) for name, value in stated.items()}
    for name in facts.keys() & PRIORS.keys():
        values[name] *= facts.pop(name) / PRIORS[name].value
    unseen = CONTEXT_BYTES if figures in ("allocated", "reserved") else 0.0
    values["framework_bytes"] -= unseen  # the figures leave the context out
    unknown_share = 0.0 if known or figures == "planned" else UNKNOWN_SHARE
    return replace(
        GENERIC,
        **values,
        **facts,
        fragmentation=FRAGMENTATION[figures],
        unseen_bytes=unseen,
        unseen_share=unknown_share + (FRAGMENTATION["device"] if figures == "allocated" else 0.0),
    )
