"""Published benchmarks of kernels and collectives by size, from the functions that the step model
times them with."""

from dataclasses import replace

import numpy as np
from scantling import catalogue
from scantling.base.records import take
from scantling.blocks.answers import Gemm
from scantling.physics import collectives, traffic
from scantling.physics.cases import PRECISIONS, code
from scantling.physics.collectives import exchange_s, far_s, near_s, ring_s
from scantling.physics.compute import device
from scantling.physics.constants import gather
from scantling.physics.gather import chip_of
from scantling.physics.wires import Link, Wires
from scantling.runs.links import link_of_chip
from scantling_logs.collective_points import points

from .forms import bare, gpt
from .record import Point

SMALLEST_BYTES = 65_536  # from here on; below, start-up is all there is


def _link(accelerator: str, domain, out_bytes_per_s=50e9) -> Link:
    """Links of one chip of the catalogue, `domain` of them together, InfiniBand between."""
    link = link_of_chip(catalogue.accelerator(accelerator), "ib-ndr")
    return replace(link, domain=domain, out_bytes_per_s=out_bytes_per_s)


def bus_bytes_per_s(series, message_bytes):
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


def _point(name, x, series, bus, ours, **about) -> Point:
    """A published bus bandwidth of a series beside ours. [bytes/s]"""
    return Point(
        series=name,
        x=x,
        published=bus / 1e9,
        ours=float(ours) / 1e9,
        title=series.source,
        url=_address(series.source),
        **{"locator": f"series {series.id}", **about},
    )


def _address(source: str) -> str:
    repository = source.split("@")[0].split(" ")[0]
    return (
        f"https://github.com/{'/'.join(repository.split('/')[:2])}" if "/" in repository else source
    )


def alone_bytes_per_s(id: str, message_bytes):
    """Bus bandwidth of a collective alone by message size, best algorithm and protocol
    (physics.collectives), for the wires of a published series [bytes/s]."""
    p = points()
    p = p.take(p.series == id)
    sizes = np.asarray(message_bytes, float)
    kind = str(p.collective[0])
    one = take(p.wires, np.zeros(len(sizes), int))
    return collectives.volume(kind, one.ranks) * sizes / collectives.fastest(kind, sizes, one)


def collectives_by_size():
    return [
        _point(name, size, s, bus, ours)
        for name, id in SIZES.items()
        for s in [catalogue.collective_series()[id]]
        for size, bus, ours in zip(
            s.message_bytes, s.busbw_bytes_per_s, alone_bytes_per_s(id, s.message_bytes)
        )
        if size >= SMALLEST_BYTES
    ]


def _size_curves():
    axis = np.geomspace(SMALLEST_BYTES, 16e9, 60)
    return {name: (axis, alone_bytes_per_s(id, axis) / 1e9) for name, id in SIZES.items()}


def all_to_all_by_ranks():
    return [
        _point("8 H100 a node, largest message", float(n), s, bus, bus_bytes_per_s(s, size))
        for n, id in RANKS.items()
        for s in [catalogue.collective_series()[id]]
        for size, bus in [max(zip(s.message_bytes, s.busbw_bytes_per_s))]
    ]


def dispatch_bytes_per_s(ranks: int, value_bytes: float):
    """Dispatch bandwidth as DeepEP prints it for H800 [bytes/s]: on one node all copies by the
    links' clock, across nodes the copies counted
    once a node (its own included) by the cards' clock, node-limited routing."""
    tokens = 4096
    hidden = 7168
    top_k = 8
    experts_nodes = 4
    inside = min(ranks, 8)
    w = Wires(ranks, inside, _link("h800-sxm", 8))
    chip = catalogue.accelerator("h800-sxm")
    nodes = ranks // inside
    one = tokens * hidden * value_bytes
    copies = traffic.expected_places(ranks, top_k)
    counted = traffic.expected_places(nodes, top_k, experts_nodes) if nodes > 1 else copies
    leaving = counted * (nodes - 1) / nodes
    near = near_s(
        one * copies * (inside - 1) / inside, w, gather(chip.family, chip.id, None).ep_up_share
    )
    seconds = exchange_s(nodes + inside - 2, np.maximum(near, far_s(one * leaving, w)), w)
    return float(one * counted / seconds)


def dispatch_by_ranks():
    known = catalogue.collective_series()
    out = []
    for ranks in (8, 16, 32, 64):
        why = "forwarding inside the receiving node is the bottleneck" if ranks == 16 else ""
        where = "intranode" if ranks == 8 else "internode"
        for way, width in (("dispatch", 1.0), ("combine", 2.0)):
            s = known[f"deepep_v1_{where}_ep{ranks}_{way}"]
            out.append(
                _point(
                    f"{way}, 4,096 tokens, top 8",
                    float(ranks),
                    s,
                    s.busbw_bytes_per_s[0],
                    dispatch_bytes_per_s(ranks, width),
                    locator="normal kernels",
                    counted=not why,
                    why=why,
                )
            )
    return out


GEMMS = {
    "A100, fp16": ("a100-80-sxm", "fp16"),
    "H100, fp8": ("h100-sxm", "fp8"),
    "H200, fp8": ("h200-sxm", "fp8"),
    "GB200, fp8": ("gb200-nvl72", "fp8"),
}


def gemm_share(accelerator: str, precision: str, size):
    """Share of the dense peak that a product of two square matrices of this size reaches in the
    model: 2 size^3 / (peak x seconds)."""
    chip = catalogue.accelerator(accelerator)
    case = bare(
        gpt(1, 4096, 32),
        {},
        chip=replace(chip_of([chip], [precision], chip.scale_up_domain), wave_outputs=0.0),
        constants=gather(chip.family, chip.id, None),
        precision=code(PRECISIONS, "bf16" if precision == "fp16" else precision),
    )
    size = np.asarray(size, float)
    flops = 2 * size**3
    seconds = device(case).gemm_s(Gemm("product", flops, 3 * size**2, 1))
    return flops / seconds / case.chip.linear_flops


def gemm_by_size():
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


def _gemm_curves():
    axis = np.geomspace(1024, 32768, 40)
    return {
        name: (axis, gemm_share(chip, precision, axis)) for name, (chip, precision) in GEMMS.items()
    }


POINTS = {  # all points
    "gemm-size": gemm_by_size,
    "collectives-size": collectives_by_size,
    "all-to-all": all_to_all_by_ranks,
    "expert-dispatch": dispatch_by_ranks,
}
CURVES = {  # ours between the points
    "gemm-size": _gemm_curves,
    "collectives-size": _size_curves,
}
