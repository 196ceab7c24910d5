"""Sweeps over one or two inputs: a line with what is out of reach below it, or a map with the edge
of what is feasible."""

from __future__ import annotations

from collections.abc import Sequence

from .figures import Figure, hatch, named
from .grammar import alt
from .palette import ACCENT, OVER, SECOND
from .words import axis, label, show, split, titled

KEYS = ("days", "step_s", "mfu", "cost_usd", "goodput")
_MORE_IS_BETTER = ("mfu", "goodput")
_LINES = "split(datum.label, ' ')"  # a long name stands in several lines
_SHORT = {"over": "memory", "impossible": "impossible", "refused": "not legal"}


def kind(cell) -> str:
    """feasible, missed (a stated limit), over (memory), impossible or refused."""
    if cell.verdict == "constraint-missed":
        return "over" if (cell.memory_share or 0) > 1 else "missed"
    return cell.verdict


def entitled(spec: dict, x: str, y: str = "") -> dict:
    """The specification with these titles on its axes of words."""
    layers = []
    for layer in spec["layer"]:
        encoding = {
            name: {**channel, "title": title}
            if (title := {"x": x, "y": y}.get(name)) and channel.get("type") == "nominal"
            else channel
            for name, channel in layer.get("encoding", {}).items()
        }
        layers.append({**layer, "encoding": encoding})
    return {**spec, "layer": layers}


def says(names, cell, key) -> str:
    """One cell in words."""
    value = cell.figures.get(key)
    head = ", ".join(names)
    if value is None or kind(cell) == "over":
        return f"{head}: {_SHORT.get(kind(cell), kind(cell))}. {cell.why}".rstrip(". ")
    return f"{head}: {show(key, value)}" + (f"; {cell.why}" if cell.why else "")


# ---------------------------------------------------------------- one input
def _line_data(
    given, cells: Sequence = (), texts: Sequence = (), key="days", name="", now: int = -1
) -> dict:
    """`cells`: those of `scantling.advise.sweeps`, in order; `texts`: the swept value of each in
    words; `now`: the one on the desk."""
    out = {"at": [], "value": [], "kind": [], "says": [], "pick": []}
    none = {"at": [], "says": [], "short": [], "pick": []}
    for i, (cell, text) in enumerate(zip(cells, texts)):
        value = cell.figures.get(key)
        if value is None or kind(cell) == "over":
            for column, item in zip(
                none,
                (
                    text,
                    says((f"{name} {text}",), cell, key),
                    _SHORT.get(kind(cell), "no figure"),
                    i if cell.verdict != "refused" else -1,
                ),
            ):
                none[column].append(item)
        else:
            for column, item in zip(
                out, (text, value, kind(cell), says((f"{name} {text}",), cell, key), i)
            ):
                out[column].append(item)
    here = [i for i in range(len(out["at"])) if out["pick"][i] == now]
    return {
        "points": out,
        "none": none,
        "now": {"at": [out["at"][i] for i in here], "value": [out["value"][i] for i in here]},
        "order": {"at": list(texts[: len(cells)])},
    }


def _line_words(given, cells=(), texts=(), key="days", name="", now=-1) -> str:
    return (
        f"{label(key)} over {name}: "
        + "; ".join(says((text,), cell, key) for cell, text in zip(cells, texts))
        + "."
    )


def _line_chart(key):
    def build(legend: bool = True) -> alt.Chart:
        _, ticks = axis(key)
        x = alt.X(
            "at:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelAngle=0, labelOverlap=True, labelExpr=_LINES, grid=False),
            scale=alt.Scale(paddingInner=0.2),
        )
        y = alt.Y(
            "value:Q",
            title=titled(key),
            scale=alt.Scale(zero=False, nice=True),
            axis=alt.Axis(labelExpr=ticks, tickCount=6),
        )
        tip = alt.Tooltip("says:N", title=" ")
        order = alt.Chart(named("order")).mark_point(opacity=0).encode(x=x)
        base = alt.Chart(named("points")).encode(x=x, y=y, tooltip=tip)
        line = base.mark_line(strokeWidth=1.4, style="soft")
        scale = dict(domain=["feasible", "missed"])
        key_ = alt.Legend(
            orient="top",
            title=None,
            labelExpr="datum.label == 'missed' ? 'misses a stated limit' : 'feasible'",
        )
        dots = base.mark_point(filled=True, size=90, opacity=1, cursor="pointer").encode(
            color=alt.Color(
                "kind:N", scale=alt.Scale(range=[ACCENT, "#e69f00"], **scale), legend=key_
            ),
            shape=alt.Shape(
                "kind:N", scale=alt.Scale(range=["circle", "triangle-up"], **scale), legend=key_
            ),
        )
        here = (
            alt.Chart(named("now"))
            .mark_point(size=260, strokeWidth=2, color=SECOND)
            .encode(x=x, y=y)
        )
        none = alt.Chart(named("none"))
        bad = none.mark_point(
            shape="cross", size=70, filled=True, color=OVER, angle=45, opacity=1
        ).encode(x=x, y=alt.value("height"), tooltip=tip)
        why = none.mark_text(fontSize=10, dy=-10, style="ink-text").encode(
            x=x, y=alt.value("height"), text="short:N", tooltip=tip
        )
        return alt.layer(order, line, here, dots, bad, why)

    return build


