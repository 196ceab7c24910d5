"""Whether a plan fits: device memory, and the host memory and NVMe that offloaded state takes."""

from dataclasses import replace

import numpy as np

from .. import catalogue
from ..physics.cases import HOST_ALL, WEIGHT_BYTES, Cases
from ..physics.memory.peak import Memory

REASONS = (
    "weights, gradients and optimizer states alone exceed the device's memory",
    "activations exceed what the states leave of the device's memory",
    "framework, buffers and logits take the last of the device's memory",
    "offloaded state exceeds the host's memory and NVMe",
)


def host_bytes(cluster) -> float:
    """Host memory and NVMe that one device may take for offloaded state: an even share of its
    node's, nine tenths of it."""
    per_node = np.nan_to_num(cluster.host_memory_bytes) + np.nan_to_num(cluster.nvme_bytes)
    return 0.9 * per_node / cluster.devices_per_node


def on_disk(cluster, m: Memory):
    """State of a device that its share of the host's memory does not hold: it goes to the node's
    NVMe. [bytes]"""
    return np.maximum(
        m.host - 0.9 * np.nan_to_num(cluster.host_memory_bytes) / cluster.devices_per_node, 0.0
    )


def streamed_weights(cluster, c: Cases, m: Memory):
    """Weights of a device that its share of the host's memory cannot hold, where weights leave the
    device: moments and gradients go to NVMe before them. [bytes]

    host x weights / (weights + gradients + moments + master weights) - what the host's memory
    holds.
    """
    over = m.host * WEIGHT_BYTES / c.job.state_bytes - (m.host - on_disk(cluster, m))
    return np.where(np.asarray(c.plan.offload) == HOST_ALL, np.maximum(over, 0.0), 0.0)[()]


def disk_bytes_per_s(cluster) -> float:
    """What one device draws from or sends to its node's NVMe when all do. [bytes/s]

    A byte of capacity brings the rate that fio measured on the largest array of a node in the
    catalogue, of eight drives: the mean of reading and writing as much of each.
    """
    arrays = (row for row in catalogue.storages().values() if row.scope == "node")
    row = max(arrays, key=lambda row: row.capacity_bytes)
    both = 2 / (1 / row.client_read_bytes_per_s + 1 / row.client_write_bytes_per_s)
    return (
        both
        / row.capacity_bytes
        * float(np.nan_to_num(cluster.nvme_bytes))
        / cluster.devices_per_node
    )


def through_disks(cluster, c: Cases, m: Memory) -> Cases:
    """The same cases with the host link no faster than NVMe feeds it, where state does not stay in
    the host's memory.

    NVMe and host link run at once (Rajbhandari et al. 2021, section 5.2.2): the link moves all of
    the state in the time that the drives take for their part.
    """
    disk = on_disk(cluster, m)
    if not np.any(disk):
        return c
    link = c.chip.host_bytes_per_s
    return replace(
        c,
        chip=replace(
            c.chip,
            host_bytes_per_s=np.where(
                disk > 0,
                np.minimum(
                    link, disk_bytes_per_s(cluster) * m.host / np.where(disk > 0, disk, 1.0)
                ),
                link,
            )[()],
        ),
    )


def why_not(m: Memory, host: float):
    """Index of the first reason in REASONS that a plan does not fit, -1 where it fits."""
    states = m.weights + m.gradients + m.optimizer
    used = (states, states + m.activations, m.total)
    return np.select([*(x > m.capacity for x in used), m.host > host], range(4), -1)
