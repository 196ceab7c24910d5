"""A design with nothing left to look up, as the models take it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from ..base.columns import Column
from ..base.records import Assumed, record
from ..catalogue.models.shape import Model, Params
from ..catalogue.stacks import stack
from .cluster import Cluster
from .corpus import Corpus
from .design import Design
from .pins import Pins
from .schema import Checkpoint, Constraints, Prices, Reliability

MAX_OOM = 0.05  # chance of going out of memory that a search allows: one run in twenty
Offered = tuple[str | float, ...]  # values of an axis of a plan


class Calibration(Protocol):
    """What was measured on the devices of a design (`physics.calibration_file.Override`)."""

    @property
    def offsets(self) -> Mapping[str, Any]:
        """Logarithms of factors on the priors, by level."""

    def applied(self, case: Any, constants: Any, /) -> Any:
        """A case with its own constants, as far as they hold for it."""

    def spread(self, usual: float, active: float, /) -> float:
        """Spread of the memory estimate of a model with so many active parameters."""

    def narrowed(self, low: Any, high: Any, case: Any, /) -> tuple[Column, Column]:
        """Both ends of the band of a case, as factors."""

    def as_json(self) -> dict[str, Any]:
        """What it says, as JSON."""


@record
class Phase:
    """One stretch of the run."""

    tokens: float | None  # None where the design names none
    seq_len: int  # tokens
    global_batch: int  # sequences of a step
    precision: str
    optimizer: str
    pins: Pins  # that hold in it
    name: str = ""
    evaluation_hours: float = 0.0  # at its end
    from_checkpoint: bool = False  # weights that somebody trained before
    # activations that wait in host memory: of so many layers, by module (none named: all kept)
    offloaded_layers: float = 0.0
    offloaded_modules: tuple[str, ...] = ()
    remat: str = ""  # MaxText's policy, where the design names one
    # of what a compiler would keep of the activations, where the design bounds it
    memory_budget: float | None = None
    graph_modules: tuple[str, ...] = ()  # what graphs capture, where the design names it
    # first and last layers in 16 bit beside others in 8 or 4 bit, where the design names them
    kept_16bit: tuple[int, int] | None = None
    # switch of software.csv -> what the design says
    software: Mapping[str, float] = field(default_factory=dict)


@record
class Resolved:
    """A design with nothing left to look up; `assumed` lists every input that was not given, with
    the rule that chose it."""

    design: Design
    name: str
    model: Model
    params: Params
    cluster: Cluster
    phases: tuple[Phase, ...]
    constraints: Constraints
    stack: str | None
    reliability: Reliability
    checkpoint: Checkpoint
    prices: Prices
    measured: Mapping[str, float]  # field of `measured` -> its value
    assumed: tuple[Assumed, ...]
    corpus: Corpus
    calibration: Calibration | None = None  # where the design names a file
    # axis of a plan -> values of the framework that is to run it
    kit: Mapping[str, Offered] = field(default_factory=dict)
    # constant -> value in the place of the case's, those of the memory model under `memory.`
    constants: Mapping[str, float] = field(default_factory=dict)

    @property
    def max_oom_probability(self) -> float:
        """Chance of going out of memory that the search allows a plan."""
        stated = self.constraints.max_oom_probability
        return MAX_OOM if stated is None else stated

    @property
    def offers(self) -> dict[str, Offered]:
        """Axis of a plan -> the values that the named stack, and the framework of a kit, have; what
        is not there is open. Of an axis that both state the values of both, else the kit's."""
        offers = dict(stack(self.stack).offers) if self.stack else {}
        for axis, values in self.kit.items():
            both = tuple(value for value in offers.get(axis, values) if value in values)
            offers[axis] = both or tuple(values)
        return offers

    @property
    def main(self) -> int:
        """Index of the main phase."""
        return main_phase(self.phases)

    @property
    def main_phase(self) -> Phase:
        """The phase that most tokens go through."""
        return self.phases[self.main]

    @property
    def job_path(self) -> str:
        """Dotted path of the fields of the main phase: job, or job.phases.N."""
        return f"job.phases.{self.main}" if self.design.job.phases else "job"


def main_phase(phases: tuple[Phase, ...]) -> int:
    """Index of the phase that most tokens go through, the first of equals."""
    return max(range(len(phases)), key=lambda i: phases[i].tokens or 0)
