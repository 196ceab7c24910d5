"""What the memory model knows about software: sourced priors, facts of each stack, and the fitted
values that ship beside them.

A fitted value is prior x exp(offset); offsets by stack live in catalogue/memory_calibration.json,
made by `make calibrate`. A stack that is not there has its priors.
"""

from dataclasses import fields, make_dataclass
from math import exp
from typing import NamedTuple

import numpy as np

from ...base.files import csv_rows
from ...catalogue.load import HERE, fitted
from ...catalogue.stacks import stack as stack_of


class Prior(NamedTuple):
    """A constant before any fit, and the standard deviations of its log offset, for all stacks
    alike and of one stack."""

    value: float
    sd: float
    stack_sd: float
    unit: str
    source: str


def _priors() -> dict[str, Prior]:
    """The rows of catalogue/memory_priors.csv by name."""
    rows = csv_rows(HERE / "memory_priors.csv")
    return {
        name: Prior(*map(float, numbers), unit, source)
        for name, *numbers, unit, source in map(dict.values, rows)
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
MemoryConstants = make_dataclass(
    "MemoryConstants",
    [
        *((name, object, prior.value) for name, prior in PRIORS.items()),
        *((name, object, value) for name, value in FACTS.items()),
    ],
    frozen=True,
    namespace={
        "__module__": __name__,  # where it is found again: it can be pickled
        "__doc__": (
            "One value or column per constant of PRIORS, then the facts of the stack (0 or 1, "
            "bytes, shares)."
        ),
    },
)
GENERIC = MemoryConstants()


def calibration() -> dict:
    """The fitted offsets that ship with the kit."""
    return fitted("memory_calibration")


def gather(stacks, offsets: dict | None = None) -> MemoryConstants:
    """Constants of each case from the name of its stack (str, None or array of str); scalars give
    scalars."""
    offsets = calibration()["offsets"] if offsets is None else offsets
    if stacks is None or isinstance(stacks, str):
        return _of(stacks or "", offsets)
    unique, inverse = np.unique(np.asarray(stacks, dtype=str), return_inverse=True)
    rows = [_of(name, offsets) for name in unique]
    columns = (
        np.array([getattr(r, f.name) for r in rows], dtype=float) for f in fields(MemoryConstants)
    )
    return MemoryConstants(*(float(v[0]) if np.all(v == v[0]) else v[inverse] for v in columns))


def _of(stack: str, offsets: dict) -> MemoryConstants:
    by_stack = {name: offsets.get(name, {}).get("stack", {}) for name in PRIORS}
    values = {
        name: prior.value
        * exp(offsets.get(name, {}).get("global", 0.0) + by_stack[name].get(stack, 0.0))
        for name, prior in PRIORS.items()
    }
    facts = dict(stack_of(stack).memory)
    # a stack that is named but unmeasured may take more than the pooled constants say; where none
    # is named the estimate is the pooled one
    known = not stack or any(stack in fitted for fitted in by_stack.values())
    known |= bool(facts.pop("ran", 0.0))
    for name in facts.keys() & PRIORS.keys():
        values[name] *= facts.pop(name) / PRIORS[name].value
    figures = facts.pop("figures", "device")
    unseen = CONTEXT_BYTES if figures in ("allocated", "reserved") else 0.0
    values["framework_bytes"] -= unseen  # the figures leave the context out
    held_back = 0.0 if known or figures == "planned" else UNKNOWN_SHARE
    return MemoryConstants(
        **values,
        **facts,
        fragmentation=FRAGMENTATION[figures],
        unseen_bytes=unseen,
        unseen_share=held_back + (FRAGMENTATION["device"] if figures == "allocated" else 0.0),
    )
