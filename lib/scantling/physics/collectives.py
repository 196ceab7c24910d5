"""Collectives on tiers: how long one takes when its ranks sit partly inside a scale-up domain and
partly across the network.

Volumes follow ring algebra as nccl-tests states it (doc/PERFORMANCE.md): an all-gather or
reduce-scatter of a V-byte tensor over
n ranks moves V (n-1)/n bytes through every rank; an all-reduce twice that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tiers:
    """Rates that a group sees after efficiency; bytes/s one direction, seconds per hop."""

    domain: object
    up: object
    up_latency_s: object
    out: object
    out_latency_s: object
    mesh: object = 0.0  # 1 where each pair of a domain has a link of its own


def tiers_of(link, constants) -> Tiers:
    """The design's links at the share of their rate that large messages reach."""
    return Tiers(
        link.domain,
        link.up_bytes_per_s * constants.scale_up_share,
        link.up_latency_s,
        link.out_bytes_per_s * constants.scale_out_share,
        link.out_latency_s,
        link.mesh,
    )


def members_inside(group, packed, domain):
    """Ranks of one group that share a scale-up domain when `packed` other ranks are placed before
    the group's next member.

    Megatron's order places tp first, then cp, then dp, then pp: the dp group of a plan has packed =
    tp x cp.
    """
    return np.clip(np.floor(domain / packed), 1, group)


def scale_up(tiers: Tiers, inside):
    """Bytes/s of the links that `inside` members of a domain have among them: all of a device's
    behind a switch, one a peer on a mesh."""
    if not np.any(tiers.mesh):
        return tiers.up
    return tiers.up * np.where(
        (tiers.mesh > 0) & (inside > 1), (inside - 1) / np.maximum(tiers.domain - 1, 1), 1.0
    )


def ring_rate(tiers: Tiers, group, inside):
    """Bytes/s that pass each rank of a ring: the link where the group lies inside a domain, else
    the slower of the link and
    the network cards of its members in one domain together (every member drives its own)."""
    up = scale_up(tiers, inside)
    return np.where(group <= inside, up, np.minimum(up, inside * tiers.out))


def all_gather_s(tensor_bytes, group, inside, tiers: Tiers):
    """Seconds to all-gather (or reduce-scatter) a tensor of `tensor_bytes` over `group` ranks,
    `inside` of them per domain.

    V (n-1)/n / rate + latency, with a step's latency paid log2(n) times (tree or pipelined ring
    with chunks in flight).
    """
    share = (group - 1) / group
    latency = np.where(group <= inside, tiers.up_latency_s, tiers.out_latency_s) * np.log2(
        np.maximum(group, 1)
    )
    return tensor_bytes * share / ring_rate(tiers, group, inside) + latency


def all_to_all_s(
    sent_bytes, group, inside, tiers: Tiers, copies_out=None, up_share=1.0, relayed=0.0
):
    """Seconds of an all-to-all in which each rank sends `sent_bytes` spread evenly over the group.

    Inside a domain the share (inside-1)/group goes over the scale-up link, the rest
    (group-inside)/group over the rank's own
    network card; the two run at the same time, so the slower counts. `copies_out` replaces the
    bytes that leave the domain
    where the dispatcher sends one copy per domain rather than one per expert; `relayed` (0 or 1)
    copies that came over the network
    are passed on over the link, which then carries every delivery (DeepEP).
    """
    outside = sent_bytes * (group - inside) / group if copies_out is None else copies_out
    near = (
        sent_bytes
        * (inside - 1)
        / np.where(relayed > 0, inside, group)
        / (scale_up(tiers, inside) * up_share)
    )
    far = outside / tiers.out
    latency = np.where(group > inside, tiers.out_latency_s, tiers.up_latency_s) * np.log2(
        np.maximum(group, 1)
    )
    return np.maximum(near, far) + latency
