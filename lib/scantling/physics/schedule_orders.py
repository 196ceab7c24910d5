"""The order in which each pipeline device runs its passes: one function per schedule.
`scantling.physics.schedule` turns orders into times.

An order is a list of (kind, model part, micro-batch), a PAIR as (PAIR, (part, micro-batch) forward,
the same backward). Weight gradients are listed for dualpipe and dualpipe-v only; the other split
schedules leave them to be fitted in.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import product

import numpy as np

# WHOLE is a backward with its weight gradients; PAIR a forward run together with a WHOLE of the
# other direction
FORWARD, BACKWARD, WEIGHT, WHOLE, PAIR = range(5)


def gpipe(
    pp,
    chunks,
    m,
):
    """All forwards, then all backwards."""
    return [[(kind, d, j) for kind in (FORWARD, BACKWARD) for j in range(m)] for d in range(pp)]


def one_f_one_b(
    pp,
    chunks,
    m,
):
    """1F1B and ZB-H1: as many forwards ahead as stages follow."""
    return [_alternate([(d, j) for j in range(m)], pp - d) for d in range(pp)]


def zb_h2(
    pp,
    chunks,
    m,
):
    """ZB-H2: twice as far ahead."""
    return [_alternate([(d, j) for j in range(m)], 2 * (pp - d) - 1) for d in range(pp)]


def _alternate(
    forwards,
    warm_up,
    backwards=None,
):
    """`warm_up` forwards, then backwards and forwards in turn, then the backwards that are left."""
    order = [(FORWARD, *each) for each in forwards[:warm_up]]
    ahead = [*forwards[warm_up:], *[None] * warm_up]
    for back, each in zip(backwards or forwards, ahead):
        order.append((BACKWARD, *back))
        if each:
            order.append((FORWARD, *each))
    return order


def interleaved(
    pp,
    chunks,
    m,
):
    """Micro-batches go through the chunks in groups of pp; Megatron-LM's warm-up count, then one
    forward and one backward in turn."""

    def passes(device, chunk_order):
        return [
            (chunk * pp + device, group + j)
            for group in range(0, m, pp)
            for chunk in chunk_order
            for j in range(pp)
        ]

    return [
        _alternate(
            passes(d, range(chunks)),
            2 * (pp - 1 - d) + (chunks - 1) * pp + 1,
            passes(d, range(chunks)[::-1]),
        )
        for d in range(pp)
    ]


def dualpipe(
    pp,
    chunks,
    m,
):
    """Both directions through every device: lane 0 enters at the nearer end."""

    def order(d):
        lanes = [partial(_pass, d, 0), partial(_pass, pp - 1 - d, m // 2)]
        return _dualpipe(
            pp // 2,
            min(d, pp - 1 - d),
            m // 2,
            lanes[:: 1 if d < pp // 2 else -1],
        )

    return [order(d) for d in range(pp)]


def dualpipe_v(
    pp,
    chunks,
    m,
):
    """DualPipe folded: the second direction is the way back through a device's second part."""
    return [
        _dualpipe(
            pp,
            d,
            m,
            [partial(_pass, d, 0), partial(_pass, 2 * pp - 1 - d, 0)],
        )
        for d in range(pp)
    ]


def _pass(
    part,
    first,
    j,
):
    return part, first + j


class _Lanes:
    """The order of one device whose passes come from two lanes of micro-batches."""

    def __init__(self, lanes):
        self.lanes, self.taken, self.owed, self.order = lanes, Counter(), [], []

    def next(
        self,
        kind,
        lane,
    ):
        self.taken[kind, lane] += 1
        return self.lanes[lane](self.taken[kind, lane] - 1)

    def forward(self, lane):
        self.order.append((FORWARD, *self.next(FORWARD, lane)))

    def backward(
        self,
        lane,
        split=False,
    ):
        at = self.next(BACKWARD, lane)
        self.order.append((BACKWARD if split else WHOLE, *at))
        if split:
            self.owed.append((WEIGHT, *at))

    def pair(self, lane):
        self.order.append((PAIR, self.next(FORWARD, lane), self.next(BACKWARD, 1 - lane)))

    def weight(self):
        self.order.append(self.owed.pop(0))


