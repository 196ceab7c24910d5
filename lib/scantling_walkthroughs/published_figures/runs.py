"""Published training runs as the figures of their papers: every point a run of the table of
published runs, predicted with its own plan."""

import re
from functools import cache

import numpy as np
from scantling.catalogue import HERE
from scantling.design.design import Design
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.verdict.assess import assess

from .record import Point


@cache
def predicted():
    """The counted published runs beside the kit's prediction of each: the table with
    `tokens_per_s_per_device` and `micro_batches_per_stage` added."""
    frame = read_runs(HERE / "published_runs.csv")
    frame = frame[
        frame.id.str.match(
            "megatron21-t|zb-t4|korthikanti-t5|vtrain-multi|internevo-7b-tp1-z|mosaic|megascale-t2"
        )
    ].reset_index(drop=True)
    frame["tokens_per_s_per_device"] = predict_frame(frame).tokens_per_s_per_device.to_numpy(float)
    frame["micro_batches_per_stage"] = frame.global_batch_seqs / frame.micro_batch / frame.pp
    return frame


def hardware_tflops(row, rate) -> float:
    """Achieved TFLOP/s per device as SC'21 counts it: 96 B s l h^2 (1 + s / 6h + V / 16lh) a step,
    full recompute in. (equation 3)"""
    h = row.hidden
    s = row.seq_len
    layers = row.layers
    return rate * 96 * layers * h * h * (1 + s / (6 * h) + 51_200 / (16 * layers * h)) / 1e12


def step_s(row, rate) -> float:
    """Seconds of a step at so many tokens/s per device."""
    return row.global_batch_seqs * row.seq_len / (rate * row.n_devices)


VALUES = {"TFLOP/s": hardware_tflops, "s": step_s, "tokens/s": lambda row, rate: rate}


def points(unit: str, ids: str, series: str, *, x="n_devices", where=None, words=None):
    """Points of the runs whose id matches `ids`, plotted in `unit`, a key of VALUES.

    series : label, with columns of the run and named groups of `ids` in braces; `words` are said
    for what a group finds.
    x : column or group on the axis.
    where : {column: values}, of which a run has one.
    """
    frame = predicted()
    value = VALUES[unit]
    frame = frame[frame.id.str.match(ids)]
    for column, allowed in (where or {}).items():
        frame = frame[frame[column].isin(allowed)]
    out = []
    for row in frame.itertuples():
        found = re.match(ids, row.id).groupdict()
        said = row._asdict() | {k: (words or {}).get(text, text) for k, text in found.items()}
        out.append(
            Point(
                series=series.format(**said),
                x=said[x],
                published=float(value(row, row.measured_tokens_per_s_per_device)),
                ours=float(value(row, row.tokens_per_s_per_device)),
                title=row.source,
                locator=row.locator,
                url=row.source_url,
            )
        )
    return out


def lines(unit: str, **which):
    """Ours through `points` of each series; none where the axis has names."""
    out = {}
    for p in points(unit, **which):
        if not isinstance(p.x, str):
            out.setdefault(p.series, []).append((p.x, p.ours))
    return {name: tuple(np.array(sorted(rows), float).T) for name, rows in out.items()}


def _fsdp_rate(g, devices: int) -> float:
    """Tokens/s per device of the design behind the figure, on so many devices."""
    each = int(g["micro_batch"])
    data = {
        "model": g["model"],
        "cluster": {"accelerator": "h100-sxm", "devices": devices, "scale_out": "ib-ndr"},
        "stack": "pytorch-fsdp",
        "job": {"tokens": 1e12, "seq_len": int(g["seq_len"]), "global_batch": devices * each},
        "plan": {
            "tp": 1,
            "pp": 1,
            "cp": 1,
            "sharding": "zero3",
            "micro_batch": each,
            "recompute": "none",
        },
    }
    return assess(Design.from_data(data)).tokens_per_s_per_device


def _fsdp_drop(row):
    """Share of throughput per device that FSDP loses on more devices."""
    g = row["given"]
    return 1 - _fsdp_rate(g, round(row["x"])) / _fsdp_rate(g, int(g["from"]))


OURS = {"fsdp-drop": _fsdp_drop}  # our value for a printed row
