"""The nearest plan that a framework can express, and what it costs.

It keeps the fields that the framework can express; more of them move where that is clearly faster
or where nothing fits otherwise. It is assessed like any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from scantling.base.errors import DesignError
from scantling.catalogue.models.shape import Model
from scantling.catalogue.stacks import software_switches
from scantling.catalogue.words import RECOMPUTES, Recompute, Sharding
from scantling.design.design import Design
from scantling.plans.enumerate import divisors
from scantling.plans.plan_names import KEYS, PlanRow
from scantling.plans.space import DEFAULT, Space
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

from .launch_plan import Gap, LaunchPlan, Pins
from .launched import launch_plan
from .misfits import Inexpressible, hard_gaps, in_words
from .writable import refusal, senseless

# fields that a design pins: what follows from devices, batch, layout and job is left out
PINNED = tuple(key for key in KEYS if key not in ("dp", "grad_accum", "layer_split", "precision"))
# what of the search's own choices a nearest plan keeps: less and less
STEADY = (PINNED, ("tp", "cp", "pp", "ep", "etp", "sharding", "cp_type"), ("tp", "cp"), ())
FORMAT_BITS = {
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "fp8-row": 8,
    "fp8-current": 8,
    "fp8-block": 8,
    "mxfp8": 8,
    "int8": 8,
    "mxfp4": 4,
    "nvfp4": 4,
}
SEARCHED = ("tp", "cp", "pp", "vpp", "ep", "etp", "sharding", "recompute", "schedule", "offload")
# what a design says of a job beside its phase
JOB_FIELDS = (
    "sync",
    "from_checkpoint",
    "evaluation_hours",
    "effort",
    "routing",
    "expert_skew",
    "capacity_factor",
    "node_limit",
    "document_tokens",
)
# what a design says of a plan beside its axes and switches; the last two name what is recomputed
APART = ("graph_modules", "keep_16bit", "activation_offload", "remat", "compile_memory_budget")
OF_RECOMPUTE = APART[-2:]
TIGHT = 0.9  # share of the memory above which another plan is looked for
NEAR = 1.03  # times the fastest step that a nearer plan may take
FASTER = 0.95  # times the nearest plan's step that is worth the design's own pins
MEMORY = "it does not fit in memory"


class Trial(NamedTuple):
    """A design that was assessed: the assessment where it can be launched, else why not."""

    assessment: Assessment | None
    why: str


class Change(NamedTuple):
    """What a framework asks of a design: fields of the job, and the plans that it can express."""

    job: dict[str, Any]
    space: Space


def launched_as(wanted: LaunchPlan, assessment: Assessment) -> LaunchPlan:
    """The launch plan of another assessment of the phase, under the name of the one that was asked
    for and with its plan to compare."""
    launch = launch_plan(assessment, wanted.framework, wanted.on, 0)
    return replace(
        launch,
        slug=wanted.slug,
        assessed=wanted.plan,
        assessed_step_s=wanted.step_s,
        later=wanted.later,
        run_tokens=wanted.run_tokens,
    )


def cost_of(launch: LaunchPlan, wanted: LaunchPlan) -> str:
    """What a kit's model and plan cost against those that were asked for: parameters where they
    differ, step, memory."""
    parameters = ""
    if launch.parameters != wanted.parameters:
        parameters = f"{launch.parameters:,.0f} parameters against {wanted.parameters:,.0f}, "
    missed = "".join(f"; {text}" for text in newly_missed(launch.assessment, wanted))
    return (
        f"{parameters}{launch.step_s / wanted.step_s - 1:+.1%} step time, "
        f"{launch.memory.total / 1e9:.1f} GB a device against {wanted.memory.total / 1e9:.1f} "
        f"GB{missed}"
    )


def rebuilt(wanted: LaunchPlan, model: Model, model_gaps: list[Gap]) -> Assessment:
    """The assessment of a phase with the model that the framework builds in place of the design's,
    under the same plan where it fits, else under the design's own pins.

    Raises Inexpressible where that does not meet what the design asks for.
    """
    anyway = bool(senseless(wanted.assessment))
    pins = coherent(pins_of(wanted.plan.as_dict()), wanted)
    same = _assessed(single(wanted, pins, {}), model=model, anyway=anyway)
    if same.assessment:
        return same.assessment
    free = _assessed(single(wanted, dict(wanted.phase.pins), {}), model=model, anyway=anyway)
    if free.assessment:
        return free.assessment
    raise Inexpressible(wanted.to, model_gaps, free.why)


def faster(wanted: LaunchPlan, hard: list[Gap], launch: LaunchPlan) -> tuple[PlanRow, float] | None:
    """(plan, step_s) of the search among all that the framework can express, where that is at least
    5 % faster than the nearest plan; else None."""
    if not wanted.phase.pins:
        return None
    trial = _try(wanted, {}, change_of(wanted, hard)).assessment
    if trial is None or trial.plan is None or trial.step_s is None:
        return None
    if trial.step_s >= FASTER * launch.step_s:
        return None
    return trial.plan, trial.step_s


def change_of(wanted: LaunchPlan, hard: list[Gap]) -> Change:
    """What the framework asks of the design, whose gaps are these."""
    framework = wanted.framework
    domain = framework.domain
    outside = {gap.field for gap in hard}
    job_fields = ("precision", "optimizer")
    job: Pins = {name: domain[name].values[0] for name in job_fields if name in outside}
    if "precision" in outside:
        job["precision"] = nearest_format(wanted.phase.precision, domain["precision"].values)
    limits = {name: of.values for name, of in domain.items() if name in SEARCHED}
    if "recompute" in outside:
        every = limits.get("recompute", RECOMPUTES)
        limits["recompute"] = tuple(value for value in every if value != wanted.plan.recompute)
    if "offload" in limits:
        limits["offload"] = ("none",) if "none" in limits["offload"] else ()
    if framework.whole_key_heads:
        limits["tp"] = tuple(divisors(wanted.model.kv_heads).tolist())
    axes: dict[str, Any] = {**limits, **framework.space}
    return Change(job, replace(DEFAULT, **axes))


def nearest_format(precision: str, values: tuple[Any, ...]) -> str:
    """The first format of as many bits that a framework has words for, else its first."""
    alike = [value for value in values if FORMAT_BITS[value] == FORMAT_BITS[precision]]
    return str(alike[0] if alike else values[0])


def nearest(wanted: LaunchPlan, hard: list[Gap]) -> Assessment:
    """The assessment of a plan that the framework can express: of those that keep less and less,
    the first within 3 % of the fastest. What the design itself states stays wherever the framework
    has words for it and something fits so; what the search chose may move.

    Raises Inexpressible where none fits.
    """
    reasons: list[str] = []
    assessments: list[Assessment] = []
    for stated in (set(wanted.phase.pins), set[str]()):
        for steady in STEADY:
            trials = _trials(wanted, hard, steady_pins(wanted, hard, stated | set(steady)))
            fits = [trial.assessment for trial in trials if trial.assessment]
            assessments += sorted(
                fits, key=lambda a: (len(newly_missed(a, wanted)), _tight(a, wanted), _step_s(a))
            )[:1]
            reasons += [trial.why for trial in trials if trial.why]
        if assessments:
            break
    if not assessments:  # what the search likes best has too few micro-batches for its stages
        trials = _trials(wanted, hard, {"pp": 1})
        assessments = [trial.assessment for trial in trials if trial.assessment]
    if assessments:
        return _nearer(assessments, wanted)
    common = max(reasons, key=reasons.count, default="none fits")
    raise Inexpressible(wanted.to, hard, MEMORY if MEMORY in reasons else common)


def newly_missed(assessment: Assessment, wanted: LaunchPlan) -> list[str]:
    """Stated limits, in words, that a plan misses and the wanted one keeps."""
    kept = {missed.field for missed in wanted.assessment.missed}
    return [missed.text for missed in assessment.missed if missed.field not in kept]


def _nearer(assessments: list[Assessment], wanted: LaunchPlan) -> Assessment:
    """The nearest of assessments, which keep less and less, unless another is clearly faster; one
    that misses a limit where no other keeps it."""
    least = min(len(newly_missed(a, wanted)) for a in assessments)
    assessments = [a for a in assessments if len(newly_missed(a, wanted)) == least]
    roomy = [a for a in assessments if not _tight(a, wanted)] or assessments
    fastest = min(_step_s(a) for a in roomy)
    return next(a for a in roomy if _step_s(a) <= NEAR * fastest)


def steady_pins(wanted: LaunchPlan, hard: list[Gap], fields: set[str]) -> Pins:
    """Pins of those fields of the wanted plan that the framework has words for."""
    framework = wanted.framework
    outside = {gap.field for gap in hard}
    plan = wanted.plan.as_dict()
    pins = {
        name: plan[name]
        for name in PINNED
        if name in fields and name not in outside and _has_words(wanted, name, plan[name])
    }
    return framework.adjust(coherent(pins, wanted), wanted, outside)


def _has_words(wanted: LaunchPlan, name: str, value: Any) -> bool:
    domain = wanted.framework.domain.get(name)
    return value is not None and (domain is None or value in domain.values)


def _trials(wanted: LaunchPlan, hard: list[Gap], pins: Pins) -> list[Trial]:
    """Trials of these pins: with the search's own sharding, else with each that the framework
    has."""
    change = change_of(wanted, hard)
    trial = _try(wanted, pins, change)
    if trial.assessment and not _tight(trial.assessment, wanted):
        return [trial]
    domain = wanted.framework.domain.get("sharding")
    if domain is None or "sharding" in pins:
        return [trial]
    return [trial, *(_try(wanted, pins | {"sharding": s}, change) for s in domain.values)]


def _step_s(assessment: Assessment) -> float:
    return assessment.phases[0].step_s


def _tight(assessment: Assessment, wanted: LaunchPlan) -> bool:
    """Whether a plan fills more of the memory than TIGHT, and than the design's own does."""
    memory = assessment.phases[0].memory
    return bool(memory.total / memory.capacity > max(TIGHT, wanted.memory.fill))


