"""Topologies as formulas: switches, cables, transceivers, bisection, ports, hops and reach of every
network that joins accelerators.

Counts are those of the published designs in catalogue/topologies.csv, which the tests hold them
against. k is the radix (ports of a switch at the rate of a card), N the cards. Bandwidth one
direction.
"""

from dataclasses import replace
from math import ceil, inf, prod

import numpy as np
from scantling.base.records import Record, record
from scantling.catalogue.packet_switches import leaf_ports

KINDS = (
    "one switch",
    "fat-tree",
    "rail-optimised",
    "rail-only",
    "pods",
    "dragonfly",
    "dragonfly+",
    "torus",
)


CIRCUIT_PORTS = 128  # of an optical circuit switch


@record
class Topology(Record):
    """Counts of one network. `cables` by what they join; a cable has two ends, each a transceiver
    unless it is copper."""

    kind: str
    endpoints: int  # cards; of a torus: chips
    radix: int
    planes: int = 1  # networks that share no switch
    tiers: int
    oversubscription: float = 1.0  # at the top, down over up
    leaf: int
    spine: int = 0
    core: int = 0
    cables: dict
    copper_cables: int = 0
    port_bytes_per_s: float
    bisection_bytes_per_s: float  # the worst even cut, one direction
    hops: int  # switches passed, worst pair, minimal route
    mean_hops: float  # over pairs
    # cards that reach each other over one switch (per plane or rail: nodes x rails)
    unit_endpoints: int
    pod_endpoints: int  # cards under full bisection
    reach_endpoints: float  # the most cards that this radix and these tiers can join
    ports: dict  # tier -> {down, up, free} per switch
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

    def as_dict(self) -> dict:
        counted = ("switches", "all_cables", "transceivers")
        return super().as_dict() | {name: getattr(self, name) for name in counted}


def used_ports(radix: int, down: int, up: int = 0) -> dict:
    """Ports of one switch: {down, up, free}."""
    return {"down": down, "up": up, "free": max(radix - down - up, 0)}


def switched(
    kind: str,
    endpoints: int,
    radix: int,
    rate: float,
    r: float,
    *levels: tuple[int, float],
    planes: int = 1,
    **counts,
) -> Topology:
    """A network of switches by its levels (cards joined, switches passed), narrow first, the whole
    last: its bisection is what half of the cards send, over r."""
    own = {"unit_endpoints": levels[0][0], "pod_endpoints": levels[-2][0], "hops": levels[-1][1]}
    return Topology(
        kind=kind,
        endpoints=endpoints,
        radix=radix,
        planes=planes,
        oversubscription=r,
        port_bytes_per_s=rate,
        bisection_bytes_per_s=endpoints / 2 * rate * planes / r,
        mean_hops=mean_hops(endpoints, *levels),
        **own | counts,
    )


def mean_hops(endpoints: int, *levels: tuple[int, float]) -> float:
    """Switches passed over all pairs; levels: (cards joined, hops inside), narrow first."""
    joined, hops = np.array(levels).T
    return np.diff((joined - 1) / max(endpoints - 1, 1), prepend=0) @ hops


def _even(least: int, uplinks: int) -> int:
    """Smallest count of at least `least` over which a switch's uplinks share out evenly; `least`
    where none does."""
    return next((s for s in range(max(least, 1), uplinks + 1) if uplinks % s == 0), max(least, 1))


def _leaves(endpoints: int, down: int, rails: int) -> int:
    """First-tier switches; with rails, each unit of `down` nodes has one a rail."""
    nodes = ceil(endpoints / rails)
    return ceil(endpoints / down) if rails == 1 or nodes <= down else rails * ceil(nodes / down)


