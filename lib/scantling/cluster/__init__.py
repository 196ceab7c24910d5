"""The site around one job: network, placement, planes, scheduler, stores, failure domains, risks,
roll-out, evolution.

`assessment.blueprint` is a `Blueprint`. Each part is worked out when it is first read, by the one
public function of the module
of the same name: `network(assessment)` in `blueprint.network`, and so on. Every part has
`as_dict()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

PARTS = (
    "network",
    "placement",
    "planes",
    "scheduler",
    "stores",
    "domains",
    "risks",
    "rollout",
    "evolution",
)


WHERE = {
    "network": "network.network",
    "planes": "planes.planes",
    "scheduler": "scheduler.scheduler",
    "stores": "storage",
    "risks": "risks.register",
    "rollout": "rollout.rollout",
    "evolution": "evolution.evolution",
}


def _part(name: str, doc: str) -> cached_property:
    def read(self):
        if not self.assessment.phases:
            return None
        return getattr(import_module(f".{WHERE.get(name, name)}", __name__), name)(self.assessment)

    read.__doc__ = doc
    return cached_property(read)


@dataclass(frozen=True)
class Blueprint:
    """What has to stand around a design's job; every part is None where the design is
    impossible."""

    assessment: object

    network = _part(
        "network",
        (
            "Topology, its counts and cost, alternatives, axis by tier, bursts, settings of "
            "the fabric: network.Network."
        ),
    )
    placement = _part(
        "placement",
        (
            "Which device, node, rack and pod every rank of tp, cp, ep, dp and pp stands "
            "on: placement.Placement."
        ),
    )
    planes = _part(
        "planes",
        (
            "Control, compute, data and storage planes, timeline and collectives of one "
            "step, states: planes.Planes."
        ),
    )
    scheduler = _part(
        "scheduler",
        (
            "Scheduler by stated criteria, the request for this job, spares, preemption: "
            "scheduler.Scheduler."
        ),
    )
    stores = _part(
        "stores",
        "File system, burst tier and object store sized for ingest and checkpoints: stores.Stores.",
    )
    domains = _part(
        "domains",
        "What each failure domain takes out, how often, and what brings it back: domains.Domains.",
    )
    risks = _part("risks", "Risk register ordered by expected cost: risks.Risks.")
    rollout = _part(
        "rollout",
        (
            "Burn-in, screens, alerts, playbooks and drills with this design's thresholds: "
            "rollout.Rollout."
        ),
    )
    evolution = _part(
        "evolution",
        "What breaks next at more devices, other precision, longer context: evolution.Evolution.",
    )

    def as_dict(self, parts=PARTS) -> dict:
        """Plain data of the named parts."""
        out = {}
        for name in parts:
            part = getattr(self, name)
            out[name] = None if part is None else part.as_dict()
        return out
