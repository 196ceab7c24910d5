"""Where the data and the copies live: what a store carries, shards of the corpus and who reads
them, bytes read, written and kept."""

from dataclasses import replace
from typing import TypedDict

import numpy as np

from .. import catalogue
from ..base.columns import Column
from ..base.records import Record, record
from ..design.cluster import Cluster
from .checkpoint import COMMIT_S, write_rate_needed

_GUIDANCE = "superpod-better"  # 20 GB/s written and 40 read per 32 nodes, each node 4 and 8
SHARD_BYTES = 1e9
LOG_BYTES = 1e12
USABLE_SHARE = 0.8  # of a shared file system
_OBJECTS = "gcs-standard"  # 1 Tb/s, the top of its usual quota
_GROWS = {"32 nodes": 32.0, "node": 1.0}


@record
class Rates:
    """What a job can write to and read from its store [bytes/s]; `units` appliances or TiB are
    needed for it where it is bought by the piece."""

    what: str
    kind: str
    write_bytes_per_s: Column
    read_bytes_per_s: Column
    node_write_bytes_per_s: float
    node_read_bytes_per_s: float
    capacity_bytes: Column
    units: Column
    unit: str
    # the largest domain whose loss the copies outlive: process for disks of the nodes themselves,
    # pod for a shared store
    survives: str
    source: str


def rates(cluster: Cluster, nodes: Column | None = None) -> Rates:
    """Rates of the cluster's store for a job of `nodes` nodes (scalar or array).

    A published system counts with its own total. One that grows with the cluster (guidance per 32
    nodes, local disks) is scaled; one that is bought by the piece (appliances, TiB) or whose total
    nobody has published is taken as large as the middle level of NVIDIA's SuperPOD guidance asks,
    and `units` says how many pieces that is. A missing read or write rate counts as the other one.
    """
    store = catalogue.storage(cluster.storage or _GUIDANCE)
    guide = catalogue.storage(_GUIDANCE)
    n: Column = cluster.nodes if nodes is None else nodes
    units: Column = np.ones_like(n, float)
    what = store.name
    wanted = np.maximum(n / 32, 1.0)
    own_write, own_read = store.client_write_bytes_per_s, store.client_read_bytes_per_s
    write = first_known(store.total_write_bytes_per_s, store.total_read_bytes_per_s)
    read = first_known(store.total_read_bytes_per_s, store.total_write_bytes_per_s)
    if store.kind == "local":  # lost with its node, so a copy there has to be kept on a peer too
        write = first_known(own_write, own_read, write)
        read = first_known(own_read, own_write, read)
        units = n
        what += " in every node"
    elif store.scope in _GROWS:
        units = np.maximum(n / _GROWS[store.scope], 1.0)
    elif np.isnan(write) and store.kind == "object":
        write = read = catalogue.storage(_OBJECTS).total_read_bytes_per_s
        what += f", whose total nobody has published: {write / 1e9:g} GB/s, that of {_OBJECTS}"
    elif np.isnan(write):
        write = guide.total_write_bytes_per_s
        read = guide.total_read_bytes_per_s
        units = wanted
        what += f", sized as {guide.name}"
    elif store.scope in ("appliance", "TiB"):
        units = np.ceil(wanted * guide.total_write_bytes_per_s / write)
        what += ", as many as the guidance asks for"
    return Rates(
        what=what,
        kind=store.kind,
        write_bytes_per_s=units * write,
        read_bytes_per_s=units * read,
        node_write_bytes_per_s=min(
            first_known(own_write, own_read, guide.client_write_bytes_per_s),
            cluster.storage_client_bytes_per_s,
        ),
        node_read_bytes_per_s=first_known(own_read, own_write, guide.client_read_bytes_per_s),
        capacity_bytes=store.capacity_bytes * (1 if store.scope == "cluster" else units),
        units=units,
        unit=store.scope,
        survives="process" if store.kind == "local" else "pod",
        source=store.source,
    )