def clos(
    endpoints: int,
    radix: int,
    rate: float,
    *,
    planes: int = 1,
    rails: int = 1,
    oversubscription: float = 1.0,
    leaf_ratio: float = 1.0,
    tiers: int | None = None,
    kind: str = "fat-tree",
    leaf_down: float = inf,
) -> Topology:
    """Fat tree of as few tiers as the radix allows (1 to 3), or of so many.

    Non-blocking: one tier N <= k; two tiers N <= k^2/2 with 2N/k leaves and N/k spines, 2N cables,
    3 hops; three tiers N <= k^3/4 with 5N/k switches, 3N cables, 5 hops. Spines are rounded up
    until every leaf's uplinks share out evenly over them: DGX SuperPODs of 3 and of 4 x 576 have 16
    and 18 where N/k is 12 and 16. Oversubscription r is taken at the top tier: N/r links up,
    bisection N/(2r); `leaf_ratio` the same at the leaves, on top. planes: so many copies, each
    joining all N (cards of several ports); rails: cards of a node go to different leaves;
    leaf_down: the most cards below a leaf.
    Al-Fares et al. 2008; Leiserson 1985. Raises ValueError beyond the reach.
    """
    half = radix // 2
    r = oversubscription * leaf_ratio
    down, up = leaf_ports(radix, leaf_ratio, leaf_down)
    reach = {1: min(radix, leaf_down), 2: radix * min(half, down), 3: radix * half * down}
    tiers = tiers or next((t for t in (1, 2, 3) if endpoints <= reach[t]), 0)
    if not tiers or endpoints > reach[tiers]:
        raise ValueError(
            f"{endpoints} cards are beyond three tiers of {radix} ports ({reach[3]:,})"
        )
    spine = core = over = 0
    if tiers == 1:
        down = endpoints
        up = 0
    elif tiers == 2:
        down, up = leaf_ports(radix, r, leaf_down)
    leaf = _leaves(endpoints, down, rails)
    uplinks = leaf * up
    unit = min(endpoints, down * rails)
    cables = {"card to leaf": endpoints}
    ports = {"leaf": used_ports(radix, down, up)}
    levels = ((unit, 1),)
    pod = endpoints if r == 1 else unit
    if tiers == 2:
        spine = _even(ceil(uplinks / radix), up)
    elif tiers == 3:
        pods = ceil(leaf / half)
        spine = pods * _even(ceil(leaf / pods * up / half), up)
        over = ceil(uplinks * leaf_ratio / r)
        core = ceil(over / radix)
        levels = (unit, 1), (half * down, 3)
        pod = pod if r == 1 or leaf_ratio > 1 else half * down
    if tiers > 1:
        cables["leaf to spine"] = uplinks
        ports["spine"] = used_ports(radix, ceil(uplinks / spine), ceil(over / spine))
    if tiers > 2:
        cables["spine to core"] = over
        ports["core"] = used_ports(radix, ceil(over / core))
    return switched(
        "one switch" if tiers == 1 else kind,
        endpoints,
        radix,
        rate,
        r,
        *levels,
        (endpoints, 2 * tiers - 1),
        planes=planes,
        tiers=tiers,
        leaf=leaf * planes,
        spine=spine * planes,
        core=core * planes,
        cables={name: n * planes for name, n in cables.items()},
        pod_endpoints=pod,
        reach_endpoints=reach[tiers],
        ports=ports,
        source="Al-Fares et al. 2008; DGX SuperPOD reference architectures "
        "(catalogue topologies.csv)",
    )


def rail_only(nodes: int, rails: int, radix: int, rate: float) -> Topology:
    """One network per rail and no switch between rails: rank i of every node reaches rank i of the
    others; the rest goes over NVLink.

    rails x clos(nodes); reach k^2/2 nodes in two tiers, so 16,384 devices of 8 a node with 64
    ports. Wang et al., arXiv 2307.12169: 38 to 77 % less network cost, all-to-all 8.2 to 11.2 %
    longer.
    """
    one = clos(nodes, radix, rate)
    return replace(
        copies(one, rails),
        kind="rail-only",
        planes=rails,
        bisection_bytes_per_s=one.bisection_bytes_per_s * rails,
        unit_endpoints=one.unit_endpoints * rails,
        pod_endpoints=nodes * rails,
        source="arXiv 2307.12169",
    )


