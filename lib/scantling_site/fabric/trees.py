"""Networks of switches in tiers: fat trees, one network a rail, oversubscribed pods."""

from dataclasses import replace
from math import ceil, inf

from scantling.base.records import record
from scantling.catalogue.packet_switches import leaf_ports

from .topology import Level, Ports, Topology, copies, switched, used_ports

CARD_TO_LEAF = "card to leaf"
LEAF_TO_SPINE = "leaf to spine"
SPINE_TO_CORE = "spine to core"


def _even(least: int, uplinks: int) -> int:
    """Smallest count of at least `least` over which a switch's uplinks share out evenly; `least`
    where none does."""
    return next((s for s in range(max(least, 1), uplinks + 1) if uplinks % s == 0), max(least, 1))


def _leaves(endpoints: int, down: int, rails: int) -> int:
    """First-tier switches; with rails, each unit of `down` nodes has one a rail."""
    nodes = ceil(endpoints / rails)
    if rails == 1 or nodes <= down:
        return ceil(endpoints / down)
    return rails * ceil(nodes / down)


@record
class _Tiers:
    """Counts of one plane of a fat tree."""

    leaf: int
    spine: int = 0
    core: int = 0
    cables: dict[str, int]
    ports: dict[str, Ports]
    levels: tuple[Level, ...]  # below the whole
    pod: int  # cards under full bisection


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
    if tiers == 1:
        kind = "one switch"
        counts = _one_switch(endpoints, radix, rails)
    elif tiers == 2:
        counts = _two_tiers(endpoints, radix, rails, r, leaf_down)
    else:
        counts = _three_tiers(endpoints, radix, rails, leaf_ratio, r, leaf_down)
    return switched(
        kind,
        endpoints,
        radix,
        rate,
        r,
        *counts.levels,
        (endpoints, 2 * tiers - 1),
        planes=planes,
        tiers=tiers,
        leaf=counts.leaf * planes,
        spine=counts.spine * planes,
        core=counts.core * planes,
        cables={name: n * planes for name, n in counts.cables.items()},
        pod_endpoints=endpoints if r == 1 else counts.pod,
        reach_endpoints=reach[tiers],
        ports=counts.ports,
        source="Al-Fares et al. 2008; DGX SuperPOD reference architectures "
        "(catalogue topologies.csv)",
    )


def _one_switch(endpoints: int, radix: int, rails: int) -> _Tiers:
    return _Tiers(
        leaf=_leaves(endpoints, endpoints, rails),
        cables={CARD_TO_LEAF: endpoints},
        ports={"leaf": used_ports(radix, endpoints)},
        levels=((endpoints, 1),),
        pod=endpoints,
    )


def _two_tiers(endpoints: int, radix: int, rails: int, r: float, leaf_down: float) -> _Tiers:
    down, up = leaf_ports(radix, r, leaf_down)
    leaf = _leaves(endpoints, down, rails)
    uplinks = leaf * up
    spine = _even(ceil(uplinks / radix), up)
    unit = min(endpoints, down * rails)
    return _Tiers(
        leaf=leaf,
        spine=spine,
        cables={CARD_TO_LEAF: endpoints, LEAF_TO_SPINE: uplinks},
        ports={
            "leaf": used_ports(radix, down, up),
            "spine": used_ports(radix, ceil(uplinks / spine)),
        },
        levels=((unit, 1),),
        pod=unit,
    )


def _three_tiers(
    endpoints: int, radix: int, rails: int, leaf_ratio: float, r: float, leaf_down: float
) -> _Tiers:
    half = radix // 2
    down, up = leaf_ports(radix, leaf_ratio, leaf_down)
    leaf = _leaves(endpoints, down, rails)
    uplinks = leaf * up
    pods = ceil(leaf / half)
    spine = pods * _even(ceil(leaf / pods * up / half), up)
    over = ceil(uplinks * leaf_ratio / r)
    core = ceil(over / radix)
    unit = min(endpoints, down * rails)
    return _Tiers(
        leaf=leaf,
        spine=spine,
        core=core,
        cables={CARD_TO_LEAF: endpoints, LEAF_TO_SPINE: uplinks, SPINE_TO_CORE: over},
        ports={
            "leaf": used_ports(radix, down, up),
            "spine": used_ports(radix, ceil(uplinks / spine), ceil(over / spine)),
            "core": used_ports(radix, ceil(over / core)),
        },
        levels=((unit, 1), (half * down, 3)),
        pod=unit if leaf_ratio > 1 else half * down,
    )


def rail_only(
    nodes: int,
    rails: int,
    radix: int,
    rate: float,
    oversubscription: float = 1.0,
    leaf_ratio: float = 1.0,
) -> Topology:
    """One network per rail and no switch between rails: rank i of every node reaches rank i of the
    others; the rest goes over NVLink. Each rail narrows as a tree does (`clos`).

    rails x clos(nodes); reach k^2/2 nodes in two tiers, so 16,384 devices of 8 a node with 64
    ports. Wang et al., arXiv 2307.12169: 38 to 77 % less network cost, all-to-all 8.2 to 11.2 %
    longer.
    """
    one = clos(nodes, radix, rate, oversubscription=oversubscription, leaf_ratio=leaf_ratio)
    return replace(
        copies(one, rails),
        kind="rail-only",
        planes=rails,
        bisection_bytes_per_s=one.bisection_bytes_per_s * rails,
        unit_endpoints=one.unit_endpoints * rails,
        pod_endpoints=nodes * rails,
        source="arXiv 2307.12169",
    )


@record
class _PodTiers:
    """Counts inside the pods of a network."""

    leaf: int
    spine: int
    cables: dict[str, int]
    hops: float
    tiers: int  # with the one above


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
    if pod_endpoints <= radix * down:
        leaf = _leaves(endpoints, down, rails)
        inner = _PodTiers(
            leaf=leaf,
            spine=sum(_even(ceil((size + ceil(size / r)) / radix), down) for size in sizes),
            cables={LEAF_TO_SPINE: leaf * down},
            hops=3,
            tiers=3,
        )
    else:
        inner = _deep_pods(len(sizes), pod_endpoints, radix, rate, r, rails, leaf_down)
    return switched(
        "pods",
        endpoints,
        radix,
        rate,
        r,
        (min(endpoints, down * rails), 1),
        (pod_endpoints, inner.hops),
        (endpoints, inner.hops + 2),
        tiers=inner.tiers,
        leaf=inner.leaf,
        spine=inner.spine,
        core=core,
        cables={CARD_TO_LEAF: endpoints, **inner.cables, SPINE_TO_CORE: over},
        reach_endpoints=inf,
        ports={"leaf": used_ports(radix, down, down), "core": used_ports(radix, ceil(over / core))},
        source="arXiv 2407.21783, section 3.3.1",
    )


def _deep_pods(
    count: int, pod_endpoints: int, radix: int, rate: float, r: float, rails: int, leaf_down: float
) -> _PodTiers:
    """So many pods of three tiers each, whose top has the ports up."""
    one = clos(pod_endpoints, radix, rate, rails=rails, tiers=3, leaf_down=leaf_down)
    top = ceil((pod_endpoints + ceil(pod_endpoints / r)) / radix)
    return _PodTiers(
        leaf=count * one.leaf,
        spine=count * (one.spine + top),
        cables={"inside pods": count * (one.all_cables - pod_endpoints)},
        hops=one.hops,
        tiers=one.tiers + 1,
    )
