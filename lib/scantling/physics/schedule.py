"""Lay pipeline schedules out in time: an event simulation of every schedule in
`scantling.physics.pipeline`, with uneven stages and transfers."""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..base.columns import Array
from ..base.records import record
from .pipeline import (
    DUALPIPES,
    SCHEDULE_NAMES,
    SCHEDULES,
    Schedule,
    in_flight,
    schedule_code,
    violations,
)
from .schedule_orders import BACKWARD, FORWARD, ORDERS, WEIGHT, WHOLE, Order, Pair, Pass

KINDS = ("F", "B", "W")
# a weight gradient starts where at least this share of it fits; the best of these is taken
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)


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
    weight_saved: float
    device: Array
    start_s: Array
    end_s: Array
    kind: Array
    micro_batch: Array
    chunk: Array
    part: Array
    makespan_s: float
    span_s: Array
    busy_s: Array

    @property
    def bubble_s(self) -> Array:
        """Idle time of each device between its own first and last pass. [s, shape (pp,)] What
        zero-bubble papers count."""
        return self.span_s - self.busy_s

    @property
    def idle_s(self) -> Array:
        """Idle time of each device over the whole makespan. [s, shape (pp,)] What a global barrier
        before the optimizer costs."""
        return self.makespan_s - self.busy_s

    @property
    def peak_in_flight(self) -> Array:
        """Micro-batches each device holds at its peak, in units of its whole share (see
        `pipeline.in_flight`). [shape (pp,)]"""
        return np.array([self.in_flight_over_time(d)[1].max() for d in range(self.pp)])

    def in_flight_over_time(self, device: int) -> tuple[Array, Array]:
        """Steps of the number of micro-batches a device holds: times [s] and the value from each
        time on."""
        rows, weight_saved = self.device == device, self.weight_saved
        columns = self.kind, self.start_s, self.end_s, self.micro_batch, self.part
        kind, start, end, micro_batch, part = (column[rows] for column in columns)
        key = micro_batch * (part.max() + 1) + part
        weight, forward = kind == "W", kind == "F"
        freed = np.where(
            weight, weight_saved, np.where(np.isin(key, key[weight]), 1 - weight_saved, 1.0)
        )
        times, change = np.where(forward, start, end), np.where(forward, 1.0, -freed)
        # at one moment what is freed goes before what is taken
        order = np.lexsort((change, np.round(times / max(times.max(), 1e-300), 12)))
        chunks = SCHEDULES[self.schedule].chunks or self.vpp
        return times[order], np.cumsum(change[order]) / chunks


def lay_out(
    schedule: str | int,
    pp: int,
    vpp: int,
    m: int,
    t_forward: float,
    t_backward_input: float,
    t_backward_weight: float,
    *,
    t_p2p: float = 0.0,
    part_scale: Sequence[float] | Array | None = None,
    weight_saved: float = 1.0,
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
        the backward run input and weight gradients as one pass.
    t_p2p : float, default 0
        Time from the end of a pass until its output is on a neighbouring device [s]; it occupies no
        device.
    part_scale : sequence of float, optional
        Length of each model part relative to the mean, in model order, shape (pp·vpp,) (dualpipe:
        (pp,)).
    weight_saved : float, default 1
        Share of a micro-batch's activations that its weight gradient still needs (see
        `pipeline.weight_saved`).

    Notes
    -----
    Every device runs a fixed order of forwards and backwards. Weight-gradient passes of the
    zero-bubble and V schedules fill time in which the device would wait, and are run early where
    otherwise more would be in flight than the schedule allows; dualpipe and dualpipe-v put them
    where DeepSeek's code does, and run a forward and a backward as one in their steady phase.
    v-half and v-min repeat a block of one micro-batch as Qi et al. 2024 do. Of five rules for when
    a weight gradient may start in a gap too short for it, the one with the shortest step is
    returned. Deterministic.

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
    chunks = row.chunks or vpp
    scale = np.ones(pp * chunks) if part_scale is None else np.asarray(part_scale, dtype=float)
    passes = (t_forward, t_backward_input, t_backward_weight)
    _check(row, pp, vpp, m, (*passes, t_p2p), scale)
    fitted_in = row.split_backward and row.code not in DUALPIPES  # weight gradients, where it waits
    layouts = []
    for share in _SHARES if fitted_in else _SHARES[:1]:
        run = _Run(
            orders=[ORDERS[row.name](device, pp, chunks, m) for device in range(pp)],
            device_of=_device_of(row.placement, pp, m),
            times=[(t / chunks * scale).tolist() for t in _by_kind(row, *passes)],
            t_p2p=float(t_p2p),
            cap=round(float(in_flight(row.code, pp, vpp, 10**9)) * chunks) if fitted_in else inf,
            weight_saved=weight_saved,
            share=share,
        )
        layouts.append(_layout(row, pp, vpp, m, weight_saved, run.rows()))
    return min(layouts, key=lambda layout: float(layout.span_s.max()))


