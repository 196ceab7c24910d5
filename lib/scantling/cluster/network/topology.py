"""Topologies as formulas: switches, cables, transceivers, bisection, ports, hops and reach of every
network that joins accelerators.

Counts are those of the published designs in catalogue/topologies.csv, which the tests hold them
against. k is the radix (ports of a
switch at the rate of a card), N the cards. Bandwidth one direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

from ...base.records import Record

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


@dataclass(frozen=True)
class Topology(Record):
    """Counts of one network. `cables` by what they join; a cable has two ends, each a transceiver
    unless it is copper."""

    kind: str
    endpoints: int  # cards; of a torus: chips
    radix: int
    planes: int  # networks that share no switch
    tiers: int
    oversubscription: float  # at the top, down over up
    leaf: int
    spine: int
    core: int
    cables: dict
    copper_cables: int
    port_bytes_per_s: float
    bisection_bytes_per_s: float  # the worst even cut, one direction
    hops: int  # switches passed, worst pair, minimal route
    mean_hops: float  # over pairs
    unit_endpoints: (
        int  # cards that reach each other over one switch (per plane or rail: nodes x rails)
    )
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
        """Optical ends: two a cable that is not copper."""
        return (
            2 * (self.all_cables - self.copper_cables)
            if self.kind != "torus"
            else self.all_cables - self.copper_cables
        )

    def as_dict(self) -> dict:
        return {
            **super().as_dict(),
            "switches": self.switches,
            "all_cables": self.all_cables,
            "transceivers": self.transceivers,
        }


def _even(least: int, uplinks: int) -> int:
    """Smallest count of at least `least` over which a switch's uplinks share out evenly; `least`
    where none does."""
    return next((s for s in range(max(least, 1), uplinks + 1) if uplinks % s == 0), max(least, 1))


def leaf_ports(radix: int, oversubscription: float) -> tuple[int, int]:
    """(down, up) of a leaf's ports at r : 1, as many as fit: 32 and 32 of 64 at 1 : 1, 48 and 12 at
    4 : 1, 56 and 8 at 7 : 1."""
    up = max(1, int(radix / (oversubscription + 1)))
    return min(int(up * oversubscription), radix - up), up


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
    tiers: int | None = None,
    kind: str = "fat-tree",
) -> Topology:
    """Fat tree of as few tiers as the radix allows (1 to 3), or of so many.

    Non-blocking: one tier N <= k; two tiers N <= k^2/2 with 2N/k leaves and N/k spines, 2N cables,
    3 hops; three tiers N <= k^3/4 with
    5N/k switches, 3N cables, 5 hops. Spines are rounded up until every leaf's uplinks share out
    evenly over them: DGX SuperPODs of 3 and
    of 4 x 576 have 16 and 18 where N/k is 12 and 16. Oversubscription r is taken at the top tier:
    N/r links up, bisection N/(2r).
    planes: so many copies, each joining all N (cards of several ports); rails: cards of a node go
    to different leaves.
    Al-Fares et al. 2008; Leiserson 1985. Raises ValueError beyond the reach.
    """
    half = radix // 2
    reach = {1: radix, 2: radix * half, 3: radix * half * half}
    tiers = tiers or next((t for t in (1, 2, 3) if endpoints <= reach[t]), 0)
    if not tiers or endpoints > reach[tiers]:
        raise ValueError(
            f"{endpoints} cards are beyond three tiers of {radix} ports ({reach[3]:,})"
        )
    r = max(oversubscription, 1.0)
    cables = {"card to leaf": endpoints}
    leaf, spine, core, unit, pod = 1, 0, 0, endpoints, endpoints
    ports = {"leaf": {"down": endpoints, "up": 0, "free": radix - endpoints}}
    near = far = 0.0
    if tiers == 2:
        down, up = leaf_ports(radix, r)
        leaf = _leaves(endpoints, down, rails)
        uplinks = leaf * up
        spine = _even(ceil(uplinks / radix), up)
        cables["leaf to spine"] = uplinks
        unit = min(endpoints, down * rails)
        near = (unit - 1) / max(endpoints - 1, 1)
        ports = {
            "leaf": {"down": down, "up": up, "free": radix - down - up},
            "spine": {
                "down": ceil(uplinks / spine),
                "up": 0,
                "free": radix - ceil(uplinks / spine),
            },
        }
        if r > 1:
            pod = unit
    elif tiers == 3:
        leaf = _leaves(endpoints, half, rails)
        pods = ceil(leaf / half)
        per_pod = _even(ceil(leaf / pods), half)
        spine = pods * per_pod
        cables["leaf to spine"] = leaf * half
        over = ceil(leaf * half / r)
        core = ceil(over / radix)
        cables["spine to core"] = over
        unit, pod = min(endpoints, half * rails), half * half
        near, far = (unit - 1) / (endpoints - 1), (pod - 1) / (endpoints - 1)
        ports = {
            "leaf": {"down": half, "up": half, "free": 0},
            "spine": {
                "down": ceil(leaf * half / spine),
                "up": ceil(over / spine),
                "free": radix - ceil(leaf * half / spine) - ceil(over / spine),
            },
            "core": {"down": ceil(over / core), "up": 0, "free": radix - ceil(over / core)},
        }
        if r == 1:
            pod = endpoints
    mean = (
        1.0
        if tiers == 1
        else near + 3 * (1 - near)
        if tiers == 2
        else near + 3 * (far - near) + 5 * (1 - far)
    )
    copies = {name: n * planes for name, n in cables.items()}
    return Topology(
        "one switch" if tiers == 1 else kind,
        endpoints,
        radix,
        planes,
        tiers,
        r,
        leaf * planes,
        spine * planes,
        core * planes,
        copies,
        0,
        rate,
        endpoints / 2 * rate * planes / r,
        2 * tiers - 1,
        mean,
        unit,
        pod,
        reach[tiers],
        ports,
        "Al-Fares et al. 2008; DGX SuperPOD reference architectures (catalogue topologies.csv)",
    )


def rail_only(nodes: int, rails: int, radix: int, rate: float) -> Topology:
    """One network per rail and no switch between rails: rank i of every node reaches rank i of the
    others; the rest goes over NVLink.

    rails x clos(nodes); reach k^2/2 nodes in two tiers, so 16,384 devices of 8 a node with 64
    ports. Wang et al., arXiv 2307.12169:
    38 to 77 % less network cost, all-to-all 8.2 to 11.2 % longer.
    """
    one = clos(nodes, radix, rate)
    return Topology(
        "rail-only",
        nodes * rails,
        radix,
        rails,
        one.tiers,
        1.0,
        one.leaf * rails,
        one.spine * rails,
        one.core * rails,
        {k: v * rails for k, v in one.cables.items()},
        0,
        rate,
        one.bisection_bytes_per_s * rails,
        one.hops,
        one.mean_hops,
        one.unit_endpoints * rails,
        nodes * rails,
        one.reach_endpoints * rails,
        one.ports,
        "arXiv 2307.12169",
    )


def pods(
    endpoints: int,
    pod_endpoints: int,
    radix: int,
    rate: float,
    oversubscription: float,
    *,
    rails: int = 1,
    leaf_down: int | None = None,
) -> Topology:
    """Pods of full bisection joined by a tier that is oversubscribed r : 1.

    Each pod is a two-tier tree whose spines also have pod/r ports up, the last pod as large as what
    is left: N/down leaves, at least
    pod (1 + 1/r) / k spines a pod, rounded up as in `clos` where the uplinks of a leaf share out
    evenly over them; N/(r k) core.
    Meta's 24K RoCE cluster: 16 a leaf (a rack), 3,072 a pod, eight pods, r = 7 (arXiv 2407.21783,
    section 3.3.1). A pod beyond two tiers
    is a three-tier tree whose top has the ports up. bisection N rate / (2r).
    """
    down = leaf_down or radix // 2
    sizes = [min(pod_endpoints, endpoints - first) for first in range(0, endpoints, pod_endpoints)]
    inner = (
        None
        if pod_endpoints <= radix * down
        else clos(pod_endpoints, radix, rate, rails=rails, tiers=3)
    )
    over = sum(ceil(size / oversubscription) for size in sizes)
    core = ceil(over / radix)
    if inner is None:
        leaf = _leaves(endpoints, down, rails)
        spine = sum(
            _even(ceil((size + ceil(size / oversubscription)) / radix), down) for size in sizes
        )
        cables = {"card to leaf": endpoints, "leaf to spine": leaf * down, "spine to core": over}
    else:
        whole = len(sizes)
        top = ceil((pod_endpoints + ceil(pod_endpoints / oversubscription)) / radix)
        leaf, spine = whole * inner.leaf, whole * (inner.spine + top)
        cables = {
            "card to leaf": endpoints,
            "inside pods": whole * (inner.all_cables - pod_endpoints),
            "spine to core": over,
        }
    unit = min(endpoints, down * (1 if leaf_down else rails))
    near, far = (unit - 1) / max(endpoints - 1, 1), (pod_endpoints - 1) / max(endpoints - 1, 1)
    deep = 3 if inner is None else inner.hops
    ports = {
        "leaf": {"down": down, "up": down, "free": max(radix - 2 * down, 0)},
        "core": {"down": ceil(over / core), "up": 0, "free": radix - ceil(over / core)},
    }
    return Topology(
        "pods",
        endpoints,
        radix,
        1,
        3 if inner is None else inner.tiers + 1,
        float(oversubscription),
        leaf,
        spine,
        core,
        cables,
        0,
        rate,
        endpoints / 2 * rate / oversubscription,
        deep + 2,
        near + deep * (far - near) + (deep + 2) * (1 - far),
        unit,
        pod_endpoints,
        inf,
        ports,
        "arXiv 2407.21783, section 3.3.1",
    )


def dragonfly_reach(radix: int) -> int:
    """Cards of the largest balanced dragonfly: p a (a h + 1), 262,656 for 64 ports."""
    p, a, h = radix // 4, radix // 2, radix // 4
    return p * a * (a * h + 1)


def dragonfly(endpoints: int, radix: int, rate: float) -> Topology:
    """Balanced dragonfly: p = h = k/4 cards and global links a router, a = k/2 routers a group, all
    joined; at most a h + 1 groups.

    N = p a g, up to k^4/64 about: 262,656 for 64 ports. Cables: g a (a-1)/2 inside groups, g a h/2
    between.
    Bisection: the links between halves of the groups, g^2/4 pairs with all global links in use;
    half of what the cards send, and 1/(g-1)
    of it between two groups under minimal routing alone. A minimal route has three links between
    routers, so it passes four. Kim et al. 2008.
    """
    p, a, h = radix // 4, radix // 2, radix // 4
    groups = ceil(endpoints / (p * a))
    most = a * h + 1
    if groups > most:
        raise ValueError(
            f"{endpoints} cards are beyond a dragonfly of {radix} ports ({most * p * a:,})"
        )
    routers = groups * a if groups > 1 else ceil(endpoints / p)
    between = groups * a * h // 2 if groups > 1 else 0
    cross = groups / (groups - 1) / 2 if groups > 1 else 1.0
    one, same = (p - 1) / max(endpoints - 1, 1), (min(p * a, endpoints) - 1) / max(endpoints - 1, 1)
    cables = {
        "card to router": endpoints,
        "inside groups": groups * a * (a - 1) // 2 if groups > 1 else routers * (routers - 1) // 2,
        "between groups": between,
    }
    return Topology(
        "dragonfly",
        endpoints,
        radix,
        1,
        1,
        max(1.0, 1 / cross),
        routers,
        0,
        0,
        cables,
        0,
        rate,
        endpoints / 2 * rate * min(1.0, cross),
        4 if groups > 1 else 2,
        one + 2 * (same - one) + 3.5 * (1 - same),
        p,
        min(p * a, endpoints),
        most * p * a,
        {"router": {"down": p, "up": a - 1 + h, "free": radix - (p + a - 1 + h)}},
        "Kim et al. 2008, ISCA",
    )


def dragonfly_plus(endpoints: int, radix: int, rate: float) -> Topology:
    """Dragonfly+: groups of k/2 leaves and k/2 spines, (k/2)^2 cards each; the spines' other half
    are global links.

    Up to (k/2)^2 + 1 groups: 1,049,600 cards for 64 ports, at 4 switches. Cables: (k/2)^2 in a
    group, half as many global ones a group.
    Between halves: half of what the cards send, times g/(g-1). Shpiner et al. 2017.
    """
    half = radix // 2
    size = half * half
    groups = ceil(endpoints / size)
    if groups > size + 1:
        raise ValueError(
            f"{endpoints} cards are beyond a dragonfly+ of {radix} ports ({size * (size + 1):,})"
        )
    if groups == 1:
        return (
            clos(endpoints, radix, rate, kind="dragonfly+")
            if endpoints > radix
            else clos(endpoints, radix, rate)
        )
    cross = groups / (groups - 1) / 2
    unit = half
    near, same = (unit - 1) / (endpoints - 1), (size - 1) / (endpoints - 1)
    return Topology(
        "dragonfly+",
        endpoints,
        radix,
        1,
        2,
        max(1.0, 1 / cross),
        groups * half,
        groups * half,
        0,
        {
            "card to leaf": endpoints,
            "leaf to spine": groups * size,
            "between groups": groups * size // 2,
        },
        0,
        rate,
        endpoints / 2 * rate * min(1.0, cross),
        4,
        near + 3 * (same - near) + 4 * (1 - same),
        unit,
        size,
        size * (size + 1),
        {
            "leaf": {"down": half, "up": half, "free": 0},
            "spine": {"down": half, "up": half, "free": 0},
        },
        "Shpiner et al. 2017, HiPINEB",
    )


def copies(t: Topology, n: int) -> Topology:
    """n such networks that share no link, one a site: counts times n; reach, hops and bisection
    remain those of one."""
    return (
        t
        if n == 1
        else replace(
            t,
            endpoints=n * t.endpoints,
            leaf=n * t.leaf,
            spine=n * t.spine,
            core=n * t.core,
            cables={k: n * v for k, v in t.cables.items()},
            copper_cables=n * t.copper_cables,
            reach_endpoints=n * t.reach_endpoints,
        )
    )


def near_cube(chips: int, dimensions: int = 3, step: int = 4) -> tuple[int, ...]:
    """Sides of the most compact torus of so many chips, each a multiple of `step` where that is
    possible."""
    best = None
    for unit in (step, 1):
        if best is None and chips % unit**dimensions == 0:
            best = tuple(unit * s for s in _sides(chips // unit**dimensions, dimensions))
    return best or (chips,)


def _sides(n: int, dimensions: int) -> tuple[int, ...]:
    if dimensions == 1:
        return (n,)
    options = [
        (a, *_sides(n // a, dimensions - 1))
        for a in range(1, n + 1)
        if n % a == 0 and a**dimensions <= n
    ]
    return min((tuple(sorted(o)) for o in options), key=lambda o: (max(o), o))


def torus(sides, link_bytes_per_s: float, *, cube: int = 4, ports: int = 128) -> Topology:
    """Torus of those sides; three-dimensional ones are cubes of 4 x 4 x 4 in copper, joined by
    optical circuit switches.

    Links: d a chip (each shared by two: 2d ports). A cube has 6 faces of 16 links, 96 fibres;
    opposite faces of one position meet at the
    same switch, so 48 switches of 2 x cubes ports join a pod: TPU v4's 64 cubes fill 128 of 136.
    Larger pods count as many more
    switches of that size; wider ones would need fewer. Transceivers: 96 a cube, 1.5 a chip.
    Bisection (one direction) 2 N / longest side x link, both halves of the wrap-around: 57.6 TB/s
    for v5p's 16 x 20 x 28 at 90 GB/s.
    Hops: half of each side. Jouppi et al. 2023, arXiv 2304.01433.
    """
    n, d = 1, len(sides)
    for s in sides:
        n *= s
    whole = d == 3 and all(s % cube == 0 for s in sides)
    cubes = n // cube**3 if whole else 0
    fibres = 6 * cube * cube * cubes
    links = sum(n if s > 2 else n // 2 for s in sides if s > 1)
    copper = links - fibres // 2
    hops = sum(s // 2 for s in sides)
    circuits = 3 * cube * cube * max(1, ceil(2 * cubes / ports)) if cubes > 1 else 0
    cables = (
        {"inside cubes": copper, "cube to circuit switch": fibres}
        if cubes > 1
        else {"chip to chip": links}
    )
    return Topology(
        "torus",
        n,
        2 * d,
        1,
        1,
        1.0,
        0,
        0,
        0,
        cables,
        copper if cubes > 1 else links,
        link_bytes_per_s,
        2 * n / max(sides) * link_bytes_per_s if max(sides) > 1 else 0.0,
        hops,
        sum(s / 4 for s in sides),
        cube**d if whole else n,
        n,
        inf if d == 3 else 256,
        {
            "circuit switch": {
                "down": 2 * cubes,
                "up": 0,
                "free": max(0, ports * max(1, ceil(2 * cubes / ports)) - 2 * cubes),
            }
        }
        if cubes > 1
        else {},
        "arXiv 2304.01433; jax-ml/scaling-book tpus.md",
        circuits,
    )
