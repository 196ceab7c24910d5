"""A pipeline schedule laid out in time, the micro-batches that each stage holds, and the layers on
the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scantling.base.show import share
from scantling.physics.schedule import Layout

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row
from .palette import SECOND
from .theme import layered, over

_KINDS = {"F": "forward", "B": "backward", "W": "weight gradients"}
_HUES = ("#0072b2", "#e69f00", "#cc79a7")
_NUMBERED = 70  # passes side by side up to which each has room for its number
_EDGED = 1200  # passes in all up to which each has an edge


# ---------------------------------------------------------------- passes in time
def _gantt_rows(
    figures: Facts, layout: Layout | None = None, window: tuple[float, float] = (0.0, 1.0)
) -> Data:
    """`window`: (first, last) share of the time that is drawn."""
    if layout is None:
        return {"passes": {}}
    first, last = (layout.makespan_s * w for w in window)
    seen = np.flatnonzero((layout.end_s > first) & (layout.start_s < last))
    start, end = layout.start_s[seen], layout.end_s[seen]
    numbered = (last - first) / max(float(np.min(end - start, initial=1.0)), 1e-9) <= _NUMBERED
    batch = layout.micro_batch[seen].tolist()
    columns: dict[str, Any] = {
        "stage": layout.device[seen],
        "start": np.maximum(start, first),
        "end": np.minimum(end, last),
        "mid": (start + end) / 2,
        "kind": [_KINDS[k] for k in layout.kind[seen].tolist()],
        "batch": batch,
        "label": [str(number) if numbered else "" for number in batch],
        "edge": [0.4 if len(seen) < _EDGED else 0.0] * len(batch),
    }
    if layout.vpp > 1:
        columns["chunk"] = layout.chunk[seen]
    return {"passes": columns}


def words_of(layout: Layout) -> str:
    """Idle share and what is held, as one line."""
    idle = float(np.mean(layout.idle_s) / layout.makespan_s)
    in_flight = layout.peak_in_flight
    return (
        f"{layout.schedule}: {layout.pp} stages × {layout.m} micro-batches, idle {share(idle)}, "
        f"at most {in_flight.max():.3g} micro-batches held (stage {int(in_flight.argmax())})"
    )


def _gantt_words(
    figures: Facts, layout: Layout | None = None, window: tuple[float, float] = (0.0, 1.0)
) -> str:
    return f"Pipeline schedule in time. {words_of(layout)}" if layout else "No schedule."


def _draw_gantt(kinds: int, legend: bool) -> alt.LayerChart:
    y = alt.Y(
        "stage:O",
        title="stage",
        axis=alt.Axis(domain=False, labelOverlap=True, ticks=False),
        scale=alt.Scale(paddingInner=0.12, paddingOuter=0.05),
    )
    # thousands of passes: their words are put together where they are drawn
    passes = over("passes").transform_calculate(
        says="'stage ' + datum.stage + ', micro-batch ' + datum.batch + ', ' + datum.kind"
        " + (isValid(datum.chunk) ? ', chunk ' + datum.chunk : '')"
    )
    bars = passes.mark_bar(stroke="#ffffff").encode(
        alt.X(
            "start:Q",
            title="time, in forward passes of one stage",
            axis=alt.Axis(grid=False, tickCount=10),
            scale=alt.Scale(nice=False),
        ),
        alt.X2("end"),
        y,
        alt.Color(
            "kind:N",
            legend=alt.Legend(title=None, orient="top"),
            scale=alt.Scale(domain=list(_KINDS.values())[:kinds], range=list(_HUES[:kinds])),
        ),
        alt.StrokeWidth("edge:Q", scale=None),
        alt.Tooltip("says:N", title=" "),
    )
    numbers = passes.mark_text(color="#ffffff", clip=True, fontSize=9).encode(
        alt.X("mid:Q"), y, alt.Text("label:N")
    )
    return layered(bars, numbers)


gantt = Figure(
    name="pipeline-schedule",
    title="Pipeline schedule",
    draw=partial(_draw_gantt, 2),
    rows=_gantt_rows,
    words=_gantt_words,
    height=190,
    empty="One stage: no pipeline to draw.",
    renderer="canvas",
)
# weight gradients named, for schedules that have passes of their own for them
split = replace(gantt, name="pipeline-schedule-split", draw=partial(_draw_gantt, 3))


def gantt_of(layout: Layout | None) -> Figure[[Layout | None, tuple[float, float]]]:
    """The figure for a layout."""
    return split if layout is not None and "W" in layout.kind else gantt


# ---------------------------------------------------------------- micro-batches in flight
def _in_flight_rows(figures: Facts, layouts: Sequence[Layout] = ()) -> Data:
    return {
        "held": [
            {"stage": stage, "held": count, "schedule": layout.schedule}
            for layout in layouts
            for stage, count in enumerate(layout.peak_in_flight.tolist())
        ]
    }


def _in_flight_words(figures: Facts, layouts: Sequence[Layout] = ()) -> str:
    return f"Micro-batches held at the peak, by stage. {'; '.join(map(words_of, layouts))}"


def _draw_in_flight(legend: bool) -> alt.Chart:
    chart: alt.Chart = (
        over("held")
        .mark_line(interpolate="step", point=alt.OverlayMarkDef(size=30), strokeWidth=2)
        .encode(
            alt.X("stage:Q", title="stage", axis=alt.Axis(grid=False, tickMinStep=1)),
            alt.Y(
                "held:Q",
                title="micro-batches held",
                axis=alt.Axis(tickCount=5),
                scale=alt.Scale(domainMin=0),
            ),
            alt.Color(
                "schedule:N",
                title=None,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(range=["#0072b2", SECOND]),
                sort=None,
            ),
            alt.StrokeDash("schedule:N", legend=None, sort=None),
            tooltip=[alt.Tooltip("schedule:N"), alt.Tooltip("stage:Q"), alt.Tooltip("held:Q")],
        )
    )
    return chart


in_flight = Figure(
    name="activations-in-flight",
    title="Micro-batches in flight at the peak",
    draw=_draw_in_flight,
    rows=_in_flight_rows,
    words=_in_flight_words,
    height=150,
    empty="One stage: nothing in flight between stages.",
)


# ---------------------------------------------------------------- layers on the stages
def _layers_rows(figures: Facts) -> Data:
    rows: list[Row] = []
    for run in figures["stages"]:
        for layer, blocks in enumerate(run["layers"], run["first"]):
            rows.append({"stage": run["stage"], "layer": layer, "end": layer + 1, "blocks": blocks})
    return {"layers": rows}


def _layers_words(figures: Facts) -> str:
    stages = (
        f"stage {run['stage']}: {', '.join(f'{n} {kind}' for kind, n in run['blocks'].items())}"
        for run in figures["stages"]
    )
    return f"Blocks of each run, in the order in which a token meets them. {'; '.join(stages)}"


def _draw_layers(legend: bool) -> alt.Chart:
    chart: alt.Chart = (
        over("layers")
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            alt.X(
                "layer:Q",
                title="layer",
                axis=alt.Axis(grid=False, tickMinStep=1),
                scale=alt.Scale(nice=False),
            ),
            alt.X2("end"),
            alt.Y("stage:O", title="stage", axis=alt.Axis(labelOverlap=True)),
            alt.Color(
                "blocks:N",
                title=None,
                legend=alt.Legend(orient="top", columns=4),
                scale=alt.Scale(
                    range=["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
                ),
                sort=None,
            ),
            tooltip=[alt.Tooltip("layer:Q"), alt.Tooltip("stage:O"), alt.Tooltip("blocks:N")],
        )
    )
    return chart


laid = Figure(
    name="layers-on-stages",
    title="Layers on the stages, by their blocks; the embedding stands before the first of them, "
    "output head and any MTP module behind the last",
    draw=_draw_layers,
    rows=_layers_rows,
    words=_layers_words,
    height=200,
    empty="One stage: every layer stands on it.",
)
