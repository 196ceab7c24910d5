"""From a design to the records the models work on: catalogue rows looked up, and every gap filled
by a stated rule."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from json import dumps, loads
from typing import ParamSpec, TypeVar

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Assumed
from ..base.show import named_size
from ..catalogue.families import family
from ..catalogue.hardware import Accelerator
from ..catalogue.load import of_rows
from ..catalogue.models.entries import build_model
from ..catalogue.models.shape import Model, Params, flops_per_token, parameters
from ..catalogue.stacks import canonical, named_stack, stack
from .cluster import Cluster
from .cluster_rules import build_cluster
from .corpus import build_corpus
from .design import Design
from .methods import refuse_posttraining
from .phases import Machine, build_phases
from .refusals import unknown_names
from .resolved import MAX_OOM, Phase, Resolved, main_phase
from .schema import CREDIBLE_MFU, Constraints, ModelSpec, StackSpec
from .sync import build_sync
from .unsettled import Unsettled

Built = TypeVar("Built")
Arguments = ParamSpec("Arguments")


def resolve(design: Design, framework: str | None = None) -> Resolved:
    """`design` with nothing left to look up: catalogue rows found, defaults applied and listed in
    `assumed`. `framework` is the stack of a design that names none. Raises DesignError for an
    unknown id (with the other unknown ids) or an impossible combination and for a method that is
    no pre-training, Unsettled for words that nobody has settled."""
    if design.unsettled:
        raise Unsettled(design.title, design.unsettled)
    refuse_posttraining(design)
    try:
        return _resolved(design, framework)
    except DesignError as error:
        error.with_others(unknown_names(design.data()))
        raise


def _resolved(design: Design, framework: str | None) -> Resolved:
    cluster, of_cluster = _cluster(dumps(design.cluster.stated(), sort_keys=True))
    model, params, of_model = _model(design)
    assumed = [*of_model, *of_cluster]
    if cluster.sites > 1:
        sync, of_sync = build_sync(design.job.sync)
        cluster = replace(cluster, sync=sync)
        assumed += of_sync
    software, of_software = _software(design.stack, framework)
    modern = family(cluster.accelerator.family).modern
    machine = Machine(model, params, cluster, stack(canonical(software, modern)))
    phases, of_phases = build_phases(design, machine)
    corpus, of_corpus = build_corpus(design.job.corpus, _tokens(phases), cluster)
    assumed += of_software + of_phases + of_corpus + _unpublished(cluster.accelerator)
    measured = {} if design.measured_at else design.measured.stated()
    _not_beyond_peak(measured, model, phases[main_phase(phases)], cluster)
    assumed += _risk(design.constraints)
    if design.reliability.preset is not None:
        catalogue.failure_preset(design.reliability.preset)
    return Resolved(
        design=design,
        name=_title(design, model, params),
        model=model,
        params=params,
        cluster=cluster,
        phases=phases,
        constraints=design.constraints,
        stack=software,
        reliability=design.reliability,
        checkpoint=design.checkpoint,
        prices=design.prices,
        measured=measured,
        assumed=tuple(assumed),
        corpus=corpus,
    )


def within(
    section: str,
    build: Callable[Arguments, Built],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Built:
    """What `build` makes; its errors name the section."""
    try:
        return build(*arguments, **named)
    except DesignError as error:
        raise error if error.field.startswith(section) else error.at(section) from None


@of_rows
@lru_cache(maxsize=256)
def _cluster(spec: str) -> tuple[Cluster, tuple[Assumed, ...]]:
    """The cluster of a section that is spelt in JSON."""
    return within("cluster", build_cluster, loads(spec))


def _model(design: Design) -> tuple[Model, Params, tuple[Assumed, ...]]:
    spec = design.model
    if isinstance(spec, str):
        return _built_model(dumps(spec), str(design.folder), 0.0)
    changed = 0.0
    if spec.hf_config is not None:
        with suppress(OSError, ValueError):  # whoever reads it says what is wrong with it
            changed = (design.folder / spec.hf_config).stat().st_mtime
    return _built_model(dumps(spec.stated(), sort_keys=True), str(design.folder), changed)


@of_rows
@lru_cache(maxsize=256)
def _built_model(
    spec: str, folder: str, changed: float
) -> tuple[Model, Params, tuple[Assumed, ...]]:
    """The model of a section that is spelt in JSON, its parameters, and what was assumed; `changed`
    is when the file that it names was written."""
    model, assumed = within("model", build_model, loads(spec), folder)
    return model, parameters(model), tuple(assumed)


def _software(
    spec: str | StackSpec | None, framework: str | None
) -> tuple[str | None, list[Assumed]]:
    """The stack that a design names, and what stands in where it names none or nobody has published
    a run of it."""
    if spec is None and framework:
        why = "no software named: the only framework with a launch kit for these chips"
        return framework, [Assumed("stack", framework, why)]
    if spec is None:
        why = "no software named: constants pooled over all stacks, and a wider band"
        return None, [Assumed("stack", None, why)]
    name = spec if isinstance(spec, str) else spec.id or spec.like
    unmeasured = named_stack(name or "").unmeasured
    return name, [Assumed("stack", name, unmeasured)] if unmeasured else []


def _tokens(phases: tuple[Phase, ...]) -> float | None:
    """Tokens of the run; None where a phase names none."""
    total = 0.0
    for phase in phases:
        if phase.tokens is None:
            return None
        total += phase.tokens
    return total


def _unpublished(chip: Accelerator) -> list[Assumed]:
    """Whose constants stand in where nobody has published a run on this kind of chip."""
    row = family(chip.family)
    if row.measured:
        return []
    why = (
        f"nobody has published a run on {chip.family}: the constants of the most "
        f"careful measured family, {row.constants_of}, and a wider band"
    )
    return [Assumed("cluster.accelerator", row.constants_of, why)]


def _risk(constraints: Constraints) -> list[Assumed]:
    if constraints.max_oom_probability is not None:
        return []
    why = "one run in twenty: a plan of more risk is taken only where no other fits"
    return [Assumed("constraints.max_oom_probability", MAX_OOM, why)]


def _title(design: Design, model: Model, params: Params) -> str:
    """The design's title; a model that its file does not name is named by what it counts to."""
    spec = design.model
    if design.name or not isinstance(spec, ModelSpec) or spec.name or spec.like or spec.size:
        return design.title
    kind = "MoE" if model.is_moe else "dense"
    name = model.name if spec.hf_config else f"{named_size(float(params.total))} {kind}"
    return design.title.replace("model", name, 1)


def _not_beyond_peak(
    measured: Mapping[str, float], model: Model, phase: Phase, cluster: Cluster
) -> None:
    """A measured speed that the devices' dense peak rules out is a slip of a unit."""
    rate = measured.get("tokens_per_s_per_device")
    step_s = measured.get("step_s")
    if not rate and not step_s:
        return
    chip = cluster.accelerator
    flop = float(flops_per_token(model, phase.seq_len).total)
    most = CREDIBLE_MFU * chip.peak_flops(phase.precision) / flop  # tokens/s of a device
    of_peak = f"{CREDIBLE_MFU:.0%} of the dense {phase.precision} peak of"
    problem = "is beyond the hardware"
    if rate and rate > most:
        allowed = f"at most {most:.4g}: {of_peak} {chip.name}"
        field = "measured.tokens_per_s_per_device"
        raise DesignError(field, rate, allowed, problem=problem)
    least = phase.global_batch * phase.seq_len / (cluster.devices * most)
    if step_s and step_s < least:
        allowed = f"at least {least:.4g} s: {of_peak} {cluster.devices:,} {chip.name}"
        raise DesignError("measured.step_s", step_s, allowed, problem=problem)
