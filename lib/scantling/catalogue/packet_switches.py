"""The packet and optical switches that networks are built from (switches.csv)."""

from functools import cache
from math import ceil, inf

from ..base.records import Lines, Record, record
from .load import filled, indexed, rows

NEWEST = "sn5600"  # switch of a fabric for which the catalogue has none


@record
class Switch(Record):
    """One switch of catalogue/switches.csv; the rate of a port in bytes/s, None where light passes
    whatever its rate."""

    id: str
    name: str
    kind: str
    fabrics: Lines
    ports: int
    port_bytes_per_s: float
    latency_s: float
    max_w: float
    per_domain: int
    reduction: str
    source: str
    verified: str


@cache
def packet_switches() -> dict[str, Switch]:
    """All switches by id."""
    return indexed(filled(Switch, rows("switches"), ("date", "verified_except", "notes")))


def switch_for(fabric_id: str, kind: str = "packet") -> Switch | None:
    """The switch that carries a fabric; None where the catalogue has none."""
    return next(
        (s for s in packet_switches().values() if fabric_id in s.fabrics and s.kind == kind), None
    )


def switch_of(fabric_id: str) -> Switch:
    """The switch that networks of a fabric are built from."""
    return switch_for(fabric_id) or packet_switches()[NEWEST]


def radix_of(switch: Switch, rate: float) -> int:
    """Ports at the rate of a card: a port twice as fast splits in two."""
    # one where no rate is known
    return switch.ports * (2 if rate <= switch.port_bytes_per_s / 2 * 1.01 else 1)


def leaf_ports(radix: int, oversubscription: float, most: float = inf) -> tuple[int, int]:
    """(down, up) of a leaf's ports at r : 1, as many as fit, at most so many down: 32 and 32 of 64
    at 1 : 1, 48 and 12 at 4 : 1, 56 and 8 at 7 : 1."""
    up = max(1, int(radix / (oversubscription + 1)))
    down = int(min(up * oversubscription, radix - up, most))
    return down, ceil(down / oversubscription)
