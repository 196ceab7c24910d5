"""The modelled step of a plan in time: ranks of one pipeline, their streams of compute and of
communication, slice by slice.

The passes are laid out as the schedule orders them (`physics.schedule`). The rank that sets the
pace takes what the step takes: its slices of a part add up to that part of the step. The others
take so much of a mean stage that the pipeline's idle time is that of the schedule's formula.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json import dumps
from typing import Any, NamedTuple

import numpy as np
from scantling.advise.computed_by import computed_by
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.words import STEP_PARTS, Axis, StepPart
from scantling.physics import traffic
from scantling.physics.cases import Cases
from scantling.physics.layout import layers_per_stage, saved_for_weights
from scantling.physics.pipeline import SCHEDULES
from scantling.physics.schedule import Layout, lay_out
from scantling.physics.step import Pace, Step, micro_gathers_s, overall, pace
from scantling.verdict.assessment import Assessment, Chosen

from .answers import Answer
from .tuned_trace import TunedTrace, trace_tuned

COMPUTE = "compute"
AXES: tuple[str, ...] = (Axis.TP, Axis.CP, Axis.EP, Axis.DP, Axis.PP)
STREAMS: tuple[str, ...] = (COMPUTE, *AXES)  # in the order of a rank's tracks
MOST_PASSES = 400_000  # that a trace holds
DETAILED_PASSES = 10_000  # up to which every rank shows the parts of its passes
WHOLE = "BW"  # a backward with its weight gradients
PASS_NAMES = {"F": "forward", "B": "backward of inputs", "W": "weight gradients", WHOLE: "backward"}
THIRD = 1 / 3
# what a micro-batch does, in the order in which a pass shows it
OF_PASSES: tuple[str, ...] = (
    StepPart.RECOMPUTE,
    StepPart.GEMM,
    StepPart.ATTENTION,
    StepPart.ELEMENTWISE,
    StepPart.LOGITS,
    StepPart.HOST,
    StepPart.TP,
    StepPart.CP,
    StepPart.EP,
    StepPart.DP,
    StepPart.PP,
)
# what follows the last pass, in its order
AT_END: tuple[str, ...] = (
    StepPart.DP,
    StepPart.OPTIMIZER,
    StepPart.HOST,
    StepPart.STRAGGLER,
    StepPart.DATA,
)
TURNS = 12  # tries for the pace of the other ranks
CLOSE = 1e-9  # of the step: lengths nearer than this are one


class Slice(NamedTuple):
    """Something that one stream of one rank does from one moment to another. `part` of the step;
    empty for a pass, whose parts lie inside it."""

    rank: int
    stream: str
    part: str
    name: str
    start_s: float
    end_s: float
    micro_batch: int  # -1 outside the passes


@record
class Trace:
    """One modelled step.

    Attributes
    ----------
    slices : tuple of Slice
        By rank, stream and start.
    pace : int
        The rank that sets the pace: the sums of its slices are the parts of the step.
    others : float
        Length of a pass on the other ranks over that of a mean stage.
    layout : Layout
        The passes alone.
    parts_s, wire_s : mapping
        Parts of the step, and time on the wire by axis, as the step has them. [s]
    total_s : float
        The step. [s]
    """

    title: str
    schedule: str
    slices: tuple[Slice, ...]
    pace: int
    others: float
    layout: Layout
    parts_s: Mapping[str, float]
    wire_s: Mapping[str, float]
    total_s: float

    def sums(self, rank: int) -> dict[str, float]:
        """Seconds of the compute stream of a rank by part of the step."""
        sums = dict.fromkeys(STEP_PARTS, 0.0)
        for each in self.slices:
            if each.rank == rank and each.stream == COMPUTE and each.part:
                sums[each.part] += each.end_s - each.start_s
        return sums

    def events(self) -> list[dict[str, Any]]:
        """The slices as events of Chrome's trace format, times in microseconds."""
        formulas = {part: computed_by(f"step_breakdown_s.{part}") for part in STEP_PARTS}
        ranks = sorted({each.rank for each in self.slices})
        return [*_names(ranks, self.pace), *(_event(each, formulas) for each in self.slices)]

    def to_json(self) -> str:
        """The trace as a file that Perfetto and chrome://tracing open."""
        return dumps(
            {
                "traceEvents": self.events(),
                "displayTimeUnit": "ms",
                "otherData": {
                    "title": self.title,
                    "schedule": self.schedule,
                    "rank_that_sets_the_pace": self.pace,
                    "other_ranks_over_mean_stage": self.others,
                    "step_s": self.total_s,
                    "step_breakdown_s": dict(self.parts_s),
                    "wire_s": dict(self.wire_s),
                },
            },
            separators=(",", ":"),
        )


