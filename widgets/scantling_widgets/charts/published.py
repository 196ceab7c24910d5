"""Pictures of published figures and of computed curves for notebooks: what was printed beside what
the kit computes, the error below."""

from dataclasses import asdict
from functools import partial

import numpy as np
from scantling.base.show import number, percent, several
from scantling_walkthroughs.published_figures import recreate as published_figures

from . import curves
from .chart import spec
from .curves import field, layer
from .pictures import Picture

_looks = partial(spec, "published")


def is_share(f) -> bool:
    """Whether the values of a published figure are shares."""
    return f.unit == "1" and f.quantity != "tokens"


def picture(id: str, only: str = "") -> Picture:
    """A recreated figure: dots are printed values, lines and crosses ours, the error below. `only`:
    series that begin so."""
    r = published_figures.recreate(id)
    f = r.figure
    shown = [
        asdict(p) | {"error": e} for p, e in zip(r.points, r.errors) if p.series.startswith(only)
    ]
    drawn = {s: c for s, c in r.curves.items() if s.startswith(only)}
    names = list(dict.fromkeys([*(p["series"] for p in shown), *drawn]))
    unit = "" if f.unit in ("1", f.quantity) else f", {f.unit}"
    y = field(
        "published",
        title=f.quantity + unit,
        scale=_looks("log_up" if "y" in f.log else "linear_up"),
        axis=_looks("shares" if is_share(f) else "numbers"),
    )
    at = {"x": _axis_x(f, shown), "y": y}
    width, told, layers = curves.named(
        drawn,
        names,
        at | {"y": y | {"field": "y"}},
        _looks("ours"),
        legend=_looks("legend", columns=2 if max(map(len, names)) > 26 else 4),
    )
    layers += [
        layer(shown, _looks("printed"), **at, **told),
        layer(shown, _looks("cross"), x=at["x"], y=field("ours")),
    ]
    below = {"x": _axis_x(f, shown, True), "y": _looks("error_up")}
    return Picture(
        _looks("both", above=layers, shown=shown, below=below | told, width=width),
        f"{f.title}. {said(r)}",
        (
            f"{f.title}. Filled: printed. {'Lines and c' if drawn else 'C'}rosses: ours. "
            f"Below: ours {'− printed' if f.absolute else '/ printed − 1'}."
        ),
    )


def _axis_x(f, shown, titled: bool = False) -> dict:
    """The axis across: names as they come, few round numbers one by one, else a scale."""
    places = list(dict.fromkeys(p["x"] for p in shown))
    head, log = f.x if titled else None, "x" in f.log
    axis = partial(_looks, titled=titled)
    if any(isinstance(place, str) for place in places):
        return field(
            "x",
            "nominal",
            title=head,
            sort=places,
            axis=axis("names", angle=-35 if sum(map(len, places)) > 60 else 0),
        )
    round_ = all(float(n).is_integer() and n < 1e6 for n in places)
    few = log and 3 <= len(places) <= 12 and round_
    return field(
        "x",
        title=head,
        axis=axis("few" if few else "bytes" if f.x == "bytes" else "many", few=sorted(places)),
        scale=_looks("scale", kind="log" if log else "linear"),
    )


def error(x: float, absolute: bool, unit: str = "1") -> str:
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
) -> Picture:
    """Computed curves {name: (x, y)} as one picture; `marks` {name: (x, y)} are named points on it.
    x, y: axis titles; log: axes that are logarithmic; share: y in per cent."""
    rows = curves.points(drawn)
    told = {}
    for row in [*rows, *curves.points(marks or {})]:
        told.setdefault(row["series"], []).append(f"{number(row['y'])} at {number(row['x'])}")
    ends = "; ".join(f"{name}: {of[0]}, {of[-1]}" for name, of in told.items())
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


def bars(parts: dict, *, x: str, share: bool = False, title: str = "") -> Picture:
    """Stacked bars {bar: {part: value}}, one row a bar; share: values in per cent."""
    rows = [
        {"bar": bar, "part": part, "amount": float(amount)}
        for bar, amounts in parts.items()
        for part, amount in amounts.items()
    ]
    totals = "; ".join(f"{bar}: {number(float(sum(of.values())))}" for bar, of in parts.items())
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
