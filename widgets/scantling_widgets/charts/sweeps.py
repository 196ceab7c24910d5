"""Sweeps over one or two inputs: a line with what is out of reach below it, or a map with the edge
of what is feasible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from scantling.advise.sweeps import Cell
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.verdict.verdicts import VERDICTS

from ..quantity_texts import MORE_IS_BETTER, label, split
from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, Spec, quantity_axis, records_of, saying
from .palette import ACCENT, MISSED, OVER, SECOND
from .plans import MOVED, constraint_legend
from .theme import hatch, layered, over, tip

KEYS = (*MOVED, "mfu")  # what a sweep can show; mfu: attention in full whatever leads
_SHORT = {"over": "memory", "impossible": "impossible", "refused": "not legal"}
_HUES = ["#2b83ba", "#fff3c4"]


def kind(cell: Cell) -> str:
    """feasible, missed (a stated limit), over (memory), impossible or refused."""
    if cell.verdict == "constraint-missed":
        return "over" if (cell.memory_share or 0) > 1 else "missed"
    known = VERDICTS.get(cell.verdict)
    if known is None or cell.verdict == "impossible":
        return str(cell.verdict)
    return "feasible" if known.met else "missed"


def shows(cell: Cell, key: str) -> bool:
    """Whether a cell has a figure that a plan which fits would reach."""
    return at(cell.figures, key) is not None and kind(cell) != "over"


def says(head: str, cell: Cell, key: str) -> str:
    """One cell in words."""
    if not shows(cell, key):
        return f"{head}: {_SHORT.get(kind(cell), kind(cell))}. {cell.why}".rstrip(". ")
    return f"{head}: {show(key, at(cell.figures, key))}" + (f"; {cell.why}" if cell.why else "")


def titled_axes(spec: Spec, titles: Mapping[str, str]) -> Spec:
    """The specification with the names of the swept inputs on its axes: {channel: name}."""

    def titled(channel: str, encoding: Row) -> Row:
        if channel in titles and "title" in encoding and encoding["type"] == "nominal":
            return encoding | {"title": titles[channel]}
        return encoding

    layers = [
        layer | {"encoding": {name: titled(name, e) for name, e in layer["encoding"].items()}}
        for layer in spec["layer"]
    ]
    return spec | {"layer": layers}


# ---------------------------------------------------------------- one input
def _line_rows(
    figures: Facts,
    cells: Sequence[Cell] = (),
    texts: Sequence[str] = (),
    key: str = "likely.days",
    name: str = "",
    now: int = -1,
) -> Data:
    """`cells`: those of `scantling.advise.sweeps`, in order; `texts`: the swept value of each in
    words; `now`: the one on the desk."""
    points, none = [], []
    for i, (cell, text) in enumerate(zip(cells, texts)):
        row = {
            "at": text,
            "says": says(f"{name} {text}", cell, key),
            "pick": -1 if cell.verdict == "refused" else i,
        }
        if shows(cell, key):
            points.append(row | {"value": at(cell.figures, key), "kind": kind(cell)})
        else:
            none.append(row | {"short": _SHORT.get(kind(cell), "no figure")})
    return {
        "points": points,
        "none": none,
        "now": [row for row in points if row["pick"] == now],
        "order": [{"at": text} for text in texts[: len(cells)]],
    }


def _draw_line(key: str, legend: bool) -> alt.LayerChart:
    title, ticks = quantity_axis(key)
    kinds = ["feasible", "missed"]
    x = alt.X(
        "at:N",
        title=None,
        axis=alt.Axis(
            grid=False, labelAngle=0, labelExpr="split(datum.label, ' ')", labelOverlap=True
        ),
        scale=alt.Scale(paddingInner=0.2),
        sort=None,
    )
    y = alt.Y(
        "value:Q",
        title=title,
        axis=alt.Axis(labelExpr=ticks, tickCount=6),
        scale=alt.Scale(nice=True, zero=False),
    )
    points = (
        over("points")
        .mark_point(cursor="pointer", filled=True, opacity=1, size=90)
        .encode(
            x,
            y,
            alt.Color(
                "kind:N",
                legend=constraint_legend(),
                scale=alt.Scale(domain=kinds, range=[ACCENT, MISSED]),
            ),
            alt.Shape(
                "kind:N",
                legend=constraint_legend(),
                scale=alt.Scale(domain=kinds, range=["circle", "triangle-up"]),
            ),
            tip(),
        )
    )
    none, bottom = over("none"), alt.value("height")
    crosses = none.mark_point(
        color=OVER, angle=45, filled=True, opacity=1, shape="cross", size=70
    ).encode(x, tip(), y=bottom)
    reasons = none.mark_text(dy=-10, fontSize=10, style="ink-text").encode(
        x, alt.Text("short:N"), tip(), y=bottom
    )
    return layered(
        over("order").mark_point(opacity=0).encode(x),
        over("points").mark_line(strokeWidth=1.4, style="soft").encode(x, y, tip()),
        over("now").mark_point(color=SECOND, size=260, strokeWidth=2).encode(x, y),
        points,
        crosses,
        reasons,
    )


line = {
    key: Figure(
        name=f"sweep-{key}",
        title=f"{label(key)} over one input",
        draw=partial(_draw_line, key),
        rows=_line_rows,
        words=saying(_line_rows, f"{label(key)} over one input:", ["points", "none"]),
        height=250,
        empty="Choose an input and press “Sweep” to draw this.",
    )
    for key in KEYS
}


# ---------------------------------------------------------------- two inputs
def _heat_rows(
    figures: Facts,
    cells: Sequence[Cell] = (),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    key: str = "likely.days",
    names: tuple[str, str] = ("", ""),
    now: int = -1,
) -> Data:
    """`cells` row by row: those of `rows` x `columns` that are worked out so far; rows and columns
    are the values in words."""
    good: list[Row] = []
    bad: list[Row] = []
    free: dict[tuple[int, int], bool] = {}  # by row and column
    wide = len(columns)
    places = [{"x": column, "y": row} for row in rows for column in columns]
    for i, (cell, place) in enumerate(zip(cells, places)):
        how = kind(cell)
        free[divmod(i, wide)] = how == "feasible"
        text = says(f"{names[0]} {place['y']}, {names[1]} {place['x']}", cell, key)
        if shows(cell, key):
            good.append(_good_cell(place, text, key, at(cell.figures, key), how == "missed", i))
        else:
            bad.append(
                {
                    **place,
                    "says": text,
                    "text": _SHORT.get(how, "–"),
                    "pick": -1 if how in ("refused", "impossible") else i,
                }
            )

    def edge(down: int, right: int) -> list[Row]:
        """The cells whose neighbour is feasible where they are not, or the other way round."""
        return [
            places[r * wide + c]
            for (r, c), ok in free.items()
            if free.get((r + down, c + right), ok) != ok
        ]

    return {
        "good": good,
        "bad": bad,
        "right": edge(0, 1),
        "below": edge(1, 0),
        "now": [places[now]] if 0 <= now < len(cells) else [],
    }


def _good_cell(place: Row, text: str, key: str, value: float, missed: bool, pick: int) -> Row:
    """A cell that has a figure; marked and faint where it misses a constraint."""
    figure = split(show(key, value))[0]
    return {
        **place,
        "says": text,
        "value": value,
        "text": f"{figure} !" if missed else figure,
        "pick": pick,
        "faint": 0.45 if missed else 1.0,
    }


def _heat_words(
    figures: Facts,
    cells: Sequence[Cell] = (),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    key: str = "likely.days",
    names: tuple[str, str] = ("", ""),
    now: int = -1,
) -> str:
    data = _heat_rows(figures, cells, rows, columns, key, names, now)
    good, bad = records_of(data, "good"), records_of(data, "bad")
    return (
        f"{label(key)} over {names[0]} and {names[1]}: {len(good)} combinations have a "
        f"figure, {len(bad)} do not fit or are not legal. "
        f"{'; '.join(row['says'] for row in good[:12])}."
    )


def _draw_heat(key: str, legend: bool) -> alt.LayerChart:
    unit = alt.Scale(paddingInner=0, paddingOuter=0)
    x = alt.X(
        "x:N",
        title=None,
        axis=alt.Axis(
            labelAngle=0,
            labelExpr="split(datum.label, ' ')",
            labelOverlap=True,
            labelSeparation=4,
            orient="bottom",
            ticks=False,
        ),
        scale=unit,
        sort=None,
    )
    y = alt.Y("y:N", title=None, axis=alt.Axis(labelPadding=5, ticks=False), scale=unit, sort=None)
    text = alt.Text("text:N")
    letters = alt.ExprRef("width < 300 ? 8.5 : 11")  # so that the figures of two cells stay apart
    hues = _HUES[::-1] if key in MORE_IS_BETTER else _HUES
    bad, good = over("bad"), over("good")
    figures = good.mark_rect(cursor="pointer", stroke="#ffffff", strokeWidth=1).encode(
        x,
        y,
        alt.Color("value:Q", legend=None, scale=alt.Scale(range=hues)),
        alt.Opacity("faint:Q", scale=None),
        tip(),
    )

    def corner(across: int, down: int) -> tuple[alt.X, alt.Y]:
        """A corner of a cell: 0 its left or upper end, 1 its right or lower one."""
        return (
            alt.X("x:N", title=None, bandPosition=across, sort=None),
            alt.Y("y:N", title=None, bandPosition=down, sort=None),
        )

    right = over("right").mark_rule(color=OVER, strokeWidth=3)
    below = over("below").mark_rule(color=OVER, strokeWidth=3)
    return layered(
        good.mark_rect(fill="#ffffff", stroke=None).encode(x, y),  # faint hues on dark pages too
        bad.mark_rect(fill=hatch("#8a8f9866", 5, "#8a8f981f"), stroke=None).encode(x, y, tip()),
        figures,
        bad.mark_text(fontSize=10, style="ink-text").encode(x, y, text, tip()),
        good.mark_text(color="#111111", cursor="pointer", fontSize=letters).encode(
            x, y, text, tip()
        ),
        right.encode(*corner(1, 0), alt.Y2("y", bandPosition=1)),
        below.encode(*corner(0, 1), alt.X2("x", bandPosition=1)),
        over("now").mark_rect(fillOpacity=0, stroke="#111111", strokeWidth=2.5).encode(x, y),
    )


heat = {
    key: Figure(
        name=f"map-{key}",
        title=f"{label(key)} over two inputs",
        draw=partial(_draw_heat, key),
        rows=_heat_rows,
        words=_heat_words,
        height=280,
        empty="Choose two inputs and press “Sweep” to draw this.",
    )
    for key in KEYS
}
