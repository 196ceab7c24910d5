"""Plain pictures for walkthroughs: lines and bars over rows that the models computed, with measured
points on top."""

from __future__ import annotations

from functools import partial

from . import curves
from .assessment_charts import spec
from .curves import field, layer, log_or
from .palette import ACCENT, MEMORY, STEP
from .report.pictures import WIDTH, Picture

_HEIGHT = 220
_looks = partial(spec, "walkthrough")


def _hues(names) -> list[str]:
    """The fixed colours of parts of memory or of a step, else the set in its order."""
    for family in (MEMORY, STEP):
        fixed = dict(family.values())
        if names and set(names) <= set(fixed):
            return [fixed[n] for n in names]
    return list(curves.HUES[: len(names)])


def _names(rows, by: str | None) -> list[str]:
    return list(dict.fromkeys(row[by] for row in rows)) if by else []


def lines(
    rows,
    x: str,
    y: str,
    words: str,
    *,
    by: str | None = None,
    measured=(),
    x_title: str = "",
    y_title: str = "",
    x_log: bool = False,
    y_log: bool = False,
    y_format: str = "",
    x_format: str = "",
    zero: bool = True,
    height: int = _HEIGHT,
    rule: float | None = None,
    ticks=None,
    caption: str = "",
) -> Picture:
    """Lines of `y` over `x`, one for each value of `by`; `measured` rows are drawn as hollow
    points; `rule` is a level across."""
    across = {
        "grid": False,
        "labelOverlap": True,
        "format": x_format,
        "values": ticks and [*ticks],
    }
    up = {
        "tickCount": 5,
        "format": y_format,
    }
    scale_x, scale_y = (
        log_or(
            x_log,
            zero=False,
            nice=True,
        ),
        log_or(
            y_log,
            zero=zero,
            nice=True,
        ),
    )
    at = {
        "x": field(
            x,
            title=x_title,
            scale=scale_x,
            axis=_given(across),
        ),
        "y": field(
            y,
            title=y_title,
            scale=scale_y,
            axis=_given(up),
        ),
    }
    names = _names([*rows, *measured], by)
    hues = _hues(names)
    drawn = {
        name: [[row[key] for row in rows if row[by] == name] for key in (x, y)]
        for name in _names(rows, by)
    }
    beside = len(names) > 1 and len(drawn) == len(names)
    width = WIDTH - 70 - (curves.room(names) if beside else 0)
    legend = None if beside else _looks("legend")
    told, dashed = (
        curves.marked(
            by,
            names,
            hues or [ACCENT],
            legend,
            dashed,
        )
        for dashed in (False, True)
    )
    layers = [
        layer(
            rows,
            _looks("line"),
            **at,
            **dashed,
        ),
        layer(
            rows,
            _looks("point"),
            **at,
            **told,
        ),
    ]
    if beside:
        hues = dict(zip(names, hues))
        layers += curves.ends(
            drawn,
            **at,
            width=width,
            height=height,
            hues=hues,
            glyphs=True,
        )
    if measured:
        layers.append(
            layer(
                measured,
                _looks("measured"),
                **at,
                **told,
            )
        )
    if rule is not None:
        layers.append(layer([{y: rule}], _looks("level"), y=at["y"]))
    return Picture(
        {
            "layer": layers,
            "width": width,
            "height": height,
        },
        words,
        caption or words,
    )


def _given(axis: dict) -> dict:
    """The parts of an axis that somebody asked for."""
    return {key: value for key, value in axis.items() if value not in (None, "")}


def bars(
    rows,
    name: str,
    value: str,
    words: str,
    *,
    by: str | None = None,
    title: str = "",
    log: bool = False,
    format: str = "",
    rule: float | None = None,
    label: str | None = None,
    caption: str = "",
) -> Picture:
    """Horizontal bars of `value`, a row for each `name`, stacked or coloured by `by`; `label` is a
    column of texts at their ends."""
    names = _names(rows, by)
    at = {
        "y": _looks("names", name=name),
        "x": field(
            value,
            title=title,
            scale=log_or(log, zero=True) | ({"nice": True} if log else {}),
            axis=_given(
                {
                    "tickCount": 6,
                    "format": format,
                }
            ),
        ),
    }
    colour = {"value": ACCENT}
    if by:
        colour = _looks(
            "colour",
            by=by,
            names=names,
            hues=_hues(names),
        )
    layers = [
        layer(
            rows,
            _looks("bar"),
            **at,
            color=colour,
        )
    ]
    if label:
        layers.append(
            layer(
                rows,
                _looks("label"),
                **at,
                text=field(label, "nominal"),
            )
        )
    if rule is not None:
        layers.append(layer([{value: rule}], _looks("limit"), x=at["x"]))
    return Picture(
        {
            "layer": layers,
            "width": WIDTH - 240,
            "height": {"step": 24},
        },
        words,
        caption or words,
    )
