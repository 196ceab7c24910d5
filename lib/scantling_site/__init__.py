"""The site around one job: network, placement, planes, scheduler, stores, failure domains,
recovery, risks, roll-out, evolution.

`blueprint(assessment)` is a record of all parts; `PARTS` maps the name of a part to the function
that works it out alone. Every part has `as_dict()`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from scantling.base.displayed import Cells, Displayed, cell
from scantling.base.errors import DesignError
from scantling.base.records import Record, record
from scantling.verdict.assessment import Assessment

from .calendar import Calendar, calendar
from .domains import Domains, domains
from .evolution.evolution import Evolution, evolution
from .job_site import Site, site_of
from .network.network import Network, network
from .placement import Placement, placement
from .planes.planes import Planes, planes
from .recovery_ladder import Recovery, recovery
from .risks.register import Risks, risks
from .rollout.first_week import Rollout, rollout
from .scheduler.scheduler import Scheduler, scheduler
from .storage import Stores, stores

PARTS: dict[str, Callable[[Site], Record]] = {
    "network": network,
    "placement": placement,
    "planes": planes,
    "scheduler": scheduler,
    "stores": stores,
    "domains": domains,
    "recovery": recovery,
    "risks": risks,
    "rollout": rollout,
    "evolution": evolution,
    "calendar": calendar,
}


@record
class Blueprint(Displayed):
    """What has to stand around a design's job; a part is None where it was not asked for, every
    part where the design is impossible."""

    network: Network | None = None
    placement: Placement | None = None
    planes: Planes | None = None
    scheduler: Scheduler | None = None
    stores: Stores | None = None
    domains: Domains | None = None
    recovery: Recovery | None = None
    risks: Risks | None = None
    rollout: Rollout | None = None
    evolution: Evolution | None = None
    calendar: Calendar | None = None

    __repr__ = Displayed.__repr__

    def cells(self) -> Cells:
        """Part, name and value of the figures that stand alone."""
        return [
            [name, key, cell(value)]
            for name, data in self.as_dict().items()
            for key, value in (data or {}).items()
            if isinstance(value, (int, float, str)) and value != ""
        ]

    def as_dict(self, parts: Iterable[str] = tuple(PARTS)) -> dict[str, Any]:
        """Plain data of the named parts."""
        records: dict[str, Record | None] = {name: vars(self)[name] for name in parts}
        return {name: part and part.as_dict() for name, part in records.items()}


def part(assessment: Assessment | Site, name: str) -> Any:
    """One part of the site around an assessed design, a record of its own kind; None where the
    design is impossible."""
    return PARTS[name](site_of(assessment)) if assessment.phases else None


def blueprint(assessment: Assessment | Site, parts: Iterable[str] = tuple(PARTS)) -> Blueprint:
    """The site around an assessed design, or the named parts of it. Raises DesignError for a part
    that there is not."""
    names = tuple(parts)
    for name in {*names} - {*PARTS}:
        raise DesignError("parts", name, PARTS)
    if not assessment.phases:
        return Blueprint()
    site = site_of(assessment)
    records: dict[str, Any] = {name: PARTS[name](site) for name in names}
    return Blueprint(**records)
