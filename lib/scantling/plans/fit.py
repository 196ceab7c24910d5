"""Whether a plan fits: device memory, and the host memory and NVMe that offloaded state takes."""

from dataclasses import replace
from math import isnan

import numpy as np

from .. import catalogue
from ..base.columns import Array, Column, some
from ..base.records import record
from ..design.cluster import Cluster
from ..physics.cases import HOST_ALL, WEIGHT_BYTES, Cases
from ..physics.memory.peak import Memory

REASONS = (
    "weights, gradients and optimizer states alone exceed the device's memory",
    "activations exceed what the states leave of the device's memory",
    "framework, buffers and logits take the last of the device's memory",
    "offloaded state exceeds the host's memory and NVMe",
)
HOST_SHARE = 0.9  # of a node's memory and NVMe that offloaded state may take


@record
class Host:
    """What one device may take of its node for offloaded state: numbers, or a column of clusters
    [n]."""

    memory_bytes: Column
    all_bytes: Column  # with NVMe
    disk_bytes_per_s: Column


def host_of(cluster: Cluster) -> Host:
    """What one device of a cluster may take of its node."""
    return Host(
        memory_bytes=float(
            HOST_SHARE * _there(cluster.host_memory_bytes) / cluster.devices_per_node
        ),
        all_bytes=host_bytes(cluster),
        disk_bytes_per_s=disk_bytes_per_s(cluster),
    )


def host_bytes(cluster: Cluster) -> float:
    """Host memory and NVMe that one device may take for offloaded state: an even share of its
    node's, HOST_SHARE of it. [bytes]"""
    per_node = _there(cluster.host_memory_bytes) + _there(cluster.nvme_bytes)
    return float(HOST_SHARE * per_node / cluster.devices_per_node)


def _there(known_bytes: float) -> float:
    """Bytes that a node is known to have; none where nobody says (nan)."""
    return 0.0 if isnan(known_bytes) else float(known_bytes)


def on_disk(host: Host, m: Memory) -> Column:
    """State of a device that its share of the host's memory does not hold: it goes to the node's
    NVMe. [bytes]"""
    beyond: Column = np.maximum(m.host - host.memory_bytes, 0.0)
    return beyond


def streamed_weights(host: Host, c: Cases, m: Memory) -> Column:
    """Weights of a device that its share of the host's memory cannot hold, where weights leave the
    device: moments and gradients go to NVMe before them. [bytes]

    host x weights / (weights + gradients + moments + master weights) - what the host's memory
    holds.
    """
    over = m.host * WEIGHT_BYTES / c.job.state_bytes - (m.host - on_disk(host, m))
    leave = np.asarray(c.plan.offload) == HOST_ALL
    streamed: Column = np.where(leave, np.maximum(over, 0.0), 0.0)[()]
    return streamed


def disk_bytes_per_s(cluster: Cluster) -> float:
    """What one device draws from or sends to its node's NVMe when all do. [bytes/s]

    A byte of capacity brings the rate that fio measured on the largest array of a node in the
    catalogue, of eight drives: the mean of reading and writing as much of each.
    """
    arrays = (row for row in catalogue.storages().values() if row.scope == "node")
    row = max(arrays, key=lambda row: row.capacity_bytes)
    both = 2 / (1 / row.client_read_bytes_per_s + 1 / row.client_write_bytes_per_s)
    nvme_bytes = _there(cluster.nvme_bytes)
    return float(both / row.capacity_bytes * nvme_bytes / cluster.devices_per_node)


def through_disks(host: Host, c: Cases, m: Memory) -> Cases:
    """The same cases with the host link no faster than NVMe feeds it, where state does not stay in
    the host's memory; as they are where a node has no NVMe, and such a plan does not fit.

    NVMe and host link run at once (Rajbhandari et al. 2021, section 5.2.2): the link moves all of
    the state in the time that the drives take for their part.
    """
    disk = on_disk(host, m)
    spills = (np.asarray(disk) > 0) & np.greater(host.disk_bytes_per_s, 0)
    if not some(spills):
        return c
    link = c.chip.host_bytes_per_s
    fed = host.disk_bytes_per_s * m.host / np.where(spills, disk, 1.0)
    rate: Column = np.where(spills, np.minimum(link, fed), link)[()]
    return replace(c, chip=replace(c.chip, host_bytes_per_s=rate))


def why_not(m: Memory, host: Column) -> Array:
    """Index of the first reason in REASONS that a plan does not fit, -1 where it fits."""
    states = m.weights + m.gradients + m.optimizer
    misses = [
        states > m.capacity,
        states + m.activations > m.capacity,
        m.total > m.capacity,
        m.host > host,
    ]
    return np.select(misses, range(len(REASONS)), -1)