def _try(wanted: LaunchPlan, pins: Pins, change: Change) -> Trial:
    """The trial of a plan of these pins that fits and can be expressed."""
    trial = _assessed(
        single(wanted, pins, change.job),
        space=change.space,
        model=wanted.model,
        anyway=bool(senseless(wanted.assessment)),
    )
    if trial.assessment is None:
        return trial
    gaps = hard_gaps(launched_as(wanted, trial.assessment))
    return Trial(None, in_words(gaps)) if gaps else trial


def _assessed(
    design: Design, *, model: Model, space: Space | None = None, anyway: bool = False
) -> Trial:
    """The trial of a design that fits, and that makes sense unless `anyway`."""
    try:
        assessment = assess(design, model=model, space=space)
    except DesignError as error:
        return Trial(None, str(error))
    if not assessment.fits:
        return Trial(None, MEMORY)
    why = refusal(assessment, anyway)
    return Trial(None, why) if why else Trial(assessment, "")


def pins_of(plan: Mapping[str, Any]) -> Pins:
    """All fields of a plan that a design can pin."""
    return {name: plan[name] for name in PINNED if plan[name] is not None}


def coherent(pins: Pins, wanted: LaunchPlan) -> Pins:
    """Pins without those that only make sense with a field that is free now."""
    split = {name for name in ("tp", "cp", "pp") if pins.get(name, 1) not in (None, 1)}
    staged = "pp" in split and wanted.plan.vpp != 1
    experts = pins.get("ep") is not None and wanted.model.is_moe
    repeats = bool(pins.get("recompute_layers")) and pins.get("recompute", "none") != "none"
    chunks = pins.get("pp", 0) * pins.get("vpp", 1)
    stated_modules = "recompute_modules" in wanted.phase.pins
    sensible = {
        "shard_group": pins.get("sharding") == Sharding.HSDP,
        "sp": "tp" in split,
        "recompute_layers": repeats,
        "recompute_modules": pins.get("recompute") == Recompute.SELECTIVE and stated_modules,
        "vpp": staged,
        "schedule": staged,
        "etp": experts,
        "ep": experts,
        "cp_type": "cp" in split,
        "layout": chunks == len(pins.get("layout", ())),
    }
    return {name: value for name, value in pins.items() if sensible.get(name, True)}


