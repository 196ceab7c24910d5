"""What a table of predicted and measured runs adds up to: errors by group and kind of fit, bands,
peers, worst rows, and the residual's parts.

An error is predicted / measured - 1 of tokens/s per device. A row without an answer counts as 100
%.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .rows import CONDITIONS, KINDS, PLAN

GROUPS = ("source", "accelerator", "stack", "precision")
WORST = 25


def error(rows: pd.DataFrame, column: str) -> pd.Series:
    """Predicted / measured - 1 of tokens/s, nan where there is no answer."""
    return rows[column] / rows.measured - 1


def spread(off: pd.Series) -> dict:
    """Rows, median, mean and 90th percentile of |error|, bias (median error); a missing error
    counts as 100 %."""
    size = off.abs().fillna(1.0)
    return dict(
        rows=len(off),
        median=float(size.median()),
        mean=float(size.mean()),
        p90=float(size.quantile(0.9)),
        bias=float(off.median()),
    )


def over_sources(off: pd.Series, source: pd.Series) -> float:
    """Median over sources of each source's median |error|."""
    return float(off.abs().fillna(1.0).groupby(source).median().median())


def headline(rows: pd.DataFrame) -> dict:
    """Figures of all rows for each kind of fit, the one-line baseline among them."""
    return {
        kind: {
            **spread(error(rows, column)),
            "over_sources": over_sources(error(rows, column), rows.source),
            "answered": float(rows[column].notna().mean()),
        }
        for kind, column in {**KINDS, "one line": "baseline"}.items()
    }


def by_group(rows: pd.DataFrame) -> dict:
    """For each source, accelerator, stack and precision: median error of every kind, and how the
    source-left-out prediction does."""
    return {
        name: [
            _group(str(key), g) for key, g in sorted(rows.groupby(name), key=lambda kv: -len(kv[1]))
        ]
        for name in GROUPS
    }


def _group(key, g):
    out = spread(error(g, "source_out"))
    medians = {
        kind: float(error(g, column).abs().fillna(1.0).median()) for kind, column in KINDS.items()
    }
    line = float(error(g, "baseline").abs().fillna(1.0).median())
    return dict(
        key=key,
        **{k: out[k] for k in ("rows", "p90", "bias")},
        medians=medians,
        baseline=line,
        baseline_wins=line < medians["source left out"],
        coverage=coverage(g, "source")["coverage"],
    )


def coverage(rows: pd.DataFrame, kind: str, column: str | None = None) -> dict:
    """Share of measured runs inside the 80 % band, below and above it, and the band's median full
    width over the prediction.

    kind: fold, source or stack, what was left out of the fit; the band of seconds s x [low, high]
    is tokens/s / [high, low].
    """
    predicted = rows[column or f"{kind}_out"]
    done = rows[predicted.notna()]
    low, high = (
        predicted[done.index] / done[f"{kind}_high"],
        predicted[done.index] / done[f"{kind}_low"],
    )
    return dict(
        rows=len(done),
        coverage=float(((done.measured >= low) & (done.measured <= high)).mean()),
        below=float((done.measured < low).mean()),
        above=float((done.measured > high).mean()),
        width=float((1 / done[f"{kind}_low"] - 1 / done[f"{kind}_high"]).median()),
    )


def bands_table(rows: pd.DataFrame) -> list[dict]:
    """Coverage and width by what the fit had not seen, and by what it knew of the stack and the
    model."""
    out = [
        dict(key="configurations not seen (folds)", **coverage(rows, "fold")),
        dict(key="sources not seen", **coverage(rows, "source")),
        dict(key="stacks not seen", **coverage(rows, "stack")),
    ]
    for said, where in (
        ("sources not seen, stack known", rows.source_known == 1),
        ("sources not seen, stack unknown", rows.source_known == 0),
        ("sources not seen, dense", rows.moe == 0),
        ("sources not seen, mixture of experts", rows.moe == 1),
    ):
        if where.any():
            out.append(dict(key=said, **coverage(rows[where], "source")))
    return out


