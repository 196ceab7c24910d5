"""A pipeline schedule laid out in time, and the micro-batches that each stage holds."""
from __future__ import annotations

import numpy as np

from .figures import Figure, named
from .grammar import alt
from .words import share

_KINDS = {"F": ("forward", "#0072b2"), "B": ("backward", "#e69f00"), "W": ("weight gradients", "#009e73")}
_NAMES, _COLOURS = [n for n, _ in _KINDS.values()], [c for _, c in _KINDS.values()]


def _gantt_data(given, layout=None) -> dict:
    """`layout`: a `scantling.schedule.Layout`; the picture holds its passes as they are."""
    if layout is None:
        return {"passes": {}}
    kinds = [_KINDS[k][0] for k in layout.kind.tolist()]
    return {"passes": {"stage": layout.device, "start": layout.start_s, "end": layout.end_s, "kind": kinds, "edge": [0.4 if len(kinds) < 700 else 0.0] * len(kinds), "batch": layout.micro_batch,
                       "label": [str(b) if layout.pp <= 8 and layout.m <= 16 else "" for b in layout.micro_batch.tolist()], "mid": (layout.start_s + layout.end_s) / 2,
                       "says": [f"stage {d}, micro-batch {b}, {k}" + (f", chunk {c}" if layout.vpp > 1 else "") for d, b, k, c in
                                zip(layout.device.tolist(), layout.micro_batch.tolist(), kinds, layout.chunk.tolist())]}}


def words_of(layout) -> str:
    """Idle share and what is held, as one line."""
    idle = float(np.mean(layout.idle_s) / layout.makespan_s)
    held = layout.peak_in_flight
    return f"{layout.schedule}: {layout.pp} stages × {layout.m} micro-batches, idle {share(idle)}, at most {held.max():.3g} micro-batches held (stage {int(held.argmax())})"


def _gantt_words(given, layout=None) -> str:
    return "Pipeline schedule in time. " + words_of(layout) if layout is not None else "No schedule."


def _gantt_chart(legend: bool = True) -> alt.Chart:
    y = alt.Y("stage:O", title="stage", axis=alt.Axis(ticks=False, domain=False, labelOverlap=True), scale=alt.Scale(paddingInner=0.12, paddingOuter=0.05))
    x = alt.X("start:Q", title="time, in forward passes of one stage", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=10, grid=False))
    key = alt.Legend(orient="top", title=None)
    base = alt.Chart(named("passes"))
    bars = base.mark_bar(stroke="#ffffff").encode(
        x=x, strokeWidth=alt.StrokeWidth("edge:Q", scale=None), x2="end:Q", y=y, color=alt.Color("kind:N", scale=alt.Scale(domain=_NAMES, range=_COLOURS), legend=key), tooltip=alt.Tooltip("says:N", title=" "))
    labels = base.mark_text(fontSize=9, color="#ffffff").encode(x="mid:Q", y=y, text="label:N")
    return alt.layer(bars, labels)


gantt = Figure("pipeline-schedule", "Pipeline schedule", _gantt_chart, _gantt_data, _gantt_words, height=190, empty="One stage: no pipeline to draw.")


def _held_data(given, layouts=()) -> dict:
    out: dict[str, list] = {"stage": [], "held": [], "schedule": []}
    for layout in layouts:
        out["stage"] += list(range(layout.pp))
        out["held"] += layout.peak_in_flight.tolist()
        out["schedule"] += [layout.schedule] * layout.pp
    return {"held": out}


def _held_words(given, layouts=()) -> str:
    return "Micro-batches held at the peak, by stage. " + "; ".join(words_of(layout) for layout in layouts)


def _held_chart(legend: bool = True) -> alt.Chart:
    return alt.Chart(named("held")).mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2, interpolate="step").encode(
        x=alt.X("stage:Q", title="stage", axis=alt.Axis(tickMinStep=1, grid=False)), y=alt.Y("held:Q", title="micro-batches held", scale=alt.Scale(domainMin=0), axis=alt.Axis(tickCount=5)),
        color=alt.Color("schedule:N", title=None, sort=None, scale=alt.Scale(range=["#0072b2", "#d55e00"]), legend=alt.Legend(orient="top")),
        strokeDash=alt.StrokeDash("schedule:N", sort=None, legend=None), tooltip=["schedule:N", "stage:Q", "held:Q"])


held = Figure("activations-in-flight", "Micro-batches in flight at the peak", _held_chart, _held_data, _held_words, height=150, empty="One stage: nothing in flight between stages.")
