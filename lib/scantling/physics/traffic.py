"""Communication of one step by axis: what is sent, how long it takes, and how much of it compute
does not hide.

The hiding rule: exposed(c, w) = c^2 / (c + w) for communication c under a window w of compute that
may run beside it; 0 for a large window, c - w for a small one, smooth between. Gathers of sharded
weights, prefetched layer by layer, hide better (step.gathers_exposed_s).

All-reduces of a step are timed as rings, two passes: the published runs are predicted better so
than with reduction in the domain's switches, which frameworks' launchers turn off for the memory
it takes (NCCL_NVLS_ENABLE=0), and trees win only far below a bucket of gradients.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base.columns import Column, Truth, some
from ..base.records import record
from ..blocks.answers import Exchange as BlockExchange, fold
from ..blocks.moe import Moe
from .cases import HSDP, ULYSSES, ZERO2, ZERO3, Cases
from .collectives import (
    RING_HOP_OUT_S,
    SIMPLE,
    below_line,
    direct_s,
    exchange_s,
    far_s,
    hop_out,
    near_s,
    out_rate,
    ring_s,
    send_s,
    sharp_s,
)
from .compute import expected_places, layer_mix, low_share
from .sites import every_step_s
from .software import UCCL
from .wires import Link, Wires, members_inside

RAIL_ONLY = 0.112  # how much longer an all-to-all takes: 8.2 to 11.2 % (arXiv 2307.12169)


@record
class Exchange:
    """One axis: seconds on the wire, of them those that add to the step, bytes that each device
    sends, calls. Columns or scalars."""

    wire_s: Column
    exposed_s: Column
    bytes: Column
    calls: Column

    @property
    def hidden_s(self) -> Column:
        """Seconds that run beside compute."""
        return np.maximum(self.wire_s - self.exposed_s, 0)

    def times(
        self, volume: Column, calls: Column, exposed_volume: Column | None = None
    ) -> "Exchange":
        """So many times the volume in so many times the calls; `exposed_volume`: of what is
        exposed, where not as the volume."""
        return Exchange(
            wire_s=self.wire_s * volume,
            exposed_s=self.exposed_s * (volume if exposed_volume is None else exposed_volume),
            bytes=self.bytes * volume,
            calls=self.calls * calls,
        )

    def stretched(self, factor: Column) -> "Exchange":
        """The same in so many times the time."""
        return replace(self, wire_s=factor * self.wire_s, exposed_s=factor * self.exposed_s)


NOTHING = Exchange(wire_s=0.0, exposed_s=0.0, bytes=0.0, calls=0.0)


def exposed(communication: Column, window: Column) -> Column:
    """Communication left over by a window of compute: c^2 / (c + w). [s]"""
    return communication * communication / np.maximum(communication + window, 1e-30)


def sent(c: Cases) -> BlockExchange:
    """What the blocks of one average layer send forward, per token."""
    return fold(BlockExchange, [(w, b.exchanges()) for w, b in layer_mix(c)])


def visited(c: Cases) -> Column:
    """Experts that a token visits in a layer with experts."""
    return sum(b.exchanges().copies for b in c.shape.of(Moe))


def tp_shares(c: Cases) -> tuple[Column, Column]:
    """Share of tensor-parallel time that shows, and of the part that a backward runs beside its
    products where the stack does so (`async_reduce`)."""
    k, overlap = c.constants, c.software.tp_overlap
    pipelined = np.maximum(overlap, 0)
    alone = k.tp_exposed * np.where((overlap == 0) | (overlap == 1), 1.0, k.tp_alone)
    share = pipelined * k.tp_overlapped + (1 - pipelined) * alone
    inside = ~np.asarray(c.tp_group.across)
    share = np.where(inside, share, np.maximum(share, k.tp_exposed))
    return share, np.where(
        inside & (overlap >= 0) & (c.software.async_reduce > 0),
        np.minimum(share, k.tp_overlapped),
        share,
    )


def tensor_parallel(c: Cases) -> Exchange:
    """Forward collectives of one average layer and micro-batch over the tp group.

    Two blocks a layer, each an all-gather and a reduce-scatter (or the all-reduce of equal volume)
    of t x h activations; one block in MoE layers whose experts are not tensor-parallel, one in
    parallel-block layers. Korthikanti et al. 2022, section 4.2.2. The backward:
    `step.exchange_passes`.
    """
    p = c.plan
    payload = c.tokens * c.shape.hidden * 2
    calls = 2 * np.where(c.software.parallel_block > 0, 1.0, sent(c).tensor)
    wire = calls * ring_s(payload, c.tp_group)
    chunks = calls * chunk_waits_s(c)
    return Exchange(
        wire_s=wire + chunks,
        exposed_s=wire * tp_shares(c)[0] + chunks,
        bytes=calls * payload * (p.tp - 1) / p.tp,
        calls=calls,
    )


def chunk_waits_s(c: Cases) -> Column:
    """What the chunks of a tensor-parallel ring across nodes wait for one another over EFA: n - 1
    pass each network link one behind the other, each a step of the network, where the members of a
    node but one would hand them on at once. Over InfiniBand they do: GPT 3.6B of vTrain under tp 16
    is met within 1 % without the wait, and 15 to 23 % too slow with it. [s]"""
    w = c.tp_group
    waits = w.across & (np.asarray(w.link.srd) > 0)
    steps = np.where(waits, w.ranks - w.domains, 0.0)
    return c.constants.tp_hops * steps * hop_out(w) * RING_HOP_OUT_S[SIMPLE]


def over_cp(c: Cases, x: BlockExchange) -> tuple[Column, Column]:
    """Bytes of a micro-batch that attention and scans of the exchanges `x` put together over the
    cp group."""
    p, tokens = c.plan, c.tokens
    keys = tokens * p.cp * (2 * np.maximum(x.kv / p.tp, x.kv_head))
    relaid = tokens / p.tp * (2 * x.relaid)
    scans = tokens / p.tp * (2 * x.swapped)
    return np.where(p.cp_type == ULYSSES, relaid, keys), scans


def context_parallel(c: Cases, attention_s: Column) -> Exchange:
    """Forward key-value exchange of one layer and micro-batch over the cp group, hidden behind
    attention.

    Ring and all-gather: (cp-1)/cp of the keys and values of the whole sequence; Ulysses: four
    all-to-alls of t x h. A scan takes the whole sequence of some heads.
    """
    p, w = c.plan, c.cp_group
    ring, ulysses, many = p.cp_type == 0, p.cp_type == ULYSSES, p.cp > 1
    payload, scans = over_cp(c, sent(c))
    wire = np.where(ulysses, direct_s(payload, w), ring_s(payload, w)) * many
    left = np.where(ring, exposed(wire, c.constants.cp_window * attention_s), wire)
    swap = direct_s(scans, w) * many if some(scans) else 0.0
    return Exchange(
        wire_s=wire + swap,
        exposed_s=left + swap,
        bytes=(payload + scans) * (p.cp - 1) / p.cp,
        calls=np.select([ring, ulysses], [p.cp - 1, 4], 1),
    )


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
    which the link delivers, (m-1)/m of them to others; one per distinct domain over the card. Where
    tokens are gathered: one for every rank.
    """
    p, top_k = c.plan, visited(c)
    inside = c.ep_group.inside
    domains, once = p.ep / inside, c.software.dedup_dispatch > 0
    delivered = np.where(
        once, expected_places(p.ep, top_k), np.where(c.software.dedup_dispatch < 0, p.ep, top_k)
    )
    domains_hit = expected_places(domains, top_k, c.software.group_limit)
    return Copies(
        delivered=delivered,
        link=delivered * (inside - 1) / np.where(once, inside, p.ep),
        card=np.where(once, domains_hit * (domains - 1) / domains, delivered * (1 - inside / p.ep)),
    )


