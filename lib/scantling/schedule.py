"""Lay pipeline schedules out in time: an event simulation of every schedule in `scantling.pipeline`, with uneven stages and transfers."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from .pipeline import SCHEDULES, SCHEDULE_NAMES, in_flight, schedule_code, violations

__all__ = ["KINDS", "Layout", "lay_out"]

KINDS = ("F", "B", "W")
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # a weight gradient starts where at least this share of it fits; the best of these is kept
_F, _B, _W, _WHOLE, _PAIR = 0, 1, 2, 3, 4  # _WHOLE: a backward with its weight gradients, shown as B; _PAIR: a forward run together with a _WHOLE


@dataclass(frozen=True)
class Layout:
    """What every device does when, one row per pass. Arrays of shape (rows,), sorted by start then device.

    Attributes
    ----------
    device, micro_batch, chunk, part : int arrays
        Pipeline device; micro-batch; chunk of that device; model part in model order.
    kind : str array
        F forward, B backward (whole, or of the inputs alone where a W follows), W weight gradients.
    start_s, end_s : float arrays [s]
    makespan_s : float
        First start to last end over all devices: the step where the optimizer waits for every stage.
    span_s, busy_s : float arrays, shape (pp,) [s]
        Each device's own first start to last end, and the time it computes.
    peak_in_flight : float array, shape (pp,)
        Micro-batches held at the peak in units of the device's whole share (see `pipeline.in_flight`).
    """

    schedule: str
    pp: int
    vpp: int
    m: int
    device: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray
    kind: np.ndarray
    micro_batch: np.ndarray
    chunk: np.ndarray
    part: np.ndarray
    makespan_s: float
    span_s: np.ndarray
    busy_s: np.ndarray
    peak_in_flight: np.ndarray

    @property
    def bubble_s(self) -> np.ndarray:
        """Idle time of each device between its own first and last pass. [s, shape (pp,)] What zero-bubble papers count."""
        return self.span_s - self.busy_s

    @property
    def idle_s(self) -> np.ndarray:
        """Idle time of each device over the whole makespan. [s, shape (pp,)] What a global barrier before the optimizer costs."""
        return self.makespan_s - self.busy_s

    @property
    def bubble_time_s(self) -> float:
        """Longest own span less the work of the busiest device: comparable with `pipeline.bubble_time`. [s]"""
        return float(self.span_s.max() - self.busy_s.max())

    def in_flight_over_time(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the number of micro-batches a device holds: times [s] and the value from each time on."""
        rows = self.device == device
        return _held(self.kind[rows], self.start_s[rows], self.end_s[rows], self.micro_batch[rows], self.part[rows], _chunks(self.schedule, self.vpp))


def lay_out(schedule, pp, vpp, m, t_forward, t_backward_input, t_backward_weight, t_p2p=0.0, part_scale=None, kept=1.0) -> Layout:
    """Lay a schedule out in time, each pass starting as soon as its device is free and its input has arrived.

    Parameters
    ----------
    schedule : str or int
        Name, alias or code of `pipeline.SCHEDULES`.
    pp, vpp, m : int
        Devices, model chunks per device, micro-batches.
    t_forward, t_backward_input, t_backward_weight : float
        Times of one micro-batch through all chunks of one device [s]; schedules that do not split the backward run
        input and weight gradients as one pass.
    t_p2p : float, default 0
        Time from the end of a pass until its output is on a neighbouring device [s]; it occupies no device.
    part_scale : sequence of float, optional
        Length of each model part relative to the mean, in model order, shape (pp·vpp,) (dualpipe: (pp,)).

    Notes
    -----
    Every device runs a fixed order of forwards and backwards. Weight-gradient passes of the zero-bubble and V schedules fill time
    in which the device would wait, and are run early where otherwise more would be in flight than the schedule allows; dualpipe and
    dualpipe-v put them where DeepSeek's code does. The V orders repeat the building blocks of Qi et al. 2024: between neighbours
    the two forwards and two backwards are shifted by (1, 1, 1, 1) sixths of a period for v-min, (2, 1, 2, 1) for v-half and
    (4, 2, 4, 2) for zb-v. Deterministic.

    Raises
    ------
    ValueError
        Where the schedule's own rules (`pipeline.RULES`) forbid the plan; names the rule.

    References
    ----------
    Sources of the orders: `pipeline.SCHEDULES[name].source`; warm-up counts of interleaved as in Megatron-LM.
    """
    row = SCHEDULES[SCHEDULE_NAMES[int(schedule_code(schedule))]]
    broken = violations(row.code, pp, vpp, m, pp * vpp)
    if broken:
        raise ValueError(f"{row.name} with pp {pp}, vpp {vpp}, {m} micro-batches: {next(iter(broken))}")
    chunks = _chunks(row.name, vpp)
    parts = pp * chunks
    scale = np.ones(parts) if part_scale is None else np.asarray(part_scale, dtype=float)
    if scale.shape != (parts,):
        raise ValueError(f"part_scale must have {parts} entries, one for each model part of {row.name}; it has shape {scale.shape}")
    orders = _orders(row.name, pp, chunks, m)
    lazy = row.split_backward and not row.name.startswith("dualpipe")
    cap = round(float(in_flight(row.code, pp, vpp, 10**9)) * chunks) if lazy else None
    times = [(t / chunks * scale).tolist() for t in (t_forward, t_backward_input, t_backward_weight, t_backward_input + t_backward_weight)]
    if not row.split_backward:
        times[_B] = times[_WHOLE]
    run = partial(_run, orders, _place(row.placement, pp, m), parts, m, times, float(t_p2p), cap)
    return min((_layout(row.name, pp, vpp, m, chunks, run(share, kept)) for share in (_SHARES if lazy else (1.0,))), key=lambda layout: layout.span_s.max())