def first_known(*rates_per_s: float) -> float:
    """The first rate that somebody has published; nan where nobody has. [bytes/s]"""
    return next((rate for rate in rates_per_s if not np.isnan(rate)), np.nan)


@record
class Carrier(Record):
    """Whether one published store can carry the checkpoints: its rate for this job, the rate
    needed, copies that fit."""

    id: str
    name: str
    write_bytes_per_s: Column
    needed_bytes_per_s: Column
    durable_s: Column
    copies: Column
    carries: bool
    usd_per_month: float
    source: str


def carriers(
    cluster: Cluster, checkpoint_bytes: float, interval_s: float, *, stall_s: float = 0.0
) -> tuple[Carrier, ...]:
    """Which published stores can take one checkpoint per interval, best first.

    Needs B / (interval + stall) written, i.e. a copy durable (20 s to commit included) before the
    next begins, and room for three.
    Stores sold by the piece are judged as one cluster-sized purchase (`rates`); those without any
    published rate are left out.
    """
    out = []
    for store in catalogue.storages().values():
        if (store.kind in ("local", "requirement", "block ro")) or np.isnan(
            store.total_write_bytes_per_s
        ):
            continue
        r = rates(replace(cluster, storage=store.id))
        rate = np.minimum(r.write_bytes_per_s, cluster.nodes * r.node_write_bytes_per_s)
        durable = COMMIT_S + checkpoint_bytes / rate
        room = r.capacity_bytes / checkpoint_bytes
        out.append(
            Carrier(
                id=store.id,
                name=store.name,
                write_bytes_per_s=rate,
                needed_bytes_per_s=write_rate_needed(checkpoint_bytes, interval_s, stall_s),
                durable_s=durable,
                copies=room,
                carries=bool(durable <= interval_s + stall_s and not room < 3),
                usd_per_month=store.usd_per_gb_month * checkpoint_bytes * 3 / 1e9,
                source=store.source,
            )
        )
    return tuple(sorted(out, key=lambda c: (not c.carries, c.durable_s)))


@record
class Corpus(Record):
    """A tokenised corpus on disk: bytes, shards, and the rates at which the job reads it."""

    tokens: float
    token_bytes: int
    bytes: float
    shards: int
    shard_bytes: float
    read_bytes_per_s: float
    read_bytes_per_s_per_reader: float


def corpus(
    tokens: float, token_bytes: float, *, tokens_per_s: float = 0.0, readers: int = 1
) -> Corpus:
    """What the tokens of a run weigh and how fast they are read.

    Shards are whole files of about SHARD_BYTES, at least one per reader so that readers do not
    share. Ingest: tokens a second x bytes of one; even 16M tokens in 10 s are 6.4 MB/s for the
    whole job, so latency and metadata matter, not bandwidth.
    """
    size = tokens * token_bytes
    shards = max(int(np.ceil(size / SHARD_BYTES)), readers)
    rate = tokens_per_s * token_bytes
    return Corpus(
        tokens=tokens,
        token_bytes=int(token_bytes),
        bytes=size,
        shards=shards,
        shard_bytes=size / shards,
        read_bytes_per_s=rate,
        read_bytes_per_s_per_reader=rate / readers,
    )


class Room(TypedDict):
    """Room to provision [bytes]."""

    checkpoints: float
    corpus: float
    logs: float
    total: float
    provisioned: float  # of the shared file system
    object_store: float


def capacity(
    checkpoint_bytes: float, corpus_bytes: float, *, recent: int = 3, milestones: int = 0
) -> Room:
    """Room to provision on the shared file system; milestones go to the object store.

    provisioned = total / USABLE_SHARE: shared file systems are well usable to about 80 %
    (ml-engineering, storage).
    """
    copies = checkpoint_bytes * recent
    total = copies + corpus_bytes + LOG_BYTES
    return {
        "checkpoints": copies,
        "corpus": corpus_bytes,
        "logs": LOG_BYTES,
        "total": total,
        "provisioned": total / USABLE_SHARE,
        "object_store": checkpoint_bytes * milestones,
    }