def pods(
    endpoints: int,
    pod_endpoints: int,
    radix: int,
    rate: float,
    oversubscription: float,
    *,
    rails: int = 1,
    leaf_down: float = inf,
) -> Topology:
    """Pods of full bisection joined by a tier that is oversubscribed r : 1.

    Each pod is a two-tier tree whose spines also have pod/r ports up, the last pod as large as what
    is left: N/down leaves, at least pod (1 + 1/r) / k spines a pod, rounded up as in `clos` where
    the uplinks of a leaf share out evenly over them; N/(r k) core.
    Meta's 24K RoCE cluster: 16 a leaf (a rack), 3,072 a pod, eight pods, r = 7 (arXiv 2407.21783,
    section 3.3.1). A pod beyond two tiers is a three-tier tree whose top has the ports up.
    bisection N rate / (2r).
    """
    down = leaf_ports(radix, 1, leaf_down)[0]
    r = oversubscription
    sizes = [min(pod_endpoints, endpoints - first) for first in range(0, endpoints, pod_endpoints)]
    over = sum(ceil(size / r) for size in sizes)
    core = ceil(over / radix)
    deep = 3
    tiers = 3
    if pod_endpoints <= radix * down:
        leaf = _leaves(endpoints, down, rails)
        spine = sum(_even(ceil((size + ceil(size / r)) / radix), down) for size in sizes)
        joined = {"leaf to spine": leaf * down}
    else:
        inner = clos(pod_endpoints, radix, rate, rails=rails, tiers=3, leaf_down=leaf_down)
        top = ceil((pod_endpoints + ceil(pod_endpoints / r)) / radix)
        leaf = len(sizes) * inner.leaf
        spine = len(sizes) * (inner.spine + top)
        joined = {"inside pods": len(sizes) * (inner.all_cables - pod_endpoints)}
        deep = inner.hops
        tiers = inner.tiers + 1
    return switched(
        "pods",
        endpoints,
        radix,
        rate,
        r,
        (min(endpoints, down * rails), 1),
        (pod_endpoints, deep),
        (endpoints, deep + 2),
        tiers=tiers,
        leaf=leaf,
        spine=spine,
        core=core,
        cables={"card to leaf": endpoints, **joined, "spine to core": over},
        reach_endpoints=inf,
        ports={"leaf": used_ports(radix, down, down), "core": used_ports(radix, ceil(over / core))},
        source="arXiv 2407.21783, section 3.3.1",
    )


