"""Memory of the fullest device: weights, gradients, optimizer states, activations and the rest, for
every plan at once.

Three pipeline devices can be the fullest: the first (most micro-batches in flight, the embedding),
the second (one layer more where layers do not divide) and the last (the output head and the loss);
and, where leading dense layers reach beyond the first, the first one behind them. Each is one
evaluation of the same column arithmetic.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...base.columns import Array, Column, some
from ...base.records import Rows, pick, record
from ...blocks.block_table import dense_before, few_dense, plain_share
from ...catalogue.words import MEMORY_PARTS
from ..cases import Cases
from ..layout import splits, stands, totals
from ..pipeline import in_flight
from .parts import (
    MIRROR,
    VEE,
    DeviceContents,
    Frame,
    Place,
    constants_of,
    device,
    frame,
    in_flight_of,
    layer_sorts,
    states_of,
)

PARTS = MEMORY_PARTS
STAGES = ("first", "middle", "last")
ZONES = ("safe", "tight", "over")
SAFE = ZONES.index("safe")
SAFE_SHARE = 0.80  # below it none of 454 runs ran out of memory (arXiv 2411.06465)


@record
class Memory:
    """Bytes on the fullest device by part; the parts sum to `total`. Columns or scalars.

    `logits` is part of `activations`; `gathered`, `buffers`, `framework` and `fragmentation` are
    what `other` is made of. `stage` is a code in STAGES, `host` what one device keeps in host
    memory.
    """

    weights: Column
    gradients: Column
    optimizer: Column
    activations: Column
    other: Column
    capacity: Column
    stage: Column
    host: Column
    logits: Column
    gathered: Column
    buffers: Column
    framework: Column
    fragmentation: Column
    away: Column  # of `host`, activations that wait there for the backward

    @property
    def total(self) -> Column:
        """Bytes of the fullest device: the sum of the five parts."""
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + self.other

    @property
    def fits(self) -> bool | Array:
        """True where the total is within what a program can have."""
        return self.total <= self.capacity


def capacity(c: Cases) -> Column:
    """What a program can have of a device's memory: the usable memory, less the context and
    fragmentation that the figures of a stack leave out. [bytes]"""
    k = constants_of(c)
    return c.chip.usable_bytes * (1 - k.unseen_share) - k.unseen_bytes


def zone(used_bytes: Column, capacity_bytes: Column) -> Column:
    """Code in ZONES: safe up to 80 % of the capacity, tight up to all of it, over above."""
    share = used_bytes / capacity_bytes
    return 2 - (share <= SAFE_SHARE) - (share <= 1.0)


def memory(c: Cases) -> Memory:
    """Memory of the fullest device of every case. [bytes]

    Parameters
    ----------
    c : Cases
        One case or columns; scalars give scalars.

    Notes
    -----
    Per parameter: 2 bytes of weight in 16 bit, 4 in fp32; under the fp8 and fp4 recipes both
    layouts of the low-precision copy besides (or alone, where the stack gathers parameters in fp8);
    gradient, moments and master copy as the job says; each divided as the sharding says, experts
    over their own replicas dp x cp x tp / (ep x etp); twice under DualPipe. Activations: saved
    bytes of a layer (see `saved_bytes`) x layers x micro-batches in flight of the schedule, what
    recompute leaves of them, the layer at work (0.4 of its list and what it has to repeat), and the
    logits of one micro-batch where the loss is.
    Other: layers gathered under ZeRO-3, the head's 16-bit weight gradient, fp32 gradients while the
    optimizer steps (in the place of the activations; under ZeRO-3 those of as many parameters as
    the stack steps over at once), exchange buffers, the framework's own memory, and fragmentation
    as a share of all of it.
    By the code of a stack (catalogue/memory_facts.csv): gradients that are None before the backward
    take, with one micro-batch a step, the place of the activations that it frees:
    max(saved + logits, max(saved, gradients) + layer at work); sharded gradients that are summed
    without exchange are whole, and in the format that computes, while micro-batches add to them;
    logits may be gathered over tp; an optimizer that steps over all tensors at once copies the
    second moments.
    `capacity` is the chip's usable memory, less the context and fragmentation where a stack's
    published figures do not count them (allocator peaks), less 5 % for a stack without data. Rivals
    divide 18 bytes a parameter and add 34 s b h: no logits, no schedule but 1F1B, no gathered
    layers, no framework.

    Limits: where layers are alike, stages beyond the second, and beyond the leading dense layers,
    are taken to be no fuller than these; MoE layers come last where a quarter or fewer are dense,
    else evenly; activations sent to the host are not in `host`.

    References
    ----------
    Korthikanti et al. 2022, arXiv 2205.05198; Rajbhandari et al. 2020, arXiv 1910.02054;
    DeepSeek-AI 2024, arXiv 2412.19437; the published peaks and failures in
    catalogue/published_memory.csv.
    """
    f = frame(c)
    places = _places(c, f) if c.layout or c.shape.order else _three_places(c, f)
    contents = device(c, f, places[0][1])
    total = _total_of(f, contents)
    stage: Column = 0
    for code, (exists, place) in enumerate(places[1:], 1):
        if some(exists):
            other = device(c, f, place)
            size = _total_of(f, other)
            more = exists & (size > total)
            contents = pick(more, other, contents)
            total, stage = (
                np.where(more, size, total),
                np.where(
                    more, STAGES.index("last" if code == len(places) - 1 else "middle"), stage
                ),
            )
    return _memory_of(c, f, contents, total, stage)


def _memory_of(
    c: Cases, f: Frame, contents: DeviceContents, total: Column, stage: Column
) -> Memory:
    """The parts of what devices hold, with what is the same on all."""
    k, gathered, buffers = f.constants, contents.gathered, f.buffers
    framework, fragmentation = k.framework_bytes, k.fragmentation * (total + buffers)
    columns = dict(
        zip(("weights", "gradients", "optimizer", "host"), states_of(f, contents)),
        activations=contents.activations,
        other=gathered + buffers + framework + fragmentation,
        capacity=capacity(c),
        stage=stage,
        logits=contents.logits,
        gathered=gathered,
        buffers=buffers,
        framework=framework,
        fragmentation=fragmentation,
        away=contents.away,
    )
    return Memory(**{n: x[()] if isinstance(x, np.ndarray) else x for n, x in columns.items()})


def _three_places(c: Cases, f: Frame) -> list[tuple[bool | Array, Place]]:
    """(where it exists, Place) of the first, the second and the last device."""
    s, p = c.shape, c.plan
    pp = p.pp
    first, most, last = totals(s.layers, pp, stands(c))
    middle = most
    in_flight = in_flight_of(c, f, (0, 1, -1))
    vee, mirror = VEE[p.schedule], MIRROR[p.schedule]
    if some(mirror):
        # of a pair in the middle both are full where the left-over layers reach the second half
        reach = s.layers - first - last - (middle - 1) * np.maximum(pp - 2, 0)
        middle = middle - 0.5 * ((mirror > 0) & (pp > 2) & (reach < pp / 2))
    layers, ahead = (first, middle, last), (0, first, s.layers - last)
    counts = [_counts(c, f, before, of) for before, of in zip(ahead, layers)]
    if some(mirror):  # the outer devices share their layers
        # the second device's twin stands near the end, behind the leading dense layers
        twin = 2 * middle - most
        second = _counts(c, f, first, most), _counts(c, f, s.layers - last - twin, twin)
        means = [(x + y) / 2 for x, y in zip(*second)]
        counts[1] = [np.where(mirror > 0, mean, x) for x, mean in zip(counts[1], means)]
        pairs = [(x, y, (x + y) / 2) for x, y in zip(counts[0], counts[2])]
        counts[0] = [np.where(mirror > 0, half, x) for x, _, half in pairs]
        counts[2] = [np.where(mirror > 0, half, y) for _, y, half in pairs]
    ends = 1.0 * (pp == 1)
    places: list[tuple[bool | Array, Place]] = [
        (True, _place(in_flight[0], counts[0], 1.0, ends, vee, mirror)),
        (pp > 2, _place(in_flight[1], counts[1], 0.0, 0.0, vee, mirror)),
    ]
    dense = np.where(few_dense(s), s.layers - s.moe_layers, 0)[()]
    if some(dense > first):
        places.append(_beyond_dense(c, f, dense, (first, most, last)))
    return [*places, (pp > 1, _place(in_flight[2], counts[2], 0.0, 1.0, vee, mirror))]


def _beyond_dense(
    c: Cases, f: Frame, dense: Column, layers: tuple[Column, Column, Column]
) -> tuple[bool | Array, Place]:
    """(where it exists, Place) of the first device behind the `dense` leading layers, where these
    reach beyond the first one: in a deep pipeline it is fuller than the second. `layers` of the
    first, the fullest middle and the last stage; those with as many as the fullest come first."""
    p, (first, most, last) = c.plan, layers
    vee, mirror = VEE[p.schedule], MIRROR[p.schedule]
    fullest = c.shape.layers - first - last - (most - 1) * np.maximum(p.pp - 2, 0)
    beyond = np.maximum(dense - first, 0)
    in_fullest = np.minimum(beyond, fullest * most)
    stage = np.ceil(in_fullest / np.maximum(most, 1))
    stage = 1 + stage + np.ceil((beyond - in_fullest) / np.maximum(most - 1, 1))
    # of a mirrored pair neither device may have dense layers
    exists = (dense > first) & (stage <= np.where(mirror > 0, (p.pp - 1) // 2, p.pp - 2))
    own = most - (stage > fullest)
    twin = most - (p.pp - 1 - stage > fullest)
    paired = np.where(fullest >= p.pp / 2, most, (own + twin) / 2)
    counts = _counts(c, f, dense, np.where(mirror > 0, paired, own))
    micro_batches = in_flight(p.schedule, p.pp, p.vpp, f.micro_batches, stage, f.split_saved)
    return exists, _place(micro_batches, counts, 0.0, 0.0, vee, mirror)


class Split(NamedTuple):
    """Plans whose layers are split alike."""

    rows: Array  # of the plans
    layers: Array  # of each sort on each stage [stages, sorts]
    fullest: list[int]  # stages that may be


def _split(rows: Array, layers: Array) -> Split:
    """The stages that may be the fullest: the first, the last, and those between that have more
    layers of some sort than every one of these before them."""
    more = np.any(layers[:, None] > layers, axis=2)
    fullest = [0]
    for i in range(1, len(layers)):
        if i == len(layers) - 1 or more[i, fullest[1:]].all():
            fullest.append(i)
    return Split(rows, layers, fullest)


def _places(c: Cases, f: Frame) -> list[tuple[bool | Array, Place]]:
    """(True, Place) of the first device, of those between the ends that may be the fullest, and of
    the last, where layers are not alike or their runs are given. A device further on holds no more
    micro-batches, so one that has no more layers of any sort is left out."""
    p = c.plan
    vee, mirror = VEE[p.schedule], MIRROR[p.schedule]
    mirrored = np.ravel(mirror + 0 * (p.pp + p.vpp + p.layer_split))
    alike = []
    for rows, by_layout in splits(c, mirror):
        layers = _by_sort(c, f, by_layout)
        alike.append(_split(rows, (layers + layers[::-1]) / 2 if mirrored[rows[0]] else layers))
    most = max(len(split.fullest) for split in alike)
    plans = sum(len(split.rows) for split in alike)
    stages: Array = np.zeros((most, plans), int)
    counts: Array = np.zeros((len(f.sorts), most, plans))
    for split in alike:  # those with fewer devices have their first one several times
        at = [0] * (most - len(split.fullest)) + split.fullest
        stages[:, split.rows] = np.array(at)[:, None]
        counts[:, :, split.rows] = split.layers[at].T[:, :, None]
    if plans == 1:
        stages, counts = stages[:, 0], counts[..., 0]
    out: list[tuple[bool | Array, Place]] = []
    for i, stage in enumerate(stages):
        micro_batches = in_flight(p.schedule, p.pp, p.vpp, f.micro_batches, stage, f.split_saved)
        ends = 1.0 * (stage == 0), 1.0 * (stage == p.pp - 1)
        out.append((True, _place(micro_batches, list(counts[:, i]), *ends, vee, mirror)))
    return out


def _by_sort(c: Cases, f: Frame, counts: Array) -> np.ndarray:
    """Layers of each of the frame's sorts on each stage, [stages, sorts], from those of the
    layout's sorts: the same where layers have an order."""
    if c.shape.order:
        return counts
    layers = counts[:, 0]
    by_sort = _counts(c, f, np.cumsum(layers) - layers, layers)
    return np.stack([np.ravel(x) for x in np.broadcast_arrays(*by_sort)], axis=1)


