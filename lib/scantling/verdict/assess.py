"""The verdict on a design: search the plans of every phase, lay out the best, and judge it against
what the design asks for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ..base.errors import DesignError
from ..catalogue.load import of_rows
from ..catalogue.models.shape import Model, parameters
from ..design.design import Design
from ..design.repriced import repriced
from ..design.resolved import Resolved
from ..physics.cases import Plan
from ..physics.gather import Situation, situation as situation_of
from ..plans import space as planning
from ..plans.evaluate import Search, any_fits, evaluate_together, find, legal, unpinned
from ..plans.prepare import prepare
from ..plans.remote import Progress
from ..plans.stages import kept_on_device, searched, with_schedules
from ..plans.stream import ON_DEVICE
from .assessment import Assessment, Chosen
from .judge import judge
from .numbers import numbers, with_step
from .refusal import arithmetic, leanest
from .result import Fastest
from .settle import Pick, settled
from .verdicts import rank


class PhaseSearch(NamedTuple):
    """The search of one phase, and whether a plan of it fits."""

    search: Search
    fits: bool


def assess(
    design: Design,
    *,
    space: planning.Space | str | None = None,
    progress: Progress | None = None,
    kit: Mapping[str, Any] | None = None,
    model: Model | None = None,
    constants: Mapping[str, float] | None = None,
    like: Assessment | None = None,
) -> Assessment:
    """Search the plans of every phase of a design and judge the best against what the design asks
    for.

    space : a space of plans, or its name; the default one where it is left out.
    Raises DesignError for pins that break a rule. Impossible means that no plan fits with the pins
    removed, under any stack, and with state offloaded to the host memory and NVMe that the cluster
    has. Where the default space misses a limit on speed, the schedules and expert layouts that it
    leaves out are tried before that is said.
    kit : axis of a plan -> values that the framework of a kit has words for: no other is searched.
    progress : function(done, of) of the search of a phase; it may return False to end it with what
    has been looked at.
    model : stands in for the design's: what a framework builds where it cannot build that one.
    constants : {name: value} that stand in for those of the cases (`constants.standing_in`).
    like : an assessment over the same space whose searches stand where nothing that they look at
    differs.
    """
    space = planning.space_of(space)
    resolved = ready(design, kit, model, constants)
    searches = searched_phases(resolved, space, progress=progress, like=like)
    if isinstance(searches, Assessment):
        return searches
    (laid,) = laid_out([(resolved, searches)])
    return judged(laid, space)


def assess_together(
    designs: Sequence[Design], *, space: planning.Space | str | None = None
) -> list[Assessment | DesignError]:
    """`assess` of several designs, in their order, a DesignError in the place of one that is
    refused. Plans of designs of a kind (`Situation.kind`) pass through the model together."""
    space = planning.space_of(space)
    answers: dict[int, Assessment | DesignError] = {}
    asked: dict[int, Asked] = {}
    for i, design in enumerate(designs):
        try:
            asked[i] = ask(ready(design), space)
        except DesignError as error:
            answers[i] = error
    firsts = iter(evaluate_together([pair for one in asked.values() for pair in one.plans]))
    searched_designs: dict[int, tuple[Resolved, list[PhaseSearch]]] = {}
    for i, one in asked.items():
        own = [next(firsts) for _ in one.plans]
        try:
            searches = searched_phases(one.resolved, space, firsts=own)
        except DesignError as error:
            answers[i] = error
            continue
        if isinstance(searches, Assessment):
            answers[i] = searches
        else:
            searched_designs[i] = one.resolved, searches
    for i, laid in zip(searched_designs, laid_out([*searched_designs.values()])):
        answers[i] = judged(laid, space)
    return [answers[i] for i in range(len(designs))]


class Asked(NamedTuple):
    """A design made ready, and the legal plans of its phases where the space is searched whole."""

    resolved: Resolved
    plans: list[tuple[Situation, Plan]]


def ask(resolved: Resolved, space: planning.Space) -> Asked:
    """The plans of a space that a design asks about. Raises DesignError, as `evaluate.legal`."""
    if space.offload != ON_DEVICE:
        return Asked(resolved, [])
    offered = planning.offered(space, resolved)
    situations = [situation_of(resolved, phase) for phase in resolved.phases]
    return Asked(resolved, [(one, legal(one, offered)) for one in situations])


def ready(
    design: Design,
    kit: Mapping[str, Any] | None = None,
    model: Model | None = None,
    constants: Mapping[str, float] | None = None,
) -> Resolved:
    """A design made ready for the models, with what stands in for its own (as of `assess`)."""
    resolved = replace(prepare(design), kit=kit or {}, constants=constants or {})
    if design.measured_at is not None:
        resolved = replace(resolved, measured=calibrated(design.measured_at))
    if model is not None:
        resolved = replace(resolved, model=model, params=parameters(model))
    return resolved


def searched_phases(
    resolved: Resolved,
    space: planning.Space,
    *,
    firsts: Sequence[Search] = (),
    progress: Progress | None = None,
    like: Assessment | None = None,
) -> list[PhaseSearch] | Assessment:
    """The search of every phase; the assessment of an impossible design where one fits nowhere.
    firsts : the searches of the space alone, a phase each, where they are at hand."""
    searches = []
    for i, phase in enumerate(resolved.phases):
        first = firsts[i] if firsts else None
        situation = situation_of(resolved, phase) if first is None else first.situation
        search = searched_before(like, situation, i)
        if search is None:
            search = choose(situation, space, first=first, progress=progress)
        if search is None:
            return Assessment(
                design=resolved.design,
                resolved=resolved,
                verdict="impossible",
                refusal=arithmetic(situation),
            )
        searches.append(search)
    return searches


def searched_before(like: Assessment | None, situation: Situation, i: int) -> PhaseSearch | None:
    """The search of phase i in another assessment, where all that a search looks at is the same:
    model, cluster, software, the phase but for its tokens, the headroom; else None."""
    if like is None or i >= len(like.phases):
        return None
    one = like.phases[i]
    if _looked_at(situation.resolved) != _looked_at(like.resolved):
        return None
    if replace(one.phase, tokens=situation.phase.tokens) != situation.phase:
        return None
    return PhaseSearch(replace(one.search, situation=situation), one.fits)


def _looked_at(resolved: Resolved) -> tuple[Any, ...]:
    """What a search looks at beside the phase."""
    return (
        resolved.model,
        resolved.cluster,
        resolved.stack,
        resolved.calibration,
        resolved.kit,
        resolved.constants,
        resolved.max_oom_probability,
    )


@of_rows
@lru_cache(maxsize=64)
def calibrated(design: Design) -> dict[str, float]:
    """What the measured values of a design say of its variations: measured over computed step and
    memory, and time lost over what is computed. {step_ratio, memory_ratio, lost_ratio}"""
    assessment = assess(design)
    if not assessment.phases:
        return {}
    measured = design.measured.stated()
    chosen = assessment.chosen
    ratios = {"step_ratio": assessment.step_s / float(chosen.step.total)}
    if "memory_gb" in measured:
        ratios["memory_ratio"] = measured["memory_gb"] * 1e9 / float(chosen.memory.total)
    if "goodput" in measured and assessment.endurance.goodput < 1:
        lost = 1 - float(assessment.endurance.goodput)
        ratios["lost_ratio"] = (1 - measured["goodput"]) / lost
    return ratios


class LaidOut(NamedTuple):
    """A design with the plans that it is judged by, one a phase: the fastest, and the plainest
    within 3 % of it (10 % of one that offloads), the same where no other is plainer."""

    resolved: Resolved
    searches: Sequence[PhaseSearch]
    fastest: tuple[Chosen, ...]
    plainest: tuple[Chosen, ...]


def laid_out(searched_designs: Iterable[tuple[Resolved, Sequence[PhaseSearch]]]) -> list[LaidOut]:
    """Designs with their plans laid out, those of all in the same passes; of a phase that does not
    fit the leanest plan."""
    designs = []
    picks: list[Pick] = []
    for resolved, searches in searched_designs:
        rows = [search.best() if fits else None for search, fits in searches]
        plain = rows if None in rows else [search.simplest() for search, _ in searches]
        some = (rows,) if plain == rows else (rows, plain)
        designs.append((resolved, searches, len(picks), len(searches) * len(some)))
        picks += [pick for these in some for pick in picked(resolved, searches, these)]
    chosen = [with_step(one, pick.measured) for one, pick in zip(settled(picks), picks)]
    laid = []
    for resolved, searches, start, n in designs:
        own, phases = tuple(chosen[start : start + n]), len(searches)
        laid.append(LaidOut(resolved, searches, own[:phases], own[n - phases :]))
    return laid


def picked(
    resolved: Resolved, searches: Sequence[PhaseSearch], rows: Sequence[int | None]
) -> list[Pick]:
    """One plan of each phase's search, the leanest where no row is named."""
    return [
        Pick(
            search=search,
            row=int(search.total_bytes.argmin()) if row is None else row,
            fits=fits,
            measured=resolved.measured if i == resolved.main else {},
        )
        for i, ((search, fits), row) in enumerate(zip(searches, rows))
    ]


