"""Lay pipeline schedules out in time: an event simulation of every schedule in
`scantling.physics.pipeline`, with uneven stages and transfers."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial

import numpy as np

from .pipeline import SCHEDULE_NAMES, SCHEDULES, in_flight, schedule_code, violations
from .schedule_orders import BACKWARD, FORWARD, PAIR, WEIGHT, WHOLE
from .schedule_orders import orders as pass_orders

__all__ = ["KINDS", "Layout", "lay_out"]

KINDS = ("F", "B", "W")
_SHARES = (
    1.0,
    0.75,
    0.5,
    0.25,
    0.0,
)  # a weight gradient starts where at least this share of it fits; the best of these is kept


@dataclass(frozen=True)
class Layout:
    """What every device does when, one row per pass. Arrays of shape (rows,), sorted by start then
    device.

    Attributes
    ----------
    device, micro_batch, chunk, part : int arrays
        Pipeline device; micro-batch; chunk of that device; model part in model order.
    kind : str array
        F forward, B backward (whole, or of the inputs alone where a W follows), W weight gradients.
    start_s, end_s : float arrays [s]
    makespan_s : float
        First start to last end over all devices: the step where the optimizer waits for every
        stage.
    span_s, busy_s : float arrays, shape (pp,) [s]
        Each device's own first start to last end, and the time it computes.
    peak_in_flight : float array, shape (pp,)
        Micro-batches held at the peak in units of the device's whole share (see
        `pipeline.in_flight`).
    """

    schedule: str
    pp: int
    vpp: int
    m: int
    weight_kept: float
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
        """Idle time of each device between its own first and last pass. [s, shape (pp,)] What
        zero-bubble papers count."""
        return self.span_s - self.busy_s

    @property
    def idle_s(self) -> np.ndarray:
        """Idle time of each device over the whole makespan. [s, shape (pp,)] What a global barrier
        before the optimizer costs."""
        return self.makespan_s - self.busy_s

    @property
    def bubble_time_s(self) -> float:
        """Longest own span less the work of the busiest device: comparable with
        `pipeline.bubble_time`. [s]"""
        return float(self.span_s.max() - self.busy_s.max())

    def in_flight_over_time(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the number of micro-batches a device holds: times [s] and the value from each
        time on."""
        rows = self.device == device
        return _held(
            self.kind[rows],
            self.start_s[rows],
            self.end_s[rows],
            self.micro_batch[rows],
            self.part[rows],
            _chunks(self.schedule, self.vpp),
            self.weight_kept,
        )


