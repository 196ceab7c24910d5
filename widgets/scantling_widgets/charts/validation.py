"""Pictures of the validation page, static: predicted against measured, how errors spread, how each
source does, what the residual is made of."""

import numpy as np
from markupsafe import Markup
from pandas import DataFrame
from scantling import catalogue
from scantling.catalogue.families import families

from .chart import laid, spec
from .palette import ACCENT, FAMILIES, SECOND
from .pictures import Picture

# column of predictions, colour, what it is the fit of
CURVES = {
    "predicted": ("#56b4e9", "fitted"),
    "fold_out": ("#009e73", "configuration not fitted"),
    "source_out": (ACCENT, "source not fitted"),
    "family_out": ("#cc79a7", "family not fitted"),
    "baseline": (SECOND, "baseline: half of peak, with the bubble"),
}
_MEDIANS = {
    "median": "predicted: median, and the middle 80 % of its runs",
    "line": "baseline: median",
}
_KINDS = {True: "ran", False: "ran out of memory"}


def _picture(name: str, words: str, caption: str, given: dict, **rows) -> Markup:
    return Markup(
        Picture(spec(f"validation_{name}", **given) | {"datasets": rows}, words, caption).figure()
    )


def scatter(rows: DataFrame) -> Markup:
    """Predicted against measured tokens/s per device on two logarithmic axes, with the sources left
    out of the fit."""
    runs = rows[["measured"]].assign(
        predicted=rows.source_out,
        chip=rows.accelerator.map(lambda id: families()[catalogue.accelerators()[id].family].label),
    )
    runs = runs.dropna().round(2)
    places = runs[["measured", "predicted"]]
    ends = [places.min().min() * 0.8, places.max().max() * 1.25]
    lines = [
        {"x": end, "y": end * factor, "which": str(factor)}
        for factor in (0.8, 1.0, 1.25)
        for end in ends
    ]
    names = sorted(set(runs.chip), key=[*FAMILIES, *sorted(set(runs.chip))].index)
    off = (rows.source_out / rows.measured - 1).abs()
    return _picture(
        "scatter",
        f"Predicted against measured throughput of {len(runs):,} published runs whose source was "
        f"left out of the fit: half lie within {100 * off.median():.1f} % of the diagonal, nine in "
        f"ten within {100 * off.quantile(0.9):.0f} %.",
        "Each point is a published run. Solid: predicted = measured; dashed: 20 % below and 25 % "
        "above.",
        {"domain": ends, "names": names, "hues": [FAMILIES.get(name, "#555555") for name in names]},
        lines=lines,
        runs=runs.to_dict("records"),
    )


def spread(rows: DataFrame) -> Markup:
    """Share of runs within an error, for each kind of fit and for the one-line baseline; a run
    without a prediction is off by all of it."""
    hues, fits = zip(*CURVES.values())
    errors = rows[[*CURVES]].div(rows.measured, axis=0).sub(1).abs().fillna(1.0).to_numpy()
    shares = [
        {"error": round(e, 5), "share": round(share, 5), "fit": fit}
        for fit, of in zip(fits, errors.T)
        for e in np.geomspace(0.005, 1.0, 60)
        for share in ((of <= e).mean(),)
    ]
    within = 100 * (errors <= 0.1).mean(axis=0)
    near = "; ".join(f"{fit} {share:.0f} %" for fit, share in zip(fits, within))
    return _picture(
        "spread",
        f"Share of runs within an error of 10 %: {near}.",
        "How many runs lie within which error. Higher is better; the last curve is what one line "
        "of arithmetic reaches.",
        {"names": [*fits], "hues": [*hues]},
        shares=shares,
    )


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
    said = (f"{short(s, 60)} {100 * m:+.0f} %" for s, m in zip(data.source, data["median"]))
    return _picture(
        "sources",
        f"Median error with the source left out: {'; '.join(said)}.",
        "Every source, predicted by constants that were fitted without it. In brackets the number "
        "of runs; a mark at the edge lies beyond it.",
        {"labels": list(data.label), "kinds": list(_MEDIANS.values())},
        sources=data.to_dict("records"),
        medians=medians.to_dict("records"),
    )


def memory(rows: DataFrame) -> Markup:
    """Predicted memory over capacity of configurations that ran and that ran out, with their fold
    left out; beyond 1 is called too large."""
    share, edges = (rows.fold_out_bytes / rows.capacity_bytes, np.arange(0, 2.05, 0.05).round(2))
    bins = [
        {"low": low, "high": high, "kind": name, "zero": 0, "count": int(count)}
        for ran, name in _KINDS.items()
        for low, high, count in zip(
            edges[:-1], edges[1:], np.histogram(share[rows.ran == ran].clip(upper=1.999), edges)[0]
        )
        if count
    ]
    right, over = (100 * ((share <= 1) == ran)[rows.ran == ran].mean() for ran in _KINDS)
    return _picture(
        "memory",
        f"Predicted memory over capacity with the fold left out: {right:.0f} % of the "
        f"configurations that ran lie below 100 %, {over:.0f} % of those that ran out of "
        "memory above it.",
        "Left of the line is called fitting. Every configuration predicted by constants that were "
        "fitted without its fold.",
        {"kinds": list(_KINDS.values())},
        bins=bins,
    )


def parts(residual: dict) -> Markup:
    """What the squared error with the source left out is made of, as one bar."""
    shares = residual["parts"]
    said = "; ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    return _picture(
        "parts",
        f"What the squared error is made of: {said}.",
        "Squared error of the logarithm, sources left out.",
        {"names": list(shares)},
        parts=laid({name: (name, "") for name in shares}, shares),
    )


def short(text: str, length: int) -> str:
    """The text cut at a word, with an ellipsis."""
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0].rstrip(" ,(-:;") + "…"
