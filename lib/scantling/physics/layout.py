"""Which layers stand on which pipeline stage.

Left to the framework (`even`), stages hold as many layers as whole numbers allow. `balanced` cuts
the layers into contiguous runs so that the stage with the most to do has as little as can be, the
head and MTP modules on the last; under interleaving a stage has every pp-th run. A design may
give the runs itself. Step time, memory, charts and kits all read the layers of a stage here.
Frameworks take such runs: Megatron-LM (--pipeline-model-parallel-layout, and `|` in
--hybrid-override-pattern), torchtitan (module_fqns_per_model_part).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain, pairwise, product
from typing import TypedDict

import numpy as np

from ..base.columns import Array, Column, some
from ..blocks.answers import Time
from ..blocks.block_table import Shape, mean_heads
from ..catalogue import accelerator
from ..catalogue.hardware import USUAL_ACCELERATOR
from ..catalogue.words import LAYER_SPLITS
from .cases import Cases, Plan
from .compute import device, layer_time, logits_s
from .pipeline import stage_layers, weight_saved

BALANCED = LAYER_SPLITS.index("balanced")
GAIN = 0.03  # of the slowest stage, below which a balanced split is not tried
MTP_STANDS = 3  # layers that loss and MTP modules stand for in published layouts (DeepSeek-V3)
HALVINGS = 30  # of the interval in which the fastest slowest run lies
SLACK = 1e-9  # relative, of the slowest run: sums of shares from either end differ by rounding


def saved_for_weights(c: Cases) -> Column:
    """`pipeline.weight_saved` of the layers of a case. [share]"""
    s = c.shape
    return weight_saved(s.hidden, mean_heads(s), c.job.seq_len, c.software.flash > 0)


def sorts_of(shape: Shape) -> tuple[tuple[tuple[int, ...], ...], Array]:
    """(the different layers of a model with an order, each the blocks in it; which of them each
    layer is); one sort where there is no order."""
    order = shape.order or ((),) * int(shape.layers)
    sorts = tuple(dict.fromkeys(order))
    return sorts, np.array([sorts.index(layer) for layer in order])


def sort_shares(c: Cases) -> Array:
    """Kernels' time of a layer of each sort over that of the average one, shape (sorts, plans)."""
    sorts, which = sorts_of(c.shape)
    if not c.shape.order:
        return np.ones((1, 1))
    on = device(c)
    times = {i: c.shape.blocks[i].kernel_s(on) for i in {*sum(sorts, ())}}
    each = [sum(both_ways(times[i]) for i in layer) + 0.0 * on.tokens for layer in sorts]
    whole = np.stack(np.broadcast_arrays(*map(np.atleast_1d, each)))
    shares: Array = whole / (np.bincount(which) @ whole) * len(which)
    return shares


def both_ways(t: Time) -> Column:
    """Forward and backward of a block outside the head. [s]"""
    return 3 * (t.gemm + t.elementwise + t.host) + t.attention + t.attention_backward


def weights(c: Cases) -> tuple[tuple[float, ...], float]:
    """Kernels' time of each layer, in order, and of what stands on the last stage besides, over
    that of the average layer: what a cut goes by. The same for every plan of a job and on every
    chip, so that a faster one never cuts otherwise: one sequence on the usual chip, experts on
    eight."""
    case = on_usual_chip(c.take(slice(1)))
    each = sort_shares(case)[sorts_of(c.shape)[1], 0]
    return tuple(each.tolist()), tail_weight(case)


def on_usual_chip(one: Cases) -> Cases:
    """One sequence of a case on the usual chip, experts on eight."""
    usual = accelerator(USUAL_ACCELERATOR)
    chip = replace(
        one.chip,
        bf16_flops=usual.half_flops,
        linear_flops=usual.half_flops * one.chip.linear_flops / one.chip.bf16_flops,
        hbm_bytes_per_s=usual.hbm_bytes_per_s,
    )
    return replace(one, chip=chip, plan=Plan(ep=8))


def tail_weight(case: Cases) -> float:
    """Kernels' time of what stands on the last stage besides its layers over that of the average
    layer."""
    tail = logits_s(case) / both_ways(layer_time(case)) + case.shape.mtp_depth
    return float(np.ravel(tail)[0])


def fewer(layers: Column, pp: Column, stands: Column) -> tuple[Column, Column]:
    """Layers that the first and the last stage have fewer than the others: the last one as many as
    `stands` besides them, where nothing does one at both ends where layers + 2 divide (embedding
    and loss stand for a layer each: Llama 3, BLOOM)."""
    both = np.equal(stands, 0) & (layers % pp != 0) & ((layers + 2) % pp == 0)
    return both, np.where(both, 1, np.minimum(stands, np.ceil(layers / pp) - 1))