def judged(laid: LaidOut, space: planning.Space) -> Assessment:
    """The verdict on a design; where the default space misses a limit on speed, after the schedules
    and expert layouts that it leaves out."""
    assessment = simplest_of_fast(laid)
    too_slow = assessment.fits and any(m.banded for m in assessment.missed)
    if too_slow and space == planning.DEFAULT:
        wide = [PhaseSearch(with_schedules(search), fits) for search, fits in laid.searches]
        (wider_laid,) = laid_out([(laid.resolved, wide)])
        wider = simplest_of_fast(wider_laid)
        if rank(wider.verdict) < rank(assessment.verdict):
            return wider
    return assessment


def simplest_of_fast(laid: LaidOut) -> Assessment:
    """The assessment of the plainest plans, of the fastest where the verdict on the plainest is
    worse."""
    fastest = judge(numbers(laid.resolved, laid.fastest))
    if not fastest.fits:
        return fastest
    assessment = fastest
    if [one.row for one in laid.plainest] != [one.row for one in laid.fastest]:
        simplest = judge(numbers(laid.resolved, laid.plainest))
        if rank(simplest.verdict) <= rank(fastest.verdict):
            assessment = simplest
    faster, chosen = fastest.chosen, assessment.chosen
    why = "" if faster.row == chosen.row else chosen.search.why_passed_over(faster.row, chosen.row)
    return replace(
        assessment,
        fastest=Fastest(
            plan=fastest.plan,
            step_s=fastest.step_s,
            days=fastest.days,
            cost_usd=fastest.cost_usd,
            why_not=why,
        ),
    )


