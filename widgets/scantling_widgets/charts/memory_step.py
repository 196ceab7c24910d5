"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

A figure is a function from an assessment to an Altair chart: `charts.memory(result)` for a report,
`charts.memory.live()` for the desk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scantling.base.show import seconds, share, size
from scantling.physics.memory.peak import SAFE_SHARE

from ..words import at
from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, Stretch, laid, quantity_axis, saying
from .palette import MEASURED, MEMORY, OVER, STEP, colours, ink_on, names
from .theme import hatch, layered, over, tip

_LINE = 0.06  # a line of text, as a share of the height of the memory picture


# ---------------------------------------------------------------- memory
def stages(figures: Facts) -> list[Row]:
    """Memory per pipeline stage; where only the fullest stage is known, that one."""
    if figures.get("memory_by_stage"):
        return list(figures["memory_by_stage"])
    return [{"stage": 0, "layers": None, **figures["memory_bytes"]}]


def fullest(figures: Facts) -> Row:
    """The stage that holds most."""
    return max(stages(figures), key=lambda row: float(row["total"]))


def _memory_rows(figures: Facts, reference: Facts | None = None) -> Data:
    rows, worst = stages(figures), fullest(figures)
    capacity = figures["memory_bytes"]["capacity"]
    safe = SAFE_SHARE * capacity
    top = max(capacity, worst["total"]) * 1.1
    line = _LINE * top
    label_at = worst["total"]
    for level in (safe, capacity):  # the label stands on its bar, or on the line
        if 0 <= level - label_at < line:  # that it would cross
            label_at = level
    return {
        "parts": [part for row in rows for part in _parts_of_stage(row)],
        "lines": [
            {
                "level": safe,
                "kind": "safe",
                "says": "80 %",
                "long": "80 % of usable memory: below it, published estimates did not run out",
            },
            {
                "level": capacity,
                "kind": "full",
                "says": f"{size(capacity)} HBM",
                "long": f"{size(capacity)} of memory that a program can use",
            },
        ],
        "marks": [
            {
                "stage": str(worst["stage"]),
                "level": worst["total"],
                "at": label_at,
                "says": f"▾ {size(worst['total'])}",
            }
        ],
        "ghost": _ghost(rows, reference) if reference else [],
        "zones": [
            {"level": safe - 1.7 * line, "says": "safe"},
            {"level": 0.9 * capacity, "says": "tight"},
            {"level": capacity + 1.25 * line, "says": "over"},
        ],
        "over": [_excess(row, capacity) for row in rows if row["total"] > capacity],
        "frame": [{"level": top, "stage": str(rows[0]["stage"])}],
    }


def _parts_of_stage(row: Row) -> list[Row]:
    stage = row["stage"]
    layers = f" ({row['layers']} layers)" if row.get("layers") else ""
    return [
        {
            "stage": str(stage),
            "part": part.part,
            "start": part.start,
            "end": part.end,
            "says": f"stage {stage}{layers} · {part.part}: {size(part.size)}",
        }
        for part in laid(MEMORY, row)
    ]


def _ghost(rows: list[Row], reference: Facts) -> list[Row]:
    """A tick at the memory of the reference design, stage by stage."""
    here = {row["stage"] for row in rows}
    return [
        {
            "stage": str(row["stage"]),
            "level": row["total"],
            "says": f"reference design, stage {row['stage']}: {size(row['total'])}",
        }
        for row in stages(reference)
        if row["stage"] in here
    ]


def _excess(row: Row, capacity: float) -> Row:
    return {
        "stage": str(row["stage"]),
        "from": capacity,
        "to": row["total"],
        "says": f"stage {row['stage']}: {size(row['total'] - capacity)} over",
    }


def _memory_words(figures: Facts, reference: Facts | None = None) -> str:
    worst, capacity = fullest(figures), figures["memory_bytes"]["capacity"]
    parts = ", ".join(f"{part.part.lower()} {size(part.size)}" for part in laid(MEMORY, worst))
    return (
        f"Memory per device by pipeline stage. The fullest, stage {worst['stage']}, holds "
        f"{size(worst['total'])} of {size(capacity)} usable: {parts}."
    )