def dispatch_s(c: Cases) -> Column:
    """What one exchange of tokens takes at least between nodes whose cards deliver in any order
    (EFA): proxies of the host launch and wait for it, whatever its bytes and its peers. [s]"""
    w = c.ep_group
    return c.constants.dispatch_s * proxies(c) * (w.across & (np.asarray(w.link.srd) > 0))


def proxies(c: Cases) -> Column:
    """How much longer messages take under UCCL, whose proxies run on the host."""
    return np.where(c.software.dedup_dispatch == UCCL, c.constants.dispatch_uccl, 1.0)


def token_messages_s(c: Cases, copies: Copies) -> Column:
    """What dispatch and combine add where each token is a message to every node that it visits, and
    the cards deliver in any order: messages x `token_message_s`. [s]"""
    w = c.ep_group
    each = (c.software.dedup_dispatch > 0) & w.across & (np.asarray(w.link.srd) > 0)
    messages = 2 * c.tokens / c.plan.tp * copies.card
    return messages * c.constants.token_message_s * proxies(c) * each


def expert_parallel(c: Cases) -> Exchange:
    """Forward dispatch and combine of one average layer and micro-batch over the ep group, and the
    etp gather around them.

    Each rank sends t/tp tokens x `expert_copies`. What crosses the top of the pod, all ranks at
    once, has the card's rate / oversubscription there. Cards that deliver in any order (EFA): the
    wire or `dispatch_s`, whichever is longer, then the messages of the tokens.
    """
    p, k, s = c.plan, c.constants, c.shape
    etp = p.etp
    w = c.ep_group
    relayed = c.software.dedup_dispatch > 0
    width_share = 1 - sum(b.exchanges().narrow for b in s.of(Moe))  # of the stream's width
    one_copy = c.tokens / p.tp * s.hidden * width_share
    width = c.dispatch_bytes + 2.0  # dispatch, then combine in 16 bit
    copies, payload = expert_copies(c), one_copy * width
    outside = np.maximum(p.ep - members_inside(p.ep, etp, c.link.pod_devices), 0)
    pods = outside / np.maximum(p.ep - w.inside, 1)
    out = payload * copies.card * (1 + RAIL_ONLY * c.link.rail_only)
    out = out * np.maximum(1.0, c.link.oversubscription * pods)
    near = near_s(payload * copies.link, w, k.ep_up_share)
    any_order = np.asarray(w.link.srd) > 0
    alone = np.where(any_order, k.ep_out_efa, k.ep_out_share)
    far = far_s(out / np.where(relayed, 1.0, alone), w)
    # relayed: one message a domain, passed on inside
    peers = np.where(relayed, w.domains + w.inside - 2, p.ep - 1)
    least = 2 * dispatch_s(c)  # dispatch and combine
    all_to_all = np.maximum(exchange_s(peers, np.maximum(near, far), w), least)
    all_to_all = all_to_all + token_messages_s(c, copies)
    gathered = one_copy * visited(c) * etp * 2
    moe, many, wide = c.moe_share, p.ep > 1, etp > 1
    wire = moe * (all_to_all * many + 2 * ring_s(gathered, c.group(etp, 1)) * wide)
    # cards hide less than links, and less again where the host passes on what they send (EFA:
    # 35 % is said, 30 % fits Qwen3-30B-A3B and DeepSeek-V3 with overlap and without)
    root = np.select([w.across & any_order, w.across], [0.25, 0.5], 1.0)
    shown = np.where(c.software.ep_overlap > 0, k.ep_overlapped**root, 1.0)
    return Exchange(
        wire_s=wire,
        exposed_s=wire * shown,
        bytes=moe * (payload * (copies.link + copies.card) + 2 * gathered * (etp - 1) / etp),
        calls=2 * moe * (1 * many + wide),
    )