def stands(c: Cases, tail: float | None = None) -> Column:
    """Whole layers that output head and MTP modules stand for on the last stage: their time where
    the split is balanced (`tail` of `weights`, where it is at hand), else MTP_STANDS under a
    balanced MTP layout, else 0."""
    usual = MTP_STANDS * np.greater(c.software.balanced_layout, 0)
    balanced = np.equal(c.plan.layer_split, BALANCED)
    if not some(balanced):
        return usual
    if np.ndim(c.shape.layers):
        return _stands_of_rows(c, balanced, usual)
    return np.where(balanced, np.ceil(tail or weights(c)[1]), usual)


def _stands_of_rows(c: Cases, balanced: Array, usual: Column) -> Array:
    """`stands` where every row has a model of its own."""
    n = len(c)
    rows = np.array(np.broadcast_to(usual, n), float)
    for i in np.flatnonzero(np.broadcast_to(balanced, n)):
        rows[i] = np.ceil(tail_weight(on_usual_chip(c.take(slice(i, i + 1)))))
    return rows


def totals(layers: Column, pp: Column, stands: Column) -> tuple[Column, Column, Column]:
    """(first, fullest middle, last) layers of the stages of models whose layers are alike, for
    columns of plans."""
    return stage_layers(layers, pp, *fewer(layers, pp, stands))


def layers_per_stage(c: Cases) -> tuple[Column, Column, Column]:
    """(first, fullest middle, last) layers of the stages, for columns of plans; where they are not
    alike, in layers of the model's average time."""
    if not (c.layout or c.shape.order):
        return totals(c.shape.layers, c.plan.pp, stands(c))
    each, layouts = sort_shares(c), [*splits(c)]
    out = np.zeros((3, max(each.shape[1], sum(len(rows) for rows, _ in layouts))))
    each = each + 0 * out[0]
    for rows, counts in layouts:
        work = counts @ each[:, rows]
        out[:, rows] = work[0], work[1:-1].max(axis=0, initial=0.0), work[-1]
    return tuple(out if out.shape[1] > 1 else out[:, 0])


def splits(c: Cases, kind: Column = 0) -> Iterator[tuple[Array, Array]]:
    """(rows, layers of each sort on each stage) of every different split of columns of plans of one
    model; rows of one split are alike in `kind` too. [layers, (stages, sorts)]"""
    which = sorts_of(c.shape)[1]
    for rows, pp, laid in laid_out(c, kind):
        placed = np.zeros((pp, which.max() + 1))
        for i, (first, end) in enumerate(pairwise(laid)):
            placed[i % pp] += np.bincount(which[first:end], minlength=placed.shape[1])
        yield rows, placed


def laid_out(c: Cases, kind: Column = 0) -> Iterator[tuple[Array, int, tuple[int, ...]]]:
    """(rows, stages, bounds of the runs of layers in the order in which a token meets them) of
    every different split of columns of plans of one model: pp x vpp runs, 0 and the number of
    layers among the bounds."""
    p, seq_len, (each, tail) = c.plan, c.job.seq_len, weights(c)
    balanced = p.layer_split == BALANCED
    plan_columns = np.broadcast_arrays(p.pp, p.vpp, balanced, stands(c, tail), kind, seq_len)
    columns = [np.ravel(x + 0 * seq_len) for x in plan_columns]
    key = np.array([1, 1e4, 1e8, 1e9, 1e12, 0]) @ columns
    for rows in (np.flatnonzero(key == one) for one in np.unique(key)):
        pp, vpp, cut, besides, *_ = (int(x[rows[0]]) for x in columns)
        runs = c.layout
        if len(runs) != pp * vpp + 1:
            runs = laid(each, tail, pp, vpp, besides, cut, bool(c.shape.order))
        yield rows, pp, runs


def runs(c: Cases) -> tuple[int, ...]:
    """The bounds of the runs of layers of one plan."""
    return next(laid_out(c))[2]


@lru_cache(maxsize=65536)
def laid(
    each: tuple[float, ...],
    tail: float,
    pp: int,
    vpp: int,
    stands: int,
    balanced: int,
    ordered: bool = False,
) -> tuple[int, ...]:
    """The runs of layers of these weights: even, or balanced where that leaves the slowest stage
    less to do. Each run of a pattern has a layer, virtual stages too; where layers are alike,
    embedding and loss may stand alone (Megatron's layouts of its GPT)."""
    layers = len(each)
    even = ordered and bounds((1.0,) * layers, pp, vpp, stands)
    if not even:
        even = spread(layers, pp, vpp, *map(int, fewer(layers, pp, stands)))
    if not balanced or len({*each}) == 1:
        return even
    cuts = even, bounds(each, pp, vpp, tail) or even
    return min(eased(each, tail, pp, runs) for runs in cuts)[1]


def gains(shape: Shape, seq_len: float, pp: Column) -> Column:
    """Whether balanced runs leave the slowest stage at least GAIN less to do than even ones, for
    columns of pp; always where layers are not alike, never where MTP modules have a layout."""
    if shape.order or shape.mtp_layers:
        return (pp > 1) & bool(shape.order)
    end, mixer, feed = (
        shape.mean(place, lambda b: sum(b.flops(seq_len).values()))
        for place in ("end", "mixer", "feed")
    )
    tail, slowest = end * shape.layers / (mixer + feed), []
    for besides in (0, np.ceil(tail)):
        first, middle, last = totals(shape.layers, pp, besides)
        slowest.append(np.maximum(np.maximum(first, middle), last + tail))
    return slowest[1] < (1 - GAIN) * slowest[0]