def changed(
    design: Design,
    changes: Mapping[str, Any],
    *,
    space: planning.Space | str | None = None,
    like: Assessment | None = None,
) -> Assessment | None:
    """The assessment of a changed copy, at what its machine costs; None where the design does not
    allow the changes."""
    try:
        return assess(design.change(repriced(design, changes)), space=space, like=like)
    except DesignError:
        return None


def choose(
    situation: Situation,
    space: planning.Space,
    *,
    first: Search | None = None,
    progress: Progress | None = None,
) -> PhaseSearch | None:
    """The search of a phase under the pins and what the stack offers; the same as it is where only
    these stop it; None where nothing can fit, at once where the lean end of every axis does
    not. State leaves the device for a pinned plan's sake only where no other plan fits with all of
    it on the device. first : the search of the space alone, where it is at hand."""
    pinned = situation.phase.pins
    if space.offload == ON_DEVICE:
        offered = planning.offered(space, situation.resolved)
        if first is None:
            first = find(situation, offered, progress=progress)
        if first.best() is None:
            if leanest(situation).best() is None:
                return None
            if pinned and "offload" not in pinned and any_fits(unpinned(situation), offered):
                near = kept_on_device(first) if space == planning.DEFAULT else first
                return PhaseSearch(near, fits=near.best() is not None)
    search = searched(situation, space, first, progress=progress)
    if search.best() is not None:
        return PhaseSearch(search, fits=True)
    if not (pinned or situation.resolved.offers) or leanest(situation).best() is None:
        return None
    return PhaseSearch(search, fits=False)
