"""What a network that joins accelerators consists of: switches, cables, transceivers, bisection,
ports, hops, reach.

Counts are those of the published designs in catalogue/topologies.csv, which the tests hold them
against. k is the radix (ports of a switch at the rate of a card), N the cards. Bandwidth one
direction.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scantling.base.records import Record, record

Ports = dict[str, int]  # of one switch: down, up, free
Level = tuple[int, float]  # (cards joined, switches passed between them)


@record
class Topology(Record):
    """Counts of one network. `cables` by what they join; a cable has two ends, each a transceiver
    unless it is copper."""

    # one switch | fat-tree | rail-optimised | rail-only | pods | dragonfly | dragonfly+ | torus
    kind: str
    endpoints: int  # cards; of a torus: chips
    radix: int
    planes: int = 1  # networks that share no switch
    tiers: int
    oversubscription: float = 1.0  # at the top, down over up
    leaf: int
    spine: int = 0
    core: int = 0
    cables: dict[str, int]
    copper_cables: int = 0
    port_bytes_per_s: float
    bisection_bytes_per_s: float  # the worst even cut, one direction
    hops: float  # switches passed, worst pair, minimal route
    mean_hops: float  # over pairs
    # cards that reach each other over one switch (per plane or rail: nodes x rails)
    unit_endpoints: int
    pod_endpoints: int  # cards under full bisection
    reach_endpoints: float  # the most cards that this radix and these tiers can join
    ports: dict[str, Ports]  # by tier
    source: str
    circuits: int = 0  # optical circuit switches

    @property
    def switches(self) -> int:
        """Packet switches of all tiers and planes."""
        return self.leaf + self.spine + self.core

    @property
    def all_cables(self) -> int:
        return sum(self.cables.values())

    @property
    def transceivers(self) -> int:
        """Optical ends: two a cable that is not copper; a torus has one at each fibre's chip."""
        return (self.all_cables - self.copper_cables) * (1 if self.kind == "torus" else 2)

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {
            "switches": self.switches,
            "all_cables": self.all_cables,
            "transceivers": self.transceivers,
        }


def used_ports(radix: int, down: int, up: int = 0) -> Ports:
    """Ports of one switch: {down, up, free}."""
    return {"down": down, "up": up, "free": max(radix - down - up, 0)}


def switched(
    kind: str,
    endpoints: int,
    radix: int,
    rate: float,
    r: float,
    *levels: Level,
    planes: int = 1,
    tiers: int,
    leaf: int,
    spine: int = 0,
    core: int = 0,
    cables: dict[str, int],
    ports: dict[str, Ports],
    pod_endpoints: int | None = None,
    hops: float | None = None,
    reach_endpoints: float,
    source: str,
) -> Topology:
    """A network of switches by its levels (cards joined, switches passed), narrow first, the whole
    last: its bisection is what half of the cards send, over r. Pod and hops are those of the last
    levels where they are not named."""
    return Topology(
        kind=kind,
        endpoints=endpoints,
        radix=radix,
        planes=planes,
        tiers=tiers,
        oversubscription=r,
        leaf=leaf,
        spine=spine,
        core=core,
        cables=cables,
        port_bytes_per_s=rate,
        bisection_bytes_per_s=endpoints / 2 * rate * planes / r,
        hops=levels[-1][1] if hops is None else hops,
        mean_hops=mean_hops(endpoints, *levels),
        unit_endpoints=levels[0][0],
        pod_endpoints=levels[-2][0] if pod_endpoints is None else pod_endpoints,
        reach_endpoints=reach_endpoints,
        ports=ports,
        source=source,
    )


def mean_hops(endpoints: int, *levels: Level) -> float:
    """Switches passed over all pairs; levels: (cards joined, hops inside), narrow first."""
    joined, hops = np.array(levels).T
    return float(np.diff((joined - 1) / max(endpoints - 1, 1), prepend=0) @ hops)


def joined(*networks: Topology) -> Topology:
    """Networks that share no link, one a site: counts add up; reach, hops, bisection remain those
    of the largest."""
    names = dict.fromkeys(name for t in networks for name in t.cables)
    return replace(
        max(networks, key=lambda t: t.endpoints),
        cables={name: sum(t.cables.get(name, 0) for t in networks) for name in names},
        endpoints=sum(t.endpoints for t in networks),
        leaf=sum(t.leaf for t in networks),
        spine=sum(t.spine for t in networks),
        core=sum(t.core for t in networks),
        copper_cables=sum(t.copper_cables for t in networks),
        reach_endpoints=sum(t.reach_endpoints for t in networks),
        circuits=sum(t.circuits for t in networks),
    )


def copies(t: Topology, n: int) -> Topology:
    """n such networks."""
    return joined(*(t,) * n)