def _check(row: Schedule, pp: int, vpp: int, m: int, times: Sequence[float], scale: Array) -> None:
    """Raises ValueError for a plan that the schedule's rules forbid, and for times or a scale that
    cannot be laid out."""
    broken = violations(row.code, pp, vpp, m, pp * vpp)
    if broken:
        raise ValueError(
            f"{row.name} with pp {pp}, vpp {vpp}, {m} micro-batches: {next(iter(broken))}"
        )
    stated = [*times, *scale]
    if not all(t >= 0 and np.isfinite(t) for t in stated):
        raise ValueError(f"times and scales must be finite and not negative; got {stated}")
    parts = pp * (row.chunks or vpp)
    if scale.shape != (parts,):
        raise ValueError(
            f"part_scale must have {parts} entries, one for each model part of "
            f"{row.name}; it has shape {scale.shape}"
        )


def _by_kind(
    row: Schedule, forward: float, backward_input: float, backward_weight: float
) -> tuple[float, float, float, float]:
    """Times of a FORWARD, BACKWARD, WEIGHT and WHOLE pass."""
    whole = backward_input + backward_weight
    return forward, backward_input if row.split_backward else whole, backward_weight, whole


def _device_of(placement: str, pp: int, m: int) -> Callable[[int, int], int]:
    """Function of (part, micro-batch): the device that holds it."""

    def device(part: int, micro_batch: int) -> int:
        if placement == "ring":
            return part % pp
        if placement == "vee":
            return min(part, 2 * pp - 1 - part)
        return part if micro_batch < m // 2 else pp - 1 - part

    return device


class Placed(NamedTuple):
    """A pass in time."""

    start: float
    end: float
    device: int
    kind: int
    part: int
    micro_batch: int