def _place(
    in_flight: Column,
    counts: Sequence[Column],
    at_first: Column,
    at_last: Column,
    vee: Column,
    mirror: Column,
) -> Place:
    """What stands on a device: a V has both ends on its first device, the outer two of a mirrored
    pipeline both ends once each."""
    embeds, heads, tail = at_first, at_last, at_last
    if some(vee) or some(mirror):
        tail = np.maximum(at_last * (1.0 - vee), at_first * np.maximum(vee, mirror))
        copies = 1.0 - mirror / 2
        embeds = copies * np.maximum(at_first, at_last * mirror)
        heads = copies * tail
    return Place(in_flight=in_flight, counts=tuple(counts), embeds=embeds, heads=heads, tail=tail)


def _counts(c: Cases, f: Frame, ahead: Column, layers: Column) -> list[Column]:
    """Layers of each sort among the `layers` that follow `ahead` others."""
    if len(f.sorts) == 1:
        return [layers]
    dense = dense_before(c.shape, ahead, layers)
    feeds = [sort.feed for sort in f.sorts]
    return [layers - dense if b.kind == "moe" else dense * plain_share(c.shape, b) for b in feeds]


def _total_of(f: Frame, contents: DeviceContents) -> Column:
    """Bytes of a device without what is the same on all: buffers, framework, fragmentation."""
    total = contents.trunk * f.bytes.stays - contents.ends * f.bytes.cache
    total = total + contents.experts * f.expert_bytes.stays
    return total + contents.activations + contents.gathered


