"""Communication of one step by axis: what is sent, how long it takes, and how much of it compute
does not hide.

The hiding rule: exposed(c, w) = c^2 / (c + w) for communication c under a window w of compute that
may run beside it; 0 for a large window, c - w for a small one, smooth between. Gathers of sharded
weights, prefetched layer by layer, hide better (step.gathers_exposed_s).

All-reduces of a step are timed as rings, two passes: the published runs are predicted better so
than with reduction in the domain's switches, which frameworks' launchers turn off for the memory
it takes (NCCL_NVLS_ENABLE=0), and trees win only far below a bucket of gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..blocks.table import Exchange as BlockExchange
from ..blocks.table import fold
from ..catalogue.words import SHARDINGS
from .cases import (
    Cases,
    Column,
    low_precision_bytes,
    micro_batches,
    moe_share,
    sequence_shards,
    tokens,
)
from .collectives import (
    WHOLE_POD,
    Wires,
    below_line,
    constants,
    direct_s,
    exchange_s,
    far_s,
    members_inside,
    near_s,
    out_rate,
    reach,
    ring_s,
    send_s,
)
from .compute import layer_mix

ZERO1, ZERO2, ZERO3, HSDP = (SHARDINGS.index(n) for n in ("zero1", "zero2", "zero3", "hsdp"))


@dataclass(
    frozen=True,
    kw_only=True,
)
class Exchange:
    """One axis: seconds on the wire, seconds exposed, bytes that each device sends, calls. Columns
    or scalars."""

    wire_s: Column
    exposed_s: Column
    bytes: Column
    calls: Column

    @property
    def hidden_s(self):
        """Seconds that run beside compute."""
        return np.maximum(self.wire_s - self.exposed_s, 0)

    def times(
        self,
        volume,
        calls,
    ) -> Exchange:
        """So many times the volume in so many times the calls."""
        return Exchange(
            wire_s=self.wire_s * volume,
            exposed_s=self.exposed_s * volume,
            bytes=self.bytes * volume,
            calls=self.calls * calls,
        )


NOTHING = Exchange(
    wire_s=0.0,
    exposed_s=0.0,
    bytes=0.0,
    calls=0.0,
)


def exposed(communication, window):
    """Communication left over by a window of compute: c^2 / (c + w). [s]"""
    return communication * communication / np.maximum(communication + window, 1e-30)


def sent(c: Cases) -> BlockExchange:
    """What the blocks of one average layer send forward, per token."""
    return fold(BlockExchange, [(w, b.exchanges()) for w, b in layer_mix(c)])


def visited(c: Cases):
    """Experts that a token visits in a layer with experts."""
    return sum(b.exchanges().copies for b in c.shape.of("moe"))


def tensor_parallel(c: Cases) -> Exchange:
    """Forward collectives of one average layer and micro-batch over the tp group.

    Two blocks a layer, each an all-gather and a reduce-scatter (or the all-reduce of equal volume)
    of t x h activations;
    one block in MoE layers whose experts are not tensor-parallel, one in parallel-block layers.
    Korthikanti et al. 2022, section 4.2.2. The backward sends the same, and a quarter more with
    sequence parallelism.
    """
    p, k, s = c.plan, c.constants, c.shape
    inside = members_inside(p.tp, 1, c.link.domain)
    payload = tokens(c) * s.hidden * 2
    blocks = np.where(c.software.parallel_block > 0, 1.0, sent(c).tensor)
    w = Wires(p.tp, inside, reach(c))
    wire = 2 * blocks * ring_s(payload, w)
    pipelined = np.maximum(c.software.tp_overlap, 0)
    alone = k.tp_exposed * np.where(
        (c.software.tp_overlap == 0) | (c.software.tp_overlap == 1), 1.0, k.tp_alone
    )
    share = pipelined * k.tp_overlapped + (1 - pipelined) * alone
    share = np.where(p.tp > inside, np.maximum(share, k.tp_exposed), share)
    return Exchange(
        wire_s=wire,
        exposed_s=wire * share,
        bytes=2 * blocks * payload * (p.tp - 1) / p.tp,
        calls=2 * blocks,
    )


def context_parallel(c: Cases, attention_s) -> Exchange:
    """Forward key-value exchange of one layer and micro-batch over the cp group, hidden behind
    attention.

    Ring and all-gather: (cp-1)/cp of the keys and values of the whole sequence; Ulysses: four
    all-to-alls of t x h.
    """
    p, k, block = c.plan, c.constants, sent(c)
    w = Wires(p.cp, members_inside(p.cp, p.tp, c.link.domain), reach(c))
    payload = tokens(c) * p.cp * (2 * np.maximum(block.kv / p.tp, block.kv_head))
    ring = ring_s(payload, w)
    ulysses_bytes = tokens(c) / p.tp * (2 * block.relaid)
    ulysses = direct_s(ulysses_bytes, w)
    wire = np.where(p.cp_type == 2, ulysses, ring) * (p.cp > 1)
    left = np.where(p.cp_type == 0, exposed(wire, k.cp_window * attention_s), wire)
    return Exchange(
        wire_s=wire,
        exposed_s=left,
        bytes=np.where(p.cp_type == 2, ulysses_bytes, payload) * (p.cp - 1) / p.cp,
        calls=np.select([p.cp_type == 0, p.cp_type == 2], [p.cp - 1, 4], 1),
    )


def expected_places(
    places,
    draws,
    limit=0,
):
    """Mean number of distinct places that `draws` uniform picks hit: n (1 - (1 - 1/n)^k), at most
    `limit` where one is set."""
    hit = places * (1 - (1 - 1 / np.maximum(places, 1)) ** draws)
    return np.where(limit > 0, np.minimum(hit, limit), hit)


class Copies(NamedTuple):
    """Copies of a token that reach other ranks of the ep group: each one delivered, and those that
    a rank sends over its link and over its network card."""

    delivered: Column
    link: Column
    card: Column


def expert_copies(c: Cases) -> Copies:
    """Copies of one token on their way to its top_k experts, of n ranks in domains of m.

    Each copy alone: top_k, of which (m-1)/n over the link and (n-m)/n over the card. Where the
    dispatcher removes duplicates (DeepEP, DeepSeek-V3 section 3.2.2): one per distinct rank, all of
    which the link delivers, (m-1)/m of them to others; one per distinct domain over the card.
    """
    p, top_k = c.plan, visited(c)
    inside = members_inside(p.ep, p.etp, c.link.domain)
    domains = p.ep / inside
    once = c.software.dedup_dispatch > 0
    delivered = np.where(once, expected_places(p.ep, top_k), top_k)
    domains_hit = expected_places(domains, top_k, c.software.group_limit)
    return Copies(
        delivered=delivered,
        link=delivered * (inside - 1) / np.where(once, inside, p.ep),
        card=np.where(once, domains_hit * (domains - 1) / domains, top_k * (1 - inside / p.ep)),
    )


def expert_parallel(c: Cases) -> Exchange:
    """Forward dispatch and combine of one average layer and micro-batch over the ep group, and the
    etp gather around them.

    Each rank sends t/tp tokens x `expert_copies`. What crosses the top of the pod, all ranks at
    once, has the card's rate / oversubscription there.
    """
    p, k, s = c.plan, c.constants, c.shape
    inside = members_inside(p.ep, p.etp, c.link.domain)
    w, fitted = Wires(p.ep, inside, reach(c)), constants()
    one_copy = tokens(c) / p.tp * s.hidden
    width = low_precision_bytes(c) + 2.0  # dispatch, then combine in 16 bit
    copies, payload = expert_copies(c), one_copy * width
    leaving = np.maximum(p.ep - inside, 1)
    pods = np.maximum(p.ep - members_inside(p.ep, p.etp, c.link.pod_devices), 0) / leaving
    out = payload * copies.card * np.maximum(1.0, c.link.oversubscription * pods)
    relayed = c.software.dedup_dispatch > 0  # one message a domain, passed on inside
    near = near_s(payload * copies.link, w, k.ep_up_share)
    far = far_s(out / np.where(relayed, 1.0, k.ep_out_share), w, fitted)
    peers = np.where(relayed, p.ep / inside + inside - 2, p.ep - 1)
    all_to_all = exchange_s(
        peers,
        np.maximum(near, far),
        w,
        fitted,
    )
    gathered = one_copy * visited(c) * p.etp * 2
    etp_inside = members_inside(p.etp, 1, c.link.domain)
    gather = 2 * ring_s(gathered, Wires(p.etp, etp_inside, w.link))
    moe, many, wide = moe_share(c), p.ep > 1, p.etp > 1
    wire = moe * (np.where(many, all_to_all, 0.0) + np.where(wide, gather, 0.0))
    # cards hide less than links
    left = np.where(p.ep > inside, np.sqrt(k.ep_overlapped), k.ep_overlapped)
    return Exchange(
        wire_s=wire,
        exposed_s=wire * np.where(c.software.ep_overlap > 0, left, 1.0),
        bytes=moe * (payload * (copies.link + copies.card) + 2 * gathered * (p.etp - 1) / p.etp),
        calls=2 * moe * (np.where(many, 1, 0) + np.where(wide, 1, 0)),
    )


def pipeline_send(c: Cases) -> Exchange:
    """Point-to-point time of one micro-batch at a stage boundary, forward and backward, every
    virtual chunk."""
    p, k = c.plan, c.constants
    payload = tokens(c) * c.shape.hidden * 2 / sequence_shards(p)
    # the slowest boundary sets the pace
    crosses = p.tp * p.cp * p.dp * p.pp > c.link.domain
    topped = np.where(p.tp * p.cp * p.dp >= c.link.pod_devices, c.link.oversubscription, 1.0)
    once = send_s(payload * topped, Wires(2, np.where(crosses, 1, 2), reach(c)))
    wire = np.where(p.pp > 1, 2 * p.vpp * once, 0.0)
    return Exchange(
        wire_s=wire,
        exposed_s=wire * np.where(c.software.p2p_overlap > 0, k.pp_exposed, 1.0),
        bytes=np.where(p.pp > 1, 2 * p.vpp * payload, 0.0),
        calls=2 * p.vpp,
    )


@dataclass(
    frozen=True,
    kw_only=True,
)
class DataParallel:
    """Gradient and parameter traffic: once a step (`step`) and, when weights are sharded, every
    micro-batch (`micro`)."""

    step_wire_s: Column
    micro_wire_s: Column
    bytes: Column  # per device and step
    calls: Column  # per step


def uplink(c: Cases, group):
    """Share of the scale-out rate left at the top of the pod when every group's ring crosses it at
    once."""
    p, link = c.plan, c.link
    if np.all(link.pod_devices >= WHOLE_POD):
        return 1.0
    rings = p.tp * p.cp * p.pp * p.dp / group
    free = np.minimum(1.0, link.pod_devices / (link.oversubscription * np.maximum(rings, 1)))
    return np.where(group * np.maximum(p.tp * p.cp, 1) > link.pod_devices, free, 1.0)


def gradient_link(
    c: Cases,
    link,
    ranks,
):
    """The links as gradient rings reach them across domains: what the stack's rings leave of every
    card, never more than the line, less what the top of the pod shares out."""
    reached = out_rate(Wires(1, 1, link), constants()) / link.out_bytes_per_s
    left = below_line(reached, c.constants.dp_rate) / reached
    return replace(link, out_bytes_per_s=link.out_bytes_per_s * left * uplink(c, ranks))


def data_parallel(
    c: Cases,
    dense_params,
    expert_params,
) -> DataParallel:
    """Traffic over dp x cp (experts: over their own replicas) for parameters held on one device
    before data sharding.

    none: all-reduce of gradients. zero1, zero2: reduce-scatter of gradients, all-gather of 16-bit
    weights. zero3: per
    micro-batch gather for forward and backward and a reduce-scatter; hsdp: that inside the shard
    group, then an all-reduce of
    the shards across groups. Rajbhandari et al. 2020, section 7; Zhao et al. 2023 (FSDP), section
    3.2.
    """
    p, job, link = c.plan, c.job, reach(c)
    hybrid = p.sharding == HSDP
    sharded = (p.sharding == ZERO3) | hybrid
    bucket = c.constants.dp_bucket_bytes
    pieces = c.shape.layers / p.pp
    whole = (p.sharding == 0) | (c.software.grad_all_reduce > 0)
    passes = np.where(whole, 2.0, 1.0)  # of the gradients
    gathered = np.where(p.sharding > 0, 1.0, 0.0)  # the weights
    step, micro, sent = 0.0, 0.0, 0.0
    for params, ranks, packed in (
        (dense_params, p.dp * p.cp, p.tp),
        (expert_params, np.maximum(p.dp * p.cp * p.tp / (p.ep * p.etp), 1.0), p.ep * p.etp),
    ):
        if not np.any(params):
            continue
        none = np.asarray(params) <= 0  # rows without experts beside rows that have them
        inside = members_inside(ranks, packed, c.link.domain)
        grads, weights = params * job.grad_bytes, params * 2.0
        gradients = gradient_link(c, link, ranks)
        across_bytes = 0.0
        if not np.all(sharded):
            buckets = np.maximum(grads / bucket, 1.0)
            w = Wires(ranks, inside, gradients)
            reduce_s = passes * ring_s(grads / buckets, w)
            gather_s = gathered * ring_s(weights / buckets, w)
            step = step + np.where(sharded | none, 0.0, buckets * (reduce_s + gather_s))
        shard = np.where(hybrid, np.minimum(p.shard_group, ranks), ranks)
        if np.any(sharded):  # two gathers and a reduce-scatter a layer
            unit = Wires(shard, np.minimum(inside, shard), link)
            took = 3 * pieces * ring_s((2 * weights + grads) / (3 * pieces), unit)
            micro = micro + np.where(sharded & ~none, took, 0.0)
        if np.any(hybrid):
            copies = ranks / shard
            between = Wires(copies, np.clip(inside / shard, 1.0, copies), gradients)
            buckets = np.maximum(grads / shard / bucket, 1.0)
            across = buckets * ring_s(grads / shard / buckets, between, 2.0)
            step = step + np.where(hybrid & ~none, across, 0.0)
            across_bytes = 2 * grads / shard * (copies - 1) / copies
        sent = sent + np.where(
            sharded,
            (2 * weights + grads) * (shard - 1) / shard * micro_batches(job, p) + across_bytes,
            (passes * grads + gathered * weights) * (ranks - 1) / ranks,
        )
    return DataParallel(
        step_wire_s=step,
        micro_wire_s=micro,
        bytes=sent,
        calls=np.where(sharded, 3 * micro_batches(job, p), 2.0),
    )
