"""Published benchmarks of kernels and collectives by size, from the functions that the step model
times them with."""

from __future__ import annotations

import numpy as np

from ... import catalogue
from ...base.records import take
from ...blocks.table import Gemm
from ...catalogue.models.shape import make_shape
from ...physics import collectives, traffic
from ...physics.cases import PRECISIONS, Cases, Chip, Job, Link, Plan, Software, code
from ...physics.collectives import Wires, exchange_s, fabric_facts, far_s, near_s
from ...physics.compute import device
from ...physics.constants import gather
from ..calibrate.collectives import points
from .record import Point

SMALLEST_BYTES = 65_536  # from here on; below, start-up is all there is


def _case(
    accelerator: str,
    domain=8,
    out_bytes_per_s=None,
    precision="bf16",
    stack=None,
    shape=None,
    plan=None,
    software=None,
) -> Cases:
    """One device of the catalogue with the constants of its chip."""
    chip = catalogue.accelerator(accelerator)
    known = [f for f in (chip.bf16_flops, chip.fp16_flops) if f == f]
    linear = {"fp8": chip.fp8_flops, "fp16": chip.fp16_flops, "nvfp4": chip.fp4_flops}.get(
        precision, known[0]
    )
    return Cases(
        shape=shape
        or make_shape(
            layers=1,
            hidden=4096,
            ffn_hidden=16384,
            heads=32,
            kv_heads=32,
            head_dim=128,
            vocab=32000,
            mlp="gelu",
            attention="mha",
        ),
        job=Job(
            seq_len=4096.0,
            global_batch=1.0,
            precision=code(PRECISIONS, "bf16" if precision == "fp16" else precision),
        ),
        chip=Chip(
            linear_flops=linear,
            bf16_flops=known[0],
            hbm_bytes_per_s=chip.hbm_bytes_per_s,
            usable_bytes=chip.hbm_usable_bytes,
            host_bytes_per_s=25e9,
        ),
        link=Link(
            domain=float(domain),
            up_bytes_per_s=chip.link_bytes_per_s,
            out_bytes_per_s=out_bytes_per_s or 50e9,
            **fabric_facts(catalogue.fabric(chip.scale_up), catalogue.fabric("ib-ndr")),
        ),
        plan=Plan(**(plan or {})),
        software=Software(**(software or {})),
        constants=gather(chip.family, chip.id, stack),
    )


def bus_bytes_per_s(series, message_bytes):
    """Bus bandwidth that the model gives a series of collective_bench.csv, as nccl-tests counts it
    [bytes/s]."""
    domain = series.devices // max(series.nvlink_domains, 1)
    case = _case(
        series.accelerator, domain, series.link_bytes_per_s if series.nvlink_domains > 1 else None
    )
    w = Wires(series.devices, min(domain, series.devices), case.link)
    kind = "all_to_all" if series.collective == "alltoall" else series.collective
    sizes = np.asarray(message_bytes, float)
    ring = {"all_reduce": 2.0, "all_gather": 1.0}.get(kind)
    seconds = collectives.ring_s(sizes, w, ring) if ring else collectives.direct_s(sizes, w)
    return collectives.volume(kind, series.devices) * sizes / seconds


SIZES = {
    "8 A100, one node": "azure_a100_1n_ar",
    "8 H100, one node (switches reduce)": "azure_h100_1n_ar",
    "32 A100, four nodes": "a100_4n_ar",
    "64 H100, eight nodes (SHARP)": "cw_h100_8n_ar_sharp",
}
RANKS = {n: f"aws_p5_h100_{n // 8}n_alltoall" for n in (16, 32, 64, 128, 256)}


def _points(name, series, at, x):
    sizes = np.array(series.message_bytes)
    ours = bus_bytes_per_s(series, sizes) / 1e9
    return [
        Point(
            series=name,
            x=x,
            published=series.busbw_bytes_per_s[i] / 1e9,
            ours=float(ours[i]),
            title=series.source,
            locator=f"series {series.id}",
            url=_address(series.source),
        )
        for i in at(sizes)
    ]


def _address(source: str) -> str:
    repository = source.split("@")[0].split(" ")[0]
    return (
        f"https://github.com/{'/'.join(repository.split('/')[:2])}" if "/" in repository else source
    )


def alone_bytes_per_s(id: str, message_bytes=None):
    """Bus bandwidth of a collective alone by message size, best algorithm and protocol
    (physics.collectives), for the wires of a published series [bytes/s]."""
    p = points()
    p = p.take(p.series == id)
    sizes = p.message_bytes if message_bytes is None else np.asarray(message_bytes, float)
    kind, one = str(p.collective[0]), take(p.wires, np.zeros(len(sizes), int))
    return collectives.volume(kind, one.ranks) * sizes / collectives.fastest(kind, sizes, one)