def saved_bytes(c: Cases) -> tuple[Column, Column]:
    """(dense layer, MoE layer) bytes that one micro-batch leaves for the backward pass on one
    device, nothing recomputed.

    The lists stand with the kinds of blocks (`blocks.*.saved_bytes`), 16-bit tensors; fp8 recipes
    keep the inputs of linear layers in one byte. A GPT layer with dropout comes to 34 h + 5 seq
    heads a token: Korthikanti et al. 2022, equation 1.
    """
    sorts = {sort.feed.kind: sort.whole for sort in layer_sorts(c)}
    return sorts.get("mlp", 0.0), sorts.get("moe", 0.0)


def memory_by_stage(c: Cases) -> Rows:
    """Memory of every pipeline device of one case, first to last: stage, layers, the five parts and
    their total. [bytes]

    The devices that stand for their kind (first, second, last) equal what `memory` takes the
    fullest of. Raises ValueError where the case has more than one row.
    """
    if len(c) != 1:
        raise ValueError(f"memory_by_stage takes one case, got {len(c)}")
    p, f = c.plan, frame(c)
    ((_, placed),) = splits(c)
    layers, index = placed.sum(axis=1), np.arange(len(placed))
    counts = list(_by_sort(c, f, placed).T)
    vee, mirror = (np.ravel(of[p.schedule])[0] for of in (VEE, MIRROR))
    if mirror > 0:
        counts = [(n + n[::-1]) / 2 for n in counts]
    place = _place(
        np.ravel(in_flight_of(c, f, index)),
        counts,
        1.0 * (index == 0),
        1.0 * (index == index[-1]),
        vee,
        mirror,
    )
    on = device(c, f, place)
    m = _memory_of(c, f, on, _total_of(f, on), index)
    parts = {part: vars(m)[part] for part in PARTS} | {"total": m.total}
    columns = dict(zip(parts, np.broadcast_arrays(*parts.values())))
    return tuple(
        {"stage": i, "layers": int(n)} | {part: float(b[i]) for part, b in columns.items()}
        for i, n in enumerate(layers)
    )
