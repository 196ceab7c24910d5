"""The verdict of an assessment in one sentence, and the phrases that several of its lines share."""

from typing import NamedTuple

from ..base.show import days, percent, usd
from ..catalogue.words import Offload, StepPart
from .result import Result, Saving
from .verdicts import VERDICTS, without_lead

# what the overheads of a step are called in a sentence
LOSSES = {
    StepPart.RECOMPUTE: "recomputation",
    StepPart.TP: "exposed tensor-parallel traffic",
    StepPart.CP: "exposed context-parallel traffic",
    StepPart.EP: "exposed expert-parallel traffic",
    StepPart.DP: "exposed data-parallel traffic",
    StepPart.PP: "stage-to-stage sends",
    StepPart.BUBBLE: "the pipeline bubble",
    StepPart.OPTIMIZER: "the optimizer",
    StepPart.HOST: "launch and host time",
    StepPart.STRAGGLER: "waiting for the slowest node",
    StepPart.DATA: "data stalls",
}


PINNED = "fixed plan: "  # begins the line on fields of the plan that a feasible design pays for


class VerdictSentence(NamedTuple):
    """The verdict in words: what is printed first of every design, wherever it is printed."""

    tone: str  # good, warn or bad, for whoever colours it
    name: str  # "Feasible", "2 constraints violated, 8 devices idle": for whoever sets it in bold
    reason: str  # the gravest line of the limits, or that there is none

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.name}: {self.reason}"


def verdict_sentence(figures: Result) -> VerdictSentence:
    """The verdict of a design in one sentence: its name, how many devices stand idle, and why.

    figures : what `design --json` says of the design (`advise.design_json.as_dict`); of it
    `verdict`, `missed`, `limits`, `devices`, `devices_used`, `announced`, and of an impossible
    design `error`, are read. A caller prints `.text`, or `.name` in bold in the colour of `.tone`
    and `.reason` after it.

    >>> figures = {"verdict": "feasible", "limits": [], "devices": 8, "devices_used": 8}
    >>> verdict_sentence(figures).text
    'Feasible: a plan fits, and no stated constraint is violated'
    """
    verdict = VERDICTS[figures["verdict"]]
    limits = figures["limits"]
    if verdict.id == "impossible":
        return VerdictSentence(
            verdict.tone, verdict.name, "; ".join([str(figures["error"]), *limits[:2]])
        )
    idle = figures["devices"] - figures["devices_used"]
    missed = len(figures.get("missed", ()))
    several = verdict.id == "constraint-missed" and missed > 1
    name = f"{missed} constraints violated" if several else verdict.name
    if idle:
        name += f", {idle:,} devices idle"
    if figures.get("announced"):
        name += f", on a chip that is {figures['announced']}"
    if slowed := slowed_by_pins(figures):
        return VerdictSentence("warn", f"{name}, but slower than it need be", slowed)
    saving = figures.get("saving")
    if saving and verdict.met:
        name += f", but {_dearer(saving)} than it need be"
        reasons = [] if verdict.id == "feasible" else [without_lead(line) for line in limits[:1]]
        return VerdictSentence("warn", name, "; ".join([*reasons, cured(saving)]))
    if verdict.id == "feasible" or not limits:
        return VerdictSentence(
            verdict.tone, name, "a plan fits, and no stated constraint is violated"
        )
    return VerdictSentence(verdict.tone, name, without_lead(limits[0]))


def slowed_by_pins(figures: Result) -> str:
    """What a feasible design pays for fields of its plan; empty where it pays nothing."""
    first = next(iter(figures["limits"]), "")
    pays = figures["verdict"] == "feasible" and first.startswith(PINNED)
    return first.removeprefix(PINNED) if pays else ""


def leading(figures: Result) -> int:
    """How many of the limits the sentence of the verdict holds."""
    if figures["verdict"] == "feasible":
        return int(bool(slowed_by_pins(figures)))
    return int(bool(figures["limits"]))


def _dearer(saving: Saving) -> str:
    """By how much a design is dearer, or takes longer, than after a change."""
    saved = saving["saved_usd"]
    if saved is not None and saved > 0:
        return f"{usd(saved)} dearer"
    return f"{percent(saving['share'], 0)} longer"


def cured(saving: Saving) -> str:
    """A change that saves, with the likely days and dollars after it."""
    likely = saving["likely"]
    figures = [days(likely["days"])] if likely["days"] is not None else []
    figures += [usd(likely["cost_usd"])] if likely["cost_usd"] is not None else []
    return f"{saving['change']} → {', '.join(figures)}"


def loss_name(part: str, offload: str = Offload.NONE) -> str:
    """What a part of the step is called in a sentence; under a plan that offloads state, what it is
    there."""
    if part == StepPart.HOST and offload == Offload.OPTIMIZER_PARAMS:
        return "weights and gradients over the host link"
    if part == StepPart.OPTIMIZER and offload != Offload.NONE:
        return "the optimizer's states on the host"
    return LOSSES.get(StepPart(part), part)
