"""Published training runs as the figures of their papers: every point a run of the table of
published runs, predicted with its own plan."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...catalogue import HERE
from ...design.design import Design
from ...verdict.assess import assess
from ..predict import predict_frame
from ..runs import read_runs
from .record import Point, printed


@cache
def predicted():
    """The counted published runs beside the kit's prediction of each: the table with
    `tokens_per_s_per_device` added."""
    frame = read_runs(HERE / "published_runs.csv")
    frame = frame[
        frame.id.str.match(
            "megatron21-t|zb-t4|korthikanti-t5|vtrain-multi|internevo-7b-tp1-z|mosaic|megascale-t2"
        )
    ].reset_index(drop=True)
    frame["tokens_per_s_per_device"] = predict_frame(frame).tokens_per_s_per_device.to_numpy(float)
    return frame


def runs_as_points(ids: str, series, x, value=None, keep=None) -> list[Point]:
    """Points from the runs whose id matches `ids`. series, x: (row) -> label, place; value: (row,
    tokens/s) -> what is plotted."""
    frame = predicted()
    frame = frame[frame.id.str.match(ids)]
    frame = frame[[bool(keep(r)) for r in frame.itertuples()]] if keep else frame
    value = value or (lambda row, rate: rate)
    return [
        Point(
            series=series(r),
            x=x(r),
            published=float(value(r, r.measured_tokens_per_s_per_device)),
            ours=float(value(r, r.tokens_per_s_per_device)),
            title=r.source,
            locator=r.locator,
            url=r.source_url,
        )
        for r in frame.itertuples()
    ]


def hardware_tflops(row, rate) -> float:
    """Achieved TFLOP/s per device as SC'21 counts it: 96 B s l h^2 (1 + s / 6h + V / 16lh) a step,
    full recompute in. (equation 3)"""
    h, s, layers, v = row.hidden, row.seq_len, row.layers, 51_200
    return rate * 96 * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h)) / 1e12


def _lines(points):
    """Ours through the points of each series."""
    out: dict = {}
    for p in points:
        out.setdefault(p.series, []).append((p.x, p.ours))
    return {name: tuple(np.array(sorted(rows), float).T) for name, rows in out.items()}


def weak_scaling():
    return runs_as_points(
        "megatron21-t1-",
        lambda r: "GPT, 1.7B to 1008B",
        lambda r: float(r.n_devices),
        hardware_tflops,
    )


def zero3_limit():
    return runs_as_points(
        "megatron21-t2-",
        lambda r: (
            f"{'ZeRO-3' if 'zero' in r.id else 'TP 8 and PP'}, {r.model.removeprefix('GPT ')}"
        ),
        lambda r: float(r.n_devices),
        hardware_tflops,
    )


def bubble_throughput():
    return runs_as_points(
        "zb-t4-",
        lambda r: f"{r.id.split('-')[2]}, {'-'.join(r.id.split('-')[3:-1])}",
        lambda r: r.global_batch_seqs / r.micro_batch / r.pp,
    )


def recompute_throughput():
    names = {"full": "full recompute", "seqsel": "selective, sequence parallel"}
    return runs_as_points(
        "korthikanti-t5-",
        lambda r: names[r.id.split("-")[-1]],
        lambda r: r.id.split("-")[2],
        lambda r, rate: r.global_batch_seqs * r.seq_len / (rate * r.n_devices),
    )


def tp_across_nodes():
    return runs_as_points(
        "vtrain-multi-",
        lambda r: f"micro-batch {r.micro_batch:.0f}",
        lambda r: float(r.tp),
        keep=lambda r: r.model == "GPT 3.6B" and r.pp == 1 and r.micro_batch in (4, 8),
    )


def zero_groups():
    names = {"z-1": "states over all ranks", "z8": "states over the 8 of a node"}
    return runs_as_points(
        "internevo-7b-tp1-z",
        lambda r: names[r.id.removeprefix("internevo-7b-tp1-").rsplit("-", 1)[0]],
        lambda r: float(r.n_devices),
    )


def strong_scaling():
    return runs_as_points(
        "megascale-t2-",
        lambda r: (
            f"{'MegaScale' if 'megascale-175' in r.id else 'Megatron-LM'}, batch "
            f"{r.global_batch_seqs:.0f}"
        ),
        lambda r: float(r.n_devices),
    )


def _fsdp_rate(g, devices: int) -> float:
    """Tokens/s per device of the design behind the figure, on so many devices."""
    each = int(g["micro_batch"])
    plan = dict(tp=1, pp=1, cp=1, sharding="zero3", micro_batch=each, recompute="none")
    data = dict(
        model=g["model"],
        cluster=dict(accelerator="h100-sxm", devices=devices, scale_out="ib-ndr"),
        stack="pytorch-fsdp",
        job=dict(tokens=1e12, seq_len=int(g["seq_len"]), global_batch=devices * each),
        plan=plan,
    )
    return assess(Design.from_data(data)).tokens_per_s_per_device


def _fsdp_drop(row):
    """Share of throughput per device that FSDP loses on more devices."""
    g = row["given"]
    return 1 - _fsdp_rate(g, int(row["x"])) / _fsdp_rate(g, int(g["from"]))


def _fsdp_curves():
    (row,) = printed("fsdp-drop")
    n = np.array([128, 256, 512, 1024, 2048])
    rate = np.array([_fsdp_rate(row["given"], int(k)) for k in n])
    return {row["series"]: (n, 1 - rate / rate[0])}


OURS = {"fsdp-drop": _fsdp_drop}  # our value for a printed row
POINTS = {  # all points
    "weak-scaling": weak_scaling,
    "zero3-limit": zero3_limit,
    "bubble-throughput": bubble_throughput,
    "recompute-time": recompute_throughput,
    "tp-across-nodes": tp_across_nodes,
    "zero-groups": zero_groups,
    "strong-scaling": strong_scaling,
}
CURVES = {  # ours between the points
    "weak-scaling": lambda: _lines(weak_scaling()),
    "zero3-limit": lambda: _lines(zero3_limit()),
    "bubble-throughput": lambda: _lines(bubble_throughput()),
    "tp-across-nodes": lambda: _lines(tp_across_nodes()),
    "zero-groups": lambda: _lines(zero_groups()),
    "strong-scaling": lambda: _lines(strong_scaling()),
    "fsdp-drop": _fsdp_curves,
}
