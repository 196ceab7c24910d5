"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

A figure is a function from an assessment to an Altair chart: `charts.memory(result)` for a report,
`charts.memory.live()` for the desk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from scantling.base.records import at
from scantling.base.show import seconds, share, size
from scantling.physics.memory.peak import SAFE_SHARE

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, laid, quantity_axis, saying
from .palette import MEASURED, MEMORY, OVER, STEP, Swatch, colours, names
from .theme import hatch, layered, over, tip

_SIDES: dict[Literal["left", "right"], int] = {"left": -5, "right": 5}  # px that the mark juts out
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
    ghost = _ghost(rows, reference) if reference else []
    label_at = worst["total"]
    # the label stands on its bar, or on the line or the mark that it would cross
    for level in sorted([safe, capacity, *(tick["level"] for tick in ghost)]):
        if 0 <= level - label_at < line:
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
                **_named(worst, rows),
            }
        ],
        "ghost": ghost,
        "zones": [
            {"level": safe - 1.7 * line, "says": "safe"},
            {"level": 0.9 * capacity, "says": "tight"},
            {"level": capacity + 1.25 * line, "says": "over"},
        ],
        "over": [_excess(row, capacity) for row in rows if row["total"] > capacity],
        "frame": [{"level": top, "stage": str(rows[0]["stage"])}],
    }


def _named(worst: Row, rows: list[Row]) -> Row:
    """What the mark over the fullest stage says, and on which side of it there is room."""
    if len(rows) == 1:
        return {"side": "left", "says": f"▾ {size(worst['total'])} needed"}
    if 2 * rows.index(worst) < len(rows):
        return {"side": "left", "says": f"▾ fullest stage: {size(worst['total'])}"}
    return {"side": "right", "says": f"fullest stage: {size(worst['total'])} ▾"}


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
    return layered(
        over("frame").mark_point(opacity=0).encode(x, alt.Y("level:Q")),
        *_memory_bars(x, legend),
        *_memory_levels(),
        ghost.encode(x, alt.Y("level:Q"), tip()),
        *(_total(side).encode(x, alt.Y("at:Q"), alt.Text("says:N")) for side in _SIDES),
    )


def _total(side: Literal["left", "right"]) -> alt.Chart:
    """The mark of the fullest stage, where the text begins or ends over its bar."""
    marks = over("marks").transform_filter(f"datum.side == '{side}'")
    chart: alt.Chart = marks.mark_text(
        align=side,
        baseline="bottom",
        dx=_SIDES[side],
        dy=-3,
        fontSize=11,
        fontWeight="bold",
        style="ink-text",
    )
    return chart


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
        legend=alt.Legend(title=None, columns=5, orient="bottom") if legend else None,
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
_STEP, _REFERENCE = "one step", "reference"
_NAMED = 0.003  # share of the step below which a part has no row of its own
_SHOWN = 0.0005  # and below which the rest has none either
_REST = Swatch("the rest", "#8a8f98")
_HIDDEN = "hidden"
_ROOM_PX, _LETTER_PX = 260, 5.7  # of the picture on a telephone and of a letter
_NARROW_PX = 240  # of the axis of time on a telephone


class _Part(NamedTuple):
    """A part of the step: what of it is exposed, laid behind the parts before it, and what is
    hidden below other work [s]."""

    name: str
    colour: str
    start: float
    end: float
    hidden: float

    @property
    def exposed(self) -> float:
        return self.end - self.start


def _step_parts(figures: Facts) -> list[_Part]:
    """The parts that the step has, in the order of stacking; those too small to see are one."""
    hidden, total = figures.get("hidden_s") or {}, figures["step_s"]
    parts, rest = [], 0.0
    end = 0.0
    for key, swatch in STEP.items():
        exposed, under = figures["step_breakdown_s"].get(key) or 0.0, hidden.get(key) or 0.0
        if max(exposed, under) < _NAMED * total:
            rest += exposed
            continue
        parts.append(_Part(swatch.name, swatch.colour, end, end + exposed, under))
        end += exposed
    if rest > 0:
        parts.append(_Part(*_REST, end, end + rest, 0.0))
    return parts


def _step_rows(figures: Facts, reference: Facts | None = None, until: float = 0.0) -> Data:
    """`until`: seconds that the axis reaches at least, where steps are to be compared."""
    total = figures["step_s"]
    low, high = figures.get("step_s_low", total), figures.get("step_s_high", total)
    longest = high if reference is None else max(high, reference["step_s"])
    parts = _step_parts(figures)
    stacked = [_exposed(part, _STEP, total) for part in parts if part.exposed]
    parts = [part for part in parts if part.name != _REST.name or part.exposed > _SHOWN * total]
    rows = [_STEP, *(part.name for part in parts)]
    marks: list[Row] = []
    if reference is not None:
        before = _step_parts(reference)
        stacked += [_exposed(part, _REFERENCE, reference["step_s"]) for part in before]
        rows.insert(1, _REFERENCE)
        marks = _reference_marks(parts, before)
    measured = [
        point["step_s"]
        for point in at(figures, "measured_here.steps.points") or ()
        if point["devices"] == figures["devices_used"]
    ]
    data = {
        "solid": [*stacked, *(_exposed(part, part.name, total) for part in parts if part.exposed)],
        "pale": [_under(part, total) for part in parts if part.hidden],
        "texts": [_text(part, longest, total) for part in parts],
        "marks": marks,
        "band": [
            {
                "row": _STEP,
                "low": low,
                "high": high,
                "says": f"one step takes {seconds(total)}, 80 % band {seconds(low)} to "
                f"{seconds(high)}",
            }
        ],
        "seen": [
            {"row": _STEP, "at": time, "says": f"a step of {seconds(time)} was measured here"}
            for time in measured
        ],
        "rows": [{"row": row, "at": end} for row in rows for end in sorted({0.0, until})],
    }
    place = {row: number for number, row in enumerate(rows)}
    return {name: [{**one, "place": place[one["row"]]} for one in of] for name, of in data.items()}


