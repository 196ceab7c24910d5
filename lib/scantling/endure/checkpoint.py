"""What a checkpoint holds, where its copies live, how long each takes, and how many to keep."""

from typing import TypedDict

import numpy as np

from .. import catalogue
from ..base.columns import Array, Column
from ..base.records import record
from ..catalogue.hardware import known_link

# torch CPU (mt19937), CUDA (Philox seed and offset), numpy, Python
RNG_BYTES_PER_RANK = 5056.0 + 16 + 2500 + 2500
LOADER_BYTES_PER_READER = 4096.0  # shard, offset and shuffle state of one data-parallel reader

# planning, synchronising and pinning of a well-made asynchronous save: 0.34-0.59 s blocked
# (ByteCheckpoint, Table 8)
BLOCK_S = 0.5
# files, metadata and commit of a save whose bytes are few: 20 s end to end (ByteCheckpoint, Table
# 8, 7B on 1,488)
COMMIT_S = 20.0
LOAD_S = 120.0  # opening, planning and resharding of a load: 129-266 s end to end (same table)
HOST_COPY_SHARE = 0.5  # of the host link's rate in a device-to-host copy of many tensors
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
        """Bytes of the whole copy."""
        dense = self.weights + self.master_weights + self.moments
        return dense + self.outer + self.rng + self.dataloader

    def as_dict(self) -> dict[str, float]:
        return {**vars(self), "total": self.total}


def contents(
    params: float,
    *,
    optimizer: str = "adamw",
    weight_bytes: float = 2.0,
    master_bytes: float = 4.0,
    ranks: int = 1,
    readers: int = 1,
    copies: int = 1,
    outer_bytes: float = 0.0,
) -> Contents:
    """Bytes of one whole copy, each parameter once however it is sharded or replicated.

    params       : parameters, MTP modules included [count].
    weight_bytes : bytes per stored working weight (2 for bf16; 0 where only the master copy is
    kept, as Megatron's distributed optimizer can).
    master_bytes : bytes per master weight (4; 0 where the weights themselves are fp32).
    copies, outer_bytes : sites that train alone, each with weights and moments of its own; state
    of the optimizer that applies their average, once [bytes a parameter].
    ranks, readers : processes that keep a random-number state, data-parallel readers that keep a
    position.

    AdamW in bf16 comes to 14 bytes per parameter (2 + 4 + 8); others count 12 (weights rebuilt from
    the master) or 16 (fp32 gradients kept).
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


class Writers(TypedDict):
    """Who writes how much of one whole copy."""

    writers: int
    bytes_per_writer: float


def per_writer(
    total_bytes: float, *, tp: int = 1, pp: int = 1, cp: int = 1, dp: int = 1, parallel: bool = True
) -> Writers:
    """Who writes how much of one whole copy under a plan.

    parallel : every device writes its own share (fully parallel saves of Megatron, DCP with sharded
    state); else one data-parallel replica writes for all, tp x pp devices. 405B at tp 8, pp 16: 346
    MB on each of 16,384 against 44 GB on each of 128. Sharding under ZeRO or FSDP changes who holds
    the bytes before the save, not their sum.
    """
    writers = tp * pp * (cp * dp if parallel else 1)
    return Writers(writers=writers, bytes_per_writer=total_bytes / writers)


def transfer_s(
    checkpoint_bytes: Column,
    store_bytes_per_s: Column,
    nodes: Column = 1,
    node_bytes_per_s: Column = np.inf,
) -> Column:
    """Seconds to move one copy: max(B / store rate, B / nodes / node rate)."""
    return np.maximum(
        checkpoint_bytes / store_bytes_per_s, checkpoint_bytes / nodes / node_bytes_per_s
    )


def synchronous_save_s(
    checkpoint_bytes: Column,
    store_bytes_per_s: Column,
    nodes: Column = 1,
    node_bytes_per_s: Column = np.inf,
) -> Column:
    """Seconds that training stands still where it waits until a save is in its store:
    COMMIT_S + `transfer_s`."""
    moved = transfer_s(checkpoint_bytes, store_bytes_per_s, nodes, node_bytes_per_s)
    return COMMIT_S + moved


def snapshot_stall_s(state_bytes_per_device: Column, host_link_bytes_per_s: float) -> Column:
    """Stall of an asynchronous save: BLOCK_S + bytes per device / (HOST_COPY_SHARE x host link)
    [s].

    405B on 8,960 devices blocked 0.59 s, 7B on 1,488 0.34 s (ByteCheckpoint, NSDI'25 Table 8); a
    copy at every step only 0.01-0.04 s (ByteRobust, Table 8); PyTorch's async DCP of 2024 6.3 s for
    7B.
    """
    return BLOCK_S + state_bytes_per_device / (HOST_COPY_SHARE * known_link(host_link_bytes_per_s))


def retention(
    interval_s: Column, *, detection_latency_s: Column = 0.0, durable_s: Column = 0.0
) -> Array:
    """Copies to keep: ceil(latency / interval) + 1 recent ones, one more while a save is in flight.

    A corruption found `detection_latency_s` after it happened needs a copy from before it.
    """
    recent = np.ceil(detection_latency_s / interval_s) + 1
    return np.asarray(recent + np.greater(durable_s, 0)).astype(int)[()]


def write_rate_needed(
    checkpoint_bytes: Column, interval_s: Column, stall_s: Column = 0.0
) -> Column:
    """Write rate so that a save is durable before the next begins: B / (interval + stall)
    [bytes/s]. 1T x 14 bytes in 60 s: 233 GB/s."""
    return checkpoint_bytes / (interval_s + stall_s)
