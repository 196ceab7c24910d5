"""Pictures of published figures and of computed curves for notebooks: what was printed beside what
the kit computes, the error below."""

from __future__ import annotations

import numpy as np
from scantling.base.show import number, percent
from scantling.evidence.figures import figures as published_figures

from . import curves
from .curves import HUES, field, layer
from .figures import spec
from .report.pictures import Picture

WIDTH = 560
BESIDE = 660  # of a picture with names beside it, both
_HEIGHT = 230
_TICKS = (
    "datum.value >= 1e15 ? replace(format(datum.value, '~e'), '+', '') : datum.value >= "
    "1e12 ? format(datum.value / 1e12, '~r') + 'T' : "
    "datum.value >= 1e4 ? replace(format(datum.value, '~s'), 'G', 'B') : format(datum.value, '~r')"
)


def _looks(**given) -> dict:
    return spec(
        "published",
        ticks=_TICKS,
        **{
            "columns": 4,
            "title": False,
            "few": [],
            **given,
        },
    )


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
    looks = _looks(columns=2 if max(map(len, names)) > 26 else 4)
    legend = None if beside else looks["legend"]
    told = curves.marked("series", names, legend=legend)
    fields = ("series", "x", "published", "ours")
    shown = [
        {
            **{name: getattr(p, name) for name in fields},
            "error": e,
            "counted": p.counted,
        }
        for p, e in points
    ]
    x = _axis_x(f, points)
    y = field(
        "published",
        title=f.quantity if f.unit in ("1", f.quantity) else f"{f.quantity}, {f.unit}",
        scale=looks["log_up"] if "y" in f.log else looks["linear_up"],
        axis=looks["shares" if is_share(f) else "numbers"],
    )
    above = []
    if drawn:
        dashed = curves.marked(
            "series",
            names,
            legend=legend,
            dashed=True,
        )
        above.append(
            layer(
                _points(drawn),
                looks["ours"],
                x=x,
                y=field("y"),
                **dashed,
            )
        )
    if drawn and beside:
        hues = dict(zip(names, HUES))
        above += curves.ends(
            drawn,
            x,
            y,
            width=width,
            height=_HEIGHT,
            hues=hues,
            glyphs=True,
        )
    above += [
        layer(
            shown,
            looks["printed"],
            x=x,
            y=y,
            **told,
        ),
        layer(
            shown,
            looks["cross"],
            x=x,
            y=field("ours"),
        ),
    ]
    below = [
        layer([{"y": 0}], looks["zero"], y=field("y")),
        layer(
            shown,
            looks["error"],
            x=_axis_x(f, points, True),
            y=looks["below"],
            **told,
        ),
    ]
    size = {"width": width}
    return Picture(
        {
            "vconcat": [
                {
                    "layer": above,
                    "height": _HEIGHT,
                    **size,
                },
                {
                    "layer": below,
                    "height": 74,
                    **size,
                },
            ],
            "spacing": 12,
            "resolve": {
                "scale": {
                    "color": "shared",
                    "shape": "shared",
                    "x": "shared",
                }
            },
        },
        f"{f.title}. {said(r)}",
        (
            f"{f.title}. Filled: printed. {'Lines and c' if drawn else 'C'}rosses: ours. "
            f"Below: ours {'− printed' if f.absolute else '/ printed − 1'}."
        ),
    )


def _points(drawn) -> list[dict]:
    """Curves {name: (x, y)} as rows."""
    return [
        {
            "series": name,
            "x": float(a),
            "y": float(b),
        }
        for name, (xs, ys) in drawn.items()
        for a, b in zip(np.atleast_1d(xs), np.atleast_1d(ys))
    ]


