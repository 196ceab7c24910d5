"""The verdict on a design: search the plans of every phase, lay out the best, and judge it against
what the design asks for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.errors import DesignError
from ..design.design import Design
from ..physics.gather import Situation, situation
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans import space as planning
from ..plans.prepare import prepare
from ..plans.run import Found, find, unpinned
from .constraints import missed
from .numbers import numbers, with_step
from .record import Assessment, Chosen
from .refusal import arithmetic


def assess(design: Design, *, space: planning.Space = planning.DEFAULT) -> Assessment:
    """Search the plans of every phase of a design and judge the best against what the design asks
    for.

    Raises DesignError for pins that break a rule. Impossible means that no plan fits with the pins
    removed and with state offloaded to
    the host memory and NVMe that the cluster has.
    """
    resolved = prepare(design)
    phases = []
    for i, phase in enumerate(resolved.phases):
        where = situation(resolved, phase)
        found, fits = choose(where, space)
        if found is None:
            return Assessment(
                design=design,
                resolved=resolved,
                verdict="impossible",
                refusal=arithmetic(where),
            )
        measured = resolved.measured if i == resolved.main else {}
        phases.append(with_step(settle(where, found, fits), measured))
    out = Assessment(
        design=design,
        resolved=resolved,
        verdict="feasible",
        phases=tuple(phases),
        **numbers(resolved, phases),
    )
    misses = missed(out)
    return replace(
        out,
        missed=misses,
        verdict="feasible" if out.fits and not misses else "constraint-missed",
    )


def choose(where: Situation, space: planning.Space) -> tuple[Found | None, bool]:
    """(search, fits): under the pins; the pinned plan as it is where only the pins stop it; with
    offload where nothing else fits; (None, False) where nothing can fit."""
    own = planning.offered(space, where.resolved.stack)
    found = find(where, own)
    if found.best() is not None:
        return found, True
    free = unpinned(where)
    for there, wider in (
        (where, space),
        (free, space),
        (where, planning.OFFLOADED),
        (where, planning.LAST_RESORT),
        (free, planning.OFFLOADED),
        (free, planning.LAST_RESORT),
    ):
        if there is where and wider is own:
            continue
        if there is free and not where.phase.pins:
            continue
        try:
            other = find(there, wider)
        except DesignError:  # a pin that the wider space has no plan for
            continue
        if other.best() is not None:
            return (other, True) if there is where else (found, False)
    return None, False


def settle(
    where: Situation,
    found: Found,
    fits: bool,
) -> Chosen:
    """The best plan of a search laid out alone; the leanest where none fits."""
    row = found.best() if fits else int(np.argmin(found.total_bytes))
    case = found.case(row)
    step = step_time(case)
    seconds = float(step.total)
    return Chosen(
        phase=where.phase,
        found=found,
        row=row,
        plan=found.row(row),
        case=case,
        memory=memory(case),
        step=step,
        fits=fits,
        step_s=seconds,
        step_s_low=seconds,
        step_s_high=seconds,
    )