def single_source(rows: pd.DataFrame) -> list[dict]:
    """The headline with all shipped constants and without those that one source alone supports."""
    alone = rows["only source of its stack"] | rows["only source of its chip"]
    out = []
    for said, where in (
        ("all rows", alone | ~alone),
        ("stack or chip from one source", alone),
        ("several sources", ~alone),
    ):
        if where.any():
            out.append(
                dict(
                    key=said,
                    rows=int(where.sum()),
                    **{
                        f"with_{k}": v
                        for k, v in spread(error(rows[where], "predicted")).items()
                        if k in ("median", "p90")
                    },
                    **{
                        f"without_{k}": v
                        for k, v in spread(error(rows[where], "without_single")).items()
                        if k in ("median", "p90")
                    },
                )
            )
    return out


def repeats(rows: pd.DataFrame) -> dict:
    """How far repeated measurements of one configuration lie from their median, in all and by
    source: no model of the row can be nearer."""
    again = rows[rows.twins_apart.notna()]
    off = (again.measured / again.groupby("twin").measured.transform("median") - 1).abs()
    mean = np.log(again.measured) - np.log(again.measured).groupby(again.twin).transform("mean")
    ways = float((again.groupby("twin").size() - 1).sum()) if len(again) else 0.0
    by = [
        dict(key=str(k), rows=len(g), median=float(g.median()), p90=float(g.quantile(0.9)))
        for k, g in off.groupby(again.source)
    ]
    return dict(
        rows=len(again),
        configurations=int(again.twin.nunique()),
        median=float(off.median()) if len(off) else 0.0,
        p90=float(off.quantile(0.9)) if len(off) else 0.0,
        variance=float((mean**2).sum() / ways) if ways else 0.0,
        by_source=by,
    )


def worst(rows: pd.DataFrame, number: int = WORST) -> list[dict]:
    """The rows furthest off with their source left out, and what their rows and their sources
    show."""
    off = error(rows, "source_out")
    usual = off.groupby(rows.source).transform("median")
    many = off.groupby(rows.source).transform("size")
    out = []
    for i in off.abs().fillna(1.0).nlargest(number).index:
        row, reasons = rows.loc[i], [s for s in rows.sees[i].split("; ") if s]
        if (
            many[i] >= 4
            and np.sign(usual[i]) == np.sign(off[i])
            and abs(usual[i]) > 0.4 * abs(off[i])
        ):
            reasons.insert(
                0,
                f"all {many[i]:.0f} rows of this source are off alike (median {_signed(usual[i])})",
            )
        if row.twins_apart > 0.05:
            reasons.insert(0, f"measured more than once, {100 * row.twins_apart:.0f} % apart")
        out.append(
            dict(
                id=row.id,
                source=row.source,
                url=row.source_url,
                locator=row.locator,
                stack=row["stack"],
                accelerator=row.accelerator,
                devices=int(row.n_devices),
                measured=float(row.measured),
                error=_number(off[i]),
                fold_error=_number(error(rows, "fold_out")[i]),
                baseline_error=_number(error(rows, "baseline")[i]),
                reason="; ".join(filter(None, [*reasons, _neighbour(rows, i)]))
                or row.unanswered
                or "nothing printed in the row explains it",
            )
        )
    return out


def _neighbour(rows: pd.DataFrame, i) -> str:
    """A run of the same source, model and machine whose plan differs in one setting or two, and how
    far that one is off.

    The nearest one that is less than half as far off, which narrows the cause down; failing that
    the nearest.
    """
    near = rows[(rows.source == rows.source[i]) & (rows.job == rows.job[i])].drop(index=i)
    differs = near[list(PLAN)].ne(rows.loc[i, list(PLAN)]) & ~(
        near[list(PLAN)].isna() & rows.loc[i, list(PLAN)].isna()
    )
    steps = differs.drop(columns=["dp", "global_batch_seqs"]).sum(
        axis=1
    )  # dp follows from the others
    steps = steps[(steps >= 1) & (steps <= 2)]
    if not len(steps):
        return ""
    off = error(near.loc[steps.index], "source_out")
    fine = steps[off.abs() < 0.5 * abs(error(rows.loc[[i]], "source_out").iloc[0])]
    j = (fine if len(fine) else steps).idxmin()
    said = ", ".join(
        f"{name} {_plain(rows[name][j])} for {_plain(rows[name][i])}"
        for name in PLAN
        if differs[name][j] and name not in ("dp", "global_batch_seqs")
    )
    return (
        f"{'' if len(fine) else 'so are its neighbours: '}with {said} measured "
        f"{rows.measured[j] / rows.measured[i]:.2f}× as fast and off {_signed(off[j])}"
    )