def dragonfly_reach(radix: int) -> int:
    """Cards of the largest balanced dragonfly: p a (a h + 1), 262,656 for 64 ports."""
    a = radix // 2
    return (radix // 4) * a * (a * (radix // 4) + 1)


def dragonfly(endpoints: int, radix: int, rate: float) -> Topology:
    """Balanced dragonfly: p = h = k/4 cards and global links a router, a = k/2 routers a group, all
    joined; at most a h + 1 groups.

    N = p a g, up to k^4/64 about: 262,656 for 64 ports. Cables: g a (a-1)/2 inside groups, g a h/2
    between. Bisection: the links between halves of the groups, g^2/4 pairs with all global links in
    use; half of what the cards send, and 1/(g-1) of it between two groups under minimal routing
    alone. A minimal route has three links between routers, so it passes four. Kim et al. 2008.
    """
    p = radix // 4
    a = radix // 2
    h = radix // 4
    groups = ceil(endpoints / (p * a))
    reach = dragonfly_reach(radix)
    if endpoints > reach:
        raise ValueError(f"{endpoints} cards are beyond a dragonfly of {radix} ports ({reach:,})")
    many = groups > 1
    routers = groups * a if many else ceil(endpoints / p)
    return switched(
        "dragonfly",
        endpoints,
        radix,
        rate,
        1 / min(1.0, half_of_groups(groups)),
        (p, 1),
        (min(p * a, endpoints), 2),
        (endpoints, 3.5),
        tiers=1,
        leaf=routers,
        cables={
            "card to router": endpoints,
            "inside groups": routers * ((a if many else routers) - 1) // 2,
            "between groups": groups * a * h // 2 if many else 0,
        },
        hops=4 if many else 2,
        reach_endpoints=reach,
        ports={"router": used_ports(radix, p, a - 1 + h)},
        source="Kim et al. 2008, ISCA",
    )


def half_of_groups(groups: int) -> float:
    """Links between halves of the groups over what half of the cards send: g / (2 (g - 1))."""
    return groups / (groups - 1) / 2 if groups > 1 else 1.0


def dragonfly_plus(endpoints: int, radix: int, rate: float) -> Topology:
    """Dragonfly+: groups of k/2 leaves and k/2 spines, (k/2)^2 cards each; the spines' other half
    are global links.

    Up to (k/2)^2 + 1 groups: 1,049,600 cards for 64 ports, at 4 switches. Cables: (k/2)^2 in a
    group, half as many global ones a group. Between halves: half of what the cards send, times
    g/(g-1). Shpiner et al. 2017.
    """
    half = radix // 2
    size = half * half
    groups = ceil(endpoints / size)
    reach = size * (size + 1)
    if endpoints > reach:
        raise ValueError(f"{endpoints} cards are beyond a dragonfly+ of {radix} ports ({reach:,})")
    if groups == 1:
        return clos(endpoints, radix, rate, kind="dragonfly+" if endpoints > radix else "fat-tree")
    ports = used_ports(radix, half, half)
    return switched(
        "dragonfly+",
        endpoints,
        radix,
        rate,
        1 / min(1.0, half_of_groups(groups)),
        (half, 1),
        (size, 3),
        (endpoints, 4),
        tiers=2,
        leaf=groups * half,
        spine=groups * half,
        cables={
            "card to leaf": endpoints,
            "leaf to spine": groups * size,
            "between groups": groups * size // 2,
        },
        reach_endpoints=reach,
        ports={"leaf": ports, "spine": ports},
        source="Shpiner et al. 2017, HiPINEB",
    )


def joined(*networks: Topology) -> Topology:
    """Networks that share no link, one a site: counts add up; reach, hops, bisection remain those
    of the largest."""
    counts = ("endpoints", "leaf", "spine", "core", "copper_cables", "reach_endpoints", "circuits")
    names = dict.fromkeys(name for t in networks for name in t.cables)
    return replace(
        max(networks, key=lambda t: t.endpoints),
        cables={name: sum(t.cables.get(name, 0) for t in networks) for name in names},
        **{name: sum(getattr(t, name) for t in networks) for name in counts},
    )


def copies(t: Topology, n: int) -> Topology:
    """n such networks."""
    return joined(*(t,) * n)


def near_cube(chips: int, dimensions: int = 3) -> tuple:
    """Sides of the most compact torus of so many chips, each a multiple of 4 where that is
    possible."""
    unit = 4 if chips % 4**dimensions == 0 else 1
    return tuple(unit * s for s in _sides(chips // unit**dimensions, dimensions))


def _sides(n: int, dimensions: int) -> tuple:
    if dimensions == 1:
        return (n,)
    options = [
        sorted((a, *_sides(n // a, dimensions - 1)))
        for a in range(1, n + 1)
        if n % a == 0 and a**dimensions <= n
    ]
    return tuple(min(options, key=lambda o: (o[-1], o)))


def torus(sides, link_bytes_per_s: float, sharing: int = 1) -> Topology:
    """Torus of those sides; three-dimensional ones are cubes of 4 x 4 x 4 in copper, joined by
    optical circuit switches, which `sharing` such slices of one pod share.

    Links: d a chip (each shared by two: 2d ports). A cube has 6 faces of 16 links, 96 fibres;
    opposite faces of one position meet at the same switch, so 48 switches of 2 x cubes ports join a
    pod: TPU v4's 64 cubes fill 128 of 136. Larger pods count as many more switches of that size;
    wider ones would need fewer. Transceivers: 96 a cube, 1.5 a chip.
    Bisection (one direction) 2 N / longest side x link, both halves of the wrap-around: 57.6 TB/s
    for v5p's 16 x 20 x 28 at 90 GB/s. Hops: half of each side. Jouppi et al. 2023, arXiv
    2304.01433.
    """
    n = prod(sides)
    d = len(sides)
    longest = max(sides)
    whole = d == 3 and all(s % 4 == 0 for s in sides)
    cubes = n // 64 if whole else 0
    joined = cubes > 1
    fibres = 96 * cubes
    taken = 2 * cubes * sharing
    wide = ceil(taken / CIRCUIT_PORTS)
    links = sum(n if s > 2 else n // 2 for s in sides if s > 1)
    copper = links - fibres // 2 if joined else links
    own = {"inside cubes": copper, "cube to circuit switch": fibres}
    return Topology(
        kind="torus",
        endpoints=n,
        radix=2 * d,
        tiers=1,
        leaf=0,
        cables=own if joined else {"chip to chip": links},
        copper_cables=copper,
        port_bytes_per_s=link_bytes_per_s,
        bisection_bytes_per_s=2 * n / longest * link_bytes_per_s if longest > 1 else 0.0,
        hops=sum(s // 2 for s in sides),
        mean_hops=sum(s / 4 for s in sides),
        unit_endpoints=64 if whole else n,
        pod_endpoints=n,
        reach_endpoints=inf if d == 3 else 256,
        ports={"circuit switch": used_ports(CIRCUIT_PORTS * wide, taken)} if joined else {},
        source="arXiv 2304.01433; jax-ml/scaling-book tpus.md",
        circuits=48 * wide if joined else 0,
    )
