"""The modelled step of a design that tunes a trained model, in time: of a policy the phases of
trainer and engine on one clock, of a fine-tune the parts of its step one after the other."""

from collections.abc import Iterator
from json import dumps
from typing import Any, NamedTuple

from scantling.base.errors import DesignError
from scantling.base.records import record

from .answers import Tuned

TRAINER = "trainer"
FORMULAS = {True: "scantling_posttrain.policy.phases", False: "scantling_posttrain.tuning.spent"}


class PhaseSlice(NamedTuple):
    """Something that one side does from one moment to another."""

    side: str
    name: str
    start_s: float
    end_s: float


@record
class TunedTrace:
    """One modelled step: the slices of both sides in the order of their starts, and how long it
    takes."""

    title: str
    method: str
    policy: bool
    slices: tuple[PhaseSlice, ...]
    total_s: float

    def to_json(self) -> str:
        """The trace as a file that Perfetto and chrome://tracing open."""
        about = {"title": self.title, "method": self.method, "step_s": self.total_s}
        return dumps(
            {"traceEvents": list(self.events()), "displayTimeUnit": "ms", "otherData": about},
            separators=(",", ":"),
        )

    def events(self) -> Iterator[dict[str, Any]]:
        """The slices as events of Chrome's trace format, a process a side, times in
        microseconds."""
        sides = list(dict.fromkeys(each.side for each in self.slices))
        for pid, side in enumerate(sides):
            yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": side}}
        for each in self.slices:
            start, end = round(each.start_s * 1e9), round(each.end_s * 1e9)
            yield {
                "ph": "X",
                "pid": sides.index(each.side),
                "tid": 1,
                "name": each.name,
                "cat": each.side,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": {"formula": FORMULAS[self.policy]},
            }


def trace_tuned(answer: Tuned) -> TunedTrace:
    """The modelled step of an answered design. Raises DesignError where no plan holds the model."""
    if answer.plan is None or answer.step_s is None:
        raise DesignError("design", answer.verdict, problem="holds no plan: see its limits")
    policy = answer.rollout is not None
    return TunedTrace(
        title=answer.name,
        method=answer.method,
        policy=policy,
        slices=tuple(_of_policy(answer) if policy else _of_fine_tune(answer)),
        total_s=answer.step_s,
    )


def _of_policy(answer: Tuned) -> Iterator[PhaseSlice]:
    for one in answer.spans:
        yield PhaseSlice(one.side, _words(one.phase), one.start_s, one.end_s)


def _of_fine_tune(answer: Tuned) -> Iterator[PhaseSlice]:
    now = 0.0
    for part, took in answer.step_parts_s.items():
        if took > 0:
            yield PhaseSlice(TRAINER, _words(part), now, now + took)
            now += took


def _words(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ")