def collectives_by_size():
    known, out = catalogue.collective_series(), []
    for name, id in SIZES.items():
        s = known[id]
        ours = alone_bytes_per_s(id, s.message_bytes) / 1e9
        out += [
            Point(
                series=name,
                x=v,
                published=b / 1e9,
                ours=float(o),
                title=s.source,
                locator=f"series {id}",
                url=_address(s.source),
            )
            for v, b, o in zip(s.message_bytes, s.busbw_bytes_per_s, ours)
            if v >= SMALLEST_BYTES
        ]
    return out


def _size_curves():
    axis = np.geomspace(SMALLEST_BYTES, 16e9, 60)
    return {name: (axis, alone_bytes_per_s(id, axis) / 1e9) for name, id in SIZES.items()}


def all_to_all_by_ranks():
    known = catalogue.collective_series()
    return [
        p
        for n, id in RANKS.items()
        for p in _points(
            "8 H100 a node, largest message",
            known[id],
            lambda sizes: [int(np.argmax(sizes))],
            float(n),
        )
    ]


def dispatch_bytes_per_s(
    ranks: int, tokens=4096, hidden=7168, top_k=8, value_bytes=1.0, experts_nodes=4
):
    """Dispatch bandwidth as DeepEP prints it for H800 [bytes/s]: on one node all copies by the
    links' clock, across nodes the copies counted
    once a node (its own included) by the cards' clock, node-limited routing."""
    case = _case("h800-sxm", 8, 50e9, plan=dict(ep=ranks, dp=ranks))
    inside = min(ranks, 8)
    w, fitted = Wires(ranks, inside, case.link), collectives.constants()
    nodes = ranks // inside
    one = tokens * hidden * value_bytes
    copies = float(traffic.expected_places(ranks, top_k))
    counted = float(traffic.expected_places(nodes, top_k, experts_nodes)) if nodes > 1 else copies
    leaving = counted * (nodes - 1) / nodes if nodes > 1 else 0.0
    near = near_s(one * copies * (inside - 1) / inside, w, case.constants.ep_up_share)
    far = far_s(one * leaving, w, fitted)
    seconds = exchange_s(nodes + inside - 2, np.maximum(near, far), w, fitted)
    return one * counted / float(seconds)


def dispatch_by_ranks():
    known, out = catalogue.collective_series(), []
    for ranks in (8, 16, 32, 64):
        for way, width in (("dispatch", 1.0), ("combine", 2.0)):
            s = known[f"deepep_v1_{'intranode' if ranks == 8 else 'internode'}_ep{ranks}_{way}"]
            out.append(
                Point(
                    series=f"{way}, 4,096 tokens, top 8",
                    x=float(ranks),
                    published=s.busbw_bytes_per_s[0] / 1e9,
                    ours=dispatch_bytes_per_s(ranks, value_bytes=width) / 1e9,
                    title=s.source,
                    locator="normal kernels",
                    url=_address(s.source),
                    counted=ranks != 16,
                    why=""
                    if ranks != 16
                    else "forwarding inside the receiving node is the bottleneck",
                )
            )
    return out


GEMMS = {
    "A100, fp16": ("a100-80-sxm", "fp16"),
    "H100, fp8": ("h100-sxm", "fp8"),
    "H200, fp8": ("h200-sxm", "fp8"),
    "GB200, fp8": ("gb200-nvl72", "fp8"),
}


def gemm_share(accelerator: str, precision: str, m, n, k):
    """Share of the dense peak that an m x n x k product reaches in the model: 2mnk / (peak x
    seconds)."""
    case = _case(accelerator, precision=precision)
    m, n, k = (np.asarray(v, float) for v in (m, n, k))
    flops = 2 * m * n * k
    seconds = device(case).gemm_s(Gemm("product", flops, m * k + k * n + m * n, 1))
    return flops / seconds / case.chip.linear_flops


def gemm_by_size():
    out = []
    for name, (chip, precision) in GEMMS.items():
        for g in catalogue.gemm_points():
            if (
                (g.accelerator, g.dtype, g.op) == (chip, precision, "matmul")
                and g.shape_class == "Azure sustained"
                and g.m == g.n == g.k
            ):
                out.append(
                    Point(
                        series=name,
                        x=g.m,
                        published=g.fraction,
                        ours=float(gemm_share(chip, precision, g.m, g.n, g.k)),
                        title=g.source.split(" (")[0],
                        locator="cuBLASLt, random data, sustained",
                        url=_address(g.source),
                        counted=g.m >= 2048,
                        why="" if g.m >= 2048 else "below the sizes of training",
                    )
                )
    return out


def _gemm_curves():
    axis = np.geomspace(1024, 32768, 40)
    return {
        name: (axis, gemm_share(chip, precision, axis, axis, axis))
        for name, (chip, precision) in GEMMS.items()
    }


OURS = {}
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
