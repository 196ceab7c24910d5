"""Published training runs as the figures of their papers: every point a run of the table of
published runs, predicted with its own plan."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scantling.base.records import record
from scantling.catalogue import HERE
from scantling.design.design import Design
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.verdict.assess import assess

from .recreation import Curves, Figure, Point, PrintedValue, curves_through, points_of

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Any  # a run of the table, its columns as attributes
PADDED_VOCAB = 51_200  # of the models of SC'21


@cache
def predicted() -> "DataFrame":
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


def hardware_tflops(row: Row, rate: float) -> float:
    """Achieved TFLOP/s per device as SC'21 counts it: 96 B s l h^2 (1 + s / 6h + V / 16lh) a step,
    full recompute in. (equation 3)"""
    h = row.hidden
    s = row.seq_len
    layers = row.layers
    factor = 1 + s / (6 * h) + PADDED_VOCAB / (16 * layers * h)
    return float(rate * 96 * layers * h * h * factor / 1e12)


def step_s(row: Row, rate: float) -> float:
    """Seconds of a step at so many tokens/s per device."""
    return float(row.global_batch_seqs * row.seq_len / (rate * row.n_devices))


def tokens_per_s(row: Row, rate: float) -> float:
    """Tokens/s per device."""
    return float(rate)


def devices(row: Row, id: re.Match[str]) -> float:
    """The axis of scaling."""
    return float(row.n_devices)


@record
class RunSeries:
    """Runs whose ids match, in series, as points of a figure."""

    ids: re.Pattern[str]
    value: Callable[[Row, float], float]  # of a rate in tokens/s per device
    series: Callable[[Row, re.Match[str]], str]
    x: Callable[[Row, re.Match[str]], float | str] = devices
    # of a column, its values
    column_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def points(self) -> list[Point]:
        """A point a run."""
        frame = predicted()
        for column, allowed in self.column_values.items():
            frame = frame[frame[column].isin(allowed)]
        points = []
        for row in frame.itertuples():
            id = self.ids.match(row.id)
            if id is None:
                continue
            point = Point(
                series=self.series(row, id),
                x=self.x(row, id),
                published=self.value(row, row.measured_tokens_per_s_per_device),
                ours=self.value(row, row.tokens_per_s_per_device),
                title=row.source,
                locator=row.locator,
                url=row.source_url,
            )
            points.append(point)
        return points

    def lines(self) -> Curves:
        """Ours through the points of each series; none where the axis has names."""
        lines: dict[str, list[tuple[float, float]]] = {}
        for p in self.points():
            if not isinstance(p.x, str):
                lines.setdefault(p.series, []).append((p.x, p.ours))
        curves = {}
        for name, rows in lines.items():
            x, y = np.array(sorted(rows), float).T
            curves[name] = x, y
        return curves


def _gpt(row: Row, id: re.Match[str]) -> str:
    return "GPT, 1.7B to 1008B"


def _how_and_size(row: Row, id: re.Match[str]) -> str:
    how = {"zero": "ZeRO-3", "ptd": "TP 8 and PP"}[id["how"]]
    return f"{how}, {id['size']}"


def _size_and_schedule(row: Row, id: re.Match[str]) -> str:
    return f"{id['size']}, {id['schedule']}"


def _micro_batches_per_stage(row: Row, id: re.Match[str]) -> float:
    return float(row.global_batch_seqs / row.micro_batch / row.pp)


def _recompute(row: Row, id: re.Match[str]) -> str:
    return {"full": "full recompute", "seqsel": "selective, sequence parallel"}[id["how"]]


def _size(row: Row, id: re.Match[str]) -> str:
    return id["size"]


def _micro_batch(row: Row, id: re.Match[str]) -> str:
    return f"micro-batch {row.micro_batch:.0f}"


def _tp(row: Row, id: re.Match[str]) -> float:
    return float(row.tp)


def _groups(row: Row, id: re.Match[str]) -> str:
    return {"z-1": "states over all ranks", "z8": "states over the 8 of a node"}.get(
        id["how"], id["how"]
    )


def _framework(row: Row, id: re.Match[str]) -> str:
    framework = {"megascale": "MegaScale", "megatron": "Megatron-LM"}[id["who"]]
    return f"{framework}, batch {row.global_batch_seqs:.0f}"


def _fsdp_rate(row: PrintedValue, devices: int) -> float:
    """Tokens/s per device of the design behind the figure, on so many devices."""
    micro_batch = int(row.micro_batch)
    data = {
        "model": row.model,
        "cluster": {"accelerator": "h100-sxm", "devices": devices, "scale_out": "ib-ndr"},
        "stack": "pytorch-fsdp",
        "job": {"tokens": 1e12, "seq_len": int(row.seq_len), "global_batch": devices * micro_batch},
        "plan": {
            "tp": 1,
            "pp": 1,
            "cp": 1,
            "sharding": "zero3",
            "micro_batch": micro_batch,
            "recompute": "none",
        },
    }
    return float(assess(Design.from_data(data)).tokens_per_s_per_device)


def _fsdp_drop(row: PrintedValue) -> float:
    """Share of throughput per device that FSDP loses on more devices."""
    return 1 - _fsdp_rate(row, round(row.at)) / _fsdp_rate(row, int(row.base_devices))


_WEAK_SCALING = RunSeries(ids=re.compile(r"megatron21-t1-"), value=hardware_tflops, series=_gpt)
_ZERO3_LIMIT = RunSeries(
    ids=re.compile(r"megatron21-t2-(?P<how>[a-z]+)-\w+-(?P<size>[\d.]+B)-"),
    value=hardware_tflops,
    series=_how_and_size,
)
_BUBBLE_THROUGHPUT = RunSeries(
    ids=re.compile(r"zb-t4-(?P<size>[\d.]+B)-(?P<schedule>.+)-\d+$"),
    value=tokens_per_s,
    series=_size_and_schedule,
    x=_micro_batches_per_stage,
)
_RECOMPUTE_TIME = RunSeries(
    ids=re.compile(r"korthikanti-t5-(?P<size>\w+)-(?P<how>\w+)$"),
    value=step_s,
    series=_recompute,
    x=_size,
)
_TP_ACROSS_NODES = RunSeries(
    ids=re.compile(r"vtrain-multi-"),
    value=tokens_per_s,
    series=_micro_batch,
    x=_tp,
    column_values={"model": ("GPT 3.6B",), "pp": (1,), "micro_batch": (4, 8)},
)
_ZERO_GROUPS = RunSeries(
    ids=re.compile(r"internevo-7b-tp1-(?P<how>z-?\d)-"), value=tokens_per_s, series=_groups
)
_STRONG_SCALING = RunSeries(
    ids=re.compile(r"megascale-t2-(?P<who>\w+)-"), value=tokens_per_s, series=_framework
)

WEAK_SCALING = Figure(
    id="weak-scaling",
    title="Weak scaling of Megatron-LM, 32 to 3,072 A100",
    basis="runs",
    formula="step = micro-batches x slowest stage + bubble + exposed communication + optimizer",
    x="devices",
    quantity="achieved TFLOP/s per device",
    unit="TFLOP/s",
    median=0.04,
    worst=0.101,
    fitted=True,
    log="x",
    points=_WEAK_SCALING.points,
    curves=_WEAK_SCALING.lines,
)
ZERO3_LIMIT = Figure(
    id="zero3-limit",
    title=(
        "Where sharding everything stops scaling: ZeRO-3 against tensor and pipeline parallelism"
    ),
    basis="runs",
    formula="ZeRO-3 gathers every weight twice and reduces every gradient for each micro-batch",
    x="devices",
    quantity="achieved TFLOP/s per device",
    unit="TFLOP/s",
    median=0.06,
    worst=0.25,
    fitted=True,
    misses=(
        "ZeRO-3 with one sequence per device: a fixed batch leaves nothing to "
        "hide the gathers behind, and ours is still too fast there"
    ),
    log="x",
    points=_ZERO3_LIMIT.points,
    curves=_ZERO3_LIMIT.lines,
)
BUBBLE_THROUGHPUT = Figure(
    id="bubble-throughput",
    title="Throughput against micro-batches per stage, four schedules",
    basis="runs",
    formula="step = m (F + B + W) + idle of the schedule",
    x="micro-batches per stage",
    quantity="tokens/s per device",
    unit="tokens/s",
    median=0.04,
    worst=0.105,
    fitted=True,
    log="y",
    points=_BUBBLE_THROUGHPUT.points,
    curves=_BUBBLE_THROUGHPUT.lines,
)
RECOMPUTE_TIME = Figure(
    id="recompute-time",
    title="Step time under full and under selective recompute",
    basis="runs",
    formula="full recompute adds a forward pass; selective adds the attention scores",
    x="model",
    quantity="step",
    unit="s",
    median=0.05,
    worst=0.09,
    fitted=True,
    misses=(
        "constants that every family of runs chooses with one vote make these tuned runs of "
        "Megatron-LM up to a tenth too slow, and full recompute more so than selective"
    ),
    missed=True,
    log="y",
    points=_RECOMPUTE_TIME.points,
    curves=_RECOMPUTE_TIME.lines,
)
TP_ACROSS_NODES = Figure(
    id="tp-across-nodes",
    title="Tensor parallelism inside and across nodes of 8",
    basis="runs",
    formula=(
        "an all-reduce of the activations twice a layer each way; across nodes "
        "at the rate of the network cards"
    ),
    x="tensor-parallel ranks",
    quantity="tokens/s per device",
    unit="tokens/s",
    median=0.05,
    worst=0.1,
    fitted=True,
    log="x",
    points=_TP_ACROSS_NODES.points,
    curves=_TP_ACROSS_NODES.lines,
)
ZERO_GROUPS = Figure(
    id="zero-groups",
    title="How many ranks to shard the optimizer over",
    basis="runs",
    formula="the gather of updated weights grows with the ranks that hold them",
    x="devices",
    quantity="tokens/s per device",
    unit="tokens/s",
    median=0.05,
    worst=0.081,
    fitted=True,
    misses=(
        "these runs are said up to a tenth too fast, at 32 devices as at 1,024; what is lost from "
        "one to the other is met within a twentieth"
    ),
    missed=True,
    log="x",
    points=_ZERO_GROUPS.points,
    curves=_ZERO_GROUPS.lines,
)
STRONG_SCALING = Figure(
    id="strong-scaling",
    title="Strong scaling of a 175B model to 12,288 A100",
    basis="runs",
    formula="at a fixed batch more replicas mean fewer micro-batches each, and a larger bubble",
    x="devices",
    quantity="tokens/s per device",
    unit="tokens/s",
    median=0.06,
    worst=0.16,
    fitted=True,
    misses=(
        "Megatron-LM beyond 8,192 devices lost more than the model has a term "
        "for (data loading, stragglers), which the paper sets out to fix"
    ),
    log="x",
    points=_STRONG_SCALING.points,
    curves=_STRONG_SCALING.lines,
)
FSDP_DROP = Figure(
    id="fsdp-drop",
    title="What FSDP loses from 128 to 2,048 H100",
    basis="runs",
    formula=(
        "gathers hidden behind compute until they outlast it; a ring pays a "
        "time for every domain that it crosses, layer by layer"
    ),
    x="devices",
    quantity="share of throughput lost",
    unit="1",
    absolute=True,
    median=0.1,
    worst=0.1,
    misses="one figure of one model, its settings from a text that quotes the paper",
    log="x",
    points=partial(points_of, "fsdp-drop", _fsdp_drop),
    curves=partial(curves_through, "fsdp-drop", _fsdp_drop, np.geomspace(128, 2048, 5)),
)

FIGURES = (
    WEAK_SCALING,
    ZERO3_LIMIT,
    BUBBLE_THROUGHPUT,
    RECOMPUTE_TIME,
    TP_ACROSS_NODES,
    ZERO_GROUPS,
    STRONG_SCALING,
    FSDP_DROP,
)
