"""What a table of predicted and measured runs adds up to: errors by group and kind of fit, bands,
peers, worst rows, and the residual's parts.

An error is predicted / measured - 1 of tokens/s per device. A row without an answer counts as 100
%.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scantling.base.show import percent
from scantling.runs.accuracy import apart
from scantling.runs.scores import over_sources, spread, typical

from .rows import CONDITIONS, KINDS

GROUPS = ("source", "accelerator", "stack", "precision")
SAID = KINDS | {"one line": "baseline"}  # who predicts: its column
WORST = 25
RIVAL = "peer mean median max rows how source url date verified".split()


def error(rows: pd.DataFrame, column: str) -> pd.Series:
    """Predicted / measured - 1 of tokens/s, nan where there is no answer."""
    return rows[column] / rows.measured - 1


def headline(rows: pd.DataFrame) -> dict:
    """Figures of all rows for each kind of fit, the one-line baseline among them."""
    found = {}
    for kind, column in SAID.items():
        off = error(rows, column)
        found[kind] = spread(off) | {
            "over_sources": over_sources(off, rows.source),
            "answered": off.notna().mean(),
        }
    return found


def by_group(rows: pd.DataFrame) -> dict:
    """For each source, accelerator, stack and precision: median error of every kind, and how the
    source-left-out prediction does; the largest group first."""
    return {
        name: sorted(
            (_group(str(key), g) for key, g in rows.groupby(name)), key=lambda g: -g["rows"]
        )
        for name in GROUPS
    }


def _group(key, g):
    out = spread(error(g, "source_out"))
    medians = {kind: spread(error(g, column))["median"] for kind, column in SAID.items()}
    line = medians.pop("one line")
    return dict(
        key=key,
        **{k: out[k] for k in ("rows", "p90", "bias")},
        medians=medians,
        baseline=line,
        baseline_wins=line < out["median"],
        coverage=coverage(g, "source")["coverage"],
    )


def coverage(rows: pd.DataFrame, kind: str) -> dict:
    """Share of measured runs inside the 80 % band, below and above it, and the band's median full
    width over the prediction.

    kind: fold, source or stack, what was left out of the fit; the band of seconds s x [low, high]
    is tokens/s / [high, low].
    """
    done = rows.dropna(subset=f"{kind}_out")
    # widest and narrowest measurement over the prediction
    low = 1 / done[f"{kind}_high"]
    high = 1 / done[f"{kind}_low"]
    share = done.measured / done[f"{kind}_out"]
    return {
        "coverage": share.between(low, high).mean(),
        "below": (share < low).mean(),
        "above": (share > high).mean(),
        "rows": len(done),
        "width": (high - low).median(),
    }


def bands_table(rows: pd.DataFrame) -> list[dict]:
    """Coverage and width by what the fit had not seen, and by what it knew of the stack and the
    model."""
    known = rows.source_known
    moe = rows.moe
    parts = {
        "sources not seen": rows,
        "sources not seen, stack known": rows[known == 1],
        "sources not seen, stack unknown": rows[known == 0],
        "sources not seen, dense": rows[moe == 0],
        "sources not seen, mixture of experts": rows[moe == 1],
    }
    return [
        {"key": "configurations not seen (folds)"} | coverage(rows, "fold"),
        {"key": "families of sources not seen"} | coverage(rows, "family"),
    ] + [{"key": key} | coverage(part, "source") for key, part in parts.items() if len(part)]


def repeats(rows: pd.DataFrame) -> dict:
    """How far repeated measurements of one configuration lie from their median, in all and by
    source: no model of the row can be nearer."""
    again = rows[rows.twins_apart.notna()]
    off = apart(again.measured, again.twin)
    logs = np.log(again.measured)
    around = logs - logs.groupby(again.twin).transform("mean")
    configurations = again.twin.nunique()
    return dict(
        configurations=configurations,
        variance=(around**2).sum() / max(len(again) - configurations, 1),
        **typical(off),
        by_source=[{"key": str(k)} | typical(g) for k, g in off.groupby(again.source)],
    )


def worst(rows: pd.DataFrame, number: int = WORST) -> list[dict]:
    """The rows furthest off with their source left out, and what their rows and their sources
    show."""
    off = error(rows, "source_out")
    by = off.groupby(rows.source)
    known = rows.assign(
        error=off,
        fold_error=error(rows, "fold_out"),
        baseline_error=error(rows, "baseline"),
        usual=by.transform("median"),
        many=by.transform("size"),
        url=rows.source_url,
        devices=rows.n_devices.astype(int),
    )
    top = known.loc[off.abs().fillna(1.0).nlargest(number).index]
    reasons = [
        "; ".join(filter(None, _reasons(row)))
        or row.unanswered
        or "nothing printed in the row explains it"
        for _, row in top.iterrows()
    ]
    names = (
        "id source url locator stack accelerator devices measured error fold_error baseline_error"
    ).split()
    return top[names].assign(reason=reasons).to_dict("records")


def _reasons(row) -> list[str]:
    """What a row and its source show."""
    alike = row.usual * row.error > 0 and abs(row.usual) > 0.4 * abs(row.error)
    usual = percent(row.usual, 0, "+")
    shown = {
        f"measured more than once, {100 * row.twins_apart:.0f} % apart": row.twins_apart > 0.05,
        f"all {row.many:.0f} rows of this source are off alike (median {usual})": row.many >= 4
        and alike,
    }
    return [*(said for said, holds in shown.items() if holds), *row.sees.split("; ")]


def residual(rows: pd.DataFrame, floor_variance: float) -> dict:
    """What the error with the source left out is made of.

    parts: shares of the mean squared log error: common to a whole source; to one chip and precision
    within it; repeated runs of one configuration; the rest. conditions: how much of it lies on rows
    that show a condition.
    """
    r = np.log(rows.source_out / rows.measured).dropna()
    of = rows.loc[r.index]
    source = r.groupby(of.source).transform("mean")
    cell = r.groupby([of.source, of.accelerator, of.precision]).transform("mean")
    total, alike, beside, within = ((x**2).mean() for x in (r, source, cell - source, r - cell))
    floor = min(floor_variance, within)
    parts = {
        "a whole source alike": alike,
        "one chip and precision of a source alike": beside,
        "repeated runs of one configuration": floor,
        "single rows": within - floor,
    }
    conditions = [_condition(name, r, of[name]) for name in CONDITIONS if of[name].any()]
    return {
        "rows": len(r),
        "rms": np.sqrt(total),
        "parts": {k: v / total for k, v in parts.items()},
        "conditions": sorted(conditions, key=lambda c: -c["share_of_error"]),
    }


def _condition(name, r, where) -> dict:
    """How much of the squared log error `r` lies on the rows that show a condition."""
    size = np.expm1(r).abs()
    return {
        "key": name,
        "rows": int(where.sum()),
        "share_of_rows": where.mean(),
        "share_of_error": (r[where] ** 2).sum() / (r**2).sum(),
        "median_with": size[where].median(),
        "median_without": size[~where].median(),
    }


def peers(rows: pd.DataFrame, published: list[dict]) -> list[dict]:
    """On each set of runs that a rival was tried on: step-time errors here with the set's source
    left out, of the one line, and the rivals' own; `nearer`: the rivals that err less.

    Step-time error: predicted / measured - 1 of seconds, as the rivals print it.
    """
    kinds = {"source_left_out": "source_out", "in_sample": "predicted", "one_line": "baseline"}
    out = []
    for name in dict.fromkeys(p["set"] for p in published):
        about = [p for p in published if p["set"] == name]
        where = rows.source.str.startswith(about[0]["runs_source"])
        where &= rows.locator.fillna("").str.startswith(about[0]["runs_locator"])
        mine = rows[where]
        if len(mine):
            offs = {kind: mine.measured / mine[column] - 1 for kind, column in kinds.items()}
            own = {kind: spread(off) | {"max": off.abs().max()} for kind, off in offs.items()}
            left = own["source_left_out"]["mean"]
            theirs = [{k: p[k] for k in RIVAL} for p in about]
            out.append(
                dict(
                    set=name,
                    rows=len(mine),
                    rivals=theirs,
                    nearer=[r for r in theirs if r["mean"] and r["mean"] < left],
                    **own,
                )
            )
    return out


CHANCES = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)  # ends of the bins of a reliability table


def reliability(chance, out) -> dict:
    """How far chances of running out of memory hold: the Brier score, mean (chance - out)^2, and by
    bins of the chance how often the runs did run out.

    chance : shares. out : bool, one a run or one for all.
    """
    chance, out = np.broadcast_arrays(chance, np.asarray(out, float))
    where = np.digitize(chance, CHANCES[1:-1])
    bins = [
        dict(low=low, high=high, rows=int(at.sum()), said=chance[at].mean(), out=out[at].mean())
        for i, (low, high) in enumerate(zip(CHANCES, CHANCES[1:]))
        for at in [where == i]
        if at.any()
    ]
    return dict(rows=len(out), brier=np.mean((chance - out) ** 2), bins=bins)