def _exposed(part: _Part, row: str, total: float) -> Row:
    return {
        "row": row,
        "part": part.name,
        "colour": part.colour,
        "start": part.start,
        "end": part.end,
        "says": f"{part.name}: {seconds(part.exposed)}{_of_step(part.exposed, total)}",
    }


def _under(part: _Part, total: float) -> Row:
    return {
        "row": part.name,
        "colour": part.colour,
        "start": part.end,
        "end": part.end + part.hidden,
        "says": f"{part.name}, hidden below other work: {seconds(part.hidden)}"
        f"{_of_step(part.hidden, total)}",
    }


def _text(part: _Part, longest: float, total: float) -> Row:
    """Amount and share of a part on the side of its bar that has more room; what is hidden is said
    with them where there is room for it."""
    end = part.end + part.hidden
    before = part.start > longest - end
    room_px = _ROOM_PX * max(part.start, longest - end) / longest
    hidden = f"{seconds(part.hidden)} {_HIDDEN}"
    text = f"{seconds(part.exposed)} · {share(part.exposed / total)}"
    if not part.exposed:
        text = hidden
    elif part.hidden and len(f"{text}, {hidden}") * _LETTER_PX < room_px:
        text = f"{text}, {hidden}"
    return {
        "row": part.name,
        "at": part.start if before else end,
        "text": text,
        "short": text.partition(" · ")[0],
        "before": before,
    }


def _reference_marks(parts: list[_Part], before: list[_Part]) -> list[Row]:
    """Where each bar would end if the part took as long as in the reference design."""
    was = {part.name: part.exposed for part in before}
    return [
        {
            "row": part.name,
            "start": part.start,
            "end": part.start + was[part.name],
            "says": f"{part.name} in the reference design: {seconds(was[part.name])}",
        }
        for part in parts
        if part.name in was
    ]


def _of_step(time: float, total: float) -> str:
    return f", {share(time / total)} of the step" if total else ""


def _draw_step(legend: bool) -> alt.LayerChart:
    def row(**more: Any) -> alt.Y:
        return alt.Y(
            "row:N",
            title=None,
            axis=alt.Axis(domain=False, labelFontSize=11, ticks=False, labelLimit=150),
            scale=alt.Scale(paddingInner=0.2, paddingOuter=0.05),
            sort=alt.EncodingSortField(field="place", op="min", order="ascending"),
            **more,
        )

    x = alt.X(
        "start:Q",
        title="seconds of one step",
        axis=alt.Axis(tickCount=6),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    colour = alt.Color("colour:N", scale=None, legend=None)
    solid = over("solid").mark_bar(stroke=None).encode(x, alt.X2("end"), row(), colour, tip())
    pale = (
        over("pale")
        .mark_bar(fillOpacity=0.3, strokeDash=[3, 2], strokeWidth=1)
        .encode(
            x, alt.X2("end"), row(), colour, alt.Stroke("colour:N", legend=None, scale=None), tip()
        )
    )
    marks = (
        over("marks")
        .mark_rule(strokeWidth=2, style="ink", yOffset=-1)
        .encode(x, alt.X2("end"), row(bandPosition=1), tip())
    )
    band = (
        over("band")
        .mark_rule(strokeWidth=2, style="ink", yOffset=1)
        .encode(alt.X("low:Q"), alt.X2("high"), row(bandPosition=1), tip())
    )
    measured = (
        over("seen")
        .mark_point(color=MEASURED, filled=True, opacity=1, shape="triangle-up", size=70, yOffset=5)
        .encode(alt.X("at:Q"), row(bandPosition=1), tip())
    )
    return layered(
        over("rows").mark_point(opacity=0).encode(alt.X("at:Q"), row()),
        solid,
        pale,
        marks,
        band,
        measured,
        _amounts(row, before=False),
        _amounts(row, before=True),
    )


def _amounts(row: Callable[[], alt.Y], before: bool) -> alt.Chart:
    """Amounts of the parts behind their bars, or before them."""
    chart: alt.Chart = (
        over("texts")
        .transform_filter("datum.before" if before else "!datum.before")
        .mark_text(
            align="right" if before else "left",
            dx=-5 if before else 5,
            fontSize=10.5,
            style="ink-text",
            # on a telephone neither side of a bar has room for the share
            text=alt.ExprRef(f"range('x')[1] < {_NARROW_PX} ? datum.short : datum.text"),
        )
        .encode(alt.X("at:Q"), row())
    )
    return chart


step = Figure(
    name="step-time",
    title="One training step, in time",
    draw=_draw_step,
    rows=_step_rows,
    words=saying(_step_rows, "In time:", ["band", "seen", "solid"]),
    height=206,
    empty="Nothing to time: no plan fits.",
)
