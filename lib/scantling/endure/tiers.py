"""Tiers of copies: where each lives, which failures restore from it, what nested saves leave."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from ..base.columns import Column
from ..base.json import clean
from ..base.records import get, record
from ..catalogue.hardware import known_link
from ..design.cluster import Cluster
from .checkpoint import COMMIT_S, HOST_COPY_SHARE, LOAD_S, WIRE_SHARE, snapshot_stall_s
from .copies import Level
from .life import Life
from .stated import Section
from .storage import Rates

TIERS = ("l0", "l1", "l2", "l3")
OBJECTS_BYTES_PER_S = 100e9  # of an object store
SNAPSHOT_SHARE = 0.5  # of a host's memory: one copy is written while the next one is taken


@record
class Tier:
    """One place where copies live. Times in seconds, rates in bytes/s for the whole job, `survives`
    the largest domain whose loss it outlives."""

    id: str
    what: str
    survives: str
    stall_s: Column = 0.0
    durable_s: Column
    restore_s: Column
    write_bytes_per_s: Column
    read_bytes_per_s: Column
    bytes_per_copy: Column
    capacity_bytes: Column
    source: str

    def keeps(self) -> Column:
        """Whole copies that fit; nan where the store's capacity is not known."""
        return self.capacity_bytes // self.bytes_per_copy if self.bytes_per_copy else np.inf

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; None for what is unknown or unlimited."""
        row: dict[str, Any] = clean({**vars(self), "copies": self.keeps()})
        return row


def tiers(
    cluster: Cluster,
    checkpoint_bytes: Column,
    state_bytes_per_device: Column,
    store: Rates,
    stall_s: Column | None = None,
) -> tuple[Tier, Tier, Tier, Tier]:
    """Tiers L0 to L3 of one design: host snapshot, peer copy, parallel file system, object store.

    store : `storage.Rates` of the file system.  The stall is that of L0: what follows runs behind
    training. L1 sends each node's bytes to a neighbour outside its own domain over WIRE_SHARE of
    its scale-out rate and needs host memory for it. L2 and L3 as `transfer_s`; L3 copies from L2 at
    OBJECTS_BYTES_PER_S. Durable times count from the end of the stall.
    """
    nodes = cluster.nodes
    node_bytes = state_bytes_per_device * cluster.devices_per_node
    host_link = cluster.accelerator.host_link_bytes_per_s
    link = known_link(host_link) * HOST_COPY_SHARE
    wire = cluster.scale_out_bytes_per_s * cluster.devices_per_node * WIRE_SHARE
    written_s = COMMIT_S + checkpoint_bytes / store.write_bytes_per_s
    object_s = checkpoint_bytes / OBJECTS_BYTES_PER_S
    job = cluster.devices
    host = cluster.host_memory_bytes * nodes
    return (
        Tier(
            id="L0",
            what="snapshot in host memory",
            survives="process",
            stall_s=snapshot_stall_s(state_bytes_per_device, host_link)
            if stall_s is None
            else stall_s,
            durable_s=0.0,
            restore_s=state_bytes_per_device / link,
            write_bytes_per_s=link * job,
            read_bytes_per_s=link * job,
            bytes_per_copy=state_bytes_per_device * job,
            capacity_bytes=SNAPSHOT_SHARE * host,
            source="device-to-host copy over the host link",
        ),
        Tier(
            id="L1",
            what="copy in a peer's memory or NVMe, another domain",
            survives="rack",
            durable_s=node_bytes / wire,
            restore_s=node_bytes / wire,
            write_bytes_per_s=wire * nodes,
            read_bytes_per_s=wire * nodes,
            bytes_per_copy=state_bytes_per_device * job,
            capacity_bytes=max(SNAPSHOT_SHARE * host, cluster.nvme_bytes * nodes),
            source="GEMINI, SOSP'23; ByteRobust, arXiv 2509.16293 s6",
        ),
        Tier(
            id="L2",
            what="parallel file system",
            survives="pod",
            durable_s=written_s,
            restore_s=LOAD_S + checkpoint_bytes / store.read_bytes_per_s,
            write_bytes_per_s=store.write_bytes_per_s,
            read_bytes_per_s=store.read_bytes_per_s,
            bytes_per_copy=checkpoint_bytes,
            capacity_bytes=store.capacity_bytes,
            source="ByteCheckpoint, NSDI'25 Table 8, for the fixed part",
        ),
        Tier(
            id="L3",
            what="object store",
            survives="site",
            durable_s=written_s + object_s,
            restore_s=LOAD_S + object_s,
            write_bytes_per_s=OBJECTS_BYTES_PER_S,
            read_bytes_per_s=OBJECTS_BYTES_PER_S,
            bytes_per_copy=checkpoint_bytes,
            capacity_bytes=np.inf,
            source="copied from L2 in the background",
        ),
    )


class TierRow(TypedDict):
    """A tier of a design: how often it is written, how long that takes, which causes of failures
    restore from it."""

    tier: str
    every_s: float
    write_s: float
    restores: list[str]


def by_tiers(
    cluster: Cluster,
    life: Life,
    stated: Section,
    store: Rates,
    *,
    checkpoint_bytes: Column,
    state_bytes_per_device: Column,
    launch_s: Column,
) -> tuple[Life, tuple[TierRow, ...]]:
    """(life, rows): the life with the tiers of the design, each failure restoring from the nearest
    copy that survives it; the shared store alone where none is stated.

    stated : `checkpoint.tiers` of the design.  launch_s : of a restart, without the load.
    """
    sections = {tier: get(stated, tier) for tier in TIERS}
    sections = {tier: section for tier, section in sections.items() if section is not None}
    if not sections or np.ndim(life.mtbf_s):
        sections = {"l3" if store.kind == "object" else "l2": {}}
    else:
        if not {"l2", "l3"} & sections.keys():
            sections["l2"] = {}
        places = tiers(
            cluster, checkpoint_bytes, state_bytes_per_device, store, life.levels[0].stall_s
        )
        life = nested(life, sections, dict(zip(TIERS, places)), launch_s)
    rows = []
    for at, (tier, level) in enumerate(zip(sections, life.levels)):
        rows.append(
            TierRow(
                tier=tier.upper(),
                every_s=np.max(life.interval_s) * level.every,
                write_s=np.max(level.stall_s + level.durable_s),
                restores=[s.cause.id for s, k in zip(life.stops, life.reach) if k == at],
            )
        )
    return life, tuple(rows)


def nested(
    life: Life, sections: Mapping[str, Section], places: Mapping[str, Tier], launch_s: Column
) -> Life:
    """The life with a level for each of the tiers that are asked for, nearest first."""
    names = tuple(sections)
    near = life.levels[0]
    period = get(sections[names[0]], "every_s") or life.interval_s
    every = 1
    low: Column = 0.0
    levels = []
    for name, section in sections.items():
        durable = (near if name == "l2" else places[name]).durable_s
        every_s = get(section, "every_s")
        if every_s:
            every *= max(1, round(float(every_s / (period * every))))
        else:
            every *= max(1, int(np.ceil((durable + near.stall_s) / (period * every))))
        low = max(durable, low)
        levels.append(Level(stall_s=near.stall_s, durable_s=low, every=every))
    last = len(names) - 1
    nearer = [sum(TIERS.index(name) < stop.cause.copy for name in names) for stop in life.stops]
    reach = tuple(min(count, last) for count in nearer)
    stops = tuple(
        replace(s, restart_s=np.minimum(launch_s + places[names[k]].restore_s, s.restart_s))
        for s, k in zip(life.stops, reach)
    )
    return replace(life, levels=tuple(levels), reach=reach, stops=stops, interval_s=period)