def lay_out(
    schedule,
    pp,
    vpp,
    m,
    t_forward,
    t_backward_input,
    t_backward_weight,
    t_p2p=0.0,
    part_scale=None,
    weight_kept=1.0,
) -> Layout:
    """Lay a schedule out in time, each pass starting as soon as its device is free and its input
    has arrived.

    Parameters
    ----------
    schedule : str or int
        Name, alias or code of `pipeline.SCHEDULES`.
    pp, vpp, m : int
        Devices, model chunks per device, micro-batches.
    t_forward, t_backward_input, t_backward_weight : float
        Times of one micro-batch through all chunks of one device [s]; schedules that do not split
        the backward run
        input and weight gradients as one pass.
    t_p2p : float, default 0
        Time from the end of a pass until its output is on a neighbouring device [s]; it occupies no
        device.
    part_scale : sequence of float, optional
        Length of each model part relative to the mean, in model order, shape (pp·vpp,) (dualpipe:
        (pp,)).
    weight_kept : float, default 1
        Share of a micro-batch's activations that its weight gradient still needs (see
        `pipeline.weight_kept`).

    Notes
    -----
    Every device runs a fixed order of forwards and backwards. Weight-gradient passes of the
    zero-bubble and V schedules fill time
    in which the device would wait, and are run early where otherwise more would be in flight than
    the schedule allows; dualpipe and
    dualpipe-v put them where DeepSeek's code does, and run a forward and a backward as one in their
    steady phase. v-half and v-min
    repeat a block of one micro-batch as Qi et al. 2024 do. Of five rules for when a weight gradient
    may start in a gap too short
    for it, the one with the shortest step is kept. Deterministic.

    Raises
    ------
    ValueError
        Where the schedule's own rules (`pipeline.RULES`) forbid the plan (names the rule), or a
        time or scale is not a number ≥ 0.

    References
    ----------
    Sources of the orders: `pipeline.SCHEDULES[name].source`; warm-up counts of interleaved as in
    Megatron-LM.
    """
    row = SCHEDULES[SCHEDULE_NAMES[int(schedule_code(schedule))]]
    broken = violations(row.code, pp, vpp, m, pp * vpp)
    if broken:
        raise ValueError(
            f"{row.name} with pp {pp}, vpp {vpp}, {m} micro-batches: {next(iter(broken))}"
        )
    given = [
        t_forward,
        t_backward_input,
        t_backward_weight,
        t_p2p,
        *([] if part_scale is None else part_scale),
    ]
    if not all(t >= 0 and np.isfinite(t) for t in given):
        raise ValueError(f"times and scales must be finite and not negative; got {given}")
    chunks = _chunks(row.name, vpp)
    parts = pp * chunks
    scale = np.ones(parts) if part_scale is None else np.asarray(part_scale, dtype=float)
    if scale.shape != (parts,):
        raise ValueError(
            f"part_scale must have {parts} entries, one for each model part of "
            f"{row.name}; it has shape {scale.shape}"
        )
    lazy = row.split_backward and not row.name.startswith("dualpipe")
    cap = round(float(in_flight(row.code, pp, vpp, 10**9)) * chunks) if lazy else None
    times = [
        (t / chunks * scale).tolist()
        for t in (
            t_forward,
            t_backward_input,
            t_backward_weight,
            t_backward_input + t_backward_weight,
        )
    ]
    if not row.split_backward:
        times[BACKWARD] = times[WHOLE]
    place = partial(_layout, row.name, pp, vpp, m, chunks, weight_kept)
    run = partial(
        _run,
        pass_orders(row.name, pp, chunks, m),
        _place(row.placement, pp, m),
        parts,
        m,
        times,
        float(t_p2p),
        cap,
        weight_kept,
    )
    return min(
        (place(run(share)) for share in (_SHARES if lazy else (1.0,))),
        key=lambda layout: layout.span_s.max(),
    )


def _chunks(name, vpp):
    return SCHEDULES[name].chunks or vpp


def _place(placement, pp, m):
    """Device of (part, micro-batch)."""
    if placement == "vee":
        return lambda part, mb: part if part < pp else 2 * pp - 1 - part
    if placement == "mirror":
        return lambda part, mb: part if mb < m // 2 else pp - 1 - part
    return lambda part, mb: part % pp


