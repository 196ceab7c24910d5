"""Pictures of published figures and of computed curves for notebooks: what was printed beside what
the kit computes, the error below."""

from __future__ import annotations

from functools import partial
from itertools import cycle

import numpy as np
from scantling.base.show import number, percent, several
from scantling.evidence.published_figures import recreate as published_figures

from . import curves
from .assessment_charts import spec, stacked
from .curves import HUES, field, layer
from .report.pictures import Picture

WIDTH = 560
BESIDE = 660  # of a picture with names beside it, both
_HEIGHT = 230
_looks = partial(spec, "published")


def is_share(f) -> bool:
    """Whether the values of a published figure are shares."""
    return f.unit == "1" and f.quantity != "tokens"


def picture(id: str, only: str = "") -> Picture:
    """A recreated figure: dots are printed values, lines and crosses ours, the error below. `only`:
    series that begin so."""
    r = published_figures.recreate(id)
    f = r.figure
    points = [(p, e) for p, e in zip(r.points, r.errors) if p.series.startswith(only)]
    drawn = {s: c for s, c in r.curves.items() if s.startswith(only)}
    names = list(dict.fromkeys([*(p.series for p, _ in points), *drawn]))
    beside = len(names) > 1 and set(drawn) == set(names)
    width = BESIDE - curves.room(names) if beside else WIDTH
    columns = 2 if max(map(len, names)) > 26 else 4
    legend = None if beside else _looks("legend", columns=columns)
    told = curves.marked("series", names, legend=legend)
    shown = [
        {
            "series": p.series,
            "x": p.x,
            "published": p.published,
            "ours": p.ours,
            "error": e,
            "counted": p.counted,
        }
        for p, e in points
    ]
    unit = "" if f.unit in ("1", f.quantity) else f", {f.unit}"
    x, y = (
        _axis_x(f, points),
        field(
            "published",
            title=f.quantity + unit,
            scale=_looks("log_up" if "y" in f.log else "linear_up"),
            axis=_looks("shares" if is_share(f) else "numbers"),
        ),
    )
    above = []
    if drawn:
        above = [
            layer(
                _points(drawn),
                _looks("ours"),
                x=x,
                y=field("y"),
                **curves.marked(
                    "series",
                    names,
                    legend=legend,
                    dashed=True,
                ),
            )
        ]
    if beside:
        above += curves.ends(
            drawn,
            x,
            y,
            width=width,
            height=_HEIGHT,
            hues=dict(zip(names, HUES)),
            glyphs=True,
        )
    above += [
        layer(
            shown,
            _looks("printed"),
            x=x,
            y=y,
            **told,
        ),
        layer(
            shown,
            _looks("cross"),
            x=x,
            y=field("ours"),
        ),
    ]
    return Picture(
        _looks(
            "both",
            above=above,
            below=[
                layer([{"y": 0}], _looks("zero"), y=field("y")),
                layer(
                    shown,
                    _looks("error"),
                    x=_axis_x(f, points, True),
                    y=_looks("error_up"),
                    **told,
                ),
            ],
            width=width,
        ),
        f"{f.title}. {said(r)}",
        (
            f"{f.title}. Filled: printed. {'Lines and c' if drawn else 'C'}rosses: ours. "
            f"Below: ours {'− printed' if f.absolute else '/ printed − 1'}."
        ),
    )


def _arrays(drawn) -> dict[str, list[np.ndarray]]:
    """Curves {name: (x, y)} as arrays of one length."""
    return {name: np.broadcast_arrays(*map(np.atleast_1d, ab)) for name, ab in drawn.items()}


def _points(drawn) -> list[dict]:
    """Curves {name: (x, y)} as rows."""
    return [
        {
            "series": name,
            "x": float(a),
            "y": float(b),
        }
        for name, ab in _arrays(drawn).items()
        for a, b in zip(*ab)
    ]


def _axis_x(
    f,
    points,
    title: bool = False,
) -> dict:
    """The axis across: names as they come, few round numbers one by one, else a scale."""
    places = list(dict.fromkeys(p.x for p, _ in points))
    head, log = f.x if title else None, "x" in f.log
    if any(isinstance(place, str) for place in places):
        angle = -35 if sum(map(len, places)) > 60 else 0
        axis = _looks("shown" if title else "hidden", angle=angle)
        return field(
            "x",
            "nominal",
            title=head,
            sort=places,
            axis=axis,
        )
    round_ = all(float(n).is_integer() and n < 1e6 for n in places)
    few = log and 3 <= len(places) <= 12 and round_
    ticks = "few" if few else "bytes" if f.x == "bytes" else "many"
    axis = _looks(
        ticks,
        titled=title,
        few=sorted(places),
    )
    return field(
        "x",
        title=head,
        axis=axis,
        scale=_looks("scale", kind="log" if log else "linear"),
    )


