"""The verdict on a design: search the plans of every phase, lay out the best, and judge it against
what the design asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ..base.errors import DesignError
from ..catalogue.load import of_rows
from ..catalogue.models.shape import Model, parameters
from ..design.design import Design
from ..design.repriced import repriced
from ..design.resolved import Resolved
from ..physics.gather import Situation, situation as situation_of
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans import space as planning
from ..plans.evaluate import Search, any_fits, find, unpinned
from ..plans.prepare import prepare
from ..plans.ran import spread_of
from ..plans.remote import Progress
from ..plans.stages import kept_on_device, searched, with_schedules
from ..plans.stream import ON_DEVICE
from .assessment import Assessment, Chosen
from .judge import judge
from .numbers import numbers, with_step
from .refusal import arithmetic, leanest
from .result import Fastest
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
    resolved = replace(prepare(design), kit=kit or {}, constants=constants or {})
    if design.measured_at is not None:
        resolved = replace(resolved, measured=calibrated(design.measured_at))
    if model is not None:
        resolved = replace(resolved, model=model, params=parameters(model))
    searches = []
    for i, phase in enumerate(resolved.phases):
        situation = situation_of(resolved, phase)
        phase_search = searched_before(like, situation, i)
        if phase_search is None:
            phase_search = choose(situation, space, progress)
        if phase_search is None:
            return Assessment(
                design=design,
                resolved=resolved,
                verdict="impossible",
                refusal=arithmetic(situation),
            )
        searches.append(phase_search)
    assessment = simplest_of_fast(resolved, searches)
    too_slow = assessment.fits and any(m.banded for m in assessment.missed)
    if too_slow and space == planning.DEFAULT:
        wide = [PhaseSearch(with_schedules(search), fits) for search, fits in searches]
        wider = simplest_of_fast(resolved, wide)
        if rank(wider.verdict) < rank(assessment.verdict):
            return wider
    return assessment


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


def simplest_of_fast(resolved: Resolved, searches: Sequence[PhaseSearch]) -> Assessment:
    """The assessment of the plainest plans within 3 % of the fastest (10 % of one that offloads),
    of the fastest where the verdict on the plainest is worse."""
    fastest = laid_out(resolved, searches, Search.best)
    if not fastest.fits:
        return fastest
    assessment = fastest
    rows = [search.simplest() for search, _ in searches]
    if rows != [one.row for one in fastest.phases]:
        simplest = laid_out(resolved, searches, Search.simplest)
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


def laid_out(
    resolved: Resolved, searches: Iterable[PhaseSearch], pick: Callable[[Search], int | None]
) -> Assessment:
    """The assessment of one plan of each phase's search: the row that `pick` names, the leanest
    where none fits."""
    phases = []
    for i, (search, fits) in enumerate(searches):
        row = pick(search) if fits else None
        if row is None:
            row = int(search.total_bytes.argmin())
        measured = resolved.measured if i == resolved.main else {}
        phases.append(with_step(settle(search, row, fits), measured))
    return judge(numbers(resolved, tuple(phases)))


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
    situation: Situation, space: planning.Space, progress: Progress | None = None
) -> PhaseSearch | None:
    """The search of a phase under the pins and what the stack offers; the same as it is where only
    these stop it; None where nothing can fit, at once where the lean end of every axis does
    not. State leaves the device for a pinned plan's sake only where no other plan fits with all of
    it on the device."""
    pinned = situation.phase.pins
    first = None
    if space.offload == ON_DEVICE:
        offered = planning.offered(space, situation.resolved)
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


def settle(search: Search, row: int, fits: bool) -> Chosen:
    """One plan of a search laid out alone."""
    case = search.case(row)
    situation = search.situation
    step = step_time(case)
    used = memory(case)
    step_s = float(step.total)
    chance = oom_probability(used.total, used.capacity, spread_of(situation, case.plan))
    return Chosen(
        phase=situation.phase,
        search=search,
        row=row,
        plan=search.row(row),
        case=case,
        memory=used,
        step=step,
        fits=fits,
        oom_probability=float(chance),
        step_s=step_s,
        step_s_low=step_s,
        step_s_high=step_s,
    )
