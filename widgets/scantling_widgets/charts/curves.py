"""Pictures of series: lines and bars over computed rows, and what tells series apart where colour
does not: a shape, a dash, and the name at the end of each curve."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import cycle, islice
from textwrap import wrap

import numpy as np
from scipy.optimize import isotonic_regression

from .chart import spec
from .palette import ACCENT, MEMORY, STEP
from .pictures import WIDTH, Picture

HUES, SHAPES, GLYPHS, DASHES = (spec("series", n) for n in ("hues", "shapes", "glyphs", "dashes"))
# height of a label's line and width of a letter [px], letters in a line
LINE, LETTER, PER_LINE = 13, 6.4, 26
GAP = 16  # from the end of the axis to a label [px]
PLOT, HEIGHT = WIDTH - 70, 220  # of a picture without its axis, names beside it included [px]
_looks = partial(spec, "walkthrough")


def field(name: str, kind: str = "quantitative", **more) -> dict:
    """A channel over a column of numbers, or of names where `kind` is nominal."""
    return {"field": name, "type": kind, **more}


def layer(rows, mark: dict, **channels) -> dict:
    """One layer of a picture over its own rows."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": channels}


def marked(names: list, hues: Iterable = HUES, legend=None, dashed: bool = False) -> dict:
    """Encodings of a nominal field that differ in colour and in shape (or, `dashed`, in dash), with
    one legend for both; plain where one name is all there is."""

    def by(values):
        return spec(
            "series",
            "channel",
            names=names,
            range=list(islice(cycle(values), len(names))),
            legend=legend,
        )

    if len(names) < 2:
        return {"color": {"value": hues[0]}}
    return {"color": by(hues), **({"strokeDash": by(DASHES)} if dashed else {"shape": by(SHAPES)})}


def apart(places, heights, low: float, high: float) -> np.ndarray:
    """Places [px] moved as little as keeps neighbours half their heights apart, in the order that
    they have, between low and high: least squares, an isotonic regression of what lies between."""
    order = np.argsort(places, kind="stable")
    at, tall = np.asarray(places, float)[order], np.asarray(heights, float)[order]
    below = np.cumsum(np.append(0.0, (tall[:-1] + tall[1:]) / 2))
    out = np.empty_like(at)
    out[order] = np.clip(isotonic_regression(at - below).x, low, max(low, high - below[-1])) + below
    return out


def points(drawn: Mapping[str, tuple]) -> list:
    """Curves {name: (x, y)} as rows."""
    return [
        {"series": name, "x": float(a), "y": float(b)}
        for name, ab in drawn.items()
        for a, b in np.broadcast(*ab)
    ]


def ends(drawn: Mapping[str, tuple], width: int, hues, log: bool, glyphs: bool = True) -> list:
    """Layers with the name of each curve {name: (x, y)} behind its last point, moved apart where
    they would touch; `glyphs`: after the shape of its points."""
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    values = scale(np.concatenate([np.asarray(up, float) for _, up in drawn.values()]))
    low, high = values.min(), values.max()
    unit = (HEIGHT / 1.12) / ((high - low) or 1.0)  # pixels of one; a nice axis ends beyond them
    last = np.array([[float(along[-1]), float(up[-1])] for along, up in drawn.values()])
    said = [wrap(f"{mark} " * glyphs + name, PER_LINE) for name, mark in zip(drawn, cycle(GLYPHS))]
    tall = LINE * np.array([len(of) for of in said])
    moved = apart(scale(last[:, 1]) * unit, tall, low * unit, high * unit)
    keys = ("said", "hue", "x", "y", "label", "top")
    lifted = moved + (tall - LINE) / 2  # a text of several lines hangs from its place
    places = (*last.T, back(moved / unit), back(lifted / unit))
    rows = [dict(zip(keys, row)) for row in zip(said, cycle(hues), *(p.tolist() for p in places))]
    return spec("ends", "layers", rows=rows, lead=width + GAP - 4, beyond=width + GAP, line=LINE)