class _Run:
    """Every pass as early as its device, its order and its input allow.

    With a cap, weight gradients are not in the orders: one is run where it delays nothing (where at
    least `share` of it fits before the next input arrives), or before a forward that would exceed
    the cap.
    """

    def __init__(
        self,
        *,
        orders: Sequence[Order],
        device_of: Callable[[int, int], int],
        times: Sequence[Sequence[float]],  # [kind][part]
        t_p2p: float,
        cap: float,
        weight_saved: float,
        share: float,
    ) -> None:
        self.device_of, self.times, self.t_p2p = device_of, times, t_p2p
        self.cap, self.weight_saved, self.share = cap, weight_saved, share
        self.tick = 1e-9 * max(map(max, times)) or 1.0  # moments closer than this are one
        self.ends: dict[Pass, float] = {}  # when the output of a pass exists
        self.waiting: dict[Pass | None, int] = {}  # device asleep until that pass is placed
        self.left = [deque(order) for order in orders]
        self.owed: list[deque[Pass]] = [deque() for _ in orders]  # weight gradients, oldest first
        self.in_flight = [0.0 for _ in orders]
        # (tick, whether after all others had their turn then, device, moment)
        self.events = [(0, 0, device, 0.0) for device in range(len(orders))]
        self.placed: list[Placed] = []

    def rows(self) -> list[Placed]:
        """The passes as they were placed."""
        while self.events:
            self.turn(*heapq.heappop(self.events))
        if any(self.left):
            raise RuntimeError("the orders of the devices wait for one another")
        return self.placed

    def wake(self, moment: float, device: int) -> None:
        """The device looks again at a moment."""
        heapq.heappush(self.events, (round(moment / self.tick), 0, device, moment))

    def ready(self, what: Pass | Pair, device: int) -> tuple[float, Pass | None]:
        """When the input of a pass is on its device, infinite while that is not known; and the pass
        that it waits for."""
        if isinstance(what, Pair):
            both = self.ready(what.forward, device), self.ready(what.backward, device)
            return max(both, key=itemgetter(0))
        kind, part, micro_batch = what
        if kind == FORWARD:
            source = Pass(FORWARD, part - 1, micro_batch)
        elif part + 1 == len(self.times[0]):
            source = Pass(FORWARD, part, micro_batch)
        else:
            source = Pass(BACKWARD, part + 1, micro_batch)
        if source.part < 0:
            return 0.0, None
        away = self.device_of(source.part, source.micro_batch) != device
        return self.ends.get(source, inf) + (self.t_p2p if away else 0.0), source

    def put(self, now: float, device: int, what: Pass | Pair) -> None:
        """Run a pass, or both of a pair, from now on; what runs together is sent together."""
        passes = tuple(what) if isinstance(what, Pair) else (what,)
        end = now
        for kind, part, micro_batch in passes:
            start, end = end, end + self.times[kind][part]
            self.placed.append(Placed(start, end, device, kind, part, micro_batch))
        for kind, part, micro_batch in passes:
            if kind != WEIGHT:
                output = Pass(FORWARD if kind == FORWARD else BACKWARD, part, micro_batch)
                self.ends[output] = end
                if output in self.waiting:
                    self.wake(now, self.waiting.pop(output))
        self.wake(end, device)

    def put_weight(self, now: float, device: int) -> None:
        """Run the oldest weight gradient that the device owes."""
        self.in_flight[device] -= self.weight_saved
        self.put(now, device, self.owed[device].popleft())

    def start(self, now: float, device: int) -> None:
        """Run the next pass of the device's order."""
        what = self.left[device].popleft()
        if isinstance(what, Pass):
            if what.kind == FORWARD:
                self.in_flight[device] += 1
            elif self.cap < inf:
                self.owed[device].append(Pass(WEIGHT, what.part, what.micro_batch))
                self.in_flight[device] -= 1 - self.weight_saved
        self.put(now, device, what)

    def turn(self, moment: int, second: int, device: int, now: float) -> None:
        """One device decides what to do. It looks again, after all others, before it gives time to
        a weight gradient while its next input is unknown."""
        owed, left, late = self.owed[device], self.left[device], self.tick / 2
        if not left:
            if owed:
                self.put_weight(now, device)
            return
        what = left[0]
        at, source = self.ready(what, device)
        forward = isinstance(what, Pass) and what.kind == FORWARD
        full = forward and self.in_flight[device] + 1 > self.cap + 1e-9
        if owed and full:
            self.put_weight(now, device)
        elif at <= now + late:
            self.start(max(now, at), device)
        elif at == inf and not second:
            heapq.heappush(self.events, (moment, 1, device, now))
        elif owed and now + self.share * self.times[WEIGHT][owed[0].part] <= at + late:
            self.put_weight(now, device)
        elif at == inf:
            self.waiting[source] = device
        else:
            self.wake(at, device)


def _layout(
    row: Schedule, pp: int, vpp: int, m: int, weight_saved: float, placed: Sequence[Placed]
) -> Layout:
    """The passes as columns, and what they add up to on each device."""
    rows = np.array(sorted(placed, key=lambda each: (each.start, each.device)))
    start, end = rows[:, 0], rows[:, 1]
    device, kind, part, micro_batch = rows[:, 2:].astype(int).T
    return Layout(
        schedule=row.name,
        pp=pp,
        vpp=vpp,
        m=m,
        weight_saved=weight_saved,
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