def spread(layers: int, pp: int, vpp: int, first_less: int, last_less: int) -> tuple[int, ...]:
    """`stage_layers` as bounds of runs: what is left over goes to the runs from the second on, and
    the last stage's later runs are lighter before its earlier ones."""
    if pp == 1:
        first_less = last_less = 0
    small, over = divmod(layers + first_less + last_less, pp * vpp)
    runs = [small + (0 < i <= over) for i in range(pp * vpp)]
    runs[0] -= first_less
    for i in range(pp * vpp - 1, -1, -pp):
        less = min(last_less, runs[i])
        runs[i], last_less = runs[i] - less, last_less - less
    return (0, *accumulate(runs))


def eased(
    each: Sequence[float], tail: float, pp: int, bounds: Sequence[int]
) -> tuple[float, tuple[int, ...]]:
    """(most that a stage has, runs of layers) once a layer at a time has gone to the next stage or
    back while the fuller of the two then has less to do, no run left without one."""
    at, work, moved = [*bounds], [0.0] * (pp - 1) + [tail], True
    for i, (first, end) in enumerate(pairwise(at)):
        work[i % pp] += sum(each[first:end])
    while moved:
        moved = False
        for i, later in product(range(1, len(at) - 1), (0, 1)):
            to, off, end = (i - later) % pp, (i + later - 1) % pp, at[i] + 2 * later - 1
            layer = each[at[i] + later - 1]
            if at[i - 1] < end < at[i + 1] and work[to] + layer < work[off] - SLACK:
                at[i], moved = end, True
                work[to], work[off] = work[to] + layer, work[off] - layer
    return max(work), tuple(at)


def bounds(shares: Sequence[float], pp: int, vpp: int, tail: float) -> tuple[int, ...]:
    """Where the contiguous runs of layers begin and end, 0 and the number of layers among them, so
    that the slowest run is as fast as can be and the others, from the last one on, are as near to
    the mean of what is left as that allows. `tail`, which the last stage has beside its layers,
    counts for each of its runs alike; with several, each could then hold the heaviest layer. ()
    where there are fewer layers."""
    ends, last = (0.0, *accumulate(shares)), len(shares)
    besides = ([0.0] * (pp - 1) + [tail / vpp]) * vpp
    if len(besides) > last:
        return ()
    low, high, cuts = (vpp > 1) * (max(shares) + besides[-1]), ends[-1] + tail, [last]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if furthest(ends, besides, middle)[-1] == last:
            high = middle
        else:
            low = middle
    high *= 1 + SLACK
    reach = furthest(ends, besides, high)
    for run in range(len(besides) - 1, 0, -1):
        all_up = ends[last] + besides[run]
        mean = (ends[last] + sum(besides[: run + 1])) / (run + 1)
        first = max(run, bisect_left(ends, all_up - high))
        may = range(first, min(reach[run], last - 1) + 1)
        last = min(may, key=lambda i: abs(all_up - ends[i] - mean))
        cuts.append(last)
    return (0, *cuts[::-1])


def furthest(ends: Sequence[float], besides: Sequence[float], most: float) -> list[int]:
    """Where each run ends at the latest, one layer at least in each, if none may have more than
    `most`, up to the first that cannot be; `ends` adds up the shares of the layers, `besides` is
    what a run has beside them."""
    reach = [0]
    for left, beside in enumerate(besides, len(ends) - len(besides)):
        full = bisect_right(ends, ends[reach[-1]] + most - beside) - 1
        if full <= reach[-1]:
            break
        reach.append(min(full, left))
    return reach


class Run(TypedDict):
    """A run of layers on one stage; one with no layer ends before it begins."""

    stage: int
    first: int  # layer
    last: int
    layers: list[str]  # the blocks of each
    blocks: dict[str, int]  # how many of a kind
    share: float  # of the layers' time


def stages_of(c: Cases) -> list[Run]:
    """The runs of one plan in order: their stage, their first and last layer, the blocks of each
    layer and how many of a kind, and their share of the layers' time; a run with no layer ends
    before it begins."""
    (sorts, which), each = sorts_of(c.shape), sort_shares(c)[:, 0]
    kinds = [[c.shape.blocks[i].kind for i in layer] or ["layer"] for layer in sorts]
    stages: list[Run] = []
    pp = int(np.ravel(c.plan.pp)[0])
    for i, (first, end) in enumerate(pairwise(runs(c))):
        layers = [kinds[k] for k in which[first:end]]
        stages.append(
            {
                "stage": i % pp,
                "first": first,
                "last": end - 1,
                "layers": [" + ".join(layer) for layer in layers],
                "blocks": dict(Counter(chain.from_iterable(layers))),
                "share": float(each[which[first:end]].sum() / len(which)),
            }
        )
    return stages