def _plain(x) -> str:
    return f"{x:g}" if isinstance(x, float) and x == x else "not printed" if x != x else str(x)


def residual(rows: pd.DataFrame, floor_variance: float) -> dict:
    """What the error with the source left out is made of.

    parts: shares of the mean squared log error: common to a whole source; to one chip and precision
    within it; repeated runs of one
    configuration; the rest. conditions: how much of it lies on rows that show a condition.
    one_factor: the error once each source's
    own scale is known from its other rows, which is what one measured step of one's own buys.
    """
    r = np.log(rows.source_out / rows.measured).dropna()
    of = rows.loc[r.index]
    total = float((r**2).mean())
    source = r.groupby(of.source).transform("mean")
    cell = r.groupby([of.source, of.accelerator, of.precision]).transform("mean")
    floor = min(floor_variance, float(((r - cell) ** 2).mean()))
    parts = {
        "a whole source alike": float((source**2).mean()),
        "one chip and precision of a source alike": float(((cell - source) ** 2).mean()),
        "repeated runs of one configuration": floor,
        "single rows": float(((r - cell) ** 2).mean()) - floor,
    }
    conditions = []
    for name in CONDITIONS:
        where = of[name].astype(bool)
        if where.any():
            conditions.append(
                dict(
                    key=name,
                    rows=int(where.sum()),
                    share_of_rows=float(where.mean()),
                    share_of_error=float((r[where] ** 2).sum() / (r**2).sum()),
                    median_with=float(np.expm1(r[where]).abs().median()),
                    median_without=float(np.expm1(r[~where]).abs().median())
                    if (~where).any()
                    else None,
                )
            )
    return dict(
        rows=len(r),
        rms=float(np.sqrt(total)),
        parts={k: v / total for k, v in parts.items()},
        conditions=sorted(conditions, key=lambda c: -c["share_of_error"]),
        one_factor=spread(np.expm1(r - _others_median(r, of.source))),
    )


def _others_median(r: pd.Series, group: pd.Series) -> pd.Series:
    """The median of the other rows of each row's group; 0 where it has none."""
    out = pd.Series(0.0, index=r.index)
    for _, g in r.groupby(group):
        v = g.to_numpy()
        if len(v) > 1:
            out[g.index] = [np.median(np.delete(v, i)) for i in range(len(v))]
    return out


def peers(rows: pd.DataFrame, published: list[dict]) -> list[dict]:
    """On each set of runs that a rival was tried on: step-time errors here with the set's source
    left out, of the one line, and the rivals' own.

    Step-time error: predicted / measured - 1 of seconds, as the rivals print it.
    """
    out = []
    for name in dict.fromkeys(p["set"] for p in published):
        about = [p for p in published if p["set"] == name]
        where = rows.source.str.startswith(about[0]["runs_source"]) & rows.locator.fillna(
            ""
        ).str.startswith(about[0]["runs_locator"])
        if not where.any():
            continue
        mine = rows[where]
        step = lambda column: (
            spread(mine.measured / mine[column] - 1)
            | {"max": float((mine.measured / mine[column] - 1).abs().max())}
        )  # noqa: E731, B023
        out.append(
            dict(
                set=name,
                rows=int(where.sum()),
                source_left_out=step("source_out"),
                in_sample=step("predicted"),
                one_line=step("baseline"),
                rivals=[
                    {
                        k: p[k]
                        for k in (
                            "peer",
                            "mean",
                            "median",
                            "max",
                            "rows",
                            "how",
                            "source",
                            "url",
                            "date",
                            "verified",
                        )
                    }
                    for p in about
                ],
            )
        )
    return out


def _number(x):
    return float(x) if x == x else None


def _signed(x) -> str:
    return f"{100 * x:+.0f} %".replace("-", "−")