def _chunks(name, vpp):
    return SCHEDULES[name].chunks or vpp


def _place(placement, pp, m):
    """Device of (part, micro-batch)."""
    if placement == "vee":
        return lambda part, mb: part if part < pp else 2 * pp - 1 - part
    if placement == "mirror":
        return lambda part, mb: part if mb < m // 2 else pp - 1 - part
    return lambda part, mb: part % pp


# Orders: for each device a list of (kind, part, micro-batch).


def _orders(name, pp, chunks, m):
    if name == "gpipe":
        return [[(_F, d, j) for j in range(m)] + [(_B, d, j) for j in range(m)] for d in range(pp)]
    if name in ("1f1b", "zb-1p"):
        return [_one_f_one_b(d, pp - d, m) for d in range(pp)]
    if name == "zb-2p":
        return [_one_f_one_b(d, 2 * (pp - d) - 1, m) for d in range(pp)]
    if name == "interleaved":
        return [_interleaved(d, pp, chunks, m) for d in range(pp)]
    if name == "dualpipe":
        half = pp // 2
        return [_dualpipe(half, min(d, pp - 1 - d), m // 2, *_dualpipe_lanes(d, pp, m)) for d in range(pp)]
    if name == "dualpipe-v":
        return [_dualpipe(pp, d, m, lambda j, d=d: (d, j), lambda j, d=d: (2 * pp - 1 - d, j)) for d in range(pp)]
    if name == "zb-v":
        return [_zero_bubble_v(d, pp, m) for d in range(pp)]
    return _vee(pp, m, 1 if name == "v-min" else 2)


def _one_f_one_b(part, warm_up, m):
    """`warm_up` forwards, then backwards and forwards in turn, then the backwards that are left."""
    warm_up = min(warm_up, m)
    order = [(_F, part, j) for j in range(warm_up)]
    for j in range(m):
        order.append((_B, part, j))
        if warm_up + j < m:
            order.append((_F, part, warm_up + j))
    return order


def _interleaved(device, pp, chunks, m):
    """Micro-batches go through the chunks in groups of pp; Megatron-LM's warm-up count, then one forward and one backward in turn."""

    def pass_of(k, kind):
        group, within = divmod(k, pp * chunks)
        chunk, j = divmod(within, pp)
        chunk = chunks - 1 - chunk if kind == _B else chunk
        return kind, chunk * pp + device, group * pp + j

    total = m * chunks
    warm_up = min(2 * (pp - 1 - device) + (chunks - 1) * pp + 1, total)
    order = [pass_of(k, _F) for k in range(warm_up)]
    for k in range(total):
        order.append(pass_of(k, _B))
        if warm_up + k < total:
            order.append(pass_of(warm_up + k, _F))
    return order


def _dualpipe_lanes(device, pp, m):
    """The two directions as seen by one device: lane 0 enters at the nearer end."""
    lanes = [lambda j: (device, j), lambda j: (pp - 1 - device, m // 2 + j)]
    return lanes if device < pp // 2 else lanes[::-1]


def _dualpipe(half, depth, m, lane0, lane1):
    """DeepSeek's eight phases for the device `depth` steps from the end of a half-pipeline of `half` devices, m per lane."""
    lanes, done, weights, order = (lane0, lane1), {}, [], []

    def take(kind, lane):
        j = done.get((kind, lane), 0)
        done[kind, lane] = j + 1
        return lanes[lane](j)

    def add(kind, lane, split=False):
        part, mb = take(kind, lane)
        order.append((_WHOLE if kind == _B and not split else kind, part, mb))
        if split:
            weights.append((_W, part, mb))

    def add_pair(lane):
        order.append((_PAIR, take(_F, lane), take(_B, 1 - lane)))

    def add_weight():
        order.append(weights.pop(0))

    before = half - 1 - depth
    for _ in range(2 * before):
        add(_F, 0)
    for _ in range(depth + 1):
        add(_F, 0)
        add(_F, 1)
    for _ in range(before):
        add(_B, 1, split=True)
        add_weight()
        add(_F, 1)
    for k in range(m - 2 * half + depth + 1):
        if k == 0 and depth == half - 1:  # the turning point starts without overlap, to let the first backward go sooner
            add(_F, 0)
            add(_B, 1)
        else:
            add_pair(0)
        add_pair(1)
    for _ in range(before):
        add(_B, 1)
        add_pair(1)
    for k in range(2 * (depth + 1)):  # the later half of these leaves its weight gradients for the end
        add(_B, 1 - k % 2, split=k > depth)
    for _ in range(before):
        add_weight()
        add(_B, 0, split=True)
    while weights:
        add_weight()
    return order


def _zero_bubble_v(device, pp, m):
    """Forwards of the first chunk until the first micro-batch is back, then both chunks in turn, each forward paid with a backward."""
    first, second = device, 2 * pp - 1 - device
    warm_up = [(_F, first)] * (2 * (pp - device) - 1) + [(_F, second), (_F, first)] * device + [(_F, second), (_B, second)] * (pp - device)
    steady = [(_F, first), (_B, first), (_F, second), (_B, second)]
    counts, order = {}, []
    for kind, part in warm_up + steady * (2 * m):
        j = counts.get((kind, part), 0)
        if j < m:
            counts[kind, part] = j + 1
            order.append((kind, part, j))
    return order


def _vee(pp, m, down):
    """Order the passes of a V by repeating one micro-batch's block every six slots.

    On the way down (forward of chunk 0, backward of chunk 1) a block is shifted by `down` slots from device to device, on the way up by
    one. The turning points leave no two passes in one slot; the backward of chunk 1 lies half a period after the forward of chunk 0
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
        passes = ((_F, device), (_F, 2 * pp - 1 - device), (_B, 2 * pp - 1 - device), (_B, device))
        slot_of = [(start[i, device] + 6 * j, kind, part, j) for i, (kind, part) in enumerate(passes) for j in range(m)]
        orders.append([(kind, part, j) for _, kind, part, j in sorted(slot_of)])
    return orders


def _run(orders, place, parts, m, times, t_p2p, cap, share, kept):
    """Start every pass as early as its device, its order and its input allow; returns rows (start, end, device, kind, part, micro-batch).

    With a cap, weight gradients are not in the orders: one is run where it delays nothing, or before a forward that would exceed the cap.
    """
    tick = max(1e-12, min(t for row in times for t in row if t > 0) * 1e-6) if any(t > 0 for row in times for t in row) else 1.0
    ends = {_F: [None] * (parts * m), _B: [None] * (parts * m)}
    waiting = {}  # (kind, index) -> device asleep until that pass is placed
    devices = len(orders)
    heads, held = [0] * devices, [0] * devices
    pending = [[] for _ in range(devices)]  # weight gradients owed, oldest first
    taken = [0] * devices
    rows, events = [], [(0, 0, d, 0.0) for d in range(devices)]

    def ready(kind, part, mb, device):
        """When the input of a pass is on its device, or None while that is not known; and the pass that it waits for."""
        if kind == _W:
            return 0.0, None
        if kind == _PAIR:
            both = ready(_F, *part, device), ready(_WHOLE, *mb, device)
            return next((each for each in both if each[0] is None), max(both, key=lambda each: each[0] or 0.0))
        if kind == _F:
            if part == 0:
                return 0.0, None
            source, at = _F, mb * parts + part - 1
            other = place(part - 1, mb)
        elif part == parts - 1:
            source, at, other = _F, mb * parts + part, device
        else:
            source, at = _B, mb * parts + part + 1
            other = place(part + 1, mb)
        end = ends[source][at]
        return (None if end is None else end + (t_p2p if other != device else 0.0)), (source, at)

    def put(now, device, kind, part, mb):
        passes = ((_F, *part), (_WHOLE, *mb)) if kind == _PAIR else ((kind, part, mb),)
        end = now
        for kind, part, mb in passes:
            start, end = end, end + times[kind][part]
            rows.append((start, end, device, kind, part, mb))
        for kind, part, mb in passes:  # what runs together is sent together
            if kind != _W:
                key = (_F if kind == _F else _B, mb * parts + part)
                ends[key[0]][key[1]] = end
                sleeper = waiting.pop(key, None)
                if sleeper is not None:
                    heapq.heappush(events, (round(now / tick), 0, sleeper, now))
        heapq.heappush(events, (round(end / tick), 0, device, end))

    # a device looks again (second = 1) after all others had their turn at the same moment, before it gives its time to a weight gradient
    while events:
        moment, second, device, now = heapq.heappop(events)
        owed = len(pending[device]) - taken[device]
        if heads[device] == len(orders[device]):
            if owed:
                put(now, device, _W, *pending[device][taken[device]])
                taken[device] += 1
            continue
        kind, part, mb = orders[device][heads[device]]
        at, source = ready(kind, part, mb, device)
        if kind == _F and owed and cap is not None and held[device] + 1 > cap + 1e-9:
            put(now, device, _W, *pending[device][taken[device]])
            taken[device] += 1
            held[device] -= kept
        elif at is not None and at <= now + tick / 2:
            heads[device] += 1
            if cap is not None:
                if kind == _F:
                    held[device] += 1
                else:
                    pending[device].append((part, mb))
                    held[device] -= 1 - kept
            put(max(now, at), device, kind, part, mb)
        elif at is None and not second:
            heapq.heappush(events, (moment, 1, device, now))
        elif owed and (at is None or now + share * times[_W][pending[device][taken[device]][0]] <= at + tick / 2):
            put(now, device, _W, *pending[device][taken[device]])
            taken[device] += 1
            held[device] -= kept
        elif at is None:
            waiting[source] = device
        else:
            heapq.heappush(events, (round(at / tick), 0, device, at))
    if any(head < len(order) for head, order in zip(heads, orders)):
        raise RuntimeError("the orders of the devices wait for one another")
    return rows


def _held(kind, start, end, micro_batch, part, chunks):
    """Times at which the number held changes and the number from then on, for the rows of one device."""
    split = set(zip(micro_batch[kind == "W"].tolist(), part[kind == "W"].tolist()))
    last = (kind == "W") | ((kind == "B") & np.array([(j, p) not in split for j, p in zip(micro_batch.tolist(), part.tolist())], dtype=bool))
    times = np.concatenate([start[kind == "F"], end[last]])
    change = np.concatenate([np.ones((kind == "F").sum()), -np.ones(last.sum())])
    # at one moment what is freed goes before what is taken
    order = np.lexsort((change, np.round(times / max(times.max(), 1e-300), 12)))
    return times[order], np.cumsum(change[order]) / chunks


def _layout(name, pp, vpp, m, chunks, rows):
    rows.sort(key=lambda row: (row[0], row[2]))
    start, end = (np.array([row[i] for row in rows]) for i in (0, 1))
    device, kind, part, micro_batch = (np.array([row[i] for row in rows]) for i in (2, 3, 4, 5))
    kind = np.array(KINDS)[np.where(kind == _WHOLE, _B, kind)]
    placement = SCHEDULES[name].placement
    chunk = part // pp if placement != "mirror" else (micro_batch >= m // 2).astype(int)
    span, busy, peak = np.zeros(pp), np.zeros(pp), np.zeros(pp)
    for d in range(pp):
        mine = device == d
        span[d] = end[mine].max() - start[mine].min()
        busy[d] = (end[mine] - start[mine]).sum()
        peak[d] = _held(kind[mine], start[mine], end[mine], micro_batch[mine], part[mine], chunks)[1].max()
    return Layout(name, pp, vpp, m, device, start, end, kind, micro_batch, chunk, part, float(end.max() - start.min()), span, busy, peak)
