"""What each kind of block of a model takes of a step, of memory, and of what goes over cp."""

from typing import NamedTuple, TypedDict

import numpy as np

from ..base.columns import Column
from ..blocks.answers import Saved, Time, fold
from ..blocks.block import Block
from ..blocks.mtp import Mtp
from .cases import Cases
from .compute import device
from .layout import both_ways
from .memory.parts import frame, in_flight_of, keeping, saved_of
from .traffic import over_cp


class Kind(TypedDict):
    """A kind of block of one plan: how many there are, and what they take."""

    kind: str
    count: float
    parameters: float
    step_share: float  # of the kernels' time of all layers and heads
    memory_share: float  # of weights, gradients, states and activations over all stages
    context_share: float  # of the bytes that layers send over cp


class Load(NamedTuple):
    """What the blocks of a kind take."""

    blocks: float
    parameters: float
    seconds: float
    bytes: float
    sent: float  # over cp [bytes]

    def plus(self, other: "Load") -> "Load":
        """Both together."""
        return Load(*(a + b for a, b in zip(self, other)))


def by_kind(c: Cases) -> list[Kind]:
    """The kinds of block of one plan: how many there are, their parameters, and their shares

    - of the kernels' time of all layers and heads, forward and backward, nothing repeated;
    - of weights, gradients, optimizer states and saved activations over all stages, with the first
      one's micro-batches in flight and without the stream that repeated layers start from;
    - of the bytes that layers send over cp.

    An MTP module has the blocks in it, as often as it runs.
    """
    on, keep, f, p = device(c), keeping(c), frame(c), c.plan
    (first_stage,) = in_flight_of(c, f, (0,))
    kinds: dict[str, Load] = {}
    for b in c.shape.blocks:
        parts = b.parameters()
        runs: list[tuple[Column, Block]] = [(1, b)]
        usual_experts: Column = 0
        if isinstance(b, Mtp):
            runs += [(b.repeats * x.count, x) for x in b.layer]
            usual_experts = c.shape.mtp_experts / b.count
        time = fold(Time, [(n, x.kernel_s(on)) for n, x in runs])
        saved = fold(Saved, [(n, x.saved_bytes(keep)) for n, x in runs])
        params = sum(parts.values()) - parts.get("unused", 0)
        experts = parts.get("routed_experts", usual_experts)
        dense = (params - experts) * f.per_tp * f.bytes.stays
        states = dense + experts / (p.ep * p.etp) * f.expert_bytes.stays
        in_flight = 1 if isinstance(b, Mtp) else first_stage
        activations = in_flight * saved_of(c, saved).planned + on.tokens * f.per_tp * saved.logits
        load = Load(
            blocks=np.max(b.count * 1),
            parameters=np.max(b.count * params),
            seconds=np.max(b.count * (both_ways(time) + time.logits)),
            bytes=np.max(b.count * (states + activations)),
            sent=np.max(b.count * ((p.cp > 1) * sum(over_cp(c, b.exchanges())))),
        )
        kinds[b.kind] = kinds[b.kind].plus(load) if b.kind in kinds else load
    seconds = max(sum(load.seconds for load in kinds.values()), 1e-300)
    memory = max(sum(load.bytes for load in kinds.values()), 1e-300)
    sent = max(sum(load.sent for load in kinds.values()), 1e-300)
    return [
        {
            "kind": kind,
            "count": float(load.blocks),
            "parameters": float(load.parameters),
            "step_share": float(load.seconds / seconds),
            "memory_share": float(load.bytes / memory),
            "context_share": float(load.sent / sent),
        }
        for kind, load in kinds.items()
        if any(load[1:])
    ]
