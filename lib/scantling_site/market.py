"""What the market has for the file system and the object store of a design: the catalogue's stores
judged piece by piece."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf
from typing import TypedDict

from scantling import catalogue
from scantling.base.records import Known, Lines, Record, record
from scantling.base.show import several, usd
from scantling.catalogue.rows import Storage
from scantling.design.cluster import Cluster

from .job_site import Site

TIB = 2.0**40
MONTH_DAYS = 365.25 / 12
CLOUDS = ("AWS", "GCP", "Azure", "OCI")
SELLS_STORES = ("AWS", "GCP", "Azure")  # clouds whose stores the catalogue has
NO_STORE = ("local", "requirement", "block ro")  # kinds that are no store of a tier
ELASTIC = ("object", "cloud parallel fs")  # kinds of a capacity that nobody states
FILE_SYSTEM = "file system"
OBJECT_STORE = "object store"
NEARLY = 1 - 1e-9


class Miss(TypedDict):
    """A need that a store does not meet."""

    what: str
    needed: float
    has: float
    short_by: float  # needed / has


@record
class Candidate(Record):
    """One store of the catalogue against the needs of the file system or the object store."""

    id: str
    name: str
    kind: str
    tier: str
    # a cloud (beside its own machines), makers (to anyone), empty: built by its operator, for
    # comparison
    sold_by: str
    # sold to this cluster: by its own cloud where the design names one, else by anyone
    within_reach: bool
    pieces: Known  # to buy where it is sold by the piece, else None
    piece: str
    write_bytes_per_s: Known
    read_bytes_per_s: Known
    capacity_bytes: Known
    meets: bool
    misses: tuple[Miss, ...]
    unknown: Lines  # figures that nobody has published: not counted as misses
    usd_per_month: Known
    usd_per_run: Known
    source: str
    verified: str  # text, secondary, derived or memory: how the catalogue had the rates

    @property
    def many(self) -> str:
        """How many pieces have to be bought, in brackets."""
        if self.pieces is None:
            return ""
        plural = "TiB" if self.piece == "TiB" else ""
        return f" ({several(int(self.pieces), self.piece, plural)})"


def known(value: Known) -> Known:
    """A figure that somebody has published, None for one that is nothing or not a number."""
    return value if value is not None and value > 0 else None


def provider_of(cluster: Cluster) -> str:
    """The cloud whose machines or fabric a design names (AWS, GCP, Azure, OCI); empty where it
    names none."""
    node = catalogue.nodes().get(cluster.node)
    if node is not None and node.provider in CLOUDS:
        return node.provider
    return catalogue.fabric(cluster.scale_out).provider


def candidates(s: Site, demands: Mapping[str, Mapping[str, float]]) -> list[Candidate]:
    """The catalogue's stores against the demands (tier -> write, read, capacity) of one site, best
    first."""
    judged = (_candidate(s, store, demands) for store in catalogue.storages().values())
    return sorted(
        (c for c in judged if c is not None),
        key=lambda c: (
            c.tier,
            not c.within_reach,
            not c.meets,
            len(c.unknown),
            inf if c.usd_per_month is None else c.usd_per_month,
        ),
    )


def _candidate(
    s: Site, store: Storage, demands: Mapping[str, Mapping[str, float]]
) -> Candidate | None:
    """One store judged; None for what is no store of a tier, or has no published rate."""
    if store.kind in NO_STORE:
        return None
    tier = OBJECT_STORE if store.kind == "object" else FILE_SYSTEM
    published = _published(store)
    if tier == FILE_SYSTEM and not (published["write"] or published["read"]):
        return None
    demand = demands[tier]
    has = {what: published[what] for what in demand}
    unknown = [
        what
        for what, value in has.items()
        if value is None and not (what == "capacity" and store.kind in ELASTIC)
    ]
    pieces = None
    if store.scope in ("appliance", "TiB"):
        pieces = _pieces(demand, has)
        has = {what: value and value * pieces for what, value in has.items()}
    misses = _misses(demand, has)
    rated = tier == OBJECT_STORE or not ("write" in unknown or "read" in unknown)
    capacity = demand["capacity"]
    if store.scope == "TiB" and pieces is not None:
        capacity = pieces * TIB
    price = known(store.usd_per_gb_month)
    month = price and capacity / 1e9 * price
    return Candidate(
        id=store.id,
        name=store.name,
        kind=store.kind,
        tier=tier,
        sold_by=store.sold_by,
        within_reach=_within_reach(s.cluster, store),
        pieces=pieces,
        piece="" if pieces is None else store.scope,
        write_bytes_per_s=has.get("write"),
        read_bytes_per_s=has.get("read"),
        capacity_bytes=has.get("capacity"),
        meets=not misses and rated,
        misses=misses,
        unknown=tuple(unknown),
        usd_per_month=month,
        usd_per_run=month and month * s.run.days / MONTH_DAYS,
        source=store.source,
        verified=store.verified,
    )


def _pieces(demand: Mapping[str, float], has: Mapping[str, Known]) -> float:
    """Pieces of a store, each with those figures, until every demand is met."""
    return float(ceil(max(demand[what] / value for what, value in has.items() if value)))


def _misses(demand: Mapping[str, float], has: Mapping[str, Known]) -> tuple[Miss, ...]:
    """Demands beyond what a store has."""
    return tuple(
        Miss(what=what, needed=demand[what], has=value, short_by=demand[what] / value)
        for what, value in has.items()
        if value and value < demand[what] * NEARLY
    )


def _within_reach(cluster: Cluster, store: Storage) -> bool:
    """Whether a store is sold to this cluster."""
    provider = provider_of(cluster)
    if provider in SELLS_STORES:
        return store.sold_by == provider
    return bool(store.sold_by)


def _published(store: Storage) -> dict[str, Known]:
    """Rates and size of a store, or of one piece of it; None where nobody has published one."""
    read = known(store.total_read_bytes_per_s)
    by_size = store.scope == "TiB"
    return {
        "write": known(store.total_write_bytes_per_s) or (read if by_size else None),
        "capacity": TIB if by_size else known(store.capacity_bytes),
        "read": read,
    }


def offers(stores: Sequence[Candidate], provider: str) -> Iterator[str]:
    """The first store to rent and to buy of each tier."""
    for tier in (FILE_SYSTEM, OBJECT_STORE):
        good = [c for c in stores if c.tier == tier and c.meets and c.within_reach]
        bought = [c for c in good if c.sold_by == "makers"]
        rented = [c for c in good if c.usd_per_month is not None and c not in bought]
        if rented:
            c = min(rented, key=lambda c: c.usd_per_month or 0.0)
            beside = "" if provider else f", beside machines of {c.sold_by}"
            yield (
                f"{c.tier}: {c.name} is the cheapest priced one that meets every need, "
                f"{usd(c.usd_per_month)} a month{c.many}{beside}"
            )
        if bought:
            c = bought[0]
            recalled = ""
            if c.verified == "memory":
                recalled = "; its rates are from recall, ask for them in writing"
            yield (
                f"{c.tier}: to buy, {c.name} meets every need whose figure is published{c.many}; "
                f"makers publish no price{recalled}"
            )
        if good and not rented and not bought:
            c = good[0]
            yield f"{c.tier}: {c.name} meets every need{c.many}; no price is published"
