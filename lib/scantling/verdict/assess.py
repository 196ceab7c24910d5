"""The verdict on a design: the plan, its physics, and whether what was asked for is met.

`assess` searches; everything that follows from its outcome (endurance, cost, limits, fixes, advice)
is worked out when it is first read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.errors import DesignError
from ..design.design import Design
from ..design.resolve import Phase, Resolved
from ..physics.cases import Cases
from ..physics.gather import Situation, situation
from ..physics.memory.peak import Memory, memory
from ..physics.step import Step, step_time
from ..plans import space as planning
from ..plans.prepare import prepare
from ..plans.run import Found, find, unpinned

REFUSAL = "Hardware constraints insufficient for model parameters"


@dataclass(frozen=True)
class Chosen:
    """One phase with its plan: the search it came from (None where a measured or pinned plan was
    laid out alone), case, memory, step."""

    phase: Phase
    found: Found
    row: int
    case: Cases
    memory: Memory
    step: Step
    fits: bool

    @property
    def plan(self) -> dict:
        """The plan as plain values, in the keys of the contract."""
        return dict(self._plan)

    @cached_property
    def _plan(self) -> dict:
        return self.found.row(self.row)


@dataclass(frozen=True)
class Assessment:
    """What the kit says of one design. Plain numbers by the keys of `design --json` as attributes;
    `as_dict` joins them all."""

    design: Design
    resolved: Resolved
    verdict: str
    phases: tuple[Chosen, ...]  # empty where impossible
    main: int  # the phase with most of the tokens
    refusal: tuple[str, ...] = ()  # the arithmetic, where impossible

    def __getattr__(self, name):
        if not name.startswith("_") and not hasattr(type(self), name) and name in self.figures:
            return self.figures[name]
        raise AttributeError(name)

    @property
    def chosen(self) -> Chosen:
        """The phase that the headline is about."""
        return self.phases[self.main]

    @property
    def job_path(self) -> str:
        """Dotted path of the fields of the phase with most of the tokens: job, or job.phases.N."""
        phases = self.resolved.phases
        return (
            f"job.phases.{max(range(len(phases)), key=lambda i: phases[i].tokens or 0)}"
            if self.design.job.phases
            else "job"
        )

    @property
    def error(self) -> str | None:
        """The refusal, word for word, where the design is impossible."""
        return REFUSAL if self.verdict == "impossible" else None

    @cached_property
    def figures(self) -> dict:
        """Headline numbers of the main phase, days and bands of the whole run."""
        if not self.phases:
            return {}
        from .numbers import figures

        return figures(self)

    @cached_property
    def endurance(self):
        """Failures, checkpoints and goodput: reliability.Endurance."""
        from .numbers import endurance

        return endurance(self)

    @cached_property
    def cost(self):
        """Dollars and energy of the run: cost.Cost, None without tokens."""
        from .numbers import cost

        return cost(self)

    @cached_property
    def missed(self) -> tuple:
        """Constraints that are not met, each with limit, value and the chance of meeting it within
        the band."""
        from .limits import missed

        return missed(self) if self.phases else ()

    @cached_property
    def limits(self) -> list[str]:
        """What binds, as lines a reviewer can check; the refusal's arithmetic where impossible."""
        from .limits import limits

        return list(self.refusal) if self.verdict == "impossible" else limits(self)

    @cached_property
    def nearest_fixes(self) -> list[dict]:
        """The smallest changes that make the design feasible, each evaluated; empty where it is."""
        from ..advise.fixes import nearest_fixes

        return nearest_fixes(self) if self.verdict != "feasible" else []

    @cached_property
    def tried(self) -> list[dict]:
        """What every change that was tried comes to, where the design is not feasible as it is:
        fixes.tried."""
        from ..advise.fixes import tried

        return tried(self) if self.phases else []

    @cached_property
    def avoid(self) -> list[dict]:
        """Tempting plans that lose here, with what each costs."""
        from ..advise.avoid import avoid

        return avoid(self) if self.phases else []

    @cached_property
    def why(self) -> list[dict]:
        """One line per axis: tier, traffic, exposed time, what the next value up and down would
        cost."""
        from ..advise.avoid import why

        return why(self) if self.phases else []

    @cached_property
    def batch(self) -> dict:
        """The global batch as the convergence constraint: critical batches, shapes that keep it,
        learning rate: batch_guide.batch_guide."""
        from ..advise.batch import batch_guide

        return batch_guide(self) if self.phases else {}

    @cached_property
    def largest_active(self) -> dict | None:
        """Largest active count that meets the deadline, where a mixture of experts is given by size
        alone: active_count.largest_active."""
        from ..advise.active_count import largest_active

        return largest_active(self) if self.phases else None

    @cached_property
    def recovery(self) -> dict:
        """Copies by tier, stores that carry them, corpus, shrinking, the ladder of measures:
        recovery.recovery."""
        from ..advise.recovery import recovery

        return recovery(self) if self.phases else {}

    @cached_property
    def finishing_day(self) -> dict | None:
        """Distribution of the finishing day by simulation: recovery.finishing_day; None without
        tokens."""
        from ..advise.recovery import finishing_day

        return finishing_day(self) if self.phases else None

    def as_dict(self, advice: bool = True) -> dict:
        """The contract's keys and the panels' tables as plain data; `advice=False` leaves out what
        takes more searches (fixes)."""
        if self.verdict == "impossible":
            return {
                "name": self.resolved.name,
                "verdict": self.verdict,
                "error": self.error,
                "limits": self.limits,
                "nearest_fixes": self.nearest_fixes if advice else [],
            }
        from .numbers import tables

        return {
            "name": self.resolved.name,
            "verdict": self.verdict,
            **self.figures,
            "limits": self.limits,
            "avoid": self.avoid,
            "batch": self.batch if advice else {},
            "nearest_fixes": self.nearest_fixes if advice else [],
            "tried": self.tried if advice else [],
            **tables(self),
        }


def assess(design: Design, *, space: planning.Space = planning.DEFAULT) -> Assessment:
    """Search the plans of every phase of a design and judge the best against what the design asks
    for.

    Raises DesignError for pins that break a rule. Impossible means that no plan fits with the pins
    removed and with state offloaded to
    the host memory and NVMe that the cluster has.
    """
    resolved = prepare(design)
    chosen, refusal = [], ()
    for phase in resolved.phases:
        where = situation(resolved, phase)
        found, fits = choose(where, space)
        if found is None:
            from .refusal import arithmetic

            refusal = arithmetic(where)
            return Assessment(design, resolved, "impossible", (), 0, refusal)
        chosen.append(settle(where, found, fits))
    main = int(np.argmax([(c.phase.tokens or 0.0) for c in chosen]))
    out = Assessment(design, resolved, "feasible", tuple(chosen), main)
    return (
        out
        if all(c.fits for c in chosen) and not out.missed
        else Assessment(design, resolved, "constraint-missed", tuple(chosen), main)
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


def settle(where: Situation, found: Found, fits: bool) -> Chosen:
    """The best plan of a search laid out alone; the leanest where none fits."""
    row = found.best() if fits else int(np.argmin(found.total_bytes))
    case = found.case(row)
    return Chosen(where.phase, found, row, case, memory(case), step_time(case), fits)
