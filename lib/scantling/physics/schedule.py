"""Lay pipeline schedules out in time: an event simulation of every schedule in
`scantling.physics.pipeline`, with uneven stages and transfers."""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from operator import itemgetter

import numpy as np

from ..base.records import record
from .pipeline import DUALPIPES, SCHEDULE_NAMES, SCHEDULES, in_flight, schedule_code, violations
from .schedule_orders import BACKWARD, FORWARD, ORDERS, PAIR, WEIGHT, WHOLE

KINDS = ("F", "B", "W")
_SHARES = (
    1.0,
    0.75,
    0.5,
    0.25,
    0.0,
)  # a weight gradient starts where at least this share of it fits; the best of these is kept


@record
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
    def peak_in_flight(self) -> np.ndarray:
        """Micro-batches each device holds at its peak, in units of its whole share (see
        `pipeline.in_flight`). [shape (pp,)]"""
        return np.array([self.in_flight_over_time(d)[1].max() for d in range(self.pp)])

    def in_flight_over_time(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the number of micro-batches a device holds: times [s] and the value from each
        time on."""
        rows, kept = self.device == device, self.weight_kept
        columns = self.kind, self.start_s, self.end_s, self.micro_batch, self.part
        kind, start, end, micro_batch, part = (column[rows] for column in columns)
        key = micro_batch * (part.max() + 1) + part
        weight, forward = kind == "W", kind == "F"
        freed = np.where(weight, kept, np.where(np.isin(key, key[weight]), 1 - kept, 1.0))
        times, change = np.where(forward, start, end), np.where(forward, 1.0, -freed)
        # at one moment what is freed goes before what is taken
        order = np.lexsort((change, np.round(times / max(times.max(), 1e-300), 12)))
        chunks = SCHEDULES[self.schedule].chunks or self.vpp
        return times[order], np.cumsum(change[order]) / chunks


def lay_out(
    schedule,
    pp,
    vpp,
    m,
    t_forward,
    t_backward_input,
    t_backward_weight,
    *,
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
    chunks = row.chunks or vpp
    parts = pp * chunks
    scale = np.ones(parts) if part_scale is None else np.asarray(part_scale, dtype=float)
    given = [t_forward, t_backward_input, t_backward_weight, t_p2p, *scale]
    if not all(t >= 0 and np.isfinite(t) for t in given):
        raise ValueError(f"times and scales must be finite and not negative; got {given}")
    if scale.shape != (parts,):
        raise ValueError(
            f"part_scale must have {parts} entries, one for each model part of "
            f"{row.name}; it has shape {scale.shape}"
        )
    whole = t_backward_input + t_backward_weight
    by_kind = (
        t_forward,
        t_backward_input if row.split_backward else whole,
        t_backward_weight,
        whole,
    )
    lazy = row.split_backward and row.code not in DUALPIPES
    job = {
        "orders": [ORDERS[row.name](d, pp, chunks, m) for d in range(pp)],
        "device_of": _device_of(row.placement, pp, m),
        "times": [(t / chunks * scale).tolist() for t in by_kind],
        "t_p2p": float(t_p2p),
        "cap": round(float(in_flight(row.code, pp, vpp, 10**9)) * chunks) if lazy else inf,
        "kept": weight_kept,
    }
    layouts = (
        _layout(row, pp, vpp, m, weight_kept, _Run(share=share, **job).rows())
        for share in (_SHARES if lazy else (1.0,))
    )
    return min(layouts, key=lambda layout: layout.span_s.max())


def _device_of(placement, pp, m):
    """Function of (part, micro-batch): the device that holds it."""
    return {
        "ring": lambda part, mb: part % pp,
        "vee": lambda part, mb: min(part, 2 * pp - 1 - part),
        "mirror": lambda part, mb: part if mb < m // 2 else pp - 1 - part,
    }[placement]


@dataclass(kw_only=True)
class _Run:
    """Every pass as early as its device, its order and its input allow.

    With a cap, weight gradients are not in the orders: one is run where it delays nothing (where at
    least `share` of it fits before the next input arrives), or before a forward that would exceed
    the cap.
    """

    orders: list
    device_of: Callable
    times: list  # [kind][part]
    t_p2p: float
    cap: float
    kept: float
    share: float

    def __post_init__(self):
        self.tick = 1e-9 * max(map(max, self.times)) or 1.0  # moments closer than this are one
        self.ends = {}  # (kind, part, micro-batch) -> when its output exists
        self.waiting = {}  # the same -> device asleep until that pass is placed
        self.left = [deque(order) for order in self.orders]
        self.owed = [deque() for _ in self.left]  # weight gradients, oldest first
        self.held = [0.0 for _ in self.left]
        # (tick, whether after all others had their turn then, device, moment)
        self.events = [(0, 0, device, 0.0) for device, _ in enumerate(self.left)]
        self.placed = []  # (start, end, device, kind, part, micro-batch)

    def rows(self) -> list[tuple]:
        """The passes as they were placed."""
        while self.events:
            self.turn(*heapq.heappop(self.events))
        if any(self.left):
            raise RuntimeError("the orders of the devices wait for one another")
        return self.placed

    def wake(self, moment, device):
        """The device looks again at a moment."""
        heapq.heappush(self.events, (round(moment / self.tick), 0, device, moment))

    def ready(self, kind, part, mb, device):
        """When the input of a pass is on its device, infinite while that is not known; and the pass
        that it waits for."""
        if kind == PAIR:
            both = self.ready(FORWARD, *part, device), self.ready(WHOLE, *mb, device)
            return max(both, key=itemgetter(0))
        if kind == FORWARD:
            source = FORWARD, part - 1, mb
        elif part + 1 == len(self.times[0]):
            source = FORWARD, part, mb
        else:
            source = BACKWARD, part + 1, mb
        if source[1] < 0:
            return 0.0, None
        sent = self.t_p2p if self.device_of(*source[1:]) != device else 0.0
        return self.ends.get(source, inf) + sent, source

    def put(self, now, device, kind, part, mb):
        """Run a pass, or both of a pair, from now on; what runs together is sent together."""
        passes = ((FORWARD, *part), (WHOLE, *mb)) if kind == PAIR else ((kind, part, mb),)
        end = now
        for kind, part, mb in passes:
            start, end = end, end + self.times[kind][part]
            self.placed.append((start, end, device, kind, part, mb))
        for kind, *at in passes:
            if kind != WEIGHT:
                key = (FORWARD if kind == FORWARD else BACKWARD, *at)
                self.ends[key] = end
                if key in self.waiting:
                    self.wake(now, self.waiting.pop(key))
        self.wake(end, device)

    def put_weight(self, now, device):
        """Run the oldest weight gradient that the device owes."""
        self.held[device] -= self.kept
        self.put(now, device, WEIGHT, *self.owed[device].popleft())

    def start(self, now, device):
        """Run the next pass of the device's order."""
        kind, *at = self.left[device].popleft()
        if kind == FORWARD:
            self.held[device] += 1
        elif self.cap < inf:
            self.owed[device].append(at)
            self.held[device] -= 1 - self.kept
        self.put(now, device, kind, *at)

    def turn(self, moment, second, device, now):
        """One device decides what to do. It looks again, after all others, before it gives time to
        a weight gradient while its next input is unknown."""
        owed, left, late = self.owed[device], self.left[device], self.tick / 2
        if not left:
            if owed:
                self.put_weight(now, device)
            return
        at, source = self.ready(*left[0], device)
        full = left[0][0] == FORWARD and self.held[device] + 1 > self.cap + 1e-9
        if owed and full:
            self.put_weight(now, device)
        elif at <= now + late:
            self.start(max(now, at), device)
        elif at == inf and not second:
            heapq.heappush(self.events, (moment, 1, device, now))
        elif owed and now + self.share * self.times[WEIGHT][owed[0][0]] <= at + late:
            self.put_weight(now, device)
        elif at == inf:
            self.waiting[source] = device
        else:
            self.wake(at, device)


def _layout(row, pp, vpp, m, kept, placed) -> Layout:
    """The passes as columns, and what they add up to on each device."""
    rows = np.array(sorted(placed, key=lambda each: (each[0], each[2])))
    start, end = rows[:, 0], rows[:, 1]
    device, kind, part, micro_batch = rows[:, 2:].astype(int).T
    return Layout(
        schedule=row.name,
        pp=pp,
        vpp=vpp,
        m=m,
        weight_kept=kept,
        device=device,
        start_s=start,
        end_s=end,
        kind=np.array(KINDS)[np.where(kind == WHOLE, BACKWARD, kind)],
        micro_batch=micro_batch,
        chunk=1 * (micro_batch >= m // 2) if row.placement == "mirror" else part // pp,
        part=part,
        makespan_s=float(end.max() - start.min()),
        span_s=np.array([np.ptp(rows[device == d, :2]) for d in range(pp)]),
        busy_s=np.bincount(device, end - start, minlength=pp),
    )
