"""Time of a collective by message size and algorithm: latency per hop, protocol, bandwidth ramp.

Frame: the cost model with which NCCL picks an algorithm (NVIDIA/nccl, src/graph/tuning.cc): per
algorithm and protocol a start-up time,
a time per hop on each tier, and bytes over a rate. Its hop times are the priors; `curves_fit` moves
a few factors on the published
nccl-tests series (catalogue collective_bench.csv) and writes catalogue/collective_calibration.json.
A fill term is added, that of a
pipelined transfer: t = a + T + 2 g sqrt(a T) for start-up a and wire time T (chunks of the best
size; g = 1 would be one chain).

Relation to `scantling.physics.collectives`: that module gives the step model its rates for the
large messages of training, with constants
fitted on whole runs, compute beside them. This one times a collective alone, at any size. Both use
the same ring volumes
(nccl-tests, PERFORMANCE.md) and agree on large rings within the share of the rate each assumes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from ..base.records import Record

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
ALGORITHMS = ("ring", "tree", "nvls", "sharp", "hierarchical", "direct", "relayed")
LIBRARY = ("ring", "tree", "nvls", "sharp", "direct")  # what a library picks from by itself
PROTOCOLS = ("LL", "LL128", "Simple")
# seconds, by protocol: start-up, and per hop inside a domain and between domains (tuning.cc at
# 01afd20 and 5067397, rounded)
_START = np.array([3.6, 10.0, 8.4]) * 1e-6
_RING_HOP = np.array([[0.6, 1.9, 3.4], [2.7, 4.0, 14.0]]) * 1e-6
_TREE_HOP = np.array([[0.6, 1.25, 4.0], [5.0, 8.5, 14.0]]) * 1e-6
_SHARE = np.array(
    [0.25, 0.92, 1.0]
)  # payload of a protocol's lines; LL's halves again on the way through memory
_NVLS_START, _SHARP_HOP = 25e-6, 10e-6
_TREE_SHARE = 0.9  # LL and LL128 trees over rings


@dataclass(frozen=True)
class Wires:
    """What a group of ranks runs over; numbers or columns of one shape.

    ranks, domains : members, and scale-up domains that they sit in. up_bytes_per_s, out_bytes_per_s
    : scale-up link and scale-out share
    of one device, one direction. up_share : share of the link a ring reaches where no series is
    published (nan: the fitted one);
    up_hop_s : time of a step there (nan: NVLink's). generation : NVLink generation less 3 (0 also
    for what is not NVLink).
    out_share, out_hop : share and hop time relative to InfiniBand's. ordered : 1 where the network
    writes in order, so that LL and
    LL128 work across it. efa : 1 for EFA. nvls, sharp : 1 where switches of the domain, of the
    network, reduce. mesh : 1 where every pair of the
    domain has a link of its own and no switch (MI300X and after).
    """

    ranks: object
    domains: object
    up_bytes_per_s: object
    out_bytes_per_s: object
    generation: object = 1
    up_share: object = np.nan
    up_hop_s: object = np.nan
    out_share: object = 1.0
    out_hop: object = 1.0
    ordered: object = 1
    efa: object = 0
    nvls: object = 0
    sharp: object = 0
    mesh: object = 0


@dataclass(frozen=True)
class CurveConstants:
    """Fitted factors; the sourced prior of each, and how far the series may move it, in
    `curves_fit.PRIORS`."""

    ring_share: float  # of the NVLink rate, ring, bus bandwidth
    ring_share_a100: float  # log factors of the generation
    ring_share_b200: float
    nvls_share: (
        float  # of the NVLink rate, multicast reduction: busbw = share x rate x 2 (n-1)/(n+1)
    )
    nvls_share_b200: float
    nvls_share_rack: float  # domains wider than a node, on top
    nvls_share_across: float  # two domains joined by a tree, on top
    out_share: float  # of the NICs' rate, ring across domains
    out_share_efa: float  # log factor
    tree_share: float  # Simple tree over ring
    sharp_gain: float  # reduction in the network over ring
    direct_share: float  # of the NIC's rate, all-to-all
    start: float  # factors on NCCL's times: start-up,
    hop_ll: float  # hop inside the domain, LL;
    hop: float  # the same, LL128 and Simple;
    hop_out: float  # between domains on InfiniBand and RoCE;
    hop_efa: float  # on EFA;
    hop_tree: float  # Simple tree: waiting for whole chunks;
    nvls_start: float
    nvls_start_rack: float  # per 8 devices of a wider domain
    direct_start: float  # all-to-all start-up in Simple hops between domains
    direct_peer_s: float  # seconds per peer
    fill: float  # g inside a domain
    fill_out: float  # g across
    fill_direct: (
        float  # g of an all-to-all across: every peer's piece passes its own chain of buffers
    )
    ring_share_wide: float  # rings across domains wider than a node, on top: rate,
    hop_wide: float  # and hop inside


@cache
def constants() -> CurveConstants:
    """The factors that ship with the kit, fitted on all series."""
    return CurveConstants(**calibration()["constants"])


@cache
def calibration() -> dict:
    """catalogue/collective_calibration.json: constants, and for each series those of the fit
    without it."""
    return json.loads((files("scantling.catalogue") / "collective_calibration.json").read_text())


def volume(collective, ranks):
    """Share of the message that passes every rank: 2 (n-1)/n for all-reduce, (n-1)/n for the
    others; busbw = volume x bytes / seconds."""
    return np.where(np.asarray(collective) == "all_reduce", 2.0, 1.0) * (ranks - 1) / ranks


def times(
    collective, message_bytes, w: Wires, k: CurveConstants | None = None
) -> dict[str, np.ndarray]:
    """Seconds by algorithm [shape of the arguments]; inf where an algorithm does not exist there.

    Parameters
    ----------
    collective : one of COLLECTIVES, or a column of them.
    message_bytes : as nccl-tests counts: the whole buffer of an all-reduce or all-to-all, the
    gathered (scattered) whole of the others.
    w : Wires. k : CurveConstants, those of the kit by default.

    Formulas, n ranks in d domains of m = n/d, S bytes, U link, N NIC share of one device
    (efficiencies left out):
        ring: steps (1 or 2)(n-1), (1 or 2)(d-1) of them between domains; rate U inside, min(U, m N)
        across. On a mesh every peer is one step
        away; a ring through m devices leaves the link from last to first free, so m rings across
        have m/(m-1) of U.
        tree: 2 ((m-1) hops inside + log2 d between); rate as the ring's, at most half the volume
        times m N.
        nvls: rate U 2(n-1)/(n+1), every device reads n shards reduced and writes its own to all;
        two domains at most.
        sharp: the ring's rate times a gain; one hop to the switches.
        hierarchical: reduce-scatter inside, all-reduce of S/m across, all-gather inside.
        direct (all-to-all): max(S (n-m)/n / N, S (m-1)/n / U) + a time per peer across domains;
        relayed: one message per domain, passed on inside. Inside one domain all peers
        are reached at once (no published curve; the rate is the catalogue's 0.75 of the link).
    Trees are left out across domains wider than a node, where the one published series (20 racks)
    shows the latency of a ring.
    """
    k = k or constants()
    coll, size, n, d = np.broadcast_arrays(
        np.asarray(collective),
        np.asarray(message_bytes, float),
        np.asarray(w.ranks, float),
        np.asarray(w.domains, float),
    )
    d = np.minimum(np.maximum(d, 1.0), np.maximum(n, 1.0))
    m, several, reduce_, exchange = n / d, d > 1, coll == "all_reduce", coll == "all_to_all"
    rounds, vol = np.where(reduce_, 2.0, 1.0), volume(coll, n)
    generation, efa = np.asarray(w.generation), np.asarray(w.efa) > 0
    mesh = np.asarray(w.mesh) > 0
    nic = np.where(several, w.out_bytes_per_s, 1.0)
    fitted = np.isnan(w.up_share)
    share = np.where(
        fitted,
        k.ring_share
        * np.exp(
            np.where(
                generation == 0,
                k.ring_share_a100,
                np.where(generation >= 2, k.ring_share_b200, 0.0),
            )
        ),
        w.up_share,
    )
    out = k.out_share * np.exp(np.where(efa, k.out_share_efa, 0.0)) * w.out_share
    hop_out = np.where(efa, k.hop_efa, k.hop_out * np.asarray(w.out_hop))
    link = np.asarray(w.up_bytes_per_s, float)
    ring_rate = np.where(
        several,
        np.minimum(
            link
            * share
            * np.where(m > 8, k.ring_share_wide, 1.0)
            * np.where(mesh, m / np.maximum(m - 1, 1.0), 1.0),
            m * nic * out,
        ),
        link * share,
    )
    tree_rate = np.where(several, np.minimum(link * share, vol / 2 * m * nic * out), link * share)
    fill = np.where(several, k.fill_out, k.fill)

    def total(start, wire, g=fill):
        return start + wire + 2 * g * np.sqrt(start * wire)

    ring, tree = np.full(size.shape, np.inf), np.full(size.shape, np.inf)
    between = rounds * (d - 1)
    within = np.where(mesh & ~several, rounds, rounds * (n - 1) - between)
    for p, protocol in enumerate(PROTOCOLS):
        usable = (~several | (np.asarray(w.ordered) > 0) | (protocol == "Simple")) & (
            (protocol == "Simple") | np.isnan(w.up_hop_s)
        )
        step = np.where(
            np.isnan(w.up_hop_s),
            (k.hop_ll if protocol == "LL" else k.hop)
            * np.where(several & (m > 8), k.hop_wide, 1.0)
            * _RING_HOP[0, p],
            w.up_hop_s,
        )
        start = k.start * _START[p] + step * within + hop_out * _RING_HOP[1, p] * between
        ring = np.minimum(
            ring,
            np.where(
                usable & ~exchange, total(start, vol * size / (ring_rate * _SHARE[p])), np.inf
            ),
        )
        step = step * _TREE_HOP[0, p] / _RING_HOP[0, p]
        wait, part = (k.hop_tree, k.tree_share) if protocol == "Simple" else (1.0, _TREE_SHARE)
        start = k.start * _START[p] + 2 * wait * (
            step * (m - 1) + hop_out * _TREE_HOP[1, p] * np.log2(d)
        )
        tree = np.minimum(
            tree,
            np.where(
                usable & reduce_ & several & (m <= 8),
                total(start, vol * size / (tree_rate * part * _SHARE[p])),
                np.inf,
            ),
        )

    wide = m > 8
    multicast = (
        2
        * (m - 1)
        / (m + 1)
        * link
        * k.nvls_share
        * np.exp(np.where(generation >= 2, k.nvls_share_b200, 0.0))
    )
    multicast = np.maximum(
        multicast
        * np.where(wide, k.nvls_share_rack, 1.0)
        * np.where(several, k.nvls_share_across, 1.0),
        1.0,
    )
    start = (
        k.start * _START[2]
        + k.nvls_start * _NVLS_START * np.where(wide, k.nvls_start_rack * m / 8, 1.0)
        + k.hop_tree * hop_out * _TREE_HOP[1, 2] * 2 * np.log2(d)
    )
    nvls = total(
        start,
        vol
        * size
        / np.where(
            several, np.minimum(multicast, np.maximum(vol, 1e-9) * m * nic * out), multicast
        ),
        k.fill,
    )
    nvls = np.where(reduce_ & (np.asarray(w.nvls) > 0) & (m > 4) & (d <= 2), nvls, np.inf)
    start = k.start * _START[2] + 2 * k.hop * _TREE_HOP[0, 2] * (m - 1) + hop_out * _SHARP_HOP
    sharp = np.where(
        reduce_ & (np.asarray(w.sharp) > 0) & (d > 2) & ~wide,
        total(start, vol * size / (ring_rate * k.sharp_gain)),
        np.inf,
    )

    step_in = np.where(np.isnan(w.up_hop_s), k.hop * _RING_HOP[0, 2], w.up_hop_s)
    inside = total(
        k.start * _START[2] + step_in * (m - 1), size * (m - 1) / m / (link * share), k.fill
    )
    across = total(
        k.start * _START[2] + rounds * (d - 1) * hop_out * _RING_HOP[1, 2],
        rounds * (d - 1) / d * size / m / (nic * out),
        k.fill_out,
    )
    hierarchical = np.where(~exchange & several & (m > 1), rounds * inside + across, np.inf)

    far, near = (
        np.where(several, size * (n - m) / n / (nic * k.direct_share * w.out_share), 0.0),
        size * (m - 1) / n / (link * 0.75),
    )
    begin = np.where(
        several,
        k.direct_start * hop_out * _RING_HOP[1, 2] + k.direct_peer_s * (n - 1),
        k.start * _START[2] + step_in,
    )
    direct = np.where(
        exchange,
        total(begin, np.maximum(far, near), np.where(several, k.fill_direct, k.fill)),
        np.inf,
    )
    passed_on = size * (m - 1) / m / (link * 0.75)
    relayed = np.where(
        exchange & several & (m > 1),
        total(begin - k.direct_peer_s * (n - d - m + 1), np.maximum(far, passed_on)),
        np.inf,
    )
    found = dict(zip(ALGORITHMS, (ring, tree, nvls, sharp, hierarchical, direct, relayed)))
    return {
        name: np.where(n > 1, seconds, np.where(np.isfinite(seconds), 0.0, seconds))
        for name, seconds in found.items()
    }


def fastest(collective, message_bytes, w: Wires, k: CurveConstants | None = None) -> np.ndarray:
    """Seconds of the algorithm that a library picks: the fastest of LIBRARY. [shape of the
    arguments]"""
    by = times(collective, message_bytes, w, k)
    return np.min([by[name] for name in LIBRARY], axis=0)


@dataclass(frozen=True)
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
    seconds: dict
    picked: tuple[str, ...]
    busbw_bytes_per_s: tuple[float, ...]
    half_size_bytes: float  # message at half of the largest bus bandwidth


SIZES = tuple(2.0**e for e in range(10, 35, 2))


def curve(
    collective: str, w: Wires, axis: str = "", sizes=SIZES, could_reduce: bool = False
) -> Curve:
    """The curve of one group by every algorithm that exists there; `could_reduce` shows what
    reduction in the network would add."""
    by = times(collective, np.asarray(sizes), replace(w, sharp=1) if could_reduce else w)
    own = {
        name: tuple(float(x) for x in seconds)
        for name, seconds in by.items()
        if np.all(np.isfinite(seconds))
    }
    library = [name for name in own if name in LIBRARY and (name != "sharp" or w.sharp)]
    table = np.array([own[name] for name in library])
    best = table.argmin(axis=0)
    bus = (
        volume(collective, float(w.ranks))
        * np.asarray(sizes)
        / np.maximum(table.min(axis=0), 1e-12)
    )
    half = float(np.interp(bus.max() / 2, np.maximum.accumulate(bus), sizes))
    return Curve(
        collective,
        axis,
        int(w.ranks),
        int(np.ceil(w.domains)),
        tuple(sizes),
        own,
        tuple(library[i] for i in best),
        tuple(float(b) for b in bus),
        half,
    )


def wires(cluster, ranks: int, inside: int, out_share: float = 1.0, fabric=None) -> Wires:
    """The wires of a group on a cluster: `inside` of its ranks share a scale-up domain; `out_share`
    of the NIC rate is its own.

    Fabrics without a published series keep the class constants, scaled by the catalogue's
    efficiency and step time against ib-ndr's;
    scale-up links other than NVLink use the catalogue's efficiency and step time as they are. In a
    mesh a group has only the links among itself.
    """
    from .. import catalogue

    reference = catalogue.fabric("ib-ndr")
    up, out = catalogue.fabric(cluster.scale_up), fabric or catalogue.fabric(cluster.scale_out)
    nvlink = up.technology == "nvlink"
    generation = max(0, int(up.id[6]) - 3) if nvlink and up.id[6:7].isdigit() else 0
    efa = out.technology == "efa"
    scale, hop = (
        (1.0, 1.0)
        if efa
        else (
            cluster.scale_out_efficiency / reference.efficiency,
            cluster.scale_out_latency_s / reference.latency_s,
        )
    )
    pair = up.p2p_bytes_per_s
    mesh = (
        up.technology == "xgmi"
        and abs(pair * (up.domain_devices - 1) / cluster.scale_up_bytes_per_s - 1) < 0.01
    )
    return Wires(
        ranks=float(ranks),
        domains=max(1.0, ranks / max(inside, 1)),
        up_bytes_per_s=pair * max(inside - 1, 1) if mesh else cluster.scale_up_bytes_per_s,
        out_bytes_per_s=cluster.scale_out_bytes_per_s * out_share,
        generation=min(generation, 2),
        up_share=np.nan if nvlink else cluster.scale_up_efficiency,
        up_hop_s=np.nan if nvlink else cluster.scale_up_latency_s,
        out_share=min(scale, 1.05),
        out_hop=hop,
        ordered=0 if efa else 1,
        efa=1 if efa else 0,
        nvls=1 if nvlink and up.in_network_reduction else 0,
        sharp=1 if cluster.in_network_reduction else 0,
        mesh=int(mesh),
    )