@cache
def software_fields() -> frozenset[str]:
    """Fields of a plan that switch software on or off, which no nearest plan moves."""
    return frozenset(switch.field.removeprefix("plan.") for switch in software_switches().values())


def single(wanted: LaunchPlan, pins: Pins, job: Mapping[str, Any]) -> Design:
    """The design of one phase alone, with these pins; constraints on the whole run only where there
    is one phase."""
    design = wanted.assessment.design
    data = dict(design.data())
    stated_job = _job_of_phase(wanted, data["job"])
    stated_plan = data.get("plan", {}) | stated_job.get("plan", {})
    software = {name: stated_plan[name] for name in stated_plan if name in software_fields()}
    same = pins.get("recompute") == wanted.plan.recompute
    lacked = {gap.field for gap in hard_gaps(wanted)}
    apart = {
        name: stated_plan[name]
        for name in APART
        if name in stated_plan and name not in lacked and (same or name not in OF_RECOMPUTE)
    }
    data |= {
        "reliability": {"recovery": "in-place"} | data.get("reliability", {}),  # no kit shrinks
        "job": _phase_fields(wanted)
        | {name: stated_job[name] for name in JOB_FIELDS if name in stated_job}
        | dict(job),
        "plan": software | apart | pins,
    }
    if len(wanted.assessment.phases) > 1:
        data.pop("constraints", None)
    return type(design).from_data(data, design.folder)


def _job_of_phase(wanted: LaunchPlan, job: Mapping[str, Any]) -> dict[str, Any]:
    """What the design states of the job of a phase."""
    if "phases" not in job:
        return dict(job)
    phases = [chosen.phase for chosen in wanted.assessment.phases]
    return {**job, **job["phases"][phases.index(wanted.phase)]}


def _phase_fields(wanted: LaunchPlan) -> dict[str, Any]:
    """Size, tokens and formats of a phase."""
    phase = wanted.phase
    fields = {
        "seq_len": phase.seq_len,
        "global_batch": phase.global_batch,
        "tokens": phase.tokens,
        "precision": phase.precision,
        "optimizer": phase.optimizer,
    }
    return {name: value for name, value in fields.items() if value is not None}
