"""What is said of a post-training design: a frozen record, and its JSON."""

from typing import Any, TypedDict

from scantling.base.json import clean
from scantling.base.records import Assumed, Known, Lines, record
from scantling.design.design import Design
from scantling.design.resolved import Resolved
from scantling.physics.constants import Constants as CoreConstants
from scantling.verdict.result import Result

from .constants import constants

REFUSED = "Hardware constraints insufficient for model parameters"
INSIDE = (
    "fixes",
    "resolved",
    "core_constants",
    "computed_step_s",
)  # of an answer, that are no part of its JSON
ENGINE, TRAINER = "rollout", "trainer"  # sides of a policy step


class EngineMemory(TypedDict):
    """Bytes on a device of the engine: weights, keys and values of the samples that run at their
    mean length, the part that the engine may fill, and all that a program can have."""

    weights: float
    keys_values: float
    engine: float
    capacity: float


class RolloutRow(TypedDict):
    """The plan of a policy's rollout, and what it draws."""

    engine: str
    colocated: bool
    train_devices: int
    devices: int
    tp: int
    dp: int  # replicas
    lag: int  # steps by which samples may be old
    weight_sync: str
    kv_fraction: float
    running: int  # samples at once on a replica
    states_leave_the_device: bool
    memory_bytes: EngineMemory
    prefill_s: float
    decode_s: float
    tail_share: float  # of the generation with fewer than a tenth of the samples running
    prompts: int
    samples: int
    mean_response: float  # tokens
    max_response: float  # tokens
    updates: int


@record
class Span:
    """A phase of a policy step on one side, from start to end of the step's clock. [s]"""

    side: str
    phase: str
    start_s: float
    end_s: float


@record
class Varied:
    """The step under one change of what the design says."""

    change: str
    step_s: float
    share: float  # longer than the design's, of it


@record
class Other:
    """Another layout or plan, and why it was not taken."""

    what: str
    step_s: float
    why: str
    cost: str


@record
class Outcome:
    """What a design comes to; None where it has no plan, or no price, or no end."""

    verdict: str
    devices: int
    step_s: Known
    days: Known
    days_low: Known
    days_high: Known
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known

    @property
    def likely(self) -> dict[str, Known]:
        """Days and dollars with their bands, as `likely` of `design --json` has them."""
        return {
            "days": self.days,
            "days_low": self.days_low,
            "days_high": self.days_high,
            "cost_usd": self.cost_usd,
            "cost_usd_low": self.cost_usd_low,
            "cost_usd_high": self.cost_usd_high,
        }


@record
class Fix(Outcome):
    """A change of the design with the fields that it sets, and what it comes to."""

    change: str
    set: dict[str, Any]
    missed: Lines

    def row(self) -> dict[str, Any]:
        """The change as a row of `nearest_fixes`."""
        return {
            "change": self.change,
            "set": self.set,
            "verdict": self.verdict,
            "missed": list(self.missed),
            "devices": self.devices,
            "step_s": self.step_s,
            "days": self.days,
            "cost_usd": self.cost_usd,
            "likely": self.likely,
        }


@record
class Posttrained(Outcome):
    """The answer to a post-training design."""

    design: Design
    name: str
    method: str
    limits: Lines
    params: float
    trained_params: float
    plan: dict[str, Any] | None
    plan_words: str
    step_s_low: Known
    step_s_high: Known
    computed_step_s: Known  # where it is not measured, step_s
    step_parts_s: dict[str, float]
    phases_s: dict[str, float]
    rollout: RolloutRow | None
    tokens_per_s_per_device: Known
    memory_bytes: dict[str, float]
    oom_probability: Known
    steps: Known
    goodput: Known
    mtbf_s: Known
    checkpoint_interval_s: Known
    checkpoint_bytes: Known
    checkpoint_overhead: Known
    spares: Known  # nodes
    legal_plans: int
    fitting_plans: int
    why: Lines
    others: tuple[Other, ...]  # what to avoid
    sensitivity: tuple[Varied, ...]
    asks: Lines
    assumed: tuple[Assumed, ...]
    no_effect: Lines  # a stated field each
    resolved: Resolved  # of the trainer
    core_constants: CoreConstants | None  # of the trainer's plan; None where none holds the model
    fixes: tuple[Fix, ...] = ()  # that are assessed

    @property
    def constants(self) -> dict[str, float]:
        """The constants of tuning, by name."""
        return dict(vars(constants()))

    @property
    def overlaps(self) -> bool:
        """Whether generation runs beside the training."""
        return (
            self.rollout is not None and self.rollout["lag"] > 0 and not self.rollout["colocated"]
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """The phases of a policy step as they run, side by side or one after the other; none of a
        fine-tune. New weights go out at the end, to both sides at once; whoever is ready before
        waits."""
        if self.rollout is None:
            return ()
        times = self.phases_s
        made, sync = times["rollout_s"], times["weight_sync_s"]
        clock = 0.0 if self.overlaps else made
        out = [Span(side=ENGINE, phase="rollout_s", start_s=0.0, end_s=made)]
        for phase in ("logprob_s", "train_s", "other_s"):
            ends = clock + times[phase]
            out.append(Span(side=TRAINER, phase=phase, start_s=clock, end_s=ends))
            clock = ends
        ready = max(clock, made)
        out += [
            Span(side=side, phase="weight_sync_s", start_s=ready, end_s=ready + sync)
            for side in (TRAINER, ENGINE)
        ]
        return tuple(out)

    def as_dict(self) -> Result:
        """The JSON of `design --json`: the keys of a pre-training design that this one has too, and
        its own."""
        rows: Result = clean(
            {
                **{name: value for name, value in vars(self).items() if name not in INSIDE},
                "design": self.design.data(),
                "devices_used": self.devices,
                "error": None if self.plan else REFUSED,
                "avoid": [
                    {"what": one.what, "why": one.why, "cost": one.cost} for one in self.others
                ],
                "nearest_fixes": [fix.row() for fix in self.fixes],
                "others": [vars(one) for one in self.others],
                "sensitivity": [vars(one) for one in self.sensitivity],
                "likely": self.likely,
            }
        )
        return rows
