"""What tells series apart where colour does not: a shape, a dash, and the name at the end of each
curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap

import numpy as np

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
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 3))
# height of a label's line and width of a letter [px], letters in a line
LINE, LETTER, PER_LINE = 13, 6.4, 26
GAP = 16  # from the end of the axis to a label [px]
_NAME = {
    "type": "text",
    "align": "left",
    "baseline": "middle",
    "fontSize": 11,
    "lineHeight": LINE,
    "style": "ink-text",
}


def field(name: str, kind: str = "quantitative", **more) -> dict:
    """A channel over a column of numbers, or of names where `kind` is nominal."""
    return {
        "field": name,
        "type": kind,
        **more,
    }


def layer(rows, mark: dict, **channels) -> dict:
    """One layer of a picture over its own rows."""
    return {
        "data": {"values": list(rows)},
        "mark": mark,
        "encoding": channels,
    }


def log_or(log: bool, **linear) -> dict:
    """A logarithmic scale, or a linear one as given."""
    return (
        {
            "type": "log",
            "nice": False,
        }
        if log
        else linear
    )


def marked(
    name: str,
    names: list[str],
    hues: Iterable[str] = HUES,
    legend=None,
    dashed: bool = False,
) -> dict:
    """Encodings of a nominal field that differ in colour and in shape (or, `dashed`, in dash), with
    one legend for both; plain where one name is all there is."""
    hues = list(hues)
    if len(names) < 2:
        return {"color": {"value": hues[0]}}

    def by(values) -> dict:
        told = {
            "domain": names,
            "range": (list(map(_plain, values)) * 3)[: len(names)],
        }
        return field(
            name,
            "nominal",
            title=None,
            sort=names,
            scale=told,
            legend=legend,
        )

    return {
        "color": by(hues),
        **({"strokeDash": by(DASHES)} if dashed else {"shape": by(SHAPES)}),
    }


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


def room(names: Iterable[str]) -> int:
    """Pixels that the labels of `ends` take beside a picture."""
    return GAP + int(LETTER * max(len(line) for name in names for line in wrap(name, PER_LINE)))


def apart(
    places,
    heights,
    low: float,
    high: float,
) -> np.ndarray:
    """Places [px] moved as little as keeps neighbours half their heights apart, in the order that
    they have, between low and high."""
    order = np.argsort(places, kind="stable")
    at, tall = np.asarray(places, float)[order], np.asarray(heights, float)[order]
    for _ in range(400):
        at[0], at[-1] = max(at[0], low), min(at[-1], high)
        close = np.maximum((tall[:-1] + tall[1:]) / 2 - np.diff(at), 0.0)
        if not (close > 0.1).any():
            break
        at[:-1] -= close / 2
        at[1:] += close / 2
    out = np.empty_like(at)
    out[order] = at
    return out


def ends(
    drawn: Mapping[str, tuple],
    x: dict,
    y: dict,
    *,
    width: int,
    height: int,
    hues,
    glyphs=False,
) -> list[dict]:
    """Layers with the name of each curve {name: (x, y)} behind its last point, moved apart where
    they would touch; none for a single curve.

    hues : colours by name; glyphs : each name after the shape of its points, in the order of
    `hues`.
    """
    if len(drawn) < 2:
        return []
    values = np.concatenate([np.asarray(v, float) for _, v in drawn.values()])
    log = y["scale"].get("type") == "log"
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = (float(scale(v)) for v in (values.min(), values.max()))
    unit = (height / 1.12) / ((high - low) or 1.0)  # pixels of one; a nice axis ends beyond them
    last = {name: [float(np.asarray(v, float)[-1]) for v in ab] for name, ab in drawn.items()}
    glyph = {name: f"{GLYPHS[i % len(GLYPHS)]} " * glyphs for i, name in enumerate(hues)}
    lines = {name: wrap(glyph[name] + name, PER_LINE) for name in last}
    moved = apart(
        [float(scale(b)) * unit for _, b in last.values()],
        [LINE * len(lines[name]) for name in last],
        low * unit,
        high * unit,
    )
    keys = ("name", "lines", "count", "x", "y", "label")
    rows = [
        dict(zip(keys, (name, lines[name], len(lines[name]), *ab, float(back(m / unit)))))
        for (name, ab), m in zip(last.items(), moved)
    ]
    rules = [
        layer(
            [row],
            {
                "type": "rule",
                "strokeWidth": 1,
                "color": hues[row["name"]],
            },
            x={
                **x,
                "field": "x",
            },
            y={
                **y,
                "field": "y",
            },
            x2={"value": width + GAP - 4},
            y2={"field": "label"},
        )
        for row in rows
    ]
    # a text of several lines hangs from its place: lift it by half
    texts = [
        layer(
            [row],
            {
                **_NAME,
                "dy": -LINE * (row["count"] - 1) / 2,
            },
            x={"value": width + GAP},
            y={
                **y,
                "field": "label",
            },
            text=field("lines", "nominal"),
        )
        for row in rows
    ]
    return rules + texts
