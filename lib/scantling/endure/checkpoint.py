"""What a checkpoint holds, where its copies live, how long each takes, and how many to keep."""

import numpy as np

from .. import catalogue
from ..base.json import clean
from ..base.records import record
from ..catalogue.hardware import known_link

RNG_BYTES_PER_RANK = (
    5056.0 + 16 + 2500 + 2500
)  # torch CPU (mt19937), CUDA (Philox seed and offset), numpy, Python
LOADER_BYTES_PER_READER = 4096.0  # shard, offset and shuffle state of one data-parallel reader

# planning, synchronising and pinning of a well-made asynchronous save: 0.34-0.59 s blocked
# (ByteCheckpoint, Table 8)
BLOCK_S = 0.5
# files, metadata and commit of a save whose bytes are few: 20 s end to end (ByteCheckpoint, Table
# 8, 7B on 1,488)
COMMIT_S = 20.0
LOAD_S = 120.0  # opening, planning and resharding of a load: 129-266 s end to end (same table)
HOST_COPY_SHARE = 0.5  # of the host link's rate in a device-to-host copy of many tensors
OBJECTS_BYTES_PER_S = 100e9  # of an object store
WIRE_SHARE = 0.25  # of a node's scale-out rate that a background copy may take from training


@record
class Contents:
    """Bytes of one whole copy by what they are; `total` is the sum. Missing any of the last two
    makes a resume inexact."""

    weights: float
    master_weights: float
    moments: float
    outer: float
    rng: float
    dataloader: float

    @property
    def total(self) -> float:
        return sum(vars(self).values())

    def as_dict(self) -> dict:
        return {**vars(self), "total": self.total}


def contents(
    params,
    *,
    optimizer="adamw",
    weight_bytes=2.0,
    master_bytes=4.0,
    ranks=1,
    readers=1,
    copies=1,
    outer_bytes=0.0,
) -> Contents:
    """Bytes of one whole copy, each parameter once however it is sharded or replicated.

    params       : parameters, MTP modules included [count].
    weight_bytes : bytes per stored working weight (2 for bf16; 0 where only the master copy is
    kept, as Megatron's distributed optimizer
    can).
    master_bytes : bytes per master weight (4; 0 where the weights themselves are fp32).
    copies, outer_bytes : sites that train alone, each with weights and moments of its own; state
    of the optimizer that applies their average, once [bytes a parameter].
    ranks, readers : processes that keep a random-number state, data-parallel readers that keep a
    position.

    AdamW in bf16 comes to 14 bytes per parameter (2 + 4 + 8); others count 12 (weights rebuilt from
    the master) or 16 (fp32 gradients
    kept).
    """
    p = params * copies
    return Contents(
        weights=p * weight_bytes,
        master_weights=p * master_bytes,
        outer=params * outer_bytes,
        moments=p * catalogue.optimizer(optimizer).moment_bytes,
        rng=ranks * RNG_BYTES_PER_RANK,
        dataloader=readers * LOADER_BYTES_PER_READER,
    )


def per_writer(total_bytes, *, tp=1, pp=1, cp=1, dp=1, parallel=True) -> dict:
    """Who writes how much: {writers, bytes_per_writer} of one whole copy under a plan.

    parallel : every device writes its own share (fully parallel saves of Megatron, DCP with sharded
    state); else one data-parallel replica
    writes for all, tp x pp devices. 405B at tp 8, pp 16: 346 MB on each of 16,384 against 44 GB on
    each of 128. Sharding under ZeRO or
    FSDP changes who holds the bytes before the save, not their sum.
    """
    writers = tp * pp * (cp * dp if parallel else 1)
    return {"writers": writers, "bytes_per_writer": total_bytes / writers}


def transfer_s(checkpoint_bytes, store_bytes_per_s, nodes=1, node_bytes_per_s=np.inf):
    """Seconds to move one copy: max(B / store rate, B / nodes / node rate)."""
    return np.maximum(
        checkpoint_bytes / store_bytes_per_s, checkpoint_bytes / nodes / node_bytes_per_s
    )


def snapshot_stall_s(state_bytes_per_device, host_link_bytes_per_s):
    """Stall of an asynchronous save: BLOCK_S + bytes per device / (HOST_COPY_SHARE x host link)
    [s].

    405B on 8,960 devices blocked 0.59 s, 7B on 1,488 0.34 s (ByteCheckpoint, NSDI'25 Table 8); a
    copy at every step only 0.01-0.04 s
    (ByteRobust, Table 8); PyTorch's async DCP of 2024 6.3 s for 7B.
    """
    return BLOCK_S + state_bytes_per_device / (HOST_COPY_SHARE * known_link(host_link_bytes_per_s))


@record
class Tier:
    """One place where copies live. Times in seconds, rates in bytes/s for the whole job, `survives`
    the largest domain whose loss it outlives."""

    id: str
    what: str
    survives: str
    stall_s: float = 0.0
    durable_s: float
    restore_s: float
    write_bytes_per_s: float
    read_bytes_per_s: float
    bytes_per_copy: float
    capacity_bytes: float
    source: str

    def keeps(self) -> float:
        """Whole copies that fit; nan where the store's capacity is not known."""
        return self.capacity_bytes // self.bytes_per_copy if self.bytes_per_copy else np.inf

    def as_dict(self) -> dict:
        """Plain values, ready for JSON; None for what is unknown or unlimited."""
        return clean({**vars(self), "copies": self.keeps()})


def tiers(cluster, checkpoint_bytes, state_bytes_per_device, store, stall_s=None) -> tuple:
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
            capacity_bytes=host / 2,
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
            capacity_bytes=max(host / 2, cluster.nvme_bytes * nodes),
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


def retention(interval_s, *, detection_latency_s=0.0, durable_s=0.0):
    """Copies to keep: ceil(latency / interval) + 1 recent ones, one more while a save is in flight.

    A corruption found `detection_latency_s` after it happened needs a copy from before it.
    """
    return (np.ceil(detection_latency_s / interval_s) + 1 + np.greater(durable_s, 0)).astype(int)


def write_rate_needed(checkpoint_bytes, interval_s, stall_s=0.0):
    """Write rate so that a save is durable before the next begins: B / (interval + stall)
    [bytes/s]. 1T x 14 bytes in 60 s: 233 GB/s."""
    return checkpoint_bytes / (interval_s + stall_s)
