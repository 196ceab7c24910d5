"""The verdict on a design: search the plans of every phase, lay out the best, and judge it against
what the design asks for."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from ..base.errors import DesignError
from ..catalogue.models.shape import Model, parameters
from ..design.design import Design
from ..physics.gather import Situation, situation
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans import space as planning
from ..plans.evaluate import Found, any_fits, find, spread_of, unpinned
from ..plans.prepare import prepare
from ..plans.stages import searched, with_schedules
from ..plans.stream import ON_DEVICE
from .judge import judged
from .numbers import numbers, with_step
from .record import Assessment, Chosen
from .refusal import arithmetic, leanest
from .verdicts import rank

# what a search looks at beside the phase
LOOKED_AT = ("model", "cluster", "stack", "calibration", "kit", "max_oom_probability")
OF_FASTEST = ("plan", "step_s", "days", "cost_usd")


def assess(
    design: Design,
    *,
    space: planning.Space | str | None = None,
    progress=None,
    kit: Mapping | None = None,
    model: Model | None = None,
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
    like : an assessment over the same space whose searches stand where nothing that they look at
    differs.
    """
    space = planning.space_of(space)
    resolved = replace(prepare(design), kit=kit or {})
    if design.measured_at is not None:
        resolved = replace(resolved, measured=calibrated(design.measured_at))
    if model is not None:
        resolved = replace(resolved, model=model, params=parameters(model))
    searches = []
    for i, phase in enumerate(resolved.phases):
        where = situation(resolved, phase)
        found, fits = searched_before(like, where, i) or choose(where, space, progress)
        if found is None:
            return Assessment(
                design=design, resolved=resolved, verdict="impossible", refusal=arithmetic(where)
            )
        searches.append((found, fits))
    out = picked(resolved, searches)
    slow = out.fits and any(m.banded for m in out.missed)
    if slow and space == planning.DEFAULT:
        wider = picked(resolved, [(with_schedules(found), fits) for found, fits in searches])
        out = wider if rank(wider.verdict) < rank(out.verdict) else out
    return out


def searched_before(like: Assessment | None, where: Situation, i: int) -> tuple | None:
    """(search, fits) of phase i in another assessment, where all that a search looks at is the
    same: model, cluster, software, the phase but for its tokens, the headroom; else None."""
    if like is None or i >= len(like.phases):
        return None
    one = like.phases[i]
    now = where.resolved
    same = all(getattr(now, name) == getattr(like.resolved, name) for name in LOOKED_AT)
    if not same or replace(one.phase, tokens=where.phase.tokens) != where.phase:
        return None
    return replace(one.found, situation=where), one.fits


@lru_cache(maxsize=64)
def calibrated(design: Design) -> dict:
    """What the measured values of a design say of its variations: measured over computed step and
    memory, and time lost over what is computed. {step_ratio, memory_ratio, lost_ratio}"""
    a = assess(design)
    given = design.measured.given()
    if not a.phases:
        return {}
    out = {"step_ratio": a.step_s / a.chosen.step.total}
    if "memory_gb" in given:
        out["memory_ratio"] = given["memory_gb"] * 1e9 / a.chosen.memory.total
    if "goodput" in given and a.endurance.goodput < 1:
        out["lost_ratio"] = (1 - given["goodput"]) / (1 - a.endurance.goodput)
    return out


def picked(resolved, searches) -> Assessment:
    """The assessment of the simplest plans within 1 % of the fastest; of the fastest where the
    verdict on the simplest is worse."""
    fastest = laid_out(resolved, searches, Found.best)
    if not fastest.fits:
        return fastest
    same = all(found.simplest() == one.row for (found, _), one in zip(searches, fastest.phases))
    simplest = fastest if same else laid_out(resolved, searches, Found.simplest)
    worse = rank(simplest.verdict) > rank(fastest.verdict)
    return replace(
        fastest if worse else simplest, fastest={key: getattr(fastest, key) for key in OF_FASTEST}
    )


def laid_out(resolved, searches, pick) -> Assessment:
    """The assessment of one plan of each phase's search: the row that `pick` names, the leanest
    where none fits."""
    phases = []
    for i, (found, fits) in enumerate(searches):
        row = pick(found) if fits else int(found.total_bytes.argmin())
        measured = resolved.measured if i == resolved.main else {}
        phases.append(with_step(settle(found, row, fits), measured))
    return judged(
        Assessment(
            design=resolved.design,
            resolved=resolved,
            verdict="feasible",
            phases=tuple(phases),
            **numbers(resolved, phases),
        )
    )


def changed(design: Design, changes: dict, **searched) -> Assessment | None:
    """The assessment of a changed copy; None where the design does not allow the changes."""
    try:
        return assess(design.change(changes), **searched)
    except DesignError:
        return None


def choose(where: Situation, space: planning.Space, progress=None) -> tuple[Found | None, bool]:
    """(search, fits): under the pins and what the stack offers; the same as it is where only these
    stop it; (None, False) where nothing can fit, at once where the lean end of every axis does
    not. State leaves the device for a pinned plan's sake only where no other plan fits with all of
    it on the device."""
    pinned = where.phase.pins
    first = None
    if space.offload == ON_DEVICE:
        offered = planning.offered(space, where.resolved)
        first = find(where, offered, progress=progress)
        if first.best() is None:
            if leanest(where).best() is None:
                return None, False
            if pinned and "offload" not in pinned and any_fits(unpinned(where), offered):
                return first, False
    found = searched(where, space, first, progress=progress)
    if found.best() is not None:
        return found, True
    if not (pinned or where.resolved.offers) or leanest(where).best() is None:
        return None, False
    return found, False


def settle(found: Found, row: int, fits: bool) -> Chosen:
    """One plan of a search laid out alone."""
    case = found.case(row)
    where = found.situation
    step = step_time(case)
    held = memory(case)
    seconds = float(step.total)
    return Chosen(
        phase=where.phase,
        found=found,
        row=row,
        plan=found.row(row),
        case=case,
        memory=held,
        step=step,
        fits=fits,
        oom_probability=float(oom_probability(held.total, held.capacity, spread_of(where))),
        step_s=seconds,
        step_s_low=seconds,
        step_s_high=seconds,
    )