def _names(ranks: Sequence[int], pace: int) -> Iterator[dict[str, Any]]:
    """What the tracks are called."""
    for rank in ranks:
        name = f"pipeline rank {rank}"
        if rank == pace:
            name += " (sets the pace)"
        yield {"ph": "M", "pid": rank, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": rank, "name": "process_sort_index", "args": {"sort_index": rank}}
        for i, stream in enumerate(STREAMS):
            name = stream if stream == COMPUTE else f"{stream} communication"
            about = {"ph": "M", "pid": rank, "tid": i + 1}
            yield about | {"name": "thread_name", "args": {"name": name}}
            yield about | {"name": "thread_sort_index", "args": {"sort_index": i}}


def _event(each: Slice, formulas: Mapping[str, str]) -> dict[str, Any]:
    """A slice as a complete event; both ends are rounded to nanoseconds, so that neighbours keep
    touching."""
    start, end = round(each.start_s * 1e9), round(each.end_s * 1e9)
    args: dict[str, Any] = {"formula": formulas.get(each.part, "scantling.physics.step.pace")}
    if each.micro_batch >= 0:
        args["micro_batch"] = each.micro_batch
    return {
        "ph": "X",
        "pid": each.rank,
        "tid": STREAMS.index(each.stream) + 1,
        "name": each.name,
        "cat": each.part or "pass",
        "ts": start / 1000,
        "dur": (end - start) / 1000,
        "args": args,
    }


def trace(answer: Answer) -> Trace | TunedTrace:
    """The modelled step of an answered design: of its main phase, or of what tunes a model.

    Raises DesignError where no plan holds the model, and for a step of more than MOST_PASSES
    passes.
    """
    if not isinstance(answer, Assessment):
        return trace_tuned(answer)
    return trace_assessed(answer)


def trace_assessed(assessment: Assessment) -> Trace:
    """The modelled step of an assessed design's main phase; see `trace`."""
    if not assessment.phases:
        raise DesignError("design", assessment.verdict, problem="holds no plan: see its limits")
    return trace_of(assessment.chosen, assessment.resolved.name)


def trace_of(chosen: Chosen, title: str = "") -> Trace:
    """The modelled step of one plan; see `trace`."""
    case, step = chosen.case, chosen.step
    parts = {name: float(vars(step)[name]) for name in STEP_PARTS}
    passes = _Passes(case, parts)
    if passes.count > MOST_PASSES:
        raise DesignError(
            "plan",
            problem=f"has {passes.count:,} passes in a step, more than a trace can show",
            allowed=f"at most {MOST_PASSES:,}: more data parallelism, or larger micro-batches",
        )
    target_s = passes.busy_s + parts[StepPart.BUBBLE]
    layout, others = passes.laid_out(target_s)
    slices = _Slices(passes, layout, parts, step, target_s)
    return Trace(
        title=title,
        schedule=passes.schedule,
        slices=tuple(slices.all()),
        pace=passes.pace_rank,
        others=others,
        layout=layout,
        parts_s=parts,
        wire_s={axis: float(step.axes[axis].wire_s) for axis in AXES},
        total_s=float(step.total),
    )


def passes_of(chosen: Chosen) -> Layout:
    """The passes of a plan as its trace has them, in forward passes of the stage that sets the
    pace."""
    parts = {name: float(vars(chosen.step)[name]) for name in STEP_PARTS}
    passes = _Passes(chosen.case, parts)
    layout, _ = passes.laid_out(passes.busy_s + parts[StepPart.BUBBLE])
    unit = passes.seconds("F")
    return replace(
        layout,
        start_s=layout.start_s / unit,
        end_s=layout.end_s / unit,
        makespan_s=layout.makespan_s / unit,
        span_s=layout.span_s / unit,
        busy_s=layout.busy_s / unit,
    )


class _Passes:
    """What the passes of a plan take, and how they are laid out."""

    def __init__(self, case: Cases, parts: Mapping[str, float]) -> None:
        plan = case.plan
        self.case = case
        self.of: Pace = pace(case)
        row = list(SCHEDULES.values())[int(plan.schedule)]
        self.schedule = row.name
        self.split = row.split_backward
        self.mirrored = row.placement == "mirror"
        self.placement = row.placement
        self.pp, self.vpp, self.m = int(plan.pp), int(plan.vpp), int(case.micro_batches)
        self.chunks = row.chunks or self.vpp
        self.count = self.m * self.pp * self.chunks * (3 if self.split else 2)
        self.stretch = float(overall(case))
        self.gathers = traffic.data_parallel(case, *self.of.parameters)
        self.gathers_s = self.stretch * float(micro_gathers_s(case, self.of, self.gathers))
        self.pace_rank = self._pace_rank()
        self.micro = self._of_micro_batch(parts)

    def _pace_rank(self) -> int:
        """The rank of the slowest stage: `step.stage_times` says which end it is."""
        if float(self.of.stages.heads) > 0:
            return self.pp - 1
        first, middle, _ = (float(np.asarray(x)) for x in layers_per_stage(self.case))
        return 0 if first >= middle else min(1, self.pp - 1)

    def _of_micro_batch(self, parts: Mapping[str, float]) -> dict[str, float]:
        """Seconds of a micro-batch on the rank that sets the pace, by part; what does not recur
        with each is left out."""
        took = {name: parts[name] / self.m for name in OF_PASSES}
        took[StepPart.DP] = self.gathers_s
        took[StepPart.HOST] = self.stretch * float(self.of.rounds * self.of.one["host"]) / self.m
        return took

    @property
    def busy_s(self) -> float:
        """Seconds that the rank which sets the pace spends in passes."""
        return self.m * sum(self.micro.values())

    def shares(self, kind: str) -> dict[str, float]:
        """Share of each part of a micro-batch that a kind of pass takes. A forward is a pass of
        three of all but recompute (`step.forward_s`); weight gradients are one of the GEMMs and of
        the head; gathers and transfers belong to both ways alike."""
        forward = dict.fromkeys(OF_PASSES, THIRD)
        forward[StepPart.RECOMPUTE] = 0.0
        forward[StepPart.DP] = forward[StepPart.PP] = 0.5
        if kind == "F":
            return dict(forward)
        if kind == WHOLE:
            return {name: 1.0 - forward[name] for name in OF_PASSES}
        gemm = float(self.of.one["gemm"])
        weights = dict.fromkeys(OF_PASSES, 0.0)
        weights[StepPart.GEMM] = float(self.of.layer.gemm) / gemm if gemm else 0.0
        weights[StepPart.LOGITS] = THIRD
        if kind == "W":
            return weights
        return {name: 1.0 - forward[name] - weights[name] for name in OF_PASSES}

    def laid_out(self, target_s: float) -> tuple[Layout, float]:
        """The passes in time, in seconds of the step, and the pace of the other ranks over a mean
        stage at which they take `target_s`, or the longest that is not longer."""
        mean = float(self.of.stages.mean_s / self.of.stages.slowest_s)
        if self.pp == 1:
            return self._at(1.0), 1.0
        busy_s = self.busy_s
        low, low_s = 0.0, busy_s
        best: Layout | None = None
        high: float | None = None
        high_s = 0.0
        x = 1.0
        for _ in range(TURNS):
            layout = self._at(x * mean)
            length = self.length_s(layout)
            if length <= target_s * (1 + CLOSE):
                low, low_s, best = x, length, layout
                if length >= target_s * (1 - CLOSE):
                    break
            else:
                high, high_s = x, length
            if high is None:
                slope = (low_s - busy_s) / low
                x = low + (target_s - low_s) / slope if slope > 0 else 2 * low
            else:
                x = low + (high - low) * (target_s - low_s) / (high_s - low_s)
        if best is None:
            low, best = 0.0, self._at(0.0)
        return best, low

    def length_s(self, layout: Layout) -> float:
        """Seconds of all passes: from the first start to the last end, or under schedules that
        split the backward, whose optimizer does not wait, the longest span of one rank."""
        return float(layout.span_s.max()) if self.split else layout.makespan_s

    def seconds(self, kind: str) -> float:
        """Of a kind of pass of one micro-batch on the rank that sets the pace."""
        return sum(share * self.micro[part] for part, share in self.shares(kind).items())

    def _at(self, scale: float) -> Layout:
        """The layout where the other ranks take `scale` times as long as the one that sets the
        pace."""
        return lay_out(
            self.schedule,
            self.pp,
            self.vpp,
            self.m,
            self.seconds("F"),
            self.seconds("B"),
            self.seconds("W"),
            part_scale=self._scales(scale),
            weight_saved=float(saved_for_weights(self.case)),
        )

    def _scales(self, scale: float) -> Array:
        """Length of each part of the model: 1 on the rank that sets the pace."""
        parts = np.arange(self.pp * self.chunks)
        if self.mirrored:
            ranks = np.minimum(parts, self.pp - 1 - parts)
            mine = ranks == min(self.pace_rank, self.pp - 1 - self.pace_rank)
        elif self.placement == "vee":
            mine = np.minimum(parts, 2 * self.pp - 1 - parts) == self.pace_rank
        else:
            mine = parts % self.pp == self.pace_rank
        return np.where(mine, 1.0, scale)


class _Slices:
    """The slices of every rank."""

    def __init__(
        self,
        passes: _Passes,
        layout: Layout,
        parts: Mapping[str, float],
        step: Step,
        pipeline_s: float,
    ) -> None:
        self.passes, self.layout, self.parts = passes, layout, parts
        self.pipeline_s = pipeline_s
        self.shares = {kind: passes.shares(kind) for kind in PASS_NAMES}
        m = passes.m
        self.wire_s = {
            axis: float(step.axes[axis].wire_s) / m for axis in AXES if axis != Axis.DP
        } | {Axis.DP: passes.stretch * float(passes.gathers.micro_wire_s)}
        self.wire_at_end_s = float(step.axes[Axis.DP].wire_s) - m * self.wire_s[Axis.DP]

    def all(self) -> Iterator[Slice]:
        """The slices by rank, stream and start."""
        for rank in range(self.passes.pp):
            detailed = rank == self.passes.pace_rank or self.passes.count <= DETAILED_PASSES
            slices = [*self._of_rank(rank, detailed)]
            yield from sorted(
                slices, key=lambda s: (STREAMS.index(s.stream), s.start_s, -s.end_s, s.part)
            )

    def _of_rank(self, rank: int, detailed: bool) -> Iterator[Slice]:
        layout = self.layout
        rows = np.flatnonzero(layout.device == rank)
        columns = (layout.kind[rows], layout.part[rows], layout.micro_batch[rows])
        passes = [(str(kind), int(part), int(batch)) for kind, part, batch in zip(*columns)]
        apart = {(part, batch) for kind, part, batch in passes if kind == "W"}
        free = dict.fromkeys(STREAMS, 0.0)  # when each stream is free again
        # without a barrier each rank's step begins with its own first pass
        first_s = float(layout.start_s[rows].min()) if self.passes.split else 0.0
        now = first_s
        starts, ends = layout.start_s[rows].tolist(), layout.end_s[rows].tolist()
        for (kind, part, number), start, end in zip(passes, starts, ends):
            yield from self._idle(rank, now, start)
            now = end
            if kind == "B" and (part, number) not in apart:
                kind = WHOLE
            name = f"{PASS_NAMES[kind]} {number}"
            yield Slice(rank, COMPUTE, "", name, start, end, number)
            if detailed:
                yield from self._parts(rank, kind, number, start, end, free)
        done = first_s + self.pipeline_s
        yield from self._idle(rank, now, done)
        yield from self._end(rank, done, free)

    def _idle(self, rank: int, start: float, end: float) -> Iterator[Slice]:
        if end - start > 0:
            yield Slice(rank, COMPUTE, StepPart.BUBBLE, "bubble", start, end, -1)

    def _parts(
        self, rank: int, kind: str, number: int, start: float, end: float, free: dict[str, float]
    ) -> Iterator[Slice]:
        """What a pass is made of: parts one after the other, the exposed communication among them,
        and beside them what is on the wire."""
        seconds = {part: self.shares[kind][part] * self.passes.micro[part] for part in OF_PASSES}
        ratio = (end - start) * self.passes.chunks / sum(seconds.values())
        if rank != self.passes.pace_rank and self.passes.pp > 1:
            seconds[StepPart.LOGITS] = 0.0
        whole = sum(seconds.values())
        if whole <= 0:
            return
        scale = (end - start) / whole
        now = start
        for part, took in seconds.items():
            if took <= 0:
                continue
            until = min(now + took * scale, end)
            exposed = f"{part} exposed" if part in AXES else str(part)
            yield Slice(rank, COMPUTE, part, exposed, now, until, number)
            now = until
        for axis in AXES:
            wire = self.wire_s[axis] * self.shares[kind][axis] * ratio / self.passes.chunks
            yield from self._wire(rank, axis, number, end, wire, free)

    def _wire(
        self, rank: int, axis: str, number: int, end: float, wire_s: float, free: dict[str, float]
    ) -> Iterator[Slice]:
        """Time on the wire that ends at a moment, later where the stream was not free in time."""
        if wire_s <= 0:
            return
        start = max(end - wire_s, free[axis], 0.0)
        free[axis] = start + wire_s
        yield Slice(rank, axis, axis, f"{axis} on the wire", start, start + wire_s, number)

    def _end(self, rank: int, now: float, free: dict[str, float]) -> Iterator[Slice]:
        """What follows the last pass."""
        m = self.passes.m
        for part in AT_END:
            took = self.parts[part] - m * self.passes.micro.get(part, 0.0)
            if part == StepPart.DP:
                yield from self._wire(
                    rank, Axis.DP, -1, now + max(took, 0.0), self.wire_at_end_s, free
                )
            if took <= 0:
                continue
            name = f"{part} exposed" if part in AXES else str(part)
            yield Slice(rank, COMPUTE, part, name, now, now + took, -1)
            now += took
