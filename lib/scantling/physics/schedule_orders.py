"""The order in which a pipeline device runs its passes: one function per schedule, of the device,
the devices, the model chunks on each and the micro-batches. `scantling.physics.schedule` turns
orders into times.

An order is a list of passes and pairs of them that run together. Weight gradients are listed for
dualpipe and dualpipe-v only; the other split schedules leave them to be fitted in.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import count, product
from typing import NamedTuple

import numpy as np

from ..base.columns import Array

# WHOLE is a backward with its weight gradients
FORWARD, BACKWARD, WEIGHT, WHOLE = range(4)
PAIR = 4  # in a program alone: a forward run together with a WHOLE of the other direction


class Pass(NamedTuple):
    """One pass of one micro-batch through one model part."""

    kind: int
    part: int
    micro_batch: int


class Pair(NamedTuple):
    """Two passes that run together and are sent together."""

    forward: Pass
    backward: Pass  # whole


Order = list[Pass | Pair]
Ordering = Callable[[int, int, int, int], Order]  # of device, devices, chunks, micro-batches
At = tuple[int, int]  # model part, micro-batch


def gpipe(d: int, pp: int, chunks: int, m: int) -> Order:
    """All forwards, then all backwards."""
    return [Pass(kind, d, j) for kind in (FORWARD, BACKWARD) for j in range(m)]


def one_f_one_b(d: int, pp: int, chunks: int, m: int) -> Order:
    """1F1B and ZB-H1: as many forwards ahead as stages follow."""
    return _alternate([(d, j) for j in range(m)], pp - d)


def zb_h2(d: int, pp: int, chunks: int, m: int) -> Order:
    """ZB-H2: twice as far ahead."""
    return _alternate([(d, j) for j in range(m)], 2 * (pp - d) - 1)


def _alternate(
    forwards: Sequence[At], warm_up: int, backwards: Sequence[At] | None = None
) -> Order:
    """`warm_up` forwards, then backwards and forwards in turn, then the backwards that are left."""
    order: Order = [Pass(FORWARD, *at) for at in forwards[:warm_up]]
    ahead = iter(forwards[warm_up:])
    for back in backwards or forwards:
        order.append(Pass(BACKWARD, *back))
        at = next(ahead, None)
        if at is not None:
            order.append(Pass(FORWARD, *at))
    return order


def interleaved(d: int, pp: int, chunks: int, m: int) -> Order:
    """Micro-batches go through the chunks in groups of pp; Megatron-LM's warm-up count, then one
    forward and one backward in turn."""

    def passes(chunk_order: Iterable[int]) -> list[At]:
        return [
            (chunk * pp + d, group + j)
            for group in range(0, m, pp)
            for chunk in chunk_order
            for j in range(pp)
        ]

    return _alternate(
        passes(range(chunks)), 2 * (pp - 1 - d) + (chunks - 1) * pp + 1, passes(range(chunks)[::-1])
    )


def dualpipe(d: int, pp: int, chunks: int, m: int) -> Order:
    """Both directions through every device: lane 0 enters at the nearer end."""
    other, half = pp - 1 - d, m // 2
    lanes = [(d, 0), (other, half)]
    return _dualpipe(pp // 2, min(d, other), half, lanes if d < other else lanes[::-1])


def dualpipe_v(d: int, pp: int, chunks: int, m: int) -> Order:
    """DualPipe folded: the second direction is the way back through a device's second part."""
    return _dualpipe(pp, d, m, [(d, 0), (2 * pp - 1 - d, 0)])


