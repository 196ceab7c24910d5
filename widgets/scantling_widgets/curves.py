"""What tells series apart where colour does not: a shape, a dash, and the name at the end of each
curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from textwrap import wrap

import numpy as np

from .assessment_charts import spec

HUES, SHAPES, GLYPHS, DASHES = spec("series").values()
# height of a label's line and width of a letter [px], letters in a line
LINE, LETTER, PER_LINE = 13, 6.4, 26
GAP = 16  # from the end of the axis to a label [px]


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
        return field(
            name,
            "nominal",
            title=None,
            sort=names,
            scale={
                "domain": names,
                "range": list(islice(cycle(values), len(names))),
            },
            legend=legend,
        )

    other = {"strokeDash": by(DASHES)} if dashed else {"shape": by(SHAPES)}
    return {"color": by(hues)} | other


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
    log = y["scale"].get("type") == "log"
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    values = scale(np.concatenate([np.asarray(up, float) for _, up in drawn.values()]))
    low, high = values.min(), values.max()
    unit = (height / 1.12) / ((high - low) or 1.0)  # pixels of one; a nice axis ends beyond them
    last = [[float(np.asarray(v, float)[-1]) for v in ab] for ab in drawn.values()]
    glyph = {name: f"{mark} " * glyphs for name, mark in zip(hues, cycle(GLYPHS))}
    lines = [wrap(glyph[name] + name, PER_LINE) for name in drawn]
    tall = [LINE * len(of) for of in lines]
    moved = apart(
        [scale(b) * unit for _, b in last],
        tall,
        low * unit,
        high * unit,
    )
    keys = ("name", "lines", "count", "x", "y", "label")
    made = [
        spec(
            "ends",
            row=dict(zip(keys, (name, of, len(of), *ab, label))),
            hue=hues[name],
            x=x | {"field": "x"},
            y=y | {"field": "y"},
            label=y | {"field": "label"},
            lead=width + GAP - 4,
            beyond=width + GAP,
            line=LINE,
            lift=(LINE - above) / 2,
        )
        for name, of, ab, label, above in zip(
            drawn,
            lines,
            last,
            back(moved / unit).tolist(),
            tall,
        )
    ]
    return [one[part] for part in ("rule", "text") for one in made]