def named(
    drawn: Mapping[str, tuple],
    names: list,
    at: Mapping[str, dict],
    mark: dict,
    *,
    hues=HUES,
    legend=None,
    glyphs: bool = True,
) -> tuple:
    """Curves {name: (x, y)} over the channels `at`; each says its name behind its last point where
    all of `names` are curves, else in `legend`: (width, encodings of points of the same series,
    layers)."""
    beside = len(names) > 1 and set(drawn) == set(names)
    legend = None if beside else legend
    width = PLOT
    told, dashed = (marked(names, hues, legend, dash) for dash in (False, True))
    curve = layer(points(drawn), mark, **at, **dashed)
    layers = [curve] if drawn else []
    if beside:
        lines = (line for name in names for line in wrap(name, PER_LINE))
        width -= GAP + int(LETTER * max(map(len, lines)))
        layers += ends(
            {name: drawn[name] for name in names},
            width,
            hues,
            at["y"]["scale"].get("type") == "log",
            glyphs,
        )
    return width, told, layers


# ---------------------------------------------------------------- plain pictures
def lines(
    rows,
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
    ticks=None,
    marks=None,
    dots: bool = True,
    caption: str = "",
) -> Picture:
    """Lines of `y` over `x`, one for each value of `by`, with `dots` at the rows; `marks`
    {name: (x, y)} are named points on them, `rule` is a level across."""
    across = _axis(
        x_format, grid=False, labelOverlap="greedy", **{"values": [*ticks]} if ticks else {}
    )
    at = {
        "x": field("x", title=x_title, scale=_scale(x_log), axis=across),
        "y": field(
            "y", title=y_title, scale=_scale(y_log, zero), axis=_axis(y_format, tickCount=5)
        ),
    }
    names = _names(rows, by)
    drawn = {
        name: [[row[key] for row in rows if not by or row[by] == name] for key in (x, y)]
        for name in names
    }
    width, told, layers = named(drawn, names, at, _looks("line"), hues=_hues(names), glyphs=dots)
    layers += _looks(
        "over",
        dots=dots,
        points=points(drawn),
        told=at | told,
        named=bool(marks),
        spots=points(marks or {}),
        at=at,
        text=at | {"text": field("series", "nominal")},
        levelled=rule is not None,
        level=[{"y": rule}],
        up={"y": at["y"]},
    )
    return Picture({"layer": layers, "width": width, "height": HEIGHT}, words, caption or words)


def bars(
    rows,
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
    names = _names(rows, by)
    chart = _looks(
        "bars",
        rows=[*rows],
        name=name,
        value=value,
        title=title,
        axis=_axis(format, tickCount=6),
        colour=_looks("colour", by=by, names=names, hues=_hues(names))
        if len(names) > 1
        else {"value": ACCENT},
        text=label,
        texts=label is not None,
        limit=[{value: rule}],
        limits=rule is not None,
        width=WIDTH - 240,
    )
    return Picture(chart, words, caption or words)


def _axis(format: str, **more) -> dict:
    """An axis; its labels in a format, those of named ticks as they are, else as counts."""
    plain = {} if "values" in more else _looks("counts")
    return ({"format": format} if format else plain) | more


def _scale(log: bool, zero: bool = False) -> dict:
    return {"type": "log", "nice": False} if log else {"zero": zero, "nice": True}


def _hues(names) -> list:
    """The fixed colours of parts of memory or of a step, else the set in its order."""
    for family in (MEMORY, STEP):
        fixed = dict(family.values())
        if set(names) <= set(fixed):
            return [fixed[n] for n in names]
    return [ACCENT] if len(names) < 2 else HUES


def _names(rows, by: str | None) -> list:
    return list(dict.fromkeys(row[by] for row in rows)) if by else [""]
