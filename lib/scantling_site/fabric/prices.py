"""What the switches and cables of a network cost."""

from functools import cache

from scantling import catalogue
from scantling.base.records import Known, Record, record

from ..constants import CONSTANTS
from .topology import Topology

PRICED_AT = 50e9  # bytes/s of a port: 400 Gb/s


@record
class Prices(Record):
    """Dollars of network parts, per port and per cable with both its ends, at 400 Gb/s; other rates
    in proportion."""

    usd_per_port_400g: float
    usd_per_cable_400g: float
    date: str
    source: str
    basis: str


@cache
def prices() -> Prices:
    """The switch's dated price over its ports; the cable's from the all-in price of a two-tier
    cluster.

    cable = (8 to 13 %, middle 10.5 %, of the all-in price per device less the switches) / 2 cables
    per device. Check: a third tier then adds 2 switch ports and one cable a device, 2.9 k$, where
    the same source prints 2.4 k$ (51.6 against 49.2 k$).
    """
    one = {p.item: p for p in catalogue.prices(category="capex")}
    switch = one["ib-ndr-switch-64p"]
    port = switch.value / 64
    network = CONSTANTS.network_share * one["h100 cluster all-in"].value
    return Prices(
        usd_per_port_400g=port,
        usd_per_cable_400g=(network - 3 * port) / 2,
        date=switch.date,
        source=one["h100 8-GPU node"].source,
        basis=(
            "a two-tier cluster has 3 switch ports and 2 cables a device; its network is 8 to 13 % "
            "of the all-in price"
        ),
    )


def usd(t: Topology) -> Known:
    """Price of a network's switches, cables and transceivers; None for a torus, whose parts nobody
    sells alone."""
    if t.kind == "torus":
        return None
    ports = t.switches * t.radix * prices().usd_per_port_400g
    return (ports + t.all_cables * prices().usd_per_cable_400g) * t.port_bytes_per_s / PRICED_AT
