"""What each kind of block of a model takes of a step, of memory, and of what goes over cp."""

import numpy as np

from ..blocks.answers import Saved, Time, fold
from .compute import device
from .layout import both_ways
from .memory.parts import frame, in_flight_of, keeping, kept_of
from .traffic import over_cp

NAMES = ("kind", "count", "parameters", "step_share", "memory_share", "context_share")


def by_kind(c) -> list[dict]:
    """The kinds of block of one plan: how many there are, their parameters, and their shares

    - of the kernels' time of all layers and heads, forward and backward, nothing repeated;
    - of weights, gradients, optimizer states and saved activations over all stages, with the first
      one's micro-batches in flight and without the stream that repeated layers start from;
    - of the bytes that layers send over cp.

    An MTP module has the blocks in it, as often as it runs.
    """
    on, keep, f, p, found = device(c), keeping(c), frame(c), c.plan, {}
    (held,) = in_flight_of(c, f, (0,))
    for b in c.shape.blocks:
        inside, parts = getattr(b, "layer", ()), b.parameters()
        runs = [(1, b), *((b.repeats * x.count, x) for x in inside)]
        time = fold(Time, [(n, x.kernel_s(on)) for n, x in runs])
        saved = fold(Saved, [(n, x.saved_bytes(keep)) for n, x in runs])
        params = sum(parts.values()) - parts.get("unused", 0)
        experts = parts.get("routed_experts", len(inside) and c.shape.mtp_experts / b.count)
        dense = (params - experts) * f.per_tp * f.bytes.stays
        states = dense + experts / (p.ep * p.etp) * f.expert_bytes.stays
        kept = (1 if inside else held) * kept_of(c, saved)[2] + on.tokens * f.per_tp * saved.logits
        sent = (p.cp > 1) * sum(over_cp(c, b.exchanges()))
        one = 1, params, both_ways(time) + time.logits, states + kept, sent
        row = np.array([np.max(b.count * x) for x in one])
        found[b.kind] = found.get(b.kind, 0) + row
    whole = np.maximum(sum(found.values()), 1e-300)
    return [
        dict(zip(NAMES, (kind, *row[:2].tolist(), *(row / whole)[2:].tolist())))
        for kind, row in found.items()
        if row[1:].any()
    ]
