"""Groups of switches joined directly: dragonfly and dragonfly+."""

from math import ceil

from .topology import Topology, switched, used_ports
from .trees import CARD_TO_LEAF, LEAF_TO_SPINE, clos

BETWEEN_GROUPS = "between groups"


def dragonfly_reach(radix: int) -> int:
    """Cards of the largest balanced dragonfly: p a (a h + 1), 262,656 for 64 ports."""
    a = radix // 2
    return (radix // 4) * a * (a * (radix // 4) + 1)


def dragonfly(endpoints: int, radix: int, rate: float, narrowing: float = 1.0) -> Topology:
    """Balanced dragonfly: p = h = k/4 cards and global links a router, a = k/2 routers a group, all
    joined; at most a h + 1 groups. With `narrowing` only so few of the global links are laid.

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
        between(groups, narrowing),
        (p, 1),
        (min(p * a, endpoints), 2),
        (endpoints, 3.5),
        tiers=1,
        leaf=routers,
        cables={
            "card to router": endpoints,
            "inside groups": routers * ((a if many else routers) - 1) // 2,
            BETWEEN_GROUPS: ceil(groups * a * h / 2 / narrowing) if many else 0,
        },
        hops=4 if many else 2,
        reach_endpoints=reach,
        ports={"router": used_ports(radix, p, a - 1 + ceil(h / narrowing))},
        source="Kim et al. 2008, ISCA",
    )


def between(groups: int, narrowing: float) -> float:
    """What half of the cards send over what the links between the groups carry; 1 in one group."""
    return narrowing / min(1.0, half_of_groups(groups)) if groups > 1 else 1.0


def half_of_groups(groups: int) -> float:
    """Links between halves of the groups over what half of the cards send: g / (2 (g - 1))."""
    return groups / (groups - 1) / 2 if groups > 1 else 1.0


def dragonfly_plus_reach(radix: int) -> int:
    """Cards of the largest dragonfly+: (k/2)^2 of each of (k/2)^2 + 1 groups."""
    size = (radix // 2) ** 2
    return size * (size + 1)


def dragonfly_plus(endpoints: int, radix: int, rate: float, narrowing: float = 1.0) -> Topology:
    """Dragonfly+: groups of k/2 leaves and k/2 spines, (k/2)^2 cards each; the spines' other half
    are global links, of which `narrowing` leaves so few.

    Up to (k/2)^2 + 1 groups: 1,049,600 cards for 64 ports, at 4 switches. Cables: (k/2)^2 in a
    group, half as many global ones a group. Between halves: half of what the cards send, times
    g/(g-1). Shpiner et al. 2017.
    """
    half = radix // 2
    size = half * half
    groups = ceil(endpoints / size)
    reach = dragonfly_plus_reach(radix)
    if endpoints > reach:
        raise ValueError(f"{endpoints} cards are beyond a dragonfly+ of {radix} ports ({reach:,})")
    if groups == 1:
        return clos(endpoints, radix, rate, kind="dragonfly+" if endpoints > radix else "fat-tree")
    return switched(
        "dragonfly+",
        endpoints,
        radix,
        rate,
        between(groups, narrowing),
        (half, 1),
        (size, 3),
        (endpoints, 4),
        tiers=2,
        leaf=groups * half,
        spine=groups * half,
        cables={
            CARD_TO_LEAF: endpoints,
            LEAF_TO_SPINE: groups * size,
            BETWEEN_GROUPS: ceil(groups * size / 2 / narrowing),
        },
        reach_endpoints=reach,
        ports={
            "leaf": used_ports(radix, half, half),
            "spine": used_ports(radix, half, ceil(half / narrowing)),
        },
        source="Shpiner et al. 2017, HiPINEB",
    )
