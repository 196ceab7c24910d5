"""Pictures of the validation page, static: predicted against measured, how errors spread, how each
source does, what the residual is made of."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from scantling import catalogue
from scantling.catalogue import families

from .palette import ACCENT, SECOND
from .report.pictures import svg

FAMILIES = {
    "V100": "#8a8f98",
    "A100": "#0072b2",
    "Hopper": "#009e73",
    "Blackwell": "#d55e00",
    "TPU": "#cc79a7",
    "AMD": "#b08900",
}
CURVES = {
    "in sample": ("fitted", "#56b4e9"),
    "folds": ("configuration not fitted", "#009e73"),
    "source left out": ("source not fitted", ACCENT),
    "stack left out": ("stack not fitted", "#cc79a7"),
    "one line": ("one line: half of peak × bubble", SECOND),
}
COLUMNS = {
    "in sample": "predicted",
    "folds": "fold_out",
    "source left out": "source_out",
    "stack left out": "stack_out",
    "one line": "baseline",
}


def family(accelerator: str) -> str:
    """The generation a chip's point is coloured by."""
    return families.family(catalogue.accelerator(accelerator).family).label


def scatter(rows: pd.DataFrame) -> Markup:
    """Predicted against measured tokens/s per device on two logarithmic axes, with the sources left
    out of the fit."""
    data = (
        pd.DataFrame(
            {
                "measured": rows.measured,
                "predicted": rows.source_out,
                "chip": rows.accelerator.map(family),
            }
        )
        .dropna()
        .round(2)
    )
    low, high = (
        data[["measured", "predicted"]].min().min() * 0.8,
        data[["measured", "predicted"]].max().max() * 1.25,
    )
    ends = np.array([low, high])
    lines = pd.concat(
        [pd.DataFrame({"x": ends, "y": ends * f, "which": str(f)}) for f in (0.8, 1.0, 1.25)]
    )
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ticks = alt.Axis(
        format="~s", values=[10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000], grid=True
    )
    rule = (
        alt.Chart(lines)
        .mark_line(clip=True, strokeWidth=1, style="soft")
        .encode(
            x=alt.X("x:Q", scale=scale),
            y=alt.Y("y:Q", scale=scale),
            detail="which:N",
            strokeDash=alt.condition("datum.which == '1.0'", alt.value([1, 0]), alt.value([4, 4])),
        )
    )
    names = [n for n in FAMILIES if n in set(data.chip)] + sorted(set(data.chip) - set(FAMILIES))
    points = (
        alt.Chart(data)
        .mark_circle(size=22, opacity=0.7)
        .encode(
            x=alt.X("measured:Q", scale=scale, title="measured, tokens/s per device", axis=ticks),
            y=alt.Y("predicted:Q", scale=scale, title="predicted, source left out", axis=ticks),
            color=alt.Color(
                "chip:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=[FAMILIES.get(n, "#555555") for n in names]),
                legend=alt.Legend(orient="bottom", columns=6),
            ),
        )
    )
    off = (rows.source_out / rows.measured - 1).abs()
    words = (
        f"Predicted against measured throughput of {len(data):,} published runs whose "
        f"source was left out of the fit: half lie within {100 * off.median():.1f} % of "
        f"the diagonal, "
        f"nine in ten within {100 * off.quantile(0.9):.0f} %."
    )
    return _picture(
        alt.layer(rule, points).properties(width=480, height=430),
        words,
        (
            "Each point is a published run. Solid: predicted = measured; dashed: 20 % below "
            "and 25 % above."
        ),
    )