def _dualpipe(
    half,
    depth,
    m,
    lanes,
):
    """DeepSeek's eight phases for the device `depth` steps from the end of a half-pipeline of
    `half` devices, m per lane."""
    run, before = _Lanes(lanes), half - 1 - depth
    for _ in range(2 * before):
        run.forward(0)
    for _ in range(depth + 1):
        run.forward(0)
        run.forward(1)
    for _ in range(before):
        run.backward(1, split=True)
        run.weight()
        run.forward(1)
    steady = m - 2 * half + depth + 1
    if depth == half - 1 and steady > 0:
        # the turning point starts without overlap, to let the first backward go sooner
        run.forward(0)
        run.backward(1)
        run.pair(1)
        steady -= 1
    for _ in range(steady):
        run.pair(0)
        run.pair(1)
    for _ in range(before):
        run.backward(1)
        run.pair(1)
    # the later half of these leaves its weight gradients for the end
    for k in range(2 * (depth + 1)):
        run.backward(1 - k % 2, split=k > depth)
    for _ in range(before):
        run.weight()
        run.backward(0, split=True)
    while run.owed:
        run.weight()
    return run.order


def zb_v(
    pp,
    chunks,
    m,
):
    """Forwards of the first chunk until the first micro-batch is back, then both chunks in turn,
    each forward paid with a backward."""

    def order(device):
        first, second = device, 2 * pp - 1 - device
        turn = [(FORWARD, second), (FORWARD, first)]
        warm_up = (
            [(FORWARD, first)] * (2 * (pp - device) - 1)
            + turn * device
            + [(FORWARD, second), (BACKWARD, second)] * (pp - device)
        )
        steady = [
            (FORWARD, first),
            (BACKWARD, first),
            (FORWARD, second),
            (BACKWARD, second),
        ]
        seen = Counter()
        for each in warm_up + steady * (2 * m):
            if seen[each] < m:
                yield *each, seen[each]
            seen[each] += 1

    return [list(order(device)) for device in range(pp)]


def _vee(
    pp,
    chunks,
    m,
    down,
):
    """Order the passes of a V by repeating one micro-batch's block every six slots.

    On the way down (forward of chunk 0, backward of chunk 1) a block is shifted by `down` slots
    from device to device, on the way up by one. The turning points leave no two passes in one slot;
    the backward of chunk 1 lies half a period after the forward of chunk 0 and likewise on the way
    up, which leaves room for unequal passes.
    """
    d = np.arange(pp)

    def slots(turns):
        first = down * d
        second = first[-1] + turns[0] + (pp - 1 - d)
        third = second[0] + turns[1] + down * d
        fourth = third[-1] + turns[2] + (pp - 1 - d)
        return np.stack(
            [
                first,
                second,
                third,
                fourth,
            ]
        )

    def crowding(turns):
        block = slots(turns)
        collisions = (np.diff(np.sort(block % 6, axis=0), axis=0) == 0).sum()
        halves = np.all((block[2:, 0] - block[:2, 0]) % 6 == 3)
        return collisions, down == 2 and not halves, sum(turns), turns

    start = slots(min(product(range(1, 7), repeat=3), key=crowding))

    def order(device):
        down_part, up_part = device, 2 * pp - 1 - device
        block = (
            (FORWARD, down_part),
            (FORWARD, up_part),
            (BACKWARD, up_part),
            (BACKWARD, down_part),
        )
        passes = sorted(
            (start[i, device] + 6 * j, *each, j) for i, each in enumerate(block) for j in range(m)
        )
        return [each for _, *each in passes]

    return [order(device) for device in range(pp)]


ORDERS = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved": interleaved,
    "zb-1p": one_f_one_b,
    "zb-2p": zb_h2,
    "zb-v": zb_v,
    "v-half": partial(_vee, down=2),
    "v-min": partial(_vee, down=1),
    "dualpipe": dualpipe,
    "dualpipe-v": dualpipe_v,
}
