"""What tells series apart where colour does not: a shape, a dash, and the name at the end of each
curve."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

import numpy as np

from .grammar import alt

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
LINE, LETTER, PER_LINE = (
    13,
    6.4,
    26,
)  # height of a label's line and width of a letter [px], letters in a line
GAP = 16  # from the end of the axis to a label [px]


def marked(
    field: str, names: list[str], hues: Iterable[str] = HUES, legend=None, dashed: bool = False
) -> dict:
    """Encodings of a nominal field that differ in colour and in shape (or, `dashed`, in dash), with
    one legend for both; plain where one name is all there is."""
    if len(names) < 2:
        return {"color": alt.value(list(hues)[0])}
    kinds, channel = (DASHES, "strokeDash") if dashed else (SHAPES, "shape")
    scale = lambda values: alt.Scale(
        domain=names,
        range=[list(v) if isinstance(v, tuple) else v for v in (list(values) * 3)[: len(names)]],
    )  # noqa: E731
    make = {"strokeDash": alt.StrokeDash, "shape": alt.Shape}[channel]
    return {
        "color": alt.Color(f"{field}:N", title=None, sort=names, scale=scale(hues), legend=legend),
        channel: make(f"{field}:N", title=None, sort=names, scale=scale(kinds), legend=legend),
    }


def room(names: Iterable[str]) -> int:
    """Pixels that the labels of `ends` take beside a picture."""
    return GAP + int(LETTER * max(len(line) for name in names for line in wrap(name, PER_LINE)))


def apart(places, heights, low: float, high: float) -> np.ndarray:
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
    curves: dict, x, y, width: int, height: int, hues: dict, log: bool = False, glyphs: bool = False
) -> list:
    """Layers with the name of each curve {name: (x, y)} behind its last point, moved apart where
    they would touch; none for a single curve.

    glyphs : each name after the shape of its points, in the order of `hues`.
    """
    if len(curves) < 2:
        return []
    values = np.concatenate([np.asarray(v, float) for _, v in curves.values()])
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = (float(scale(v)) for v in (values.min(), values.max()))
    unit = (height / 1.12) / (
        (high - low) or 1.0
    )  # pixels of one; a nice axis ends a little beyond the values
    last = {
        name: (float(np.asarray(a, float)[-1]), float(np.asarray(b, float)[-1]))
        for name, (a, b) in curves.items()
    }
    order = list(hues)
    lines = {
        name: wrap(
            f"{GLYPHS[order.index(name) % len(GLYPHS)]} {name}" if glyphs else name, PER_LINE
        )
        for name in last
    }
    moved = apart(
        [float(scale(b)) * unit for _, b in last.values()],
        [LINE * len(lines[name]) for name in last],
        low * unit,
        high * unit,
    )
    rows = [
        {
            "name": name,
            "lines": lines[name],
            "count": len(lines[name]),
            "x": a,
            "y": b,
            "label": float(back(m / unit)),
        }
        for (name, (a, b)), m in zip(last.items(), moved)
    ]
    base = alt.Chart(alt.Data(values=rows))
    layers = [
        base.transform_filter(alt.datum.name == name)
        .mark_rule(strokeWidth=1, color=hues[name])
        .encode(x=of(x, "x"), y=of(y, "y"), x2=alt.value(width + GAP - 4), y2="label:Q")
        for name in last
    ]
    for count in sorted(
        {len(ls) for ls in lines.values()}
    ):  # a text of several lines hangs from its place: lift it by half
        layers.append(
            base.transform_filter(alt.datum.count == count)
            .mark_text(
                align="left",
                baseline="middle",
                dy=-LINE * (count - 1) / 2,
                fontSize=11,
                lineHeight=LINE,
                style="ink-text",
            )
            .encode(x=alt.value(width + GAP), y=of(y, "label"), text="lines:N")
        )
    return layers


def of(axis, field: str):
    """The same axis over another field."""
    out = axis.copy()
    out.shorthand = f"{field}:Q"
    return out