def _draw_memory(legend: bool) -> alt.LayerChart:
    x = alt.X(
        "stage:O",
        title="pipeline stage",
        axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False),
        scale=alt.Scale(paddingInner=0.18, paddingOuter=0.15),
        sort=None,
    )
    ghost = over("ghost").mark_tick(opacity=1, orient="horizontal", style="ink", thickness=2)
    total = over("marks").mark_text(
        align="left",
        baseline="bottom",
        dx=-5,
        dy=-3,
        fontSize=11,
        fontWeight="bold",
        style="ink-text",
    )
    return layered(
        over("frame").mark_point(opacity=0).encode(x, alt.Y("level:Q")),
        *_memory_bars(x, legend),
        *_memory_levels(),
        ghost.encode(x, alt.Y("level:Q"), tip()),
        total.encode(x, alt.Y("at:Q"), alt.Text("says:N")),
    )


def _memory_bars(x: alt.X, legend: bool) -> list[alt.Chart]:
    """The parts of each stage, and what lies beyond the memory of a device."""
    _, ticks = quantity_axis("memory_bytes.total")
    y = alt.Y(
        "start:Q",
        title="GB per device",
        axis=alt.Axis(labelExpr=ticks, tickCount=6),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    colour = alt.Color(
        "part:N",
        legend=alt.Legend(title=None, columns=3, orient="bottom") if legend else None,
        scale=alt.Scale(domain=names(MEMORY), range=colours(MEMORY)),
        sort=None,
    )
    parts = over("parts").mark_bar(stroke=None)
    excess = over("over").mark_bar(color=hatch(), stroke=None)
    return [
        parts.encode(x, y, alt.Y2("end"), colour, tip()),
        excess.encode(x, alt.Y("from:Q"), alt.Y2("to"), tip()),
    ]


def _memory_levels() -> list[alt.Chart]:
    """The lines of safe and of usable memory with their names, and the zones between them."""
    level, says, right = alt.Y("level:Q"), alt.Text("says:N"), alt.value("width")
    safe = over("lines").transform_filter("datum.kind == 'safe'")
    full = over("lines").transform_filter("datum.kind == 'full'")
    long = alt.Tooltip("long:N", title=" ")

    def label(line: alt.Chart, baseline: Any) -> alt.Chart:
        mark: alt.Chart = line.mark_text(
            align="left", baseline=baseline, dx=5, fontSize=10.5, style="ink-text"
        )
        return mark.encode(level, says, long, x=right)

    zones = over("zones").mark_text(
        align="left", dx=5, fontSize=10.5, fontStyle="italic", style="soft-text"
    )
    return [
        safe.mark_rule(strokeDash=[5, 4], strokeWidth=1.4, style="soft").encode(level),
        full.mark_rule(color=OVER, strokeWidth=2).encode(level),
        label(full, "bottom"),
        label(safe, "top"),
        zones.encode(level, says, x=right),
    ]


memory = Figure(
    name="memory-by-stage",
    title="Memory per device, by pipeline stage",
    draw=_draw_memory,
    rows=_memory_rows,
    words=_memory_words,
    height=250,
    empty="No plan can hold this model on this machine.",
)


# ---------------------------------------------------------------- step
_ON, _UNDER, _REFERENCE = "exposed", "hidden", "reference"
_PIXELS, _LETTER = 380, 6.6  # a label is drawn where it has room


def _segments(
    parts: Mapping[str, float | None], row: str, total: float, longest: float = 0.0
) -> list[Row]:
    """The parts of one row of the step, laid end to end; labelled where the row of `longest` has
    room for it."""
    return [
        {
            "row": row,
            "part": part.part,
            "start": part.start,
            "end": part.end,
            "mid": part.mid,
            "label": _label(part, longest),
            "ink": ink_on(part.colour),
            "says": f"{part.part} ({row}): {seconds(part.size)}{_of_step(part.size, total)}",
        }
        for part in laid(STEP, parts)
    ]


def _label(part: Stretch, longest: float) -> str:
    """The longest label that the part has room for."""
    room = _PIXELS * part.size / longest if longest else 0.0
    for label in (f"{part.part} {seconds(part.size)}", part.part):
        if len(label) * _LETTER < room:
            return label
    return ""


def _of_step(time: float, total: float) -> str:
    return f", {share(time / total)} of the step" if total else ""


def _step_rows(figures: Facts, reference: Facts | None = None) -> Data:
    total, rows = figures["step_s"], [_ON, _UNDER]
    low, high = figures.get("step_s_low", total), figures.get("step_s_high", total)
    longest = high if reference is None else max(high, reference["step_s"])
    solid = _segments(figures["step_breakdown_s"], _ON, total, longest)
    pale = _segments(figures.get("hidden_s") or {}, _UNDER, total)
    if reference is not None:
        solid += _segments(reference["step_breakdown_s"], _REFERENCE, reference["step_s"])
        rows.append(_REFERENCE)
    measured = [
        point["step_s"]
        for point in at(figures, "measured_here.steps.points") or ()
        if point["devices"] == figures["devices_used"]
    ]
    return {
        "solid": [row for row in solid if row["end"] > row["start"]],
        # one stays in any case: an empty table upsets the scales
        "pale": [r for r in pale if r["end"] > r["start"] or r["part"] == STEP["tp"].name],
        "band": [
            {
                "row": _ON,
                "low": low,
                "high": high,
                "says": f"one step takes {seconds(total)}, 80 % band {seconds(low)} to "
                f"{seconds(high)}",
            }
        ],
        "seen": [
            {"row": _ON, "at": time, "says": f"a step of {seconds(time)} was measured here"}
            for time in measured
        ],
        "rows": [{"row": row, "zero": 0.0} for row in rows],
    }


def _draw_step(legend: bool) -> alt.LayerChart:
    def row(**more: Any) -> alt.Y:
        return alt.Y(
            "row:N",
            title=None,
            axis=alt.Axis(domain=False, labelFontSize=11.5, ticks=False),
            scale=alt.Scale(paddingInner=0.22, paddingOuter=0.05),
            sort=[_ON, _UNDER, _REFERENCE],
            **more,
        )

    x = alt.X(
        "start:Q",
        title="seconds of one step",
        axis=alt.Axis(tickCount=8),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    hues = alt.Scale(domain=names(STEP), range=colours(STEP))
    colour = alt.Color(
        "part:N",
        legend=alt.Legend(title=None, columns=3, orient="bottom") if legend else None,
        scale=hues,
        sort=None,
    )
    solid = over("solid").mark_bar(stroke=None).encode(x, alt.X2("end"), row(), colour, tip())
    pale = (
        over("pale")
        .mark_bar(fillOpacity=0.38, strokeDash=[3, 2], strokeWidth=1)
        .encode(
            x, alt.X2("end"), row(), colour, alt.Stroke("part:N", legend=None, scale=hues), tip()
        )
    )
    band = (
        over("band")
        .mark_rule(strokeWidth=2, style="ink", yOffset=3)
        .encode(alt.X("low:Q"), alt.X2("high"), row(bandPosition=1), tip())
    )
    measured = (
        over("seen")
        .mark_point(color=MEASURED, filled=True, opacity=1, shape="triangle-up", size=90, yOffset=8)
        .encode(alt.X("at:Q"), row(bandPosition=1), tip())
    )
    labels = (
        over("solid")
        .mark_text(fontSize=11)
        .encode(alt.X("mid:Q"), row(), alt.Color("ink:N", scale=None), alt.Text("label:N"), tip())
    )
    return layered(
        over("rows").mark_point(opacity=0).encode(alt.X("zero:Q"), row()),
        solid,
        pale,
        band,
        measured,
        labels,
    )


step = Figure(
    name="step-time",
    title="One training step, in time",
    draw=_draw_step,
    rows=_step_rows,
    words=saying(_step_rows, "In time:", ["band", "seen", "solid"]),
    height=158,
    empty="Nothing to time: no plan fits.",
)
