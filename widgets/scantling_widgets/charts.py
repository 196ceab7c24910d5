"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

Each figure here and in the `charts_…` modules is a function from an assessment to an Altair chart:
`charts.memory(result)` for a report, `charts.memory.live(result)` for the desk.
"""

from __future__ import annotations

import numpy as np

from .figures import Figure, colours, hatch, named, stacked
from .grammar import alt
from .palette import MEMORY, OVER, STEP, ink_on
from .words import axis, share, show

_TOTAL = "memory_bytes.total"
_LINE = 0.06  # a line of text, as a share of the height of the memory picture


# ---------------------------------------------------------------- memory
def stages(given) -> list[dict]:
    """Memory per pipeline stage; where only the fullest stage is known, that one."""
    table = given.get("memory_by_stage")
    return list(table) if table else [{"stage": 0, "layers": None, **given["memory_bytes"]}]


def fullest(given) -> dict:
    return max(stages(given), key=lambda row: row["total"])


def _memory_data(given, pinned=None) -> dict:
    table = stages(given)
    capacity = given["memory_bytes"]["capacity"]
    amounts = np.array([[row[part] for part in MEMORY] for row in table], float)
    start, end = stacked(amounts)
    names = [name for name, _ in MEMORY.values()]
    stage = [str(row["stage"]) for row in table]
    total = [row["total"] for row in table]
    n = len(MEMORY)
    parts = {
        "stage": [s for s in stage for _ in range(n)],
        "part": names * len(table),
        "start": start.ravel(),
        "end": end.ravel(),
        "says": [
            f"stage {row['stage']}{_layers(row)} · {name}: {show(_TOTAL, value)}"
            for row, line in zip(table, amounts)
            for name, value in zip(names, line)
        ],
    }
    worst = fullest(given)
    over = [(s, t) for s, t in zip(stage, total) if t > capacity] or [
        (stage[0], capacity)
    ]  # nothing over: a bar of no height
    top = max([capacity, *total]) * 1.1
    lines = {
        "level": [0.8 * capacity, capacity],
        "kind": ["safe", "full"],
        "says": ["80 %", f"{show(_TOTAL, capacity)} HBM"],
        "long": [
            "80 % of usable memory: below it, published estimates did not run out",
            f"{show(_TOTAL, capacity)} of memory that a program can use",
        ],
    }
    at = worst["total"]
    for level in lines["level"]:  # the label stands on its bar, or on the line that it would cross
        at = level if 0 <= level - at < _LINE * top else at
    marks = {
        "stage": [str(worst["stage"])],
        "level": [worst["total"]],
        "at": [at],
        "says": [f"▾ {show(_TOTAL, worst['total'])}"],
    }
    zones = {
        "level": [
            0.8 * capacity - 1.7 * _LINE * top,
            0.9 * capacity,
            capacity + 1.25 * _LINE * top,
        ],
        "says": ["safe", "tight", "over"],
    }
    ghost = {"stage": stage[:1], "level": total[:1], "seen": [0], "says": [""]}
    if pinned is not None:
        before = {str(row["stage"]): row["total"] for row in stages(pinned)}
        both = [s for s in stage if s in before]
        ghost = {
            "stage": both,
            "level": [before[s] for s in both],
            "seen": [1] * len(both),
            "says": [f"pinned design, stage {s}: {show(_TOTAL, before[s])}" for s in both],
        }
    return {
        "parts": parts,
        "lines": lines,
        "marks": marks,
        "ghost": ghost,
        "zones": zones,
        "over": {
            "stage": [s for s, _ in over],
            "from": [capacity] * len(over),
            "to": [t for _, t in over],
            "says": [f"stage {s}: {show(_TOTAL, t - capacity)} over" for s, t in over],
        },
        "frame": {"stage": [stage[0]], "level": [top]},
    }


def _layers(row) -> str:
    return f" ({row['layers']} layers)" if row.get("layers") else ""


def _memory_words(given, pinned=None) -> str:
    worst, capacity = fullest(given), given["memory_bytes"]["capacity"]
    share = ", ".join(
        f"{name.lower()} {show(_TOTAL, worst[part])}" for part, (name, _) in MEMORY.items()
    )
    return (
        f"Memory per device by pipeline stage. The fullest, stage {worst['stage']}, "
        f"holds {show(_TOTAL, worst['total'])} "
        f"of {show(_TOTAL, capacity)} usable: {share}."
    )


def _memory_chart(legend: bool = False) -> alt.Chart:
    x = alt.X(
        "stage:O",
        title="pipeline stage",
        sort=None,
        axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False),
        scale=alt.Scale(paddingInner=0.18, paddingOuter=0.15),
    )
    unit, ticks = axis(_TOTAL)
    y = alt.Y(
        "start:Q",
        title=f"{unit} per device",
        axis=alt.Axis(labelExpr=ticks, tickCount=6),
        scale=alt.Scale(nice=False, domainMin=0),
    )
    key = alt.Legend(orient="bottom", columns=3, title=None) if legend else None
    bars = (
        alt.Chart(named("parts"))
        .mark_bar(stroke=None)
        .encode(
            x=x,
            y=y,
            y2="end:Q",
            color=alt.Color("part:N", scale=colours(MEMORY), sort=None, legend=key),
            tooltip=alt.Tooltip("says:N", title=" "),
        )
    )
    over = (
        alt.Chart(named("over"))
        .transform_filter("datum.to > datum.from")
        .mark_bar(color=hatch(OVER), stroke=None)
        .encode(x=x, y=alt.Y("from:Q"), y2="to:Q", tooltip=alt.Tooltip("says:N", title=" "))
    )
    base = alt.Chart(named("lines"))
    full = (
        base.transform_filter("datum.kind == 'full'")
        .mark_rule(strokeWidth=2, color=OVER)
        .encode(y="level:Q")
    )
    safe = (
        base.transform_filter("datum.kind == 'safe'")
        .mark_rule(strokeWidth=1.4, strokeDash=[5, 4], style="soft")
        .encode(y="level:Q")
    )
    tip = alt.Tooltip("long:N", title=" ")
    names = [
        base.transform_filter(f"datum.kind == '{kind}'")
        .mark_text(align="left", baseline=baseline, dx=5, fontSize=10.5, style="ink-text")
        .encode(x=alt.value("width"), y="level:Q", text="says:N", tooltip=tip)
        for kind, baseline in (("full", "bottom"), ("safe", "top"))
    ]
    ghost = (
        alt.Chart(named("ghost"))
        .mark_tick(thickness=2, style="ink", orient="horizontal")
        .encode(
            x=x,
            y="level:Q",
            opacity=alt.Opacity("seen:Q", scale=None),
            tooltip=alt.Tooltip("says:N", title=" "),
        )
    )
    most = (
        alt.Chart(named("marks"))
        .mark_text(
            align="left",
            baseline="bottom",
            dx=-5,
            dy=-3,
            fontSize=11,
            fontWeight="bold",
            style="ink-text",
        )
        .encode(x=x, y="at:Q", text="says:N")
    )
    zones = (
        alt.Chart(named("zones"))
        .mark_text(align="left", dx=5, fontSize=10.5, fontStyle="italic", style="soft-text")
        .encode(x=alt.value("width"), y="level:Q", text="says:N")
    )
    frame = alt.Chart(named("frame")).mark_point(opacity=0).encode(x=x, y="level:Q")
    return alt.layer(frame, bars, over, safe, full, *names, zones, ghost, most)


memory = Figure(
    "memory-by-stage",
    "Memory per device, by pipeline stage",
    _memory_chart,
    _memory_data,
    _memory_words,
    height=250,
    empty="No plan can hold this model on this machine.",
)


# ---------------------------------------------------------------- step
_ON, _UNDER, _PINNED = "exposed", "hidden", "pinned"
_PIXELS, _LETTER = 380, 6.6  # a label is drawn where it has room


def _segments(parts: dict, row: str, total: float, longest: float = 0.0) -> dict:
    kept = {part: float(parts.get(part) or 0.0) for part in STEP}
    start, end = stacked(list(kept.values()))
    texts = []
    for part, value in kept.items():
        short = f"{STEP[part][0]} {show('step_s', value)}"
        room = _PIXELS * value / longest if longest else 0
        texts.append(
            short
            if len(short) * _LETTER < room
            else STEP[part][0]
            if len(STEP[part][0]) * _LETTER < room
            else ""
        )
    return {
        "row": [row] * len(kept),
        "part": [STEP[p][0] for p in kept],
        "start": start,
        "end": end,
        "mid": (start + end) / 2,
        "label": texts,
        "ink": [ink_on(STEP[p][1]) for p in kept],
        "says": [
            f"{STEP[p][0]} ({row}): {show('step_s', v)}"
            + (f", {share(v / total)} of the step" if total else "")
            for p, v in kept.items()
        ],
    }


def _step_data(given, pinned=None) -> dict:
    total = given["step_s"]
    longest = max(given.get("step_s_high", total), pinned["step_s"] if pinned is not None else 0.0)
    tables = [
        _segments(given["step_breakdown_s"], _ON, total, longest),
        _segments(given.get("hidden_s") or {}, _UNDER, total),
    ]
    if pinned is not None:
        tables.append(_segments(pinned["step_breakdown_s"], _PINNED, pinned["step_s"]))
    joined = {key: np.concatenate([np.asarray(t[key]) for t in tables]) for key in tables[0]}
    solid = np.isin(joined["row"], [_ON, _PINNED])
    drawn = joined["end"] > joined["start"]
    drawn |= (joined["row"] == _UNDER) & (
        joined["part"] == STEP["tp"][0]
    )  # keep one, an empty table upsets the scales
    pick = lambda keep: {key: values[keep] for key, values in joined.items()}
    low, high = given.get("step_s_low", total), given.get("step_s_high", total)
    return {
        "solid": pick(solid & drawn),
        "pale": pick(~solid & drawn),
        "band": {
            "row": [_ON],
            "low": [low],
            "high": [high],
            "says": [f"80 % band of the step: {show('step_s', low)} to {show('step_s', high)}"],
        },
        "rows": {
            "row": [_ON, _UNDER] + ([_PINNED] if pinned is not None else []),
            "zero": [0.0] * (3 if pinned is not None else 2),
        },
    }


def _step_words(given, pinned=None) -> str:
    total = given["step_s"]
    parts = sorted(
        ((v or 0.0, STEP[k][0]) for k, v in given["step_breakdown_s"].items() if k in STEP),
        reverse=True,
    )
    largest = ", ".join(
        f"{name.lower()} {show('step_s', value)}" for value, name in parts[:5] if value > 0
    )
    return f"One step takes {show('step_s', total)}. Largest parts: {largest}."


def _step_chart(legend: bool = False) -> alt.Chart:
    y = alt.Y(
        "row:N",
        title=None,
        sort=[_ON, _UNDER, _PINNED],
        axis=alt.Axis(ticks=False, domain=False, labelFontSize=11.5),
        scale=alt.Scale(paddingInner=0.22, paddingOuter=0.05),
    )
    x = alt.X(
        "start:Q",
        title="seconds of one step",
        scale=alt.Scale(nice=False, domainMin=0),
        axis=alt.Axis(tickCount=8),
    )
    key = alt.Legend(orient="bottom", columns=3, title=None) if legend else None
    tip = alt.Tooltip("says:N", title=" ")
    colour = alt.Color("part:N", scale=colours(STEP), sort=None, legend=key)
    ground = alt.Chart(named("rows")).mark_point(opacity=0).encode(y=y, x="zero:Q")
    solid = (
        alt.Chart(named("solid"))
        .mark_bar(stroke=None)
        .encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tip)
    )
    pale = (
        alt.Chart(named("pale"))
        .mark_bar(fillOpacity=0.38, strokeWidth=1, strokeDash=[3, 2])
        .encode(
            x=x,
            x2="end:Q",
            y=y,
            color=colour,
            stroke=alt.Stroke("part:N", scale=colours(STEP), legend=None),
            tooltip=tip,
        )
    )
    labels = (
        alt.Chart(named("solid"))
        .mark_text(fontSize=11)
        .encode(
            x=alt.X("mid:Q"), y=y, text="label:N", color=alt.Color("ink:N", scale=None), tooltip=tip
        )
    )
    band = (
        alt.Chart(named("band"))
        .mark_rule(strokeWidth=2, style="ink", yOffset=alt.ExprRef("bandwidth('y') / 2 + 3"))
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y, tooltip=tip)
    )
    return alt.layer(ground, solid, pale, band, labels)


step = Figure(
    "step-time",
    "One training step, in time",
    _step_chart,
    _step_data,
    _step_words,
    height=158,
    empty="Nothing to time: no plan fits.",
)
