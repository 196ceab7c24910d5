"""What a design comes to, whatever it trains: the assessment of one that trains from the start, or
the answer of the package that plans tuning."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from scantling.base.plugins import FUNCTIONS, entries, function
from scantling.base.records import Known, Lines
from scantling.design.design import Design
from scantling.design.methods import PLANNER, is_posttraining
from scantling.design.resolved import Resolved
from scantling.physics.constants import Constants
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment
from scantling.verdict.limits import unfit, violations
from scantling.verdict.result import Result
from scantling.verdict.verdicts import VERDICTS, without_lead


class Spanned(Protocol):
    """A phase of a step on one side, from start to end of the step's clock. [s]"""

    side: str
    phase: str
    start_s: float
    end_s: float


class Tuned(Protocol):
    """The answer to a design that tunes a trained model."""

    design: Design
    name: str
    method: str
    verdict: str
    limits: Lines
    plan: dict[str, Any] | None
    rollout: Mapping[str, Any] | None
    step_s: Known
    step_parts_s: dict[str, float]
    phases_s: dict[str, float]
    resolved: Resolved  # of its trainer
    core_constants: Constants | None  # of its trainer's plan; None where none holds the model

    @property
    def constants(self) -> dict[str, float]:
        """The constants of tuning alone, by name."""

    @property
    def spans(self) -> Sequence[Spanned]:
        """The phases of a policy's step as they run; none of a fine-tune."""

    def as_dict(self) -> Result:
        """The JSON of `design --json`."""


Answer = Assessment | Tuned


def answered(design: Design, *, like: Answer | None = None, space: str = "default") -> Answer:
    """The answer to a design. `like`: one whose search may be taken again; `space`: the plans of
    pre-training that are searched. Raises DesignError for a wrong design."""
    if is_posttraining(design) and PLANNER in entries(FUNCTIONS):
        tuned: Tuned = function(PLANNER)(design)
        return tuned
    return assess(design, like=like if isinstance(like, Assessment) else None, space=space)


def reasons(answer: Answer) -> list[str]:
    """Why the verdict is what it is."""
    if not isinstance(answer, Assessment):
        return [*map(without_lead, answer.limits)]
    found = [*unfit(answer), *violations(answer)] or answer.refusal
    return [*map(without_lead, found or [VERDICTS[answer.verdict].means])]
