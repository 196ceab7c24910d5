"""Time of a collective by message size, group and algorithm: the one model of step, network
blueprint and report.

Frame: the cost model with which NCCL picks an algorithm (NVIDIA/nccl, src/graph/tuning.cc): per
algorithm and protocol a start-up time, a time per hop on each tier, and bytes over a rate. Its hop
times are the priors; a fit moves a few factors on the published nccl-tests series (catalogue
collective_bench.csv) and writes catalogue/collective_calibration.json.

Volumes follow ring algebra as nccl-tests states it (doc/PERFORMANCE.md): an all-gather or
reduce-scatter of S bytes over n ranks moves S (n-1)/n bytes through every rank; an all-reduce
twice that. Symbols: n ranks, m of them in each scale-up domain, d = n/m domains, U the rate of the
scale-up link, N that of a device's share of the network cards.

Every argument is a number or a column; columns of plans pass through unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from typing import Protocol

import numpy as np

from ..base.columns import Array, Column, rows_of, some
from ..base.records import Lines, Record, record, take
from ..design.cluster import Cluster, NetworkMeasured
from .wires import Link, Wires, link_of

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
PROTOCOLS = ("LL", "LL128", "Simple")
SIMPLE = PROTOCOLS.index("Simple")
# seconds, by protocol: start-up, and per hop inside a domain and between domains (tuning.cc at
# 01afd20 and 5067397, rounded)
START_S = (3.6e-6, 10.0e-6, 8.4e-6)
RING_HOP_S, RING_HOP_OUT_S = (0.6e-6, 1.9e-6, 3.4e-6), (2.7e-6, 4.0e-6, 14.0e-6)
TREE_HOP_S, TREE_HOP_OUT_S = (0.6e-6, 1.25e-6, 4.0e-6), (5.0e-6, 8.5e-6, 14.0e-6)
# payload of a protocol's lines (NCCL user guide, NCCL_PROTO); LL's halves again on the way through
# memory
PAYLOAD = (0.25, 0.92, 1.0)
NVLS_START_S, SHARP_HOP_S = 25e-6, 10e-6
TREE_SHARE = 0.9  # LL and LL128 trees over rings (tuning.cc)
EXCHANGE_UP = 0.75  # of the scale-up rate in an all-to-all (DeepEP, nccl-tests)
NODE = 8  # devices of the widest domain that trees and plain rings were measured on
LARGE_MESSAGE = 8e9  # bytes: nccl-tests are read at their largest sizes
FEW = 2048  # rows below which looking for runs takes longer than the formula


def volume(collective: str | Array, ranks: Column) -> Column:
    """Share of the message that passes every rank: 2 (n-1)/n for all-reduce, (n-1)/n for the
    others; busbw = volume x bytes / seconds."""
    share: Column = (1.0 + (np.asarray(collective) == "all_reduce")) * (ranks - 1) / ranks
    return share


# Rates and hops ------------------------------------------------------------------------------


def link_rate(w: Wires) -> Column:
    """Bytes/s of the links that the members of a domain have among them: all of a device's behind
    a switch, one a peer on a mesh: U (m-1)/(domain-1); U for a device that is a domain of its own,
    whose ring the network limits."""
    link, others = w.link, np.maximum(w.link.domain - 1, 1)
    peers = np.where(w.inside > 1, w.inside - 1, others) / others
    return link.up_bytes_per_s * np.where(link.mesh > 0, peers, 1.0)


def up_rate(w: Wires) -> Column:
    """Bytes/s that a ring reaches on the links of a domain: U x share."""
    k, generation, known = w.k, w.link.generation, w.link.up_share
    factor = np.where(generation == 0, k.ring_share_a100, k.ring_share_b200 * (generation >= 2))
    return link_rate(w) * np.where(np.isnan(known), k.ring_share * np.exp(factor), known)


def out_rate(w: Wires) -> Column:
    """Bytes/s that a ring reaches on one device's share of the cards: N x share, never above N; the
    measured share where there is one."""
    share = w.k.out_share * np.exp(w.k.out_share_efa * w.link.srd) * w.link.out_share
    measured = w.link.ring_reach
    return w.link.out_bytes_per_s * np.where(np.isnan(measured), np.minimum(share, 1.0), measured)


def ring_rate(w: Wires) -> Column:
    """Bytes/s that pass each rank of a ring: the link where the group lies inside a domain, else
    min(U, m N): every member drives its own card.

    On a mesh a ring through m devices leaves the link from last to first free, so m rings across
    have m/(m-1) of U.
    """
    m, up = w.inside, up_rate(w)
    wide = np.where(m > NODE, w.k.ring_share_wide, 1.0)
    spare = np.where(w.link.mesh > 0, m / np.maximum(m - 1, 1.0), 1.0)
    return np.where(w.across, np.minimum(up * wide * spare, m * out_rate(w)), up)


def hop_in(w: Wires, protocol: int) -> Column:
    """Seconds of a ring's step inside a domain."""
    return np.where(
        np.isnan(w.link.up_hop_s),
        (w.k.hop if protocol else w.k.hop_ll) * RING_HOP_S[protocol],
        w.link.up_hop_s,
    )