def pipeline_send(c: Cases) -> Exchange:
    """Point-to-point time of one micro-batch at a stage boundary, forward and backward, every
    virtual chunk. The slowest boundary sets the pace."""
    p = c.plan
    calls = 2 * p.vpp
    before = p.tp * p.cp * p.dp ** (1 - c.software.dp_outer)
    each = c.tokens * c.shape.hidden * 2 / c.sequence_shards
    topped = np.where(before >= c.link.pod_devices, c.link.oversubscription, 1.0)
    ends = c.group(2, before * p.pp / 2)
    sent_by = calls * (p.pp > 1)
    wire = sent_by * send_s(each * topped, ends)
    return Exchange(
        wire_s=wire,
        exposed_s=wire * np.where(c.software.p2p_overlap > 0, c.constants.pp_exposed, 1.0),
        bytes=sent_by * each,
        calls=calls,
    )


@record
class DataParallel:
    """Gradient and parameter traffic: once a step (`reduce` of gradients, `gather` of weights) and,
    when weights are sharded, every micro-batch (`micro`)."""

    reduce_wire_s: Column
    gather_wire_s: Column
    micro_wire_s: Column
    bytes: Column  # per device and step
    calls: Column  # per step


def uplink(c: Cases, group: Column) -> Column:
    """Share of the scale-out rate left at the top of the pod when every group's ring crosses it at
    once: no more rings than the pod has devices, so that a network that does not narrow leaves
    all."""
    p, link = c.plan, c.link
    rings = np.minimum(p.tp * p.cp * p.pp * p.dp / group, link.pod_devices)
    return np.where(
        group * p.tp * p.cp > link.pod_devices,
        np.minimum(1.0, link.pod_devices / (link.oversubscription * np.maximum(rings, 1))),
        1.0,
    )