def spread(rows: pd.DataFrame) -> Markup:
    """Share of runs within an error, for each kind of fit and for the one-line baseline."""
    grid = np.geomspace(0.005, 1.0, 60)
    parts = [
        pd.DataFrame(
            {
                "error": grid,
                "share": [(_size(rows, COLUMNS[kind]) <= g).mean() for g in grid],
                "fit": said,
            }
        )
        for kind, (said, _) in CURVES.items()
    ]
    data = pd.concat(parts).round(5)
    names = [said for said, _ in CURVES.values()]
    chart = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "error:Q",
                title="error of tokens/s, up to",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format="~%", values=[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]),
            ),
            y=alt.Y("share:Q", title="share of runs", axis=alt.Axis(format="~%", tickCount=5)),
            color=alt.Color(
                "fit:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=[c for _, c in CURVES.values()]),
                legend=alt.Legend(orient="bottom", columns=2),
            ),
            strokeDash=alt.StrokeDash(
                "fit:N",
                sort=names,
                scale=alt.Scale(domain=names, range=[[2, 2], [6, 2], [1, 0], [8, 3, 2, 3], [4, 4]]),
                legend=None,
            ),
        )
    )
    words = (
        "Share of runs within an error of 10 %: "
        + "; ".join(
            f"{said} {100 * (_size(rows, COLUMNS[kind]) <= 0.1).mean():.0f} %"
            for kind, (said, _) in CURVES.items()
        )
        + "."
    )
    return _picture(
        chart.properties(width=480, height=430),
        words,
        (
            "How many runs lie within which error. Higher is better; the last curve is what "
            "one line of arithmetic reaches."
        ),
    )


def by_source(rows: pd.DataFrame, least: int = 1) -> Markup:
    """Signed error of every source left out: middle 80 % as a bar, median as a dot, the baseline's
    median as a diamond."""
    off = pd.DataFrame(
        {
            "source": rows.source,
            "off": rows.source_out / rows.measured - 1,
            "line": rows.baseline / rows.measured - 1,
        }
    )
    groups = off.groupby("source")
    data = pd.DataFrame(
        {
            "low": groups.off.quantile(0.1),
            "high": groups.off.quantile(0.9),
            "median": groups.off.median(),
            "line": groups.line.median().clip(-0.78, 1.18),
            "runs": groups.size(),
        }
    ).reset_index()
    data = data[data.runs >= least].sort_values("runs", ascending=False)
    data["label"] = [f"{short(s, 66)}  ({n})" for s, n in zip(data.source, data.runs)]
    data[["low", "high"]] = data[["low", "high"]].clip(-0.8, 1.2)
    kinds = ["predicted: median, and the middle 80 % of its runs", "one line: median"]
    marks = pd.concat(
        [
            pd.DataFrame({"label": data.label, "x": data[column], "kind": kind})
            for column, kind in zip(("line", "median"), kinds[::-1])
        ]
    )
    y = alt.Y(
        "label:N",
        sort=list(data.label),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=460, labelFontSize=10.5),
    )
    scale = alt.Scale(domain=[-0.8, 1.2], nice=False)
    axis = alt.Axis(format="+~%", values=[-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1])
    zero = (
        alt.Chart(pd.DataFrame({"x": [0]}))
        .mark_rule(strokeWidth=1.2, style="ink")
        .encode(x=alt.X("x:Q", scale=scale))
    )
    bar = (
        alt.Chart(data)
        .mark_bar(height=5, opacity=0.45, stroke=None, clip=True)
        .encode(
            x=alt.X(
                "low:Q", title="predicted / measured − 1, source left out", scale=scale, axis=axis
            ),
            x2="high:Q",
            y=y,
            color=alt.value(ACCENT),
        )
    )
    legend = alt.Legend(orient="bottom", title=None, labelLimit=420)
    points = (
        alt.Chart(marks)
        .mark_point(size=38, opacity=1, filled=True, clip=True)
        .encode(
            x=alt.X("x:Q", scale=scale),
            y=y,
            color=alt.Color(
                "kind:N", scale=alt.Scale(domain=kinds, range=[ACCENT, SECOND]), legend=legend
            ),
            shape=alt.Shape(
                "kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]), legend=legend
            ),
        )
    )
    words = (
        "Median error with the source left out: "
        + "; ".join(f"{short(s, 60)} {100 * m:+.0f} %" for s, m in zip(data.source, data["median"]))
        + "."
    )
    return _picture(
        alt.layer(zero, bar, points).properties(width=520, height=alt.Step(16.5)),
        words,
        (
            "Every source, predicted by constants that were fitted without it. In brackets "
            "the number of runs; a mark at the edge lies beyond it."
        ),
    )


