"""Pictures of series: lines and bars over computed rows, and what tells series apart where colour
does not: a shape, a dash, and the name at the end of each curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from textwrap import wrap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from .altair_loader import alt
from .figure import Drawn, Row, compiled
from .palette import ACCENT, MEMORY, SECOND, STEP
from .pictures import WIDTH, Picture
from .theme import COUNTS, INK, layered, listed

HUES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#5a6fb8",
    "#9c5b2e",
    "#8a8f98",
    "#b4471f",
    "#66c2a4",
    "#a9c9e0",
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-left")
GLYPHS = "●■▲◆▼◀"  # the same in a text
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3])
# height of a label's line and width of a letter [px], letters in a line
LINE, LETTER, PER_LINE = 13, 6.4, 26
GAP = 16  # from the end of the axis to a label [px]
PLOT, HEIGHT = WIDTH - 70, 220  # of a picture without its axis, names beside it included [px]

Places: TypeAlias = Sequence[float] | NDArray[Any]
Curve: TypeAlias = tuple[Places, Places]  # along and up
Curves: TypeAlias = Mapping[str, Curve]
Channels: TypeAlias = list[Any]  # encodings, of whatever channel


# ---------------------------------------------------------------- what tells series apart
def marked(
    names: Sequence[str],
    hues: Sequence[str] = HUES,
    legend: alt.Legend | None = None,
    dashed: bool = False,
) -> Channels:
    """Encodings of the series that differ in colour and in shape (or, `dashed`, in dash), with one
    legend for both; plain where one name is all there is."""
    if len(names) < 2:
        return [alt.ColorValue(hues[0])]

    def scale(values: Iterable[Any]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=list(islice(cycle(values), len(names))))

    same: dict[str, Any] = {"title": None, "sort": list(names), "legend": legend}
    colour = alt.Color("series:N", scale=scale(hues), **same)
    if dashed:
        return [colour, alt.StrokeDash("series:N", scale=scale(DASHES), **same)]
    return [colour, alt.Shape("series:N", scale=scale(SHAPES), **same)]


def apart(
    places: Sequence[float] | NDArray[Any],
    heights: Sequence[float] | NDArray[Any],
    low: float,
    high: float,
) -> NDArray[Any]:
    """Places [px] moved as little as keeps neighbours half their heights apart, in the order that
    they have, between low and high: least squares, an isotonic regression of what lies between."""
    order = np.argsort(places, kind="stable")
    at, tall = np.asarray(places, float)[order], np.asarray(heights, float)[order]
    below = np.cumsum(np.append(0.0, (tall[:-1] + tall[1:]) / 2))
    out = np.empty_like(at)
    out[order] = np.clip(isotonic_regression(at - below).x, low, max(low, high - below[-1])) + below
    return out


def points(drawn: Curves) -> list[Row]:
    """Curves {name: (x, y)} as rows."""
    return [
        {"series": name, "x": float(a), "y": float(b)}
        for name, ab in drawn.items()
        for a, b in np.broadcast(*ab)
    ]


def ends(
    drawn: Curves, width: float, hues: Sequence[str], log: bool, glyphs: bool = True
) -> list[alt.Chart]:
    """Layers with the name of each curve {name: (x, y)} behind its last point, moved apart where
    they would touch; `glyphs`: after the shape of its points."""
    rows = _end_rows(drawn, hues, log, glyphs)
    rules = (
        listed(rows)
        .mark_rule(strokeWidth=1)
        .encode(
            alt.X("x:Q"),
            alt.Y("y:Q"),
            alt.Y2("label"),
            alt.Color("hue:N", scale=None),
            x2=alt.value(width + GAP - 4),
        )
    )
    labels = (
        listed(rows)
        .mark_text(align="left", baseline="middle", fontSize=11, lineHeight=LINE, style="ink-text")
        .encode(alt.Y("top:Q"), alt.Text("said:N"), x=alt.value(width + GAP))
    )
    return [rules, labels]


def _end_rows(drawn: Curves, hues: Sequence[str], log: bool, glyphs: bool) -> list[Row]:
    """The last point of each curve, and the places of its name: of the rule that leads there, and
    of its first line."""

    def scale(values: Any) -> NDArray[Any]:
        return np.log(values) if log else np.asarray(values)

    def back(values: NDArray[Any]) -> NDArray[Any]:
        return np.exp(values) if log else values

    values = scale(np.concatenate([np.asarray(up, float) for _, up in drawn.values()]))
    low, high = values.min(), values.max()
    unit = (HEIGHT / 1.12) / ((high - low) or 1.0)  # pixels of one; a nice axis ends beyond them
    last = np.array([[float(along[-1]), float(up[-1])] for along, up in drawn.values()])
    texts = [
        wrap(f"{glyph} {name}" if glyphs else name, PER_LINE)
        for name, glyph in zip(drawn, cycle(GLYPHS))
    ]
    tall = LINE * np.array([len(lines) for lines in texts])
    moved = apart(scale(last[:, 1]) * unit, tall, low * unit, high * unit)
    label = back(moved / unit)
    top = back((moved + (tall - LINE) / 2) / unit)  # a text of several lines hangs from its place
    return [
        {
            "said": text,
            "hue": hue,
            "x": float(x),
            "y": float(y),
            "label": float(label_y),
            "top": float(top_y),
        }
        for text, hue, (x, y), label_y, top_y in zip(texts, cycle(hues), last, label, top)
    ]


class Named(NamedTuple):
    """Curves that say their names."""

    width: int  # that is left for the plot [px]
    series: Channels  # encodings of points of the same series
    layers: list[alt.Chart]


def named(
    drawn: Curves,
    names: Sequence[str],
    axes: Channels,
    mark: Mapping[str, Any],
    *,
    log: bool,
    hues: Sequence[str] = HUES,
    legend: alt.Legend | None = None,
    glyphs: bool = True,
) -> Named:
    """Curves {name: (x, y)} over `axes`, of which the one up may be `log`; each says its name
    behind its last point where all of `names` are curves, else in `legend`."""
    beside = len(names) > 1 and set(drawn) == set(names)
    legend = None if beside else legend
    width = PLOT
    curves = listed(points(drawn)).mark_line(**mark)
    layers = [curves.encode(*axes, *marked(names, hues, legend, dashed=True))] if drawn else []
    if beside:
        longest = max(len(line) for name in names for line in wrap(name, PER_LINE))
        width -= GAP + int(LETTER * longest)
        layers += ends({name: drawn[name] for name in names}, width, hues, log, glyphs)
    return Named(width, marked(names, hues, legend), layers)


# ---------------------------------------------------------------- plain pictures
def lines(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    words: str,
    *,
    by: str | None = None,
    x_title: str = "",
    y_title: str = "",
    x_log: bool = False,
    y_log: bool = False,
    y_format: str = "",
    x_format: str = "",
    zero: bool = True,
    rule: float | None = None,
    ticks: Sequence[float] | None = None,
    marks: Curves | None = None,
    dots: bool = True,
    caption: str = "",
) -> Picture:
    """Lines of `y` over `x`, one for each value of `by`, with `dots` at the rows; `marks`
    {name: (x, y)} are named points on them, `rule` is a level across."""
    named_ticks = {"values": list(ticks)} if ticks else {}
    across = _axis(x_format, grid=False, labelOverlap="greedy", **named_ticks)
    axis_x = alt.X("x:Q", title=x_title, scale=_scale(x_log), axis=across)
    axis_y = alt.Y(
        "y:Q", title=y_title, scale=_scale(y_log, zero), axis=_axis(y_format, tickCount=5)
    )
    names = _names(rows, by)
    drawn: dict[str, Curve] = {}
    for name in names:
        own = [row for row in rows if not by or row[by] == name]
        drawn[name] = ([row[x] for row in own], [row[y] for row in own])
    line = {"clip": True, "strokeWidth": 2}
    width, series, layers = named(
        drawn, names, [axis_x, axis_y], line, log=y_log, hues=_hues(names), glyphs=dots
    )
    if dots:
        shapes = listed(points(drawn)).mark_point(filled=True, size=40, opacity=1)
        layers.append(shapes.encode(axis_x, axis_y, *series))
    if marks:
        spots = listed(points(marks))
        layers += [
            spots.mark_circle(size=60, opacity=1, color=INK).encode(axis_x, axis_y),
            spots.mark_text(
                align="left", baseline="bottom", dx=5, dy=-4, fontSize=11, style="ink-text"
            ).encode(axis_x, axis_y, alt.Text("series:N")),
        ]
    if rule is not None:
        level = listed([{"y": rule}]).mark_rule(strokeDash=[5, 4], strokeWidth=1.4, style="soft")
        layers.append(level.encode(axis_y))
    return _picture(layered(*layers).properties(width=width, height=HEIGHT), words, caption)


def bars(
    rows: Iterable[Mapping[str, Any]],
    name: str,
    value: str,
    words: str,
    *,
    by: str | None = None,
    title: str = "",
    format: str = "",
    rule: float | None = None,
    label: str | None = None,
    caption: str = "",
) -> Picture:
    """Horizontal bars of `value`, a row for each `name`, stacked and coloured by `by`; `label` is a
    column of texts at their ends, `rule` a level across."""
    bars = [dict(row) for row in rows]
    y = alt.Y(
        field=name,
        type="nominal",
        title=None,
        sort=None,
        axis=alt.Axis(domain=False, labelLimit=260, ticks=False),
        scale=alt.Scale(paddingInner=0.25),
    )
    x = alt.X(
        field=value,
        type="quantitative",
        title=title,
        axis=_axis(format, tickCount=6),
        scale=alt.Scale(zero=True),
    )
    layers = [listed(bars).mark_bar(stroke=None).encode(y, x, _colour_by(by, _names(bars, by)))]
    if label is not None:
        texts = listed(bars).mark_text(align="left", dx=5, fontSize=11, style="ink-text")
        layers.append(texts.encode(y, x, alt.Text(field=label, type="nominal")))
    if rule is not None:
        level = listed([{value: rule}]).mark_rule(color=SECOND, strokeDash=[5, 4], strokeWidth=2)
        layers.append(level.encode(x))
    chart = layered(*layers).properties(width=WIDTH - 240, height=alt.Step(24))
    return _picture(chart, words, caption)


def _picture(chart: Drawn, words: str, caption: str) -> Picture:
    return Picture(compiled(chart), words, caption or words)


def _colour_by(by: str | None, names: Sequence[str]) -> Any:
    """Parts in their colours, with a legend; one colour where there are none."""
    if by is None or len(names) < 2:
        return alt.ColorValue(ACCENT)
    return alt.Color(
        field=by,
        type="nominal",
        title=None,
        sort=None,
        scale=alt.Scale(domain=list(names), range=list(_hues(names))),
        legend=alt.Legend(orient="top", columns=4),
    )


def _axis(format: str, **more: Any) -> alt.Axis:
    """An axis; its labels in a format, those of named ticks (`values`) as they are, else as
    counts."""
    if format:
        return alt.Axis(format=format, **more)
    if "values" in more:
        return alt.Axis(**more)
    return alt.Axis(labelExpr=COUNTS, labelSeparation=8, **{"tickCount": 7, **more})


def _scale(log: bool, zero: bool = False) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=True)


def _hues(names: Sequence[str]) -> Sequence[str]:
    """The fixed colours of parts of memory or of a step, else the set in its order."""
    for family in (MEMORY, STEP):
        fixed = dict(family.values())
        if set(names) <= set(fixed):
            return [fixed[name] for name in names]
    return [ACCENT] if len(names) < 2 else HUES


def _names(rows: Iterable[Mapping[str, Any]], by: str | None) -> list[str]:
    return list(dict.fromkeys(row[by] for row in rows)) if by else [""]