def error(
    x: float,
    absolute: bool,
    unit: str = "1",
) -> str:
    """An error as text: points where it is a difference of shares (in the unit, of anything else),
    per cent where it is relative."""
    text = percent(x, sign="+")
    if absolute:
        text = f"{100 * x:+.2f} pt" if unit == "1" else f"{x:+.0f}"
    nil = not any(digit in text for digit in "123456789")
    return (text[1:] if nil else text).replace("-", "−")


def size(x: float, f) -> str:
    """An error of a published figure, in size."""
    return error(x, f.absolute, f.unit).lstrip("+")


def of_all(r) -> tuple[float, float]:
    """Median and largest error of every printed value, those that are shown only among them."""
    errors = np.abs(np.asarray(r.errors, float))
    return float(np.nanmedian(errors)), float(np.nanmax(errors))


def said(r) -> str:
    """Bounds and errors of a recreation in a sentence, its outliers counted."""
    f, held = r.figure, sum(p.counted for p in r.points)
    median, worst = (size(error, f) for error in of_all(r))
    allowed = f"(allowed {size(f.median, f)} and {size(f.worst, f)})"
    start = f"{several(len(r.points), 'printed value')}: median error {median}, largest {worst}"
    if held == len(r.points):
        return f"{start} {allowed}."
    return (
        f"{start}. {several(len(r.points) - held, 'value')} shown only; of the {held} held to a "
        f"bound, median {size(r.median_error, f)}, largest {size(r.worst_error, f)} {allowed}."
    )


def lines(
    drawn: dict,
    *,
    x: str,
    y: str,
    log: str = "",
    share: bool = False,
    marks: dict | None = None,
    title: str = "",
    height: int = _HEIGHT,
) -> Picture:
    """Computed curves {name: (x, y)} as one picture; `marks` {name: (x, y)} are named points on it.
    x, y: axis titles; share: y in per cent."""
    whole, spots = _arrays(drawn), _arrays(marks or {})
    finite = {
        name: (np.asarray(a, float)[ok], np.asarray(b, float)[ok])
        for name, (a, b) in whole.items()
        if (ok := np.isfinite(b)).any()
    }
    names = list(finite)
    width = WIDTH if len(names) < 2 else BESIDE - curves.room(names)
    kind = {
        end: {
            "type": "log" if end in log else "linear",
            "zero": False,
        }
        for end in "xy"
    }
    at = {
        "x": field(
            "x",
            title=x,
            scale=kind["x"] | {"nice": False},
            axis=_looks("across"),
        ),
        "y": field(
            "y",
            title=y,
            scale=kind["y"] | {"nice": "y" not in log},
            axis=_looks("shares" if share else "numbers"),
        ),
    }
    layers = [
        layer(
            _points(finite),
            _looks("curve"),
            **at,
            **curves.marked("series", names, dashed=True),
        ),
        *curves.ends(
            finite,
            **at,
            width=width,
            height=height,
            hues=dict(zip(names, HUES)),
        ),
    ]
    if spots:
        named = _points(spots)
        layers += [
            layer(named, _looks("spot"), **at),
            layer(
                named,
                _looks("name"),
                **at,
                text=field("series", "nominal"),
            ),
        ]
    ends = "; ".join(
        f"{name}: "
        + ", ".join(f"{number(float(ys[i]))} at {number(float(xs[i]))}" for i in (0, -1))
        for name, (xs, ys) in (whole | spots).items()
    )
    return Picture(
        {
            "layer": layers,
            "width": width,
            "height": height,
        },
        f"{y} against {x}. {ends}.",
        title or f"{y[:1].upper()}{y[1:]} against {x}.",
    )


def bars(
    parts: dict,
    *,
    x: str,
    y: str = "",
    share: bool = False,
    colours: dict | None = None,
    title: str = "",
    height: int = 34,
) -> Picture:
    """Stacked bars {bar: {part: value}}, one row a bar; share: values in per cent."""
    rows = [
        {
            "bar": bar,
            "part": part,
            "start": start,
            "end": end,
        }
        for bar, amounts in parts.items()
        for part, start, end in zip(amounts, *stacked([*amounts.values()]))
    ]
    totals = "; ".join(
        f"{bar}: {number(sum(map(float, of.values())))}" for bar, of in parts.items()
    )
    names = list(dict.fromkeys(row["part"] for row in rows))
    looks = spec(
        "published_bars",
        x=x,
        y=y or None,
        axis=_looks("part" if share else "amount"),
        bars=list(parts),
        names=names,
        hues=[(colours or {}).get(name, hue) for name, hue in zip(names, cycle(HUES))],
        legend=len(names) > 1,
        rows=rows,
        width=WIDTH,
        step=height,
    )
    return Picture(looks, f"{x}. {totals}.", title or f"{x[:1].upper()}{x[1:]}.")