def hop_out(w: Wires) -> Column:
    """Factor on the protocols' hop times between domains."""
    return np.where(w.link.srd > 0, w.k.hop_efa, w.k.hop_out * w.link.out_hop)


def start_s(w: Wires, protocol: int = SIMPLE) -> Column:
    """Start-up of a protocol. [s]"""
    return w.k.start * START_S[protocol]


def usable(w: Wires, protocol: int) -> bool | Array:
    """True where a protocol works: LL and LL128 need NVLink, and a network that writes in order."""
    if protocol == SIMPLE:
        return True
    return np.isnan(w.link.up_hop_s) & (~np.asarray(w.across) | (w.link.srd == 0))


def below_line(share: Column, factor: Column) -> Column:
    """A share of the line times a factor, bent so that it never exceeds the line:
    (1 + (share^-q - 1) factor^-q)^(-1/q), q = 8; `share` at factor 1, 1 at most."""
    q = 8
    return (1 + (share**-q - 1) * factor**-q) ** (-1 / q)


def pipelined_s(start: Column, wire: Column, g: Column) -> Column:
    """Seconds of a pipelined transfer: a + T + 2 g sqrt(a T) for start-up a and wire time T.

    Chunks of the best size; g = 1 would be one chain.
    """
    return start + wire + 2 * g * np.sqrt(start * wire)


def fastest_protocol_s(w: Wires, seconds: Callable[[int], Column]) -> Column:
    """The least of `seconds(protocol)` over the protocols that work on these wires."""
    best = seconds(SIMPLE)
    for protocol in range(SIMPLE):
        works = usable(w, protocol)
        if some(works):
            best = np.where(works, np.minimum(best, seconds(protocol)), best)
    return np.where(w.ranks > 1, best, 0.0)


class Formula(Protocol):
    """Seconds of a message on wires; rounds: 1 for an all-gather or reduce-scatter, 2 for an
    all-reduce."""

    def __call__(self, message_bytes: Column, w: Wires, rounds: Column = ...) -> Column: ...


def once_per_run(formula: Formula) -> Formula:
    """`formula(message_bytes, wires, ...)` evaluated once per run of equal rows: plans are
    enumerated so that those of one split follow each other, and thousands share a collective."""

    @wraps(formula)
    def evaluated(message_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
        inputs = (message_bytes, w.ranks, w.inside, *vars(w.link).values())
        columns = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim]
        size = max(map(len, columns), default=1)
        if size >= FEW and all(len(x) == size for x in columns):
            at = np.flatnonzero(np.r_[True, np.any([x[1:] != x[:-1] for x in columns], axis=0)])
            if 2 * len(at) <= size:
                once = formula(rows_of(message_bytes, at), take(w, at), rounds)
                return np.repeat(once, np.diff(at, append=size))
        return formula(message_bytes, w, rounds)

    return evaluated


# Algorithms: message bytes, wires, and rounds: 1 for an all-gather or reduce-scatter, 2 for an
# all-reduce; inf where an algorithm does not exist


