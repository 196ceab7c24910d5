"""Counts of published networks (catalogue/topologies.csv)."""

from functools import cache
from typing import TypedDict

from scantling.catalogue.load import rows


class PublishedNetwork(TypedDict):
    """One published network; a count is None where its source prints none."""

    id: str
    name: str
    kind: str
    devices: int
    endpoints: int
    per_node: int | None
    radix: int | None
    planes: int | None
    oversubscription: int | None
    leaf: int | None
    spine: int | None
    core: int | None
    switches: int | None
    leaf_spine_cables: int | None
    spine_core_cables: int | None
    source: str
    date: str
    verified: str
    notes: str


@cache
def published() -> tuple[PublishedNetwork, ...]:
    """All of them, in the order of the table."""
    return tuple(
        PublishedNetwork(
            id=row["id"],
            name=row["name"],
            kind=row["kind"],
            devices=int(float(row["devices"])),
            endpoints=int(float(row["endpoints"])),
            per_node=_count(row["per_node"]),
            radix=_count(row["radix"]),
            planes=_count(row["planes"]),
            oversubscription=_count(row["oversubscription"]),
            leaf=_count(row["leaf"]),
            spine=_count(row["spine"]),
            core=_count(row["core"]),
            switches=_count(row["switches"]),
            leaf_spine_cables=_count(row["leaf_spine_cables"]),
            spine_core_cables=_count(row["spine_core_cables"]),
            source=row["source"],
            date=row["date"],
            verified=row["verified"],
            notes=row["notes"],
        )
        for row in rows("topologies")
    )


def _count(cell: str) -> int | None:
    return int(float(cell)) if cell else None