def _dualpipe(half: int, depth: int, m: int, lanes: Sequence[At]) -> Order:
    """DeepSeek's eight phases for the device `depth` steps from the end of a half-pipeline of
    `half` devices, m per lane; a lane is (model part, first micro-batch)."""
    before, steady = half - 1 - depth, m - 2 * half + depth + 1
    kinds = (FORWARD, BACKWARD, WEIGHT, WHOLE, PAIR)
    forward, split, weight, whole, pair = ([(kind, 0), (kind, 1)] for kind in kinds)
    # the turning point starts without overlap, to let the first backward go sooner
    apart = int(depth == half - 1 and steady > 0)
    program = [
        *forward[:1] * (2 * before),
        *forward * (depth + 1),
        *[split[1], weight[0], forward[1]] * before,
        *[forward[0], whole[1], pair[1]] * apart,
        *pair * (steady - apart),
        *[whole[1], pair[1]] * before,
        # the later half of these leaves its weight gradients for the end
        *[(split if k > depth else whole)[1 - k % 2] for k in range(2 * depth + 2)],
        *[weight[0], split[0]] * before,
    ]
    parts = [part for part, _ in lanes]
    ahead, back = ([count(first) for _, first in lanes] for _ in range(2))
    order: Order = []
    owed: list[Pass] = []
    for kind, lane in program:
        if kind == WEIGHT:
            order.append(owed.pop(0))
        elif kind == PAIR:
            one = Pass(FORWARD, parts[lane], next(ahead[lane]))
            other = Pass(WHOLE, parts[1 - lane], next(back[1 - lane]))
            order.append(Pair(one, other))
        else:
            micro_batch = next((ahead if kind == FORWARD else back)[lane])
            order.append(Pass(kind, parts[lane], micro_batch))
            if kind == BACKWARD:
                owed.append(Pass(WEIGHT, parts[lane], micro_batch))
    return [*order, *owed]


def zb_v(d: int, pp: int, chunks: int, m: int) -> Order:
    """Forwards of the first chunk until the first micro-batch is back, then both chunks in turn,
    each forward paid with a backward."""
    first, second = ([(kind, part) for kind in (FORWARD, BACKWARD)] for part in (d, 2 * pp - 1 - d))
    program = [
        *first[:1] * (2 * (pp - d) - 1),
        *[second[0], first[0]] * d,
        *second * (pp - d),
        *[*first, *second] * (2 * m),
    ]
    seen: Counter[At] = Counter()
    order: Order = []
    for each in program:
        if seen[each] < m:
            order.append(Pass(*each, seen[each]))
        seen[each] += 1
    return order


def v_half(d: int, pp: int, chunks: int, m: int) -> Order:
    """A V whose way down takes two slots a device."""
    return _vee(d, pp, m, 2)


def v_min(d: int, pp: int, chunks: int, m: int) -> Order:
    """A V whose ways both take one slot a device."""
    return _vee(d, pp, m, 1)


def _vee(d: int, pp: int, m: int, down: int) -> Order:
    """Passes of a V: one micro-batch's block, repeated every six slots."""
    up_part = 2 * pp - 1 - d
    block = ((FORWARD, d), (FORWARD, up_part), (BACKWARD, up_part), (BACKWARD, d))
    passes = sorted(
        (slot + 6 * j, *each, j)
        for slot, each in zip(_slots(pp, down)[:, d], block)
        for j in range(m)
    )
    return [Pass(kind, part, j) for _, kind, part, j in passes]


@cache
def _slots(pp: int, down: int) -> Array:
    """Slots of one micro-batch's four passes on every device of a V.

    On the way down (forward of chunk 0, backward of chunk 1) a block is shifted by `down` slots
    from device to device, on the way up by one. The turning points leave no two passes in one slot;
    the backward of chunk 1 lies half a period after the forward of chunk 0 and likewise on the way
    up, which leaves room for unequal passes.
    """
    along = np.arange(pp)
    ways = (down * along, along[::-1]) * 2

    def slots(turns: tuple[int, ...]) -> Array:
        # a way starts so many slots after the last device of the one before
        starts = np.cumsum([0, *(way.max() + turn for way, turn in zip(ways, turns))])
        block: Array = starts[:, None] + ways
        return block

    def crowding(turns: tuple[int, ...]) -> tuple[int, bool, int, tuple[int, ...]]:
        block = slots(turns)
        collisions = (np.diff(np.sort(block % 6, axis=0), axis=0) == 0).sum()
        halves = np.all((block[2:, 0] - block[:2, 0]) % 6 == 3)
        return int(collisions), down == 2 and not halves, sum(turns), turns

    return slots(min(product(range(1, 7), repeat=3), key=crowding))


ORDERS: dict[str, Ordering] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved": interleaved,
    "zb-1p": one_f_one_b,
    "zb-2p": zb_h2,
    "zb-v": zb_v,
    "v-half": v_half,
    "v-min": v_min,
    "dualpipe": dualpipe,
    "dualpipe-v": dualpipe_v,
}
