"""One change evaluated on a design, and the search that the changed designs are compared with."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from scantling.base.errors import DesignError
from scantling.base.records import Known, Record, record
from scantling.plans import space as planning
from scantling.verdict.assess import assess

from ..constants import CONSTANTS
from ..job_site import Site, site_of

RESIZED = ("dp", "grad_accum", "micro_batch", "ep", "etp")  # of the plan, where the job changes
DIP = CONSTANTS.dip


@record
class Figure(Record):
    """One figure before and after a change."""

    name: str
    now: Known
    then: Known
    unit: str


@record
class Change(Record):
    """One change evaluated: the figure that it moves most, others beside it, what breaks and what
    would mend it."""

    id: str
    what: str
    figure: Figure
    more: tuple[Figure, ...] = ()
    works: bool = True  # whether a plan fits and trains
    breaks: str = ""
    mend: str = ""
    confirm: str = ""  # what an ML specialist has to confirm, empty where nothing


def figure(name: str, unit: str, now: Known, then: Known) -> Figure:
    """One figure before and after."""
    return Figure(name=name, now=now, then=then, unit=unit)


def unsaid(section: str, fields: Sequence[str]) -> dict[str, None]:
    """The change that leaves fields of a section of the design to the rules."""
    return {f"{section}.{field}": None for field in fields}


class Base:
    """A design, and the same design with its plan searched on the coarse space: what the changed
    ones are compared with."""

    def __init__(self, site: Site) -> None:
        self.s = site
        self.searches = 0
        self.design = site.a.design.change(dict.fromkeys(("measured", "constraints")))
        self.job = site.a.resolved.job_path  # of the main phase's fields in the design
        self.unpinned = unsaid("plan", tuple(self.design.plan.stated()))  # its own pins, dropped

    def look(self, changes: Mapping[str, Any]) -> Site | None:
        """The site of a changed design with the plan's own pins dropped where they cannot hold;
        None where nothing fits."""
        attempts: list[Mapping[str, None]] = [{}]
        if self.unpinned:
            attempts.append(self.unpinned)
        for pins in attempts:
            try:
                self.searches += 1
                changed = assess(self.design.change({**changes, **pins}), space=planning.COARSE)
            except DesignError:
                continue
            if changed.phases and all(one.fits for one in changed.phases):
                return site_of(changed)
        return None

    @cached_property
    def coarse(self) -> Site:
        """Today's design on the coarse space; the design itself where nothing of that space
        fits."""
        return self.look({}) or self.s


def share_of_step(s: Site, part: str) -> float:
    """An exposed part of the step as a share of it."""
    return float(vars(s.chosen.step)[part]) / s.model_step_s


def step_figure(now: Site, then: Site) -> Figure:
    return figure("step", "s", now.model_step_s, then.model_step_s)


def memory_figure(now: Site, then: Site) -> Figure:
    return figure(
        "memory per device",
        "bytes",
        float(now.chosen.memory.total),
        float(then.chosen.memory.total),
    )
