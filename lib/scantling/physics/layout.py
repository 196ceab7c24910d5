"""Which layers stand on which pipeline stage, where layers are not alike.

A model with a pattern is cut into contiguous runs of layers so that the stage with the most FLOP
has as few as can be, output head and MTP modules on the last one; under interleaving a stage has
every pp-th run. Frameworks with patterns take such cuts (Megatron-LM: `|` in
--hybrid-override-pattern).
"""

from itertools import pairwise

import numpy as np

from .cases import Cases
from .compute import device, logits_s

HALVINGS = 30  # of the interval in which the fastest slowest run lies


def layer_shares(c: Cases) -> tuple[np.ndarray, np.ndarray]:
    """Share of each layer, in order, in the kernels' time of all layers, shape (layers, plans); and
    that of the output head and MTP modules over it."""
    on, kinds = device(c), {i for layer in c.shape.order for i in layer}
    times = {i: c.shape.blocks[i].kernel_s(on) for i in kinds}
    seconds = {
        i: 3 * (t.gemm + t.elementwise + t.host) + t.attention + t.attention_backward
        for i, t in times.items()
    }
    layers = [sum(seconds[i] for i in layer) + 0.0 * on.tokens for layer in c.shape.order]
    whole = np.stack(np.broadcast_arrays(*map(np.atleast_1d, layers)))
    laid = whole.sum(axis=0)
    return whole / laid, logits_s(c, on) / laid + c.shape.mtp_layers / c.shape.layers


def bounds(
    shares,
    runs: int,
    tail: float,
) -> list[int]:
    """Where the contiguous runs of layers begin and end, 0 and the number of layers among them, so
    that the slowest run is as fast as can be; the last one has `tail` beside its layers."""
    low, high = (
        max(
            tail,
            max(shares),
            (sum(shares) + tail) / runs,
        ),
        sum(shares) + tail,
    )
    best = filled(
        shares,
        runs,
        tail,
        high,
    )
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = filled(
            shares,
            runs,
            tail,
            middle,
        )
        low, high, best = (low, middle, found) if found else (middle, high, best)
    return best


def filled(
    shares,
    runs: int,
    tail: float,
    most: float,
) -> list[int]:
    """Runs of at most `most`, laid from the last layer on, one layer at least left for each run
    before; [] where more would be needed."""
    cuts, held = [len(shares)], tail
    for i in range(
        len(shares) - 1,
        -1,
        -1,
    ):
        full = held + shares[i] > most * (1 + 1e-12) and cuts[-1] > i + 1
        if full or (cuts[-1] > i + 1 and i + 1 == runs - len(cuts)):
            cuts.append(i + 1)
            held = 0.0
        held += shares[i]
    return [0, *cuts[::-1]] if len(cuts) == runs and held <= most * (1 + 1e-12) else []


def weights(c: Cases, seq_len: float) -> tuple[list[float], float]:
    """FLOP a token of each layer, in order, over that of all layers, and that of what stands on the
    last stage besides: what a cut goes by, the same for every plan of a model."""
    each = [float(np.max(sum(b.flops(seq_len).values()))) for b in c.shape.blocks]
    layers = [sum(each[i] for i in layer) for layer in c.shape.order]
    ends = sum(e for e, b in zip(each, c.shape.blocks) if b.place == "end")
    return [one / sum(layers) for one in layers], ends / sum(layers)


def slowest(c: Cases) -> np.ndarray:
    """Time of the slowest stage over that of all layers, for columns of plans."""
    shares, tail = layer_shares(c)
    pp, vpp, tail, seq_len = (
        np.ravel(x)
        for x in np.broadcast_arrays(
            c.plan.pp,
            c.plan.vpp,
            tail,
            c.job.seq_len,
        )
    )
    out = np.ones(pp.size)
    for stages, parts, length in {*zip(pp.tolist(), vpp.tolist(), seq_len.tolist())}:
        rows = (pp == stages) & (vpp == parts) & (seq_len == length)
        stages = int(stages)
        cuts = cut(*weights(c, length), stages, parts)
        runs = np.add.reduceat(shares, cuts[:-1]) if cuts else shares
        held = [runs[i::stages].sum(axis=0) for i in range(stages)] if cuts else [1 / stages]
        ends = held[-1] + tail
        worst = np.max(np.stack(np.broadcast_arrays(*held, ends)), axis=0)
        out[rows] = np.broadcast_to(worst, pp.shape)[rows]
    return out if out.size > 1 else out[0]


def cut(shares: list[float], tail: float, stages, parts) -> list[int]:
    """`bounds` of stages x parts runs; [] where there are fewer layers."""
    runs = int(stages * parts)
    return bounds(shares, runs, tail) if runs <= len(shares) else []


def stages_of(c: Cases) -> list[dict]:
    """The runs of one plan in order: their stage, their first and last layer, their blocks by
    kind, and their share of the layers' time. Empty where a model's layers have no order."""
    if not c.shape.order:
        return []
    shares, order = layer_shares(c)[0][:, 0], c.shape.order
    stages, parts = (int(np.ravel(x)[0]) for x in (c.plan.pp, c.plan.vpp))
    out = []
    cuts = cut(*weights(c, float(np.ravel(c.job.seq_len)[0])), stages, parts)
    for i, (first, end) in enumerate(pairwise(cuts)):
        kinds = [c.shape.blocks[k].kind for layer in order[first:end] for k in layer]
        out.append(
            {
                "stage": i % stages,
                "first": first,
                "last": end - 1,
                "blocks": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
                "share": float(shares[first:end].sum()),
            }
        )
    return out
