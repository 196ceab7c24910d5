"""The site around one job: network, placement, planes, scheduler, stores, failure domains,
recovery, risks, roll-out, evolution.

`blueprint(assessment)` is a record of all parts; `PARTS` maps the name of a part to the function
that works it out alone. Every part has `as_dict()`.
"""

from collections.abc import Iterable

from scantling.base.displayed import Displayed, cell
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.verdict.record import Assessment

from .calendar import Calendar, calendar
from .domains import Domains, domains
from .endured import Endured, endured
from .evolution.evolution import Evolution, evolution
from .network.network import Network, network
from .placement import Placement, placement
from .planes.planes import Planes, planes
from .risks.register import Risks, risks
from .rollout.rollout import Rollout, rollout
from .scheduler.scheduler import Scheduler, scheduler
from .site import site_of
from .storage import Stores, stores

PARTS = {
    "network": network,
    "placement": placement,
    "planes": planes,
    "scheduler": scheduler,
    "stores": stores,
    "domains": domains,
    "recovery": endured,
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
    recovery: Endured | None = None
    risks: Risks | None = None
    rollout: Rollout | None = None
    evolution: Evolution | None = None
    calendar: Calendar | None = None

    __repr__ = Displayed.__repr__

    def cells(self) -> list:
        """Part, name and value of the figures that stand alone."""
        return [
            [name, key, cell(value)]
            for name, part in self.as_dict().items()
            for key, value in (part or {}).items()
            if isinstance(value, (int, float, str)) and value != ""
        ]

    def as_dict(self, parts=tuple(PARTS)) -> dict:
        """Plain data of the named parts."""
        found = {name: getattr(self, name) for name in parts}
        return {name: part and part.as_dict() for name, part in found.items()}


def part(assessment: Assessment, name: str):
    """One part of the site around an assessed design; None where the design is impossible."""
    return PARTS[name](site_of(assessment)) if assessment.phases else None


def blueprint(assessment: Assessment, parts: Iterable = tuple(PARTS)) -> Blueprint:
    """The site around an assessed design, or the named parts of it. Raises DesignError for a part
    that there is not."""
    parts = tuple(parts)
    for name in {*parts} - {*PARTS}:
        raise DesignError("parts", name, PARTS)
    site = site_of(assessment) if assessment.phases else assessment
    return Blueprint(**{name: part(site, name) for name in parts})