def gradient_link(c: Cases, link: Link, ranks: Column) -> Link:
    """The links as gradient rings reach them across domains: never more than the line, less where
    nothing runs beside them, less what the top of the pod shares out."""
    reached = out_rate(Wires(1, 1, link)) / link.out_bytes_per_s
    alone = np.where(c.software.dp_overlap > 0, 1.0, c.constants.dp_alone)
    left = below_line(reached, c.constants.dp_rate * alone) / reached
    return replace(link, out_bytes_per_s=link.out_bytes_per_s * left * uplink(c, ranks))


def gradient_domain(c: Cases) -> Column:
    """Devices of a scale-up domain that replicas of one stage may share: all, or, with data
    parallelism outermost (Megatron-LM's tp-cp-ep-pp-dp), what the other stages leave, and the ranks
    of tp x cp or ep x etp at least."""
    p = c.plan
    domain = c.link.domain
    together = np.minimum(domain, np.maximum(p.tp * p.cp, p.ep * p.etp))
    return np.maximum(domain / p.pp**c.software.dp_outer, together)


def in_buckets_s(nbytes: Column, unit_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
    """Seconds of a ring over so many bytes in buckets of `unit_bytes`, one at least. [s]"""
    buckets = np.maximum(unit_bytes, 1.0)
    return buckets * ring_s(nbytes / buckets, w, rounds)


class Reductions(NamedTuple):
    """How often a stack sends gradients and weights."""

    passes: Column  # of whole gradients over the wire: 2 an all-reduce, 1 a reduce-scatter
    again: Column  # micro-batches that reduce them, beside the last one
    gathers_whole: Truth  # weights are gathered once a step
    gathers: Column  # of sharded weights in a micro-batch
    resharded: Truth  # sharded weights are gathered in each, else once a step


def reductions(c: Cases) -> Reductions:
    """Of some cases."""
    p, software = c.plan, c.software
    return Reductions(
        passes=1 + ((p.sharding == 0) | (software.grad_all_reduce > 0)),
        again=scattered_again(c),
        gathers_whole=p.sharding > 0,
        gathers=np.where(software.reshard <= 0, 1, 2),
        resharded=(software.reshard > 0) | (p.pp == 1),
    )


class Group(NamedTuple):
    """Parameters of a device, and the ranks that have the same ones or share them."""

    some: Truth  # rows that have such parameters
    grads: Column  # of a device [bytes]
    weights: Column  # as they are gathered [bytes]
    ranks: Column
    inside: Column  # of them in a domain
    shard: Column  # ranks that share weights; below `ranks` under hsdp
    sharded: Truth  # weights are shared too
    hybrid: Truth  # hsdp
    link: Link  # as rings of gradients reach it

    @property
    def copies(self) -> Column:
        """Groups of `shard` ranks that have the same."""
        return self.ranks / self.shard


def group_of(
    c: Cases, r: Reductions, params: Column, ranks: Column, packed: Column, sharding: Column
) -> Group:
    """The group of `params` parameters on a device. packed : ranks of other groups between two of
    its members."""
    hybrid = (sharding == HSDP) & r.resharded
    fp8 = low_share(c) * c.software.fp8_gather
    return Group(
        some=np.asarray(params) > 0,
        grads=params * np.maximum(c.job.grad_bytes, 4.0 * c.software.fp32_reduce),
        weights=params * (2.0 - fp8),
        ranks=ranks,
        inside=members_inside(ranks, packed, gradient_domain(c)),
        shard=np.where(hybrid, np.minimum(c.plan.shard_group, ranks), ranks),
        sharded=((sharding == ZERO3) & r.resharded) | hybrid,
        hybrid=hybrid,
        link=gradient_link(c, c.link_under_compute, ranks),
    )


def whole_s(c: Cases, r: Reductions, g: Group) -> tuple[Column, Column, Column]:
    """(gradients reduced, weights gathered once a step, gradients reduced after each other
    micro-batch) where every rank has the whole weights. [s, s, s a micro-batch]"""
    if np.all(g.sharded):
        return 0.0, 0.0, 0.0
    wires = Wires(g.ranks, g.inside, g.link)
    buckets = g.grads / c.constants.dp_bucket_bytes
    one = in_buckets_s(g.grads, buckets, wires)
    reduced = r.passes * one
    if some(g.link.sharp):  # an all-reduce in the switches, where that is faster
        n = np.maximum(buckets, 1.0)
        switched = n * sharp_s(g.grads / n, wires)
        reduced = np.where(r.passes > 1, np.minimum(reduced, switched), reduced)
    gathered = r.gathers_whole * in_buckets_s(g.weights, buckets, wires)
    again = r.again / c.micro_batches * r.passes * one
    whole = g.some & np.logical_not(g.sharded)
    return whole * reduced, whole * gathered, whole * again


def sharded_s(c: Cases, r: Reductions, g: Group) -> Column:
    """Two gathers, or one, and a reduce-scatter of each layer, in every micro-batch. [s]"""
    if not some(g.sharded):
        return 0.0
    pieces = (1 + r.gathers) * c.shape.layers / c.plan.pp
    inside = np.minimum(g.inside, g.shard)
    inside = np.where((c.software.own_card > 0) & (g.shard > inside), 1.0, inside)
    wires = Wires(g.shard, inside, c.link_under_compute)
    each = (r.gathers * g.weights + g.grads) / pieces
    return pieces * ring_s(each, wires) * (g.sharded & g.some)


def between_copies_s(c: Cases, g: Group) -> Column:
    """All-reduce of the shards across the groups of hsdp, once a step. [s]"""
    if not some(g.hybrid):
        return 0.0
    wires = Wires(g.copies, np.clip(g.inside / g.shard, 1.0, g.copies), g.link)
    part = g.grads / g.shard
    across = in_buckets_s(part, part / c.constants.dp_bucket_bytes, wires, 2.0)
    return across * (g.hybrid & g.some)


def bytes_of(c: Cases, r: Reductions, g: Group) -> Column:
    """What a device sends in a step. [bytes]"""
    each = r.gathers * g.weights + g.grads
    sharded = each * (g.shard - 1) / g.shard * c.micro_batches
    across = 2 * g.grads / g.shard * (g.copies - 1) / g.copies
    whole = r.passes * (1 + r.again) * g.grads + r.gathers_whole * g.weights
    return np.where(g.sharded, sharded + across, whole * (g.ranks - 1) / g.ranks)


def data_parallel(c: Cases, dense_params: Column, expert_params: Column) -> DataParallel:
    """Traffic over dp x cp (experts: over their own replicas) for parameters held on one device
    before data sharding.

    none: all-reduce of gradients. zero1, zero2: reduce-scatter of gradients, all-gather of 16-bit
    weights; zero2 scatters after every micro-batch, since only a shard of the gradients is kept.
    zero3: per micro-batch gather for forward and backward and a reduce-scatter; hsdp: that
    inside the shard group, then an all-reduce of the shards across groups. Experts as their own
    sharding says. Rajbhandari et al. 2020, section 7; Zhao et al. 2023 (FSDP), section 3.2.
    """
    p, r, near = c.plan, reductions(c), c.site_ranks
    reduce: Column = 0.0
    gather: Column = 0.0
    micro: Column = 0.0
    sent: Column = 0.0
    replicas = np.maximum(near * p.tp / (p.ep * p.etp), 1.0)
    for params, ranks, packed, sharding in (
        (dense_params, near, p.tp, p.sharding),
        (expert_params, replicas, p.ep * p.etp, c.expert_sharding),
    ):
        if not some(params):
            continue
        g = group_of(c, r, params, ranks, packed, sharding)
        reduced, gathered, again = whole_s(c, r, g)
        reduce = reduce + reduced + between_copies_s(c, g)
        gather = gather + gathered
        micro = micro + again + sharded_s(c, r, g)
        sent = sent + bytes_of(c, r, g)
    return DataParallel(
        reduce_wire_s=reduce + every_step_s(c),
        gather_wire_s=gather,
        micro_wire_s=micro,
        bytes=sent,
        calls=np.where(
            (p.sharding >= ZERO3) & r.resharded, (1 + r.gathers) * c.micro_batches, 2.0 + r.again
        ),
    )


def scattered_again(c: Cases) -> Column:
    """Micro-batches of a step after which gradients are reduced, beside the last one: all where a
    plan says so; under zero2 all, but for stacks that send them once a step or keep them whole
    until then."""
    once = (c.software.reduced_once > 0) | (c.constants.memory.whole_gradients > 0)
    each = (c.software.sync_each_batch > 0) | (c.plan.sharding == ZERO2) & np.logical_not(once)
    return each * (c.micro_batches - 1.0)