def _axis_x(
    f,
    points,
    title: bool = False,
) -> dict:
    """The axis across: names as they come, few round numbers one by one, else a scale."""
    places = list(dict.fromkeys(p.x for p, _ in points))
    head = f.x if title else None
    if any(isinstance(place, str) for place in places):
        axis = {
            "labelAngle": -35 if sum(map(len, places)) > 60 else 0,
            "domain": True,
        }
        hidden = {
            "labels": False,
            "ticks": False,
        }
        return field(
            "x",
            "nominal",
            title=head,
            sort=places,
            axis=axis if title else hidden,
        )
    log = "x" in f.log
    round_ = all(float(n).is_integer() and n < 1e6 for n in places)
    few = log and 3 <= len(places) <= 12 and round_
    looks = _looks(
        title=title,
        few=sorted(places),
    )
    axis = looks["few" if few else "bytes" if f.x == "bytes" else "many"]
    scale = {
        "type": "log" if log else "linear",
        "nice": False,
        "zero": False,
        "padding": 14,
    }
    return field(
        "x",
        title=head,
        axis=axis,
        scale=scale,
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


def said(r) -> str:
    """Bounds and errors of a recreation in a sentence."""
    f, held = r.figure, sum(p.counted for p in r.points)
    return (
        f"{held} printed value{'s' * (held != 1)}: median error {size(r.median_error, f)}, largest "
        f"{size(r.worst_error, f)} (allowed {size(f.median, f)} and {size(f.worst, f)})."
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
    whole = {name: np.broadcast_arrays(*map(np.atleast_1d, ab)) for name, ab in drawn.items()}
    finite = {
        name: (np.asarray(a, float)[ok], np.asarray(b, float)[ok])
        for name, (a, b) in whole.items()
        if (ok := np.isfinite(b)).any()
    }
    names = list(finite)
    width = WIDTH if len(names) < 2 else BESIDE - curves.room(names)
    looks = _looks()
    kind = {
        end: {
            "type": "log" if end in log else "linear",
            "zero": False,
        }
        for end in "xy"
    }
    across = field(
        "x",
        title=x,
        scale={
            **kind["x"],
            "nice": False,
        },
        axis=looks["across"],
    )
    up = field(
        "y",
        title=y,
        scale={
            **kind["y"],
            "nice": "y" not in log,
        },
        axis=looks["shares" if share else "numbers"],
    )
    at = {
        "x": across,
        "y": up,
    }
    told = curves.marked("series", names, dashed=True)
    layers = [
        layer(
            _points(finite),
            looks["curve"],
            **at,
            **told,
        ),
        *curves.ends(
            finite,
            across,
            up,
            width=width,
            height=height,
            hues=dict(zip(names, HUES)),
        ),
    ]
    if marks:
        spots = _points(marks)
        layers += [
            layer(spots, looks["spot"], **at),
            layer(
                spots,
                looks["name"],
                **at,
                text=field("series", "nominal"),
            ),
        ]
    spots = {
        name: np.broadcast_arrays(*map(np.atleast_1d, ab)) for name, ab in (marks or {}).items()
    }
    ends = "; ".join(
        f"{name}: "
        + ", ".join(f"{number(float(ys[i]))} at {number(float(xs[i]))}" for i in (0, -1))
        for name, (xs, ys) in {
            **whole,
            **spots,
        }.items()
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
    rows, names, totals = [], [], []
    for bar, amounts in parts.items():
        end = 0.0
        for part, amount in amounts.items():
            start, end = end, end + float(amount)
            rows.append(
                {
                    "bar": bar,
                    "part": part,
                    "start": start,
                    "end": end,
                }
            )
        names += amounts
        totals.append(f"{bar}: {number(sum(map(float, amounts.values())))}")
    names = list(dict.fromkeys(names))
    hues = [(colours or {}).get(n, HUES[i % len(HUES)]) for i, n in enumerate(names)]
    looks = spec(
        "published_bars",
        x=x,
        y=y or None,
        axis={
            "tickCount": 6,
            **({"format": "~%"} if share else {"labelExpr": _TICKS}),
        },
        bars=list(parts),
        names=names,
        hues=hues,
        legend=len(names) > 1,
    )
    return Picture(
        {
            "data": {"values": rows},
            **looks,
            "width": WIDTH,
            "height": {"step": height},
        },
        f"{x}. {'; '.join(totals)}.",
        title or f"{x[:1].upper()}{x[1:]}.",
    )
