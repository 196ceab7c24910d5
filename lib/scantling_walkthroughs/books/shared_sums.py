"""What the walkthroughs' books share: sums that more than one of them needs, and what a book reads
off the assessment of its design."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

from scantling import Assessment, assess
from scantling.catalogue.hardware import Accelerator
from scantling.catalogue.models.shape import Model
from scantling.design.cluster import Cluster
from scantling.design.design import Design
from scantling.physics.communication import Traffic
from scantling.physics.pipeline import bubble_interleaved

Value = TypeVar("Value")


class DesignFacts(ABC):
    """What a book reads off `result`, the assessment of its design."""

    @property
    @abstractmethod
    def design(self) -> Design:
        """The design that the book is about."""

    @cached_property
    def result(self) -> Assessment:
        return assess(self.design)

    @cached_property
    def cluster(self) -> Cluster:
        return self.result.resolved.cluster

    @cached_property
    def chip(self) -> Accelerator:
        return self.cluster.accelerator

    @cached_property
    def model(self) -> Model:
        return self.result.resolved.model

    @cached_property
    def up(self) -> float:
        """Rate of a device's link inside the fast domain. [bytes/s]"""
        return self.cluster.scale_up_bytes_per_s

    @cached_property
    def out(self) -> float:
        """Rate of a device's port into the network. [bytes/s]"""
        return self.cluster.scale_out_bytes_per_s

    @cached_property
    def half(self) -> float:
        """Half of what a program can have of one device. [bytes]"""
        return self.chip.hbm_usable_bytes / 2


def swept(design: Design, field: str, *values: Value) -> dict[Value, Assessment]:
    """{value: assessment} of a design with one field at each of the values."""
    return {value: assess(design.change({field: value})) for value in values}


def fastest(sweep: Mapping[Value, Assessment]) -> Value:
    """Of {value: assessment}, the value with the shortest step of those that fit."""
    fitting = [value for value, assessment in sweep.items() if assessment.chosen.fits]
    return min(fitting, key=lambda value: sweep[value].step_s)


def axis_traffic(assessment: Assessment, axis: str) -> Traffic:
    """What an axis of the plan sends, and how long it takes."""
    return next(row for row in assessment.as_dict()["communication"] if row["axis"] == axis)


def layers_s(assessment: Assessment) -> float:
    """Time of a step that the layers compute. [s]"""
    return sum(assessment.step_breakdown_s[part] for part in ("gemm", "attention", "elementwise"))


def tp_traffic_bytes(activation: float, tp: int) -> float:
    """Sent by a device for tensor parallelism, per layer and micro-batch: 4 gathers or scatters of
    the activation forward and 4 backward, or 2 all-reduces each way. [bytes]"""
    return 8 * activation * (tp - 1) / tp


def idle_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Idle share of an (interleaved) 1F1B step: `i / (m + i)`, i the idle micro-batches."""
    idle = float(bubble_interleaved(stages, chunks, 1 / 3, 1 / 3, 1 / 3))
    return idle / (micro_batches + idle)


def run_days(assessment: Assessment) -> float:
    """Time of the whole run. [days] Raises ValueError where no plan runs."""
    if assessment.days is None:
        raise ValueError("no plan runs")
    return assessment.days


def run_usd(assessment: Assessment) -> float:
    """Cost of the whole run. [USD] Raises ValueError where it has no price."""
    if assessment.cost_usd is None:
        raise ValueError("the run has no price")
    return assessment.cost_usd