line = {
    key: Figure(
        f"sweep-{key}",
        f"{label(key)} over one input",
        _line_chart(key),
        _line_data,
        _line_words,
        height=250,
        empty="Choose an input and press “Sweep” to draw this.",
    )
    for key in KEYS
}


# ---------------------------------------------------------------- two inputs
def _heat_data(
    given,
    cells: Sequence = (),
    rows: Sequence = (),
    columns: Sequence = (),
    key="days",
    names=("", ""),
    now: int = -1,
) -> dict:
    """`cells` row by row: those of `rows` x `columns` that are worked out so far; rows and columns
    are the values in words."""
    good = {"x": [], "y": [], "value": [], "text": [], "says": [], "pick": [], "faint": []}
    bad = {"x": [], "y": [], "text": [], "says": [], "pick": []}
    wide = len(columns)
    free = {}
    for i, cell in enumerate(cells):
        r, c = divmod(i, wide)
        value, how = cell.figures.get(key), kind(cell)
        text = says((f"{names[0]} {rows[r]}", f"{names[1]} {columns[c]}"), cell, key)
        free[r, c] = how == "feasible"
        if value is None or how == "over":
            for column, item in zip(
                bad,
                (
                    columns[c],
                    rows[r],
                    _SHORT.get(how, "–"),
                    text,
                    i if how not in ("refused", "impossible") else -1,
                ),
            ):
                bad[column].append(item)
        else:
            for column, item in zip(
                good,
                (
                    columns[c],
                    rows[r],
                    value,
                    split(show(key, value))[0] + (" !" if how == "missed" else ""),
                    text,
                    i,
                    0.45 if how == "missed" else 1.0,
                ),
            ):
                good[column].append(item)
    right = [(r, c) for (r, c), ok in free.items() if (r, c + 1) in free and free[r, c + 1] != ok]
    below = [(r, c) for (r, c), ok in free.items() if (r + 1, c) in free and free[r + 1, c] != ok]
    here = [divmod(now, wide)] if 0 <= now < len(cells) else []
    place = lambda where: {"x": [columns[c] for _, c in where], "y": [rows[r] for r, _ in where]}
    return {
        "good": good,
        "bad": bad,
        "right": place(right),
        "below": place(below),
        "now": place(here),
    }


def _heat_words(given, cells=(), rows=(), columns=(), key="days", names=("", ""), now=-1) -> str:
    data = _heat_data(given, cells, rows, columns, key, names, now)
    best = data["good"]["says"]
    return (
        (
            f"{label(key)} over {names[0]} and {names[1]}: {len(best)} combinations have a "
            f"figure, {len(data['bad']['says'])} do not fit or are not legal. "
        )
        + "; ".join(best[:12])
        + "."
    )


def _heat_chart(key):
    def build(legend: bool = True) -> alt.Chart:
        scale = alt.Scale(paddingInner=0, paddingOuter=0)
        x = alt.X(
            "x:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelAngle=0, labelExpr=_LINES, orient="bottom", ticks=False),
            scale=scale,
        )
        y = alt.Y("y:N", title=None, sort=None, axis=alt.Axis(ticks=False), scale=scale)
        tip = alt.Tooltip("says:N", title=" ")
        colours = ["#2b83ba", "#fff3c4"] if key not in _MORE_IS_BETTER else ["#fff3c4", "#2b83ba"]
        colour = alt.Color(
            "value:Q", scale=alt.Scale(range=colours), legend=None
        )  # every cell says its number
        good, bad = (
            alt.Chart(named("good")).encode(x=x, y=y, tooltip=tip),
            alt.Chart(named("bad")).encode(x=x, y=y, tooltip=tip),
        )
        cells = good.mark_rect(stroke="#ffffff", strokeWidth=1, cursor="pointer").encode(
            color=colour, opacity=alt.Opacity("faint:Q", scale=None)
        )
        numbers = good.mark_text(fontSize=11, color="#111111", cursor="pointer").encode(
            text="text:N"
        )
        out = bad.mark_rect(fill=hatch("#8a8f9866", 5, "#8a8f981f"), stroke=None)
        why = bad.mark_text(fontSize=10, style="ink-text").encode(text="text:N")
        edge = [
            alt.Chart(named("right"))
            .mark_rule(strokeWidth=3, color=OVER)
            .encode(
                x=alt.X("x:N", bandPosition=1, sort=None),
                y=alt.Y("y:N", bandPosition=0, sort=None),
                y2=alt.Y2("y:N", bandPosition=1),
            ),
            alt.Chart(named("below"))
            .mark_rule(strokeWidth=3, color=OVER)
            .encode(
                x=alt.X("x:N", bandPosition=0, sort=None),
                x2=alt.X2("x:N", bandPosition=1),
                y=alt.Y("y:N", bandPosition=1, sort=None),
            ),
        ]
        here = (
            alt.Chart(named("now"))
            .mark_rect(fillOpacity=0, stroke="#111111", strokeWidth=2.5)
            .encode(x=x, y=y)
        )
        return alt.layer(out, cells, why, numbers, *edge, here)

    return build


heat = {
    key: Figure(
        f"map-{key}",
        f"{label(key)} over two inputs",
        _heat_chart(key),
        _heat_data,
        _heat_words,
        height=280,
        empty="Choose two inputs and press “Sweep” to draw this.",
    )
    for key in KEYS
}
