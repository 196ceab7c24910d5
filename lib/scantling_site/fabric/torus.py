"""Tori of chips that need no switch, and the optical circuit switches that join their cubes."""

from collections.abc import Sequence
from math import ceil, inf, prod

from .topology import Topology, used_ports

CIRCUIT_PORTS = 128  # of an optical circuit switch
CUBE = 64  # chips: 4 x 4 x 4 in copper
FIBRES = 96  # of a cube: six faces of 16 links
CIRCUITS = 48  # optical switches of a pod: opposite faces of one position share one


def near_cube(chips: int, dimensions: int = 3) -> tuple[int, ...]:
    """Sides of the most compact torus of so many chips, each a multiple of 4 where that is
    possible."""
    unit = 4 if chips % 4**dimensions == 0 else 1
    return tuple(unit * s for s in _sides(chips // unit**dimensions, dimensions))


def _sides(n: int, dimensions: int) -> tuple[int, ...]:
    if dimensions == 1:
        return (n,)
    options = [
        sorted((a, *_sides(n // a, dimensions - 1)))
        for a in range(1, n + 1)
        if n % a == 0 and a**dimensions <= n
    ]
    compact = min(options, key=lambda sides: (sides[-1], sides))
    return tuple(compact)


def torus(sides: Sequence[int], link_bytes_per_s: float, sharing: int = 1) -> Topology:
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
    cubes = n // CUBE if whole else 0
    links = sum(n if s > 2 else n // 2 for s in sides if s > 1)
    copper = links
    cables = {"chip to chip": links}
    ports = {}
    circuits = 0
    if cubes > 1:
        fibres = FIBRES * cubes
        used = 2 * cubes * sharing
        wide = ceil(used / CIRCUIT_PORTS)
        copper = links - fibres // 2
        cables = {"inside cubes": copper, "cube to circuit switch": fibres}
        ports = {"circuit switch": used_ports(CIRCUIT_PORTS * wide, used)}
        circuits = CIRCUITS * wide
    return Topology(
        kind="torus",
        endpoints=n,
        radix=2 * d,
        tiers=1,
        leaf=0,
        cables=cables,
        copper_cables=copper,
        port_bytes_per_s=link_bytes_per_s,
        bisection_bytes_per_s=2 * n / longest * link_bytes_per_s if longest > 1 else 0.0,
        hops=sum(s // 2 for s in sides),
        mean_hops=sum(s / 4 for s in sides),
        unit_endpoints=CUBE if whole else n,
        pod_endpoints=n,
        reach_endpoints=inf if d == 3 else 256,
        ports=ports,
        source="arXiv 2304.01433; jax-ml/scaling-book tpus.md",
        circuits=circuits,
    )
