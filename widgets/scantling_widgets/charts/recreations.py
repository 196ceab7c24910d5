"""Pictures of published figures and of computed curves for notebooks: what was printed beside what
the kit computes, the error below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from scantling.base.show import number, percent, several
from scantling_walkthroughs.published_figures import recreate as published_figures
from scantling_walkthroughs.published_figures.recreation import (
    Figure as PublishedFigure,
    Recreation,
)

from . import curves
from .altair_loader import alt
from .curves import Channels, Curves
from .figure import Row, compiled
from .pictures import Picture
from .theme import COUNTS, INK, layered, listed

_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def is_share(figure: PublishedFigure) -> bool:
    """Whether the values of a published figure are shares."""
    return figure.unit == "1" and figure.quantity != "tokens"


# ---------------------------------------------------------------- a recreated figure
def picture(id: str, only: str = "") -> Picture:
    """A recreated figure: dots are printed values, lines and crosses ours, the error below. `only`:
    series that begin so."""
    recreation = published_figures.recreate(id)
    figure = recreation.figure
    rows = [
        asdict(point) | {"error": error}
        for point, error in zip(recreation.points, recreation.errors)
        if point.series.startswith(only)
    ]
    drawn = {name: curve for name, curve in recreation.curves.items() if name.startswith(only)}
    return Picture(
        compiled(_printed_and_ours(figure, rows, drawn)),
        f"{figure.title}. {error_sentence(recreation)}",
        (
            f"{figure.title}. Filled: printed. {'Lines and c' if drawn else 'C'}rosses: ours. "
            f"Below: ours {'− printed' if figure.absolute else '/ printed − 1'}."
        ),
    )


def _printed_and_ours(
    figure: PublishedFigure, rows: Sequence[Row], drawn: Curves
) -> alt.VConcatChart:
    names = list(dict.fromkeys([*(str(row["series"]) for row in rows), *drawn]))
    columns = 2 if max(map(len, names)) > 26 else 4
    x = _axis_x(figure, rows)
    width, series, layers = curves.named(
        drawn,
        names,
        [x, _axis_y(figure, "y")],
        {"clip": True, "strokeWidth": 1.6},
        log="y" in figure.log,
        legend=alt.Legend(orient="bottom", columns=columns, labelLimit=330),
    )
    printed = listed(rows).mark_point(filled=True, size=60, opacity=0.95)
    ours = listed(rows).mark_point(shape=_CROSS, size=40, strokeWidth=1.6, filled=False, color=INK)
    above = layered(
        *layers,
        printed.encode(x, _axis_y(figure, "published"), *series),
        ours.encode(x, alt.Y("ours:Q")),
    ).properties(width=width, height=220)
    below = _errors(_axis_x(figure, rows, titled=True), rows, series)
    both = alt.vconcat(above, below.properties(width=width, height=74), spacing=12)
    chart: alt.VConcatChart = both.resolve_scale(color="shared", shape="shared", x="shared")
    return chart


def _errors(x: alt.X, rows: Sequence[Row], series: Channels) -> alt.LayerChart:
    """The errors of the printed values around nil."""
    y = alt.Y("error:Q", title="error", axis=alt.Axis(format="+~%", tickCount=4))
    errors = listed(rows).mark_point(filled=True, size=44, opacity=0.95)
    nil = listed([{"y": 0}]).mark_rule(strokeWidth=1, style="soft")
    return layered(nil.encode(alt.Y("y:Q")), errors.encode(x, y, *series))


def _axis_y(figure: PublishedFigure, column: str) -> alt.Y:
    unit = "" if figure.unit in ("1", figure.quantity) else f", {figure.unit}"
    if is_share(figure):
        axis = alt.Axis(format="~%", tickCount=5)
    else:
        axis = alt.Axis(labelExpr=COUNTS, tickCount=5)
    if "y" in figure.log:
        scale = alt.Scale(type="log", nice=False, padding=10)
    else:
        scale = alt.Scale(zero=False, nice=True)
    return alt.Y(f"{column}:Q", title=figure.quantity + unit, scale=scale, axis=axis)


def _axis_x(figure: PublishedFigure, rows: Sequence[Row], titled: bool = False) -> alt.X:
    """The axis across: names as they come, few round numbers one by one, else a scale."""
    places = list(dict.fromkeys(row["x"] for row in rows))
    title = figure.x if titled else None
    axis_parts: dict[str, Any] = {"labels": titled, "ticks": titled}
    if any(isinstance(place, str) for place in places):
        angle = -35 if sum(map(len, places)) > 60 else 0
        return alt.X("x:N", title=title, sort=places, axis=alt.Axis(labelAngle=angle, **axis_parts))
    log = "x" in figure.log
    round_numbers = all(float(n).is_integer() and n < 1e6 for n in places)
    if log and 3 <= len(places) <= 12 and round_numbers:
        axis = alt.Axis(
            labelExpr="format(datum.value, ',~r')",
            grid=False,
            labelOverlap="greedy",
            values=sorted(places),
            **axis_parts,
        )
    else:
        axis = alt.Axis(
            labelExpr="format(datum.value, '~s') + 'B'" if figure.x == "bytes" else COUNTS,
            grid=False,
            tickCount=7,
            labelOverlap="greedy",
            labelSeparation=12,
            **axis_parts,
        )
    scale = alt.Scale(type="log" if log else "linear", nice=False, zero=False, padding=14)
    return alt.X("x:Q", title=title, axis=axis, scale=scale)


# ---------------------------------------------------------------- its errors in words
def error(x: float, absolute: bool, unit: str = "1") -> str:
    """An error as text: points where it is a difference of shares (in the unit, of anything else),
    per cent where it is relative."""
    text = percent(x, sign="+")
    if absolute:
        text = f"{100 * x:+.2f} pt" if unit == "1" else f"{x:+.0f}"
    nil = not any(digit in text for digit in "123456789")
    return (text[1:] if nil else text).replace("-", "−")


def size(x: float, figure: PublishedFigure) -> str:
    """An error of a published figure, in size."""
    return error(x, figure.absolute, figure.unit).lstrip("+")


def of_all(recreation: Recreation) -> tuple[float, float]:
    """Median and largest error of every printed value, those that are shown only among them."""
    errors = np.abs(np.asarray(recreation.errors, float))
    return float(np.nanmedian(errors)), float(np.nanmax(errors))


def error_sentence(recreation: Recreation) -> str:
    """Bounds and errors of a recreation in a sentence, its outliers counted."""
    figure, bounded = recreation.figure, sum(point.counted for point in recreation.points)
    median, worst = (size(error, figure) for error in of_all(recreation))
    missed = ": not met" if figure.missed else ""
    allowed = f"(allowed {size(figure.median, figure)} and {size(figure.worst, figure)}{missed})"
    start = f"{several(len(recreation.points), 'printed value')}: median error {median}, largest "
    start += worst
    if bounded == len(recreation.points):
        return f"{start} {allowed}."
    outliers = several(len(recreation.points) - bounded, "value")
    return (
        f"{start}. {outliers} shown only; of the {bounded} held to a "
        f"bound, median {size(recreation.median_error, figure)}, largest "
        f"{size(recreation.worst_error, figure)} {allowed}."
    )


# ---------------------------------------------------------------- computed curves
def lines(
    drawn: Curves,
    *,
    x: str,
    y: str,
    log: str = "",
    share: bool = False,
    marks: Curves | None = None,
    title: str = "",
) -> Picture:
    """Computed curves {name: (x, y)} as one picture; `marks` {name: (x, y)} are named points on it.
    x, y: axis titles; log: axes that are logarithmic; share: y in per cent."""
    rows = curves.points(drawn)
    places: dict[str, list[str]] = {}
    for row in [*rows, *curves.points(marks or {})]:
        place = f"{_said(row['y'], share)} at {number(row['x'])}"
        places.setdefault(row["series"], []).append(place)
    ends = "; ".join(
        f"{name}: {', '.join(dict.fromkeys((texts[0], texts[-1])))}"
        for name, texts in places.items()
    )
    return curves.lines(
        [row for row in rows if np.isfinite(row["y"])],
        "x",
        "y",
        f"{y} against {x}. {ends}.",
        by="series",
        x_title=x,
        y_title=y,
        x_log="x" in log,
        y_log="y" in log,
        y_format="~%" if share else "",
        zero=False,
        marks=marks,
        dots=False,
        caption=title or f"{y[:1].upper()}{y[1:]} against {x}.",
    )


def _said(value: float, share: bool) -> str:
    """A value of a computed curve or bar as text."""
    return percent(value) if share else number(value)


def _of_parts(parts: Mapping[str, float], share: bool) -> str:
    """The total of a bar, and its parts where it has several."""
    total = _said(float(sum(parts.values())), share)
    named = ", ".join(f"{part} {_said(float(amount), share)}" for part, amount in parts.items())
    return f"{total} ({named})" if len(parts) > 1 else total


def bars(
    parts: Mapping[str, Mapping[str, float]], *, x: str, share: bool = False, title: str = ""
) -> Picture:
    """Stacked bars {bar: {part: value}}, one row a bar; share: values in per cent."""
    rows = [
        {"bar": bar, "part": part, "amount": float(amount)}
        for bar, amounts in parts.items()
        for part, amount in amounts.items()
    ]
    totals = "; ".join(f"{bar}: {_of_parts(of, share)}" for bar, of in parts.items())
    return curves.bars(
        rows,
        "bar",
        "amount",
        f"{x}. {totals}.",
        by="part",
        title=x,
        format="~%" if share else "",
        caption=title or f"{x[:1].upper()}{x[1:]}.",
    )