def memory(rows: pd.DataFrame) -> Markup:
    """Predicted memory over capacity of configurations that ran and that ran out, with their fold
    left out; beyond 1 is called too large."""
    kinds = {True: "ran", False: "ran out of memory"}
    data = pd.DataFrame(
        {"share": rows.fold_out_bytes / rows.capacity_bytes, "kind": rows.ran.map(kinds)}
    )
    edges = np.arange(0, 2.05, 0.05)
    bins = [
        {
            "low": a,
            "high": b,
            "kind": kind,
            "zero": 0,
            "count": int(
                (
                    (data.kind == kind)
                    & (data.share.clip(upper=1.999) >= a)
                    & (data.share.clip(upper=1.999) < b)
                ).sum()
            ),
        }
        for kind in kinds.values()
        for a, b in zip(edges[:-1].round(2), edges[1:].round(2))
    ]
    names = list(kinds.values())
    x = alt.X(
        "low:Q",
        title="predicted memory / what a program can have (200 % and more in the last bar)",
        scale=alt.Scale(domain=[0, 2], nice=False),
        axis=alt.Axis(format=".0%", tickCount=10),
    )
    bars = (
        alt.Chart(pd.DataFrame([b for b in bins if b["count"]]))
        .mark_rect(stroke=None, opacity=0.6)
        .encode(
            x=x,
            x2="high:Q",
            y=alt.Y("count:Q", title="configurations", axis=alt.Axis(tickCount=5)),
            y2="zero:Q",
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=names, range=[ACCENT, SECOND]),
                legend=alt.Legend(orient="bottom"),
            ),
        )
    )
    limit = (
        alt.Chart(pd.DataFrame({"x": [1.0]}))
        .mark_rule(strokeWidth=1.4, style="ink")
        .encode(x=alt.X("x:Q", scale=alt.Scale(domain=[0, 2])))
    )
    right = [
        ((data.share <= 1) == (data.kind == "ran"))[data.kind == kind].mean() for kind in names
    ]
    words = (
        f"Predicted memory over capacity with the fold left out: {100 * right[0]:.0f} % of "
        f"the configurations that ran lie below 100 %, {100 * right[1]:.0f} % of those that "
        f"ran out of memory above it."
    )
    return _picture(
        alt.layer(bars, limit).properties(width=760, height=190),
        words,
        (
            "Left of the line is called fitting. Every configuration predicted by constants "
            "that were fitted without its fold."
        ),
    )


def parts(residual: dict) -> Markup:
    """What the squared error with the source left out is made of, as one bar."""
    start, data = 0.0, []
    for (name, share), colour in zip(
        residual["parts"].items(), ("#0072b2", "#56b4e9", "#8a8f98", "#e69f00")
    ):
        data.append({"part": name, "start": start, "end": start + share, "colour": colour})
        start += share
    frame = pd.DataFrame(data)
    names = list(frame.part)
    chart = (
        alt.Chart(frame)
        .mark_bar(height=26, stroke=None)
        .encode(
            x=alt.X(
                "start:Q",
                title="share of the squared error",
                axis=alt.Axis(format="~%", tickCount=6),
                scale=alt.Scale(domain=[0, 1]),
            ),
            x2="end:Q",
            color=alt.Color(
                "part:N",
                sort=names,
                title=None,
                scale=alt.Scale(domain=names, range=list(frame.colour)),
                legend=alt.Legend(orient="bottom", columns=2, labelLimit=320),
            ),
        )
    )
    words = (
        "What the squared error is made of: "
        + "; ".join(f"{name} {100 * share:.0f} %" for name, share in residual["parts"].items())
        + "."
    )
    return _picture(
        chart.properties(width=760, height=34),
        words,
        "Squared error of the logarithm, sources left out.",
    )


def short(text: str, length: int) -> str:
    """The text cut at a word, with an ellipsis."""
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0].rstrip(" ,(-:;") + "…"


def _size(rows, column):
    return (rows[column] / rows.measured - 1).abs().fillna(1.0)


def _picture(chart: alt.Chart, words: str, caption: str) -> Markup:
    return Markup(
        f"<figure "
        f'class="picture">{svg(chart.to_dict(), words)}<figcaption>{escape(caption)}</figcaption></figure>'
    )
