"""Published benchmarks of kernels and collectives by size, from the functions that the step model
times them with."""

from dataclasses import replace

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array, Column
from scantling.base.records import take
from scantling.blocks.answers import Gemm
from scantling.catalogue.rows import CollectiveSeries
from scantling.catalogue.words import PRECISIONS
from scantling.physics import collectives
from scantling.physics.cases import Plan, code
from scantling.physics.collectives import exchange_s, far_s, near_s, ring_s
from scantling.physics.compute import device, expected_places
from scantling.physics.constants import gather
from scantling.physics.gather import chip_of
from scantling.physics.wires import Link, Wires
from scantling.runs.links import link_of_chip
from scantling_logs.collective_points import points

from .forms import GENERIC_JOB, bare, gpt
from .recreation import Curves, Figure, Point

SMALLEST_BYTES = 65_536  # from here on; below, start-up is all there is


def _link(accelerator: str, domain: int, out_bytes_per_s: float = 50e9) -> Link:
    """Links of one chip of the catalogue, `domain` of them together, InfiniBand between."""
    link = link_of_chip(catalogue.accelerator(accelerator), "ib-ndr")
    return replace(link, domain=domain, out_bytes_per_s=out_bytes_per_s)


def bus_bytes_per_s(series: CollectiveSeries, message_bytes: Column) -> Column:
    """Bus bandwidth that the step model gives a series of collective_bench.csv, as nccl-tests
    counts it [bytes/s]: all-reduces by rings, all-to-alls straight to every rank."""
    n = series.devices
    nodes = max(series.nvlink_domains, 1)
    out = series.link_bytes_per_s if nodes > 1 else 50e9
    w = Wires(n, n // nodes, _link(series.accelerator, n // nodes, out))
    if series.collective == "alltoall":
        op = "all_to_all"
        seconds = collectives.direct_s(message_bytes, w)
    else:
        op = "all_reduce"
        seconds = ring_s(message_bytes, w, 2.0)
    return collectives.volume(op, n) * message_bytes / seconds


SIZES = {
    "8 A100, one node": "azure_a100_1n_ar",
    "8 H100, one node (switches reduce)": "azure_h100_1n_ar",
    "32 A100, four nodes": "a100_4n_ar",
    "64 H100, eight nodes (SHARP)": "cw_h100_8n_ar_sharp",
}
RANKS = {n: f"aws_p5_h100_{n // 8}n_alltoall" for n in (16, 32, 64, 128, 256)}


def _point(
    name: str,
    x: float,
    series: CollectiveSeries,
    bus: float,
    ours: Column,
    *,
    locator: str = "",
    why: str = "",
) -> Point:
    """A published bus bandwidth of a series beside ours [bytes/s]; not counted where `why` says."""
    return Point(
        series=name,
        x=x,
        published=bus / 1e9,
        ours=float(ours) / 1e9,
        title=series.source,
        url=_address(series.source),
        locator=locator or f"series {series.id}",
        counted=not why,
        why=why,
    )


def _address(source: str) -> str:
    repository = source.split("@")[0].split(" ")[0]
    if "/" not in repository:
        return source
    return f"https://github.com/{'/'.join(repository.split('/')[:2])}"


def alone_bytes_per_s(id: str, message_bytes: Array) -> Array:
    """Bus bandwidth of a collective alone by message size, best algorithm and protocol
    (physics.collectives), for the wires of a published series [bytes/s]."""
    p = points()
    p = p.take(p.series == id)
    sizes = np.asarray(message_bytes, float)
    kind = str(p.collective[0])
    one = take(p.wires, np.zeros(len(sizes), int))
    seconds = collectives.fastest(kind, sizes, one)
    return np.asarray(collectives.volume(kind, one.ranks) * sizes / seconds)


def collectives_by_size() -> list[Point]:
    """All-reduces of the series of SIZES."""
    points = []
    for name, id in SIZES.items():
        s = catalogue.collective_series()[id]
        sizes = np.asarray(s.message_bytes, float)
        for size, bus, ours in zip(sizes, s.busbw_bytes_per_s, alone_bytes_per_s(id, sizes)):
            if size >= SMALLEST_BYTES:
                points.append(_point(name, float(size), s, bus, ours))
    return points


def _size_curves() -> Curves:
    axis = np.geomspace(SMALLEST_BYTES, 16e9, 60)
    return {name: (axis, alone_bytes_per_s(id, axis) / 1e9) for name, id in SIZES.items()}


def all_to_all_by_ranks() -> list[Point]:
    """The largest message of the series of RANKS."""
    points = []
    for n, id in RANKS.items():
        s = catalogue.collective_series()[id]
        size, bus = max(zip(s.message_bytes, s.busbw_bytes_per_s))
        ours = bus_bytes_per_s(s, size)
        points.append(_point("8 H100 a node, largest message", float(n), s, bus, ours))
    return points


def dispatch_bytes_per_s(ranks: int, value_bytes: float) -> float:
    """Dispatch bandwidth as DeepEP prints it for H800 [bytes/s]: on one node all copies by the
    links' clock, across nodes the copies counted once a node (its own included) by the cards'
    clock, node-limited routing."""
    tokens = 4096
    hidden = 7168
    top_k = 8
    experts_nodes = 4
    inside = min(ranks, 8)
    w = Wires(ranks, inside, _link("h800-sxm", 8))
    chip = catalogue.accelerator("h800-sxm")
    nodes = ranks // inside
    one = tokens * hidden * value_bytes
    copies = expected_places(ranks, top_k)
    counted = expected_places(nodes, top_k, experts_nodes) if nodes > 1 else copies
    leaving = counted * (nodes - 1) / nodes
    near = near_s(
        one * copies * (inside - 1) / inside, w, gather(chip.family, chip.id, None).ep_up_share
    )
    seconds = exchange_s(nodes + inside - 2, np.maximum(near, far_s(one * leaving, w)), w)
    return float(one * counted / seconds)


def dispatch_by_ranks() -> list[Point]:
    """Dispatch and combine of DeepEP's normal kernels."""
    known = catalogue.collective_series()
    points = []
    for ranks in (8, 16, 32, 64):
        why = "forwarding inside the receiving node is the bottleneck" if ranks == 16 else ""
        tier = "intranode" if ranks == 8 else "internode"
        for way, width in (("dispatch", 1.0), ("combine", 2.0)):
            s = known[f"deepep_v1_{tier}_ep{ranks}_{way}"]
            points.append(
                _point(
                    f"{way}, 4,096 tokens, top 8",
                    float(ranks),
                    s,
                    s.busbw_bytes_per_s[0],
                    dispatch_bytes_per_s(ranks, width),
                    locator="normal kernels",
                    why=why,
                )
            )
    return points


GEMMS = {
    "A100, fp16": ("a100-80-sxm", "fp16"),
    "H100, fp8": ("h100-sxm", "fp8"),
    "H200, fp8": ("h200-sxm", "fp8"),
    "GB200, fp8": ("gb200-nvl72", "fp8"),
}


def gemm_share(accelerator: str, precision: str, size: Column) -> Array:
    """Share of the dense peak that a product of two square matrices of this size reaches in the
    model: 2 size^3 / (peak x seconds)."""
    chip = catalogue.accelerator(accelerator)
    name = "bf16" if precision == "fp16" else precision
    case = bare(
        gpt(1, 4096, 32),
        Plan(),
        job=replace(GENERIC_JOB, precision=code(PRECISIONS, name)),
        chip=replace(chip_of([chip], [precision], chip.scale_up_domain), wave_outputs=0.0),
        constants=gather(chip.family, chip.id, None),
    )
    size = np.asarray(size, float)
    flops = 2 * size**3
    seconds = device(case).gemm_s(Gemm("product", flops, 3 * size**2, 1))
    return np.asarray(flops / seconds / case.chip.linear_flops)


def gemm_by_size() -> list[Point]:
    """Square products of Azure's sustained runs."""
    return [
        Point(
            series=name,
            x=g.m,
            published=g.fraction,
            ours=float(gemm_share(chip, precision, g.m)),
            title=g.source.split(" (")[0],
            locator="cuBLASLt, random data, sustained",
            url=_address(g.source),
            counted=g.m >= 2048,
            why="" if g.m >= 2048 else "below the sizes of training",
        )
        for name, (chip, precision) in GEMMS.items()
        for g in catalogue.gemm_points()
        if (g.accelerator, g.dtype, g.op) == (chip, precision, "matmul")
        and g.shape_class == "Azure sustained"
        and g.m == g.n == g.k
    ]


def _gemm_curves() -> Curves:
    axis = np.geomspace(1024, 32768, 40)
    return {
        name: (axis, gemm_share(chip, precision, axis)) for name, (chip, precision) in GEMMS.items()
    }


GEMM_SIZE = Figure(
    id="gemm-size",
    title="Matrix products by size",
    basis="kernels",
    formula="2mnk / (R (1 + c (R / B) (1/m + 1/n + 1/k)) + launch), R = peak x share",
    x="m = n = k",
    quantity="share of dense peak",
    unit="1",
    absolute=True,
    median=0.09,
    worst=0.22,
    misses=(
        "the share is that of training shapes, beside traffic and at the clock "
        "that a whole step leaves"
    ),
    log="x",
    points=gemm_by_size,
    curves=_gemm_curves,
)
COLLECTIVES_SIZE = Figure(
    id="collectives-size",
    title="All-reduce by message size",
    basis="kernels",
    formula=(
        "best of ring, tree and reduction in the switches: start-up, a time a "
        "hop and protocol, wire time 2 V (n - 1) / n over the slower tier, "
        "pipeline fill"
    ),
    x="bytes",
    quantity="bus bandwidth",
    unit="GB/s",
    median=0.06,
    worst=0.45,
    fitted=True,
    misses="the sizes at which the library changes from one protocol or algorithm to the next",
    log="xy",
    points=collectives_by_size,
    curves=_size_curves,
)
ALL_TO_ALL = Figure(
    id="all-to-all",
    title="All-to-all by ranks",
    basis="kernels",
    formula="the share (n - 8) / n of the bytes leaves the node over the rank's own card",
    x="ranks",
    quantity="bus bandwidth",
    unit="GB/s",
    median=0.06,
    worst=0.12,
    log="x",
    points=all_to_all_by_ranks,
)
EXPERT_DISPATCH = Figure(
    id="expert-dispatch",
    title="MoE dispatch and combine by expert-parallel ranks",
    basis="kernels",
    formula=(
        "a token crosses to a node once, and from its card over the links to the ranks that want it"
    ),
    x="expert-parallel ranks",
    quantity="bandwidth as DeepEP counts it",
    unit="GB/s",
    median=0.1,
    worst=0.15,
    misses=(
        "two nodes: what arrives over the network is forwarded over the links, "
        "DeepEP's bottleneck there"
    ),
    log="x",
    points=dispatch_by_ranks,
)

FIGURES = (GEMM_SIZE, COLLECTIVES_SIZE, ALL_TO_ALL, EXPERT_DISPATCH)
