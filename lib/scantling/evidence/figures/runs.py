"""Published training runs as the figures of their papers: every point a run of the table of
published runs, predicted with its own plan."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...catalogue import HERE
from .figures import Figure, Point, printed


@cache
def predicted():
    """The counted published runs beside the kit's prediction of each: the table with
    `tokens_per_s_per_device` added."""
    from ..predict import predict_frame
    from ..runs import read_runs

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
            series(r),
            x(r),
            float(value(r, r.measured_tokens_per_s_per_device)),
            float(value(r, r.tokens_per_s_per_device)),
            r.source,
            r.locator,
            r.source_url,
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


def _schedule(r):
    return r.other_opts.split(";")[0].strip() or "1F1B"


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
        lambda r: f"{r.id.split('-')[2]}, {_zb(r.id)}",
        lambda r: r.global_batch_seqs / r.micro_batch / r.pp,
    )


def _zb(id):
    return "-".join(id.split("-")[3:-1])


def recompute_throughput():
    frame = predicted()
    names = {"full": "full recompute", "seqsel": "selective, sequence parallel"}
    points = runs_as_points(
        "korthikanti-t5-",
        lambda r: names[r.id.split("-")[-1]],
        lambda r: r.id.split("-")[2],
        lambda r, rate: r.global_batch_seqs * r.seq_len / (rate * r.n_devices),
    )
    return points if len(frame) else []


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
        lambda r, rate: rate,
    )


def _fsdp_rate(g, devices: int) -> float:
    """Tokens/s per device of the design behind the figure, on so many devices."""
    from ...design.design import Design
    from ...verdict.assess import assess

    each = int(g["micro_batch"])
    return assess(
        Design.model_validate(
            {
                "scantling": 1,
                "model": g["model"],
                "cluster": {"accelerator": "h100-sxm", "devices": devices, "scale_out": "ib-ndr"},
                "stack": "pytorch-fsdp",
                "job": {
                    "tokens": 1e12,
                    "seq_len": int(g["seq_len"]),
                    "global_batch": devices * each,
                },
                "plan": {
                    "tp": 1,
                    "pp": 1,
                    "cp": 1,
                    "sharding": "zero3",
                    "micro_batch": each,
                    "recompute": "none",
                },
            }
        )
    ).tokens_per_s_per_device


def fsdp_drop():
    """Throughput per device that FSDP loses from 128 to 2,048 devices."""
    (row,) = printed("fsdp-drop")
    lost = 1 - _fsdp_rate(row["given"], int(row["x"])) / _fsdp_rate(
        row["given"], int(row["given"]["from"])
    )
    return [
        Point(
            row["series"],
            row["x"],
            row["value"],
            lost,
            row["title"],
            row["locator"],
            row["source"],
            row["read"],
        )
    ]


def _fsdp_curves():
    (row,) = printed("fsdp-drop")
    n = np.array([128, 256, 512, 1024, 2048])
    rate = np.array([_fsdp_rate(row["given"], int(k)) for k in n])
    return {row["series"]: (n, 1 - rate / rate[0])}


FIGURES = (
    Figure(
        "weak-scaling",
        "Weak scaling of Megatron-LM, 32 to 3,072 A100",
        "step = micro-batches x slowest stage + bubble + exposed communication + optimizer",
        "devices",
        "achieved TFLOP/s per device",
        "TFLOP/s",
        False,
        0.04,
        0.08,
        True,
        "",
        weak_scaling,
        lambda: _lines(weak_scaling()),
        "x",
    ),
    Figure(
        "zero3-limit",
        "Where sharding everything stops scaling: ZeRO-3 against tensor and pipeline parallelism",
        "ZeRO-3 gathers every weight twice and reduces every gradient for each micro-batch",
        "devices",
        "achieved TFLOP/s per device",
        "TFLOP/s",
        False,
        0.05,
        0.25,
        True,
        (
            "ZeRO-3 with one sequence per device: a fixed batch leaves nothing to hide the "
            "gathers behind, and ours is still too fast there"
        ),
        zero3_limit,
        lambda: _lines(zero3_limit()),
        "x",
    ),
    Figure(
        "bubble-throughput",
        "Throughput against micro-batches per stage, four schedules",
        "step = m (F + B + W) + idle of the schedule",
        "micro-batches per stage",
        "tokens/s per device",
        "tokens/s",
        False,
        0.04,
        0.09,
        True,
        "",
        bubble_throughput,
        lambda: _lines(bubble_throughput()),
        "y",
    ),
    Figure(
        "recompute-time",
        "Step time under full and under selective recompute",
        "full recompute adds a forward pass; selective adds the attention scores",
        "model",
        "step",
        "s",
        False,
        0.05,
        0.09,
        True,
        "",
        recompute_throughput,
        dict,
        "y",
    ),
    Figure(
        "tp-across-nodes",
        "Tensor parallelism inside and across nodes of 8",
        (
            "an all-reduce of the activations twice a layer each way; across nodes at the "
            "rate of the network cards"
        ),
        "tensor-parallel ranks",
        "tokens/s per device",
        "tokens/s",
        False,
        0.05,
        0.10,
        True,
        "",
        tp_across_nodes,
        lambda: _lines(tp_across_nodes()),
        "x",
    ),
    Figure(
        "zero-groups",
        "How many ranks to shard the optimizer over",
        "the gather of updated weights grows with the ranks that hold them",
        "devices",
        "tokens/s per device",
        "tokens/s",
        False,
        0.04,
        0.08,
        True,
        "",
        zero_groups,
        lambda: _lines(zero_groups()),
        "x",
    ),
    Figure(
        "strong-scaling",
        "Strong scaling of a 175B model to 12,288 A100",
        "at a fixed batch more replicas mean fewer micro-batches each, and a larger bubble",
        "devices",
        "tokens/s per device",
        "tokens/s",
        False,
        0.06,
        0.16,
        True,
        (
            "Megatron-LM beyond 8,192 devices lost more than the model has a term for (data "
            "loading, stragglers), which the paper sets out to fix"
        ),
        strong_scaling,
        lambda: _lines(strong_scaling()),
        "x",
    ),
    Figure(
        "fsdp-drop",
        "What FSDP loses from 128 to 2,048 H100",
        (
            "gathers hidden behind compute until they outlast it; a ring pays a time for "
            "every domain that it crosses, layer by layer"
        ),
        "devices",
        "share of throughput lost",
        "1",
        True,
        0.10,
        0.10,
        False,
        "one figure of one model, its settings from a text that quotes the paper",
        fsdp_drop,
        _fsdp_curves,
        "x",
    ),
)