def _run(orders, place, parts, m, times, t_p2p, cap, kept, share):
    """Start every pass as early as its device, its order and its input allow; returns rows (start,
    end, device, kind, part, micro-batch).

    With a cap, weight gradients are not in the orders: one is run where it delays nothing, or
    before a forward that would exceed the cap.
    """
    tick = (
        1e-9 * max((t for row in times for t in row), default=0.0) or 1.0
    )  # moments closer than this are one
    ends = {FORWARD: [None] * (parts * m), BACKWARD: [None] * (parts * m)}
    waiting = {}  # (kind, index) -> device asleep until that pass is placed
    devices = len(orders)
    heads, held = [0] * devices, [0] * devices
    pending = [[] for _ in range(devices)]  # weight gradients owed, oldest first
    taken = [0] * devices
    rows, events = [], [(0, 0, d, 0.0) for d in range(devices)]

    def ready(kind, part, mb, device):
        """When the input of a pass is on its device, or None while that is not known; and the pass
        that it waits for."""
        if kind == WEIGHT:
            return 0.0, None
        if kind == PAIR:
            both = ready(FORWARD, *part, device), ready(WHOLE, *mb, device)
            return next(
                (each for each in both if each[0] is None),
                max(both, key=lambda each: each[0] or 0.0),
            )
        if kind == FORWARD:
            if part == 0:
                return 0.0, None
            source, at = FORWARD, mb * parts + part - 1
            other = place(part - 1, mb)
        elif part == parts - 1:
            source, at, other = FORWARD, mb * parts + part, device
        else:
            source, at = BACKWARD, mb * parts + part + 1
            other = place(part + 1, mb)
        end = ends[source][at]
        return (None if end is None else end + (t_p2p if other != device else 0.0)), (source, at)

    def put(now, device, kind, part, mb):
        passes = ((FORWARD, *part), (WHOLE, *mb)) if kind == PAIR else ((kind, part, mb),)
        end = now
        for kind, part, mb in passes:
            start, end = end, end + times[kind][part]
            rows.append((start, end, device, kind, part, mb))
        for kind, part, mb in passes:  # what runs together is sent together
            if kind != WEIGHT:
                key = (FORWARD if kind == FORWARD else BACKWARD, mb * parts + part)
                ends[key[0]][key[1]] = end
                sleeper = waiting.pop(key, None)
                if sleeper is not None:
                    heapq.heappush(events, (round(now / tick), 0, sleeper, now))
        heapq.heappush(events, (round(end / tick), 0, device, end))

    # a device looks again (second = 1) after all others had their turn at the same moment, before
    # it gives its time to a weight gradient
    while events:
        moment, second, device, now = heapq.heappop(events)
        owed = len(pending[device]) - taken[device]
        if heads[device] == len(orders[device]):
            if owed:
                put(now, device, WEIGHT, *pending[device][taken[device]])
                taken[device] += 1
            continue
        kind, part, mb = orders[device][heads[device]]
        at, source = ready(kind, part, mb, device)
        if kind == FORWARD and owed and cap is not None and held[device] + 1 > cap + 1e-9:
            put(now, device, WEIGHT, *pending[device][taken[device]])
            taken[device] += 1
            held[device] -= kept
        elif at is not None and at <= now + tick / 2:
            heads[device] += 1
            if cap is not None:
                if kind == FORWARD:
                    held[device] += 1
                else:
                    pending[device].append((part, mb))
                    held[device] -= 1 - kept
            put(max(now, at), device, kind, part, mb)
        elif at is None and not second:
            heapq.heappush(events, (moment, 1, device, now))
        elif owed and (
            at is None
            or now + share * times[WEIGHT][pending[device][taken[device]][0]] <= at + tick / 2
        ):
            put(now, device, WEIGHT, *pending[device][taken[device]])
            taken[device] += 1
            held[device] -= kept
        elif at is None:
            waiting[source] = device
        else:
            heapq.heappush(events, (round(at / tick), 0, device, at))
    if any(head < len(order) for head, order in zip(heads, orders)):
        raise RuntimeError("the orders of the devices wait for one another")
    return rows


def _held(kind, start, end, micro_batch, part, chunks, kept):
    """Times at which the number held changes and the number from then on, for the rows of one
    device."""
    key = micro_batch * (part.max() + 1) + part
    split = np.isin(key, key[kind == "W"])
    freed = np.select([kind == "W", kind == "B"], [kept, np.where(split, 1 - kept, 1.0)], 0.0)
    forward = kind == "F"
    times = np.concatenate([start[forward], end[~forward]])
    change = np.concatenate([np.ones(forward.sum()), -freed[~forward]])
    # at one moment what is freed goes before what is taken
    order = np.lexsort((change, np.round(times / max(times.max(), 1e-300), 12)))
    return times[order], np.cumsum(change[order]) / chunks


def _layout(name, pp, vpp, m, chunks, kept, rows):
    rows.sort(key=lambda row: (row[0], row[2]))
    start, end = (np.array([row[i] for row in rows]) for i in (0, 1))
    device, kind, part, micro_batch = (np.array([row[i] for row in rows]) for i in (2, 3, 4, 5))
    kind = np.array(KINDS)[np.where(kind == WHOLE, BACKWARD, kind)]
    placement = SCHEDULES[name].placement
    chunk = part // pp if placement != "mirror" else (micro_batch >= m // 2).astype(int)
    span, busy, peak = np.zeros(pp), np.zeros(pp), np.zeros(pp)
    for d in range(pp):
        mine = device == d
        span[d] = end[mine].max() - start[mine].min()
        busy[d] = (end[mine] - start[mine]).sum()
        peak[d] = _held(
            kind[mine], start[mine], end[mine], micro_batch[mine], part[mine], chunks, kept
        )[1].max()
    return Layout(
        name,
        pp,
        vpp,
        m,
        kept,
        device,
        start,
        end,
        kind,
        micro_batch,
        chunk,
        part,
        float(end.max() - start.min()),
        span,
        busy,
        peak,
    )
