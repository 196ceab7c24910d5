"""A pipeline schedule laid out in time, and the micro-batches that each stage holds."""

from __future__ import annotations

import numpy as np

from .figures import Figure, named
from .grammar import alt
from .words import share

_KINDS = {
    "F": ("forward", "#0072b2"),
    "B": ("backward", "#e69f00"),
    "W": ("weight gradients", "#cc79a7"),
}
_NAMES, _COLOURS = [n for n, _ in _KINDS.values()], [c for _, c in _KINDS.values()]


def _gantt_data(given, layout=None, window=(0.0, 1.0)) -> dict:
    """`layout`: a `scantling.physics.schedule.Layout`; the picture holds its passes as they are.
    `window`: (first, last) share of the time that is drawn."""
    if layout is None:
        return {"passes": {}}
    first, last = (layout.makespan_s * w for w in window)
    seen = np.flatnonzero((layout.end_s > first) & (layout.start_s < last))
    start, end, device, batch, chunk = (
        np.asarray(column)[seen]
        for column in (
            layout.start_s,
            layout.end_s,
            layout.device,
            layout.micro_batch,
            layout.chunk,
        )
    )
    kinds = [_KINDS[k][0] for k in np.asarray(layout.kind)[seen].tolist()]
    wide = (last - first) / max(
        float(np.min(end - start, initial=1.0)), 1e-9
    ) <= 70  # room for a number in every pass
    return {
        "passes": {
            "stage": device,
            "start": np.maximum(start, first),
            "end": np.minimum(end, last),
            "kind": kinds,
            "edge": [0.4 if len(kinds) < 1200 else 0.0] * len(kinds),
            "batch": batch,
            "label": [str(b) if wide else "" for b in batch.tolist()],
            "mid": (start + end) / 2,
            "says": [
                f"stage {d}, micro-batch {b}, {k}" + (f", chunk {c}" if layout.vpp > 1 else "")
                for d, b, k, c in zip(device.tolist(), batch.tolist(), kinds, chunk.tolist())
            ],
        }
    }


def words_of(layout) -> str:
    """Idle share and what is held, as one line."""
    idle = float(np.mean(layout.idle_s) / layout.makespan_s)
    held = layout.peak_in_flight
    return (
        f"{layout.schedule}: {layout.pp} stages × {layout.m} micro-batches, idle "
        f"{share(idle)}, at most {held.max():.3g} micro-batches held (stage "
        f"{int(held.argmax())})"
    )


def _gantt_words(given, layout=None, window=(0.0, 1.0)) -> str:
    return (
        "Pipeline schedule in time. " + words_of(layout) if layout is not None else "No schedule."
    )


def _gantt_chart(kinds):
    def build(legend: bool = True) -> alt.Chart:
        return _gantt(kinds)

    return build


def _gantt(kinds) -> alt.Chart:
    y = alt.Y(
        "stage:O",
        title="stage",
        axis=alt.Axis(ticks=False, domain=False, labelOverlap=True),
        scale=alt.Scale(paddingInner=0.12, paddingOuter=0.05),
    )
    x = alt.X(
        "start:Q",
        title="time, in forward passes of one stage",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(tickCount=10, grid=False),
    )
    key = alt.Legend(orient="top", title=None)
    base = alt.Chart(named("passes"))
    bars = base.mark_bar(stroke="#ffffff").encode(
        x=x,
        strokeWidth=alt.StrokeWidth("edge:Q", scale=None),
        x2="end:Q",
        y=y,
        color=alt.Color(
            "kind:N", scale=alt.Scale(domain=_NAMES[:kinds], range=_COLOURS[:kinds]), legend=key
        ),
        tooltip=alt.Tooltip("says:N", title=" "),
    )
    labels = base.mark_text(fontSize=9, color="#ffffff", clip=True).encode(
        x="mid:Q", y=y, text="label:N"
    )
    return alt.layer(bars, labels)


gantt = Figure(
    "pipeline-schedule",
    "Pipeline schedule",
    _gantt_chart(2),
    _gantt_data,
    _gantt_words,
    height=190,
    empty="One stage: no pipeline to draw.",
    renderer="canvas",
)


split = Figure(
    "pipeline-schedule-split",
    "Pipeline schedule",
    _gantt_chart(3),
    _gantt_data,
    _gantt_words,
    height=190,
    empty="One stage: no pipeline to draw.",
    renderer="canvas",
)


def gantt_of(layout) -> Figure:
    """The figure for a layout: with weight gradients named where the schedule has passes of their
    own for them."""
    return split if layout is not None and "W" in layout.kind else gantt


def _held_data(given, layouts=()) -> dict:
    out: dict[str, list] = {"stage": [], "held": [], "schedule": []}
    for layout in layouts:
        out["stage"] += list(range(layout.pp))
        out["held"] += layout.peak_in_flight.tolist()
        out["schedule"] += [layout.schedule] * layout.pp
    return {"held": out}


def _held_words(given, layouts=()) -> str:
    return "Micro-batches held at the peak, by stage. " + "; ".join(
        words_of(layout) for layout in layouts
    )


def _held_chart(legend: bool = True) -> alt.Chart:
    return (
        alt.Chart(named("held"))
        .mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2, interpolate="step")
        .encode(
            x=alt.X("stage:Q", title="stage", axis=alt.Axis(tickMinStep=1, grid=False)),
            y=alt.Y(
                "held:Q",
                title="micro-batches held",
                scale=alt.Scale(domainMin=0),
                axis=alt.Axis(tickCount=5),
            ),
            color=alt.Color(
                "schedule:N",
                title=None,
                sort=None,
                scale=alt.Scale(range=["#0072b2", "#d55e00"]),
                legend=alt.Legend(orient="top"),
            ),
            strokeDash=alt.StrokeDash("schedule:N", sort=None, legend=None),
            tooltip=["schedule:N", "stage:Q", "held:Q"],
        )
    )


held = Figure(
    "activations-in-flight",
    "Micro-batches in flight at the peak",
    _held_chart,
    _held_data,
    _held_words,
    height=150,
    empty="One stage: nothing in flight between stages.",
)
