"""Pictures of the validation page, static: predicted against measured, how errors spread, how each
source does, what the residual is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from pandas import DataFrame
from scantling import catalogue
from scantling.catalogue.families import families

from .altair_loader import alt
from .figure import Drawn, Row, compiled, laid
from .palette import ACCENT, FAMILIES, SECOND, Swatch
from .pictures import Picture
from .theme import layered, listed, over


class Fit(NamedTuple):
    """What a column of predictions is the fit of, and its colour."""

    colour: str
    name: str


CURVES = {
    "predicted": Fit("#56b4e9", "fitted"),
    "fold_out": Fit("#009e73", "configuration not fitted"),
    "source_out": Fit(ACCENT, "source not fitted"),
    "family_out": Fit("#cc79a7", "family not fitted"),
    "baseline": Fit(SECOND, "baseline: half of peak, with the bubble"),
}
_MEDIANS = {
    "median": "predicted: median, and the middle 80 % of its runs",
    "line": "baseline: median",
}
_KINDS = {True: "ran", False: "ran out of memory"}


def _picture(
    chart: Drawn, words: str, caption: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Markup:
    spec = compiled(chart)
    spec["datasets"] = spec.get("datasets", {}) | dict(rows)
    return Markup(Picture(spec, words, caption).figure())


# ---------------------------------------------------------------- predicted against measured
def scatter(rows: DataFrame) -> Markup:
    """Predicted against measured tokens/s per device on two logarithmic axes, with the sources left
    out of the fit."""
    runs = rows[["measured"]].assign(
        predicted=rows.source_out,
        chip=rows.accelerator.map(lambda id: families()[catalogue.accelerators()[id].family].label),
    )
    runs = runs.dropna().round(2)
    places = runs[["measured", "predicted"]]
    ends = [float(places.min().min()) * 0.8, float(places.max().max()) * 1.25]
    lines = [
        {"x": end, "y": end * factor, "which": str(factor)}
        for factor in (0.8, 1.0, 1.25)
        for end in ends
    ]
    names = sorted(set(runs.chip), key=[*FAMILIES, *sorted(set(runs.chip))].index)
    off = (rows.source_out / rows.measured - 1).abs()
    return _picture(
        _draw_scatter(ends, names),
        f"Predicted against measured throughput of {len(runs):,} published runs whose source was "
        f"left out of the fit: half lie within {100 * off.median():.1f} % of the diagonal, nine in "
        f"ten within {100 * off.quantile(0.9):.0f} %.",
        "Each point is a published run. Solid: predicted = measured; dashed: 20 % below and 25 % "
        "above.",
        {"lines": lines, "runs": _rows_of(runs)},
    )


def _draw_scatter(ends: list[float], names: list[str]) -> alt.LayerChart:
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(
        format="~s", grid=True, values=[10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000]
    )
    solid = alt.condition("datum.which == '1.0'", alt.value([1, 0]), alt.value([4, 4]))
    lines = (
        over("lines")
        .mark_line(clip=True, strokeWidth=1, style="soft")
        .encode(
            alt.X("x:Q", scale=scale),
            alt.Y("y:Q", scale=scale),
            alt.Detail("which:N"),
            strokeDash=solid,
        )
    )
    runs = (
        over("runs")
        .mark_circle(opacity=0.7, size=22)
        .encode(
            alt.X("measured:Q", title="measured, tokens/s per device", axis=axis, scale=scale),
            alt.Y("predicted:Q", title="predicted, source left out", axis=axis, scale=scale),
            alt.Color(
                "chip:N",
                title=None,
                legend=alt.Legend(columns=6, orient="bottom"),
                scale=alt.Scale(
                    domain=names, range=[FAMILIES.get(name, "#555555") for name in names]
                ),
                sort=names,
            ),
        )
    )
    return layered(lines, runs).properties(width=480, height=430)


# ---------------------------------------------------------------- how errors spread
def spread(rows: DataFrame) -> Markup:
    """Share of runs within an error, for each kind of fit and for the one-line baseline; a run
    without a prediction is off by all of it."""
    fits = [fit.name for fit in CURVES.values()]
    errors = rows[[*CURVES]].div(rows.measured, axis=0).sub(1).abs().fillna(1.0).to_numpy()
    shares = [
        {"error": round(e, 5), "share": round((column <= e).mean(), 5), "fit": fit}
        for fit, column in zip(fits, errors.T)
        for e in np.geomspace(0.005, 1.0, 60)
    ]
    within = 100 * (errors <= 0.1).mean(axis=0)
    near = "; ".join(f"{fit} {share:.0f} %" for fit, share in zip(fits, within))
    return _picture(
        _draw_spread(fits),
        f"Share of runs within an error of 10 %: {near}.",
        "How many runs lie within which error. Higher is better; the last curve is what one line "
        "of arithmetic reaches.",
        {"shares": shares},
    )


def _draw_spread(fits: list[str]) -> alt.Chart:
    dashes = [[2, 2], [6, 2], [1, 0], [8, 3, 2, 3], [4, 4]]
    chart: alt.Chart = (
        over("shares")
        .mark_line(strokeWidth=2)
        .encode(
            alt.X(
                "error:Q",
                title="error of tokens/s, up to",
                axis=alt.Axis(format="~%", values=[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]),
                scale=alt.Scale(type="log", nice=False),
            ),
            alt.Y("share:Q", title="share of runs", axis=alt.Axis(format="~%", tickCount=5)),
            alt.Color(
                "fit:N",
                title=None,
                legend=alt.Legend(columns=2, orient="bottom"),
                scale=alt.Scale(domain=fits, range=[fit.colour for fit in CURVES.values()]),
                sort=fits,
            ),
            alt.StrokeDash(
                "fit:N", legend=None, scale=alt.Scale(domain=fits, range=dashes), sort=fits
            ),
        )
        .properties(width=480, height=430)
    )
    return chart


# ---------------------------------------------------------------- source by source
def by_source(rows: DataFrame) -> Markup:
    """Signed error of every source left out: middle 80 % as a bar, median as a dot, the baseline's
    median as a diamond."""
    off = rows[["source_out", "baseline"]].div(rows.measured, axis=0) - 1
    groups = off.groupby(rows.source)
    data = groups.median().set_axis([*_MEDIANS], axis=1)
    data["runs"] = groups.size()
    data[["low", "high"]] = groups.source_out.quantile([0.1, 0.9]).unstack().clip(-0.8, 1.2)
    data["line"] = data["line"].clip(-0.78, 1.18)
    data = data.reset_index().sort_values("runs", ascending=False)
    data["label"] = [f"{short(s, 66)}  ({n})" for s, n in zip(data.source, data.runs)]
    medians = data.melt("label", [*_MEDIANS][::-1], "kind", "x").replace({"kind": _MEDIANS})
    texts = (f"{short(s, 60)} {100 * m:+.0f} %" for s, m in zip(data.source, data["median"]))
    return _picture(
        _draw_sources(list(data.label)),
        f"Median error with the source left out: {'; '.join(texts)}.",
        "Every source, predicted by constants that were fitted without it. In brackets the number "
        "of runs; a mark at the edge lies beyond it.",
        {"sources": _rows_of(data), "medians": _rows_of(medians)},
    )


def _draw_sources(labels: list[str]) -> alt.LayerChart:
    kinds = list(_MEDIANS.values())
    scale = alt.Scale(domain=[-0.8, 1.2], nice=False)
    x = alt.X("x:Q", scale=scale)
    y = alt.Y(
        "label:N",
        title=None,
        axis=alt.Axis(domain=False, labelFontSize=10.5, labelLimit=460, ticks=False),
        sort=labels,
    )
    legend = alt.Legend(title=None, labelLimit=420, orient="bottom")
    nil = listed([{"x": 0}]).mark_rule(strokeWidth=1.2, style="ink").encode(x)
    spans = (
        over("sources")
        .mark_bar(height=5, clip=True, opacity=0.45, stroke=None)
        .encode(
            alt.X(
                "low:Q",
                title="predicted / measured − 1, source left out",
                axis=alt.Axis(format="+~%", values=[-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1]),
                scale=scale,
            ),
            alt.X2("high"),
            y,
            alt.ColorValue(ACCENT),
        )
    )
    medians = (
        over("medians")
        .mark_point(clip=True, filled=True, opacity=1, size=38)
        .encode(
            x,
            y,
            alt.Color(
                "kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=[ACCENT, SECOND])
            ),
            alt.Shape(
                "kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=["circle", "diamond"])
            ),
        )
    )
    return layered(nil, spans, medians).properties(width=520, height=alt.Step(16.5))


# ---------------------------------------------------------------- memory
def memory(rows: DataFrame) -> Markup:
    """Predicted memory over capacity of configurations that ran and that ran out, with their family
    left out; beyond 1 is called too large."""
    share, edges = (rows.family_out_bytes / rows.capacity_bytes, np.arange(0, 2.05, 0.05).round(2))
    bins: list[Row] = []
    for ran, name in _KINDS.items():
        counts = np.histogram(share[rows.ran == ran].clip(upper=1.999), edges)[0]
        for low, high, count in zip(edges[:-1], edges[1:], counts):
            if count:
                row = {"low": low, "high": high, "kind": name, "zero": 0, "count": int(count)}
                bins.append(row)
    right, over_ = (100 * ((share <= 1) == ran)[rows.ran == ran].mean() for ran in _KINDS)
    return _picture(
        _draw_memory(),
        f"Predicted memory over capacity with the family left out: {right:.0f} % of the "
        f"configurations that ran lie below 100 %, {over_:.0f} % of those that ran out of "
        "memory above it.",
        "Left of the line is called fitting. Every configuration predicted by constants that were "
        "fitted without its family.",
        {"bins": bins},
    )


def _draw_memory() -> alt.LayerChart:
    bins = (
        over("bins")
        .mark_rect(opacity=0.6, stroke=None)
        .encode(
            alt.X(
                "low:Q",
                title="predicted memory / what a program can have (200 % and more in the last bar)",
                axis=alt.Axis(format=".0%", tickCount=10),
                scale=alt.Scale(domain=[0, 2], nice=False),
            ),
            alt.X2("high"),
            alt.Y("count:Q", title="configurations", axis=alt.Axis(tickCount=5)),
            alt.Y2("zero"),
            alt.Color(
                "kind:N",
                title=None,
                legend=alt.Legend(orient="bottom"),
                scale=alt.Scale(domain=list(_KINDS.values()), range=[ACCENT, SECOND]),
            ),
        )
    )
    full = listed([{"x": 1}]).mark_rule(strokeWidth=1.4, style="ink")
    return layered(bins, full.encode(alt.X("x:Q", scale=alt.Scale(domain=[0, 2])))).properties(
        width=760, height=190
    )


# ---------------------------------------------------------------- the residual
def parts(residual: Mapping[str, Any]) -> Markup:
    """What the squared error with the source left out is made of, as one bar."""
    shares: Mapping[str, float] = residual["parts"]
    texts = "; ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    stretches = laid({name: Swatch(name, "") for name in shares}, shares)
    return _picture(
        _draw_parts(list(shares)),
        f"What the squared error is made of: {texts}.",
        "Squared error of the logarithm, sources left out.",
        {"parts": [{"part": p.part, "start": p.start, "end": p.end} for p in stretches]},
    )


def _draw_parts(names: list[str]) -> alt.Chart:
    chart: alt.Chart = (
        over("parts")
        .mark_bar(height=26, stroke=None)
        .encode(
            alt.X(
                "start:Q",
                title="share of the squared error",
                axis=alt.Axis(format="~%", tickCount=6),
                scale=alt.Scale(domain=[0, 1]),
            ),
            alt.X2("end"),
            alt.Color(
                "part:N",
                title=None,
                legend=alt.Legend(columns=2, labelLimit=320, orient="bottom"),
                scale=alt.Scale(domain=names, range=["#0072b2", "#56b4e9", "#8a8f98", "#e69f00"]),
                sort=names,
            ),
        )
        .properties(width=760, height=34)
    )
    return chart


def _rows_of(frame: DataFrame) -> list[Row]:
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def short(text: str, length: int) -> str:
    """The text cut at a word, with an ellipsis."""
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0].rstrip(" ,(-:;") + "…"
