"""The order in which each pipeline device runs its passes, schedule by schedule.
`scantling.physics.schedule` turns orders into times."""

from __future__ import annotations

from itertools import product

import numpy as np

__all__ = ["BACKWARD", "FORWARD", "PAIR", "WEIGHT", "WHOLE", "orders"]

# WHOLE is a backward with its weight gradients; PAIR a forward run together with a WHOLE of the
# other direction
FORWARD, BACKWARD, WEIGHT, WHOLE, PAIR = range(5)


def orders(name, pp, chunks, m):
    """For each device the list of its (kind, model part, micro-batch), a PAIR as (PAIR, (part,
    micro-batch) forward, the same backward).

    Weight gradients are listed for dualpipe and dualpipe-v only; the other split schedules leave
    them to be fitted in.
    """
    if name == "gpipe":
        return [
            [(FORWARD, d, j) for j in range(m)] + [(BACKWARD, d, j) for j in range(m)]
            for d in range(pp)
        ]
    if name in ("1f1b", "zb-1p"):
        return [_one_f_one_b(d, pp - d, m) for d in range(pp)]
    if name == "zb-2p":
        return [_one_f_one_b(d, 2 * (pp - d) - 1, m) for d in range(pp)]
    if name == "interleaved":
        return [_interleaved(d, pp, chunks, m) for d in range(pp)]
    if name == "dualpipe":
        half = pp // 2
        return [
            _dualpipe(half, min(d, pp - 1 - d), m // 2, *_dualpipe_lanes(d, pp, m))
            for d in range(pp)
        ]
    if name == "dualpipe-v":
        return [
            _dualpipe(pp, d, m, lambda j, d=d: (d, j), lambda j, d=d: (2 * pp - 1 - d, j))
            for d in range(pp)
        ]
    if name == "zb-v":
        return [_zero_bubble_v(d, pp, m) for d in range(pp)]
    return _vee(pp, m, 1 if name == "v-min" else 2)


def _one_f_one_b(part, warm_up, m):
    """`warm_up` forwards, then backwards and forwards in turn, then the backwards that are left."""
    warm_up = min(warm_up, m)
    order = [(FORWARD, part, j) for j in range(warm_up)]
    for j in range(m):
        order.append((BACKWARD, part, j))
        if warm_up + j < m:
            order.append((FORWARD, part, warm_up + j))
    return order


def _interleaved(device, pp, chunks, m):
    """Micro-batches go through the chunks in groups of pp; Megatron-LM's warm-up count, then one
    forward and one backward in turn."""

    def pass_of(k, kind):
        group, within = divmod(k, pp * chunks)
        chunk, j = divmod(within, pp)
        chunk = chunks - 1 - chunk if kind == BACKWARD else chunk
        return kind, chunk * pp + device, group * pp + j

    total = m * chunks
    warm_up = min(2 * (pp - 1 - device) + (chunks - 1) * pp + 1, total)
    order = [pass_of(k, FORWARD) for k in range(warm_up)]
    for k in range(total):
        order.append(pass_of(k, BACKWARD))
        if warm_up + k < total:
            order.append(pass_of(warm_up + k, FORWARD))
    return order


def _dualpipe_lanes(device, pp, m):
    """The two directions as seen by one device: lane 0 enters at the nearer end."""
    lanes = [lambda j: (device, j), lambda j: (pp - 1 - device, m // 2 + j)]
    return lanes if device < pp // 2 else lanes[::-1]


def _dualpipe(half, depth, m, lane0, lane1):
    """DeepSeek's eight phases for the device `depth` steps from the end of a half-pipeline of
    `half` devices, m per lane."""
    lanes, done, weights, order = (lane0, lane1), {}, [], []

    def take(kind, lane):
        j = done.get((kind, lane), 0)
        done[kind, lane] = j + 1
        return lanes[lane](j)

    def add(kind, lane, split=False):
        part, mb = take(kind, lane)
        order.append((WHOLE if kind == BACKWARD and not split else kind, part, mb))
        if split:
            weights.append((WEIGHT, part, mb))

    def add_pair(lane):
        order.append((PAIR, take(FORWARD, lane), take(BACKWARD, 1 - lane)))

    def add_weight():
        order.append(weights.pop(0))

    before = half - 1 - depth
    for _ in range(2 * before):
        add(FORWARD, 0)
    for _ in range(depth + 1):
        add(FORWARD, 0)
        add(FORWARD, 1)
    for _ in range(before):
        add(BACKWARD, 1, split=True)
        add_weight()
        add(FORWARD, 1)
    for k in range(m - 2 * half + depth + 1):
        if (
            k == 0 and depth == half - 1
        ):  # the turning point starts without overlap, to let the first backward go sooner
            add(FORWARD, 0)
            add(BACKWARD, 1)
        else:
            add_pair(0)
        add_pair(1)
    for _ in range(before):
        add(BACKWARD, 1)
        add_pair(1)
    for k in range(
        2 * (depth + 1)
    ):  # the later half of these leaves its weight gradients for the end
        add(BACKWARD, 1 - k % 2, split=k > depth)
    for _ in range(before):
        add_weight()
        add(BACKWARD, 0, split=True)
    while weights:
        add_weight()
    return order


def _zero_bubble_v(device, pp, m):
    """Forwards of the first chunk until the first micro-batch is back, then both chunks in turn,
    each forward paid with a backward."""
    first, second = device, 2 * pp - 1 - device
    warm_up = (
        [(FORWARD, first)] * (2 * (pp - device) - 1)
        + [(FORWARD, second), (FORWARD, first)] * device
        + [(FORWARD, second), (BACKWARD, second)] * (pp - device)
    )
    steady = [(FORWARD, first), (BACKWARD, first), (FORWARD, second), (BACKWARD, second)]
    counts, order = {}, []
    for kind, part in warm_up + steady * (2 * m):
        j = counts.get((kind, part), 0)
        if j < m:
            counts[kind, part] = j + 1
            order.append((kind, part, j))
    return order


def _vee(pp, m, down):
    """Order the passes of a V by repeating one micro-batch's block every six slots.

    On the way down (forward of chunk 0, backward of chunk 1) a block is shifted by `down` slots
    from device to device, on the way up by
    one. The turning points leave no two passes in one slot; the backward of chunk 1 lies half a
    period after the forward of chunk 0
    and likewise on the way up, which leaves room for unequal passes.
    """
    d = np.arange(pp)

    def slots(turns):
        first = down * d
        second = first[-1] + turns[0] + (pp - 1 - d)
        third = second[0] + turns[1] + down * d
        fourth = third[-1] + turns[2] + (pp - 1 - d)
        return np.stack([first, second, third, fourth])

    def crowding(turns):
        block = slots(turns)
        collisions = (np.diff(np.sort(block % 6, axis=0), axis=0) == 0).sum()
        halves = (block[2, 0] - block[0, 0]) % 6 == 3 and (block[3, 0] - block[1, 0]) % 6 == 3
        return collisions, down == 2 and not halves, sum(turns), turns

    start = slots(min(product(range(1, 7), repeat=3), key=crowding))
    orders = []
    for device in range(pp):
        passes = (
            (FORWARD, device),
            (FORWARD, 2 * pp - 1 - device),
            (BACKWARD, 2 * pp - 1 - device),
            (BACKWARD, device),
        )
        slot_of = [
            (start[i, device] + 6 * j, kind, part, j)
            for i, (kind, part) in enumerate(passes)
            for j in range(m)
        ]
        orders.append([(kind, part, j) for _, kind, part, j in sorted(slot_of)])
    return orders