@once_per_run
def ring_s(message_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
    """Seconds of a ring.

    rounds (n-1) steps, rounds (d-1) of them between domains; rounds (n-1)/n S bytes at the ring's
    rate. On a mesh every peer of a domain is one step away.
    """
    k, link, n, several = w.k, w.link, w.ranks, np.asarray(w.across)
    wire = rounds * (n - 1) / n * message_bytes / ring_rate(w)
    between = rounds * (w.domains - 1)
    within = np.where((link.mesh > 0) & ~several, rounds, rounds * (n - 1) - between)
    # a step's time of its own is not shortened by the width of the domain
    wide = several & (w.inside > NODE) & np.isnan(link.up_hop_s)
    within = within * np.where(wide, k.hop_wide, 1.0)
    between = hop_out(w) * between
    fill = np.where(several, k.fill_out, k.fill)

    def seconds(p: int) -> Column:
        return pipelined_s(
            start_s(w, p) + hop_in(w, p) * within + RING_HOP_OUT_S[p] * between,
            wire / PAYLOAD[p],
            fill,
        )

    return fastest_protocol_s(w, seconds)


def tree_s(message_bytes: Column, w: Wires, rounds: Column = 2.0) -> Column:
    """Seconds of an all-reduce by a tree across domains.

    2 ((m-1) hops inside + log2 d between); rate as the ring's, at most half the volume times m N.
    Trees are left out across domains wider than a node, where the one published series (20 racks)
    shows the latency of a ring.
    """
    k, n, m = w.k, w.ranks, w.inside
    vol = rounds * (n - 1) / n
    rate = np.minimum(up_rate(w), np.maximum(vol, 1e-9) / 2 * m * out_rate(w))

    def seconds(p: int) -> Column:
        wait, part = (k.hop_tree, k.tree_share) if p == SIMPLE else (1.0, TREE_SHARE)
        step = hop_in(w, p) * TREE_HOP_S[p] / RING_HOP_S[p] * (m - 1)
        between = hop_out(w) * TREE_HOP_OUT_S[p] * np.log2(w.domains)
        return pipelined_s(
            start_s(w, p) + rounds * wait * (step + between),
            vol * message_bytes / (rate * part * PAYLOAD[p]),
            k.fill_out,
        )

    return np.where(w.across & (m <= NODE), fastest_protocol_s(w, seconds), np.inf)


def nvls_s(message_bytes: Column, w: Wires, rounds: Column = 2.0) -> Column:
    """Seconds of an all-reduce in the switches of the domain (multicast).

    Rate U 2(n-1)/(n+1): every device reads n shards reduced and writes its own to all. Five devices
    at least, two domains at most.
    """
    k, n, m, several = w.k, w.ranks, w.inside, w.across
    vol, wide = rounds * (n - 1) / n, m > NODE
    share = k.nvls_share * np.exp(k.nvls_share_b200 * (w.link.generation >= 2))
    share = share * np.where(wide, k.nvls_share_rack, 1.0)
    share = share * np.where(several, k.nvls_share_across, 1.0)
    rate = np.maximum(2 * (m - 1) / (m + 1) * link_rate(w) * share, 1.0)
    rate = np.where(several, np.minimum(rate, np.maximum(vol, 1e-9) * m * out_rate(w)), rate)
    switches = k.nvls_start * NVLS_START_S * np.where(wide, k.nvls_start_rack * m / NODE, 1.0)
    tree = k.hop_tree * hop_out(w) * TREE_HOP_OUT_S[SIMPLE] * 2 * np.log2(w.domains)
    took = pipelined_s(start_s(w) + switches + tree, vol * message_bytes / rate, k.fill)
    return np.where((w.link.nvls > 0) & (m > 4) & (w.domains <= 2), took, np.inf)


def sharp_s(message_bytes: Column, w: Wires, rounds: Column = 2.0) -> Column:
    """Seconds of an all-reduce in the switches of the network, where they reduce.

    The ring's rate times a gain; one hop to the switches.
    """
    k, n, m = w.k, w.ranks, w.inside
    inside = 2 * k.hop * TREE_HOP_S[SIMPLE] * (m - 1)
    took = pipelined_s(
        start_s(w) + inside + hop_out(w) * SHARP_HOP_S,
        rounds * (n - 1) / n * message_bytes / (ring_rate(w) * k.sharp_gain),
        k.fill_out,
    )
    return np.where((w.link.sharp > 0) & (w.domains > 2) & (m <= NODE), took, np.inf)


def hierarchical_s(message_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
    """Seconds by tiers, where the group is several domains of several members.

    All-reduce: reduce-scatter inside, all-reduce of S/m across, all-gather inside.
    """
    k, m, d = w.k, w.inside, w.domains
    near = pipelined_s(
        start_s(w) + hop_in(w, SIMPLE) * (m - 1), message_bytes * (m - 1) / m / up_rate(w), k.fill
    )
    took = rounds * near + pipelined_s(
        start_s(w) + rounds * (d - 1) * hop_out(w) * RING_HOP_OUT_S[SIMPLE],
        rounds * (d - 1) / d * message_bytes / m / out_rate(w),
        k.fill_out,
    )
    return np.where((d > 1) & (m > 1), took, np.inf)


def exchange_start_s(peers: Column, w: Wires) -> Column:
    """Start-up of an all-to-all: across domains some hops and a time a peer, inside one step (all
    peers are reached at once; no published curve)."""
    k = w.k
    return np.where(
        w.across,
        k.direct_start * hop_out(w) * RING_HOP_OUT_S[SIMPLE] + k.direct_peer_s * peers,
        start_s(w) + hop_in(w, SIMPLE),
    )


def far_s(out_bytes: Column, w: Wires) -> Column:
    """Seconds that the bytes of an all-to-all take over one device's share of the cards."""
    usual = np.minimum(w.k.direct_share * w.link.out_share, 1.0)
    measured = w.link.exchange_reach
    rate = w.link.out_bytes_per_s * np.where(np.isnan(measured), usual, measured)
    return np.where(w.across, out_bytes / rate, 0.0)


def near_s(up_bytes: Column, w: Wires, share: Column = 1.0) -> Column:
    """Seconds that the bytes of an all-to-all take over the links of a domain."""
    return up_bytes / (link_rate(w) * EXCHANGE_UP * share)


def exchange_s(peers: Column, wire: Column, w: Wires) -> Column:
    """Seconds of an all-to-all from the wire time of its slower tier; 0 for one rank."""
    fill = np.where(w.across, w.k.fill_direct, w.k.fill)
    return np.where(w.ranks > 1, pipelined_s(exchange_start_s(peers, w), wire, fill), 0.0)


@once_per_run
def direct_s(message_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
    """Seconds of an all-to-all in which each rank sends S bytes spread evenly over the group.

    max(S (n-m)/n / N, S (m-1)/n / U) + a time per peer across domains.
    """
    n, m = w.ranks, w.inside
    far = far_s(message_bytes * (n - m) / n, w)
    near = near_s(message_bytes * (m - 1) / n, w)
    return exchange_s(n - 1, np.maximum(far, near), w)


def relayed_s(message_bytes: Column, w: Wires, rounds: Column = 1.0) -> Column:
    """Seconds of an all-to-all with one message per domain, passed on inside (DeepEP), where the
    group is several domains of several members."""
    n, m, d = w.ranks, w.inside, w.domains
    far = far_s(message_bytes * (n - m) / n, w)
    near = near_s(message_bytes * (m - 1) / m, w)
    took = pipelined_s(exchange_start_s(d + m - 2, w), np.maximum(far, near), w.k.fill_out)
    return np.where((d > 1) & (m > 1), took, np.inf)


# What a library picks ------------------------------------------------------------------------

ALGORITHMS = {
    "all_reduce": ("ring", "tree", "nvls", "sharp", "hierarchical"),
    "all_gather": ("ring", "hierarchical"),
    "reduce_scatter": ("ring", "hierarchical"),
    "all_to_all": ("direct", "relayed"),
}
SECONDS: Mapping[str, Formula] = {
    "ring": ring_s,
    "tree": tree_s,
    "nvls": nvls_s,
    "sharp": sharp_s,
    "hierarchical": hierarchical_s,
    "direct": direct_s,
    "relayed": relayed_s,
}
LIBRARY = ("ring", "tree", "nvls", "sharp", "direct")  # what a library picks from by itself


def times(
    collective: str, message_bytes: Column, w: Wires, among: Sequence[str] = tuple(SECONDS)
) -> dict[str, Array]:
    """Seconds by algorithm [shape of the arguments]; inf where an algorithm does not exist there.

    message_bytes : as nccl-tests counts: the whole buffer of an all-reduce or all-to-all, the
    gathered (scattered) whole of the others. among : the algorithms asked for; all by default.
    """
    rounds = 2.0 if collective == "all_reduce" else 1.0
    size = np.asarray(message_bytes, float)
    took = {n: SECONDS[n](size, w, rounds) for n in ALGORITHMS[collective] if n in among}
    return {n: np.where((w.ranks > 1) | np.isinf(s), s, 0.0) for n, s in took.items()}


def fastest(collective: str, message_bytes: Column, w: Wires) -> Column:
    """Seconds of the algorithm that a library picks: the fastest of LIBRARY. [shape of the
    arguments]"""
    seconds: Column = reduce(np.minimum, times(collective, message_bytes, w, LIBRARY).values())
    return seconds


def picked(collective: str, message_bytes: Column, w: Wires) -> str:
    """Name of the algorithm that a library picks for one message."""
    by = times(collective, message_bytes, w, LIBRARY)
    return min(by, key=lambda name: float(by[name]))


def send_s(message_bytes: Column, w: Wires) -> Column:
    """Seconds of one send between two ranks: S over a ring's rate, and one step."""
    rate = np.where(w.across, out_rate(w), up_rate(w))
    step = np.where(w.across, hop_out(w) * RING_HOP_OUT_S[SIMPLE], hop_in(w, SIMPLE))
    return message_bytes / rate + start_s(w) + step


# What was measured ---------------------------------------------------------------------------


def measured_link(link: Link, devices: Column, rates: NetworkMeasured) -> Link:
    """The links with what was measured of them in the place of what their fabrics reach; those of
    rates that nobody measured as they are.

    Over d domains of m devices an all-reduce's bus bandwidth is that of m rings, each on a card of
    its own: busbw / m a card, of an all-to-all's the part that leaves the domain: busbw (n - m) /
    (n - 1) (nccl-tests, doc/PERFORMANCE.md). No more than the line. In a node the links are scaled
    by what is measured over what rings or the switches reach there, 1 at most.
    """
    if all(np.all(np.isnan(rate)) for rate in vars(rates).values()):
        return link
    n = np.maximum(devices, 1.0)
    inside = np.minimum(link.domain, n)
    across, line = n > inside, link.out_bytes_per_s
    ring = np.minimum(rates.all_reduce / inside / line, 1.0)
    exchange = np.minimum(rates.all_to_all * (n - inside) / np.maximum(n - 1, 1.0) / line, 1.0)
    node = Wires(inside, inside, link)
    message = LARGE_MESSAGE * (inside > 1)
    seconds = np.minimum(ring_s(message, node, 2.0), nvls_s(message, node))
    usual = volume("all_reduce", inside) * message / np.maximum(seconds, 1e-12)
    whole = np.where(
        across, rates.all_reduce_in_node, np.fmax(rates.all_reduce_in_node, rates.all_reduce)
    )
    health = np.where(np.isnan(whole) | (inside <= 1), 1.0, whole / np.maximum(usual, 1.0))
    return replace(
        link,
        up_bytes_per_s=link.up_bytes_per_s * np.minimum(health, 1.0),
        ring_reach=np.where(across, ring, np.nan)[()],
        exchange_reach=np.where(across, exchange, np.nan)[()],
    )


def links_of_machine(cluster: Cluster) -> Link:
    """The links of a cluster, as measured where they were."""
    return measured_link(link_of(cluster), float(cluster.devices), cluster.measured)


# Curves over message sizes -------------------------------------------------------------------


@record
class Curve(Record):
    """One collective of one group over message sizes: seconds by algorithm, what a library picks,
    and its bus bandwidth."""

    collective: str
    axis: str
    ranks: int
    domains: int
    message_bytes: tuple[float, ...]
    # algorithm -> seconds by size; `sharp` also where switches could reduce and the design does not
    # say so
    seconds: dict[str, tuple[float, ...]]
    picked: Lines
    busbw_bytes_per_s: tuple[float, ...]
    half_size_bytes: float  # message at half of the largest bus bandwidth


SIZES = tuple(2.0**e for e in range(10, 35, 2))


def curve(collective: str, w: Wires, axis: str = "", could_reduce: bool = False) -> Curve:
    """The curve of one group by every algorithm that exists there; `could_reduce` shows what
    reduction in the network would add."""
    by = times(collective, np.asarray(SIZES), reducing(w) if could_reduce else w)
    own = {name: seconds for name, seconds in by.items() if np.all(np.isfinite(seconds))}
    library = [name for name in own if name in LIBRARY and (name != "sharp" or w.link.sharp)]
    table = np.array([own[name] for name in library])
    bus = volume(collective, float(w.ranks)) * np.asarray(SIZES) / np.maximum(table.min(0), 1e-12)
    return Curve(
        collective=collective,
        axis=axis,
        ranks=int(w.ranks),
        domains=int(np.ceil(w.domains)),
        message_bytes=tuple(SIZES),
        seconds={name: tuple(map(float, seconds)) for name, seconds in own.items()},
        picked=tuple(library[i] for i in table.argmin(0)),
        busbw_bytes_per_s=tuple(map(float, bus)),
        half_size_bytes=float(np.interp(bus.max() / 2, np.maximum.accumulate(bus), SIZES)),
    )


def reducing(w: Wires) -> Wires:
    """The same wires with switches that reduce."""
    return replace(w, link=replace(w.link, sharp=1))


def wires(cluster: Cluster, ranks: int, inside: int, out_share: float = 1.0) -> Wires:
    """The wires of a group on a cluster: `inside` of its ranks share a scale-up domain; `out_share`
    of the NIC rate is its own."""
    link = links_of_machine(cluster)
    link = replace(link, out_bytes_per_s=link.out_bytes_per_s * out_share)
    return Wires(float(ranks), float(min(max(inside, 1), ranks)), link)
